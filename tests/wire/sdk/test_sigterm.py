"""SIGTERM is a cancel that needs no reader on our side of the pipe (protocol.md, section 4.6)."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from tests.wire.sdk.test_cancel import assert_cancelled, running

if TYPE_CHECKING:
    from tests.wire.sdk.conftest import Spawn


def test_sigterm_cancels_what_is_running_and_the_process_goes_on(spawn: Spawn) -> None:
    host = spawn("handle.output('running'); ctx.wait(20); ctx.raise_if_cancelled()")
    for key in (2, 3):
        running(host, key)
        host.process.send_signal(signal.SIGTERM)
        assert_cancelled(host, key)
    host.close_stdin()
    assert host.wait() == 0


def test_sigterm_does_not_end_an_idle_plugin(spawn: Spawn) -> None:
    host = spawn()
    host.process.send_signal(signal.SIGTERM)
    host.check()
    host.until_answer(2)
    host.close_stdin()
    assert host.wait() == 0
