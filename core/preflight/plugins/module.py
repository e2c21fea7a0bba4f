"""One plugin, for one target, as a module: the runner can't tell the difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from preflight.errors import ModuleError, PluginError, PreflightError, Reason
from preflight.plugins.batch import Batch, batches, missing
from preflight.plugins.discovery import Found
from preflight.plugins.pool import PluginPool
from preflight.plugins.protocol import (
    RUN_DATA,
    ApplyAnswer,
    BatchAnswer,
    BatchResult,
    CheckAnswer,
)
from preflight.plugins.session import NoBatch, Session
from preflight.ports.module import (
    ApplyResult,
    Args,
    CheckResult,
    Item,
    ItemAnswer,
    Report,
    TaskContext,
)
from preflight.rpc.messages import decode

T = TypeVar("T")


class PluginModule:
    """Calls a plugin through its target's pool."""

    def __init__(self, found: Found, pool: PluginPool) -> None:
        self._found = found
        self._pool = pool

    async def check(self, args: Args, ctx: TaskContext) -> CheckResult:
        """Ask the plugin whether change is needed."""
        raw = await self._pool.call(self._found, "check", args, ctx)
        answer = self._read(raw, CheckAnswer, "check")
        if answer.error:
            raise ModuleError(answer.error)
        return CheckResult(
            needs_change=answer.needs_change, message=answer.message, changes=answer.changes
        )

    async def apply(self, args: Args, ctx: TaskContext) -> ApplyResult:
        """Let the plugin make the change."""
        raw = await self._pool.call(self._found, "apply", args, ctx)
        answer = self._read(raw, ApplyAnswer, "apply")
        if answer.error:
            raise ModuleError(answer.error)
        return ApplyResult(message=answer.message)

    async def check_items(
        self,
        items: Sequence[Item],
        ctx: TaskContext,
        report: Report,
        *,
        shared: frozenset[str],
        concurrency: int,
    ) -> None:
        """Check many items, in one request where the plugin knows how."""
        await self._many("check", items, ctx, report, shared=shared, concurrency=concurrency)

    async def apply_items(
        self,
        items: Sequence[Item],
        ctx: TaskContext,
        report: Report,
        *,
        shared: frozenset[str],
        concurrency: int,
    ) -> None:
        """Apply many items, in one request where the plugin knows how."""
        await self._many("apply", items, ctx, report, shared=shared, concurrency=concurrency)

    async def _many(
        self,
        method: str,
        items: Sequence[Item],
        ctx: TaskContext,
        report: Report,
        *,
        shared: frozenset[str],
        concurrency: int,
    ) -> None:
        session = await self._pool.session(self._found, ctx)
        sound = self._sound(session, items, report)
        left = {item.index: item for item in sound}
        if session.takes_batches:
            limit = session.peer_limit
            for batch in batches(sound, shared=shared, concurrency=concurrency, limit_bytes=limit):
                if not await self._batch(method, batch, ctx, report):
                    break
                for index in batch.asked:
                    del left[index]
        for item in left.values():
            report(await self._one(method, item, ctx.for_item(item.index)))

    def _sound(self, session: Session, items: Sequence[Item], report: Report) -> list[Item]:
        """Leave out, and report, the items whose args break the plugin's schema."""
        sound: list[Item] = []
        config = session.config if not session.has(RUN_DATA) else {}
        for item in items:
            try:
                self._pool.validate(session, item.args)
                sound.append(Item(item.index, {**config, **item.args}) if config else item)
            except PluginError as exc:
                report(ItemAnswer(index=item.index, failure=exc))
        return sound

    async def _batch(self, method: str, batch: Batch, ctx: TaskContext, report: Report) -> bool:
        """Send one batch; False when the plugin knows no batches after all."""
        name = f"{method}_batch"

        def take(results: list[BatchResult]) -> None:
            batch.take(results, report, lambda words: self._pool.odd(self._found, words))

        try:
            session = await self._pool.session(self._found, ctx)
            with self._pool.counting_crashes(self._found):
                raw = await session.request(name, batch.params, ctx, take)
            answer = self._read(raw, BatchAnswer, name)
            take(answer.results)
            left_out = missing(self._found.name, name)
            batch.fail_open(ModuleError(answer.error) if answer.error else left_out, report)
        except NoBatch:
            return False
        except PluginError as exc:
            batch.fail_open(exc, report)
        return True

    async def _one(self, method: str, item: Item, ctx: TaskContext) -> ItemAnswer:
        try:
            if method == "apply":
                done = await self.apply(item.args, ctx)
                return ItemAnswer(index=item.index, message=done.message)
            found = await self.check(item.args, ctx)
        except PreflightError as exc:
            return ItemAnswer(index=item.index, failure=exc)
        return ItemAnswer(
            index=item.index,
            needs_change=found.needs_change,
            message=found.message,
            changes=found.changes,
        )

    def _read(self, raw: msgspec.Raw, kind: type[T], method: str) -> T:
        try:
            return decode(raw, kind)
        except ValueError as exc:
            quoted = bytes(raw)[:100].decode("utf-8", "replace")
            words = f"plugin {self._found.name} answered {method} with {quoted}: {exc}"
            raise PluginError(Reason.PLUGIN_PROTOCOL, words) from exc
