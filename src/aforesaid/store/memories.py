"""Memories, facts, requests to forget, and values that were worked out: what can be asked, and what changes mean."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from aforesaid.domain import checks
from aforesaid.domain.caches import fast_constructor
from aforesaid.domain.checks import EARLIEST, LATEST, Timely, microseconds, moment, now
from aforesaid.domain.memory import (
    BY_HAND,
    INSTRUCTION,
    MOST_IMPORTANCE,
    SOURCES_KEPT,
    Derived,
    Event,
    Facts,
    MemoryDraft,
    MemoryRecord,
    MemoryVersion,
    NoteKey,
    Superseded,
    Tombstone,
    Unextracted,
    about_in,
    check_memory,
    kind_of,
)
from aforesaid.domain.report import MemoryCount
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import ForgottenRow, MemoryRow, Restored, SuccessorRow
from aforesaid.errors import InvalidInput, NotFound, SourcesChanged, quoted
from aforesaid.store.checksums import SQLITE, both, inserting
from aforesaid.store.messages import MessagesByNumber, expect_newest
from aforesaid.store.operations import Change, OfScope, OfScopeShort, OfSpace, Question, Transaction
from aforesaid.store.people import expect_user, is_user
from aforesaid.store.sql import (
    ACTIVE,
    DAY_OF,
    FIRST_DAY,
    OWNED,
    USER,
    Answer,
    Conditions,
    Row,
    done,
    first,
    listed,
    loaded,
    number,
    rows,
)
from aforesaid.store.summaries import LISTED, covered_messages, summaries_by_number

_HUNDRED: Final = 100
"""Confidence is stored in hundredths, since every database writes whole numbers alike."""
_made: Final = fast_constructor(MemoryRecord)

COLUMNS: Final = tuple(SQLITE.columns["memory"])[3:]
"""The columns of a memory that a change may set, and that are kept of what was before it."""


_SELECTED: Final = ", ".join(f"m.{name}" for name in COLUMNS).replace(
    "m.speaker", "[[m.speaker ~ (SELECT name FROM person WHERE id = m.speaker)]]"
)
MEMORY_OF_ANY_SPACE: Final = f"""
SELECT m.id, [[m.space, m.owner ~ o.space, o.name]],
       [[ARRAY(SELECT s.seq FROM memory_source s WHERE s.space = m.space AND s.memory = m.id ORDER BY s.seq)
       ~ (SELECT json_group_array(s.seq ORDER BY s.seq) FROM memory_source s WHERE s.memory = m.id)]],
       m.created_at, m.revision, {_SELECTED}
  FROM memory m[[ ~  JOIN person o ON o.id = m.owner]]
"""
MEMORY: Final = MEMORY_OF_ANY_SPACE.replace("s.space = m.space", "s.space = $1")
"""What `read_memory` reads, of the space $1."""


def read_memory(row: Row) -> MemoryRecord:
    """Read a row of MEMORY: COLUMNS are its last."""
    (
        number, space, user, sources, created, revision, category, text, importance, tags, active, state, priority,
        speaker, subject, event_start, event_end, event_timed, remind_at, delivered_at, expires_at, valid_from,
        valid_to, superseded_by, extractor, trust, reason, times, seen_at, kind, about, said_at, language, confidence,
        matter, value,
    ) = row  # fmt: skip
    known_tags = () if tags == "[]" else tuple(loaded(tags))
    event = None
    if event_start is not None:
        event = Event(moment(event_start), moment(event_end), bool(event_timed))
    valid = moment(valid_from)
    # Versions that were stored before there were kinds have no kind and no time at which they were said.
    kind = kind or kind_of(category, known_tags, event, subject)
    return _made(
        number, space, user, category, text, importance, known_tags, tuple(loaded(sources)), moment(created),
        bool(active), state, priority, user if speaker is None else speaker, subject, event, _optional(remind_at),
        _optional(delivered_at), _optional(expires_at), valid, _optional(valid_to), superseded_by, extractor, trust,
        reason, times, valid if seen_at == valid_from else moment(seen_at), revision, kind, about,
        valid if said_at is None or said_at == valid_from else moment(said_at), language,
        None if confidence is None else round(confidence / _HUNDRED, 2), matter, value,
    )  # fmt: skip


def _values(within: Transaction, it: MemoryRecord) -> dict[str, Any]:
    speaker = None if it.speaker == it.user else within.person(it.space, it.speaker)
    values = (
        it.category, it.text, it.importance, list(it.tags), it.active, it.state, it.priority, speaker, it.subject,
        *_event(it.event), _optional_number(it.remind_at), _optional_number(it.delivered_at),
        _optional_number(it.expires_at), number_of(it.valid_from), _optional_number(it.valid_to), it.superseded_by,
        it.extractor, it.trust, it.reason, it.times, number_of(it.seen_at), it.kind, it.about, number_of(it.said_at),
        it.language, None if it.confidence is None else round(it.confidence * _HUNDRED), it.matter,
        it.value,
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def number_of(at: datetime) -> int:
    return microseconds(at, "a time of the memory")


def _optional_number(at: datetime | None) -> int | None:
    return None if at is None else number_of(at)


def _event(event: Event | None) -> tuple[int | None, int | None, bool]:
    return (None, None, False) if event is None else (number_of(event.start), number_of(event.end), event.timed)


def _optional(number: int | None) -> datetime | None:
    return None if number is None else moment(number)


_ONE_OF_USER: Final = f"{MEMORY} WHERE [[m.space = $1 AND ]]m.owner = {USER} AND m.id = $3"
_ACTIVE: Final = ACTIVE.format("m")
_RESTING_ON: Final = """
m.id IN (SELECT s.memory FROM memory_source s WHERE [[s.space = $1 AND ]]s.seq BETWEEN {0} AND {1})
"""
_TIMELY: Final[Mapping[Timely, str]] = {
    "expiry": f"{_ACTIVE} AND m.expires_at IS NOT NULL AND m.expires_at <= $1 ORDER BY m.expires_at, m.id[[, m.space]]",
    "reminder": f"""
        {_ACTIVE} AND m.remind_at IS NOT NULL AND m.delivered_at IS NULL AND m.remind_at <= $1
        ORDER BY m.remind_at, m.id[[, m.space]]
    """,
    "unseen": f"""
        {_ACTIVE} AND m.seen_at <= $1 AND NOT EXISTS (
            SELECT 1 FROM memory_version v WHERE [[v.space = m.space AND ]]v.memory = m.id AND v.at > $1)
        ORDER BY m.seen_at, m.id[[, m.space]]
    """,
}
_MEMORY_COUNTS: Final = f"""
SELECT {DAY_OF.format("coalesce(m.said_at, m.valid_from)")}, m.category, m.importance, m.state, count(*)
  FROM memory m[[ ~  JOIN person o ON o.id = m.owner]] WHERE {{limits}} GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
