"""Commands about people, privacy, reminders and summaries."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias
from zoneinfo import available_timezones

from aforesaid.assistant import chat_texts, wishes
from aforesaid.assistant.phrases import Phrases, accepted_words
from aforesaid.assistant.wishes import without_address
from aforesaid.domain.checks import Within, to_zone
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.domain.scope import is_direct
from aforesaid.errors import InvalidInput, NotFound
from aforesaid.extras import re
from aforesaid.facts.candidate import DATED
from aforesaid.models.offline import forget_fact
from aforesaid.models.offline.request_rules import AGAIN_AND_AGAIN, REMINDED_OF, recognise_request
from aforesaid.models.prompts import SOMEBODY
from aforesaid.profiles.effective import TIME_ZONE
from aforesaid.text.sentences import split_sentences
from aforesaid.text.times.find import RequestedTime, When, periods, read_requested_time
from aforesaid.text.words import fold, words_of

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
    def words(self) -> str:
        """The text without the name of the assistant."""
        return without_address(self.text, self.called)

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


_AROUND: Final = " \t.!\"'“”„«»。！।،「」"
"""Characters around an answer that do not change it."""
_PAGE: Final = 1000

Reply: TypeAlias = Literal["erase", "keep", "unclear"]


async def copy(user: UserMemory, say: Phrases) -> Answer:
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
    told = say("copy.done", count=len(messages))
    return Answer(told, file=File("my-data.json", content), private=True)


def question(say: Phrases) -> Answer:
    erase, keep = say("erase.word"), say("erase.keep_word")
    return Answer(
        say("erase.question", word=erase),
        (Button(say("erase.erase_button"), erase), Button(say("erase.keep_button"), keep)),
    )


def read_reply(text: str, *, direct: bool) -> Reply | None:
    """Return what a text says to the question; None if it is no answer to it.

    Only the words that the question asks for erase. A "yes" may be a slip, or said to somebody else.
    """
    said = fold(text.strip(_AROUND))
    if said in accepted_words("erase.word"):
        return "erase"
    if said in accepted_words("erase.keep_word") | accepted_words("words.no"):
        return "keep"
    return "unclear" if direct or said in accepted_words("words.yes") else None


def not_erased(reply: Literal["keep", "unclear"], say: Phrases, *, direct: bool) -> Answer:
    """Say that nothing was erased, and how it would be."""
    if reply == "keep":
        return Answer(say("erase.kept"))
    return Answer(say("erase.answer_lost" if direct else "erase.not_erased", word=say("erase.word")))


async def erase(memory: Memory | None, user: UserMemory, say: Phrases) -> Answer:
    if memory is None:
        return Answer(say("erase.impossible"))
    done = await memory.purge(user.scope.user, space=user.scope.space, actor=user.scope.user)
    return Answer(say("erase.done", count=done.messages))


def _plain_answer(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


async def told_here(member: UserMemory) -> list[MemoryRecord]:
    """Return what is known of a member of a group from what they said in it, and nothing from their other chats."""
    said = {each.seq for each in await member.history(_PAGE, author=member.scope.user, within="thread", versions=True)}
    return [each for each in await member.memories() if not said.isdisjoint(each.sources)]


_SEARCHED: Final = 20
"""Messages that are looked at for what is to be forgotten."""


async def forget_said(
    user: UserMemory, what: str, but: Message | None, name: str | None, within: Collection[int] | None = None
) -> list[str]:
    """Take what is to be forgotten out of the person's messages, and return the sentences that are gone.

    Sentences that say something else stay, as an edit, with what is known from them, and so do requests to remember it.
    Earlier versions stay in the log until they are erased. `within` are the numbers of the only messages to look at.
    """
    gone: list[str] = []
    for hit in await user.search(what, _SEARCHED, min_score=0, kinds=("message",)):
        message = hit.message
        if message is None or message.author != user.scope.user or message.role != "user" or message == but:
            continue
        if within is not None and message.seq not in within:
            continue
        if recognise_request(message.text).action == "remember":
            continue
        left = forget_fact(message.text, what, () if name is None else (name,))
        if not left.found:
            continue
        said, kept = split_sentences(message.text), split_sentences(left.text)
        # Of a sentence of which a part stays, what was named is gone.
        gone += [what] if set(kept) - set(said) else [each for each in said if each not in kept]
        words = set(words_of(fold(left.text)))
        stay = [each.id for each in await user.memories() if message.seq in each.sources and each.value is not None]
        await (user.edit(message, left.text) if left.text.strip() else user.take_back(message))
        for each in [await user.read_memory(number) for number in stay]:
            if not each.active and words.issuperset(words_of(fold(each.value or ""))):
                await user.reactivate(each.id)
    return gone


async def forget_period(
    user: UserMemory, start: datetime, end: datetime, say: Phrases, *, but: Message | None
) -> Answer:
    """Take back what the person said in a period. Earlier versions stay in the log until they are erased."""
    gone = 0
    while page := await user.history(_PAGE, role="user", author=user.scope.user, since=start, until=end):
        page = [each for each in page if but is None or each.seq != but.seq]
        if not page:
            break
        for message in page:
            await user.take_back(message)
        gone += len(page)
    date = say.day(start)
    return Answer(say("forget.period", date=date, count=gone) if gone else say("forget.nothing", what=date))


IN_THREAD: Final = "in:"
"""The beginning of a tag of a reminder: the thread in which it is delivered. Without one it is delivered in private."""
FOR_ALL: Final = "for:all"
"""The tag of a reminder for everybody in its thread: all of them may see, move and cancel it."""
PENDING: Final = "reminder_setup"
"""The setting with the id of a reminder without a time, while the bot waits for the answer to "When?"."""
_MOST_WORDS: Final = 1
"""Maximum other words in an answer to "When?", such as "please". With more it is another message."""
_JOINTS_KEPT: Final = {
    "polish": re.compile("(?:^| )o $", re.IGNORECASE),
    "russian": re.compile("(?:^| )(?:о|об|обо) $", re.IGNORECASE),
    "dutch": re.compile("(?:^| )dat $", re.IGNORECASE),
}
"""What stays before the subject of a reminder: without it, the next word would have the wrong form or place."""
_AFTER_TIME: Final = re.compile("^(?:に(?![\u3041-\u309f])|günü )")
"""What is left at the beginning where a time was taken out, in Japanese and Turkish."""
_SHOWN: Final = 50
_SUGGESTED: Final = 3


async def set_reminder(
    user: UserMemory,
    text: str,
    say: Phrases,
    *,
    source: Message | None = None,
    tags: tuple[str, ...] = (),
    name: str | None = None,
) -> Answer:
    """Set a reminder, or ask when. `name` is who is reminded, if not the one who asks; "" for everybody in the chat."""
    said = datetime.now(await user.time_zone())
    requested = read_requested_time(text, said)
    what = _without_joint(text if requested is None else requested.rest, say.language)
    if not what:
        return Answer(say("reminder.what", example=say("example.remind")))
    asked = say("reminder.when", what=what)
    if requested is None:
        return await _ask_when(user, what, source, f"{asked} {say('reminder.how')}", tags)
    try:
        memory = await user.note("reminder", what, when=text, source=source, tags=tags)
    except InvalidInput as error:
        if error.field != "when":
            raise
        return await _ask_when(user, what, source, f"{_refused(requested, said, say)} {asked}", tags)
    # The message may have been learned from before this reminder was stored.
    await unlearn(user, source, but=memory.id)
    return await _confirmed(user, memory, text, say, assumed=requested.assumed, name=name)


async def unlearn(user: UserMemory, source: Message | None, *, but: int | None = None) -> None:
    """Deactivate what is coming up according to a message that only speaks of a reminder."""
    for each in await user.memories() if source is not None else ():
        dated = each.category in DATED or each.happened is not None
        if each.id != but and dated and source is not None and each.sources == (source.seq,):
            await user.deactivate(each.id)


async def _ask_when(
    user: UserMemory, what: str, source: Message | None, question: str, tags: tuple[str, ...]
) -> Answer:
    """Store the reminder without a time, so that it is not extracted from the message again, and ask."""
    memory = await user.note("reminder", what, source=source, tags=tags)
    await user.set(PENDING, memory.id)
    return Answer(question)


def _refused(requested: RequestedTime | None, said: datetime, say: Phrases) -> str:
    """Say why a time is none that a reminder can have: it is over, or there is none in what was said."""
    if requested is None:
        return say("reminder.unreadable")
    start, _, timed = requested.when
    at = to_zone(start, said.tzinfo)
    return say("reminder.past", when=say.moment(at) if timed else say.day(at))


async def _confirmed(
    user: UserMemory, memory: MemoryRecord, text: str, say: Phrases, *, assumed: bool, name: str | None = None
) -> Answer:
    lines = [await _will_remind(user, memory, say, name)]
    at = to_zone(memory.remind_at or datetime.now(UTC), await user.time_zone())
    # An hour that is common in both halves of the day: "at 7", but not "at 10".
    if assumed and memory.remind_at is not None and at.hour % 12 in range(4, 9):
        other = at.replace(hour=(at.hour + 12) % 24)
        if other.timestamp() <= datetime.now(UTC).timestamp():
            other += timedelta(days=1)
        command = say("reminder.move_to", number=str(memory.id), to=f"{other:%Y-%m-%d %H:%M}")
        lines.append(say("reminder.other_half", time=f"{other:%H:%M}", command=command))
    if AGAIN_AND_AGAIN.search(fold(text)):
        lines.append(say("reminder.once"))
    return Answer("\n".join(lines))


async def answer_when(user: UserMemory, text: str, say: Phrases) -> Answer | None:
    """Handle the answer to "When should I remind you?"; return None if nothing was asked or it names no time."""
    number = (await user.settings()).get(PENDING)
    if number is None:
        return None
    await user.set(PENDING, None)
    said = datetime.now(await user.time_zone())
    requested = read_requested_time(text, said)
    if requested is None or len(requested.rest.split()) > _MOST_WORDS:
        return None
    try:
        memory = await user.edit_memory(int(str(number)), when=text)
    except InvalidInput:
        await user.set(PENDING, number)
        return Answer(f"{_refused(requested, said, say)} {say('reminder.how')}")
    except NotFound:
        # It was cancelled or deleted since.
        return None
    return await _confirmed(user, memory, text, say, assumed=requested.assumed)


async def reminders_here(memory: Memory | None, user: UserMemory) -> list[MemoryRecord]:
    """Return a person's reminders and those that others set for everybody in the thread, soonest first."""
    found, scope = await user.reminders(), user.scope
    if memory is None or is_direct(scope.thread):
        return found
    tags = {f"{IN_THREAD}{scope.thread}", FOR_ALL}
    of_space = await memory.memories("reminder", space=scope.space, limit=_PAGE)
    found += [each for each in of_space if each.user != scope.user and tags.issubset(each.tags)]
    never = datetime.max.replace(tzinfo=UTC)
    return sorted(found, key=lambda each: (each.remind_at or never, each.id))


