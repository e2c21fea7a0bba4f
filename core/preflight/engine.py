"""The composition root: from a command's options to a run, with every part in its place."""

from __future__ import annotations

import importlib.metadata
import secrets
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import cast

import msgspec

from preflight.bus import Bus, Sink
from preflight.control import RunControl
from preflight.errors import ConfigError, PreflightError, Problem, Reason
from preflight.link.server import LinkServer
from preflight.model.inventory import Project, find_project, select
from preflight.model.playbook import Playbook, load_playbook
from preflight.model.settings import Settings
from preflight.model.template import Scope, render
from preflight.modules import BUILTINS
from preflight.plan.planner import TargetPlan, plan
from preflight.plugins.descriptors import DescriptorCache
from preflight.plugins.discovery import Discovery
from preflight.plugins.module import PluginModule
from preflight.plugins.pool import PluginPool
from preflight.plugins.protocol import RunData
from preflight.plugins.trace import WireTrace
from preflight.ports.module import Module, Requirements
from preflight.queries import PluginSearch, find_plugins
from preflight.run.runner import Runner, RunOptions
from preflight.run.target_run import Wiring
from preflight.sinks.history import History, create_run_folder, prune
from preflight.targets import make_target


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a command line asks for; nothing was read yet.

    ``settings`` are those that were given, by their names in ``Settings``: they win over the
    project's.
    """

    playbook: Path
    targets: Sequence[str] = ()
    overrides: Sequence[str] = ()
    tags: Sequence[str] = ()
    skip_tags: Sequence[str] = ()
    plugins: PluginSearch = PluginSearch()
    settings: Mapping[str, object] = {}
    run_id: str = ""
    trace_wire: Path | None = None


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """All that can be known offline: what would run where."""

    request: Request
    project: Project
    playbook: Playbook
    discovery: Discovery
    plans: list[TargetPlan]

    @property
    def settings(self) -> Settings:
        """What bounds the run: the command line's, then the project's, then the defaults."""
        return msgspec.convert({**self.project.settings.given(), **self.request.settings}, Settings)


def version() -> str:
    """Give the version of the installed distribution."""
    return importlib.metadata.version("preflight-tui")


def prepare(request: Request) -> Prepared:
    """Read, check and plan everything that a run needs, without contacting anything.

    Raises :class:`ConfigError` with all problems.
    """
    playbook, project = _read(request)
    discovery = find_plugins(request.plugins, project=project.folder)
    names = {found.name for found in discovery.plugins}

    def known(module: str) -> str | None:
        return "builtin" if module in BUILTINS else "plugin" if module in names else None

    plans = plan(
        playbook,
        project,
        select(project, request.targets),
        overrides=request.overrides,
        tags=request.tags,
        skip_tags=request.skip_tags,
        known=known,
    )
    return Prepared(
        request=request, project=project, playbook=playbook, discovery=discovery, plans=plans
    )


def _read(request: Request) -> tuple[Playbook, Project]:
    """Read both files before either's problems are raised: they are told together."""
    params = {name: builtin.params for name, builtin in BUILTINS.items()}
    problems: list[Problem] = []
    playbook = project = None
    try:
        playbook = load_playbook(request.playbook, builtins=params)
    except ConfigError as exc:
        problems += exc.problems
    try:
        project = find_project(request.playbook.resolve().parent)
    except ConfigError as exc:
        problems += exc.problems
    if playbook is None or project is None:
        raise ConfigError(problems)
    return playbook, project


class Engine:
    """One run, ready to go: an async context manager that owns the record and the link.

    :attr:`control` cancels; sinks are added to :attr:`bus` before :meth:`run`.
    """

    def __init__(self, prepared: Prepared, *, dry_run: bool, pending_is_4: bool = False) -> None:
        run_id = prepared.request.run_id or new_run_id()
        self.run_id = run_id
        self.bus = Bus(run_id)
        self.control = RunControl(self.bus)
        traced = prepared.request.trace_wire
        self._trace = WireTrace(traced, emit=self.bus.emit, mask=self.bus.mask) if traced else None
        self.folder = create_run_folder(prepared.project.folder, run_id)
        self._prepared = prepared
        self._dry_run = dry_run
        self._pending_is_4 = pending_is_4
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Engine:
        history = History(self.folder)
        self._stack.callback(history.close)
        self.bus.add_sink(history)
        if self._trace is not None:
            self._stack.callback(self._trace.close)
        link = await self._stack.enter_async_context(
            LinkServer(self.folder, history.path, self.control)
        )
        history.watchers.append(link.wake)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._stack.aclose()
        prune(self._prepared.project.folder, self._prepared.settings.keep_runs)

    def add_sink(self, sink: Sink) -> None:
        """Give ``sink`` every event of the run."""
        self.bus.add_sink(sink)

    async def run(self) -> int:
        """Run to the end and give the exit code."""
        prepared, settings = self._prepared, self._prepared.settings
        wiring = Wiring(
            make_target=make_target,
            open_modules=self._modules,
            control=self.control,
            emit=self.bus.emit,
            hide=self.bus.hide,
            playbook=prepared.playbook.path,
            dry_run=self._dry_run,
        )
        options = RunOptions(
            playbook=prepared.playbook.name or prepared.playbook.path.name,
            version=version(),
            concurrency=settings.concurrency,
            timeout=settings.timeout,
            fail_fast=settings.fail_fast,
            exit_code_for_changes=self._pending_is_4,
            cancel_grace=settings.cancel_grace,
        )
        return await Runner(prepared.plans, wiring, options).run()

    def _modules(self, target: str, names: Scope) -> ModuleSet:
        prepared = self._prepared
        configs = prepared.playbook.plugins

        def config_of(plugin: str) -> dict[str, object]:
            return cast("dict[str, object]", render(configs.get(plugin, {}), names))

        pool = PluginPool(
            target=target,
            emit=self.bus.emit,
            settings=prepared.settings,
            run=RunData(
                id=self.run_id,
                playbook=prepared.playbook.name,
                project=prepared.project.project,
                environment=prepared.project.environment,
                dry_run=self._dry_run,
            ),
            config_of=config_of,
            descriptors=DescriptorCache(),
            trace=self._trace,
        )
        return ModuleSet(prepared.discovery, pool)


class ModuleSet:
    """The modules of one target: the built-ins, and the plugins through their pool."""

    def __init__(self, discovery: Discovery, pool: PluginPool) -> None:
        self._discovery = discovery
        self._pool = pool

    async def __aenter__(self) -> ModuleSet:
        await self._pool.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._pool.__aexit__(kind, exc, tb)

    def get(self, name: str) -> Module:
        """Give a module; raises ``PreflightError`` with ``unknown_module``."""
        builtin = BUILTINS.get(name)
        if builtin is not None:
            return builtin.module
        found = self._discovery.get(name)
        if found is None:
            raise PreflightError(Reason.UNKNOWN_MODULE, f"no module is named {name}")
        return PluginModule(found, self._pool)

    def is_plugin(self, name: str) -> bool:
        """Tell whether a module is a plugin."""
        return name not in BUILTINS

    def requires(self, name: str) -> Requirements:
        """Say what a module needs; a plugin's handle needs a shell, as the built-ins do."""
        builtin = BUILTINS.get(name)
        return builtin.requires if builtin is not None else Requirements()


def new_run_id() -> str:
    """Make an id that sorts by time and that no two runs share."""
    return datetime.now(UTC).strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(2)
