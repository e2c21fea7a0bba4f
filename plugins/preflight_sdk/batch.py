"""Many items in one request: the author's own way, or one ``check`` or ``apply`` after another.

Source: docs/protocol.md, batch.
"""

from __future__ import annotations

from _queue import Empty, SimpleQueue
from _thread import allocate_lock, start_new_thread

from preflight_sdk.errors import Cancelled
from preflight_sdk.handlers import attempt, failed, outcome_of, wire_of
from preflight_sdk.results import Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from preflight_sdk.context import Context
    from preflight_sdk.handle import Handle
    from preflight_sdk.handlers import Outcome
    from preflight_sdk.results import ApplyResult, CheckResult

    OpenHandle = Callable[[Context, int | None], Handle]
    Report = Callable[[dict[str, object]], None]

MOST_THREADS = 64


class Batch:
    """A batch as it was asked for. Raises: ValueError when it can't be worked on at all."""

    def __init__(self, params: dict[str, object]) -> None:
        common = params.get("common")
        items = params.get("items")
        asked = params.get("concurrency")
        if not (common is None or isinstance(common, dict)):
            raise ValueError("common is not an object")
        if not isinstance(items, list):
            raise ValueError("items is not an array")
        self._common: dict[str, object] = common or {}
        self.concurrency = max(1, asked) if type(asked) is int else 1
        self.items: list[Item] = []
        self.unusable: list[int] = []
        seen: set[int] = set()
        for item in items:  # pyright: ignore[reportUnknownVariableType]
            self._read(item, seen)  # pyright: ignore[reportUnknownArgumentType]

    def _read(self, item: object, seen: set[int]) -> None:
        members: dict[str, object] = item if isinstance(item, dict) else {}  # pyright: ignore[reportUnknownVariableType]
        index, own = members.get("index"), members.get("args")
        if type(index) is not int:
            raise ValueError("an item has no index")
        if index in seen:
            raise ValueError(f"index {index} comes twice")
        seen.add(index)
        if own is None or isinstance(own, dict):
            args: dict[str, object] = own or {}  # pyright: ignore[reportUnknownVariableType]
            self.items.append(Item(index, {**_copy_of(self._common), **args}))
        else:
            self.unusable.append(index)


class BatchRun:
    """One batch of one plugin, from its first item to its last."""

    def __init__(
        self, module: object, method: str, ctx: Context, *, diff: bool, report: Report
    ) -> None:
        self._module = module
        self._method = method
        self._ctx = ctx
        self._diff = diff
        self._report = report

    def run(self, batch: Batch, open_handle: OpenHandle) -> str:
        """Work through it; what failed the batch as a whole, or an empty string.

        Cancel: returns, and what was not reported did not end.
        """
        for index in batch.unusable:
            self._report({"index": index, **failed(self._method, "args is not an object")})
        own = getattr(self._module, f"{self._method}_batch", None)
        try:
            if callable(own):
                return self._run_own(own, batch.items, open_handle)
            self._run_each(batch, open_handle)
        except Cancelled:
            pass
        return ""

    def _run_own(
        self, own: Callable[..., object], items: list[Item], open_handle: OpenHandle
    ) -> str:
        handle = open_handle(self._ctx, None)
        left = {item.index for item in items}
        mutex = allocate_lock()

        def report(item: Item, result: CheckResult | ApplyResult) -> None:
            wire = wire_of(self._method, result, diff=self._diff)
            if isinstance(wire, tuple):
                raise TypeError(wire[1])
            with mutex:
                if item.index not in left:
                    raise ValueError(f"item {item.index} was reported before, or is none")
                left.remove(item.index)
            self._report({"index": item.index, **wire})

        try:
            _, error = attempt(self._ctx, lambda: own(self._ctx, items, handle, report))
        finally:
            handle.end()
        return error or ""

    def _run_each(self, batch: Batch, open_handle: OpenHandle) -> None:
        """On this thread, and on as many more as the task's ``concurrency`` asks for."""
        most = getattr(self._module, "max_concurrency", MOST_THREADS)
        count = min(batch.concurrency, len(batch.items), MOST_THREADS, max(1, most))
        items: SimpleQueue[Item] = SimpleQueue()
        for item in batch.items:
            items.put(item)
        ended: SimpleQueue[BaseException | None] = SimpleQueue()

        def work() -> None:
            try:
                self._work(items, open_handle)
                ended.put(None)
            except BaseException as exc:  # raised on the main thread, where it belongs
                ended.put(exc)

        for _ in range(count - 1):
            start_new_thread(work, ())
        work()
        failures = [ended.get() for _ in range(max(1, count))]
        for failure in failures:
            if failure is not None:
                raise failure

    def _work(self, items: SimpleQueue[Item], open_handle: OpenHandle) -> None:
        while not self._ctx.is_set:
            try:
                item = items.get_nowait()
            except Empty:
                return
            outcome = self._one(item, open_handle)
            if isinstance(outcome, tuple):
                outcome = failed(self._method, outcome[1])
            if not (self._ctx.is_set and outcome.get("error")):
                self._report({"index": item.index, **outcome})

    def _one(self, item: Item, open_handle: OpenHandle) -> Outcome:
        handler = getattr(self._module, self._method)
        ctx = self._ctx.child()
        handle = open_handle(ctx, item.index)
        try:
            return outcome_of(
                self._method, ctx, lambda: handler(ctx, item.args, handle), diff=self._diff
            )
        finally:
            handle.end()
            ctx.end()


def _copy_of(value: dict[str, object]) -> dict[str, object]:
    """A copy down to the leaves: what one item does to its args, no other item sees."""
    return {name: _copy(member) for name, member in value.items()}


def _copy(value: object) -> object:
    if isinstance(value, dict):
        return _copy_of(value)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, list):
        return [_copy(member) for member in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value
