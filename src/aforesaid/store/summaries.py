"""Summaries: what can be asked about them, and what archives, views and newer versions of them mean."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any, Final, NamedTuple

from aforesaid.domain.checks import microseconds, moment, now
from aforesaid.domain.memory import NoteKey
from aforesaid.domain.message import Message, in_time_order
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import CONTINUED, Quality, Summary, SummaryDraft, ViewDraft, check_origin, summary_text
from aforesaid.domain.transfer import Restored, SummaryRow
from aforesaid.errors import NotFound, SourcesChanged, quoted
from aforesaid.store.checksums import inserting
from aforesaid.store.messages import MESSAGE, MessagesByNumber, expect_newest, of_archive, read_messages
from aforesaid.store.operations import Change, OfScope, OfScopeShort, Question, Transaction
from aforesaid.store.people import expect_user
from aforesaid.store.sql import (
    A_THREAD,
    ACTIVE,
    OWNED,
    USER,
    Answer,
    Conditions,
    Row,
    Statement,
    exists,
    first,
    listed,
    loaded,
    number,
    rows,
)

SUMMARY_OF_ANY_SPACE: Final = """
SELECT y.id, [[y.space, y.owner, y.thread ~ o.space, o.name, t.name]], y.kind, y.level, y.text, y.chunks,
       [[ARRAY(SELECT x.source FROM summary_source x WHERE x.space = y.space AND x.summary = y.id ORDER BY x.source)
       ~ (SELECT json_group_array(source ORDER BY source) FROM summary_source WHERE summary = y.id)]],
       y.first_seq, y.last_seq, y.messages, y.model, y.prompt, y.created_at, y.active, y.rolled_back, y.began_at,
       y.ended_at, y.reach, y.fresh_seq, y.day, y.version, y.replaces, y.replaced, y.edited_by, y.details,
       y.quality, y.shown
  FROM summary y[[ ~  JOIN person o ON o.id = y.owner JOIN thread t ON t.id = y.thread]]
"""
SUMMARY: Final = SUMMARY_OF_ANY_SPACE.replace("x.space = y.space", "x.space = $1")
"""What `read_summary` reads, of the space $1. It is named for the sources too, so that Citus asks one shard."""


def read_summary(row: Row) -> Summary:
    (
        key, space, user, thread, kind, level, text, chunks, sources, first, last, covered, model, prompt, created_at,
        active, rolled_back, began_at, ended_at, reach, fresh, day, version, replaces, replaced, edited_by, details,
        quality, shown,
    ) = row  # fmt: skip
    measured = None if quality is None else loaded(quality)
    return Summary(
        key, space, user, thread, kind, level, text, tuple(loaded(chunks)), tuple(loaded(sources)), first, last,
        covered if shown is None else shown, model, prompt, moment(created_at), bool(active), bool(rolled_back),
        moment(began_at), moment(ended_at), reach, fresh, date.fromisoformat(day) if day else None, version, replaces,
        bool(replaced), edited_by, None if details is None else loaded(details),
        None if measured is None else Quality(**{**measured, "invented": tuple(measured["invented"])}),
        None if shown is None else covered,
    )  # fmt: skip


def read_summaries(found: Sequence[Row]) -> list[Summary]:
    return [read_summary(row) for row in found]


_REACH: Final = f"SELECT reach, chunks FROM summary WHERE {OWNED} AND id = $3"
# The plus keeps SQLite from reading all of the owner's messages: the chunks are the shorter way.
_IN_CHUNKS: Final = f"""
{MESSAGE} WHERE [[log.space = $1 AND log.owner = $2 AND log.chunk = ANY($3::bigint[])
 ~ log.chunk IN (SELECT value FROM json_each($3)) AND +log.owner = (
    SELECT id FROM person WHERE space = $1 AND name = $2)]]
"""
_COVERS: Final = """
SELECT owner, thread, first_seq, last_seq, began_at, ended_at, reach FROM summary
 WHERE [[space = $1 AND ]]id = $2