"""
_VERSIONS: Final = """
SELECT revision, at, actor, action, was,
       [[was ->> 'speaker' ~ (SELECT name FROM person WHERE id = json_extract(was, '$.speaker'))]]
  FROM memory_version WHERE [[space = $1 AND ]]memory = $2 ORDER BY revision
"""
# SQLite's index holds nobody but those whom it is about.
_UNEXTRACTED: Final = """
SELECT space, name, extracted, last_seq FROM person[[ ~  INDEXED BY person_to_extract]] WHERE last_seq > extracted
   AND [[(space, name) > ($1, $2) ORDER BY space, name
     ~ id > coalesce((SELECT id FROM person WHERE space = $1 AND name = $2), 0) ORDER BY id]] LIMIT $3
"""


def _memories(text: str, *values: Any) -> Answer[list[MemoryRecord]]:  # noqa: ANN401 - whatever the text binds
    return [read_memory(row) for row in (yield from rows(text, *values))]


@dataclass(frozen=True, slots=True)
class Memories(OfScopeShort[list[MemoryRecord]]):
    """The user's memories, most important first, newest first among equals."""

    active: bool | None = True
    messages: tuple[int, int] | None = None
    """If given, only memories that rest on a message from the first sequence number to the last one."""

    def answer(self) -> Answer[list[MemoryRecord]]:
        limits = Conditions(f"[[m.space = $1 AND ]]m.owner = {USER}", *self.scope[:2])
        if self.active is not None:
            limits.add(_ACTIVE if self.active else "NOT m.active")
        if self.messages is not None:
            limits.add(_RESTING_ON, *self.messages)
        return _memories(f"{MEMORY} WHERE {limits} ORDER BY m.importance DESC, m.id DESC", *limits.values)


_OWN: Final = f"[[m.space = $1 AND ]]m.owner = {USER}"
_ANY_OWN: Final = f"[[m.space = $1 AND m.owner ~ +m.owner]] = {USER}"
"""The same for rows found by their numbers, where the index of the owner would read everything that the owner has."""
_HEARSAY: Final = "m.trust = 'reported' AND (m.about IS NULL OR m.about = $2)"
_DESCRIBING: Final = f"""
m.category != 'reminder' AND m.kind != 'reminder' AND NOT ({_HEARSAY})
AND NOT (m.extractor = '{BY_HAND}' AND m.about IS NOT NULL AND m.about != $2)
AND (m.expires_at IS NULL OR m.expires_at > {{0}})
"""
_LEAST_NOTES: Final = 10
"""Notes beside the values that describe a person, however many these are."""
_OF_REQUEST: Final = f"m.kind = '{INSTRUCTION}' AND m.speaker IS NULL"
_TO_DELIVER: Final = "m.delivered_at IS NULL AND (m.remind_at IS NOT NULL OR m.category = 'reminder')"
# SQLite would take the index of all that is active.
_WAITING: Final = MEMORY.replace("FROM memory m", "FROM memory m[[ ~  INDEXED BY memory_to_deliver]]")
_START: Final = "coalesce(m.event_start, m.said_at, m.valid_from)"
_END: Final = f"coalesce(m.event_end, {_START})"
_DATED: Final = "m.kind != 'reminder' AND (m.kind = 'event' OR m.event_start IS NOT NULL)"
_TOOK_PLACE: Final = f"""
{_DATED} AND (m.state IN ('active', 'expired')
    OR (m.state = 'superseded' AND m.kind = 'event' AND {_END} <= m.valid_to))
"""
_WITHIN: Final = f"{_START} < {{1}} AND [[greatest ~ max]]({_END}, {_START}) >= {{0}}"
_RELEVANT: Final = f"""
WITH worded AS ([[SELECT (e ->> 0)::bigint AS id, (e ->> 1)::float8 AS relevance FROM jsonb_array_elements($3::jsonb) e
         ~ SELECT value ->> 0 AS id, value ->> 1 AS relevance FROM json_each($3)]]),
     said AS ([[SELECT (e ->> 0)::bigint AS seq, (e ->> 1)::float8 AS relevance FROM jsonb_array_elements($4::jsonb) e
       ~ SELECT value ->> 0 AS seq, value ->> 1 AS relevance FROM json_each($4)]]),
     best AS MATERIALIZED (SELECT id, max(relevance) AS relevance FROM (
         SELECT id, relevance FROM worded
         UNION ALL SELECT s.memory, said.relevance FROM said JOIN memory_source s
             ON [[s.space = $1 AND ]]s.seq = said.seq) x GROUP BY id)
{MEMORY.replace("SELECT m.id", "SELECT b.relevance, m.id", 1)} JOIN best b ON b.id = m.id
 WHERE {_ANY_OWN} AND {{limits}}
 ORDER BY b.relevance * ({MOST_IMPORTANCE} + m.importance) DESC, m.importance DESC, m.id DESC LIMIT {{limit}}
"""


