"""Routes what somebody says: commands, free-form requests, conversation."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from aforesaid.assistant import chat_texts, commands, wishes
from aforesaid.assistant.commands import FOR_ALL, IN_THREAD, Answer, Names, SummarySetup, Turn, meant, with_names
from aforesaid.assistant.phrases import ENGLISH, ChatLanguages, Phrases
from aforesaid.domain.checks import Within
from aforesaid.domain.message import Message
from aforesaid.domain.scope import is_direct
from aforesaid.errors import AforesaidError, ModelError
from aforesaid.facts import is_about
from aforesaid.facts.describing import describe, language_of, under_headings
from aforesaid.facts.people import person_called
from aforesaid.models.offline.request_rules import ME, may_ask, means_everything, recognise_request
from aforesaid.models.prompts import NAMELESS, Line, fence, lines_of, load_prompt

if TYPE_CHECKING:
    from aforesaid.digest import HistoryContext
    from aforesaid.memory import Memory, UserMemory
    from aforesaid.models.chat import Chat


Command: TypeAlias = "Callable[[UserMemory, str, Phrases], Awaitable[Answer]]"

_STEP: Final = "summary_setup"
"""The setting with the open question of a two-step command."""
_ASKING: Final = frozenset({"summary", "forget_me"})
_ERASE: Final = "erase"
_MOST_MEMBERS: Final = 50
"""Members of a group of whom its commands speak."""


class Router:
    """Answers commands, and free text only as the answer to a two-step command."""

    def __init__(self, memory: Memory | None = None) -> None:
        """Answer commands. Without `memory`, `/forget_me` is not available."""
        self._memory = memory
        self._setup = SummarySetup(memory, _STEP)
        self.languages = ChatLanguages()
        self._commands: dict[str, Command] = {
            "start": self._start,
            "help": self._help,
            "summary": self._setup.begin,
            "summary_status": self._summary_status,
            "summary_on": _summary_on,
            "summary_off": _summary_off,
            "summary_now": _summary_now,
            "today": partial(_days, 1),
            "week": partial(_days, 7),
            "historycontext": self._history_context,
            "analyze": self._analyze,
            "clear": _clear,
            "context": _context,
            "remember": _remember,
            "forget": _forget,
            "portrait": self._portrait,
            "memories": _memories,
            "timeline": _timeline,
            "people": _people,
            "search": _search,
            "remind": _remind,
            "reminders": partial(commands.manage, memory),
            "timezone": commands.set_time_zone,
            "export": _export,
            "forget_me": _forget_me,
            "explain": _explain,
        }

    def commands(self, say: Phrases | None = None) -> dict[str, str]:
        """Return what each command does, with an example where it takes words."""
        say = say or Phrases.of(ENGLISH)
        return {
            name: say("usage", what=say(f"command.{name}"), example=say(f"example.{name}"))
            if self.takes_words(name)
            else say(f"command.{name}")
            for name in self._commands
        }

    async def answer(self, user: UserMemory, text: str) -> Answer | None:
        """Answer a command or a step of one; return None for other texts."""
        if not is_command(text):
            return await self.step(user, text)
        name, _, rest = text.strip()[1:].partition(" ")
        # In groups, platforms write /command@bot.
        name = name.partition("@")[0].lower()
        await self.leave(user)
        # A command has no language of its own: that of the chat counts, as long as it is known.
        say = await self.languages.of(user)
        if name not in self._commands:
            return Answer(say("command.unknown", name=name))
        try:
            return await self._commands[name](user, rest.strip(), say)
        except AforesaidError as error:
            return _failed(error, say)

    async def step(self, user: UserMemory, text: str, *, stay: bool = False) -> Answer | None:
        """Handle the answer to a two-step command; return None if none is open or the text does not fit.

        What does not fit ends the command, unless it is to `stay` open, as when an old button is pressed again.
        """
        step = (await user.settings()).get(_STEP)
        say = await self.languages.of(user)
        if step is None:
            return await commands.answer_when(user, text, say)
        if step == _ERASE:
            direct = is_direct(user.scope.thread)
            # A button says exactly what it means; one of another question is no answer to this one.
            reply = commands.read_reply(text, direct=direct and not stay)
            if reply == "erase":
                return await commands.erase(self._memory, user, say)
            if reply is not None or not stay:
                await self.leave(user)
            return None if reply is None else commands.not_erased(reply, say, direct=direct)
        answer = await self._setup.step(user, str(step), text.strip(), say)
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
        return f"example.{name}" in Phrases.of(ENGLISH)

    @staticmethod
    def asks_back(text: str) -> bool:
        """Return whether a command asks a question that the next message may answer."""
        return text.strip()[1:].partition(" ")[0].partition("@")[0].lower() in _ASKING

    async def _start(self, user: UserMemory, rest: str, say: Phrases) -> Answer:  # noqa: ARG002 - every command has them
        return Answer(f"{self._welcome(say)}\n{say('start.help')}")

    async def _help(self, user: UserMemory, rest: str, say: Phrases) -> Answer:  # noqa: ARG002
        listed = "\n".join(f"/{name}  {help_text}" for name, help_text in self.commands(say).items())
        return Answer(f"{self._welcome(say)}\n\n{listed}")

    async def _members(self, user: UserMemory) -> dict[str, str]:
        """Return the names of those who wrote in a group, by id; nobody for a direct chat."""
        if self._memory is None or is_direct(user.scope.thread):
            return {}
        names = await self._memory.names(user.scope.space)
        authors = [
            each for each in list(names)[:_MOST_MEMBERS] if await user.count(author=each, role="user", within="thread")
        ]
        return {each: names[each] for each in authors}

    async def _summary_status(self, user: UserMemory, rest: str, say: Phrases) -> Answer:  # noqa: ARG002
        status, members = await user.status(), await self._members(user)
        if self._memory is not None and members:
            of_each = [await self._memory.user(each, space=user.scope.space).status() for each in members]
            here, waiting = [await user.count(within="thread", archived=archived) for archived in (True, False)]
            status = replace(
                status,
                messages=here,
                archived=here - waiting,
                since_last=waiting,
                active_summaries=sum(each.active_summaries for each in of_each),
                highest_level=max(each.highest_level for each in of_each),
            )
        return Answer(chat_texts.status(status, say, group=bool(members)))

    async def _history_context(self, user: UserMemory, rest: str, say: Phrases) -> Answer:
        if _within(user) == "thread":
            return await self._analyze(user, rest, say)
        found = await user.history_context()
        if found.made_at is None and (await user.status()).policy != "tiers":
            # Only the policy `tiers` makes one automatically.
            found = await user.analyze()
        return _analysis(found, say)

    async def _analyze(self, user: UserMemory, rest: str, say: Phrases) -> Answer:  # noqa: ARG002
        if _within(user) == "thread":
            # What everybody said here: an analysis of one person would tell the group of their other chats.
            return Answer(chat_texts.quoted(await user.summarize_thread() or say("known.nothing"), say))
        return _analysis(await user.analyze(), say)

    async def _portrait(self, user: UserMemory, rest: str, say: Phrases) -> Answer:
        members = await self._members(user)
        if self._memory is None or not members:
            return Answer(chat_texts.quoted(await user.portrait() or say("known.nothing"), say))
        asked = (
            meant(rest, Turn(user, rest), Names(members, {each: (name,) for each, name in members.items()}))
            if rest
            else []
        )
        found = []
        for member in asked or members:
            person = self._memory.user(member, space=user.scope.space, thread=user.scope.thread, actor=user.scope.user)
            name = members.get(member, member)
            if member == user.scope.user:
                text = await person.portrait(name=name)
            else:
                # What others said in private is not told here.
                known = await commands.told_here(person)
                lines = describe("", known, person_called(member, name), datetime.now(UTC))
                text = under_headings(lines, language_of(known))
            if text:
                found.append(f"{name}\n{chat_texts.quoted(text, say)}")
        return Answer("\n\n".join(found) or say("known.nothing"))

    def _welcome(self, say: Phrases) -> str:
        models = None if self._memory is None else self._memory.models
        how = "" if models is not None and models.has("chat") else say("start.no_model")
        examples = {name: say(f"start.{name}") for name in ("tell", "ask", "remind")}
        return say("start.welcome", how=how, **examples)


def is_command(text: str) -> bool:
    return text.lstrip().startswith("/")


def _within(user: UserMemory) -> Within:
    """Return what a command speaks of: everybody in a group, or the person in a direct chat."""
    return "user" if is_direct(user.scope.thread) else "thread"


def _failed(error: AforesaidError, say: Phrases) -> Answer:
    why = chat_texts.failure(error, say)
    return Answer(say("error.model_failed" if isinstance(error, ModelError) else "error.failed", why=why))


async def _summary_on(user: UserMemory, rest: str, say: Phrases) -> Answer:  # noqa: ARG001
    await user.set("memory_enabled", True)
    status = await user.status()
    if status.policy == "none":
        return Answer(say("summary.learning_on"))
    return Answer(say("summary.on", rhythm=chat_texts.rhythm(status, say)))


async def _summary_off(user: UserMemory, rest: str, say: Phrases) -> Answer:  # noqa: ARG001
    await user.set("memory_enabled", False)
    return Answer(say("summary.learning_off" if (await user.status()).policy == "none" else "summary.off"))


async def _summary_now(user: UserMemory, rest: str, say: Phrases) -> Answer:  # noqa: ARG001
    if _within(user) == "thread":
        made = [await user.summarize_thread()]
    else:
        made = [summary.text for summary in await user.summarize()]
    if not any(made):
        return Answer(say("summary.nothing_new"))
    return Answer("\n\n".join([say("summary.made"), *(chat_texts.quoted(text, say) for text in made)]))


async def _days(count: int, user: UserMemory, rest: str, say: Phrases) -> Answer:  # noqa: ARG001
    text = await user.summarize_thread(days=count)
    return Answer(chat_texts.quoted(text, say) if text else say("summary.nothing_new"))


def _analysis(found: HistoryContext, say: Phrases) -> Answer:
    return Answer(say("known.nothing") if found.made_at is None else chat_texts.quoted(found.text, say))


async def _clear(user: UserMemory, rest: str, say: Phrases) -> Answer:  # noqa: ARG001
    await user.clear_window()
    return Answer(say("summary.cleared"))


async def _context(user: UserMemory, rest: str, say: Phrases) -> Answer:
    return Answer(chat_texts.context(await user.context(rest or "…"), say))


async def _remember(user: UserMemory, rest: str, say: Phrases) -> Answer:
    if not rest:
        return Answer(chat_texts.example("remember", say))
    return Answer(chat_texts.remembered(await user.remember(rest), say))


async def _forget(user: UserMemory, rest: str, say: Phrases) -> Answer:
    if not rest:
        return Answer(chat_texts.example("forget", say))
    if means_everything(rest):
        return Answer(chat_texts.forget_everything(say))
    return Answer(chat_texts.forgotten(await user.forget(rest), rest, say))


async def _memories(user: UserMemory, rest: str, say: Phrases) -> Answer:  # noqa: ARG001
    return Answer(chat_texts.memories(await user.memories(), say))


async def _timeline(user: UserMemory, rest: str, say: Phrases) -> Answer:
    found = await user.timeline(query=rest or None)
    return Answer(chat_texts.timeline(found, await user.time_zone(), say))


async def _people(user: UserMemory, rest: str, say: Phrases) -> Answer:
    return Answer(chat_texts.people(await user.people(rest or None), rest, say))


async def _search(user: UserMemory, rest: str, say: Phrases) -> Answer:
    if not rest:
        return Answer(chat_texts.example("search", say))
    return Answer(chat_texts.hits(await user.search(rest, within=_within(user)), say))


async def _explain(user: UserMemory, rest: str, say: Phrases) -> Answer:
    if not rest:
        return Answer(chat_texts.example("explain", say))
    return Answer(chat_texts.hits(await user.search(rest, 5, within=_within(user)), say, explained=True))


async def _remind(user: UserMemory, rest: str, say: Phrases) -> Answer:
    if not rest:
        return Answer(chat_texts.example("remind", say))
    return await commands.set_reminder(user, rest, say)


async def _export(user: UserMemory, rest: str, say: Phrases) -> Answer:  # noqa: ARG001
    return await commands.copy(user, say)


async def _forget_me(user: UserMemory, rest: str, say: Phrases) -> Answer:  # noqa: ARG001
    await user.set(_STEP, _ERASE)
    return commands.question(say)


_log: Final = logging.getLogger("aforesaid.assistant")

_EARLIER: Final = 50
"""Number of earlier messages that "remember this" may refer to."""
_STRANGERS: Final = 50
"""Maximum number of a space's memories searched for statements about an unknown person."""
_SHOWN: Final = 10
"""Number of earlier messages shown to a model."""


