"""Requests in free form: "Bot remember that …", "Bot forget that …", "Bot what do you know about @ann".

A model says what is asked for, about whom, and in which words. Where there is none, or it fails, rules do.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from aforesaid.assistant import shown
from aforesaid.assistant.answer import Answer
from aforesaid.assistant.people import meant, with_names
from aforesaid.assistant.turn import Turn
from aforesaid.domain.message import Message
from aforesaid.domain.scope import is_direct
from aforesaid.domain.words import Within
from aforesaid.errors import AforesaidError, ModelError
from aforesaid.models.offline.route import ME, may_ask, route
from aforesaid.models.prompts import fence, lines_of, load_prompt
from aforesaid.models.prompts.fence import Line
from aforesaid.models.prompts.speakers import NAMELESS

if TYPE_CHECKING:
    from aforesaid.memory import Memory, UserMemory
    from aforesaid.models.chat import Chat

_log: Final = logging.getLogger("aforesaid.assistant")

_HEARD: Final = 50
"""Whoever spoke in so many messages before is known by name."""
_SHOWN: Final = 10
"""So many messages before are shown to a model."""


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asks of the memory."""

    action: Literal["remember", "forget", "recall"]
    about: tuple[str, ...]
    """The ids of those who may be meant; more than one where it is not clear, none where nobody is known."""
    word: str
    """Whom it is about, as it was written."""
    fact: str
    """What to remember or to forget. Empty: what was said before, or everything."""


class FreeForm:
    """Recognises and carries out requests."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def recognise(self, turn: Turn) -> Request | None:
        """Return what is asked for; None where it is something else."""
        if not may_ask(turn.text):
            return None
        heard = await self._before(turn)
        names = [name for names in turn.people.values() for name in names]
        names += [message.name for message in heard if message.name and message.role == "user"]
        ruled = route(turn.text, names=names, bots=turn.called)
        action, word, fact = ruled.action, ruled.about or ME, ruled.content
        chat = self._memory.models
        if chat is not None and chat.has("route"):
            try:
                action, word, fact = await _ask(chat, turn, heard)
            except ModelError as error:
                _log.warning("a message is routed by rules, because the model did not do it: %s", error)
        if action == "none":
            return None
        about = meant(word, turn, heard)
        if is_direct(turn.user.scope.thread):
            # Between two there is nobody else: what others told the assistant in private stays there.
            about = [user for user in about if user == turn.user.scope.user]
        if action == "recall" and not about:
            # Nobody here is called so: it is a question like any other.
            return None
        return Request(action, tuple(about), word, fact)

    async def carry_out(self, turn: Turn, request: Request) -> Answer:
        """Do what is asked for, and say what came of it."""
        if len(request.about) > 1:
            return Answer(f"I know several people called {request.word}. Mention the one whom you mean.")
        who = request.about[0] if request.about else turn.user.scope.user
        try:
            person = self._person(turn, who)
            if request.action == "remember":
                return await self._remember(turn, request, person)
            if request.action == "forget":
                return await self._forget(turn, request, person)
            text = await person.portrait(name=self._name(turn, who))
        except ModelError as error:
            return Answer(f"The model could not do it: {error}. Nothing was changed; try again later.")
        except AforesaidError as error:
            return Answer(f"That did not work: {error}")
        return Answer(text or f"I know nothing about {self._addressed(turn, who)} yet.")

    async def _remember(self, turn: Turn, request: Request, person: UserMemory) -> Answer:
        who, speaker = person.scope.user, turn.user.scope.user
        heard = await self._before(turn)
        fact = with_names(request.fact or turn.quoted or _said_before(heard, request, turn), turn, heard)
        if not fact.strip():
            return Answer("Remember what? Like this: remember that I like tea")
        name = self._name(turn, who)
        found = await person.remember(fact, by=None if who == speaker else speaker, name=name)
        text = shown.remembered(found)
        if found.outcome == "stored" and who != speaker:
            text = f"I will remember that about {self._addressed(turn, who)}."
        if not request.about and not is_direct(turn.user.scope.thread):
            text += f" (I know nobody here called {request.word}, so it stands with what I know from you.)"
        return Answer(text)

    async def _forget(self, turn: Turn, request: Request, person: UserMemory) -> Answer:
        if not request.fact:
            return Answer("To have everything erased that I know about you, use /forget_me.")
        heard = await self._before(turn)
        fact = with_names(request.fact, turn, heard)
        return Answer(shown.forgotten(await person.forget(fact, name=self._name(turn, person.scope.user)), fact))

    async def _before(self, turn: Turn) -> list[Message]:
        """Return what was said here before, oldest first, without the turn itself."""
        within: Within = "user" if is_direct(turn.user.scope.thread) else "thread"
        return await turn.user.history(_HEARD, before=turn.message, within=within)

    def _person(self, turn: Turn, user: str) -> UserMemory:
        """Return a person's memory, with the speaker's name under what is changed in it."""
        scope = turn.user.scope
        thread = None if is_direct(scope.thread) else scope.thread
        return self._memory.user(user, space=scope.space, thread=thread, actor=scope.user)

    @staticmethod
    def _name(turn: Turn, user: str) -> str | None:
        return turn.names().get(user)

    def _addressed(self, turn: Turn, user: str) -> str:
        return "you" if user == turn.user.scope.user else self._name(turn, user) or user


async def _ask(
    chat: Chat, turn: Turn, heard: Sequence[Message]
) -> tuple[Literal["remember", "forget", "recall", "none"], str, str]:
    """Have a model say what is asked for, about whom, and in which words."""
    from aforesaid.models.prompts.shapes import Routed  # noqa: PLC0415 - brings pydantic

    scope = turn.user.scope
    prompt = load_prompt("route")
    lines = lines_of(heard[-_SHOWN:], turn.names())
    lines.append(Line(turn.name or NAMELESS["user"], with_names(turn.text, turn, heard)))
    routed = (await chat.structure(prompt.operation, prompt.render(messages=fence(lines)), Routed, scope=scope)).value
    if routed.action == "query":
        return "recall", routed.about, ""
    return routed.action, routed.about, routed.fact


def _said_before(heard: Sequence[Message], request: Request, turn: Turn) -> str:
    """Return what "remember this" points at: the last thing that the person said, or else others, or anybody."""
    speaker = turn.user.scope.user
    said = [
        message
        for message in heard
        # What asks for something is not what is meant.
        if message.role == "user" and route(message.text, bots=turn.called).action == "none"
    ]
    theirs = [message for message in said if message.author in request.about]
    others = [message for message in said if message.author != speaker]
    found = theirs or others or said
    return found[-1].text if found else ""
