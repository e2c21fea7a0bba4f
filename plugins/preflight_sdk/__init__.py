"""Write plugins for Preflight: ``serve`` a module with ``check`` and ``apply``.

The standard library alone. A test's target in memory is in ``preflight_sdk.testing``.
"""

from __future__ import annotations

from preflight_sdk.context import Context
from preflight_sdk.errors import (
    Cancelled,
    HandleError,
    InvalidParams,
    MessageTooLarge,
    OpTimeout,
)
from preflight_sdk.handle import Handle
from preflight_sdk.results import (
    ApplyResult,
    Change,
    CheckResult,
    Item,
    RunInfo,
    RunResult,
    TargetInfo,
)
from preflight_sdk.serve import serve

__all__ = [
    "ApplyResult",
    "Cancelled",
    "Change",
    "CheckResult",
    "Context",
    "Handle",
    "HandleError",
    "InvalidParams",
    "Item",
    "MessageTooLarge",
    "OpTimeout",
    "RunInfo",
    "RunResult",
    "TargetInfo",
    "serve",
]
