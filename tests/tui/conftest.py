"""What every test of the console gets."""

from __future__ import annotations

import pytest

from tests.tui.harness import Opener, open_console


@pytest.fixture
def console() -> Opener:
    """Give what opens a console on the lines of a record."""
    return open_console


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TEXTUAL_THEME", "TEXTUAL_ANIMATIONS"):
        monkeypatch.delenv(name, raising=False)
