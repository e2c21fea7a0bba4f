from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.modules import Workbench, workbench


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Workbench]:
    async with workbench(tmp_path) as opened:
        yield opened
