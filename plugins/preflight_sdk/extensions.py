"""The optional features that this SDK offers: each is in force when the host lists it too.

Source: docs/protocol.md, section 6.
"""

from __future__ import annotations

PARAMS_SCHEMA = "preflight-tui/params-schema"
RUN_DATA = "preflight-tui/run-data"
BATCH = "preflight-tui/batch"
PARENT = "preflight-tui/parent"
BYTES = "preflight-tui/bytes"
DIFF = "preflight-tui/diff"
CHUNKS = "preflight-tui/chunks"

ALL = (PARAMS_SCHEMA, RUN_DATA, BATCH, PARENT, BYTES, DIFF, CHUNKS)

METHODS = {"configure": RUN_DATA, "check_batch": BATCH, "apply_batch": BATCH}
"""The requests that exist only with their extension."""
