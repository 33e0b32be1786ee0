"""Prepares the sources of a summary: messages, important memories, changes of topic."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from math import exp
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.digest.quality import as_date, shared_words
from aforesaid.domain.checks import Kind, to_zone
from aforesaid.domain.memory import ENDED, MemoryRecord
from aforesaid.domain.message import Message, in_time_order
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Summary
from aforesaid.extras import np, re
from aforesaid.models.offline import Spoken, Summarised
from aforesaid.models.offline.summary.write import BETWEEN
from aforesaid.models.prompts import Fenced, Line, enclose, fence, lines_of, name_speakers
from aforesaid.models.salience import Judgement
from aforesaid.store.memories import Memories
from aforesaid.store.messages import MessagesByNumber
from aforesaid.store.vector_matrix import unpacked
from aforesaid.text.sentences import length_in_words, split_sentences

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aforesaid.store import Store


LONGEST: Final = 8_000
"""Maximum characters of a message shown to a model."""


class Person(NamedTuple):
    """A participant of a day."""

    user: str
    name: str


class DayTalk(NamedTuple):
    """The messages of a day in a space or a direct chat, and the people to summarise it for."""

    day: date
    people: tuple[Person, ...]
    messages: tuple[Message, ...]


def newest(messages: Sequence[Message]) -> list[Message]:
    """Return the newest versions of messages, by when they were said. Those that were taken back have none."""
    return in_time_order(message for message in messages if not message.replaced)


def shown_numbers(messages: Sequence[Message]) -> tuple[int, ...]:
    """Return the sequence numbers of the messages whose texts are shown to what writes a summary."""
    return tuple(message.seq for message in messages if not message.replaced)


def shown(messages: Sequence[Message], zone: tzinfo) -> list[Line]:
    """Return messages as they are shown, in the order of `newest`: names for ids, the time as people read it."""
    return [line._replace(text=line.text[:LONGEST], at=local(line.at, zone)) for line in lines_of(newest(messages))]


def fenced(messages: Sequence[Message], zone: tzinfo) -> Fenced:
    return fence(shown(messages, zone))


def spoken(messages: Sequence[Message], zone: tzinfo, worth: Mapping[int, Worth]) -> list[Spoken]:
    return [
        Spoken(line.speaker, line.text, line.at, line.role, *worth.get(message.seq, USUAL), message.thread)
        for line, message in zip(shown(messages, zone), newest(messages), strict=True)
    ]


def fenced_summaries(summaries: Sequence[Summary], zone: tzinfo) -> Fenced:
    """Return summaries for a prompt, each with the time that it covers."""
    return enclose(
        "summaries",
        "summary",
        (({"from": _day(each.began_at, zone), "to": _day(each.ended_at, zone)}, each.text) for each in summaries),
    )


def summarised(summaries: Sequence[Summary], zone: tzinfo, resolved: frozenset[str] = frozenset()) -> list[Summarised]:
    """Return summaries without the lines that quote what does not hold any more, unless no other line is left."""

    def holding(text: str) -> str:
        return "\n".join(line for line in text.splitlines() if not any(_is_about(line, said) for said in resolved))

    texts = [holding(each.text) if resolved else each.text for each in summaries]
    return [
        Summarised(text, local(each.began_at, zone), local(each.ended_at, zone))
        for text, each in zip(texts if any(texts) else (each.text for each in summaries), summaries, strict=True)
    ]


def _is_about(line: str, said: str) -> bool:
    """Return whether the last turn that a line of a summary quotes, which it is about, is of a message."""
    turn = line.rsplit(BETWEEN, maxsplit=1)[-1].partition(": ")[2]
    return turn != "" and turn in said


def local(at: datetime | None, zone: tzinfo) -> datetime | None:
    return None if at is None else to_zone(at, zone)


def _day(at: datetime, zone: tzinfo) -> str:
    return (local(at, zone) or at).date().isoformat()


_IMPORTANT: Final = 7
"""Importance from which a memory is stated: high and critical."""
_FOUND: Final = ("values/", "salience/")
"""The extractors that find memories without anybody's judgement. What their source says is stated in its own words,"""
_IMPORTANT_FOUND: Final = 8
"""if it is as important as this,"""
_HEALTH: Final = frozenset({"allergy", "condition", "medicine"})
"""and a value only if it is one of these,"""
_SURE: Final = 0.55
"""with at least this confidence. Others are in the portrait."""
_LONGEST_QUOTE: Final = 200
_SHORTEST_QUOTE: Final = 3
"""Characters, and words, of the quotes that state what was found."""
_LABEL: Final = re.compile(r"(?:\S.{0,79}? )?\((\d{4}-\d{2}-\d{2})\): ")
_ALWAYS: Final[frozenset[Kind]] = frozenset({"instruction", "relationship"})
"""Kinds of memories that are stated whatever their importance is."""
_STATED: Final = 0.75
"""Share of a memory's words that a summary has to contain to state it."""
_KNOWN: Final = 1.3
"""Factor for a message that tells the value of a matter, an event or something important."""
_ENDED: Final = 0.3
"""Factor for a message that tells what does not hold any more."""
_PER_MARGIN: Final = 0.4
_USUAL_MARGIN: Final = 0.5
"""A message 0.5 below the salience model's threshold is worth as much as one of which nothing is known."""
_LEAST_WORTH: Final = 0.1
_MOST_WORTH: Final = 3.5
_USUAL: Final = 6
"""The importance of a message as the salience model guesses it, usually."""
_UNCLEAR: Final = -0.1
"""A message whose clarity is below this is quoted together with the message before it."""
_MOST: Final = 0.5
"""Maximum share of a summary that is added for memories which it does not state."""


