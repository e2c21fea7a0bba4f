"""What a handle does with files of any size, on a port that is watched."""

from __future__ import annotations

from io import BytesIO

from preflight_sdk import ApplyResult, CheckResult, Context, Handle, HandleError
from preflight_sdk.testing import FakeTarget, Harness


class Trickle:
    """A pipe: gives a few bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self._file = BytesIO(data)

    def read(self, size: int, /) -> bytes:
        return self._file.read(min(size, 7))


def test_a_file_object_arrives_whole_however_it_gives_its_bytes() -> None:
    target = FakeTarget()
    harness = Harness(Copy(Trickle(b"0123456789" * 10)), target)
    assert harness.apply().error == ""
    assert target.files["/x"] == b"0123456789" * 10


def test_a_file_is_got_into_a_sink_and_a_missing_one_is_an_error() -> None:
    sink = BytesIO()
    harness = Harness(Copy(sink=sink), FakeTarget({"/x": b"there"}))
    assert not harness.check().needs_change
    assert sink.getvalue() == b"there"
    assert harness.check(cancel_at=1).cancelled
    assert isinstance(Harness(Copy(sink=sink)).check().exception, HandleError)


class Copy:
    """Puts one file, or gets it."""

    name = "copy"
    version = "1"

    def __init__(self, source: Trickle | None = None, sink: BytesIO | None = None) -> None:
        self._source = source
        self._sink = sink

    def check(self, ctx: Context, args: dict[str, object], handle: Handle) -> CheckResult:
        return CheckResult(handle.get_file("/x", into=self._sink) != b"")

    def apply(self, ctx: Context, args: dict[str, object], handle: Handle) -> ApplyResult:
        assert self._source is not None
        handle.put_file("/x", self._source)
        return ApplyResult()
