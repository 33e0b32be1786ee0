"""Making an answer: asked for, stored under the id of its question, or found there from before."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.assistant import Answer, Assistant, Turn, failure
from aforesaid.bots.contract import IncomingMessage, Platform
from aforesaid.bots.message_times import MessageTimes
from aforesaid.bots.splitting import split
from aforesaid.bots.stats import BotStats
from aforesaid.domain.message import Message
from aforesaid.domain.receipt import Receipt
from aforesaid.errors import AforesaidError, NotFound

if TYPE_CHECKING:
    from aforesaid.memory import UserMemory

_log: Final = logging.getLogger("aforesaid.bots")

_STORED_AT_ONCE: Final = 16_000
"""A reply of more units is stored in parts: four bytes for each fit into what a message may be."""
_ANSWER: Final = "re:"
"""Before the id of a message: the id of the reply to it."""


class Reply(NamedTuple):
    """What to send."""

    answer: Answer
    name: str
    """The same for the same words, whenever they are sent."""


class Replying:
    """Answers messages that are stored."""

    def __init__(self, platform: Platform, assistant: Assistant, stats: BotStats, times: MessageTimes) -> None:
        self._platform = platform
        self._assistant = assistant
        self._stats = stats
        self._times = times

    async def reply(
        self, user: UserMemory, heard: IncomingMessage, message: Message, tell: Callable[[Receipt], None]
    ) -> Reply:
        """Return the answer to a message, stored. One that was stored before is not made again.

        `tell` is called with what became of storing it. What could not be done is said instead of an answer.
        """
        name = f"{_ANSWER}{heard.id}"
        answer = await _stored(user, name)
        if answer is not None:
            return Reply(answer, name)
        try:
            answer, said = await self._made(user, heard, message)
        except AforesaidError as error:
            # Others may read along. The operator reads the details in the log.
            _log.error("a message of %s could not be answered: %s", heard.address.user, error)
            return self._failed(name, f"({failure(error)} What you said is stored.)")
        if not answer.text.strip():
            return self._failed(name, "(The language model wrote nothing. What you said is stored.)")
        self._stats.answered += 1
        try:
            for number, part in enumerate(split(answer.text, _STORED_AT_ONCE) if said else (), 1):
                at = self._times.sent(heard.address.thread_key, message.at)
                tell(await user.add("assistant", part, id=_part(name, number), at=at))
        except AforesaidError as error:
            _log.error("an answer to %s could not be stored: %s", heard.address.user, error)
            self._stats.failed(f"an answer could not be stored: {error}")
            told = f"{answer.text}\n\n(I could not store that I said this. {failure(error)})"
            return Reply(Answer(told, answer.buttons, answer.file, answer.private), name)
        return Reply(answer, name)

    async def _made(self, user: UserMemory, heard: IncomingMessage, message: Message) -> tuple[Answer, bool]:
        """Return an answer, and whether it is part of the conversation."""
        turn = Turn(user, message.text, message, heard.name, heard.people, heard.called, heard.quoted)
        async with self._platform.typing(heard.address):
            answer = await self._assistant.requested(turn)
            if answer is not None:
                return answer, True
            async with aclosing(self._assistant.answer(turn)) as pieces:
                return Answer("".join([piece async for piece in pieces])), self._assistant.speaks

    def _failed(self, name: str, told: str) -> Reply:
        self._stats.unanswered += 1
        return Reply(Answer(told), f"{name}:failed")


async def found(user: UserMemory, message: str) -> Message | None:
    """Return a message of the user's thread by its id."""
    try:
        return await user.message(message, within="thread")
    except NotFound:
        return None


async def _stored(user: UserMemory, name: str) -> Answer | None:
    """Return a reply that was stored before, and perhaps not sent."""
    parts: list[str] = []
    while (part := await found(user, _part(name, len(parts) + 1))) is not None:
        parts.append(part.text)
    return Answer("\n".join(parts)) if parts else None


def _part(name: str, number: int) -> str:
    """Return the id of a part of a reply."""
    return name if number == 1 else f"{name}:{number}"