@dataclass(frozen=True, slots=True)
class StandingRequests(OfScopeShort[list[MemoryRecord]]):
    """The newest of the user's own standing requests that are active, newest first."""

    limit: int

    def answer(self) -> Answer[list[MemoryRecord]]:
        text = f"{MEMORY} WHERE {_OWN} AND {_ACTIVE} AND {_OF_REQUEST} ORDER BY m.id DESC LIMIT $3"
        return _memories(text, *self.scope[:2], self.limit)


@dataclass(frozen=True, slots=True)
class ImportantMemories(OfScopeShort[list[MemoryRecord]]):
    """The most important active memories, newest first among equals: without what others said about the user.

    With `describing`, only those that describe the user or the people around them, values first: no reminders, nothing
    that somebody asked to be remembered about a person who is no user, and nothing that is over. Otherwise without
    standing requests, which stand elsewhere.
    """

    limit: int
    describing: bool = False

    def answer(self) -> Answer[list[MemoryRecord]]:
        if not self.describing:
            return (yield from self._read(f"NOT ({_HEARSAY}) AND NOT ({_OF_REQUEST})"))
        values = yield from self._read(f"m.matter IS NOT NULL AND {_DESCRIBING}", now())
        notes = yield from self._read(f"m.matter IS NULL AND {_DESCRIBING}", now())
        return [*values, *notes][: max(self.limit, len(values) + _LEAST_NOTES)]

    def _read(self, condition: str, *values: object) -> Answer[list[MemoryRecord]]:
        limits = Conditions(f"{_OWN} AND {_ACTIVE}", *self.scope[:2])
        limits.add(condition, *values)
        most = limits.bind(self.limit)
        return _memories(f"{MEMORY} WHERE {limits} ORDER BY m.importance DESC, m.id DESC LIMIT {most}", *limits.values)


@dataclass(frozen=True, slots=True)
class WaitingReminders(OfScopeShort[list[MemoryRecord]]):
    """The user's active reminders that were not delivered, soonest first; those without a time last."""

    due: datetime | None = None
    """If given, only those that are due at this moment."""

    def answer(self) -> Answer[list[MemoryRecord]]:
        limits = Conditions(f"{_OWN} AND {_ACTIVE} AND {_TO_DELIVER}", *self.scope[:2])
        limits.add_if("m.remind_at <= {0}", _optional_number(self.due))
        return _memories(f"{_WAITING} WHERE {limits} ORDER BY m.remind_at IS NULL, m.remind_at, m.id", *limits.values)


@dataclass(frozen=True, slots=True)
class MemoriesByNumber(OfScopeShort[list[MemoryRecord]]):
    """Those of the memories that are the user's, in whatever state, by id."""

    numbers: Sequence[int]

    def answer(self) -> Answer[list[MemoryRecord]]:
        text = f"{MEMORY} WHERE {_ANY_OWN} AND {listed('m.id', '$3')} ORDER BY m.id"
        return _memories(text, *self.scope[:2], list(self.numbers))


@dataclass(frozen=True, slots=True)
class MemoriesOfSubject(OfScopeShort[list[MemoryRecord]]):
    """The user's active memories that have a subject or a text."""

    subject: str | None
    text: str

    def answer(self) -> Answer[list[MemoryRecord]]:
        wanted = "(m.subject = $3 OR m.text = $4)"
        text = f"{MEMORY} WHERE {_OWN} AND {_ACTIVE} AND {wanted} ORDER BY m.importance DESC, m.id DESC"
        return _memories(text, *self.scope[:2], self.subject, self.text)


@dataclass(frozen=True, slots=True)
class PastAndComing(OfScopeShort[list[MemoryRecord]]):
    """The latest memories with a date, in the order in which things happened, as `facts.timeline` has them.

    With `periods`, only those that happened in one of them, at least in part.
    """

    limit: int
    periods: Sequence[tuple[datetime, datetime]] = ()

    def answer(self) -> Answer[list[MemoryRecord]]:
        limits = Conditions(f"{_OWN} AND {_TOOK_PLACE}", *self.scope[:2])
        _add_periods(limits, self.periods)
        latest = f"ORDER BY {_START} DESC, m.id DESC LIMIT {limits.bind(self.limit)}"
        return (yield from _memories(f"{MEMORY} WHERE {limits} {latest}", *limits.values))[::-1]


