"""TCP to a server, and the bound on how many handshakes go on at once.

The bound is the process's, apart from how many targets run at once: more than ten handshakes at a
time only make each slower. A slot is given back when its holder makes no progress, so that machines
that don't answer can't hold up those that do.
"""

from __future__ import annotations

import asyncio
import socket
import weakref
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from preflight.errors import TargetUnreachable

HANDSHAKES = 10
"""How many handshakes go on at once. Source: ssh.md 2.4: more in flight gain nothing."""
CONNECT_S = 10.0
"""Seconds for TCP to connect, and again for the server's banner, where the timeout is longer."""

_SLOT_S = 0.5  # without progress for so long, a handshake waits for the network: it needs no slot

_Found = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]

# A semaphore belongs to the loop that first waited for it.
_places: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
_places = weakref.WeakKeyDictionary()


def place(address: str, port: int) -> str:
    """Write an address and a port as people do, IPv6 in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


async def open_tcp(address: str, port: int, *, within_s: float) -> socket.socket:
    """Connect to the first address of the name that answers, within ``CONNECT_S`` at most.

    Raises :class:`TargetUnreachable` that names address and port.
    """
    loop = asyncio.get_running_loop()
    limit = min(CONNECT_S, within_s)
    where = place(address, port)
    try:
        async with asyncio.timeout(limit):
            found = await loop.getaddrinfo(address, port, type=socket.SOCK_STREAM)
            return await _first(found)
    except TimeoutError as exc:
        raise TargetUnreachable(f"tcp to {where}: connect deadline of {limit:g} s passed") from exc
    except socket.gaierror as exc:
        raise TargetUnreachable(f"the name {address} can't be resolved: {exc.strerror}") from exc
    except ConnectionRefusedError as exc:
        raise TargetUnreachable(f"tcp refused by {where}") from exc
    except OSError as exc:
        raise TargetUnreachable(f"tcp to {where}: {exc.strerror or exc}") from exc


async def _first(found: Sequence[_Found]) -> socket.socket:
    loop = asyncio.get_running_loop()
    problem: OSError | None = None
    for family, kind, protocol, _name, where in found:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            await loop.sock_connect(sock, where)
        except OSError as exc:
            sock.close()
            problem = problem or exc
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise problem or OSError("no address")


class Slot:
    """A place among the handshakes that go on; lost where there is no progress."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places = places
        self._timer: asyncio.TimerHandle | None = None
        self._held = True
        self.progress()

    def progress(self) -> None:
        """Something happened: the place is kept a little longer."""
        if self._held:
            self._stop_timer()
            self._timer = asyncio.get_running_loop().call_later(_SLOT_S, self.give_back)

    def give_back(self) -> None:
        """Let another one begin; asking again changes nothing."""
        self._stop_timer()
        if self._held:
            self._held = False
            self._places.release()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@asynccontextmanager
async def handshake_slot() -> AsyncGenerator[Slot]:
    """Wait for a place among the handshakes."""
    places = _places.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(HANDSHAKES))
    await places.acquire()
    slot = Slot(places)
    try:
        yield slot
    finally:
        slot.give_back()
