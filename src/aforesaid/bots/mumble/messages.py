"""The protocol of Mumble: packets of protobuf messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import Field, dataclass, field, fields
from enum import IntEnum
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from aforesaid.errors import AforesaidError

_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_FIXED32: Final = 5
_LONGEST_VARINT: Final = 10
_SIXTY_FOUR: Final = (1 << 64) - 1

Made = TypeVar("Made")


class MalformedData(AforesaidError):
    """Received data does not follow the protocol."""


class _Kind(NamedTuple):
    wire: int
    write: Callable[[Any], bytes]
    read: Callable[[Any], Any]


class _Place(NamedTuple):
    number: int
    kind: _Kind
    repeated: bool


def varint(value: int) -> bytes:
    """Encode a number with seven bits per byte. Negative numbers take ten bytes, as in every implementation."""
    value &= _SIXTY_FOUR
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


def _written_bytes(value: bytes) -> bytes:
    return varint(len(value)) + value


_NUMBER: Final = _Kind(_VARINT, varint, int)
_SIGNED: Final = _Kind(_VARINT, varint, lambda value: value - (1 << 64) if value >> 63 else value)
_FLAG: Final = _Kind(_VARINT, lambda value: varint(int(value)), bool)
_TEXT: Final = _Kind(
    _BYTES,
    # Half of a surrogate pair has no UTF-8; it becomes a question mark instead of an error.
    lambda value: _written_bytes(value.encode("utf-8", "replace")),
    lambda value: value.decode("utf-8", "replace"),
)
_DATA: Final = _Kind(_BYTES, _written_bytes, bytes)


def _field(number: int, kind: _Kind, *, repeated: bool = False) -> Any:  # noqa: ANN401 - placeholder for its value
    return field(default=() if repeated else None, metadata={"place": _Place(number, kind, repeated)})


number: Final = partial(_field, kind=_NUMBER)
signed: Final = partial(_field, kind=_SIGNED)
flag: Final = partial(_field, kind=_FLAG)
text: Final = partial(_field, kind=_TEXT)
data: Final = partial(_field, kind=_DATA)
numbers: Final = partial(_field, kind=_NUMBER, repeated=True)
texts: Final = partial(_field, kind=_TEXT, repeated=True)
many_data: Final = partial(_field, kind=_DATA, repeated=True)
"""Declare a field of a message by its number. `number` is also for enums, and `many_data` for nested messages."""


def _places(kind: type) -> tuple[tuple[str, _Place], ...]:
    declared: tuple[Field[Any], ...] = fields(kind)
    return tuple((each.name, each.metadata["place"]) for each in declared)


def encode_protobuf(message: Any) -> bytes:  # noqa: ANN401 - any of the declared messages
    out = bytearray()
    for name, place in _places(type(message)):
        held = getattr(message, name)
        for value in held if place.repeated else () if held is None else (held,):
            out += varint(place.number << 3 | place.kind.wire) + place.kind.write(value)
    return bytes(out)


def decode_protobuf(kind: type[Made], wired: bytes) -> Made:
    """Decode a message. If a field occurs twice, the last value wins."""
    by_number = {place.number: (name, place) for name, place in _places(kind)}
    found: dict[str, Any] = {}
    for number_, wire, value in pieces(wired):
        if number_ not in by_number:
            continue
        name, place = by_number[number_]
        for each in _unpacked(place, wire, value):
            read = place.kind.read(each)
            found[name] = (*found.get(name, ()), read) if place.repeated else read
    return kind(**found)


def _unpacked(place: _Place, wire: int, value: int | bytes) -> Iterator[int | bytes]:
    """Yield the values of one field: repeated numbers may be packed into one."""
    if wire == place.kind.wire:
        yield value
    elif place.repeated and place.kind.wire == _VARINT and isinstance(value, bytes) and wire == _BYTES:
        at = 0
        while at < len(value):
            single, at = read_varint(value, at)
            yield single
    else:
        raise MalformedData(f"field {place.number} has the wire type {wire} instead of {place.kind.wire}")


@dataclass(frozen=True, slots=True)
class Version:
    """The software version. The first message of both sides."""

    version_v1: int | None = number(1)
    release: str | None = text(2)
    os: str | None = text(3)
    os_version: str | None = text(4)


@dataclass(frozen=True, slots=True)
class Authenticate:
    username: str | None = text(1)
    password: str | None = text(2)
    tokens: tuple[str, ...] = texts(3)
    opus: bool | None = flag(5)
    client_type: int | None = number(6)


@dataclass(frozen=True, slots=True)
class Ping:
    """A keepalive. The answer has the same timestamp."""

    timestamp: int | None = number(1)
    tcp_packets: int | None = number(7)


class Refusal(IntEnum):
    NONE = 0
    WRONG_VERSION = 1
    INVALID_USERNAME = 2
    WRONG_USER_PASSWORD = 3
    WRONG_SERVER_PASSWORD = 4
    USERNAME_IN_USE = 5
    SERVER_FULL = 6
    NO_CERTIFICATE = 7
    AUTHENTICATOR_FAIL = 8
    NO_NEW_CONNECTIONS = 9


@dataclass(frozen=True, slots=True)
class Reject:
    type: int | None = number(1)
    reason: str | None = text(2)


@dataclass(frozen=True, slots=True)
class ServerSync:
    """The login is complete; every channel and user was sent before."""

    session: int | None = number(1)
    max_bandwidth: int | None = number(2)
    welcome_text: str | None = text(3)


@dataclass(frozen=True, slots=True)
class ChannelRemove:
    channel_id: int | None = number(1)


@dataclass(frozen=True, slots=True)
class ChannelState:
    """A new channel, or the changed fields of one."""

    channel_id: int | None = number(1)
    parent: int | None = number(2)
    name: str | None = text(3)
    temporary: bool | None = flag(8)


@dataclass(frozen=True, slots=True)
class UserRemove:
    """A user disconnected, or was kicked or banned if there is an actor."""

    session: int | None = number(1)
    actor: int | None = number(2)
    reason: str | None = text(3)
    ban: bool | None = flag(4)


@dataclass(frozen=True, slots=True)
class UserState:
    """A new user, or the changed fields of one."""

    session: int | None = number(1)
    actor: int | None = number(2)
    name: str | None = text(3)
    user_id: int | None = number(4)
    channel_id: int | None = number(5)
    mute: bool | None = flag(6)
    deaf: bool | None = flag(7)
    suppress: bool | None = flag(8)
    self_mute: bool | None = flag(9)
    self_deaf: bool | None = flag(10)
    comment: str | None = text(14)
    hash: str | None = text(15)


@dataclass(frozen=True, slots=True)
class TextMessage:
    """A text in HTML to users, channels or trees of channels."""

    actor: int | None = number(1)
    session: tuple[int, ...] = numbers(2)
    channel_id: tuple[int, ...] = numbers(3)
    tree_id: tuple[int, ...] = numbers(4)
    message: str | None = text(5)


class Denial(IntEnum):
    """Reasons of a denial other than a missing permission."""

    TEXT_TOO_LONG = 4
    MISSING_CERTIFICATE = 7
    CHANNEL_FULL = 9


@dataclass(frozen=True, slots=True)
class PermissionDenied:
    permission: int | None = number(1)
    channel_id: int | None = number(2)
    session: int | None = number(3)
    reason: str | None = text(4)
    type: int | None = number(5)


@dataclass(frozen=True, slots=True)
class CryptSetup:
    """The keys for voice over UDP, which this client does not use."""

    key: bytes | None = data(1)
    client_nonce: bytes | None = data(2)
    server_nonce: bytes | None = data(3)


@dataclass(frozen=True, slots=True)
class WhisperTo:
    """The recipients of a whisper: a message inside `VoiceTarget`."""

    session: tuple[int, ...] = numbers(1)


@dataclass(frozen=True, slots=True)
class VoiceTarget:
    """Defines the recipients of a voice target with a number from 1 to 30."""

    id: int | None = number(1)
    targets: tuple[bytes, ...] = many_data(2)


@dataclass(frozen=True, slots=True)
class CodecVersion:
    alpha: int | None = signed(1)
    beta: int | None = signed(2)
    prefer_alpha: bool | None = flag(3)
    opus: bool | None = flag(4)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    max_bandwidth: int | None = number(1)
    welcome_text: str | None = text(2)
    allow_html: bool | None = flag(3)
    message_length: int | None = number(4)
    image_message_length: int | None = number(5)


Message: TypeAlias = (
    Version
    | Authenticate
    | Ping
    | Reject
    | ServerSync
    | ChannelRemove
    | ChannelState
    | UserRemove
    | UserState
    | TextMessage
    | PermissionDenied
    | CryptSetup
    | VoiceTarget
    | CodecVersion
    | ServerConfig
)

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
    15: CryptSetup,
    19: VoiceTarget,
    21: CodecVersion,
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
