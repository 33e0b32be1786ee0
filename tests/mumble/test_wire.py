"""The protocol's bytes: what is written can be read, what others wrote too, and nonsense is refused."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.bots.mumble import messages as packets
from aforesaid.bots.mumble import messages as protobuf
from aforesaid.bots.mumble.messages import (
    KINDS,
    NUMBERS,
    Authenticate,
    MalformedData,
    Message,
    TextMessage,
    UserState,
    VoiceTarget,
    WhisperTo,
)

NUMBERS_64 = st.integers(0, 2**64 - 1)
BY_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "int | None": st.none() | NUMBERS_64,
    "bool | None": st.none() | st.booleans(),
    "str | None": st.none() | st.text(),
    "bytes | None": st.none() | st.binary(),
    "tuple[str, ...]": st.lists(st.text()).map(tuple),
    "tuple[int, ...]": st.lists(NUMBERS_64).map(tuple),
    "tuple[bytes, ...]": st.lists(st.binary()).map(tuple),
}


@st.composite
def messages(draw: st.DrawFn) -> Message:
    kind = draw(st.sampled_from(sorted(NUMBERS, key=NUMBERS.__getitem__)))
    return kind(**{each.name: draw(BY_TYPE[str(each.type)]) for each in fields(kind)})


@given(messages())
def test_every_message_comes_back_as_it_was(message: Message) -> None:
    assert protobuf.decode_protobuf(type(message), protobuf.encode_protobuf(message)) == message


def test_the_bytes_are_those_of_protocol_buffers() -> None:
    # Written down by hand from the encoding's description: key, length, content.
    said = TextMessage(actor=300, session=(1, 2), message="hé")
    assert protobuf.encode_protobuf(said) == b"\x08\xac\x02" + b"\x10\x01\x10\x02" + b"\x2a\x03h\xc3\xa9"
    assert protobuf.encode_protobuf(Authenticate(username="", opus=False)) == b"\x0a\x00\x28\x00"
    whisper = VoiceTarget(1, (protobuf.encode_protobuf(WhisperTo((7,))),))
    assert protobuf.encode_protobuf(whisper) == b"\x08\x01\x12\x02\x08\x07"


def test_what_newer_servers_say_is_skipped() -> None:
    unknown = b"\xfa\x07\x03abc" + b"\xf9\x07" + b"8 bytes." + b"\xfd\x07" + b"four" + b"\xf8\x07\x05"
    assert protobuf.decode_protobuf(UserState, unknown + b"\x08\x09" + unknown) == UserState(session=9)


def test_many_numbers_may_come_packed_and_the_last_of_two_counts() -> None:
    packed = b"\x12\x03\x01\xac\x02"
    assert protobuf.decode_protobuf(TextMessage, packed + b"\x10\x05").session == (1, 300, 5)
    assert protobuf.decode_protobuf(UserState, b"\x1a\x01a\x1a\x01b").name == "b"


@pytest.mark.parametrize(
    "wired",
    [
        b"\x08",  # a key without a value
        b"\x08" + b"\xff" * 10,  # a number without an end
        b"\x1a\x05abc",  # a text that is shorter than it says
        b"\x0b",  # a wire type from before 2008
        b"\x0a\x01a",  # a text where a number belongs
        b"\x18\x01",  # a number where a text belongs
        b"\x1a" + b"\xff" * 9 + b"\x01abc",  # a length of many exabytes
    ],
)
def test_nonsense_is_refused(wired: bytes) -> None:
    with pytest.raises(MalformedData):
        protobuf.decode_protobuf(UserState, wired)


@given(st.binary(max_size=200), st.sampled_from(sorted(KINDS)))
def test_random_bytes_never_do_worse_than_being_refused(wired: bytes, number: int) -> None:
    with suppress(MalformedData):
        protobuf.decode_protobuf(KINDS[number], wired)
    with suppress(MalformedData):
        packets.decode_packet(wired)


def test_bytes_that_are_no_text_and_halves_of_characters_do_not_break_anything() -> None:
    assert protobuf.decode_protobuf(UserState, b"\x1a\x02\xff\xfe").name == "\ufffd\ufffd"
    assert protobuf.decode_protobuf(UserState, protobuf.encode_protobuf(UserState(name="a\ud800b"))).name == "a?b"


@given(
    st.binary(max_size=0x1FFF),
    st.integers(0, 2**63),
    st.integers(0, 2**40),
    st.integers(0, 31),
    st.booleans(),
)
def test_voice_comes_back_as_it_was(opus: bytes, sequence: int, session: int, target: int, last: bool) -> None:  # noqa: FBT001
    sent = packets.encode_packet(opus, sequence, target=target, last=last)
    # A server puts the speaker's session behind the first byte, and may add a position at the end.
    came = sent[:1] + packets._number(session) + sent[1:] + b"\0" * 12
    assert packets.decode_packet(came) == packets.VoicePacket(session, target, sequence, opus, last)


def test_packets_of_other_kinds_are_no_voice() -> None:
    assert packets.decode_packet(b"\x20\x01") is None  # a ping
    assert packets.decode_packet(b"\x00\x01\x02\x03") is None  # CELT
    with pytest.raises(MalformedData, match="8192 bytes"):
        packets.encode_packet(b"x" * 8192, 0)


def test_every_number_of_a_message_is_its_own() -> None:
    for kind in KINDS.values():
        places = [each.metadata["number"] for each in fields(kind)]
        assert len(set(places)) == len(places)
