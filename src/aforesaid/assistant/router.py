"""Routes what somebody says: commands, free-form requests, conversation."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from aforesaid.assistant import chat_texts, commands
from aforesaid.assistant.commands import Answer, Names, SummarySetup, Turn, meant, with_names
from aforesaid.domain.message import Message
from aforesaid.domain.scope import is_direct
from aforesaid.errors import AforesaidError, ModelError
from aforesaid.facts import is_about
from aforesaid.models.offline.request_rules import ME, may_ask, means_everything, recognise_request
from aforesaid.models.prompts import NAMELESS, Line, fence, lines_of, load_prompt

if TYPE_CHECKING:
    from aforesaid.memory import Memory, UserMemory
    from aforesaid.models.chat import Chat


Command: TypeAlias = "Callable[[UserMemory, str], Awaitable[Answer]]"

_STEP: Final = "summary_setup"
"""The setting with the open question of a two-step command."""
_ASKING: Final = frozenset({"summary", "forget_me"})
_ERASE: Final = "erase"


class Router:
    """Answers commands, and free text only as the answer to a two-step command."""

    def __init__(self, memory: Memory | None = None) -> None:
        """Answer commands. Without `memory`, `/forget_me` is not available."""
        self._memory = memory
        self._setup = SummarySetup(memory, _STEP)
        self._commands: dict[str, tuple[Command, str]] = {
            "start": (self._start, "what I do, and three things to try"),
            "help": (self._help, "this list"),
            "summary": (self._setup.begin, "set up summaries, in two steps"),
            "summary_status": (_summary_status, "what is stored and summarised, and when the next summary is due"),
            "summary_on": (_summary_on, "summarise automatically"),
            "summary_off": (_summary_off, "stop summarising; nothing is lost"),
            "summary_now": (_summary_now, "summarise now"),
            "historycontext": (_history_context, "an analysis of the whole history"),
            "analyze": (_analyze, "analyse the whole history again, now"),
            "clear": (_clear, "start over: earlier messages leave the short-term window"),
            "context": (_context, "what a model would be sent now: /context where do I live?"),
            "remember": (_remember, "remember a fact: /remember I like tea"),
            "forget": (_forget, "forget a fact: /forget tea"),
            "portrait": (_portrait, "what is known about you, in one text"),
            "memories": (_memories, "what is remembered, most important first"),
            "timeline": (_timeline, "what happened and what is to come: /timeline what happened in May?"),
            "people": (_people, "who is around you, and what is known of them: /people Sinéad"),
            "search": (_search, "find something: /search Berlin flat"),
            "remind": (_remind, "remind you of something: /remind call mum tomorrow at 9"),
            "reminders": (commands.manage, "list reminders; cancel or move one: /reminders cancel 12"),
            "timezone": (commands.set_time_zone, "your time zone: /timezone Europe/Berlin"),
            "export": (_export, "a copy of all that is stored about you"),
            "forget_me": (_forget_me, "erase all that is stored about you"),
            "explain": (_explain, "find something, and say why: /explain Berlin flat"),
        }

    def commands(self) -> dict[str, str]:
        return {name: help_text for name, (_, help_text) in self._commands.items()}

    async def answer(self, user: UserMemory, text: str) -> Answer | None:
        """Answer a command or a step of one; return None for other texts."""
        if not is_command(text):
            return await self.step(user, text)
        name, _, rest = text.strip()[1:].partition(" ")
        # In groups, platforms write /command@bot.
        name = name.partition("@")[0].lower()
        await self.leave(user)
        if name not in self._commands:
            return Answer(f"There is no command /{name}. /help lists what there is.")
        try:
            return await self._commands[name][0](user, rest.strip())
        except AforesaidError as error:
            return _failed(error)

    async def step(self, user: UserMemory, text: str, *, stay: bool = False) -> Answer | None:
        """Handle the answer to a two-step command; return None if none is open or the text does not fit.

        What does not fit ends the command, unless it is to `stay` open, as when an old button is pressed again.
        """
        step = (await user.settings()).get(_STEP)
        if step is None:
            return await commands.answer_when(user, text)
        if step == _ERASE:
            direct = is_direct(user.scope.thread)
            # A button says exactly what it means; one of another question is no answer to this one.
            reply = commands.read_reply(text, direct=direct and not stay)
            if reply == "erase":
                return await commands.erase(self._memory, user)
            if reply is not None or not stay:
                await self.leave(user)
            return None if reply is None else commands.not_erased(reply, direct=direct)
        answer = await self._setup.step(user, str(step), text.strip())
        if answer is None and not stay:
            await self.leave(user)
        return answer

    @staticmethod
    async def is_open(user: UserMemory) -> bool:
        """Return whether a two-step command waits for an answer."""
        return not {_STEP, commands.PENDING}.isdisjoint(await user.settings())

    async def leave(self, user: UserMemory) -> None:
        settings = await user.settings()
        for open_step in (_STEP, commands.PENDING):
            if open_step in settings:
                await user.set(open_step, None)

    def takes_words(self, name: str) -> bool:
        """Return whether a command takes an argument, such as `/remember I like tea`."""
        return f"/{name} " in self._commands[name][1]

    @staticmethod
    def asks_back(text: str) -> bool:
        """Return whether a command asks a question that the next message may answer."""
        return text.strip()[1:].partition(" ")[0].partition("@")[0].lower() in _ASKING

    async def _start(self, user: UserMemory, rest: str) -> Answer:  # noqa: ARG002 - every command has them
        return Answer(f"{self._welcome()}\n/help lists everything else.")

    async def _help(self, user: UserMemory, rest: str) -> Answer:  # noqa: ARG002
        listed = "\n".join(f"/{name}  {help_text}" for name, help_text in self.commands().items())
        return Answer(f"{self._welcome()}\n\n{listed}")

    def _welcome(self) -> str:
        models = None if self._memory is None else self._memory.models
        speaks = models is not None and models.has("chat")
        return chat_texts.welcome(speaks=speaks)


def is_command(text: str) -> bool:
    return text.lstrip().startswith("/")


def _failed(error: AforesaidError) -> Answer:
    told = chat_texts.failure(error)
    if isinstance(error, ModelError):
        return Answer(f"{told} Nothing was changed; try again later.")
    return Answer(f"That did not work: {told}")


async def _summary_status(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    return Answer(chat_texts.status(await user.status()))


async def _summary_on(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    await user.set("memory_enabled", True)
    status = await user.status()
    if status.policy == "none":
        return Answer("Learning is on. This profile makes no summaries: I store every message and learn single facts.")
    return Answer(f"Summaries are on: {chat_texts.rhythm(status)}.")


async def _summary_off(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    await user.set("memory_enabled", False)
    what = "Learning is off." if (await user.status()).policy == "none" else "Summaries and learning are off."
    return Answer(f"{what} Everything that is stored stays, and messages are still stored.")


async def _summary_now(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    made = await user.summarize()
    if not made:
        return Answer("There is nothing new to summarise.")
    return Answer("\n\n".join(["Summarised:", *(summary.text for summary in made)]))


async def _history_context(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    found = await user.history_context()
    if found.made_at is None and (await user.status()).policy != "tiers":
        # Only the policy `tiers` makes one automatically.
        found = await user.analyze()
    return Answer(found.text)


async def _analyze(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    return Answer((await user.analyze()).text)


async def _clear(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    await user.clear_window()
    return Answer("The short-term window is empty now. Everything that was said is kept, and can still be found.")


async def _context(user: UserMemory, rest: str) -> Answer:
    context = await user.context(rest or "…")
    return Answer(context.explain())


async def _remember(user: UserMemory, rest: str) -> Answer:
    if not rest:
        return Answer("Remember what? Like this: /remember I like tea")
    return Answer(chat_texts.remembered(await user.remember(rest)))


async def _forget(user: UserMemory, rest: str) -> Answer:
    if not rest:
        return Answer("Forget what? Like this: /forget tea")
    if means_everything(rest):
        return Answer(chat_texts.forget_everything())
    return Answer(chat_texts.forgotten(await user.forget(rest), rest))


async def _portrait(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    return Answer(await user.portrait() or "Nothing is known about you yet.")


async def _memories(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    return Answer(chat_texts.memories(await user.memories()))


async def _timeline(user: UserMemory, rest: str) -> Answer:
    found = await user.timeline(query=rest or None)
    return Answer(chat_texts.timeline(found, await user.time_zone()))


async def _people(user: UserMemory, rest: str) -> Answer:
    return Answer(chat_texts.people(await user.people(rest or None), rest))


async def _search(user: UserMemory, rest: str) -> Answer:
    if not rest:
        return Answer("Search for what? Like this: /search Berlin flat")
    return Answer(chat_texts.hits(await user.search(rest)))


async def _explain(user: UserMemory, rest: str) -> Answer:
    if not rest:
        return Answer("Explain which search? Like this: /explain Berlin flat")
    return Answer(chat_texts.hits(await user.search(rest, 5), explained=True))


async def _remind(user: UserMemory, rest: str) -> Answer:
    if not rest:
        return Answer("Remind you of what, and when? Like this: /remind call mum tomorrow at 9")
    return await commands.set_reminder(user, rest)


async def _export(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    return await commands.copy(user)


async def _forget_me(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    await user.set(_STEP, _ERASE)
    return commands.question()


_log: Final = logging.getLogger("aforesaid.assistant")

_EARLIER: Final = 50
"""Number of earlier messages that "remember this" may refer to."""
_STRANGERS: Final = 50
"""Maximum number of a space's memories searched for statements about an unknown person."""
_SHOWN: Final = 10
"""Number of earlier messages shown to a model."""