@dataclass(frozen=True, slots=True)
class RelevantMemories(OfScope[list[tuple[MemoryRecord, float]]]):
    """The memories that were found, by their words or by the messages that they rest on, each with its relevance.

    The most relevant and important come first. They are active, no standing requests, and not what others said about
    the user; with `dated` instead those with a date, as `PastAndComing` has them.
    """

    worded: Sequence[tuple[int, float]]
    """Ids of memories that were found by their words, each with its relevance from 0 to 1."""
    messages: Sequence[tuple[int, float]]
    """Sequence numbers of messages that were found, each with its relevance."""
    limit: int
    dated: bool = False
    periods: Sequence[tuple[datetime, datetime]] = ()

    def answer(self) -> Answer[list[tuple[MemoryRecord, float]]]:
        limits = Conditions("TRUE", *self.scope[:2], json.dumps(self.worded), json.dumps(self.messages))
        if self.dated:
            limits.add(_TOOK_PLACE)
            _add_periods(limits, self.periods)
        else:
            limits.add(f"{_ACTIVE} AND NOT ({_HEARSAY}) AND NOT ({_OF_REQUEST})")
        text = _RELEVANT.format(limits=limits, limit=limits.bind(self.limit))
        return [(read_memory(row[1:]), row[0]) for row in (yield from rows(text, *limits.values))]


def _add_periods(limits: Conditions, periods: Sequence[tuple[datetime, datetime]]) -> None:
    if periods:
        within = [_WITHIN.format(limits.bind(number_of(start)), limits.bind(number_of(end))) for start, end in periods]
        limits.texts.append(f"({' OR '.join(within)})")


@dataclass(frozen=True, slots=True)
class MemoryById(OfScopeShort[MemoryRecord]):
    """One of the user's memories, in whatever state. Raises NotFound."""

    memory: int

    def answer(self) -> Answer[MemoryRecord]:
        found = yield from _memories(_ONE_OF_USER, *self.scope[:2], self.memory)
        if not found:
            raise NotFound(f"{quoted(self.scope.user)} has no memory {self.memory}")
        return found[0]


@dataclass(frozen=True, slots=True)
class MemoryVersions(OfScope[list[MemoryVersion]]):
    """What a memory was before each of its changes, oldest first."""

    memory: int

    def answer(self) -> Answer[list[MemoryVersion]]:
        newest = yield from MemoryById(self.scope, self.memory).answer()
        head = newest.id, newest.space, newest.user, newest.sources, number_of(newest.created_at)
        found = []
        for revision, at, actor, action, stored, speaker in (yield from rows(_VERSIONS, self.scope.space, self.memory)):
            was = {**loaded(stored), "speaker": speaker}
            before = read_memory((*head, revision, *(was.get(name) for name in COLUMNS)))
            found.append(MemoryVersion(before, action, actor, moment(at)))
        return found


@dataclass(frozen=True, slots=True)
class MemoriesOfSpace(OfSpace[list[MemoryRecord]]):
    """The newest `limit` memories of a space with an id below `before`, newest first: of all users, or one."""

    needs_store = True
    user: str | None = None
    active: bool | None = None
    category: str | None = None
    kind: str | None = None
    state: str | None = None
    """The stored state: a memory that is over can still be stored as active."""
    before: int | None = None
    limit: int = 50

    def answer(self) -> Answer[list[MemoryRecord]]:
        limits = Conditions("[[m.space ~ o.space]] = $1", self.space)
        limits.add_if("[[m.owner ~ o.name]] = {0}", self.user)
        limits.add_if("m.category = {0}", self.category)
        limits.add_if("m.kind = {0}", self.kind)
        limits.add_if("m.state = {0}", self.state)
        limits.add_if("m.id < {0}", self.before)
        if self.active is not None:
            limits.add(_ACTIVE if self.active else "NOT m.active")
        newest = f"ORDER BY m.id DESC LIMIT {limits.bind(self.limit)}"
        return _memories(f"{MEMORY} WHERE {limits} {newest}", *limits.values)


@dataclass(frozen=True, slots=True)
class MemoryCounts(OfSpace[list[MemoryCount]]):
    """How many memories of a space there are, in every state: of all users, or one. Counted where they are stored."""

    needs_store = True
    user: str | None = None

    def answer(self) -> Answer[list[MemoryCount]]:
        limits = Conditions("[[m.space ~ o.space]] = $1", self.space)
        limits.add_if("[[m.owner ~ o.name]] = {0}", self.user)
        found = yield from rows(_MEMORY_COUNTS.format(limits=limits), *limits.values)
        return [MemoryCount(FIRST_DAY + timedelta(days=day), *rest) for day, *rest in found]


@dataclass(frozen=True, slots=True)
class DueMemories(Question[list[MemoryRecord]]):
    """Active memories, of all spaces, whose time has come at a moment, oldest first."""

    needs_store = True
    what: Timely
    before: datetime
    limit: int

    def answer(self) -> Answer[list[MemoryRecord]]:
        text = f"{MEMORY_OF_ANY_SPACE} WHERE {_TIMELY[self.what]} LIMIT $2"
        return _memories(text, microseconds(self.before, "the moment"), self.limit)


@dataclass(frozen=True, slots=True)
class UnextractedUsers(Question[list[Unextracted]]):
    """Users, of all spaces, with messages that nothing was extracted from; after a user. Reads no messages."""

    needs_store = True
    limit: int
    after: Scope | None = None

    def answer(self) -> Answer[list[Unextracted]]:
        last = ("", "") if self.after is None else self.after[:2]
        return [
            Unextracted(Scope.of(name, space), extracted, last_seq)
            for space, name, extracted, last_seq in (yield from rows(_UNEXTRACTED, *last, self.limit))
        ]