"""
_SOURCES: Final = "SELECT source FROM summary_source WHERE [[space = $1 AND ]]summary = $2"
_BELOW: Final = f"""
{MESSAGE} WHERE [[log.space = $1 AND ]]log.owner = $2 AND log.seq BETWEEN $3 AND $4 AND log.at BETWEEN $5 AND $6
   AND ([[$7::text ~ $7]] IS NULL OR log.thread = $7) ORDER BY log.seq
"""
_PLACE: Final = f"SELECT chunk, at, thread FROM log WHERE {OWNED} AND seq = $3"
_ABOVE: Final = f"""
{SUMMARY}
 WHERE [[y.space = $1 AND ]]y.owner = {USER} AND [[NOT y.rolled_back ~ y.rolled_back = 0]] AND NOT y.replaced
   AND CASE y.reach
         WHEN 'chunks' THEN [[$4::bigint = ANY(y.chunks) ~ $4 IN (SELECT value FROM json_each(y.chunks))]]
         WHEN 'sources' THEN EXISTS (
             SELECT 1 FROM summary_source x JOIN summary z ON [[z.space = x.space AND ]]z.id = x.source
              WHERE [[x.space = $1 AND ]]x.summary = y.id
                AND $3 BETWEEN z.first_seq AND z.last_seq AND $5 BETWEEN z.began_at AND z.ended_at)
         ELSE $3 BETWEEN y.first_seq AND y.last_seq AND $5 BETWEEN y.began_at AND y.ended_at
              AND (y.reach = 'user' OR y.thread = $6)
       END
 ORDER BY y.kind[[ COLLATE "C"]], y.level, y.id
"""
_WITHOUT_MODEL: Final = f"""
{SUMMARY_OF_ANY_SPACE} WHERE y.kind = $1 AND y.id > $3 AND y.prompt = $2 AND {ACTIVE.format("y")} AND y.model IS NULL
   AND y.edited_by IS NULL ORDER BY y.id [[FETCH FIRST $4 ROWS WITH TIES ~ LIMIT $4]]
"""


@dataclass(frozen=True, slots=True)
class SummaryById(OfScopeShort[Summary]):
    """One of the user's summaries, in whatever state. Raises NotFound."""

    summary: int

    def answer(self) -> Answer[Summary]:
        text = f"{SUMMARY} WHERE [[y.space = $1 AND ]]y.owner = {USER} AND y.id = $3"
        row = yield from first(text, *self.scope[:2], self.summary)
        if row is None:
            raise _unknown(self)
        return read_summary(row)


@dataclass(frozen=True, slots=True)
class Summaries(OfScopeShort[list[Summary]]):
    """The user's summaries, highest level first, oldest first within a level; `active=None` for every state.

    With `here`, only those of the scope's thread.
    """

    active: bool | None = True
    kind: str | None = None
    day: date | None = None
    here: bool = False

    def answer(self) -> Answer[list[Summary]]:
        limits = Conditions(f"[[y.space = $1 AND ]]y.owner = {USER}", *self.scope[:2])
        limits.add_if("y.kind = {0}", self.kind)
        limits.add_if("y.day = {0}", None if self.day is None else self.day.isoformat())
        limits.add_if(f"y.thread = {A_THREAD}", self.scope.thread if self.here else None)
        if self.active is not None:
            limits.add(ACTIVE.format("y") if self.active else "NOT y.active")
        text = f"{SUMMARY} WHERE {limits} ORDER BY y.level DESC, y.id"
        return read_summaries((yield from rows(text, *limits.values)))


@dataclass(frozen=True, slots=True)
class CoveredMessages(OfScope[list[Message]]):
    """The messages below a summary of any level, by when they were said."""

    needs_store = True
    summary: int

    def answer(self) -> Answer[list[Message]]:
        whose = self.scope[:2]
        found = yield from first(_REACH, *whose, self.summary)
        if found is None:
            raise _unknown(self)
        reach, chunks = found
        if reach == "chunks":
            return in_time_order(read_messages((yield from rows(_IN_CHUNKS, *whose, chunks))))
        return in_time_order((yield from _below(self.scope.space, self.summary)))


