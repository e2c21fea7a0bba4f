"""All scenarios under the id of the requirement that each of them judges."""

from __future__ import annotations

from preflight.verify import batches, bounds, lines, opening, stops, work
from preflight.verify.kit import Scenario

SCENARIOS: dict[str, Scenario] = {
    **opening.SCENARIOS,
    **lines.SCENARIOS,
    **bounds.SCENARIOS,
    **work.SCENARIOS,
    **stops.SCENARIOS,
    **batches.SCENARIOS,
}