@dataclass(frozen=True, slots=True)
class Request:
    action: Literal["remember", "forget", "recall", "remind"]
    about: tuple[str, ...]
    """Ids of the people it may be about: several if ambiguous, none if unknown."""
    word: str
    """The name or mention as written."""
    fact: str
    """What to remember, to forget or to be reminded of. Empty: the messages before, or everything."""


class FreeForm:
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
        if len(request.about) > 1:
            return Answer(f"I know several people called {request.word}. Mention the one whom you mean.")
        who = request.about[0] if request.about else turn.user.scope.user
        try:
            if request.action == "remind":
                return await commands.set_reminder(turn.user, request.fact, source=turn.message)
            names = await self._names(turn)
            # The author is the actor of changes.
            scope = turn.user.scope
            thread = None if is_direct(scope.thread) else scope.thread
            person = self._memory.user(who, space=scope.space, thread=thread, actor=scope.user)
            if request.action == "remember":
                return await self._remember(turn, request, person, names)
            if request.action == "forget":
                if not request.fact or means_everything(request.fact):
                    return Answer(chat_texts.forget_everything(_addressed(turn, who, names)))
                fact = with_names(request.fact, names)
                return Answer(chat_texts.forgotten(await person.forget(fact, name=names.of(who)), fact))
            if not request.about:
                return Answer("\n".join(await self._about_strangers(turn, request.word)))
            text = await person.portrait(name=names.of(who))
        except AforesaidError as error:
            return _failed(error)
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
        return await turn.user.history(_EARLIER, before=turn.message, within=turn.within)


def _addressed(turn: Turn, user: str, names: Names) -> str:
    return "you" if user == turn.user.scope.user else names.of(user) or user


async def _ask(
    chat: Chat, turn: Turn, earlier: Sequence[Message], names: Names
) -> tuple[Literal["remember", "forget", "recall", "none"], str, str]:
    """Let a model classify the request, its person and its content."""
    from aforesaid.models.prompts.shapes import RouteReply  # noqa: PLC0415 - brings pydantic

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