def _owner(memory: Memory | None, user: UserMemory, reminder: MemoryRecord) -> UserMemory:
    """Return the memory of the person who set a reminder; the user is the actor of changes."""
    scope = user.scope
    if memory is None or reminder.user == scope.user:
        return user
    return memory.user(reminder.user, space=scope.space, thread=scope.thread, actor=scope.user)


async def manage(memory: Memory | None, user: UserMemory, rest: str, say: Phrases) -> Answer:
    """List reminders, cancel one (`cancel 12`) or move one (`move 12 tomorrow at 10`)."""
    action, _, more = rest.partition(" ")
    number, _, moved_to = more.strip().lstrip("#").partition(" ")
    if not rest:
        return await _shown(user, await reminders_here(memory, user), say)
    cancels = fold(action) in accepted_words("words.cancel")
    if not number.isdecimal() or not (cancels or fold(action) in accepted_words("words.move")):
        cancel, move = _examples(12, say)
        return Answer(say("reminder.use", list="/reminders", cancel=cancel, move=move))
    chosen = {each.id: each for each in await reminders_here(memory, user)}.get(int(number))
    if chosen is None:
        return Answer(say("reminder.unknown", number=number))
    if cancels:
        return await _cancel(memory, user, [chosen], say)
    if not moved_to.strip():
        return Answer(say("reminder.move_when", example=_examples(chosen.id, say)[1]))
    return await _move(memory, user, chosen, moved_to, say)