def _below(space: str, summary: int) -> Answer[list[Message]]:
    """Return the messages that a view covers. Whoever asks has found it in their scope."""
    ((owner, thread, *between, reach),) = yield from rows(_COVERS, space, summary)
    if reach != "sources":
        here = thread if reach == "thread" else None
        return read_messages((yield from rows(_BELOW, space, owner, *between, here)))
    found: dict[int, Message] = {}
    for (source,) in (yield from rows(_SOURCES, space, summary)):
        found |= {message.seq: message for message in (yield from _below(space, source))}
    return [found[seq] for seq in sorted(found)]


@dataclass(frozen=True, slots=True)
class SummariesAbove(OfScope[list[Summary]]):
    """The summaries, at every level and of every kind, that one of the user's messages lies below."""

    needs_store = True
    seq: int

    def answer(self) -> Answer[list[Summary]]:
        whose = self.scope[:2]
        found = yield from first(_PLACE, *whose, self.seq)
        if found is None:
            raise NotFound(f"{quoted(self.scope.user)} has no message with the number {self.seq}")
        return read_summaries((yield from rows(_ABOVE, *whose, self.seq, *found)))


@dataclass(frozen=True, slots=True)
class SummariesWithoutModel(Question[list[Summary]]):
    """Active summaries of a kind and prompt, of all spaces, that no model and no person wrote, by id."""

    needs_store = True
    kind: str
    prompt: str
    after: int
    limit: int

    def answer(self) -> Answer[list[Summary]]:
        found = yield from rows(_WITHOUT_MODEL, self.kind, self.prompt, self.after, self.limit)
        return read_summaries(found)


def _unknown(question: SummaryById | CoveredMessages) -> NotFound:
    return NotFound(f"{quoted(question.scope.user)} has no summary {question.summary}")


_COVERED: Final = f"""
SELECT count(*), min(seq), max(seq), min(at), max(at), count(*) FILTER (WHERE NOT replaced) FROM log
 WHERE {OWNED} AND seq BETWEEN $3 AND $4 AND at >= $5 AND at < $6 AND ([[$7::text ~ $7]] IS NULL
    OR thread = {A_THREAD.format("$7")})
"""
_CHANGED: Final = f"""
SELECT 1 FROM log WHERE {OWNED} AND seq BETWEEN $3 AND $4 AND [[replaced ~ replaced = 1]] AND EXISTS (
    SELECT 1 FROM log n WHERE [[n.space = $1 AND ]]n.replaces = log.seq AND n.stored_at > $5) LIMIT 1
"""
_MADE_FROM: Final = f"""
{SUMMARY} WHERE [[y.space = $1 AND NOT y.rolled_back ~ y.rolled_back = 0]] AND y.id IN (
    SELECT summary FROM summary_source WHERE [[space = $1 AND ]]{listed("source", "$2")}) ORDER BY y.id
"""
_SIMILAR: Final = f"""
{SUMMARY} WHERE [[y.space = $1 AND md5(y.thread) = md5($3) AND md5(y.prompt) = md5($8) AND ]]y.owner = {USER}
   AND y.thread = {A_THREAD.format("$3")} AND y.kind = $4 AND y.level = $5 AND y.first_seq = $6 AND y.last_seq = $7
   AND y.prompt = $8 AND y.day = $9 AND y.version = $10 AND
"""
_HEARD: Final = f"""
{MESSAGE} WHERE [[log.space = $1 ~ o.space = $1]] AND {listed("log.seq", "$2")} AND [[log.shared ~ log.shared = 1]]
"""
_ARCHIVE: Final = f"UPDATE log SET active = false, chunk = $2 WHERE [[space = $1 AND ]]{listed('seq', '$3')}"
_RELEASE: Final = f"UPDATE log SET active = true, chunk = NULL WHERE {OWNED} AND chunk = $3"
_ARCHIVED: Final = (
    "UPDATE person SET archived = archived + $3, open_turns = open_turns - $4 WHERE space = $1 AND name = $2"
)
# In PostgreSQL, read from a table of the space, so that Citus sends the whole statement to the shard of the space.
LISTED: Final = "FROM space CROSS JOIN unnest($3::bigint[]) AS value WHERE space = $1", "FROM json_each($3)"
_ADD_SOURCES: Final = inserting("summary_source", {"summary": "$2", "source": "value"}, *LISTED)


