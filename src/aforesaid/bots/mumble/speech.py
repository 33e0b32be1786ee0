"""Speech in Mumble: hears, transcribes, speaks, and says once when that fails and once more when it works again.

Samples are 16-bit integers, 48,000 per second, mono, as in Opus.
"""

from __future__ import annotations

import asyncio
import io
import logging
import wave
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aforesaid.assistant import Phrases
from aforesaid.bots.mumble import messages
from aforesaid.bots.mumble.link import Link, Person, VoiceReceived
from aforesaid.bots.mumble.messages import VoicePacket, VoiceTarget, WhisperTo, encode_protobuf
from aforesaid.bots.sending import PerThreadQueue
from aforesaid.errors import InvalidInput, ModelError, ModelGarbled
from aforesaid.extras import how_to_install, re

if TYPE_CHECKING:
    from av import AudioCodecContext

    from aforesaid.models.speech import RoutedSpeech

Samples: TypeAlias = NDArray[np.int16]

RATE: Final = 48_000
FRAME: Final = 960
"""Samples per sent packet: 20 ms."""
_HEARD_RATE: Final = 16_000
"""Samples per second for speech to text: services resample to this rate anyway."""
_LONGEST_SECONDS: Final = 600


def check_library() -> None:
    """Raise InvalidInput, which says how to install it, if the audio library is missing."""
    try:
        import av  # noqa: F401, PLC0415 - only a bot that hears or speaks needs it
    except ImportError as error:
        raise InvalidInput(f"voice on Mumble needs PyAV; {how_to_install('mumble')}") from error


class OpusReader:
    def __init__(self) -> None:
        from av import CodecContext  # noqa: PLC0415 - as above

        decoder: AudioCodecContext = CodecContext.create("libopus", "r")
        decoder.sample_rate = RATE
        decoder.layout = "mono"
        self._decoder = decoder

    def read(self, opus: bytes) -> Samples:
        """Return the samples of a packet; none if another client sent a packet that cannot be decoded."""
        from av import FFmpegError, Packet  # noqa: PLC0415

        try:
            frames = self._decoder.decode(Packet(opus)) if opus else []
        except FFmpegError:
            frames = []
        parts = [frame.to_ndarray().reshape(-1).astype(np.int16, copy=False) for frame in frames]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int16)


def as_wav(samples: Samples) -> bytes:
    from av import AudioFrame, AudioResampler  # noqa: PLC0415

    frame = AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="mono")
    frame.sample_rate = RATE
    resampler = AudioResampler(format="s16", layout="mono", rate=_HEARD_RATE)
    pcm = b"".join(part.to_ndarray().tobytes() for part in [*resampler.resample(frame), *resampler.resample(None)])
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(_HEARD_RATE)
        sound.writeframes(pcm)
    return file.getvalue()


