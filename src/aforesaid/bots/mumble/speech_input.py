"""Splits voice packets into utterances: finds where a person starts and stops speaking.

Most clients send packets only while somebody speaks and mark the last one; some send all the time. So both the packets
and their loudness count.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from aforesaid.bots.mumble.packets import VoicePacket
from aforesaid.bots.mumble.sound import RATE, OpusReader

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples = NDArray[np.int16]

PAUSE: Final = 0.8
"""Seconds of silence that end an utterance; shorter pauses are breaths."""
STALLED: Final = 3.0
"""Seconds without packets that end an utterance whose last packet is not marked: the network may be slow."""
SHORTEST: Final = 0.25
"""Minimum seconds of voice; shorter sounds are clicks or coughs."""
LONGEST: Final = 30.0
"""Maximum seconds of an utterance; longer ones are cut."""
_BEFORE: Final = 0.3
"""Seconds kept from before the voice was loud enough, because words begin softly."""
_QUIET: Final = 100.0
"""Loudness (of 32,768) below which a packet is never voice."""
_ABOVE_NOISE: Final = 3.0
_NOISE_RISES: Final = 1.008
"""Factor by which the noise estimate rises with each packet, until a quieter one comes in a gap between words."""


@dataclass(slots=True)
class _Speaking:
    """An utterance that is not over yet."""

    target: int
    parts: list[Samples] = field(default_factory=list)
    seconds: float = 0.0
    voiced: float = 0.0
    silent: float = 0.0
    """How long it has been quiet at its end."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """What somebody said without a pause."""

    samples: Samples
    target: int
    """To whom: everybody in the channel, or the bot alone."""


class SpeechInput:
    """Listens to one person. Times are those of the caller's clock."""

    def __init__(self) -> None:
        self._reader = OpusReader()
        self._noise = _QUIET
        self._before: deque[Samples] = deque()
        self._now: _Speaking | None = None
        self._ends_at: float | None = None

    @property
    def ends_at(self) -> float | None:
        """When what is being said is over, if nothing more comes until then."""
        return self._ends_at

    def take(self, packet: VoicePacket, now: float) -> Utterance | None:
        """Take in a packet; return what was said, if it is over with this one."""
        samples = self._reader.read(packet.opus)
        self._ends_at = now + (PAUSE if packet.last else STALLED)
        loud = self._is_voice(samples)
        if self._now is not None and self._now.target != packet.target:
            # From the channel to a whisper, or back: these are two things, for two audiences.
            over = self._over()
            self._hear(samples, packet, loud=loud)
            return over
        self._hear(samples, packet, loud=loud)
        if self._now is None or (self._now.silent < PAUSE and self._now.seconds < LONGEST):
            return None
        return self._over()

    def tick(self, now: float) -> Utterance | None:
        """Return what was said, if it is over because nothing came any more."""
        if self._ends_at is None or now < self._ends_at:
            return None
        return self._over()

    def _hear(self, samples: Samples, packet: VoicePacket, *, loud: bool) -> None:
        seconds = len(samples) / RATE
        if self._now is None:
            self._before.append(samples)
            while sum(map(len, self._before)) > _BEFORE * RATE:
                self._before.popleft()
            if not loud:
                return
            self._now = _Speaking(packet.target, list(self._before))
            self._before.clear()
        else:
            self._now.parts.append(samples)
        self._now.seconds += seconds
        self._now.voiced += seconds if loud else 0.0
        self._now.silent = 0.0 if loud else self._now.silent + seconds

    def _over(self) -> Utterance | None:
        import numpy as np  # noqa: PLC0415 - takes a while to load

        said, self._now, self._ends_at = self._now, None, None
        self._before.clear()
        if said is None or said.voiced < SHORTEST:
            return None
        return Utterance(np.concatenate(said.parts), said.target)

    def _is_voice(self, samples: Samples) -> bool:
        """Return whether a packet is clearly louder than what this person's microphone always hears."""
        if not len(samples):
            return False
        loudness = float((samples.astype("float64") ** 2).mean() ** 0.5)
        self._noise = max(_QUIET / _ABOVE_NOISE, min(loudness, self._noise * _NOISE_RISES))
        return loudness > max(_QUIET, self._noise * _ABOVE_NOISE)