async def _shown(user: UserMemory, found: Sequence[MemoryRecord], say: Phrases, question: str = "") -> Answer:
    """List reminders; before them a question, for example which one is meant."""
    zone = await user.time_zone()
    if not found:
        return Answer(say("reminder.none", example=say("example.remind")))
    lines = [question] if question else []
    for memory in found[:_SHOWN]:
        at = None if memory.remind_at is None else to_zone(memory.remind_at, zone)
        when = say("reminder.no_time") if at is None else say.moment_in_list(at)
        lines.append(f"{memory.id}. {when}  {memory.text}")
    if len(found) > _SHOWN:
        lines.append(say("more", count=len(found) - _SHOWN))
    cancel, move = _examples(found[0].id, say)
    lines.append(say("reminder.times", zone=zone, cancel=cancel, move=move))
    return Answer("\n".join(lines))


async def change_reminders(memory: Memory, user: UserMemory, text: str, say: Phrases) -> Answer:
    """Show, cancel or move reminders, as somebody asks for in their own words: "move the dentist one to 10"."""
    moves, cancels = wishes.mentions("move", text), wishes.mentions("cancel", text)
    found = await reminders_here(memory, user)
    if not found or not (moves or cancels):
        return await _shown(user, found, say)
    said = datetime.now(await user.time_zone())
    requested = read_requested_time(text, said, say.language) or (_bare_hour(text, said) if moves else None)
    if cancels and wishes.mentions("all", text) and not moves:
        return await _cancel(memory, user, found, say)
    meant = wishes.chosen(found, text if requested is None or cancels else requested.rest)
    if len(meant) != 1:
        return await _shown(user, found, say, say("reminder.which"))
    if moves and requested is not None:
        return await _move(memory, user, meant[0], text, say)
    if cancels:
        return await _cancel(memory, user, meant, say)
    return Answer(say("reminder.move_when", example=_examples(meant[0].id, say)[1]))


