"""Speech in Mumble: hears, transcribes, speaks."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.bots.mumble import messages
from aforesaid.bots.mumble.link import Link
from aforesaid.bots.mumble.messages import VoicePacket, VoiceTarget, WhisperTo, encode_protobuf
from aforesaid.bots.mumble.sound import FRAME, RATE, OpusReader

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples = NDArray[np.int16]


LONGEST_SPOKEN: Final = 600
"""Maximum characters read aloud: about forty seconds."""
PIECE: Final = 200
"""Characters per request to the speech service: the first piece is played while the next one is synthesised."""
_REST: Final = "The rest is written."
_WRITTEN: Final = "I have written the answer."
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_ADDRESS: Final = re.compile(r"https?://\S+")
_LINK: Final = re.compile(r"\[([^\]\n]*)\]\([^)\s]*\)")
_MARKS: Final = re.compile(r"[*_`#>|]+|^\s*[-•]\s+", re.MULTILINE)
_SENTENCES: Final = re.compile(r"(?<=[.!?…。！？])['\")\]]*\s+|\n+")


class Spoken(NamedTuple):
    """The pieces of text to read aloud, and whether they are the whole answer."""

    pieces: tuple[str, ...]
    whole: bool


def speech_text(text: str) -> Spoken:
    """Return what to read aloud of an answer. If it is not the whole answer, the answer must also be written."""
    bare = _ADDRESS.sub(" ", _LINK.sub(r"\1", _FENCE.sub("\n", text)))
    whole = not _FENCE.search(text) and not _ADDRESS.search(text)
    sentences = [" ".join(part.split()) for part in _SENTENCES.split(_MARKS.sub(" ", bare))]
    chosen, left = _beginning([sentence for sentence in sentences if sentence])
    whole = whole and not left
    if not whole:
        chosen.append(_REST if chosen else _WRITTEN)
    return Spoken(tuple(_joined(chosen)), whole)


def _beginning(sentences: list[str]) -> tuple[list[str], bool]:
    """Return the sentences to read aloud, and whether any are left. A first sentence that is too long is cut."""
    length = 0
    for number, sentence in enumerate(sentences):
        length += len(sentence)
        if length > LONGEST_SPOKEN:
            first = sentence[: sentence.rfind(" ", 1, LONGEST_SPOKEN) + 1 or LONGEST_SPOKEN].strip()
            return (sentences[:number] or [first]), True
    return sentences, False


def _joined(sentences: list[str]) -> Iterator[str]:
    piece = ""
    for sentence in sentences:
        if piece and len(piece) + 1 + len(sentence) > PIECE:
            yield piece
            piece = ""
        piece = f"{piece} {sentence}".strip()
    if piece:
        yield piece


PAUSE: Final = 0.8
"""Seconds of silence that end an utterance; shorter pauses are breaths."""
STALLED: Final = 3.0
"""Seconds without packets that end an utterance whose last packet is not marked: the network may be slow."""
SHORTEST: Final = 0.25
"""Minimum seconds of voice; shorter sounds are clicks or coughs."""
LONGEST_HEARD: Final = 30.0
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
    target: int
    parts: list[Samples] = field(default_factory=list)
    seconds: float = 0.0
    voiced: float = 0.0
    silent: float = 0.0
    """How long it has been quiet at its end."""


@dataclass(frozen=True, slots=True)
class Utterance:
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
        if self._now is None or (self._now.silent < PAUSE and self._now.seconds < LONGEST_HEARD):
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
    def __init__(self, link: Link) -> None:
        self._link = link
        self._sequence = 0
        self._turn = asyncio.Lock()

    @property
    def bits_per_second(self) -> int:
        allowed = self._link.bandwidth or 0
        return min(_USUAL_BITS, max(_FEWEST_BITS, allowed - _PACKING_BITS)) if allowed else _USUAL_BITS

    async def speak(self, sound: Sequence[bytes], *, whisper_to: int | None = None) -> None:
        """Speak to the channel or to one person. Returns when the sound has been played."""
        async with self._turn:
            target = messages.TALK
            if whisper_to is not None:
                target = _WHISPER_TARGET
                await self._link.send(VoiceTarget(target, (encode_protobuf(WhisperTo((whisper_to,))),)))
            time = asyncio.get_running_loop().time
            due = time()
            for number, opus in enumerate(sound, 1):
                # Do not catch up after a delay: a server drops packets that come too fast.
                due = max(due, time() - _AHEAD)
                await asyncio.sleep(max(0.0, due - _AHEAD - time()))
                last = number == len(sound)
                await self._link.send_voice(messages.encode_packet(opus, self._sequence, target=target, last=last))
                self._sequence += _STEP
                due += _SECONDS
            await asyncio.sleep(max(0.0, due - time()))