_LINES: Final = f"""
SELECT number, text, until FROM fact
 WHERE {OWNED} AND (until IS NULL OR number = (SELECT max(number) FROM fact WHERE {OWNED})) ORDER BY number
"""
"""The lines of the newest version, and the last line that was ever stored."""
TEXT_OF_FACTS: Final = """
coalesce(x.text, (SELECT [[string_agg(l.text, E'\\n' ORDER BY l.number)
    ~ group_concat(l.text, char(10) ORDER BY l.number)]] FROM fact l
     WHERE [[l.space = {0} AND ]]l.owner = x.owner AND l.since <= x.version
       AND (l.until IS NULL OR l.until > x.version)), '')
"""
"""The text of a version of facts `x`, which is made of lines. Citus asks one shard where the space {0} is bound."""
_OWN_FACTS: Final = TEXT_OF_FACTS.format("$1")
_FACTS: Final = f"SELECT {_OWN_FACTS}, version, created_at, cause FROM facts x WHERE {OWNED} ORDER BY version"


def _facts(scope: Scope, text: str) -> Answer[list[Facts]]:
    found = yield from rows(text, *scope[:2])
    return [Facts(scope.space, scope.user, text, version, moment(at), cause) for text, version, at, cause in found]


@dataclass(frozen=True, slots=True)
class NewestFacts(OfScopeShort[Facts | None]):
    """The newest version of the user's facts."""

    def answer(self) -> Answer[Facts | None]:
        found = yield from _facts(self.scope, f"{_FACTS} DESC LIMIT 1")
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class FactsVersions(OfScopeShort[list[Facts]]):
    """All versions of the user's facts, oldest first."""

    def answer(self) -> Answer[list[Facts]]:
        return _facts(self.scope, _FACTS)


@dataclass(frozen=True, slots=True)
class Tombstones(OfScopeShort[list[Tombstone]]):
    """What the user asked to forget, oldest first."""

    def answer(self) -> Answer[list[Tombstone]]:
        found = yield from rows(f"SELECT words, up_to FROM tombstone WHERE {OWNED} ORDER BY id", *self.scope[:2])
        return [Tombstone(*row) for row in found]


@dataclass(frozen=True, slots=True)
class DerivedText(OfScopeShort[Derived | None]):
    """What upkeep derived for the user and stored."""

    kind: str

    def answer(self) -> Answer[Derived | None]:
        text = f"SELECT key, value, at FROM derived WHERE {OWNED} AND kind = $3"
        found = yield from first(text, *self.scope[:2], self.kind)
        return None if found is None else Derived(found[0], found[1], moment(found[2]))


# --- What changes ask and write ---------------------------------------------------------------------------------------

_FIRST_STATED: Final = f"""
SELECT m.id FROM memory m
 WHERE [[m.space = $1 AND ]]m.owner = {USER} AND m.created_at = $3 AND coalesce((
     SELECT [[v.was ->> 'text' ~ json_extract(v.was, '$.text')]] FROM memory_version v
      WHERE [[v.space = $1 AND ]]v.memory = m.id AND v.revision = 1
 ), m.text) = $4
"""
_SUCCESSOR_THEN: Final = both(
    lambda checksums: checksums.update(
        "memory_version",
        "[[space = $1 AND ]]memory = $2 AND revision = $3",
        was="""[[jsonb_set(was::jsonb, '{superseded_by}', to_jsonb($4::bigint))::json
        ~ json_set(was, '$.superseded_by', $4)]]""",
    )
)
_RENUMBER: Final = both(lambda checksums: checksums.update("facts", f"{OWNED} AND version = $3", version="version + 1"))
_RENUMBER_LINES: Final = (
    both(lambda checksums: checksums.update("fact", f"{OWNED} AND since >= $3", since="since + 1")),
    both(lambda checksums: checksums.update("fact", f"{OWNED} AND until >= $3", until="until + 1")),
)
_ADD_SOURCES: Final = inserting("memory_source", {"memory": "$2", "seq": "value"}, *LISTED)
_MORE_SOURCES: Final = inserting(
    "memory_source",
    {"memory": "$2", "seq": "seq"},
    *[
        f"""
        FROM log WHERE [[space = $1 AND ]]owner = {USER.replace("$2", "$3")} AND {listed("seq", "$4")} ORDER BY seq
        LIMIT [[greatest ~ max]](0, $5 - (
            SELECT count(*) FROM memory_source WHERE [[space = $1 AND ]]memory = $2)) ON CONFLICT DO NOTHING
        """
    ]
    * 2,
)
_TOMBSTONE: Final = inserting(
    "tombstone",
    {
        "id": "$3",
        "owner": "[[name ~ person.id]]",
        "words": "$4",
        "up_to": "coalesce([[$5::bigint ~ $5]], last_seq)",
        "at": "$6",
    },
    *["FROM person WHERE space = $1 AND name = $2"] * 2,
)


def _add_memory(within: Transaction, memory: MemoryRecord, least: int = 0) -> MemoryRecord:
    """Store a memory and its sources under the next number, which is at least `least`."""
    number = within.number("memory", memory.space, least)
    row = {
        "id": number,
        **within.whose(memory.space, memory.user),
        "created_at": number_of(memory.created_at),
        "revision": memory.revision,
        **within.terms(memory.text),
        **_values(within, memory),
    }
    within.insert("memory", row)
    if memory.sources:
        within.later(_ADD_SOURCES, memory.space, number, list(memory.sources))
    within.index_note(Scope.of(memory.user, memory.space), NoteKey("memory", number), memory.text)
    return replace(memory, id=number)


def _put_memory(within: Transaction, memory: MemoryRecord, before: str) -> None:
    """Store all values of a memory but its sources. `before` is the text that it had."""
    values = {"revision": memory.revision, **within.terms(memory.text), **_values(within, memory)}
    within.update("memory", "[[space = $1 AND ]]id = $2", (memory.space, memory.id), **values)
    if memory.text != before:
        key = NoteKey("memory", memory.id)
        within.index_note(Scope.of(memory.user, memory.space), key, memory.text, before)