@dataclass(frozen=True, slots=True)
class Request:
    action: Literal["remember", "forget", "recall", "remind", "reminders", "erase"]
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
        if wishes.asks_only("about_me", turn.words):
            return Request("recall", (turn.user.scope.user,), ME, "")
        parts = await wishes.parts_of(self._memory, turn.words)
        for part in parts:
            reminders = await commands.reminders_here(self._memory, turn.user) if part.may_speak_of_reminders() else []
            if wishes.names_one(reminders, part.text) or (reminders and wishes.moves_it(part.text)):
                return Request("reminders", (turn.user.scope.user,), ME, part.text)
            if part.is_sure("remind"):
                return await self._reminder(turn, part.text)
            if part.is_about_reminders() and not wishes.asks_for_plans(part.text):
                return Request("reminders", (turn.user.scope.user,), ME, part.text)
        if not may_ask(turn.words) and not any(part.is_sure("forget") for part in parts):
            return None
        names = await self._names(turn)
        ruled = recognise_request(turn.words, names=names.all(), bots=turn.called)
        action, word, fact = ruled.action, ruled.about or ME, ruled.content
        if action == "remind":
            return await self._reminder(turn, turn.words)
        chat = self._memory.models
        if chat is not None and chat.has("route"):
            try:
                action, word, fact = await _ask(chat, turn, await self._before(turn), names)
            except ModelError as error:
                _log.warning("a message is routed by rules, because the model failed: %s", error)
        if action == "none" and (wanted := next((each for each in parts if each.is_sure("forget")), None)):
            # Words that name nothing ("forget it") are no request to erase everything.
            action, word, fact = "forget", ME, wishes.read_forgetting(wanted.text) or wanted.text
        elif action == "forget":
            fact = wishes.read_forgetting(fact)
        if action == "none":
            return None
        if action == "forget" and means_everything(fact):
            word = ME
        about = meant(word, turn, names)
        direct = is_direct(turn.user.scope.thread)
        if action == "forget" and about == [turn.user.scope.user] and (not fact or means_everything(fact)) and direct:
            return Request("erase", tuple(about), word, "")
        if direct:
            # A direct chat knows no other people: what they told the assistant in private stays private.
            about = [user for user in about if user == turn.user.scope.user]
        if action == "recall" and not about and not await self._about_strangers(turn, word):
            # The name is unknown here: treat it as an ordinary question.
            return None
        return Request(action, tuple(about), word, fact)

    async def _reminder(self, turn: Turn, text: str) -> Request:
        """Return who is to be reminded of what: the person, everybody in the chat, or a member of the group."""
        wanted = wishes.read_reminder(text)
        direct = is_direct(turn.user.scope.thread)
        if wanted.whose and not direct:
            # A word that is nobody's name belongs to what is asked for.
            whom = tuple(meant(wanted.whose, turn, await self._names(turn)))
            if whom:
                return Request("remind", whom, wanted.whose, wanted.what)
            return Request("remind", (turn.user.scope.user,), ME, text)
        word = "" if wanted.whose == "" and not direct else ME
        what = f"{wanted.whose}: {wanted.what}" if wanted.whose and "@" not in wanted.whose else wanted.what
        return Request("remind", (turn.user.scope.user,), word, what)

    async def carry_out(self, turn: Turn, request: Request, say: Phrases) -> Answer:
        if len(request.about) > 1:
            return Answer(say("remember.several", name=request.word))
        who = request.about[0] if request.about else turn.user.scope.user
        try:
            if request.action == "reminders":
                answer = await commands.change_reminders(self._memory, turn.user, request.fact, say)
                await self._learn_first(turn)
                await commands.unlearn(turn.user, turn.message)
                return answer
            if request.action == "erase":
                await turn.user.set(_STEP, _ERASE)
                return commands.question(say)
            if request.action == "remind":
                return await self._remind(turn, request, say)
            names = await self._names(turn)
            # The author is the actor of changes.
            scope = turn.user.scope
            thread = None if is_direct(scope.thread) else scope.thread
            person = self._memory.user(who, space=scope.space, thread=thread, actor=scope.user)
            if request.action == "remember":
                return await self._remember(turn, request, person, names, say)
            if request.action == "forget":
                if not request.fact or means_everything(request.fact):
                    return Answer(chat_texts.forget_everything(say, _other(turn, who, names)))
                if period := wishes.period_in(request.fact, datetime.now(await turn.user.time_zone()), turn.text):
                    return await commands.forget_period(person, *period, say, but=turn.message)
                fact = with_names(request.fact, names)
                found, gone = await person.forget(fact, name=names.of(who)), list[str]()
                if who == scope.user:
                    # What was never extracted, too: it would be quoted as an answer.
                    gone = await commands.forget_said(person, fact, turn.message, names.of(who))
                    for each in found.memories:
                        # In other words than those of the request.
                        if each.value is not None:
                            await commands.forget_said(person, each.value, turn.message, names.of(who), each.sources)
                bare = wishes.without_first_person(fact)
                if not found and not gone and bare != fact:
                    # "meinen Hund" finds no "mein Hund".
                    found = await person.forget(bare, name=names.of(who))
                return Answer(chat_texts.forgotten(found, fact, say, gone))
            if not request.about:
                return Answer("\n".join(await self._about_strangers(turn, request.word)))
            text = await person.portrait(name=names.of(who))
        except AforesaidError as error:
            return _failed(error, say)
        other = _other(turn, who, names)
        text = text and chat_texts.quoted(text, say)
        return Answer(text or (say("known.nothing_you") if other is None else say("known.nothing_other", name=other)))

    async def _remind(self, turn: Turn, request: Request, say: Phrases) -> Answer:
        scope = turn.user.scope
        # Who is reminded with others, or by somebody else, hears it in the chat in which it was asked for.
        shared = not request.word or request.about[0] != scope.user
        tags: tuple[str, ...] = (f"{IN_THREAD}{scope.thread}", FOR_ALL) if shared else ()
        person, name = turn.user, "" if shared else None
        if request.about[0] != scope.user:
            tags = tags[:1]
            name = (await self._names(turn)).of(request.about[0]) or request.word
            person = self._memory.user(request.about[0], space=scope.space, thread=scope.thread, actor=scope.user)
        source = turn.message if person is turn.user else None
        if source is not None:
            await self._learn_first(turn)
        return await commands.set_reminder(person, request.fact, say, source=source, tags=tags, name=name)

    async def _learn_first(self, turn: Turn) -> None:
        """Learn from the messages now, so that learning in the background stores nothing from a request later."""
        if self._memory.models is None or not self._memory.models.has("chat"):
            await self._memory.learn(turn.user.scope)

    async def _remember(self, turn: Turn, request: Request, person: UserMemory, names: Names, say: Phrases) -> Answer:
        who, speaker = person.scope.user, turn.user.scope.user
        earlier = await self._before(turn)
        fact = with_names(request.fact or turn.quoted or _said_before(earlier, request, turn), names)
        if not fact.strip():
            return Answer(say("like_this", question=say("ask.remember"), example=say("example.free_remember")))
        if not request.about and not is_direct(turn.user.scope.thread):
            # The name is unknown here: the fact is about a stranger, not about the author.
            found = await person.remember(fact, about=request.word, name=names.of(who))
            stranger = say("remember.stranger", name=request.word)
            return Answer(stranger if found.stored else chat_texts.remembered(found, say))
        found = await person.remember(fact, by=None if who == speaker else speaker, name=names.of(who))
        if found.outcome == "stored" and who != speaker:
            return Answer(say("remember.about", name=names.of(who) or who))
        return Answer(chat_texts.remembered(found, say))

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


def _other(turn: Turn, user: str, names: Names) -> str | None:
    """Return the name of a user; None for the one who speaks."""
    return None if user == turn.user.scope.user else names.of(user) or user


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
