"""The protocol messages that a bot needs, out of those between Mumble clients and servers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

from aforesaid.bots.mumble import protobuf as pb


@dataclass(frozen=True, slots=True)
class Version:
    """The software version. The first message of both sides."""

    version_v1: int | None = pb.number(1)
    release: str | None = pb.text(2)
    os: str | None = pb.text(3)
    os_version: str | None = pb.text(4)


@dataclass(frozen=True, slots=True)
class Authenticate:
    """Login data of a client."""

    username: str | None = pb.text(1)
    password: str | None = pb.text(2)
    tokens: tuple[str, ...] = pb.texts(3)
    opus: bool | None = pb.flag(5)
    client_type: int | None = pb.number(6)


@dataclass(frozen=True, slots=True)
class Ping:
    """A keepalive. The answer has the same timestamp."""

    timestamp: int | None = pb.number(1)
    tcp_packets: int | None = pb.number(7)


class Refusal(IntEnum):
    """Why a server rejects a client."""

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
    """The server rejects the client."""

    type: int | None = pb.number(1)
    reason: str | None = pb.text(2)


@dataclass(frozen=True, slots=True)
class ServerSync:
    """The login is complete; every channel and user was sent before."""

    session: int | None = pb.number(1)
    max_bandwidth: int | None = pb.number(2)
    welcome_text: str | None = pb.text(3)


@dataclass(frozen=True, slots=True)
class ChannelRemove:
    """A channel was removed."""

    channel_id: int | None = pb.number(1)


@dataclass(frozen=True, slots=True)
class ChannelState:
    """A new channel, or the changed fields of one."""

    channel_id: int | None = pb.number(1)
    parent: int | None = pb.number(2)
    name: str | None = pb.text(3)
    temporary: bool | None = pb.flag(8)


@dataclass(frozen=True, slots=True)
class UserRemove:
    """A user disconnected, or was kicked or banned if there is an actor."""

    session: int | None = pb.number(1)
    actor: int | None = pb.number(2)
    reason: str | None = pb.text(3)
    ban: bool | None = pb.flag(4)


@dataclass(frozen=True, slots=True)
class UserState:
    """A new user, or the changed fields of one."""

    session: int | None = pb.number(1)
    actor: int | None = pb.number(2)
    name: str | None = pb.text(3)
    user_id: int | None = pb.number(4)
    channel_id: int | None = pb.number(5)
    mute: bool | None = pb.flag(6)
    deaf: bool | None = pb.flag(7)
    suppress: bool | None = pb.flag(8)
    self_mute: bool | None = pb.flag(9)
    self_deaf: bool | None = pb.flag(10)
    comment: str | None = pb.text(14)
    hash: str | None = pb.text(15)


@dataclass(frozen=True, slots=True)
class TextMessage:
    """A text in HTML to users, channels or trees of channels."""

    actor: int | None = pb.number(1)
    session: tuple[int, ...] = pb.numbers(2)
    channel_id: tuple[int, ...] = pb.numbers(3)
    tree_id: tuple[int, ...] = pb.numbers(4)
    message: str | None = pb.text(5)


class Denial(IntEnum):
    """Reasons of a denial other than a missing permission."""

    TEXT_TOO_LONG = 4
    MISSING_CERTIFICATE = 7
    CHANNEL_FULL = 9


@dataclass(frozen=True, slots=True)
class PermissionDenied:
    """The server denied a request."""

    permission: int | None = pb.number(1)
    channel_id: int | None = pb.number(2)
    session: int | None = pb.number(3)
    reason: str | None = pb.text(4)
    type: int | None = pb.number(5)


@dataclass(frozen=True, slots=True)
class CryptSetup:
    """The keys for voice over UDP, which this client does not use."""

    key: bytes | None = pb.data(1)
    client_nonce: bytes | None = pb.data(2)
    server_nonce: bytes | None = pb.data(3)


@dataclass(frozen=True, slots=True)
class WhisperTo:
    """The recipients of a whisper: a message inside `VoiceTarget`."""

    session: tuple[int, ...] = pb.numbers(1)


@dataclass(frozen=True, slots=True)
class VoiceTarget:
    """Defines the recipients of a voice target with a number from 1 to 30."""

    id: int | None = pb.number(1)
    targets: tuple[bytes, ...] = pb.many_data(2)


@dataclass(frozen=True, slots=True)
class CodecVersion:
    """The voice codec of this server."""

    alpha: int | None = pb.signed(1)
    beta: int | None = pb.signed(2)
    prefer_alpha: bool | None = pb.flag(3)
    opus: bool | None = pb.flag(4)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The limits of a server."""

    max_bandwidth: int | None = pb.number(1)
    welcome_text: str | None = pb.text(2)
    allow_html: bool | None = pb.flag(3)
    message_length: int | None = pb.number(4)
    image_message_length: int | None = pb.number(5)


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