def as_opus(sound: bytes, bits_per_second: int) -> list[bytes]:
    """Return an audio file of any common format as packets of 20 ms. Raises ModelGarbled if it cannot be read."""
    from av import AudioFrame, CodecContext  # noqa: PLC0415

    samples = _samples(sound)
    encoder: AudioCodecContext = CodecContext.create("libopus", "w")
    encoder.sample_rate = RATE
    encoder.layout = "mono"
    encoder.format = "s16"
    encoder.bit_rate = bits_per_second
    encoder.options = {"application": "voip"}
    packets = []
    for start in range(0, len(samples), FRAME):
        frame = AudioFrame.from_ndarray(samples[start : start + FRAME].reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = RATE
        frame.pts = start
        packets += [bytes(packet) for packet in encoder.encode(frame)]
    # The last milliseconds stay in the encoder; they are silence.
    return packets


def _samples(sound: bytes) -> Samples:
    """Return the samples of an audio file, padded with silence to whole packets."""
    import av  # noqa: PLC0415

    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    parts: list[Samples] = []
    length = 0
    try:
        with av.open(io.BytesIO(sound), "r") as file:
            for frame in chain(file.decode(audio=0), [None]):  # None flushes the resampler
                for part in resampler.resample(frame):
                    parts.append(part.to_ndarray().reshape(-1).astype(np.int16, copy=False))
                    length += len(parts[-1])
                if length > _LONGEST_SECONDS * RATE:
                    raise ModelGarbled(f"the text to speech service returned more than {_LONGEST_SECONDS} s of audio")
    except (av.FFmpegError, IndexError, ValueError) as error:
        raise ModelGarbled(f"the text to speech service returned data that is not audio: {error}") from error
    if not length:
        raise ModelGarbled("the text to speech service returned an empty audio file")
    # One more packet of silence, because the encoder holds back a few milliseconds.
    missing = -length % FRAME + FRAME
    return np.concatenate([*parts, np.zeros(missing, dtype=np.int16)])


LONGEST_SPOKEN: Final = 600
"""Maximum characters read aloud: about forty seconds."""
PIECE: Final = 200
"""Characters per request to the speech service: the first piece is played while the next one is synthesised."""
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_ADDRESS: Final = re.compile(r"https?://\S+")
_LINK: Final = re.compile(r"\[([^\]\n]*)\]\([^)\s]*\)")
_MARKS: Final = re.compile(r"[*_`#>|]+|^\s*[-•]\s+", re.MULTILINE)
_SENTENCES: Final = re.compile(r"(?<=[.!?…。！？])['\")\]]*\s+|\n+")


class Spoken(NamedTuple):
    """The pieces of text to read aloud, and whether they are the whole answer."""

    pieces: tuple[str, ...]
    whole: bool


def speech_text(text: str, say: Phrases) -> Spoken:
    """Return what to read aloud of an answer. If it is not the whole answer, the answer must also be written."""
    bare = _ADDRESS.sub(" ", _LINK.sub(r"\1", _FENCE.sub("\n", text)))
    whole = not _FENCE.search(text) and not _ADDRESS.search(text)
    sentences = [" ".join(part.split()) for part in _SENTENCES.split(_MARKS.sub(" ", bare))]
    chosen, left = _beginning([sentence for sentence in sentences if sentence])
    whole = whole and not left
    if not whole:
        chosen.append(say("mumble.rest_written" if chosen else "mumble.all_written"))
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


_log: Final = logging.getLogger("aforesaid.bots")

_AT_ONCE: Final = 8
_TICK: Final = 0.05
_HELD_UP: Final = 0.5
"""Seconds by which a tick may be late. After a longer delay of the bot itself, waiting packets are handled first."""
_MOST_WAITING: Final = 5
"""Maximum number of utterances per person that wait for transcription; more are dropped, and the bot says so."""
_PATIENCE: Final = 3.0
_NOTHING_SAID: Final = re.compile(r"[\[(][^\])]*[\])][.\s]*|[.…\s]*")
"""What services return for audio without words: `[BLANK_AUDIO]`, `(silence)`."""

Audience: TypeAlias = "int | None"
"""The session of a person who whispers with the bot; None for the channel."""


class Voice:
    """Transcribes what each person says, and speaks answers."""

    def __init__(
        self,
        speech: RoutedSpeech,
        understood: Callable[[Person, bool, str], Awaitable[None]],
        tell: Callable[[Audience, str], Awaitable[None]],
    ) -> None:
        """`tell` writes the text of a key to an audience."""
        self._speech = speech
        self._understood = understood
        self._tell = tell
        self._link: Link | None = None
        self._speech_output: SpeechOutput | None = None
        self._speech_inputs: dict[int, tuple[Person, SpeechInput]] = {}
        self._queue = PerThreadQueue(_AT_ONCE)
        self._told_deaf: set[Audience] = set()
        self._told_mute: dict[Audience, str] = {}

    def attach(self, link: Link) -> None:
        self._link, self._speech_output = link, SpeechOutput(link)
        self._speech_inputs.clear()
        # The session numbers of the old connection are not valid any more.
        self._told_deaf.clear()
        self._told_mute.clear()

    def hear(self, event: VoiceReceived) -> None:
        session = event.person.session
        _, speech_input = self._speech_inputs.get(session) or (event.person, SpeechInput())
        self._speech_inputs[session] = event.person, speech_input
        self._said(event.person, speech_input.take(event.packet, asyncio.get_running_loop().time()))

    def forget(self, person: Person) -> None:
        """End the utterance of a person who disconnected."""
        _, speech_input = self._speech_inputs.pop(person.session, (person, None))
        if speech_input is not None and speech_input.ends_at is not None:
            self._said(person, speech_input.tick(speech_input.ends_at))

    async def notice_ends(self) -> None:
        """End utterances of people who stopped speaking. Runs until cancelled."""
        time = asyncio.get_running_loop().time
        now = time()
        while True:
            due = now + _TICK
            await asyncio.sleep(_TICK)
            now = time()
            if now > due + _HELD_UP:
                continue
            for person, speech_input in list(self._speech_inputs.values()):
                self._said(person, speech_input.tick(now))

    async def idle(self) -> None:
        await self._queue.idle()

    async def finish(self) -> None:
        """Wait a few seconds for transcriptions in progress, then drop the rest."""
        left = await self._queue.finish(_PATIENCE)
        if left:
            _log.warning("%d utterances were not transcribed, because the bot stopped", left)

    async def speak(self, pieces: tuple[str, ...], audience: Audience) -> str:
        """Speak; return the text that could not be spoken and must be written. Raises PlatformError."""
        if self._link is None or self._speech_output is None or not self._speech.speaks:
            return " ".join(pieces)
        if self._link.me.silenced:
            await self._tell_once(audience, "mumble.silenced")
            return " ".join(pieces)
        made = [asyncio.create_task(self._sound(self._speech_output, pieces[0]))]
        for number in range(len(pieces)):
            try:
                sound = await made[number]
            except ModelError as error:
                _log.warning("an answer could not be spoken: %s", error)
                await self._tell_once(audience, "mumble.mute")
                return " ".join(pieces[number:])
            if number + 1 < len(pieces):
                made.append(asyncio.create_task(self._sound(self._speech_output, pieces[number + 1])))
            try:
                await self._speech_output.speak(sound, whisper_to=audience)
            except BaseException:
                made[-1].cancel()
                raise
        self._told_mute.pop(audience, None)
        return ""

    @staticmethod
    def audience(person: Person, utterance: Utterance) -> Audience:
        """Return the audience of an utterance, which is also that of the answer."""
        return person.session if utterance.target == messages.WHISPER else None

    def _said(self, person: Person, utterance: Utterance | None) -> None:
        if utterance is None:
            return
        audience = self.audience(person, utterance)
        if self._queue.waiting(person.session) >= _MOST_WAITING:
            _log.warning("an utterance of %s was dropped: too many wait for transcription", person.id)
            self._queue.add(("told", audience), lambda: self._deaf(audience, "mumble.too_much"))
            return
        self._queue.add(person.session, lambda: self._understand(person, audience, utterance))

    async def _understand(self, person: Person, audience: Audience, utterance: Utterance) -> None:
        try:
            text = await self._speech.hear(await asyncio.to_thread(as_wav, utterance.samples))
        except ModelError as error:
            _log.warning("an utterance of %s could not be transcribed: %s", person.id, error)
            await self._deaf(audience, "mumble.deaf")
            return
        for deaf_for in list(self._told_deaf):
            self._told_deaf.discard(deaf_for)
            await self._tell(deaf_for, "mumble.hears")
        if not _NOTHING_SAID.fullmatch(text):
            await self._understood(person, audience is not None, text)

    async def _deaf(self, audience: Audience, notice: str) -> None:
        if audience not in self._told_deaf:
            self._told_deaf.add(audience)
            await self._tell(audience, notice)

    async def _tell_once(self, audience: Audience, notice: str) -> None:
        if self._told_mute.get(audience) != notice:
            self._told_mute[audience] = notice
            await self._tell(audience, notice)

    async def _sound(self, output: SpeechOutput, text: str) -> list[bytes]:
        sound = await self._speech.speak(text)
        return await asyncio.to_thread(as_opus, sound, output.bits_per_second)