class ImportantMemory(NamedTuple):
    """A memory that a summary has to state."""

    speaker: str
    """The display name of who said it."""
    day: date
    """When it was said."""
    text: str
    importance: int
    quoted: bool = False
    """Whether the text is of the words of a message."""

    @property
    def line(self) -> str:
        """The memory as a line of a summary, with its speaker and day."""
        # A memory that quotes its speaker begins with the name.
        return f"{self.speaker} ({self.day.isoformat()}): {self.text.removeprefix(f'{self.speaker}: ')}"


class Worth(NamedTuple):
    """How much a message changes in what is known, whether it is understood alone, and its words that became known."""

    factor: float = 1.0
    alone: bool = True
    values: tuple[str, ...] = ()


USUAL: Final = Worth()


class Weights(NamedTuple):
    """What is known of messages that are summarised."""

    important: Sequence[ImportantMemory] = ()
    worth: Mapping[int, Worth] = {}
    """By sequence number."""
    resolved: frozenset[str] = frozenset()
    """The texts of messages that tell what does not hold any more."""


NOTHING_KNOWN: Final = Weights()


async def weights(
    store: Store, scope: Scope, first: int, last: int, zone: tzinfo, worth: Mapping[int, Worth] = MappingProxyType({})
) -> Weights:
    """Return what the memories that rest on a user's messages from `first` to `last` say about these.

    The important ones that hold are in the order of the messages. `worth` is by the meaning of the messages alone.
    """
    sources: dict[int, list[MemoryRecord]] = {}
    telling: dict[int, tuple[str, ...]] = {}
    ended: set[int] = set()
    for memory in await store.read(Memories(scope, active=None, messages=(first, last))):
        seqs = [seq for seq in memory.sources if first <= seq <= last]
        if not memory.active:
            ended.update(seqs if memory.superseded_by is not None or memory.reason == ENDED else ())
            continue
        if memory.matter is not None or memory.event is not None or memory.importance >= _IMPORTANT:
            values = (memory.value,) if memory.value is not None else ()
            telling.update({seq: (*telling.get(seq, ()), *values) for seq in seqs})
        if _is_important(memory):
            sources.setdefault(max(seqs), []).append(memory)
    ended -= telling.keys()
    messages = await store.read(MessagesByNumber(scope, sorted(ended | sources.keys()))) if ended or sources else []
    names = name_speakers(messages)
    important = [
        ImportantMemory(
            names[message.author],
            (local(message.at, zone) or message.at).date(),
            text,
            memory.importance,
            text != memory.text,
        )
        for message in messages
        for memory in sources.get(message.seq, ())
        if (text := _stated(memory, message))
    ]
    known = dict(worth)
    for seq in telling.keys() | ended:
        usual = known.get(seq, USUAL)
        factor = usual.factor * (_KNOWN if seq in telling else _ENDED)
        known[seq] = usual._replace(factor=factor, values=telling.get(seq, ()))
    return Weights(important, known, frozenset(message.text for message in messages if message.seq in ended))


def _is_important(memory: MemoryRecord) -> bool:
    if not memory.extractor.startswith(_FOUND):
        return memory.importance >= _IMPORTANT or memory.kind in _ALWAYS
    if memory.matter is not None:
        return memory.matter in _HEALTH and (memory.confidence or 0.0) >= _SURE
    return memory.importance >= _IMPORTANT_FOUND or memory.kind == "instruction"


