"""Requests in free form: "remember that …", "forget that …", "what do you know about @ann", "remind me tomorrow …".

A model says what is asked for, about whom, and in which words. Where there is none, or it fails, rules do.
Reminders are always read by rules: those that read the time.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from aforesaid.assistant import chat_texts, reminders
from aforesaid.assistant.answer import Answer
from aforesaid.assistant.people import Names, meant, with_names
from aforesaid.assistant.turn import Turn
from aforesaid.domain.checks import Within
from aforesaid.domain.message import Message
from aforesaid.domain.scope import is_direct
from aforesaid.errors import AforesaidError, ModelError
from aforesaid.facts import is_about
from aforesaid.models.offline.requests import ME, may_ask, means_everything, recognise_request
from aforesaid.models.prompts import fence, lines_of, load_prompt
from aforesaid.models.prompts.fence import NAMELESS, Line

if TYPE_CHECKING:
    from aforesaid.memory import Memory, UserMemory
    from aforesaid.models.chat import Chat

_log: Final = logging.getLogger("aforesaid.assistant")

_EARLIER: Final = 50
"""Number of earlier messages that "remember this" may refer to."""
_STRANGERS: Final = 50
"""Maximum number of a space's memories searched for statements about an unknown person."""
_SHOWN: Final = 10
"""Number of earlier messages shown to a model."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the memory."""

    action: Literal["remember", "forget", "recall", "remind"]
    about: tuple[str, ...]
    """Ids of the people it may be about: several if ambiguous, none if unknown."""
    word: str
    """The name or mention as written."""
    fact: str
    """What to remember, to forget or to be reminded of. Empty: the messages before, or everything."""


class FreeForm:
    """Recognises and carries out requests."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def recognise(self, turn: Turn) -> Request | None:
        """Return the request of a message; None if it is none."""
        if not may_ask(turn.text):
            return None
        names = await self._names(turn)
        ruled = recognise_request(turn.text, names=names.all(), bots=turn.called)
        action, word, fact = ruled.action, ruled.about or ME, ruled.content
        if action == "remind":
            return Request("remind", (turn.user.scope.user,), ME, fact)
        chat = self._memory.models
        if chat is not None and chat.has("route"):
            try:
                action, word, fact = await _ask(chat, turn, await self._before(turn), names)
            except ModelError as error:
                _log.warning("a message is routed by rules, because the model failed: %s", error)
        if action == "none":
            return None
        about = meant(word, turn, names)
        if is_direct(turn.user.scope.thread):
            # A direct chat knows no other people: what they told the assistant in private stays private.
            about = [user for user in about if user == turn.user.scope.user]
        if action == "recall" and not about and not await self._about_strangers(turn, word):
            # The name is unknown here: treat it as an ordinary question.
            return None
        return Request(action, tuple(about), word, fact)

    async def carry_out(self, turn: Turn, request: Request) -> Answer:
        """Carry out a request and return the outcome."""
        if len(request.about) > 1:
            return Answer(f"I know several people called {request.word}. Mention the one whom you mean.")
        who = request.about[0] if request.about else turn.user.scope.user
        try:
            if request.action == "remind":
                return await reminders.set_reminder(turn.user, request.fact, source=turn.message)
            names = await self._names(turn)
            person = self._person(turn, who)
            if request.action == "remember":
                return await self._remember(turn, request, person, names)
            if request.action == "forget":
                return await _forget(request, person, names, _addressed(turn, who, names))
            if not request.about:
                return Answer("\n".join(await self._about_strangers(turn, request.word)))
            text = await person.portrait(name=names.of(who))
        except ModelError as error:
            return Answer(f"{chat_texts.failure(error)} Nothing was changed; try again later.")
        except AforesaidError as error:
            return Answer(f"That did not work: {chat_texts.failure(error)}")
        return Answer(text or f"I know nothing about {_addressed(turn, who, names)} yet.")

    async def _remember(self, turn: Turn, request: Request, person: UserMemory, names: Names) -> Answer:
        who, speaker = person.scope.user, turn.user.scope.user
        earlier = await self._before(turn)
        fact = with_names(request.fact or turn.quoted or _said_before(earlier, request, turn), names)
        if not fact.strip():
            return Answer("Remember what? Like this: remember that I like tea")
        if not request.about and not is_direct(turn.user.scope.thread):
            # The name is unknown here: the fact is about a stranger, not about the author.
            found = await person.remember(fact, about=request.word, name=names.of(who))
            told = f"I know nobody here called {request.word}. I will remember it about that person, not about you."
            return Answer(told if found.stored else chat_texts.remembered(found))
        found = await person.remember(fact, by=None if who == speaker else speaker, name=names.of(who))
        if found.outcome == "stored" and who != speaker:
            return Answer(f"I will remember that about {_addressed(turn, who, names)}.")
        return Answer(chat_texts.remembered(found))

    async def _names(self, turn: Turn) -> Names:
        """Return the names of the people in the space of a turn; in a direct chat only the person's own."""
        scope = turn.user.scope
        known = {} if is_direct(scope.thread) else await self._memory.names(scope.space)
        return Names.around(turn, known)

    async def _about_strangers(self, turn: Turn, word: str) -> list[str]:
        """Return what people of the space said about an unknown person, by name."""
        if is_direct(turn.user.scope.thread):
            return []
        found = await self._memory.memories(space=turn.user.scope.space, containing=word, limit=_STRANGERS)
        return [memory.text for memory in found if is_about(memory, word)]

    async def _before(self, turn: Turn) -> list[Message]:
        """Return earlier messages of the thread, oldest first, without the turn itself."""
        within: Within = "user" if is_direct(turn.user.scope.thread) else "thread"
        return await turn.user.history(_EARLIER, before=turn.message, within=within)

    def _person(self, turn: Turn, user: str) -> UserMemory:
        """Return a person's memory with the author as the actor of changes."""
        scope = turn.user.scope
        thread = None if is_direct(scope.thread) else scope.thread
        return self._memory.user(user, space=scope.space, thread=thread, actor=scope.user)


