"""The connections of one target: one, and more only where the server gives too few channels."""

from __future__ import annotations

import asyncio

from preflight.errors import TargetUnreachable
from preflight.targets.ssh_connect import Endpoint, Link, connect


class Links:
    """Connects when asked; whoever finds the connection dead gets a new one."""

    def __init__(self, route: list[Endpoint]) -> None:
        self._route = route
        self._main: Link | None = None
        self._spares: list[Link] = []
        self._lock = asyncio.Lock()

    @property
    def open(self) -> bool:
        """Whether there is a connection that nobody has noticed an end of."""
        return self._main is not None and self._main.open

    async def main(self) -> Link:
        """Give the connection, made anew where it was lost. Raises :class:`TargetUnreachable`."""
        async with self._lock:
            if self._main is None or not self._main.open:
                await self._drop()
                self._main = await connect(self._route)
            return self._main

    async def spare(self) -> Link:
        """Make one more connection, for a channel that the first has no room for."""
        link = await connect(self._route)
        self._spares.append(link)
        return link

    async def another(self, *, within_s: float) -> Link | None:
        """Make a connection that the caller closes; ``None`` where that takes too long."""
        try:
            async with asyncio.timeout(within_s):
                return await connect(self._route)
        except (TargetUnreachable, TimeoutError):
            return None

    async def close(self) -> None:
        """Close them all."""
        async with self._lock:
            await self._drop()

    async def _drop(self) -> None:
        links = [*self._spares, *([self._main] if self._main is not None else [])]
        self._main, self._spares = None, []
        for link in links:
            if link.open:
                await link.close()
            else:
                link.abort()
