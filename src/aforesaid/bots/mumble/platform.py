"""A Mumble server as a platform for a bot."""

from __future__ import annotations

import asyncio
import html
import logging
import uuid
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from cachetools import LRUCache

from aforesaid.assistant import CALLED, Button, File, Phrases, is_command
from aforesaid.assistant.phrases import ENGLISH
from aforesaid.background import end
from aforesaid.bots.bot_session import BotSession
from aforesaid.bots.contract import Address, IncomingMessage
from aforesaid.bots.mumble import link as secure
from aforesaid.bots.mumble.link import Denied, Link, Person, PersonLeft, RateLimit, TextReceived, VoiceReceived
from aforesaid.bots.mumble.messages import UserState
from aforesaid.bots.mumble.speech import Audience, Voice, check_library, speech_text
from aforesaid.bots.sending import split, units
from aforesaid.domain.report import Component
from aforesaid.errors import InvalidInput, PlatformRefused, PlatformUnavailable
from aforesaid.extras import re
from aforesaid.models.speech import RoutedSpeech, speech_health
from aforesaid.settings import MumbleSettings

_BREAKS: Final = frozenset({"br", "p", "div", "li", "tr", "h1", "h2", "h3", "pre", "ul", "ol", "table", "blockquote"})
_UNSEEN: Final = frozenset({"head", "style", "script", "title"})
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n`]*\n(.*?)\n?^ {0,3}\1[ \t]*$", re.MULTILINE | re.DOTALL)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.pictures = 0
        self._unseen = 0
        self._link: tuple[str, int] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSEEN:
            self._unseen += 1
        elif tag in _BREAKS:
            self._line()
        elif tag == "img":
            self.pictures += 1
        elif tag == "a":
            self._link = dict(attrs).get("href") or "", len(self.parts)

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSEEN:
            self._unseen = max(0, self._unseen - 1)
        elif tag in _BREAKS and tag != "br":
            self._line()
        elif tag == "a" and self._link is not None:
            address, start = self._link
            self._link = None
            shown = "".join(self.parts[start:])
            if address and address.rstrip("/") != shown.rstrip("/"):
                self.parts.append(f" ({address})" if shown.strip() else address)

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(data)

    def _line(self) -> None:
        if self.parts:
            self.parts.append("\n")


def plain(markup: str) -> tuple[str, int]:
    """Return a message as plain text, and its number of pictures. Text that is no HTML stays as it is."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    lines = [" ".join(line.split()) for line in "".join(reader.parts).splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), reader.pictures


def marked_up(text: str) -> str:
    parts, at = [], 0
    for block in _FENCE.finditer(text):
        parts += [_lines(text[at : block.start()].strip("\n")), f"<pre>{html.escape(block[2], quote=False)}</pre>"]
        at = block.end()
    parts.append(_lines(text[at:].strip("\n")))
    return "".join(parts)


def _lines(text: str) -> str:
    return html.escape(text, quote=False).replace("\n", "<br/>")


_log: Final = logging.getLogger("aforesaid.bots")

_USUAL_NAME: Final = "Aforesaid"
_MAX_SPOKEN: Final = 1_000
_SHORTEST: Final = 64
_SPOKEN: Final = "voice:"
"""How the ids of spoken messages begin. The view `conversation_history` recognises them by it."""


class Mumble:
    name: Final = "mumble"

    def __init__(
        self,
        settings: MumbleSettings,
        speech: RoutedSpeech | None = None,
        *,
        called: tuple[str, ...] = (),
        rate_limit: RateLimit | None = None,
    ) -> None:
        if settings.host is None:
            raise InvalidInput("no Mumble server is named: set bots.mumble.host or AFORESAID_BOTS__MUMBLE__HOST")
        certificate = None if settings.certificate is None else Path(settings.certificate)
        self._server = secure.Address(settings.host.casefold(), settings.port, settings.fingerprint, certificate)
        self._settings = settings
        self._name = settings.name or next(iter(called), _USUAL_NAME)
        self._called = tuple(dict.fromkeys((self._name, *called, *CALLED)))
        self._speech = speech
        self._rate_limit = rate_limit or RateLimit()
        self._link: Link | None = None
        self._bot_session: BotSession | None = None
        self._voice = None if speech is None or not speech.hears else Voice(speech, self._understood, self._note)
        if speech is not None and (speech.hears or speech.speaks):
            check_library()
        self._spoken: LRUCache[str, bool] = LRUCache(_MAX_SPOKEN)
        """Ids of messages that were spoken: they are answered by voice."""

    @property
    def longest(self) -> int:
        """Half of the server's limit: HTML markup needs the other half."""
        limit = 0 if self._link is None else self._link.message_length
        return max(_SHORTEST, (limit or 5000) // 2)

    @property
    def space(self) -> str:
        return f"{self.name}:{self._server}"

    async def check(self) -> str:
        await self._leave()
        link = await Link.open(self._server, self._name, self._settings.password, self._rate_limit)
        self._link = link
        try:
            # Set the bot's comment and mute state, and join its channel.
            hears = self._voice is not None
            speaks = hears and self._speech is not None and self._speech.speaks
            # It is read by everybody, also before anybody has said anything.
            comment = Phrases.of(ENGLISH)("mumble.comment_hears" if hears else "mumble.comment")
            await link.change(UserState(link.session, self_mute=not speaks, self_deaf=not hears, comment=comment))
            if self._settings.channel is not None:
                channel = link.people.find_channel(self._settings.channel)
                if channel is None:
                    names = ", ".join(sorted(each.name for each in link.people.channels.values()))
                    raise PlatformRefused(
                        f"there is no channel {self._settings.channel!r} on the Mumble server at {self._server}; "
                        f"it has: {names}"
                    )
                await link.change(UserState(link.session, channel_id=channel.id))
            if self._voice is not None:
                self._voice.attach(link)
        except BaseException:
            await self._leave()
            raise
        return link.me.name or self._name

    async def listen(self, session: BotSession) -> None:
        """Pass text and speech to the session until the connection is lost."""
        link = self._connected()
        self._bot_session = session
        noticing = None if self._voice is None else asyncio.create_task(self._voice.notice_ends())
        try:
            async for event in link.events():
                match event:
                    case TextReceived():
                        text, pictures = plain(event.html)
                        await self._hand_in(event.person, event.channel, text, _new_id(), ("picture",) * pictures)
                    case VoiceReceived() if self._voice is not None:
                        self._voice.hear(event)
                    case PersonLeft() if self._voice is not None:
                        self._voice.forget(event.person)
                    case Denied():
                        _log.warning("the Mumble server denied a request: %s", event.why)
                        session.stats.failed(f"the server denied a request: {event.why}")
        except asyncio.CancelledError:
            if self._voice is not None:
                await self._voice.finish()
            raise
        finally:
            await end(noticing)

    async def send(
        self,
        to: Address,
        text: str,
        buttons: Sequence[Button] = (),
        *,
        answers: str | None = None,
        once: str | None = None,  # noqa: ARG002 - Mumble does not detect duplicates
    ) -> None:
        """Write to a channel or a person; answer spoken messages by voice if possible."""
        for button in buttons:
            text += f"\n[{button.word}] {button.label}"
        # Removed first: an answer that fails while it is spoken is written at the next try.
        if answers is not None and self._spoken.pop(answers, False):
            text = await self._speak(to, text)
        if text:
            await self._write(to, text)

    async def send_file(self, to: Address, file: File) -> None:
        """Write that the file cannot be sent: Mumble has no file transfer."""
        await self._write(to, (await self._phrases(to))("mumble.no_files", name=file.name))

    def typing(self, to: Address) -> AbstractAsyncContextManager[None]:  # noqa: ARG002 - Mumble has none
        return nullcontext()

    def reachable(self, to: Address) -> bool:
        """Return whether a person is online: Mumble stores no messages for people who are offline."""
        return to.thread is not None or self._session(to.user) is not None

    async def close(self) -> None:
        await self._leave()
        if self._speech is not None:
            await self._speech.close()

    def parts(self) -> tuple[Component, ...]:
        return () if self._speech is None else speech_health(self._speech)

    async def _leave(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    def _connected(self) -> Link:
        if self._link is None:
            raise PlatformUnavailable(f"the bot is not connected to the Mumble server at {self._server}")
        return self._link

    async def _understood(self, person: Person, whispered: bool, text: str) -> None:  # noqa: FBT001 - a callback
        message = f"{_SPOKEN}{_new_id()}"
        self._spoken[message] = True
        await self._hand_in(person, None if whispered else person.channel, text, message)

    async def _hand_in(
        self, person: Person, channel: int | None, text: str, message: str, attachments: tuple[str, ...] = ()
    ) -> None:
        if self._bot_session is None:
            return
        link, around = self._link, list[Person]()
        if link is not None:
            here, others = link.me.channel, link.people.persons.values()
            us = {link.session, person.session}
            around = [each for each in others if each.channel == here and each.session not in us]
        address = Address(self.name, self._id(person))
        if channel is not None:
            address = Address(self.space, self._id(person), str(channel))
        # Mumble delivers nothing again: what cannot be stored is lost, and the session says so to whoever wrote it.
        await self._bot_session.hear(
            IncomingMessage(
                address,
                message,
                text,
                datetime.now(UTC),
                person.name,
                wanted=channel is None or self._wanted(text, alone=not around),
                people={self._id(each): (each.name,) for each in around},
                called=self._called,
                attachments=attachments,
            )
        )

    def _wanted(self, text: str, *, alone: bool) -> bool:
        """Return whether a text in a channel is for the bot. It always is if only one person is there.

        The bot's own name may be anywhere in the text; general names such as "bot" only at the beginning.
        """
        if alone or self._settings.answer == "always" or is_command(text):
            return True
        general = "|".join(map(re.escape, self._called))
        calls = rf"\W*(?:{general})(?!\w)|.*(?<!\w){re.escape(self._name)}(?!\w)"
        return re.match(calls, text, re.IGNORECASE | re.DOTALL) is not None

    def _id(self, person: Person) -> str:
        return person.id if person.certificate else f"{person.id}@{self._server}"

    def _session(self, user: str) -> int | None:
        link = self._link
        persons = () if link is None else link.people.persons.values()
        return next((each.session for each in persons if self._id(each) == user), None)

    async def _speak(self, to: Address, text: str) -> str:
        """Speak an answer to the channel or to one person; return the text that must still be written."""
        audience = None if to.thread is not None else self._session(to.user)
        if self._voice is None or (to.thread is None and audience is None):
            return text
        say = await self._phrases(to)
        spoken = speech_text(text, say)
        if not spoken.pieces:
            return text
        unspoken = await self._voice.speak(spoken.pieces, audience)
        return text if unspoken or not spoken.whole else ""

    async def _write(self, to: Address, text: str) -> None:
        link = self._connected()
        session = None
        if to.thread is None:
            session = self._session(to.user)
            if session is None:
                raise PlatformUnavailable(f"{to.user} is not on the Mumble server at {self._server}")
        channel = None if to.thread is None else int(to.thread)
        if channel is not None and channel not in link.people.channels:
            raise PlatformRefused(f"the channel {channel} is gone from the Mumble server at {self._server}")
        for part in _fitting(text, link.message_length):
            await link.write(part, channel=channel, session=session)

    async def _phrases(self, to: Address) -> Phrases:
        return Phrases.of(ENGLISH) if self._bot_session is None else await self._bot_session.phrases(to)

    async def _note(self, audience: Audience, key: str) -> None:
        """Write a notice about the bot itself, which is not stored."""
        link = self._connected()
        listener = link.people.persons.get(link.session if audience is None else audience)
        to = Address(self.name, self._name if listener is None else self._id(listener))
        if audience is None:
            to = Address(self.space, to.user, str(link.me.channel))
        text = (await self._phrases(to))(key)
        channel = link.me.channel if audience is None else None
        await link.write(marked_up(text), channel=channel, session=audience)


def _fitting(text: str, limit: int) -> list[str]:
    """Return a text as HTML in parts of at most `limit` units; 0 is no limit.

    Escaped characters, as in code, can make it more than twice as long.
    """
    size = max(_SHORTEST, units(text))
    parts = [marked_up(text)]
    while limit and size > _SHORTEST and any(units(part) > limit for part in parts):
        size = max(_SHORTEST, size // 2)
        parts = [marked_up(part) for part in split(text, size)]
    return parts


def _new_id() -> str:
    """Return a random message id: Mumble has no ids, and delivers no message twice."""
    return uuid.uuid4().hex
