"""A task with ``for_each``: every item has an outcome of its own, the task has their sum.

All items are checked before the first one is applied, whether the module takes them in batches or
one by one, so that both ways give the same outcomes. Args are rendered when they are needed and
not kept: ten thousand items may weigh more than the memory that is there.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, cast

import msgspec

from preflight.errors import PreflightError, Reason
from preflight.events import Event, ItemFinished, Phase, Status, TaskProgress
from preflight.model.playbook import TaskSpec
from preflight.model.template import Scope as Names
from preflight.model.template import holds, render, render_text
from preflight.ports.module import Item, ItemAnswer, ItemsModule, Module, Report, TaskContext

_WINDOW_BYTES = 8 * 1024 * 1024  # of rendered args that are in memory at once
_WINDOW_ITEMS = 1000
_PROGRESS_S = 0.1  # an operator's eye needs no more
_LABEL_CHARS = 80

Waiting = Literal["waiting", "due"]


class ItemsRun:
    """Works through the items of one task; :attr:`statuses` is each item's, by its index."""

    def __init__(
        self,
        spec: TaskSpec,
        names: Names,
        ctx: TaskContext,
        *,
        emit: Callable[[Event], None],
        flush: Callable[[], None],
    ) -> None:
        self._spec = spec
        self._names = names
        self._ctx = ctx
        self._emit = emit
        self._flush = flush
        self._items = _item_list(spec, names)
        self._shared = _shared_names(spec)
        self._last_progress = 0.0
        self._shown = -1
        self.statuses: list[Status | Waiting] = ["waiting"] * len(self._items)
        self.first_failure: tuple[int, PreflightError] | None = None

    @property
    def due(self) -> bool:
        """Whether an item needs the change that ``apply`` makes."""
        return "due" in self.statuses

    @property
    def summary(self) -> str:
        """Say how many items ended how."""
        counted = Counter(self.statuses)
        return ", ".join(f"{count} {status}" for status, count in counted.items()) or "no items"

    async def check(self, module: Module) -> None:
        """Check every item whose condition holds."""
        await self._phase("check", module, "waiting")

    async def apply(self, module: Module) -> None:
        """Apply every item that needs it."""
        await self._phase("apply", module, "due")

    def cancelled(self) -> None:
        """Give every item that has no outcome yet the one that it was cancelled."""
        for index, status in enumerate(self.statuses):
            if status in ("waiting", "due"):
                self._end(index, "cancelled", reason=Reason.CANCELLED)

    def status(self) -> Status:
        """Sum the items up."""
        present = set(self.statuses)
        for status in ("failed", "cancelled", "changed", "ignored", "ok"):
            if status in present:
                return cast("Status", status)
        return "skipped" if present else "ok"

    async def _phase(self, phase: Phase, module: Module, which: Waiting) -> None:
        for window in self._windows(which):
            if isinstance(module, ItemsModule):
                await self._batch(phase, module, window)
            else:
                await self._one_by_one(phase, module, window)
        self._progress(last=True)

    async def _batch(self, phase: Phase, module: ItemsModule, window: Sequence[Item]) -> None:
        call = module.check_items if phase == "check" else module.apply_items
        report = self._reporter(phase)
        concurrency = self._spec.concurrency
        try:
            await call(window, self._ctx, report, shared=self._shared, concurrency=concurrency)
        except PreflightError as exc:
            before: Waiting = "waiting" if phase == "check" else "due"
            for item in window:
                if self.statuses[item.index] == before:
                    report(ItemAnswer(index=item.index, failure=exc))

    async def _one_by_one(self, phase: Phase, module: Module, window: Sequence[Item]) -> None:
        places = asyncio.Semaphore(self._spec.concurrency)
        report = self._reporter(phase)

        async def one(item: Item) -> None:
            async with places:
                ctx = self._ctx.for_item(item.index, render=self._file_renderer(item.index))
                report(await _answer(phase, module, item, ctx))

        async with asyncio.TaskGroup() as group:
            for item in window:
                group.create_task(one(item))

    def _windows(self, which: Waiting) -> Iterator[list[Item]]:
        """Render the args of the items that wait, so many at a time."""
        window: list[Item] = []
        size = 0
        for index, status in enumerate(self.statuses):
            item = self._rendered(index) if status == which else None
            if item is None:
                continue
            window.append(item)
            size += len(msgspec.json.encode(item.args))
            if size >= _WINDOW_BYTES or len(window) >= _WINDOW_ITEMS:
                yield window
                window, size = [], 0
        if window:
            yield window

    def _rendered(self, index: int) -> Item | None:
        """Render one item's args; one that is left out, or can't be rendered, ends here."""
        names = self._item_names(index)
        try:
            if not holds(self._spec.when, names):
                self._end(index, "skipped", reason=Reason.WHEN_FALSE)
                return None
            return Item(index, cast("dict[str, object]", render(self._spec.params, names)))
        except PreflightError as exc:
            self._fail(index, exc)
            return None

    def _item_names(self, index: int) -> Names:
        own = {self._spec.loop_var: self._items[index], "index": index}
        return msgspec.structs.replace(self._names, item=own)

    def _file_renderer(self, index: int) -> Callable[[str], str]:
        return lambda text: render_text(text, self._item_names(index))

    def _reporter(self, phase: Phase) -> Report:
        def report(answer: ItemAnswer) -> None:
            if answer.failure is not None:
                self._fail(answer.index, answer.failure)
            elif phase == "apply":
                self._end(answer.index, "changed", message=answer.message, answer=answer)
            elif not answer.needs_change:
                self._end(answer.index, "ok", message=answer.message, answer=answer)
            elif self._ctx.dry_run:
                self._end(answer.index, "changed", message=answer.message, answer=answer)
            else:
                self.statuses[answer.index] = "due"
            self._progress()

        return report

    def _fail(self, index: int, exc: PreflightError) -> None:
        if self.first_failure is None:
            self.first_failure = (index, exc)
        status: Status = "ignored" if self._spec.ignore_errors else "failed"
        self._end(index, status, reason=exc.reason, error=exc.message)

    def _end(
        self,
        index: int,
        status: Status,
        *,
        reason: str = "",
        message: str = "",
        error: str = "",
        answer: ItemAnswer | None = None,
    ) -> None:
        self.statuses[index] = status
        self._flush()  # its lines are shown before it is reported done
        self._emit(
            ItemFinished(
                target=self._ctx.target.name,
                task=self._spec.key,
                index=index,
                status=status,
                label=_label(self._items[index]),
                reason=reason,
                message=message,
                error=error,
                changes=answer.changes if answer else [],
            )
        )

    def _progress(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if last or now - self._last_progress >= _PROGRESS_S:
            self._last_progress = now
            done = sum(status not in ("waiting", "due") for status in self.statuses)
            if done == self._shown:
                return
            self._shown = done
            self._emit(
                TaskProgress(
                    target=self._ctx.target.name,
                    task=self._spec.key,
                    done=done,
                    total=len(self.statuses),
                )
            )


async def _answer(phase: Phase, module: Module, item: Item, ctx: TaskContext) -> ItemAnswer:
    try:
        if phase == "check":
            check = await module.check(item.args, ctx)
            return ItemAnswer(
                index=item.index,
                needs_change=check.needs_change,
                message=check.message,
                changes=check.changes,
            )
        return ItemAnswer(index=item.index, message=(await module.apply(item.args, ctx)).message)
    except PreflightError as exc:
        return ItemAnswer(index=item.index, failure=exc)


def _item_list(spec: TaskSpec, names: Names) -> list[object]:
    items = render(spec.for_each, names)
    if not isinstance(items, list):
        words = (
            f"for_each of {spec.name!r} must be a list, is {type(items).__name__}: {items!r:.80}"
        )
        raise PreflightError(Reason.INVALID_PARAMS, words)
    return cast("list[object]", items)


def _shared_names(spec: TaskSpec) -> frozenset[str]:
    """Name the params that no item can change: nothing in them names the item or its index."""
    own = re.compile(rf"\b({'|'.join(spec.item_names)})\b")
    return frozenset(
        name
        for name, raw in spec.params.items()
        if not any(own.search(text) for text in _texts(raw))
    )


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        if "{{" in value:
            yield value
    elif isinstance(value, dict):
        for one in cast("dict[str, object]", value).values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            yield from _texts(one)


def _label(item: object) -> str:
    if isinstance(item, dict):
        item = cast("dict[str, object]", item).get("name", "")
    text = str(item) if isinstance(item, str | int | float) else ""
    return text if len(text) <= _LABEL_CHARS else text[: _LABEL_CHARS - 1] + "…"
