"""Commands about people, privacy, reminders and summaries."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from difflib import get_close_matches
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias
from zoneinfo import available_timezones

from aforesaid.assistant import chat_texts
from aforesaid.domain.checks import Within, counted, to_zone
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.domain.scope import is_direct
from aforesaid.errors import InvalidInput, NotFound
from aforesaid.models.offline.request_rules import AGAIN_AND_AGAIN, REMINDED_OF
from aforesaid.models.prompts import SOMEBODY
from aforesaid.profiles.effective import TIME_ZONE
from aforesaid.text.times.find import read_requested_time
from aforesaid.text.words import fold

if TYPE_CHECKING:
    from aforesaid.memory import Memory, UserMemory


CALLED = ("bot", "aforesaid")
"""Default names of the assistant."""
_QUOTED: Final = 500
"""Maximum characters of a quoted text that a model is shown."""


@dataclass(frozen=True, slots=True)
class Turn:
    user: UserMemory
    """The author's memory, in their thread."""
    text: str
    message: Message | None = None
    """The stored message, if it is stored already."""
    name: str | None = None
    """The author's display name."""
    people: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of other people who are present, by id; the display name comes first."""
    called: tuple[str, ...] = CALLED
    """Names of the assistant."""
    quoted: str | None = None
    """The text that it replies to."""

    @property
    def asked(self) -> str:
        """What a model is asked: the text, after the beginning of the one that it replies to."""
        quoted = " ".join((self.quoted or "").split())
        if not quoted:
            return self.text
        return f"(In reply to: “{quoted[:_QUOTED]}{'…' if len(quoted) > _QUOTED else ''}”)\n{self.text}"

    @property
    def within(self) -> Within:
        """Where to read: the whole thread in a channel, the person's messages in a direct chat."""
        return "user" if is_direct(self.user.scope.thread) else "thread"

    def names(self) -> dict[str, str]:
        shown = {user: names[0] for user, names in self.people.items() if names}
        return shown if self.name is None else {**shown, self.user.scope.user: self.name}


_MENTION: Final = re.compile(r"<@!?([^<>\s]{1,255})>")
_ESCAPED: Final = re.compile(r"(?:<|&lt;)@!?([^<>&\s]{1,255})(?:>|&gt;)")
_NUMBERED: Final = re.compile(r" \(\d+\)$")
_ME: Final = frozenset({"", "me", "myself", "i"})
_ASSISTANT: Final = "assistant"


@dataclass(frozen=True, slots=True)
class Names:
    """Names of the people of a space: those present on the platform, and everybody who ever wrote there."""

    shown: Mapping[str, str]
    """The name to show, by id."""
    others: Mapping[str, tuple[str, ...]]
    """All names of a user, by id."""

    @classmethod
    def around(cls, turn: Turn, known: Mapping[str, str]) -> Self:
        """Merge the names of a turn with those in the memory. The turn's are newer."""
        stored = {user: name for user, name in known.items() if user != _ASSISTANT}
        others = {user: (name,) for user, name in stored.items()}
        for user, names in turn.people.items():
            others[user] = tuple(dict.fromkeys((*names, *others.get(user, ()))))
        speaker = turn.user.scope.user
        if turn.name is not None:
            others[speaker] = tuple(dict.fromkeys((turn.name, *others.get(speaker, ()))))
        return cls({**stored, **turn.names()}, others)

    def of(self, user: str) -> str | None:
        return self.shown.get(user)

    def all(self) -> list[str]:
        return [name for names in self.others.values() for name in names]


