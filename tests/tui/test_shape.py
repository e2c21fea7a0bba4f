"""What the console is built of: rules that no type checker knows."""

from __future__ import annotations

import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from preflight.views.plugins import SYMBOLS
from preflight.views.states import LOOKS

ROOT = Path(__file__).parents[2]
VIEWS = sorted((ROOT / "core" / "preflight" / "views").glob("*.py"))
PANES = sorted((ROOT / "preflight_tui" / "panes").glob("*.py"))
SCREENS = sorted((ROOT / "preflight_tui" / "screens").glob("*.py"))

# Measured too dear, or let control sequences through, or move where nothing happens.
BANNED = "RichLog Log DataTable LoadingIndicator Header Pretty ProgressBar"


@pytest.mark.parametrize("path", [*PANES, *SCREENS], ids=lambda path: path.name)
def test_no_widget_is_used_that_was_measured_to_be_unfit(path: Path) -> None:
    imported = re.findall(r"from textual\.widgets import ([\w, ]+)", path.read_text("utf-8"))
    names = {name.strip() for line in imported for name in line.split(",")}
    assert not names & set(BANNED.split())


@pytest.mark.parametrize("path", [*PANES, *SCREENS], ids=lambda path: path.name)
def test_no_pane_and_no_screen_talks_to_the_engine(path: Path) -> None:
    imported = re.findall(r"^from (preflight[\w.]*)", path.read_text("utf-8"), re.MULTILINE)
    for name in imported:
        assert name.startswith(("preflight.views", "preflight_tui.", "preflight.events")), name


def test_the_views_load_neither_textual_nor_rich() -> None:
    names = ",".join(f"preflight.views.{path.stem}" for path in VIEWS if path.stem != "__init__")
    code = f"import sys,{names};print([m for m in sys.modules if m in ('textual','rich')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", [*VIEWS, *PANES, *SCREENS], ids=lambda path: path.name)
def test_no_view_and_no_pane_asks_what_time_it_is(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r"\btime\.(time|monotonic)\(|datetime\.now\(|\bsleep\(", text)


def test_every_symbol_is_one_cell_wide_everywhere_and_no_emoji() -> None:
    symbols = [look.symbol for look in LOOKS.values()] + [symbol for symbol, _ in SYMBOLS.values()]
    for symbol in symbols:
        assert len(symbol) == 1
        assert unicodedata.east_asian_width(symbol) in ("N", "Na"), symbol
