"""Many items in one request, and the way back to one request an item.

Source: docs/protocol.md, batch. Outcomes are the same either way; what differs is the number of
messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from preflight.errors import ModuleError, PreflightError, Reason
from preflight.plugins.protocol import BatchResult
from preflight.ports.module import Item, ItemAnswer

_MOST_ITEMS = 1000
_MOST_BYTES = 8 * 1024 * 1024  # as much as is worth a message; the peer's limit may be lower
_LIMIT_SHARE = 0.75  # of the peer's limit: its 80 % warning stays a warning


class Batch:
    """One request's worth of items: its params, and which of them have no answer yet."""

    def __init__(self, params: bytes, indexes: Sequence[int]) -> None:
        self.params = params
        self.asked = frozenset(indexes)
        self._open = dict.fromkeys(indexes)

    @property
    def open(self) -> list[int]:
        """The items that were not reported yet, in order."""
        return list(self._open)

    def take(
        self,
        results: Sequence[BatchResult],
        report: Callable[[ItemAnswer], None],
        odd: Callable[[str], None],
    ) -> None:
        """Report results; a second one for an item is passed over, one not asked for is ``odd``.

        A result that repeats what ``progress`` said before is in order.
        """
        for result in results:
            if result.index in self._open:
                del self._open[result.index]
                report(_answer(result))
            elif result.index not in self.asked:
                odd(f"a result for item {result.index}, which was not in the batch")

    def fail_open(self, exc: PreflightError, report: Callable[[ItemAnswer], None]) -> None:
        """Fail every item that was not reported."""
        for index in self.open:
            del self._open[index]
            report(ItemAnswer(index=index, failure=exc))


def missing(name: str, method: str) -> PreflightError:
    """Make the error of an item that the plugin said nothing about."""
    return PreflightError(Reason.PLUGIN_PROTOCOL, f"plugin {name}: {method} left this item out")


def batches(
    items: Sequence[Item], *, shared: frozenset[str], concurrency: int, limit_bytes: int
) -> Iterator[Batch]:
    """Split items into requests; what all share is sent once in each."""
    first = items[0].args if items else {}
    common = {name: value for name, value in first.items() if name in shared}
    head = msgspec.json.encode(common)
    most = max(1, min(_MOST_BYTES, int(limit_bytes * _LIMIT_SHARE)) - len(head))
    group: list[bytes] = []
    indexes: list[int] = []
    size = 0
    for item in items:
        own = {name: value for name, value in item.args.items() if name not in common}
        raw = msgspec.json.encode({"index": item.index, "args": own})
        if group and (size + len(raw) > most or len(group) >= _MOST_ITEMS):
            yield Batch(_params(head, group, concurrency), indexes)
            group, indexes, size = [], [], 0
        group.append(raw)
        indexes.append(item.index)
        size += len(raw) + 1
    if group:
        yield Batch(_params(head, group, concurrency), indexes)


def _params(common: bytes, items: Sequence[bytes], concurrency: int) -> bytes:
    return b'{"common":%b,"items":[%b],"concurrency":%d}' % (common, b",".join(items), concurrency)


def _answer(result: BatchResult) -> ItemAnswer:
    return ItemAnswer(
        index=result.index,
        needs_change=result.needs_change,
        message=result.message,
        failure=ModuleError(result.error) if result.error else None,
        changes=result.changes,
    )
