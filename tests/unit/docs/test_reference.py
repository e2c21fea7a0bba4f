"""The reference pages name everything that there is."""

from __future__ import annotations

import re
from pathlib import Path

from preflight.errors import Reason
from preflight.events import Event
from preflight_tui.options import parser

DOCS = Path(__file__).parents[3] / "docs"


def _rows(page: str) -> set[str]:
    text = (DOCS / page).read_text()
    return set(re.findall(r"^\| `([^`]+)`", text, re.MULTILINE))


def test_every_reason_is_explained_and_none_that_is_not_there() -> None:
    assert _rows("errors.md") == set(Reason)


def test_every_event_is_in_the_reference() -> None:
    tags = {str(kind.__struct_config__.tag) for kind in Event.__subclasses__()}
    assert tags <= _rows("commands.md")


def test_every_command_is_in_the_reference() -> None:
    words = {row.split()[0] for row in _rows("commands.md")}
    shown = re.findall(r"^    ([a-z]+)(?:  |$)", parser().format_help(), re.MULTILINE)
    assert "inventory" in shown
    assert set(shown) <= words


def test_every_page_that_a_page_links_to_is_there() -> None:
    for page in [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
