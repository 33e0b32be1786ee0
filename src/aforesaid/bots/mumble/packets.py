"""Encodes and decodes voice packets in the format of Mumble 1.4 and older, which all servers understand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aforesaid.bots.mumble.protobuf import MalformedData

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
    """A received packet of Opus audio."""

    session: int
    target: int
    sequence: int
    opus: bytes
    last: bool
    """Whether the speaker stopped talking after this packet."""


def encode(opus: bytes, sequence: int, *, target: int = TALK, last: bool = False) -> bytes:
    """Return a packet to be sent."""
    if len(opus) > _LENGTH:
        raise MalformedData(f"a voice packet has {len(opus)} bytes; the maximum is {_LENGTH}")
    return bytes([OPUS << 5 | target]) + _number(sequence) + _number(len(opus) | (_LAST if last else 0)) + opus


def decode(packet: bytes) -> VoicePacket | None:
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
