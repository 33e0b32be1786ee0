"""The bot's ears and its voice, and what happens when they fail.

A failure is reported once to the people concerned, and its end once more; the bot continues in text.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from aforesaid.bots.mumble import packets
from aforesaid.bots.mumble.link import Link, Spoke
from aforesaid.bots.mumble.people import Person
from aforesaid.bots.mumble.sound import as_opus, as_wav
from aforesaid.bots.mumble.speech_input import SpeechInput, Utterance
from aforesaid.bots.mumble.speech_output import SpeechOutput
from aforesaid.bots.per_thread_queue import PerThreadQueue
from aforesaid.errors import ModelError

if TYPE_CHECKING:
    from aforesaid.models.speech import RoutedSpeech

_log: Final = logging.getLogger("aforesaid.bots")

_AT_ONCE: Final = 8
_TICK: Final = 0.05
_MOST_WAITING: Final = 5
"""Maximum utterances per person waiting for transcription; further ones are dropped, and the bot says so."""
_PATIENCE: Final = 3.0
_NOTHING_SAID: Final = re.compile(r"[\[(][^\])]*[\])][.\s]*|[.…\s]*")
"""What services write when there were no words: `[BLANK_AUDIO]`, `(silence)`."""

_DEAF: Final = "(I cannot understand speech at the moment, so please write to me: {})"
_HEARS: Final = "(I can understand speech again.)"
_MUTE: Final = "(I cannot speak at the moment, so I write: {})"
_SILENCED: Final = "(I am not allowed to speak here, so I write.)"

Audience: TypeAlias = "int | None"
"""The session of somebody who whispers with the bot; None for the channel."""


class Voice:
    """Listens to everybody, one ear for each, and speaks."""

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
        self._ears: dict[int, tuple[Person, SpeechInput]] = {}
        self._queue = PerThreadQueue(_AT_ONCE)
        self._told_deaf: set[Audience] = set()
        self._told_mute: dict[Audience, str] = {}

    def attach(self, link: Link) -> None:
        """Use another connection from now on."""
        self._link, self._speech_output = link, SpeechOutput(link)
        self._ears.clear()
        # Sessions are numbered anew.
        self._told_deaf.clear()
        self._told_mute.clear()

    def hear(self, event: Spoke) -> None:
        """Take in a moment of somebody's voice."""
        session = event.person.session
        _, ear = self._ears.get(session) or (event.person, SpeechInput())
        self._ears[session] = event.person, ear
        self._said(event.person, ear.take(event.packet, asyncio.get_running_loop().time()))

    def forget(self, person: Person) -> None:
        """Somebody is gone: what they were saying is over."""
        _, ear = self._ears.pop(person.session, (person, None))
        if ear is not None and ear.ends_at is not None:
            self._said(person, ear.tick(ear.ends_at))

    async def notice_ends(self) -> None:
        """Notice when people have stopped to speak. Runs until it is cancelled."""
        while True:
            await asyncio.sleep(_TICK)
            now = asyncio.get_running_loop().time()
            for person, ear in list(self._ears.values()):
                self._said(person, ear.tick(now))

    async def idle(self) -> None:
        """Wait until everything is understood that was said."""
        await self._queue.idle()

    async def finish(self) -> None:
        """Understand what was said, for a moment, and give up on the rest."""
        left = await self._queue.finish(_PATIENCE)
        if left:
            _log.warning("%d utterances were not understood, because the bot stopped", left)

    async def speak(self, pieces: tuple[str, ...], audience: Audience) -> str:
        """Speak; return what could not be spoken and has to be written. Raises PlatformError."""
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
        """Return whom an utterance was for, which is whom the answer is for."""
        return person.session if utterance.target == packets.WHISPER else None

    def _said(self, person: Person, utterance: Utterance | None) -> None:
        if utterance is None:
            return
        audience = self.audience(person, utterance)
        if self._queue.waiting(person.session) >= _MOST_WAITING:
            _log.warning("%s says more than can be listened to", person.id)
            self._queue.add(("told", audience), lambda: self._deaf(audience, "more is said than I can listen to"))
            return
        self._queue.add(person.session, lambda: self._understand(person, audience, utterance))

    async def _understand(self, person: Person, audience: Audience, utterance: Utterance) -> None:
        try:
            text = await self._speech.hear(await asyncio.to_thread(as_wav, utterance.samples))
        except ModelError as error:
            _log.warning("what %s said was not understood: %s", person.id, error)
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

    async def _sound(self, mouth: SpeechOutput, text: str) -> list[bytes]:
        sound = await self._speech.speak(text)
        return await asyncio.to_thread(as_opus, sound, mouth.bits_per_second)
