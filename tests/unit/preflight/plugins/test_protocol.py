"""The handshake's words, read leniently and refused by name."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.errors import PluginError, Reason
from preflight.events import TargetInfo
from preflight.plugins.protocol import initialize_params, read_handshake

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from(
    [
        "protocol_version",
        "min_protocol_version",
        "capabilities",
        "name",
        "version",
        "max_message_bytes",
    ]
)


def raw(**members: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(members).encode())


@given(st.dictionaries(names, values))
def test_whatever_is_answered_gives_a_handshake_or_a_typed_error(said: dict[str, object]) -> None:
    failure: PluginError | None = None
    try:
        handshake = read_handshake(raw(**said), path="p")
    except PluginError as exc:
        failure = exc
    else:
        assert handshake.protocol_version == 2
        assert handshake.max_message_bytes > 0
    if failure is not None:
        assert failure.reason is Reason.PLUGIN_PROTOCOL
        assert failure.message.startswith("p ")


@pytest.mark.parametrize(
    ("host", "plugin", "agreed"),
    [
        ((2, 2), (2, 2), 2),
        ((2, 4), (1, 3), 3),
        ((2, 4), (3, 9), 4),
        ((2, 4), (4, 4), 4),
        ((2, 4), (-5, 2), 2),
        ((2, 4), (5, 6), None),
        ((2, 4), (0, 1), None),
    ],
)
def test_the_highest_common_version(
    host: tuple[int, int], plugin: tuple[int, int], agreed: int | None
) -> None:
    answer = raw(protocol_version=plugin[1], min_protocol_version=plugin[0])
    if agreed is None:
        with pytest.raises(
            PluginError, match=f"{plugin[0]} to {plugin[1]}.*{host[0]} to {host[1]}"
        ):
            read_handshake(answer, path="p", versions=host)
    else:
        assert read_handshake(answer, path="p", versions=host).protocol_version == agreed


def test_a_lowest_version_that_is_missing_is_the_highest() -> None:
    assert read_handshake(raw(protocol_version=2), path="p").protocol_version == 2
    with pytest.raises(PluginError, match="3 to 3"):
        read_handshake(raw(protocol_version=3), path="p")


def test_capabilities_of_both_sides_are_kept_and_the_common_ones_negotiated() -> None:
    handshake = read_handshake(
        raw(protocol_version=2, capabilities=["b", "a", "c", "a", 7]),
        path="p",
        capabilities=("c", "d", "a"),
    )
    assert handshake.capabilities.host == ["a", "c", "d"]
    assert handshake.capabilities.plugin == ["a", "b", "c"]
    assert handshake.capabilities.negotiated == ["a", "c"]


@pytest.mark.parametrize("limit", [None, 0, -1, "9", 1.5, True])
def test_a_limit_that_makes_no_sense_is_the_default(limit: object) -> None:
    handshake = read_handshake(raw(protocol_version=2, max_message_bytes=limit), path="p")
    assert handshake.max_message_bytes == 64 * 1024 * 1024


def test_a_limit_is_taken_as_it_is() -> None:
    handshake = read_handshake(raw(protocol_version=2, max_message_bytes=1000), path="p")
    assert handshake.max_message_bytes == 1000


@pytest.mark.parametrize("answer", [b"[]", b"7", b'"x"', b"null"])
def test_an_answer_that_is_no_object_is_quoted(answer: bytes) -> None:
    with pytest.raises(PluginError, match="answered initialize with"):
        read_handshake(msgspec.Raw(answer), path="p")


def test_every_key_of_the_target_is_sent_empty_or_not() -> None:
    params = json.loads(initialize_params(TargetInfo(family="linux"), max_message_bytes=7))
    assert params["target"] == {
        "family": "linux",
        "name": "",
        "version": "",
        "arch": "",
        "hostname": "",
        "package_manager": "",
        "init": "",
        "runtime_kind": "",
    }
    assert params["max_message_bytes"] == 7
