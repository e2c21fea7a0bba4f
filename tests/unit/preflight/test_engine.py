"""What the composition root makes of options and files, without contacting anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.engine import Request, prepare
from preflight.errors import ConfigError


def lay_out(folder: Path, config: str, playbook: str = "tasks: []\n") -> Path:
    (folder / "preflight.yml").write_text(config)
    (folder / "site.yml").write_text(playbook)
    return folder / "site.yml"


def test_a_flag_wins_over_the_project_and_the_project_over_the_default(tmp_path: Path) -> None:
    config = "settings: {max_message_bytes: 8192, cancel_grace: 5s, concurrency: 3}\n"
    request = Request(playbook=lay_out(tmp_path, config), settings={"concurrency": 7})
    settings = prepare(request).settings
    assert settings.max_message_bytes == 8192
    assert settings.cancel_grace == 5.0
    assert settings.concurrency == 7
    assert settings.init_timeout == 10.0


def test_problems_of_the_playbook_and_of_the_project_come_together(tmp_path: Path) -> None:
    site = lay_out(tmp_path, "settings: {cancel_grace: 5}\n", "tasks: [{nam: x}]\n")
    with pytest.raises(ConfigError) as told:
        prepare(Request(playbook=site))
    text = str(told.value)
    assert "cancel_grace" in text
    assert "'nam'" in text