# --- What changes ask -------------------------------------------------------------------------------------------------


class Coverage(NamedTuple):
    """The rows of the log that a summary covers: how many, the first and the last, and the times of first and last."""

    rows: int
    first: int
    last: int
    began_at: int
    ended_at: int
    messages: int
    """How many of the rows are the newest version of a message that was not taken back."""


def _next_chunk(within: Transaction, scope: Scope, *least: int) -> Answer[int]:
    last = yield from number("SELECT last_chunk FROM person WHERE space = $1 AND name = $2", *scope[:2])
    chunk = max((last + 1, *least))
    within.update("person", "space = $1 AND name = $2", scope[:2], last_chunk=chunk)
    return chunk


def covered_messages(
    scope: Scope, first: int, last: int, since: int, until: int, *, here: bool
) -> Answer[Coverage | None]:
    """Return what the user's messages from one number to another cover, said from `since` to before `until`.

    None if there are none. With `here`, only those in the scope's thread.
    """
    thread = scope.thread if here else None
    (found,) = yield from rows(_COVERED, *scope[:2], first, last, since, until, thread)
    return Coverage(*found) if found[0] else None


def summaries_by_number(scope: Scope, numbers: Sequence[int]) -> Answer[list[Summary]]:
    """Return those of the summaries that are the user's, by number."""
    text = f"{SUMMARY} WHERE [[y.space = $1 AND ]]y.owner = {USER} AND {listed('y.id', '$3')} ORDER BY y.id"
    return read_summaries((yield from rows(text, *scope[:2], list(numbers))))


def made_from(space: str, numbers: Sequence[int]) -> Answer[list[Summary]]:
    return read_summaries((yield from rows(_MADE_FROM, space, list(numbers))))


def _similar(it: Summary) -> Answer[list[Summary]]:
    """Return the summaries of the same owner, thread, kind, level, messages, prompt, day and version, by number."""
    same = it.kind, it.level, it.first, it.last, it.prompt, _day_text(it.day), it.version
    values = it.space, it.user, it.thread, *same
    # In two parts, because two of SQLite's indexes find them.
    here, rolled_back = yield (
        Statement(f"{_SIMILAR} [[NOT y.rolled_back ~ y.rolled_back = 0]]", values),
        Statement(f"{_SIMILAR} [[y.rolled_back ~ y.rolled_back = 1]]", values),
    )
    return sorted(read_summaries(here + rolled_back), key=lambda summary: summary.id)


# --- What changes write -----------------------------------------------------------------------------------------------


def _add(within: Transaction, summary: Summary, least: int = 0) -> Summary:
    """Store a summary and its sources under the next number, which is at least `least`."""
    number = within.number("summary", summary.space, least)
    row = {
        "id": number,
        **within.whose(summary.space, summary.user),
        "thread": within.thread(summary.space, summary.thread),
        **within.terms(summary.text),
        **_values(summary),
    }
    within.insert("summary", row)
    if summary.sources:
        within.later(_ADD_SOURCES, summary.space, number, list(summary.sources))
    within.index_note(Scope.of(summary.user, summary.space), NoteKey("summary", number), summary.text)
    return replace(summary, id=number)


def _values(summary: Summary) -> dict[str, Any]:
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
        "day": _day_text(summary.day),
        "version": summary.version,
        "replaces": summary.replaces,
        "replaced": summary.replaced,
        "edited_by": summary.edited_by,
        "details": None if summary.details is None else json.dumps(summary.details, ensure_ascii=False),
        "quality": None if quality is None else json.dumps(quality, ensure_ascii=False),
    }


def _day_text(day: date | None) -> str:
    return "" if day is None else day.isoformat()


def _set_state(within: Transaction, it: Summary) -> None:
    state = {"active": it.active, "replaced": it.replaced, "rolled_back": it.rolled_back}
    within.update("summary", "[[space = $1 AND ]]id = $2", (it.space, it.id), **state)


