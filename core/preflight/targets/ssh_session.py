"""A target over SSH while it is in use: its connections, an account's lane each, and its files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import cast

from preflight.control import finish
from preflight.errors import PreflightError, Reason, TargetError
from preflight.events import TargetInfo
from preflight.model.inventory import Host
from preflight.ports.target import DEFAULT_KEEP_BYTES, Become, ExecResult, OnKill, OnLine
from preflight.targets.live_lines import LiveLines
from preflight.targets.posix import FACTS, PROBE, Probe, read_facts, read_probe
from preflight.targets.posix_control import BEAT_S
from preflight.targets.posix_kill import MARK
from preflight.targets.posix_shell import MAX_INLINE_BYTES, MAX_SCRIPT_BYTES
from preflight.targets.ssh_channel import Channel
from preflight.targets.ssh_files import Files
from preflight.targets.ssh_lane import Lane, Request
from preflight.targets.ssh_links import Links
from preflight.targets.ssh_route import route_to

_CLOSE_S = 5.0
_WINDOWS = TargetInfo(family="windows", runtime_kind="windows-powershell")
_WINDOWS_TEST = 'powershell -NoProfile -NonInteractive -Command "[Environment]::OSVersion.Platform"'


class Session:
    """Made by :meth:`open`; whoever opens it closes it."""

    def __init__(self, host: Host, *, beat_s: float = BEAT_S) -> None:
        self.probe = Probe()
        self.notices: list[str] = []
        self._policy = host.host_key_policy
        self._beat_s = beat_s
        self._links = Links(route_to(host))
        self._lane = Lane(self._links, beat_s=beat_s)
        self._others: dict[Become, Lane] = {}
        self._files = Files(self._links, self.exec, self.notices.append)

    @property
    def linked(self) -> bool:
        """Whether there is a connection that nobody has noticed an end of."""
        return self._links.open

    async def open(self) -> None:
        """Connect and probe.

        Raises :class:`TargetUnreachable` that names the step, :class:`TargetError` where the
        machine starts no shell.
        """
        try:
            link = await self._links.main()
            if self._policy == "insecure":
                self.notices.append("host_key_policy is insecure: nobody checks who answers")
            self.notices += [f"the host key of {name} is new, and noted" for name in link.learnt]
            if "for_Windows" in link.server:
                self.probe = Probe(info=_WINDOWS)
                return
            try:
                said = await self._lane.open(PROBE)
            except TargetError:
                if not await self._is_windows():
                    raise
                self.probe = Probe(info=_WINDOWS)
                return
            self.probe = read_probe(said)
            if self._lane.unwatched:
                self.notices.append(
                    "no control shell on the target: commands can't be ended when the link is lost"
                )
            if self._lane.second_control:
                self.notices.append(
                    "the server has no room for a second channel (MaxSessions): a second "
                    "connection stands by to end commands"
                )
        except BaseException:
            await finish(self._links.close(), within_s=_CLOSE_S)
            raise

    async def close(self) -> None:
        """Leave in peace; bounded."""
        for lane in (self._lane, *self._others.values()):
            lane.leave()
        self._files.close()
        await self._links.close()

    async def facts(self) -> dict[str, object]:
        """Gather the fact tree; of a Windows machine only what the probe said."""
        if self.probe.info.runtime_kind == _WINDOWS.runtime_kind:
            return read_facts(self.probe.info, "")
        answer = await self.exec(FACTS)
        facts = read_facts(self.probe.info, answer.text)
        variables = facts.get("env")
        if isinstance(variables, dict):
            cast("dict[str, object]", variables).pop(MARK, None)
        return facts

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
        """Run a script as the port promises."""
        out = LiveLines("out", on_line, keep_bytes)
        err = LiveLines("err", on_line, keep_bytes)
        lane = self._lane_of(become)
        stowed: list[str] = []
        try:
            request = await self._request(script, stdin, env, become, stowed)
            code = await lane.run(request, out.feed, err.feed, on_kill)
        finally:
            out.close()
            err.close()
            for path in stowed:
                await self._files.remove(path, become=become)
        truncated = out.truncated or err.truncated
        return ExecResult(stdout=out.kept, stderr=err.kept, exit_code=code, truncated=truncated)

    async def put_file(
        self, path: str, data: bytes, *, mode: int | None = None, become: Become | None = None
    ) -> None:
        """Write a file as the port promises."""
        self._refuse_windows()
        await self._files.put(path, data, mode=mode, become=become)

    async def get_file(
        self, path: str, *, limit_bytes: int | None = None, become: Become | None = None
    ) -> bytes:
        """Read a file as the port promises."""
        self._refuse_windows()
        return await self._files.get(path, limit_bytes=limit_bytes, become=become)

    async def _request(
        self,
        script: str,
        stdin: bytes,
        env: Mapping[str, str] | None,
        become: Become | None,
        stowed: list[str],
    ) -> Request:
        self._refuse_windows()
        script_file = stdin_file = ""
        source = script.encode("utf-8", "surrogateescape")
        if len(source) > MAX_SCRIPT_BYTES:
            script_file = await self._files.stow(source, become=become)
            stowed.append(script_file)
        if len(stdin) > MAX_INLINE_BYTES * 16:
            stdin_file = await self._files.stow(stdin, become=become)
            stowed.append(stdin_file)
            stdin = b""
        return Request(
            script=script, stdin=stdin, env=env, stdin_file=stdin_file, script_file=script_file
        )

    def _lane_of(self, become: Become | None) -> Lane:
        if become is None or (become.user == "root" and self.probe.uid == 0):
            return self._lane
        if not self.probe.sudo:
            raise TargetError(f"there is no sudo to become {become.user}", Reason.SUDO_MISSING)
        if become not in self._others:
            self._others[become] = Lane(self._links, become, beat_s=self._beat_s)
        return self._others[become]

    def _refuse_windows(self) -> None:
        if self.probe.info.runtime_kind == _WINDOWS.runtime_kind:
            raise TargetError(
                "the target is a Windows machine (runtime windows-powershell): scripts for sh and "
                "files are only supported on posix-shell",
                Reason.UNSUPPORTED_ON_RUNTIME,
            )

    async def _is_windows(self) -> bool:
        said: list[bytes] = []
        link = await self._links.main()
        ended = asyncio.Event()
        try:
            channel = await Channel.open(
                link.connection,
                _WINDOWS_TEST,
                on_out=said.append,
                on_err=_ignore,
                on_closed=ended.set,
            )
            async with asyncio.timeout(_CLOSE_S):
                await ended.wait()
        except (PreflightError, TimeoutError):
            return False
        channel.close()
        return b"Win32NT" in b"".join(said)


def _ignore(_data: bytes) -> None:
    """Errors of the test are an answer too: no."""