def meant(word: str, turn: Turn, names: Names) -> list[str]:
    """Return the ids of the users that a word may mean: none if unknown, several if ambiguous."""
    speaker = turn.user.scope.user
    mention = _MENTION.fullmatch(word.strip())
    if mention is not None:
        return [mention[1]]
    # Prompts call the second Ann "Ann (2)".
    wanted = _NUMBERED.sub("", _plain(word))
    if wanted in _ME:
        return [speaker]
    called = {user: {_plain(user), *map(_plain, theirs)} for user, theirs in names.others.items()}
    called.setdefault(speaker, {_plain(speaker)})
    exact = [user for user, theirs in called.items() if wanted in theirs]
    # A first name is enough if only one person has it.
    return exact or [
        user for user, theirs in called.items() if any(wanted == name.partition(" ")[0] for name in theirs)
    ]


def with_names(text: str, names: Names) -> str:
    """Replace mentions by names, in a text as people wrote it or as it is escaped in a prompt."""
    if "@" not in text:
        return text
    return _ESCAPED.sub(lambda found: f"@{names.of(found[1]) or SOMEBODY}", text)


def _plain(name: str) -> str:
    return " ".join(fold(name).split()).removeprefix("@").removesuffix("'s")


@dataclass(frozen=True, slots=True)
class Button:
    """A button. Platforms without buttons show the word to type."""

    label: str
    word: str


@dataclass(frozen=True, slots=True)
class File:
    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """A text with optional buttons and an optional file."""

    text: str
    buttons: tuple[Button, ...] = ()
    file: File | None = None
    private: bool = False
    """Whether only the person who asked may read it, also in a group."""


ERASE: Final = "erase everything"
KEEP: Final = "keep everything"
_YES: Final = frozenset({"yes", "y", "yes please", "ja", "ja bitte", "oui", "si", "sí", "sì", "sim", "erase", "delete"})
_NO: Final = frozenset({"no", "n", "nein", "non", "não", "keep", "cancel"})
_AROUND: Final = " \t.!\"'“”„«»"
"""Characters around an answer that do not change it."""
_PAGE: Final = 1000

Reply: TypeAlias = Literal["erase", "keep", "unclear"]


async def copy(user: UserMemory) -> Answer:
    messages: list[dict[str, Any]] = []
    page = await user.history(_PAGE, versions=True)
    while page:
        messages[:0] = [asdict(message) for message in page]
        page = await user.history(_PAGE, before=page[0], versions=True)
    whole = {
        "user": user.scope.user,
        "space": user.scope.space,
        "written_at": datetime.now(UTC),
        "messages": messages,
        "memories": [asdict(memory) for memory in await user.memories(active=None)],
        "facts": [asdict(facts) for facts in await user.facts()],
        "summaries": [asdict(summary) for summary in await user.summaries(active=None, every_thread=True)],
        "settings": await user.settings(),
    }
    content = json.dumps(whole, ensure_ascii=False, indent=1, default=_plain_answer).encode()
    told = f"This is all that I have stored about you here: {counted(len(messages), 'message')}, and what I know."
    return Answer(told, file=File("my-data.json", content), private=True)


def question() -> Answer:
    return Answer(
        "This erases everything that you said here and all that I know about you, for good. There is no way back. "
        f'Type "{ERASE}" if you are sure; anything else keeps it.',
        (Button("Erase everything", ERASE), Button("Keep everything", KEEP)),
    )


def read_reply(text: str, *, direct: bool) -> Reply | None:
    """Return what a text says to the question; None if it is no answer to it.

    Only the words that the question asks for erase. A "yes" may be a slip, or said to somebody else.
    """
    said = text.casefold().strip(_AROUND)
    if said == ERASE:
        return "erase"
    if said == KEEP or said in _NO:
        return "keep"
    return "unclear" if direct or said in _YES else None


def not_erased(reply: Literal["keep", "unclear"], *, direct: bool) -> Answer:
    """Say that nothing was erased, and how it would be."""
    if reply == "keep":
        return Answer("Nothing was erased. Everything is kept.")
    lost = " What you wrote just now was taken as the answer, and is not stored." if direct else ""
    return Answer(f'Nothing was erased.{lost} To erase everything, send /forget_me and then type "{ERASE}".')


