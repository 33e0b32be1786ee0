"""Packets of voice, in the form that all servers understand that a client of version 1.4 or older talks to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aforesaid.bots.mumble.protobuf import Garbled

OPUS: Final = 4
TALK: Final = 0
"""To everybody in the channel."""
WHISPER: Final = 2
"""As a target of what is heard: it was for this user alone."""

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
"""Numbers, by what their first byte is below: how many bytes follow, and which bits of the first one count."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A packet of somebody's voice. One of a codec other than Opus has no sound in it."""

    session: int
    target: int
    sequence: int
    opus: bytes
    last: bool
    """Whether the speaker let go of the button."""


def spoken(opus: bytes, sequence: int, *, target: int = TALK, last: bool = False) -> bytes:
    """Write a packet to be sent."""
    if len(opus) > _LENGTH:
        raise Garbled(f"a packet of voice has {len(opus)} bytes; {_LENGTH} is the most")
    return bytes([OPUS << 5 | target]) + _number(sequence) + _number(len(opus) | (_LAST if last else 0)) + opus


def heard(packet: bytes) -> Heard | None:
    """Read a packet that came. None: it is no voice, or of a codec from before 2012."""
    if not packet:
        raise Garbled("a packet of voice is empty")
    if packet[0] >> 5 != OPUS:
        return None
    session, at = _read_number(packet, 1)
    sequence, at = _read_number(packet, at)
    head, at = _read_number(packet, at)
    length = head & _LENGTH
    if at + length > len(packet):
        raise Garbled("a packet of voice ends too early")
    return Heard(session, packet[0] & 0x1F, sequence, packet[at : at + length], bool(head & _LAST))


def _number(value: int) -> bytes:
    """Write a number that is not negative as Mumble does in packets of voice, which is not how protobuf does it."""
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
    """Read such a number; return it and where it ends. No packet has a reason for a negative one."""
    first = packet[at] if at < len(packet) else 0xFF
    extra, kept = next((form[1:] for form in _FORMS if first < form[0]), (-1, 0))
    end = at + 1 + extra
    if extra < 0 or end > len(packet):
        raise Garbled("a packet of voice has a number that cannot be read")
    return (first & kept) << 8 * extra | int.from_bytes(packet[at + 1 : end], "big"), end