def _add_version(within: Transaction, version: MemoryVersion) -> None:
    """Keep an earlier version of a memory, under the id and revision that it has."""
    was = version.before
    row = {
        **within.space(was.space),
        "memory": was.id,
        "revision": was.revision,
        "at": number_of(version.at),
        "actor": version.actor,
        "action": version.action,
        "was": json.dumps(_values(within, was), ensure_ascii=False),
    }
    within.insert("memory_version", row)


def _add_sources(within: Transaction, scope: Scope, memory: int, seqs: Sequence[int], most: int) -> None:
    """Add messages of the user to the sources of a memory until it has `most` of them; others are left out."""
    within.later(_MORE_SOURCES, scope.space, memory, scope.user, list(seqs), most)


def _add_facts(within: Transaction, facts: Facts, *, whole: bool = False) -> Answer[None]:
    """Store a version of facts: the newest one as its lines that are new, `whole` the text itself."""
    whose = within.whose(facts.space, facts.user)
    row = {**whose, "version": facts.version, "cause": facts.cause, "created_at": number_of(facts.updated_at)}
    within.insert("facts", {**row, "text": facts.text if whole else None})
    if whole:
        return
    scope = facts.space, facts.user
    found = yield from rows(_LINES, *scope)
    newest = found[-1][0] if found else 0
    stored = [(line, text) for line, text, until in found if until is None]
    lines = facts.text.split("\n") if facts.text else []
    gone, kept, place = [], 0, 0
    for text in lines:
        at = next((each for each in range(place, len(stored)) if stored[each][1] == text), None)
        if at is None:
            # From the first line on that is new, all are stored: a line has the number of its place.
            break
        gone += stored[place:at]
        kept, place = kept + 1, at + 1
    for line, _ in (*gone, *stored[place:]):
        within.update("fact", f"{OWNED} AND number = $3", (*scope, line), until=facts.version)
    for line, text in enumerate(lines[kept:], newest + 1):
        within.insert("fact", {**whose, "number": line, "text": text, "since": facts.version, "until": None})


def _add_tombstone(within: Transaction, scope: Scope, words: str, up_to: int | None = None) -> None:
    """Store a request to forget what was said up to a message; None: up to the user's newest."""
    number = within.number("tombstone", scope.space)
    within.later(_TOMBSTONE, *scope[:2], number, words, up_to, now())


# --- Changes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddMemory(Change):
    """Store a memory, in the place of others if there are some.

    Raises SourcesChanged when one of them has changed since it was read, or when a source was edited or taken back;
    NotFound when one is not this user's.
    """

    draft: MemoryDraft
    actor: str = "aforesaid"
    supersedes: tuple[Superseded, ...] = ()

    @property
    def scope(self) -> Scope:
        return self.draft.scope

    def carry_out(self, within: Transaction) -> Answer[MemoryRecord]:
        draft, scope, created = self.draft, self.draft.scope, now()
        within.own(scope, created)
        sources = sorted(set(draft.sources))
        if sources:
            messages = yield from MessagesByNumber(scope, sources).answer()
            if len(messages) != len(sources):
                raise NotFound("a source of the memory is not one of this user's messages")
            expect_newest(messages)
        superseded: dict[int, MemoryRecord] = {}
        for old in self.supersedes:
            # A memory that is named twice was changed by its first mention.
            revision = old.revision if old.memory not in superseded else None
            superseded[old.memory] = yield from _unchanged(scope, old.memory, revision)
        memory = _add_memory(within, _drafted(draft, tuple(sources), moment(created)))
        within.audit(scope, self.actor, "memory.add", f"memory {memory.id}")
        for before in superseded.values():
            _add_version(within, MemoryVersion(before, "supersede", self.actor, moment(now())))
            after = replace(
                before,
                state="superseded",
                active=False,
                valid_to=max(before.valid_from, memory.valid_from),
                superseded_by=memory.id,
                reason="",
                revision=before.revision + 1,
            )
            _put_memory(within, after, before.text)
            within.audit(scope, self.actor, "memory.supersede", f"memory {before.id} by memory {memory.id}")
        return memory


@dataclass(frozen=True, slots=True)
class ChangeMemory(Change):
    """Replace the stored memory with the same id. The earlier version is kept.

    Raises SourcesChanged when the stored one is not of the revision that `memory` has: somebody else changed it.
    Whose it is, when it was stored and its sources stay as they are.
    """

    memory: MemoryRecord
    action: str
    actor: str = "aforesaid"

    def __post_init__(self) -> None:
        memory = self.memory
        check_memory(memory, memory.delivered_at)
        checks.identifier(self.actor, "the actor")
        if memory.active != (memory.state == "active"):
            raise InvalidInput(f"a memory in the state {memory.state!r} cannot have active={memory.active}")

    @property
    def scope(self) -> Scope:
        return Scope.of(self.memory.user, self.memory.space)

    def carry_out(self, within: Transaction) -> Answer[MemoryRecord]:
        memory, scope = self.memory, self.scope
        yield from expect_user(scope)
        before = yield from _unchanged(scope, memory.id, memory.revision)
        _add_version(within, MemoryVersion(before, self.action, self.actor, moment(now())))
        after = replace(memory, created_at=before.created_at, sources=before.sources, revision=before.revision + 1)
        _put_memory(within, after, before.text)
        within.audit(scope, self.actor, f"memory.{self.action}", f"memory {memory.id}")
        return after


