"""Produces the answer to a stored message, and stores it under an id derived from the question's id."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.assistant import Answer, Assistant, SentContext, Turn, failure
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
"""Longer replies are stored in parts. At four bytes per unit, a part stays below the maximum message size."""
_ANSWER: Final = "re:"
"""Prefix: the id of a reply is this and the id of the message that it answers."""


class Reply(NamedTuple):
    """An answer and its idempotency key."""

    answer: Answer
    name: str
    """The same for the same text, whenever it is sent."""


class Replying:
    """Answers messages that are stored."""

    def __init__(self, platform: Platform, assistant: Assistant, stats: BotStats, times: MessageTimes) -> None:
        self._platform = platform
        self._assistant = assistant
        self._stats = stats
        self._times = times

    async def reply(
        self, user: UserMemory, incoming: IncomingMessage, message: Message, tell: Callable[[Receipt], None]
    ) -> Reply:
        """Return the stored answer to a message; produce and store it if there is none yet.

        `tell` is called with the receipt of each stored part. If no answer could be produced, the reply says why.
        """
        name = f"{_ANSWER}{incoming.id}"
        stored = await _stored(user, name)
        if stored is not None:
            return Reply(stored, name)
        quoted = await _quoted(user, incoming, message)
        turn = Turn(user, message.text, message, incoming.name, incoming.people, incoming.called, quoted)
        sent, first = SentContext(), None
        try:
            try:
                answer, said = await self._made(turn, incoming, sent)
            except AforesaidError as error:
                # Other people may read the chat, so the details go to the log only.
                _log.error("a message of %s could not be answered: %s", incoming.address.user, error)
                return self._failed(name, f"({failure(error)} What you said is stored.)")
            if not answer.text.strip():
                return self._failed(name, "(The language model wrote nothing. What you said is stored.)")
            self._stats.answered += 1
            for number, part in enumerate(split(answer.text, _STORED_AT_ONCE) if said else (), 1):
                at = self._times.sent(incoming.address.thread_key, message.at)
                receipt = await user.add("assistant", part, id=_part(name, number), at=at)
                first = first or receipt.message
                tell(receipt)
        except AforesaidError as error:
            _log.error("an answer to %s could not be stored: %s", incoming.address.user, error)
            self._stats.failed(f"an answer could not be stored: {error}")
            told = f"{answer.text}\n\n(I could not store that I said this. {failure(error)})"
            return Reply(Answer(told, answer.buttons, answer.file, answer.private), name)
        finally:  # also without an answer: the model was sent it all the same
            self._assistant.keep_receipt(turn, sent, first)
        return Reply(answer, name)

    async def _made(self, turn: Turn, incoming: IncomingMessage, sent: SentContext) -> tuple[Answer, bool]:
        """Return an answer, and whether it belongs into the log of the conversation."""
        async with self._platform.typing(incoming.address):
            answer = await self._assistant.requested(turn)
            if answer is not None:
                return answer, True
            async with aclosing(self._assistant.answer(turn, sent)) as pieces:
                return Answer("".join([piece async for piece in pieces])), self._assistant.speaks

    def _failed(self, name: str, told: str) -> Reply:
        self._stats.unanswered += 1
        return Reply(Answer(told), f"{name}:failed")


async def found(user: UserMemory, message: str, *, versions: bool = False) -> Message | None:
    """Return a message of the user's thread by its id, as `UserMemory.message` does; None if there is none."""
    try:
        return await user.message(message, within="thread", versions=versions)
    except NotFound:
        return None


async def _stored(user: UserMemory, name: str) -> Answer | None:
    """Return a reply that was stored earlier, whether or not it was sent."""
    parts: list[str] = []
    while (part := await found(user, _part(name, len(parts) + 1), versions=True)) is not None:
        parts.append(part.text)
    return Answer("\n".join(parts)) if parts else None


async def _quoted(user: UserMemory, incoming: IncomingMessage, message: Message) -> str | None:
    """Return the text that a message replies to: what the platform says, or else what is stored of it."""
    if incoming.quoted or message.reply_to is None:
        return incoming.quoted
    stored = await found(user, message.reply_to)
    return None if stored is None else stored.text


def _part(name: str, number: int) -> str:
    """Return the id of a part of a reply."""
    return name if number == 1 else f"{name}:{number}"
