"""Commands, the same on every platform.

A text that begins with a slash is a command. `/summary` has two steps; where a user stands in it is a setting, so that
a restart in between does not matter. Any other command, or a text that does not answer the question, ends it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from aforesaid.assistant import privacy, shown
from aforesaid.assistant.answer import Answer, Button
from aforesaid.errors import AforesaidError, InvalidInput, ModelError

if TYPE_CHECKING:
    from aforesaid.memory import Memory, UserMemory

Command: TypeAlias = "Callable[[UserMemory, str], Awaitable[Answer]]"

_STEP: Final = "summary_setup"
_STORAGE: Final = "storage"
_THRESHOLD: Final = "threshold"
_STORAGES: Final[Mapping[str, str]] = {"sqlite": "SQLite", "json": "JSON file"}
_MOST: Final = 500
_ASKING: Final = frozenset({"summary", "forget_me"})
_ERASE: Final = "erase"


class Router:
    """Answers commands. Free text is not its business, but for what a two-step command asked for."""

    def __init__(self, memory: Memory | None = None) -> None:
        """Answer commands. Without the memory of all, nobody can be erased."""
        self._memory = memory
        self._commands: dict[str, tuple[Command, str]] = {
            "help": (self._help, "this list"),
            "summary": (_summary, "set summaries up, in two steps"),
            "summary_status": (_summary_status, "how memory stands"),
            "summary_on": (_summary_on, "summarise by itself"),
            "summary_off": (_summary_off, "stop summarising; nothing is lost"),
            "summary_now": (_summary_now, "summarise now"),
            "historycontext": (_history_context, "what is known of the whole history"),
            "analyze": (_analyze, "analyse the whole history now"),
            "clear": (_clear, "begin anew: earlier messages leave the short-term window"),
            "context": (_context, "what a model would be sent now: /context where do I live?"),
            "remember": (_remember, "remember a fact: /remember I like tea"),
            "forget": (_forget, "forget a fact: /forget tea"),
            "portrait": (_portrait, "what is known about you, in one text"),
            "memories": (_memories, "what is remembered, most important first"),
            "search": (_search, "find something: /search Berlin flat"),
            "remind": (_remind, "remind you of something: /remind call mum tomorrow at 9"),
            "reminders": (_reminders, "what you will be reminded of"),
            "export": (_export, "a copy of all that is stored about you"),
            "forget_me": (_forget_me, "erase all that is stored about you"),
            "explain": (_explain, "find something, and say why: /explain Berlin flat"),
        }

    def commands(self) -> dict[str, str]:
        """Return the name of each command, and what it does."""
        return {name: help_text for name, (_, help_text) in self._commands.items()}

    async def answer(self, user: UserMemory, text: str) -> Answer | None:
        """Answer a command, or the step of one. None: the text is neither."""
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
        """Answer what a two-step command asked for; None where nothing is open, or the text does not fit.

        What does not fit ends the command, unless it is to `stay` open, as when an old button is pressed again.
        """
        step = (await user.settings()).get(_STEP)
        if step is None:
            return None
        if step == _ERASE:
            answer = await self._erase(user, text.strip())
        else:
            answer = await _step(user, str(step), text.strip())
        if answer is None and not stay:
            await self.leave(user)
        return answer

    async def _erase(self, user: UserMemory, text: str) -> Answer | None:
        if text.casefold() == privacy.KEEP:
            await self.leave(user)
            return Answer("Everything is kept.")
        return await privacy.erase(self._memory, user) if text.casefold() == privacy.ERASE else None

    @staticmethod
    async def is_open(user: UserMemory) -> bool:
        """Tell whether a two-step command has asked something that is not answered."""
        return _STEP in await user.settings()

    async def leave(self, user: UserMemory) -> None:
        """End a two-step command that is open."""
        await _leave_setup(user)

    def takes_words(self, name: str) -> bool:
        """Tell whether a command is followed by words, as `/remember I like tea`."""
        return f"/{name} " in self._commands[name][1]

    @staticmethod
    def asks_back(text: str) -> bool:
        """Tell whether a command asks something, so that the next message may be what it asked for."""
        return text.strip()[1:].partition(" ")[0].partition("@")[0].lower() in _ASKING

    async def _help(self, user: UserMemory, rest: str) -> Answer:  # noqa: ARG002 - every command has them
        return Answer("\n".join(f"/{name}  {help_text}" for name, help_text in self.commands().items()))


def is_command(text: str) -> bool:
    """Tell whether a text is meant as a command."""
    return text.lstrip().startswith("/")


async def _safely(command: Command, user: UserMemory, rest: str) -> Answer:
    """Turn an error into words: a command that fails is answered like one that works."""
    try:
        return await command(user, rest)
    except ModelError as error:
        return Answer(f"The model could not do it: {error}. Nothing was changed; try again later.")
    except AforesaidError as error:
        return Answer(f"That did not work: {error}")


async def _leave_setup(user: UserMemory) -> None:
    if _STEP in await user.settings():
        await user.set(_STEP, None)


async def _step(user: UserMemory, step: str, text: str) -> Answer | None:
    if step == _STORAGE:
        chosen = next((word for word, label in _STORAGES.items() if text.lower() in {word, label.lower()}), None)
        if chosen is None:
            return None
        await user.set("storage_type", chosen)
        await user.set(_STEP, _THRESHOLD)
        return Answer(f"After how many messages should I compress?\nSend a number 1-{_MOST}.")
    if not text.lstrip("+-").isdecimal():
        return None
    try:
        await user.set("summary_every_n", int(text))
    except InvalidInput:
        return Answer(f"{text} is not between 1 and {_MOST}. Send a number 1-{_MOST}.")
    await user.set("memory_enabled", True)
    await _leave_setup(user)
    storage = _STORAGES.get(str((await user.settings()).get("storage_type")), "SQLite")
    return Answer(f"External memory configured!\nStorage: {storage}\nThreshold: {int(text)} messages")


async def _summary(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    await user.set(_STEP, _STORAGE)
    buttons = (Button("SQLite (recommended)", "sqlite"), Button("JSON file", "json"))
    return Answer("Choose storage format:", buttons)


async def _summary_status(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    return Answer(shown.status(await user.status()))


async def _summary_on(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    await user.set("memory_enabled", True)
    return Answer(f"Summaries are on: one after every {(await user.status()).threshold} of your messages.")


async def _summary_off(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    await user.set("memory_enabled", False)
    return Answer("Summaries are off. Everything that is stored stays, and messages are still kept.")


async def _summary_now(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    made = await user.summarize()
    if not made:
        return Answer("There is nothing new to summarise.")
    return Answer("\n\n".join(["Summarised:", *(summary.text for summary in made)]))


async def _history_context(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    return Answer(shown.history(await user.history_context()))


async def _analyze(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    await user.summarize()
    return Answer(shown.history(await user.history_context()))


async def _clear(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    await user.clear()
    return Answer("The short-term window is empty now. Everything that was said is kept, and can still be found.")


async def _context(user: UserMemory, rest: str) -> Answer:
    context = await user.context(rest or "…")
    return Answer(context.explain())


async def _remember(user: UserMemory, rest: str) -> Answer:
    if not rest:
        return Answer("Remember what? Like this: /remember I like tea")
    return Answer(shown.remembered(await user.remember(rest)))


async def _forget(user: UserMemory, rest: str) -> Answer:
    if not rest:
        return Answer("Forget what? Like this: /forget tea")
    return Answer(shown.forgotten(await user.forget(rest), rest))


async def _portrait(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    return Answer(await user.portrait() or "Nothing is known about you yet.")


async def _memories(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    return Answer(shown.memories(await user.memories()))


async def _search(user: UserMemory, rest: str) -> Answer:
    return Answer(shown.hits(await user.search(rest)) if rest else "Search for what? Like this: /search Berlin flat")


async def _explain(user: UserMemory, rest: str) -> Answer:
    if not rest:
        return Answer("Explain which search? Like this: /explain Berlin flat")
    return Answer(shown.hits(await user.search(rest, 5), explained=True))


async def _remind(user: UserMemory, rest: str) -> Answer:
    if not rest:
        return Answer("Remind you of what, and when? Like this: /remind call mum tomorrow at 9")
    memory = await user.note("reminder", rest)
    if memory.remind_at is None:
        await user.deactivate(memory.id)
        return Answer("I do not understand when. Like this: /remind call mum tomorrow at 9")
    return Answer(f"I will remind you at {memory.remind_at:%Y-%m-%d %H:%M} (UTC): {rest}")


async def _reminders(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    lines = [
        f"{memory.remind_at:%Y-%m-%d %H:%M} (UTC)  {memory.text}"
        for memory in await user.reminders()
        if memory.remind_at is not None
    ]
    return Answer("\n".join(lines) or "There is nothing to remind you of.")


async def _export(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    return await privacy.copy(user)


async def _forget_me(user: UserMemory, rest: str) -> Answer:  # noqa: ARG001
    await user.set(_STEP, _ERASE)
    return privacy.question()