def _archive(within: Transaction, scope: Scope, chunk: int, messages: Sequence[Message]) -> None:
    """Archive messages of the user under a chunk number."""
    within.later(_ARCHIVE, scope.space, chunk, [message.seq for message in messages])
    turns = sum(message.role == "user" for message in messages)
    within.later(_ARCHIVED, *scope[:2], len(messages), turns)


# --- Changes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Archive(Change):
    """Store a summary and archive its sources; archived messages get the next chunk id.

    Raises SourcesChanged when a source is not active any more, or when a message that was read for it was edited or
    taken back; NotFound when a source is not this user's.
    """

    draft: SummaryDraft
    actor: str = "aforesaid"

    @property
    def scope(self) -> Scope:
        return self.draft.scope

    def carry_out(self, within: Transaction) -> Answer[Summary]:
        draft, scope = self.draft, self.draft.scope
        yield from expect_user(scope)
        if draft.messages:
            level, (chunks, covered) = 1, (yield from _archive_messages(within, draft))
            details = yield from _with_heard(draft)
        else:
            level, chunks, covered, details = yield from _archive_summaries(within, draft)
        sources = tuple(sorted(draft.summaries))
        drafted = replace(_drafted(draft, covered), details=details)
        summary = _add(within, replace(drafted, level=level, chunks=chunks, sources=sources))
        subject = f"summary {summary.id}, level {level}, chunks {list(chunks)}"
        within.audit(scope, self.actor, "archive", subject)
        return summary


@dataclass(frozen=True, slots=True)
class RollBack(Change):
    """Undo an archive: its sources become active again, and its summary is kept but marked as rolled back.

    Raises SourcesChanged if another summary was made from this one: roll that one back first.
    """

    scope: Scope
    summary: int
    actor: str = "aforesaid"

    def carry_out(self, within: Transaction) -> Answer[Summary]:
        scope = self.scope
        yield from expect_user(scope)
        summary = yield from SummaryById(scope, self.summary).answer()
        if summary.rolled_back:
            raise SourcesChanged(f"summary {summary.id} has been rolled back already")
        if summary.replaced:
            raise SourcesChanged(f"summary {summary.id} has a newer version; roll that one back first")
        for above in (yield from made_from(scope.space, [summary.id])):
            raise SourcesChanged(f"summary {above.id} stands on summary {summary.id}; roll that one back first")
        of_messages = summary.reach == "chunks" and summary.level == 1 and summary.replaces is None
        if of_messages and not (yield from of_archive(scope, summary.chunks[0])):
            raise SourcesChanged(f"the messages below summary {summary.id} have been removed, as old as they were")
        done = yield from undo(within, summary)
        subject = f"summary {summary.id}, level {summary.level}, chunks {list(summary.chunks)}"
        within.audit(scope, self.actor, "roll_back", subject)
        return done


@dataclass(frozen=True, slots=True)
class AddView(Change):
    """Store a summary that archives nothing, in the place of the one before it.

    Raises SourcesChanged when another is the newest of its kind by now, when it covers other messages than was said, or
    when a message that was read for it was edited or taken back.
    """

    draft: ViewDraft
    actor: str = "aforesaid"

    @property
    def scope(self) -> Scope:
        return self.draft.scope

    def carry_out(self, within: Transaction) -> Answer[Summary]:
        draft, scope = self.draft, self.draft.scope
        yield from expect_user(scope)
        previous = yield from _expected_previous(draft)
        covered = yield from _covered(draft)
        if draft.shown:
            expect_newest((yield from MessagesByNumber(scope, draft.shown).answer()))
        details = yield from _with_heard(draft, [previous] if previous is not None and draft.continues else ())
        summary = replace(
            _drafted(draft, covered), reach=draft.reach, day=draft.day, details=details, sources=draft.summaries
        )
        if previous is not None:
            if draft.continues:
                summary = _continued(summary, previous)
            else:
                summary = replace(summary, version=previous.version + 1, replaces=previous.id)
            _set_state(within, replace(previous, active=False, replaced=not draft.continues))
        summary = _add(within, replace(summary, sources=tuple(sorted(summary.sources))))
        within.audit(scope, self.actor, "summary.add", f"summary {summary.id}, {draft.kind}")
        return summary