async def _cancel(memory: Memory | None, user: UserMemory, meant: Sequence[MemoryRecord], say: Phrases) -> Answer:
    for each in meant:
        await _owner(memory, user, each).deactivate(each.id)
    return Answer("\n".join(say("reminder.cancelled", what=each.text) for each in meant))


async def _move(memory: Memory | None, user: UserMemory, chosen: MemoryRecord, moved_to: str, say: Phrases) -> Answer:
    """Move a reminder. An hour without a day means that hour on its day, and a day without an hour its hour."""
    zone = await user.time_zone()
    now = said = datetime.now(zone)
    if chosen.remind_at is not None and not periods(moved_to, said):
        said = max(said, to_zone(chosen.remind_at, zone).replace(hour=0, minute=0, second=0, microsecond=0))
    requested = read_requested_time(moved_to, said, say.language) or _bare_hour(moved_to, said)
    at = now if requested is None else requested.when.start
    if requested is not None and not requested.when.timed and chosen.remind_at is not None:
        hour = _bare_hour(re.sub(rf"\b{chosen.id}\b", "", requested.rest), said)
        at = datetime.combine(at, (to_zone(chosen.remind_at, zone) if hour is None else hour.when.start).time(), zone)
    if at <= now:
        return Answer(f"{_refused(requested, said, say)} {say('reminder.stays')} {say('reminder.how')}")
    moved = await _owner(memory, user, chosen).edit_memory(chosen.id, when=at)
    return Answer(await _will_remind(user, moved, say, "" if FOR_ALL in moved.tags else None))


_HOUR: Final = re.compile(r"(?<![\d.:#])([01]?\d|2[0-3])(?:[:.h]([0-5]\d))?(?![\d.:])")


def _bare_hour(text: str, said: datetime) -> RequestedTime | None:
    """Read "move it to 10": the last number is an hour."""
    found = [*_HOUR.finditer(text)]
    if not found:
        return None
    at = said.replace(hour=int(found[-1][1]), minute=int(found[-1][2] or 0), second=0, microsecond=0)
    at += timedelta(days=at <= datetime.now(at.tzinfo))
    rest = text[: found[-1].start()] + text[found[-1].end() :]
    return RequestedTime(When(at, at + timedelta(hours=1), timed=True), assumed=False, rest=rest)


def _examples(number: int, say: Phrases) -> tuple[str, str]:
    """Return the commands that cancel and that move a reminder."""
    return (
        say("reminder.cancel_example", number=str(number)),
        say("reminder.move_example", number=str(number)),
    )


async def set_time_zone(user: UserMemory, rest: str, say: Phrases) -> Answer:
    """Show or set the time zone of a person, by its full name or the name of its city."""
    zone = await user.time_zone()
    if not rest:
        now = say.weekday_and_time(datetime.now(zone))
        return Answer(say("zone.shown", zone=zone, now=now, example=say("example.timezone")))
    named = _zone_named(rest)
    if isinstance(named, list):
        offered = say("zone.offered", zones=", ".join(named)) if named else say("zone.use")
        return Answer(f"{say('zone.unknown', name=rest[:60])} {offered}")
    await user.set(TIME_ZONE, named)
    zone = await user.time_zone()
    lines = [say("zone.set", zone=named, now=say.weekday_and_time(datetime.now(zone)))]
    if any(memory.remind_at for memory in await user.reminders()):
        lines.append(say("zone.same_moment"))
    return Answer("\n".join(lines))


