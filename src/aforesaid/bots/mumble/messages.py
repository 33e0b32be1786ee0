"""The protocol of Mumble: packets of protobuf messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar

from aforesaid.errors import AforesaidError

_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_FIXED32: Final = 5
_LONGEST_VARINT: Final = 10
_SIXTY_FOUR: Final = (1 << 64) - 1


class MalformedData(AforesaidError):
    """Received data does not follow the protocol."""


def varint(value: int) -> bytes:
    """Encode a number with seven bits per byte."""
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - what fits into seven bits
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for count, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:  # noqa: PLR2004 - the last byte has its highest bit clear
            return value & _SIXTY_FOUR, at + count + 1
    raise MalformedData("a number is longer than ten bytes or truncated")


def pieces(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield the number, wire type and value of each field of a message."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        wire = key & 7
        if wire == _VARINT:
            value, at = read_varint(data, at)
            yield key >> 3, wire, value
            continue
        if wire == _BYTES:
            length, at = read_varint(data, at)
        elif wire in {_FIXED32, _FIXED64}:
            length = 4 if wire == _FIXED32 else 8
        else:
            raise MalformedData(f"a field has the unknown wire type {wire}")
        if at + length > len(data):
            raise MalformedData("a message is truncated inside a field")
        yield key >> 3, wire, data[at : at + length]
        at += length


def one(number: int) -> Any:  # noqa: ANN401 - placeholder for its value
    """Declare a field by its number. Its annotation says what it holds."""
    return field(default=None, metadata={"number": number})


def many(number: int) -> Any:  # noqa: ANN401
    """Declare a repeated field by its number."""
    return field(default=(), metadata={"number": number})


@dataclass(frozen=True, slots=True)
class Encoded:
    """The base of all messages. Fields that are not declared are skipped when it is decoded."""


Made = TypeVar("Made", bound=Encoded)


def encode_protobuf(message: Encoded) -> bytes:
    out = bytearray()
    for each in fields(message):
        number, held = each.metadata["number"], getattr(message, each.name)
        for value in held if isinstance(held, tuple) else () if held is None else (held,):
            if isinstance(value, int):
                out += varint(number << 3 | _VARINT) + varint(value)
            else:
                # Half of a surrogate pair has no UTF-8; it becomes a question mark instead of an error.
                data = value.encode("utf-8", "replace") if isinstance(value, str) else value
                out += varint(number << 3 | _BYTES) + varint(len(data)) + data
    return bytes(out)


def decode_protobuf(kind: type[Made], wired: bytes) -> Made:
    """Decode a message. If a field occurs twice, the last value wins."""
    declared: dict[int, Any] = {each.metadata["number"]: each for each in fields(kind)}
    found: dict[str, Any] = {}
    for number, wire, value in pieces(wired):
        if number not in declared:
            continue
        name, annotation = declared[number].name, declared[number].type
        wanted = _VARINT if "int" in annotation or "bool" in annotation else _BYTES
        repeated = annotation.startswith("tuple")
        values: list[Any] = [value]
        if repeated and wanted == _VARINT and isinstance(value, bytes) and wire == _BYTES:
            # Repeated numbers may be packed into one field.
            values, at = [], 0
            while at < len(value):
                single, at = read_varint(value, at)
                values.append(single)
        elif wire != wanted:
            raise MalformedData(f"field {number} has the wire type {wire} instead of {wanted}")
        if "str" in annotation:
            values = [each.decode("utf-8", "replace") for each in values]
        elif "bool" in annotation:
            values = [bool(each) for each in values]
        found[name] = (*found.get(name, ()), *values) if repeated else values[-1]
    return kind(**found)


@dataclass(frozen=True, slots=True)
class Message(Encoded):
    """What both sides send, each in a packet with its number among `KINDS`."""


@dataclass(frozen=True, slots=True)
class Version(Message):
    """The software version. The first message of both sides."""

    version_v1: int | None = one(1)
    release: str | None = one(2)


@dataclass(frozen=True, slots=True)
class Authenticate(Message):
    username: str | None = one(1)
    password: str | None = one(2)
    opus: bool | None = one(5)
    client_type: int | None = one(6)


@dataclass(frozen=True, slots=True)
class Ping(Message):
    """A keepalive. The answer has the same timestamp."""

    timestamp: int | None = one(1)


@dataclass(frozen=True, slots=True)
class Reject(Message):
    type: int | None = one(1)
    reason: str | None = one(2)


@dataclass(frozen=True, slots=True)
class ServerSync(Message):
    """The login is complete; every channel and user was sent before."""

    session: int | None = one(1)
    max_bandwidth: int | None = one(2)


@dataclass(frozen=True, slots=True)
class ChannelRemove(Message):
    channel_id: int | None = one(1)


@dataclass(frozen=True, slots=True)
class ChannelState(Message):
    """A new channel, or the changed fields of one."""

    channel_id: int | None = one(1)
    parent: int | None = one(2)
    name: str | None = one(3)
    temporary: bool | None = one(8)


@dataclass(frozen=True, slots=True)
class UserRemove(Message):
    """A user disconnected, or was kicked or banned if there is an actor."""

    session: int | None = one(1)
    reason: str | None = one(3)
    ban: bool | None = one(4)


@dataclass(frozen=True, slots=True)
class UserState(Message):
    """A new user, or the changed fields of one."""

    session: int | None = one(1)
    name: str | None = one(3)
    user_id: int | None = one(4)
    channel_id: int | None = one(5)
    mute: bool | None = one(6)
    suppress: bool | None = one(8)
    self_mute: bool | None = one(9)
    self_deaf: bool | None = one(10)
    comment: str | None = one(14)
    hash: str | None = one(15)


@dataclass(frozen=True, slots=True)
class TextMessage(Message):
    """A text in HTML to users, channels or trees of channels."""

    actor: int | None = one(1)
    session: tuple[int, ...] = many(2)
    channel_id: tuple[int, ...] = many(3)
    message: str | None = one(5)


@dataclass(frozen=True, slots=True)
class PermissionDenied(Message):
    permission: int | None = one(1)
    reason: str | None = one(4)
    type: int | None = one(5)


@dataclass(frozen=True, slots=True)
class WhisperTo(Encoded):
    """The recipients of a whisper: a message inside `VoiceTarget`."""

    session: tuple[int, ...] = many(1)


@dataclass(frozen=True, slots=True)
class VoiceTarget(Message):
    """Defines the recipients of a voice target with a number from 1 to 30."""

    id: int | None = one(1)
    targets: tuple[bytes, ...] = many(2)


@dataclass(frozen=True, slots=True)
class ServerConfig(Message):
    message_length: int | None = one(4)


TUNNEL: Final = 1
"""The type number of a voice packet that is tunnelled through TCP."""

KINDS: Final[dict[int, type[Message]]] = {
    0: Version,
    2: Authenticate,
    3: Ping,
    4: Reject,
    5: ServerSync,
    6: ChannelRemove,
    7: ChannelState,
    8: UserRemove,
    9: UserState,
    11: TextMessage,
    12: PermissionDenied,
    19: VoiceTarget,
    24: ServerConfig,
}
NUMBERS: Final[dict[type[Message], int]] = {kind: number for number, kind in KINDS.items()}


OPUS: Final = 4
TALK: Final = 0
"""Voice target: everybody in the channel."""
WHISPER: Final = 2
"""Voice target of a received packet: this user alone."""

_LAST: Final = 0x2000
_LENGTH: Final = 0x1FFF
_FORMS: Final = (
    (0x80, 0, 0x7F),
    (0xC0, 1, 0x3F),
    (0xE0, 2, 0x1F),
    (0xF0, 3, 0x0F),
    (0xF4, 4, 0),
    (0xF8, 8, 0),
)
"""Number formats: the first byte is below this, how many bytes follow, and a mask for the first byte."""


@dataclass(frozen=True, slots=True)
class VoicePacket:
    session: int
    target: int
    sequence: int
    opus: bytes
    last: bool
    """Whether the speaker stopped talking after this packet."""


def encode_packet(opus: bytes, sequence: int, *, target: int = TALK, last: bool = False) -> bytes:
    if len(opus) > _LENGTH:
        raise MalformedData(f"a voice packet has {len(opus)} bytes; the maximum is {_LENGTH}")
    return bytes([OPUS << 5 | target]) + _number(sequence) + _number(len(opus) | (_LAST if last else 0)) + opus


def decode_packet(packet: bytes) -> VoicePacket | None:
    """Read a received packet; return None for a ping or for a codec other than Opus."""
    if not packet:
        raise MalformedData("a voice packet is empty")
    if packet[0] >> 5 != OPUS:
        return None
    session, at = _read_number(packet, 1)
    sequence, at = _read_number(packet, at)
    head, at = _read_number(packet, at)
    length = head & _LENGTH
    if at + length > len(packet):
        raise MalformedData("a voice packet is truncated")
    return VoicePacket(session, packet[0] & 0x1F, sequence, packet[at : at + length], bool(head & _LAST))


def _number(value: int) -> bytes:
    """Encode a non-negative number as in voice packets, which differs from protobuf."""
    if value < 1 << 7:
        return bytes([value])
    for extra, mark in ((1, 0x80), (2, 0xC0), (3, 0xE0)):
        if value < 1 << (7 * (extra + 1)):
            head = value >> (8 * extra)
            return bytes([mark | head]) + (value & (1 << 8 * extra) - 1).to_bytes(extra, "big")
    if value < 1 << 32:
        return b"\xf0" + value.to_bytes(4, "big")
    return b"\xf4" + value.to_bytes(8, "big")


def _read_number(packet: bytes, at: int) -> tuple[int, int]:
    """Decode a number; return it and the position after it. Negative numbers are rejected."""
    first = packet[at] if at < len(packet) else 0xFF
    extra, kept = next((form[1:] for form in _FORMS if first < form[0]), (-1, 0))
    end = at + 1 + extra
    if extra < 0 or end > len(packet):
        raise MalformedData("a voice packet contains an invalid number")
    return (first & kept) << 8 * extra | int.from_bytes(packet[at + 1 : end], "big"), end