@dataclass(frozen=True, slots=True)
class CountMemory(Change):
    """Count that a memory was stated again. Its list of sources grows up to a limit.

    Raises SourcesChanged when a source was edited or taken back.
    """

    scope: Scope
    memory: int
    times: int
    seen_at: datetime
    sources: tuple[int, ...] = ()

    def carry_out(self, within: Transaction) -> Answer[None]:
        scope = self.scope
        yield from expect_user(scope)
        memory = yield from MemoryById(scope, self.memory).answer()
        if self.sources:
            expect_newest((yield from MessagesByNumber(scope, self.sources).answer()))
        times, seen_at = memory.times + self.times, max(memory.seen_at, self.seen_at)
        _put_memory(within, replace(memory, times=times, seen_at=seen_at), memory.text)
        _add_sources(within, scope, memory.id, self.sources, SOURCES_KEPT)


@dataclass(frozen=True, slots=True)
class Forget(Change):
    """Store a request to forget, so that old messages do not bring the memory back.

    With `newest`, the user's newest memory must have that id (0: there must be none); otherwise SourcesChanged is
    raised, because a memory that was stored since may be one of those to forget.
    """

    scope: Scope
    words: tuple[str, ...]
    actor: str = "aforesaid"
    newest: int | None = None

    def __post_init__(self) -> None:
        for words in self.words:
            checks.storable(words, "what to forget")

    def carry_out(self, within: Transaction) -> Answer[None]:
        within.own(self.scope, now())
        if self.newest is not None:
            newest = yield from number(f"SELECT max(m.id) FROM memory m WHERE {_OWN}", *self.scope[:2])
            if newest != self.newest:
                raise SourcesChanged(f"a memory of {quoted(self.scope.user)} was stored since; read the memories again")
        for words in self.words:
            _add_tombstone(within, self.scope, words)
        within.audit(self.scope, self.actor, "forget", f"{len(self.words)} things")


@dataclass(frozen=True, slots=True)
class PutDerived(Change):
    """Keep something that was worked out, one of each kind for each user.

    With `instead_of`, the one that is kept must have that key (an empty text: there must be none); otherwise
    SourcesChanged is raised. With `known_user`, nothing is kept if nothing else is stored of the user, who may have
    been purged since. SourcesChanged is also raised when a message or a note that it was worked out from is gone.
    """

    visible: ClassVar[bool] = False
    scope: Scope
    kind: str
    key: str
    value: str
    instead_of: str | None = None
    known_user: bool = False
    messages: tuple[int, int, int] | None = None
    """The first and the last of the user's messages that it was worked out from, and how many these are."""
    notes: tuple[NoteKey, ...] = ()
    """The user's summaries and memories that it was worked out from."""

    def __post_init__(self) -> None:
        checks.storable(self.value, f"the {self.kind}")

    def carry_out(self, within: Transaction) -> Answer[None]:
        scope = self.scope
        if not self.known_user:
            within.own(scope, now())
        elif not (yield from is_user(scope)):
            return
        if self.instead_of is not None:
            kept = yield from DerivedText(scope, self.kind).answer()
            if ("" if kept is None else kept.key) != self.instead_of:
                raise SourcesChanged(f"the {self.kind} of {quoted(scope.user)} was computed by another process first")
        if not (yield from self._still_there()):
            raise SourcesChanged(f"what the {self.kind} of {quoted(scope.user)} was computed from was erased since")
        whose = within.whose(*scope[:2])
        row = {"kind": self.kind, "key": self.key, "value": self.value, "at": now()}
        within.insert("derived", {**whose, **row}, replacing=(*whose, "kind"))

    def _still_there(self) -> Answer[bool]:
        scope, wanted = self.scope, set(self.notes)
        if self.messages is not None:
            first, last, count = self.messages
            left = yield from covered_messages(scope, first, last, EARLIEST, LATEST + 1, here=False)
            if left is None or left.messages != count:
                return False
        summaries = [each.id for each in wanted if each.kind == "summary"]
        found = {NoteKey("summary", each.id) for each in (yield from summaries_by_number(scope, summaries))}
        if memories := [each.id for each in wanted if each.kind == "memory"]:
            found |= {NoteKey("memory", each.id) for each in (yield from MemoriesByNumber(scope, memories).answer())}
        return wanted <= found


@dataclass(frozen=True, slots=True)
class MarkExtracted(Change):
    """Record that memories were extracted from a user's messages after `after`, up to `up_to`.

    Raises SourcesChanged when somebody else has extracted from them already. With `requests`, the user must have made
    that many requests to forget; otherwise SourcesChanged is raised, because a memory of the same change set may be
    one that was forgotten since it was extracted.
    """

    visible: ClassVar[bool] = False
    scope: Scope
    after: int
    up_to: int
    requests: int | None = None

    def carry_out(self, within: Transaction) -> Answer[None]:
        yield from expect_user(self.scope)
        extracted = yield from number("SELECT extracted FROM person WHERE space = $1 AND name = $2", *self.scope[:2])
        if extracted != self.after:
            raise SourcesChanged(f"the messages of {quoted(self.scope.user)} were processed by another process first")
        if self.requests is not None and len((yield from Tombstones(self.scope).answer())) != self.requests:
            raise SourcesChanged(f"{quoted(self.scope.user)} asked to forget something since; extract again")
        within.update("person", "space = $1 AND name = $2", self.scope[:2], extracted=self.up_to)


