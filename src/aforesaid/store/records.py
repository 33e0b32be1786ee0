"""Rows of tables as values of the domain, the same for every database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import date, datetime, timedelta
from typing import Any, Final

from aforesaid.domain.caches import fast_constructor
from aforesaid.domain.checks import EARLIEST, microseconds, moment
from aforesaid.domain.details import read_details
from aforesaid.domain.memory import Event, MemoryRecord, kind_of
from aforesaid.domain.message import Message, Position, message_id
from aforesaid.domain.report import Ledger, User
from aforesaid.domain.scope import Entry, Session, Subject
from aforesaid.domain.summary import Quality, Summary

Row = tuple[Any, ...]

_HUNDRED: Final = 100
"""Confidence is stored in hundredths, since every database writes whole numbers alike."""
_message: Final = fast_constructor(Message)
_memory: Final = fast_constructor(MemoryRecord)

MEMORY: Final = (
    "category", "text", "importance", "tags", "active", "state", "priority", "speaker", "subject", "event_start",
    "event_end", "event_timed", "remind_at", "delivered_at", "expires_at", "valid_from", "valid_to", "superseded_by",
    "extractor", "trust", "reason", "times", "seen_at", "kind", "about", "said_at", "language", "confidence",
)  # fmt: skip
"""The columns of a memory that a change may set, and that are kept of what was before it."""


def message(row: Row) -> Message:
    """Read a row of a store's MESSAGE."""
    (
        seq, given, space, user, thread, session, role, author, name, text, said, stored, active, chunk, digest,
        replaces, replaced, details,
    ) = row  # fmt: skip
    at = moment(said)
    return _message(
        seq, given if given is not None else message_id(seq, None), space, user, thread, session, role, author, name,
        text, at, at if stored == said else moment(stored), bool(active), chunk, digest, replaces, bool(replaced),
        details,
    )  # fmt: skip


def hashes_in(details: Iterable[str]) -> frozenset[str]:
    """Return the hashes that parts name in the details of messages."""
    return frozenset(part.hash for text in details for part in read_details(text).parts if part.hash is not None)


def messages(rows: Iterable[Row]) -> list[Message]:
    """Read rows of a store's MESSAGE."""
    return [message(row) for row in rows]


def position(found: Row | None, before: int) -> Position:
    """Return where a read before a sequence number ends: `found` is the last message up to it, its time and number."""
    if found is None:
        return Position(EARLIEST, 0)
    at, seq = found
    return Position(at, seq if seq == before else seq + 1)


def loaded(value: Any) -> Any:  # noqa: ANN401 - whatever the JSON says
    """Return a list or a record that SQLite holds as JSON. PostgreSQL gives it as it is."""
    return json.loads(value) if isinstance(value, str) else value


def summary(row: Row) -> Summary:
    """Read a row of a store's SUMMARY."""
    quality = None if row[27] is None else loaded(row[27])
    return Summary(
        id=row[0],
        space=row[1],
        user=row[2],
        thread=row[3],
        kind=row[4],
        level=row[5],
        text=row[6],
        chunks=tuple(loaded(row[7])),
        sources=tuple(loaded(row[8])),
        first=row[9],
        last=row[10],
        messages=row[11] if row[28] is None else row[28],
        rows=None if row[28] is None else row[11],
        model=row[12],
        prompt=row[13],
        created_at=moment(row[14]),
        active=bool(row[15]),
        rolled_back=bool(row[16]),
        began_at=moment(row[17]),
        ended_at=moment(row[18]),
        reach=row[19],
        fresh=row[20],
        day=date.fromisoformat(row[21]) if row[21] else None,
        version=row[22],
        replaces=row[23],
        replaced=bool(row[24]),
        edited_by=row[25],
        details=None if row[26] is None else loaded(row[26]),
        quality=None if quality is None else Quality(**{**quality, "invented": tuple(quality["invented"])}),
    )


def summary_values(summary: Summary) -> dict[str, Any]:
    """Return the columns of a summary but its number, its owner and its thread; its chunks as a list."""
    quality = None if summary.quality is None else asdict(summary.quality)
    return {
        "kind": summary.kind,
        "level": summary.level,
        "text": summary.text,
        "chunks": list(summary.chunks),
        "first_seq": summary.first,
        "last_seq": summary.last,
        "fresh_seq": summary.fresh,
        "messages": summary.covered,
        "shown": None if summary.rows is None else summary.messages,
        "began_at": microseconds(summary.began_at, "the time"),
        "ended_at": microseconds(summary.ended_at, "the time"),
        "model": summary.model,
        "prompt": summary.prompt,
        "created_at": microseconds(summary.created_at, "the time"),
        "active": summary.active,
        "rolled_back": summary.rolled_back,
        "reach": summary.reach,
        "day": day_text(summary.day),
        "version": summary.version,
        "replaces": summary.replaces,
        "replaced": summary.replaced,
        "edited_by": summary.edited_by,
        "details": None if summary.details is None else json.dumps(summary.details, ensure_ascii=False),
        "quality": None if quality is None else json.dumps(quality, ensure_ascii=False),
    }


