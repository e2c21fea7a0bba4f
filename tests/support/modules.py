"""A built-in module, at work on the local machine, and what it cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from preflight.bus import Bus
from preflight.control import RunControl, Scope
from preflight.events import Stream
from preflight.model.template import Scope as Names
from preflight.model.template import render_text
from preflight.modules import BUILTINS
from preflight.ports.module import ApplyResult, CheckResult, TaskContext
from preflight.ports.target import DEFAULT_KEEP_BYTES, Become, ExecResult, OnKill, OnLine
from preflight.targets.local import LocalTarget


class CountedTarget(LocalTarget):
    """The local machine; counts the operations."""

    def __init__(self) -> None:
        super().__init__("here")
        self.exec_count = 0
        self.put_count = 0
        self.forbidden = False
        self.scripts: list[str] = []
        self._started = asyncio.Condition()

    async def started(self, count: int) -> None:
        """Wait until so many scripts were started."""
        async with self._started:
            await self._started.wait_for(lambda: self.exec_count >= count)

    async def exec(
        self,
        script: str,
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        on_line: OnLine | None = None,
        on_kill: OnKill | None = None,
        keep_bytes: int = DEFAULT_KEEP_BYTES,
        become: Become | None = None,
    ) -> ExecResult:
        assert not self.forbidden, script
        self.scripts.append(script)
        async with self._started:
            self.exec_count += 1
            self._started.notify_all()
        return await super().exec(
            script,
            stdin=stdin,
            env=env,
            on_line=on_line,
            on_kill=on_kill,
            keep_bytes=keep_bytes,
            become=become,
        )

    async def put_file(
        self, path: str, data: bytes, *, mode: int | None = None, become: Become | None = None
    ) -> None:
        self.put_count += 1
        await super().put_file(path, data, mode=mode, become=become)


class Workbench:
    """Runs one module's phases; ``lines`` is what was streamed meanwhile."""

    def __init__(self, folder: Path, scope: Scope, bus: Bus) -> None:
        self.folder = folder
        self.target = CountedTarget()
        self.lines: list[tuple[Stream, str]] = []
        self._news = asyncio.Event()
        names = Names(vars={"who": "Bo"})
        self._ctx = TaskContext(
            target=self.target,
            task="task",
            scope=scope,
            emit=bus.emit,
            output=self._take,
            folder=folder,
            render=lambda text: render_text(text, names),
        )

    async def line(self, part: str) -> None:
        """Wait for a line of output that holds ``part``."""
        while not any(part in text for _, text in self.lines):
            self._news.clear()
            await self._news.wait()

    def _take(self, stream: Stream, text: str) -> None:
        self.lines.append((stream, text))
        self._news.set()

    async def check(self, module: str, **args: object) -> CheckResult:
        return await BUILTINS[module].module.check(args, self._ctx)

    async def apply(self, module: str, **args: object) -> ApplyResult:
        return await BUILTINS[module].module.apply(args, self._ctx)

    async def converge(self, module: str, **args: object) -> CheckResult:
        """Check, apply, and prove that nothing is left to do; gives the first check's result."""
        first = await self.check(module, **args)
        assert first.needs_change
        await self.apply(module, **args)
        again = await self.check(module, **args)
        assert not again.needs_change, again
        return first


@asynccontextmanager
async def workbench(folder: Path) -> AsyncGenerator[Workbench]:
    """Open a bench whose controller folder is ``folder``."""
    bus = Bus("test")
    async with RunControl(bus).scope("here/task") as scope:
        yield Workbench(folder, scope, bus)
