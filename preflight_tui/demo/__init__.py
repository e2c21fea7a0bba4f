"""The demo: three kiosks on this machine, brought into shape with the example plugins."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import preflight_sdk

PLAYBOOK_NAME = "kiosks.yml"
_SOURCE = Path(__file__).parent / "project"


def demo_folder() -> Path:
    """Give the folder in which the demo's project lies: the user's state, made where missing.

    Its runs are recorded there, and what the kiosks have become stays: a second run changes
    nothing. Source: XDG base directories, ``XDG_STATE_HOME``.
    """
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "preflight-tui" / "demo"


def lay_down() -> Path:
    """Bring the demo's project up to date in its folder; gives its playbook."""
    folder = demo_folder()
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(_SOURCE, folder, dirs_exist_ok=True)
    return folder / PLAYBOOK_NAME


def overrides(playbook: Path) -> list[str]:
    """Give the vars that the playbook is run with: where the kiosks and the content are."""
    folder = playbook.parent
    return [f"kiosks={folder / 'kiosks'}", f"content={folder / 'content'}"]


def plugin_folder() -> Path:
    """Give the folder of the example plugins: beside the SDK, in a checkout and when installed."""
    return Path(preflight_sdk.__file__).parent.parent
