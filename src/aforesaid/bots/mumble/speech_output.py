"""Sends speech in real time, one text after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from aforesaid.bots.mumble import packets
from aforesaid.bots.mumble.link import Link
from aforesaid.bots.mumble.messages import VoiceTarget, WhisperTo
from aforesaid.bots.mumble.protobuf import encode
from aforesaid.bots.mumble.sound import FRAME, RATE

_SECONDS: Final = FRAME / RATE
_AHEAD: Final = 0.06
"""Seconds by which packets are sent early, against network jitter. Servers drop packets that come much earlier."""
_STEP: Final = 2
"""Increment of the sequence number per packet: it counts units of 10 ms."""
_WHISPER_TARGET: Final = 1
_USUAL_BITS: Final = 40_000
_FEWEST_BITS: Final = 8_000
_PACKING_BITS: Final = 16_000
"""Bits per second of packet headers, which count towards the server's bandwidth limit."""


class SpeechOutput:
    """Speaks on one connection."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._sequence = 0
        self._turn = asyncio.Lock()

    @property
    def bits_per_second(self) -> int:
        """The bit rate for speech on this server."""
        allowed = self._link.bandwidth or 0
        return min(_USUAL_BITS, max(_FEWEST_BITS, allowed - _PACKING_BITS)) if allowed else _USUAL_BITS

    async def speak(self, sound: Sequence[bytes], *, whisper_to: int | None = None) -> None:
        """Speak to the channel or to one person. Returns when the sound has been played."""
        async with self._turn:
            target = packets.TALK
            if whisper_to is not None:
                target = _WHISPER_TARGET
                await self._link.send(VoiceTarget(target, (encode(WhisperTo((whisper_to,))),)))
            time = asyncio.get_running_loop().time
            due = time()
            for number, opus in enumerate(sound, 1):
                # Do not catch up after a delay: a server drops packets that come too fast.
                due = max(due, time() - _AHEAD)
                await asyncio.sleep(max(0.0, due - _AHEAD - time()))
                last = number == len(sound)
                await self._link.send_voice(packets.encode(opus, self._sequence, target=target, last=last))
                self._sequence += _STEP
                due += _SECONDS
            await asyncio.sleep(max(0.0, due - time()))