def day_text(day: date | None) -> str:
    """Return the day of a summary as tables hold it: empty for none."""
    return "" if day is None else day.isoformat()


def entry(row: Row) -> Entry:
    """Read a row of the agenda."""
    return Entry(Subject(*row[:5]), *row[5:])


ENTRY: Final = (
    "policy", "space", "user", "thread", "day", "messages", "characters", "waiting", "last_seq", "due_at", "done_at",
    "done_seq", "failures", "error",
)  # fmt: skip
"""The columns of an entry of the agenda in SQLite; the first five are its key."""


def entry_values(entry: Entry) -> Row:
    """Return the values of ENTRY."""
    counts = (entry.messages, entry.characters, entry.waiting, entry.last_seq)
    return (*entry.subject, *counts, entry.due_at, entry.done_at, entry.done_seq, entry.failures, entry.error)


def user(row: Row) -> User:
    """Read a row of a store's users."""
    space, name, messages, archived, created_at, last_at, display_name = row
    last_activity = None if last_at is None else moment(last_at)
    return User(space, name, messages, archived, moment(created_at), last_activity, display_name)


def ledger(counts: Row | None, levels: Sequence[Row]) -> Ledger:
    """Make a ledger of the counts of messages, and of active summaries per level, lowest level first."""
    active = tuple((level, count) for level, count, *_ in levels)
    # A summary of summaries has a higher level than these, so the highest are all active.
    highest = levels[-1][0] if levels else 0
    messages, archived, turns, open_turns, last_seq, last_chunk = counts or (0,) * 6
    return Ledger(messages, archived, turns, open_turns, last_seq, last_chunk, active, highest)


def session(row: Row) -> Session:
    """Read a row of a store's SESSION."""
    return Session(
        id=row[0],
        space=row[1],
        thread=row[2],
        user=row[3],
        started_at=moment(row[4]),
        last_activity=moment(row[5]),
        messages=row[6],
        timeout=timedelta(microseconds=row[7]),
    )


def memory(row: Row) -> MemoryRecord:
    """Read a row of a store's memories: the columns of MEMORY are its last."""
    (
        number, space, user, sources, created, revision, category, text, importance, tags, active, state, priority,
        speaker, subject, event_start, event_end, event_timed, remind_at, delivered_at, expires_at, valid_from,
        valid_to, superseded_by, extractor, trust, reason, times, seen_at, kind, about, said_at, language, confidence,
    ) = row  # fmt: skip
    known_tags = () if tags == "[]" else tuple(loaded(tags))
    event = None
    if event_start is not None:
        event = Event(moment(event_start), moment(event_end), bool(event_timed))
    valid = moment(valid_from)
    # Versions that were stored before there were kinds have no kind and no time at which they were said.
    kind = kind or kind_of(category, known_tags, event, subject)
    return _memory(
        number, space, user, category, text, importance, known_tags, tuple(loaded(sources)), moment(created),
        bool(active), state, priority, user if speaker is None else speaker, subject, event, _optional(remind_at),
        _optional(delivered_at), _optional(expires_at), valid, _optional(valid_to), superseded_by, extractor, trust,
        reason, times, valid if seen_at == valid_from else moment(seen_at), revision, kind, about,
        valid if said_at is None or said_at == valid_from else moment(said_at), language,
        None if confidence is None else round(confidence / _HUNDRED, 2),
    )  # fmt: skip


def memory_values(memory: MemoryRecord, tags: object, speaker: object) -> Row:
    """Return the columns of MEMORY; tags and speaker as the store writes them."""
    it = memory
    return (
        it.category, it.text, it.importance, tags, it.active, it.state, it.priority, speaker, it.subject,
        *_event(it.event), _optional_number(it.remind_at), _optional_number(it.delivered_at),
        _optional_number(it.expires_at), number_of(it.valid_from), _optional_number(it.valid_to), it.superseded_by,
        it.extractor, it.trust, it.reason, it.times, number_of(it.seen_at), it.kind, it.about, number_of(it.said_at),
        it.language, None if it.confidence is None else round(it.confidence * _HUNDRED),
    )  # fmt: skip


def number_of(at: datetime) -> int:
    """Return a time of a memory as tables hold it."""
    return microseconds(at, "a time of the memory")


def _optional_number(at: datetime | None) -> int | None:
    return None if at is None else number_of(at)


def _event(event: Event | None) -> tuple[int | None, int | None, bool]:
    return (None, None, False) if event is None else (number_of(event.start), number_of(event.end), event.timed)


def _optional(number: int | None) -> datetime | None:
    return None if number is None else moment(number)