@dataclass(frozen=True, slots=True)
class Revise(Change):
    """Store a newer version of an active summary: as a person edited it, or as a model wrote it anew.

    It covers what the old version covers, which is kept. Raises SourcesChanged when that is not active any more.
    """

    scope: Scope
    summary: int
    text: str
    edited_by: str | None = None
    model: str | None = None
    prompt: str = ""
    quality: Quality | None = None
    created_at: int | None = None
    actor: str = "aforesaid"

    def __post_init__(self) -> None:
        summary_text(self.text)
        check_origin(self.model, self.prompt)

    def carry_out(self, within: Transaction) -> Answer[Summary]:
        yield from expect_user(self.scope)
        old = yield from SummaryById(self.scope, self.summary).answer()
        if not old.active:
            raise SourcesChanged(f"summary {old.id} is not active any more; revise the one that stands for it")
        _set_state(within, replace(old, active=False, replaced=True))
        summary = _add(
            within,
            replace(
                old,
                text=self.text,
                model=self.model,
                prompt=self.prompt,
                created_at=moment(self.created_at or now()),
                quality=self.quality,
                edited_by=self.edited_by,
                replaces=old.id,
                version=old.version + 1,
            ),
        )
        within.audit(self.scope, self.actor, "summary.revise", f"summary {summary.id} in the place of {old.id}")
        return summary


def undo(within: Transaction, summary: Summary) -> Answer[Summary]:
    """Mark a summary as rolled back; the version before it, or else its sources, are active again."""
    scope = Scope(summary.space, summary.user, summary.thread)
    if summary.replaces is not None:
        for before in (yield from summaries_by_number(scope, [summary.replaces])):
            _set_state(within, replace(before, active=True, replaced=False))
    else:
        yield from release_sources(within, summary)
    done = replace(summary, active=False, rolled_back=True)
    _set_state(within, done)
    return done


def release_sources(within: Transaction, summary: Summary) -> Answer[None]:
    """Make the messages or summaries active again that a summary archived or continued."""
    scope = Scope(summary.space, summary.user, summary.thread)
    if summary.reach == "chunks" and summary.level == 1:
        messages = yield from of_archive(scope, summary.chunks[0])
        turns = sum(role == "user" for _, role in messages)
        within.later(_RELEASE, *scope[:2], summary.chunks[0])
        within.later(_ARCHIVED, *scope[:2], -len(messages), -turns)
    elif summary.reach == "chunks" or summary.kind in CONTINUED:
        for source in (yield from summaries_by_number(scope, summary.sources)):
            if not source.rolled_back and not source.replaced:
                _set_state(within, replace(source, active=True))


def restore_summary(within: Transaction, row: SummaryRow) -> Answer[Restored]:
    """Store a summary of a dump, unless it is here. One whose sources are not free any more is rolled back."""
    new = row.summary
    scope = Scope(new.space, new.user, new.thread)
    within.own(scope, microseconds(new.created_at, "the time"))
    similar = yield from _similar(new)
    for known in similar:
        if (known.created_at, known.text) == (new.created_at, new.text):
            # It may have got to a later state elsewhere.
            if new.rolled_back and not known.rolled_back:
                yield from undo(within, known)
            elif known.active and not new.active:
                _set_state(within, replace(known, active=False, replaced=new.replaced))
            return Restored(known.id, False)
    chunks, free = yield from _place(within, scope, row)
    stands = free and not new.rolled_back and all(each.rolled_back for each in similar)
    active = stands and new.active
    if active and new.reach != "chunks":
        beside = yield from Summaries(scope, kind=new.kind, day=new.day, here=new.reach == "thread").answer()
        active = all(each.reach == "chunks" for each in beside)
    if stands and row.messages and new.replaces is None:
        _archive(within, scope, chunks[0], (yield from MessagesByNumber(scope, row.messages).answer()))
    placed = replace(new, chunks=chunks, active=active, rolled_back=not stands, replaced=new.replaced and stands)
    return Restored(_add(within, placed, least=new.id).id, True)