@dataclass(frozen=True, slots=True)
class PutFacts(Change):
    """Store the next version of a user's facts; older versions are kept.

    With `instead_of`, that version must be the newest (0: there must be none); otherwise SourcesChanged is raised.
    """

    scope: Scope
    text: str
    cause: str
    """The statement that led to this version."""
    actor: str = "aforesaid"
    instead_of: int | None = None

    def __post_init__(self) -> None:
        checks.storable(self.text, "the facts")
        checks.storable(self.cause, "the cause")

    def carry_out(self, within: Transaction) -> Answer[Facts]:
        scope, created = self.scope, now()
        within.own(scope, created)
        newest = yield from NewestFacts(scope).answer()
        version = 1 if newest is None else newest.version + 1
        if self.instead_of is not None and version != self.instead_of + 1:
            raise SourcesChanged(f"the facts about {quoted(scope.user)} have changed since; read them again")
        facts = Facts(scope.space, scope.user, self.text, version, moment(created), self.cause)
        yield from _add_facts(within, facts)
        within.audit(scope, self.actor, "facts.put", f"version {version}")
        return facts


def restore_memory(within: Transaction, row: MemoryRow) -> Answer[Restored]:
    """Store a memory of a dump with its versions, or bring the one that is here to the state it got elsewhere."""
    new = replace(row.memory, revision=1 + len(row.versions))
    scope, created = Scope.of(new.user, new.space), microseconds(new.created_at, "the time")
    within.own(scope, created)
    found = yield from first(_FIRST_STATED, *scope[:2], created, row.first_text)
    if found is None:
        number = _add_memory(within, replace(new, sources=()), least=new.id).id
        _keep_versions(within, row, number, 0)
        _add_sources(within, scope, number, new.sources, max(SOURCES_KEPT, len(new.sources)))
        return Restored(number, True)
    known = yield from MemoryById(scope, *found).answer()
    if known.revision < new.revision:
        _keep_versions(within, row, known.id, known.revision - 1)
        _put_memory(within, replace(new, id=known.id), known.text)
    else:
        times, seen_at = max(known.times, new.times), max(known.seen_at, new.seen_at)
        _put_memory(within, replace(known, times=times, seen_at=seen_at), known.text)
    _add_sources(within, scope, known.id, new.sources, SOURCES_KEPT)
    return Restored(known.id, False)


def restore_successor(within: Transaction, row: SuccessorRow) -> Answer[Restored]:
    """Store which memory superseded another."""
    if row.revision is None:
        within.update("memory", "[[space = $1 AND ]]id = $2", (row.space, row.memory), superseded_by=row.by)
    else:
        within.later(_SUCCESSOR_THEN, row.space, row.memory, row.revision, row.by)
    return done(Restored(row.memory, False))


def _keep_versions(within: Transaction, row: MemoryRow, number: int, kept: int) -> None:
    for revision, version in enumerate(row.versions[kept:], kept + 1):
        _add_version(within, replace(version, before=replace(version.before, id=number, revision=revision)))


def _unchanged(scope: Scope, number: int, revision: int | None) -> Answer[MemoryRecord]:
    """Return a memory. Raises SourcesChanged if it has another revision than when something was decided about it."""
    memory = yield from MemoryById(scope, number).answer()
    if memory.revision != revision:
        raise SourcesChanged(f"memory {number} has changed since; read it again")
    return memory


def _drafted(draft: MemoryDraft, sources: tuple[int, ...], created: datetime) -> MemoryRecord:
    since, user = draft.valid_from or created, draft.scope.user
    # Fields that a draft and a memory have mean the same.
    known = {each.name: getattr(draft, each.name) for each in fields(draft) if each.name != "scope"} | {
        "sources": sources,
        "speaker": draft.speaker or user,
        "valid_from": since,
        "kind": draft.kind or kind_of(draft.category, draft.tags, draft.event, draft.subject),
        "about": draft.about or about_in(draft.tags),
        "said_at": draft.said_at or since,
    }
    active = draft.state == "active"
    return MemoryRecord(
        id=0, space=draft.scope.space, user=user, created_at=created, active=active, delivered_at=None, seen_at=since,
        revision=1, **known,
    )  # fmt: skip


def restore_facts(within: Transaction, row: Facts) -> Answer[Restored]:
    """Put a version of facts where it belongs by its time, unless it is here."""
    scope = Scope.of(row.user, row.space)
    within.own(scope, microseconds(row.updated_at, "the time"))
    known = yield from FactsVersions(scope).answer()
    if any((each.text, each.updated_at, each.cause) == (row.text, row.updated_at, row.cause) for each in known):
        return Restored(0, False)
    later = [facts for facts in known if facts.updated_at > row.updated_at]
    version = later[0].version if later else known[-1].version + 1 if known else 1
    for facts in reversed(later):
        within.later(_RENUMBER, facts.space, facts.user, facts.version)
    for text in _RENUMBER_LINES if later else ():
        within.later(text, row.space, row.user, version)
    # Lines come and go with the newest version alone.
    new = Facts(row.space, row.user, row.text, version, row.updated_at, row.cause)
    yield from _add_facts(within, new, whole=bool(later))
    return Restored(0, True)


def restore_forgotten(within: Transaction, row: ForgottenRow) -> Answer[Restored]:
    """Store a request to forget, unless it is here."""
    scope = Scope.of(row.user, row.space)
    within.own(scope, now())
    fresh = Tombstone(row.words, row.up_to) not in (yield from Tombstones(scope).answer())
    if fresh:
        _add_tombstone(within, scope, row.words, row.up_to)
    return Restored(0, fresh)