def _stated(memory: MemoryRecord, message: Message) -> str:
    """Return the words that state a memory: if nobody judged it, those of its message, which may have none."""
    if not memory.extractor.startswith(_FOUND):
        return memory.text
    value, quote = memory.value, ""
    for each in split_sentences(message.text):
        if (each in memory.text or (value and value in each)) and len(quote) + len(each) < _LONGEST_QUOTE:
            quote = f"{quote} {each}".strip()
    if memory.matter is not None and length_in_words(quote) < _SHORTEST_QUOTE:
        return ""  # "Tonsillitis." says nothing without the question.
    return quote or memory.text


def worth_of(judgement: Judgement) -> Worth:
    """Return the worth of a message by what the salience model says about it."""
    factor = exp(_PER_MARGIN * (judgement.margin + _USUAL_MARGIN)) * (judgement.importance / _USUAL) ** 2
    return Worth(min(max(factor, _LEAST_WORTH), _MOST_WORTH), judgement.clarity >= _UNCLEAR)


def with_important(text: str, memories: Sequence[ImportantMemory], limit: int, shorten: Callable[[int], str]) -> str:
    """Return a summary that states memories: those that it lacks are added as lines.

    The result has at most `limit` characters. `shorten` takes a maximum of characters and returns a summary that
    has no more, to make room. If the lines would take more than half of the limit, the least important memories are
    left out.
    """
    added: list[ImportantMemory] = []
    shortened = text
    while missing := [each for each in memories if each not in added and not _states(shortened, each)]:
        added = _fitting([*added, *missing], int(limit * _MOST))
        lines = "\n".join(each.line for each in memories if each in added)
        room = limit - len(lines) - 1
        shortened = text if len(text) <= room else shorten(room)
        if not set(missing) <= set(added):
            break  # There is no room for all of them.
    # What was shortened may tell one of them now, and one may say what another says, too.
    longest = sorted(added, key=lambda memory: -len(memory.text))
    added = [
        each
        for number, each in enumerate(longest)
        if not (_states(shortened, each) or any(each.text in other.text for other in longest[:number]))
    ]
    every = shortened.splitlines()
    days: list[date] = []
    for line in every:
        label = _LABEL.match(line)
        day = as_date(label[1]) if label else None
        days.append(day or (days[-1] if days else date.min))
    # In a text without dates, such as a model's, they come last.
    for each in sorted((each for each in memories if each in added), key=lambda memory: memory.day):
        place = bisect_right(days, each.day)
        every.insert(place, each.line)
        days.insert(place, each.day)
    return "\n".join(every)


def _fitting(memories: Sequence[ImportantMemory], characters: int) -> list[ImportantMemory]:
    """Return the most important memories whose lines have at most this number of characters together."""
    fitting: list[ImportantMemory] = []
    for each in sorted(memories, key=lambda memory: -memory.importance):
        characters -= len(each.line) + 1
        if characters >= 0:
            fitting.append(each)
    return fitting


def _states(text: str, memory: ImportantMemory) -> bool:
    if memory.quoted and any(sentence in text for sentence in split_sentences(memory.text)):
        return True
    words, shared = shared_words(memory.text, [text], [])
    return shared >= _STATED * words


@dataclass(frozen=True, slots=True)
class TopicRules:
    """Parameters of topic detection, fitted to labelled conversations."""

    before: int = 8
    """Number of messages before a position that are compared with those after it."""
    after: int = 8
    """Number of messages after a position that are compared with those before it."""
    least: int = 6
    """Minimum number of messages on each side."""
    threshold: float = 0.6


RULES: Final = TopicRules()


def changes(seqs: Sequence[int], vectors: Mapping[int, bytes], rules: TopicRules = RULES) -> list[int]:
    """Return the indexes of messages before which the topic changes.

    Only places with enough messages on both sides are looked at. Messages without a vector are left out.
    """
    known = [(place, vectors[seq]) for place, seq in enumerate(seqs) if seq in vectors]
    if len(known) < 2 * rules.least:
        return []
    found = distances(unpacked([value for _, value in known]), rules)
    places = []
    for place, distance in found.items():
        near = [found[other] for other in range(place - rules.least, place + rules.least + 1) if other in found]
        if distance >= rules.threshold and distance == max(near):
            places.append(known[place][0])
    return places


def distances(matrix: NDArray[np.float32], rules: TopicRules = RULES) -> dict[int, float]:
    """Return the difference between the two sides of each position, from 0 (equal) upwards."""
    found = {}
    for place in range(rules.least, len(matrix) - rules.least + 1):
        before = matrix[max(0, place - rules.before) : place].mean(axis=0)
        after = matrix[place : place + rules.after].mean(axis=0)
        length = float(np.linalg.norm(before) * np.linalg.norm(after)) or 1.0
        found[place] = 1.0 - float(before @ after) / length
    return found