def _place(within: Transaction, scope: Scope, row: SummaryRow) -> Answer[tuple[tuple[int, ...], bool]]:
    """Return the chunks that a summary of a dump has here, and whether its sources are free."""
    new = row.summary
    if new.replaces is not None:
        before = (yield from summaries_by_number(scope, [new.replaces]))[0]
        return before.chunks, not before.rolled_back
    if new.reach in ("thread", "user"):
        return (), (yield from _covers_the_same(scope, new))
    if new.reach == "sources":
        return (), not any(each.rolled_back for each in (yield from summaries_by_number(scope, new.sources)))
    if new.level > 1:
        sources = yield from summaries_by_number(scope, new.sources)
        above = yield from made_from(new.space, new.sources)
        folded = any(each.reach == "chunks" for each in above)
        return _chunks_of(sources), not folded and not any(each.rolled_back for each in sources)
    chunk = yield from _next_chunk(within, scope, *new.chunks)
    messages = yield from MessagesByNumber(scope, row.messages).answer()
    # An archive whose messages were removed by their age stands by itself.
    free = len(messages) == len(row.messages) and len(row.messages) in (0, new.covered)
    if not free or not all(message.active for message in messages):
        return (chunk,), False
    return (chunk,), not (yield from _is_outdated(scope, new))


def _covers_the_same(scope: Scope, view: Summary) -> Answer[bool]:
    """Return whether a view of a dump says nothing but what its messages say here.

    It may cover fewer messages than it says: some may have been deleted because of their age.
    """
    since, until = (microseconds(each, "the time") for each in (view.began_at, view.ended_at))
    bounds = (view.first, view.last, since, until + 1)
    covered = yield from covered_messages(scope, *bounds, here=view.reach == "thread")
    if covered is not None and covered.rows > view.covered:
        return False
    return not (yield from _is_outdated(scope, view))


def _is_outdated(scope: Scope, summary: Summary) -> Answer[bool]:
    """Return whether a message that a summary of a dump covers was edited or taken back after it was made."""
    made = microseconds(summary.created_at, "the time")
    return exists(_CHANGED, *scope[:2], summary.first, summary.last, made)


def _archive_messages(within: Transaction, draft: SummaryDraft) -> Answer[tuple[tuple[int, ...], Coverage]]:
    scope, seqs, shown = draft.scope, draft.messages, set(draft.shown)
    messages = yield from MessagesByNumber(scope, seqs).answer()
    if len(messages) != len(seqs):
        raise NotFound("a message to be archived is not one of this user's")
    if not all(message.active and message.chunk is None for message in messages):
        raise SourcesChanged("a message to be archived is archived already")
    expect_newest(message for message in messages if message.seq in shown)
    chunk = yield from _next_chunk(within, scope)
    _archive(within, scope, chunk, messages)
    times = [microseconds(message.at, "the time") for message in messages]
    newest = sum(not message.replaced for message in messages)
    return (chunk,), Coverage(len(seqs), min(seqs), max(seqs), min(times), max(times), newest)


def _archive_summaries(
    within: Transaction, draft: SummaryDraft
) -> Answer[tuple[int, tuple[int, ...], Coverage, Mapping[str, Any] | None]]:
    sources = yield from summaries_by_number(draft.scope, draft.summaries)
    if len(sources) != len(draft.summaries):
        raise NotFound("a summary to be archived is not one of this user's")
    if not all(source.active and source.reach == "chunks" for source in sources):
        raise SourcesChanged("a summary to be archived is archived or rolled back already")
    for source in sources:
        _set_state(within, replace(source, active=False))
    details = yield from _with_heard(draft, sources)
    return max(source.level for source in sources) + 1, _chunks_of(sources), _coverage_of(sources), details


def _with_heard(draft: SummaryDraft | ViewDraft, sources: Sequence[Summary] = ()) -> Answer[Mapping[str, Any] | None]:
    """Return the details of a draft that say whose messages were read for it or for its sources. Raises SourcesChanged.

    Erasing finds by them what quotes somebody else.
    """
    messages = read_messages((yield from rows(_HEARD, draft.scope.space, list(draft.heard)))) if draft.heard else []
    if len(messages) != len(draft.heard):
        raise SourcesChanged("a message of others that was read for the summary was erased since")
    expect_newest(messages)
    found: dict[str, set[str]] = {}
    for user, thread in (
        *((message.user, message.thread) for message in messages),
        *((user, thread) for source in sources for user, threads in source.heard.items() for thread in threads),
    ):
        found.setdefault(user, set()).add(thread)
    details = draft.details if isinstance(draft, ViewDraft) else None
    return {**(details or {}), "heard": {user: sorted(found[user]) for user in sorted(found)}} if found else details