async def _will_remind(user: UserMemory, memory: MemoryRecord, say: Phrases, name: str | None = None) -> str:
    """Say when a reminder comes, in which time zone, and how to set the zone if the person has none."""
    zone = await user.time_zone()
    at = to_zone(memory.remind_at or datetime.now(UTC), zone)
    shown = str(zone) if TIME_ZONE in await user.settings() else say("reminder.zone_hint", zone=zone)
    key = "reminder.set" if name is None else "reminder.set_other" if name else "reminder.set_us"
    return say(key, when=say.moment(at), zone=shown, what=memory.text, name=name)


def _without_joint(text: str, language: str) -> str:
    """Return the subject of a reminder: "to call mum" without its "to"."""
    words = text.strip()
    if words.lower().startswith("me "):
        words = words[3:]
    joint = REMINDED_OF.match(words.lower())
    end = joint.end() if joint else 0
    if language in _JOINTS_KEPT and (kept := _JOINTS_KEPT[language].search(words[:end])) is not None:
        end = kept.start()
    return _AFTER_TIME.sub("", words[end:].strip(" ,:"))


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

    async def begin(self, user: UserMemory, rest: str, say: Phrases) -> Answer:  # noqa: ARG002 - every command has it
        await user.set(self._step_setting, _STORAGE)
        buttons = (Button(say("setup.recommended"), "sqlite"), Button(chat_texts.storage("json", say), "json"))
        return Answer(say("setup.storage"), buttons)

    async def step(self, user: UserMemory, step: str, text: str, say: Phrases) -> Answer | None:
        """Handle the answer to the open question; return None if it does not fit."""
        if step == _STORAGE:
            said = fold(text)
            chosen = (
                "sqlite" if said == "sqlite" else "json" if said in accepted_words("storage.json") | {"json"} else None
            )
            return None if chosen is None else await self._choose(user, chosen, say)
        if not text.lstrip("+-").isdecimal():
            return None
        try:
            await user.set("summary_every_n", int(text))
        except InvalidInput:
            wrong = say("setup.wrong_number", number=text, most=_MOST_MESSAGES)
            return Answer(f"{wrong} {say('setup.number', most=_MOST_MESSAGES)}")
        await user.set("memory_enabled", True)
        await user.set(self._step_setting, None)
        storage = chat_texts.storage((await user.status()).storage, say)
        lines = [say("setup.done"), say("status.storage", storage=storage), say("status.threshold", count=int(text))]
        return Answer("\n".join(lines))

    async def _choose(self, user: UserMemory, chosen: str, say: Phrases) -> Answer:
        status = await user.status()
        lines = []
        storage = chat_texts.storage(status.storage, say)
        if status.storage.partition(" ")[0] == chosen:
            await user.set("storage_type", chosen)
        else:
            lines.append(await self._cannot_switch(chosen, status.storage, say))
        if status.policy != "tree":
            await user.set("memory_enabled", True)
            await user.set(self._step_setting, None)
            summaries = say("setup.summaries", rhythm=chat_texts.rhythm(status, say))
            lines += [say("status.storage", storage=storage), summaries]
            return Answer("\n".join(lines))
        await user.set(self._step_setting, _THRESHOLD)
        lines += [say("setup.threshold"), say("setup.number", most=_MOST_MESSAGES)]
        return Answer("\n".join(lines))

    async def _cannot_switch(self, chosen: str, storage: str, say: Phrases) -> str:
        """Describe the store, and how the operator can migrate it to the chosen kind."""
        here = _FILES["sqlite" if storage.startswith("sqlite") else "json"]
        if self._memory is not None:
            location = dict((await self._memory.store.health()).facts).get("location")
            prefix = "json:" if storage == "json" else "files:" if storage == "files" else ""
            here = here if location is None else f"{prefix}{PurePath(location).name}"
        command = f"aforesaid migrate {here} {_FILES[chosen]}"
        shown = chat_texts.storage(storage, say)
        return say("setup.cannot_switch", storage=shown, command=command, option=f"--store {_FILES[chosen]}")
