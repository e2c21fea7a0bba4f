"""Files in pieces, for those that don't fit one message: kept on disk between the messages.

What is begun belongs to its call, and goes with it. Source: docs/protocol.md, chunks.
"""

from __future__ import annotations

import tempfile
from typing import IO

import msgspec

from preflight.plugins.protocol import GetFileParams, PutFileParams
from preflight.ports.module import TaskContext
from preflight.rpc.messages import INVALID_PARAMS, RpcError


class Pieces:
    """The one file that is being put, and the one that is being got, by the call of a session."""

    def __init__(self) -> None:
        self._putting: tuple[str, IO[bytes]] | None = None
        self._getting: tuple[str, IO[bytes], int] | None = None

    async def put(self, piece: PutFileParams, ctx: TaskContext) -> bytes:
        """Take a piece; with the final one the file appears on the target, as a whole."""
        if piece.offset == 0:
            self._drop_putting()
            self._putting = (piece.path, tempfile.TemporaryFile())  # noqa: SIM115 lives on
        if self._putting is None or self._putting[0] != piece.path:
            raise RpcError(INVALID_PARAMS, f"put_file: {piece.path} was not begun at offset 0")
        file = self._putting[1]
        if file.tell() != piece.offset:
            words = f"put_file: the next offset is {file.tell()}, not {piece.offset}"
            raise RpcError(INVALID_PARAMS, words)
        file.write(piece.data)
        if piece.final:
            file.flush()
            file.seek(0)
            try:
                await ctx.target.put_file(piece.path, file.read())
            finally:
                self._drop_putting()
        return b"{}"

    async def get(self, piece: GetFileParams, ctx: TaskContext, most_bytes: int) -> bytes:
        """Give a piece; the file is read when offset 0 is asked for, all at once."""
        offset = piece.offset or 0
        if offset == 0:
            self._drop_getting()
            file = tempfile.TemporaryFile()  # noqa: SIM115 lives on
            self._getting = (piece.path, file, 0)
            file.write(await ctx.target.get_file(piece.path))
            self._getting = (piece.path, file, file.tell())
        if self._getting is None or self._getting[0] != piece.path:
            raise RpcError(INVALID_PARAMS, f"get_file: {piece.path} was not begun at offset 0")
        _, file, size = self._getting
        file.seek(offset)
        data = file.read(min(piece.max_bytes or most_bytes, most_bytes))
        eof = offset + len(data) >= size
        if eof:
            self._drop_getting()
        return msgspec.json.encode({"data": data, "size": size, "eof": eof})

    def drop(self) -> None:
        """Forget what was begun."""
        self._drop_putting()
        self._drop_getting()

    def _drop_putting(self) -> None:
        if self._putting is not None:
            self._putting[1].close()
            self._putting = None

    def _drop_getting(self) -> None:
        if self._getting is not None:
            self._getting[1].close()
            self._getting = None