def _expected_previous(draft: ViewDraft) -> Answer[Summary | None]:
    """Return the summary that a view continues or replaces. Raises when another is the newest by now."""
    scope = draft.scope
    current = yield from Summaries(scope, kind=draft.kind, day=draft.day, here=draft.reach == "thread").answer()
    if [summary.id for summary in current] != ([] if draft.previous is None else [draft.previous]):
        of_day = "" if draft.day is None else f" of {draft.day}"
        if not current:
            raise SourcesChanged(
                f"summary {draft.previous} is no active {draft.kind} summary{of_day}; leave out `previous`"
            )
        found = ", ".join(str(summary.id) for summary in current)
        other = ", or the `day` that it is about" if draft.kind in ("day", "week") and draft.day is None else ""
        raise SourcesChanged(
            f"another {draft.kind} summary{of_day} was stored first: read summary {found} again, and give its id as "
            f"`previous`{other}"
        )
    if draft.summaries and len((yield from summaries_by_number(scope, draft.summaries))) != len(draft.summaries):
        raise NotFound("a summary that it was made of is not one of this user's")
    return current[0] if current else None


def _covered(draft: ViewDraft) -> Answer[Coverage]:
    """Return what a view covers that the previous one does not. Raises when that is not what the draft says."""
    if draft.reach == "sources":
        sources = yield from summaries_by_number(draft.scope, draft.summaries)
        covered = _coverage_of(sources) if sources else None
    else:
        bounds = (draft.first, draft.last, draft.since, draft.until)
        covered = yield from covered_messages(draft.scope, *bounds, here=draft.reach == "thread")
    if covered is None or covered[:3] != (draft.messages, draft.first, draft.last):
        raise SourcesChanged("the summary does not cover the messages that it says it does; read them again")
    return covered


def _continued(summary: Summary, previous: Summary) -> Summary:
    if previous.last >= summary.first:
        raise SourcesChanged(f"summary {previous.id} covers some of these messages already")
    messages = summary.messages + previous.messages
    return replace(
        summary,
        first=previous.first,
        messages=messages,
        rows=_rows(summary.covered + previous.covered, messages),
        began_at=min(summary.began_at, previous.began_at),
        ended_at=max(summary.ended_at, previous.ended_at),
        sources=(*summary.sources, previous.id),
    )


def _drafted(draft: SummaryDraft | ViewDraft, covered: Coverage) -> Summary:
    scope = draft.scope
    return Summary(
        id=0,
        space=scope.space,
        user=scope.user,
        thread=scope.thread,
        kind=draft.kind,
        level=1,
        text=draft.text,
        chunks=(),
        sources=(),
        first=covered.first,
        last=covered.last,
        messages=covered.messages,
        rows=_rows(covered.rows, covered.messages),
        model=draft.model,
        prompt=draft.prompt,
        created_at=moment(draft.created_at or now()),
        active=True,
        rolled_back=False,
        began_at=moment(covered.began_at),
        ended_at=moment(covered.ended_at),
        fresh=covered.first,
        quality=draft.quality,
    )


def _rows(rows: int, messages: int) -> int | None:
    return None if rows == messages else rows


def _chunks_of(summaries: list[Summary]) -> tuple[int, ...]:
    return tuple(sorted(chunk for summary in summaries for chunk in summary.chunks))


def _coverage_of(summaries: list[Summary]) -> Coverage:
    return Coverage(
        sum(summary.covered for summary in summaries),
        min(summary.first for summary in summaries),
        max(summary.last for summary in summaries),
        min(microseconds(summary.began_at, "the time") for summary in summaries),
        max(microseconds(summary.ended_at, "the time") for summary in summaries),
        sum(summary.messages for summary in summaries),
    )