async def _forget(request: Request, person: UserMemory, names: Names, who: str) -> Answer:
    if not request.fact or means_everything(request.fact):
        return Answer(chat_texts.forget_everything(who))
    fact = with_names(request.fact, names)
    return Answer(chat_texts.forgotten(await person.forget(fact, name=names.of(person.scope.user)), fact))


def _addressed(turn: Turn, user: str, names: Names) -> str:
    return "you" if user == turn.user.scope.user else names.of(user) or user


async def _ask(
    chat: Chat, turn: Turn, earlier: Sequence[Message], names: Names
) -> tuple[Literal["remember", "forget", "recall", "none"], str, str]:
    """Let a model classify the request, its person and its content."""
    from aforesaid.models.prompts.prompt import RouteReply  # noqa: PLC0415 - brings pydantic

    scope = turn.user.scope
    prompt = load_prompt("route")
    lines = lines_of(earlier[-_SHOWN:], names.shown)
    lines.append(Line(turn.name or NAMELESS["user"], with_names(turn.text, names)))
    routed = (
        await chat.structure(prompt.operation, prompt.render(messages=fence(lines)), RouteReply, scope=scope)
    ).value
    if routed.action == "query":
        return "recall", routed.about, ""
    return routed.action, routed.about, routed.fact


def _said_before(earlier: Sequence[Message], request: Request, turn: Turn) -> str:
    """Return the message that "remember this" refers to: the person's last one, or else another's."""
    speaker = turn.user.scope.user
    said = [
        message
        for message in earlier
        # Requests themselves are skipped.
        if message.role == "user" and recognise_request(message.text, bots=turn.called).action == "none"
    ]
    theirs = [message for message in said if message.author in request.about]
    others = [message for message in said if message.author != speaker]
    found = theirs or others or said
    return found[-1].text if found else ""