async def erase(memory: Memory | None, user: UserMemory) -> Answer:
    if memory is None:
        return Answer("That cannot be done here. Ask whoever runs this bot.")
    done = await memory.purge(user.scope.user, space=user.scope.space, actor=user.scope.user)
    return Answer(f"Everything is erased: {counted(done.messages, 'message')}, and all that I knew about you.")


def _plain_answer(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


PENDING: Final = "reminder_setup"
"""The setting with the id of a reminder without a time, while the bot waits for the answer to "When?"."""
_EXAMPLE: Final = "/remind call mum tomorrow at 9"
_WHEN: Final = 'Name a day and an hour, such as "tomorrow at 9", "on 3 December at 17:00" or "in two hours".'
_MOST_WORDS: Final = 1
"""Maximum other words in an answer to "When?", such as "please". With more it is another message."""
_CANCEL: Final = frozenset({"cancel", "delete", "remove", "stop"})
_MOVE: Final = frozenset({"move", "change", "set"})
_SHOWN: Final = 50
_SUGGESTED: Final = 3


async def set_reminder(user: UserMemory, text: str, *, source: Message | None = None) -> Answer:
    zone = await user.time_zone()
    said = datetime.now(zone)
    requested = read_requested_time(text, said)
    what = _without_joint(text if requested is None else requested.rest)
    if not what:
        return Answer(f"Remind you of what? Like this: {_EXAMPLE}")
    if requested is None:
        return await _ask_when(user, what, source, f"When should I remind you: {what}? {_WHEN}")
    try:
        memory = await user.note("reminder", what, when=text, source=source)
    except InvalidInput as error:
        question = f"I cannot remind you then: {error}. When should I remind you: {what}?"
        return await _ask_when(user, what, source, question)
    return await _confirmed(user, memory, text, assumed=requested.assumed)


async def _ask_when(user: UserMemory, what: str, source: Message | None, question: str) -> Answer:
    """Store the reminder without a time, so that it is not extracted from the message again, and ask."""
    memory = await user.note("reminder", what, source=source)
    await user.set(PENDING, memory.id)
    return Answer(question)


async def _confirmed(user: UserMemory, memory: MemoryRecord, text: str, *, assumed: bool) -> Answer:
    zone = await user.time_zone()
    lines = [f"I will remind you on {await _when(user, memory.remind_at, zone)}: {memory.text}"]
    at = to_zone(memory.remind_at or datetime.now(UTC), zone)
    # An hour that is common in both halves of the day: "at 7", but not "at 10".
    if assumed and memory.remind_at is not None and at.hour % 12 in range(4, 9):
        other = at.replace(hour=(at.hour + 12) % 24)
        if other.timestamp() <= datetime.now(UTC).timestamp():
            other += timedelta(days=1)
        lines.append(f"Did you mean {other:%H:%M}? Then send /reminders move {memory.id} {other:%Y-%m-%d %H:%M}")
    if AGAIN_AND_AGAIN.search(fold(text)):
        lines.append("I remind you once: I cannot repeat a reminder.")
    return Answer("\n".join(lines))


async def answer_when(user: UserMemory, text: str) -> Answer | None:
    """Handle the answer to "When should I remind you?"; return None if nothing was asked or it names no time."""
    number = (await user.settings()).get(PENDING)
    if number is None:
        return None
    await user.set(PENDING, None)
    requested = read_requested_time(text, datetime.now(await user.time_zone()))
    if requested is None or len(requested.rest.split()) > _MOST_WORDS:
        return None
    try:
        memory = await user.edit_memory(int(str(number)), when=text)
    except InvalidInput as error:
        await user.set(PENDING, number)
        return Answer(f"I cannot remind you then: {error}. {_WHEN}")
    except NotFound:
        # It was cancelled or deleted since.
        return None
    return await _confirmed(user, memory, text, assumed=requested.assumed)


async def manage(user: UserMemory, rest: str) -> Answer:
    """List reminders, cancel one (`cancel 12`) or move one (`move 12 tomorrow at 10`)."""
    action, _, more = rest.partition(" ")
    number, _, moved_to = more.strip().lstrip("#").partition(" ")
    if not rest:
        zone = await user.time_zone()
        found = await user.reminders()
        if not found:
            return Answer(f"There is nothing to remind you of. To set a reminder: {_EXAMPLE}")
        lines = []
        for memory in found[:_SHOWN]:
            at = None if memory.remind_at is None else to_zone(memory.remind_at, zone)
            when = "no time yet" if at is None else f"{at:%a} {at.day} {at:%b %Y, %H:%M}"
            lines.append(f"{memory.id}. {when}  {memory.text}")
        if len(found) > _SHOWN:
            lines.append(f"… and {len(found) - _SHOWN} more")
        first = found[0].id
        lines.append(f"Times: {zone}. To change one: /reminders cancel {first}, /reminders move {first} tomorrow at 10")
        return Answer("\n".join(lines))
    if not number.isdecimal() or action.lower() not in _CANCEL | _MOVE:
        return Answer("Use /reminders, /reminders cancel 12, or /reminders move 12 tomorrow at 10.")
    chosen = {memory.id: memory for memory in await user.reminders()}.get(int(number))
    if chosen is None:
        return Answer(f"You have no reminder {number}. /reminders lists them.")
    if action.lower() in _CANCEL:
        await user.deactivate(chosen.id)
        return Answer(f"Cancelled: {chosen.text}")
    if not moved_to.strip():
        return Answer(f"Move it to when? Like this: /reminders move {number} tomorrow at 10")
    try:
        moved = await user.edit_memory(chosen.id, when=moved_to)
    except (InvalidInput, NotFound) as error:
        return Answer(f"It stays as it is: {error}.")
    zone = await user.time_zone()
    return Answer(f"I will remind you on {await _when(user, moved.remind_at, zone)}: {moved.text}")


async def set_time_zone(user: UserMemory, rest: str) -> Answer:
    """Show or set the time zone of a person, by its full name or the name of its city."""
    if not rest:
        zone = await user.time_zone()
        return Answer(
            f"Your time zone is {zone}: it is {datetime.now(zone):%A, %H:%M} for you. "
            "To change it: /timezone Europe/Berlin"
        )
    named = _zone_named(rest)
    if isinstance(named, list):
        offered = f" Did you mean {', '.join(named)}?" if named else " Use a name such as Europe/Berlin."
        return Answer(f"There is no time zone {rest[:60]!r}.{offered}")
    await user.set(TIME_ZONE, named)
    zone = await user.time_zone()
    lines = [f"Your time zone is {named} now: it is {datetime.now(zone):%A, %H:%M} for you."]
    if any(memory.remind_at for memory in await user.reminders()):
        lines.append("Reminders that are set already ring at the same moment as before; /reminders shows when that is.")
    return Answer("\n".join(lines))


async def _when(user: UserMemory, at: datetime | None, zone: tzinfo) -> str:
    """Return day, hour and time zone, and how to set the zone if the person has none."""
    local = to_zone(at or datetime.now(UTC), zone)
    hint = "" if TIME_ZONE in await user.settings() else "; /timezone sets yours"
    return f"{local:%A}, {local.day} {local:%B %Y} at {local:%H:%M} ({zone}{hint})"


def _without_joint(text: str) -> str:
    """Return the subject of a reminder: "to call mum" without its "to"."""
    words = text.strip()
    if words.lower().startswith("me "):
        words = words[3:]
    joint = REMINDED_OF.match(words.lower())
    return words[joint.end() if joint else 0 :].strip(" ,:")


def _zone_named(name: str) -> str | list[str]:
    wanted = "_".join(name.split()).casefold()
    known = {zone.casefold(): zone for zone in available_timezones()}
    if wanted in known:
        return known[wanted]
    cities = sorted(zone for folded, zone in known.items() if folded.rpartition("/")[2] == wanted)
    if len(cities) == 1:
        return cities[0]
    return cities[:_SUGGESTED] or [known[each] for each in get_close_matches(wanted, known, n=_SUGGESTED, cutoff=0.75)]


_STORAGE: Final = "storage"
_THRESHOLD: Final = "threshold"
_STORAGES: Final[Mapping[str, str]] = {"sqlite": "SQLite", "json": "JSON file"}
_FILES: Final[Mapping[str, str]] = {"sqlite": "memory.db", "json": "json:memory.json"}
_MOST_MESSAGES: Final = 500


class SummarySetup:
    """The dialogue of `/summary`.

    A store belongs to everybody who uses the bot, so a chat cannot replace it while the bot runs. Who chooses another
    kind than the store has gets an answer that names it, and how the operator changes it.
    """

    def __init__(self, memory: Memory | None, step_setting: str) -> None:
        self._memory = memory
        self._step_setting = step_setting

    async def begin(self, user: UserMemory, rest: str) -> Answer:  # noqa: ARG002 - every command has it
        await user.set(self._step_setting, _STORAGE)
        buttons = (Button("SQLite (recommended)", "sqlite"), Button("JSON file", "json"))
        return Answer("Choose storage format:", buttons)

    async def step(self, user: UserMemory, step: str, text: str) -> Answer | None:
        """Handle the answer to the open question; return None if it does not fit."""
        if step == _STORAGE:
            chosen = next((word for word, label in _STORAGES.items() if text.lower() in {word, label.lower()}), None)
            return None if chosen is None else await self._choose(user, chosen)
        if not text.lstrip("+-").isdecimal():
            return None
        try:
            await user.set("summary_every_n", int(text))
        except InvalidInput:
            return Answer(f"{text} is not between 1 and {_MOST_MESSAGES}. Send a number 1-{_MOST_MESSAGES}.")
        await user.set("memory_enabled", True)
        await user.set(self._step_setting, None)
        storage = chat_texts.storage((await user.status()).storage)
        return Answer(f"External memory configured!\nStorage: {storage}\nThreshold: {int(text)} messages")

    async def _choose(self, user: UserMemory, chosen: str) -> Answer:
        status = await user.status()
        lines = []
        if _STORAGES[chosen] == chat_texts.storage(status.storage):
            await user.set("storage_type", chosen)
        else:
            lines.append(await self._cannot_switch(chosen, status.storage))
        if status.policy != "tree":
            await user.set("memory_enabled", True)
            await user.set(self._step_setting, None)
            lines += [f"Storage: {chat_texts.storage(status.storage)}", f"Summaries: {chat_texts.rhythm(status)}"]
            return Answer("\n".join(lines))
        await user.set(self._step_setting, _THRESHOLD)
        lines += ["After how many messages should I compress?", f"Send a number 1-{_MOST_MESSAGES}."]
        return Answer("\n".join(lines))

    async def _cannot_switch(self, chosen: str, storage: str) -> str:
        """Describe the store, and how the operator can migrate it to the chosen kind."""
        here = _FILES["sqlite" if storage.startswith("sqlite") else "json"]
        if self._memory is not None:
            location = dict((await self._memory.store.health()).facts).get("location")
            prefix = "json:" if storage == "json" else "files:" if storage == "files" else ""
            here = here if location is None else f"{prefix}{PurePath(location).name}"
        command = f"aforesaid migrate {here} {_FILES[chosen]}"
        return (
            f"Everything is stored in {chat_texts.storage(storage)} here, for everybody who uses this bot. A chat "
            f"cannot change that, so it stays there. Whoever runs the bot can: stop it, run `{command}`, and start it "
            f"with `--store {_FILES[chosen]}`. /export sends you your own data as a JSON file.\n"
        )
