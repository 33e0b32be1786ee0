"""Commands, the same on every platform.

A text that begins with a slash is a command. `/summary` has two steps; the step that a user has reached is a setting,
so it survives a restart. Any other command, or a text that does not answer the question, ends it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from aforesaid.assistant import chat_texts, privacy, reminders
from aforesaid.assistant.answer import Answer
from aforesaid.assistant.summary_setup import SummarySetup
from aforesaid.domain.scope import is_direct
from aforesaid.errors import AforesaidError, ModelError
from aforesaid.models.offline.requests import means_everything

if TYPE_CHECKING:
    from aforesaid.memory import Memory, UserMemory

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
            "reminders": (reminders.manage, "list reminders; cancel or move one: /reminders cancel 12"),
            "timezone": (reminders.set_time_zone, "your time zone: /timezone Europe/Berlin"),
            "export": (_export, "a copy of all that is stored about you"),
            "forget_me": (_forget_me, "erase all that is stored about you"),
            "explain": (_explain, "find something, and say why: /explain Berlin flat"),
        }

    def commands(self) -> dict[str, str]:
        """Return the commands and their descriptions."""
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
        return await _safely(self._commands[name][0], user, rest.strip())

    async def step(self, user: UserMemory, text: str, *, stay: bool = False) -> Answer | None:
        """Handle the answer to a two-step command; return None if none is open or the text does not fit.

        What does not fit ends the command, unless it is to `stay` open, as when an old button is pressed again.
        """
        step = (await user.settings()).get(_STEP)
        if step is None:
            return await reminders.answer_when(user, text)
        if step == _ERASE:
            return await self._erase(user, text, stay=stay)
        answer = await self._setup.step(user, str(step), text.strip())
        if answer is None and not stay:
            await self.leave(user)
        return answer

    async def _erase(self, user: UserMemory, text: str, *, stay: bool) -> Answer | None:
        direct = is_direct(user.scope.thread)
        # A button says exactly what it means; one of another question is no answer to this one.
        reply = privacy.read_reply(text, direct=direct and not stay)
        if reply == "erase":
            return await privacy.erase(self._memory, user)
        if reply is not None or not stay:
            await self.leave(user)
        return None if reply is None else privacy.not_erased(reply, direct=direct)

    @staticmethod
    async def is_open(user: UserMemory) -> bool:
        """Return whether a two-step command waits for an answer."""
        return not {_STEP, reminders.PENDING}.isdisjoint(await user.settings())

    async def leave(self, user: UserMemory) -> None:
        """Cancel an open two-step command."""
        await _leave_setup(user)

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
    """Return whether a text is a command."""
    return text.lstrip().startswith("/")


async def _safely(command: Command, user: UserMemory, rest: str) -> Answer:
    """Answer a failed command with its error."""
    try:
        return await command(user, rest)
    except ModelError as error:
        return Answer(f"{chat_texts.failure(error)} Nothing was changed; try again later.")
    except AforesaidError as error:
        return Answer(f"That did not work: {chat_texts.failure(error)}")


async def _leave_setup(user: UserMemory) -> None:
    settings = await user.settings()
    for open_step in (_STEP, reminders.PENDING):
        if open_step in settings:
            await user.set(open_step, None)


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
    return await reminders.set_reminder(user, rest)


async def _export(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    return await privacy.copy(user)


async def _forget_me(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    await user.set(_STEP, _ERASE)
    return privacy.question()
