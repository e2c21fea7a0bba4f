"""The page about the kit has the requirements as they are, and their ids stay what they are."""

from __future__ import annotations

from pathlib import Path

from preflight.verify.requirements import REQUIREMENTS

PAGE = Path(__file__).parents[3] / "docs" / "verify.md"

FROZEN = {
    "HS": 6,
    "OR": 4,
    "FR": 7,
    "ID": 7,
    "SO": 1,
    "OV": 3,
    "EO": 3,
    "SC": 2,
    "IM": 4,
    "GR": 2,
    "CA": 2,
    "CO": 2,
    "KO": 1,
    "BA": 3,
}
"""How many ids each group of version 2 has had; more may come, none may go."""


def test_the_table_is_the_one_of_the_code() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `V")]
    assert rows == [
        f"| `{one.id}` | {one.group} | {one.text} | {one.source} | {', '.join(one.needs)} |"
        for one in REQUIREMENTS
    ]


def test_no_id_goes_and_ids_count_from_1() -> None:
    ids = [one.id for one in REQUIREMENTS]
    for group, count in FROZEN.items():
        mine = [id for id in ids if id.startswith(f"V2-{group}-")]
        assert mine == [f"V2-{group}-{number + 1:02}" for number in range(len(mine))]
        assert len(mine) >= count
