"""Speech recognition and speech output of the bot, and their failures.

A failure is reported once to the people concerned, and once more when it is over; the bot continues in text.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from aforesaid.bots.mumble import messages
from aforesaid.bots.mumble.link import Link, Person, VoiceReceived
from aforesaid.bots.mumble.sound import as_opus, as_wav
from aforesaid.bots.mumble.speech import SpeechInput, SpeechOutput, Utterance
from aforesaid.bots.sending import PerThreadQueue
from aforesaid.errors import ModelError

if TYPE_CHECKING:
    from aforesaid.models.speech import RoutedSpeech

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

_DEAF: Final = "(I cannot understand speech at the moment, so please write to me: {})"
_HEARS: Final = "(I can understand speech again.)"
_MUTE: Final = "(I cannot speak at the moment, so I write: {})"
_SILENCED: Final = "(I am not allowed to speak here, so I write.)"

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
            await self._tell_once(audience, _SILENCED, "")
            return " ".join(pieces)
        made = [asyncio.create_task(self._sound(self._speech_output, pieces[0]))]
        for number in range(len(pieces)):
            try:
                sound = await made[number]
            except ModelError as error:
                await self._tell_once(audience, _MUTE, str(error))
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
            self._queue.add(("told", audience), lambda: self._deaf(audience, "more is said than I can listen to"))
            return
        self._queue.add(person.session, lambda: self._understand(person, audience, utterance))

    async def _understand(self, person: Person, audience: Audience, utterance: Utterance) -> None:
        try:
            text = await self._speech.hear(await asyncio.to_thread(as_wav, utterance.samples))
        except ModelError as error:
            _log.warning("an utterance of %s could not be transcribed: %s", person.id, error)
            await self._deaf(audience, str(error))
            return
        for deaf_for in list(self._told_deaf):
            self._told_deaf.discard(deaf_for)
            await self._tell(deaf_for, _HEARS)
        if not _NOTHING_SAID.fullmatch(text):
            await self._understood(person, audience is not None, text)

    async def _deaf(self, audience: Audience, why: str) -> None:
        if audience not in self._told_deaf:
            self._told_deaf.add(audience)
            await self._tell(audience, _DEAF.format(why))

    async def _tell_once(self, audience: Audience, notice: str, why: str) -> None:
        if self._told_mute.get(audience) != notice:
            self._told_mute[audience] = notice
            await self._tell(audience, notice.format(why))

    async def _sound(self, output: SpeechOutput, text: str) -> list[bytes]:
        sound = await self._speech.speak(text)
        return await asyncio.to_thread(as_opus, sound, output.bits_per_second)
