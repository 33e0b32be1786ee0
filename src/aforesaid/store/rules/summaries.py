"""Rules for summaries: archives, views, newer versions, and what a dump says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from aforesaid.domain.change import Archive, RollBack
from aforesaid.domain.checks import microseconds, moment, now
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import CONTINUED, AddView, Revise, Summary, SummaryDraft, ViewDraft
from aforesaid.domain.transfer import Restored, SummaryRow
from aforesaid.errors import NotFound, SourcesChanged
from aforesaid.store.questions import MessagesByNumber, Summaries, SummaryById
from aforesaid.store.rules.known import expect_newest, expect_user
from aforesaid.store.rules.writes import (
    AddSummary,
    ArchiveMessages,
    ChunkMessages,
    Coverage,
    IsChangedSince,
    KeepUser,
    LastChunk,
    MessagesCovered,
    RecordAudit,
    ReleaseMessages,
    Rule,
    SetLastChunk,
    SetSummaryState,
    SimilarSummaries,
    SummariesByNumber,
    SummariesMadeFrom,
    ask,
)

_UNNUMBERED: Final = 0


def archive(change: Archive) -> Rule[Summary]:
    """Store a summary and archive its sources."""
    draft, scope = change.draft, change.draft.scope
    yield from expect_user(scope)
    if draft.messages:
        level, (chunks, covered) = 1, (yield from _archive_messages(scope, draft))
    else:
        level, chunks, covered = yield from _archive_summaries(scope, draft.summaries)
    summary = yield from _add(
        replace(_drafted(draft, covered), level=level, chunks=chunks, sources=tuple(sorted(draft.summaries)))
    )
    subject = f"summary {summary.id}, level {level}, chunks {list(chunks)}"
    yield RecordAudit(scope, change.actor, "archive", subject)
    return summary


def roll_back(change: RollBack) -> Rule[Summary]:
    """Undo a summary: the version before it, or else its sources, are active again."""
    scope = change.scope
    yield from expect_user(scope)
    summary = yield from ask(SummaryById(scope, change.summary))
    if summary.rolled_back:
        raise SourcesChanged(f"summary {summary.id} has been rolled back already")
    if summary.replaced:
        raise SourcesChanged(f"summary {summary.id} has a newer version; roll that one back first")
    for above in (yield from ask(SummariesMadeFrom(scope.space, [summary.id]))):
        raise SourcesChanged(f"summary {above.id} stands on summary {summary.id}; roll that one back first")
    if _archives_messages(summary) and not (yield from ask(ChunkMessages(scope, summary.chunks[0]))):
        raise SourcesChanged(f"the messages below summary {summary.id} have been removed, as old as they were")
    done = yield from undo(summary)
    subject = f"summary {summary.id}, level {summary.level}, chunks {list(summary.chunks)}"
    yield RecordAudit(scope, change.actor, "roll_back", subject)
    return done


def undo(summary: Summary) -> Rule[Summary]:
    """Mark a summary as rolled back; the version before it, or else its sources, are active again."""
    scope = Scope(summary.space, summary.user, summary.thread)
    if summary.replaces is not None:
        for before in (yield from ask(SummariesByNumber(scope, [summary.replaces]))):
            yield SetSummaryState(replace(before, active=True, replaced=False))
    else:
        yield from release_sources(summary)
    done = replace(summary, active=False, rolled_back=True)
    yield SetSummaryState(done)
    return done


def release_sources(summary: Summary) -> Rule[None]:
    """Make the messages or summaries active again that a summary archived or continued."""
    scope = Scope(summary.space, summary.user, summary.thread)
    if summary.reach == "chunks" and summary.level == 1:
        messages = yield from ask(ChunkMessages(scope, summary.chunks[0]))
        turns = sum(role == "user" for _, role in messages)
        yield ReleaseMessages(scope, summary.chunks[0], len(messages), turns)
    elif summary.reach == "chunks" or summary.kind in CONTINUED:
        for source in (yield from ask(SummariesByNumber(scope, summary.sources))):
            if not source.rolled_back and not source.replaced:
                yield SetSummaryState(replace(source, active=True))


def add_view(change: AddView) -> Rule[Summary]:
    """Store a summary that archives nothing, in the place of the previous one."""
    draft, scope = change.draft, change.draft.scope
    yield from expect_user(scope)
    previous = yield from _expected_previous(draft)
    covered = yield from _covered(draft)
    if draft.shown:
        expect_newest((yield from ask(MessagesByNumber(scope, draft.shown))))
    summary = replace(
        _drafted(draft, covered), reach=draft.reach, day=draft.day, details=draft.details, sources=draft.summaries
    )
    if previous is not None:
        if draft.continues:
            summary = _continued(summary, previous)
        else:
            summary = replace(summary, version=previous.version + 1, replaces=previous.id)
        yield SetSummaryState(replace(previous, active=False, replaced=not draft.continues))
    summary = yield from _add(replace(summary, sources=tuple(sorted(summary.sources))))
    yield RecordAudit(scope, change.actor, "summary.add", f"summary {summary.id}, {draft.kind}")
    return summary


def revise(change: Revise) -> Rule[Summary]:
    """Store a newer version of a summary."""
    yield from expect_user(change.scope)
    old = yield from ask(SummaryById(change.scope, change.summary))
    if not old.active:
        raise SourcesChanged(f"summary {old.id} is not active any more; revise the one that stands for it")
    yield SetSummaryState(replace(old, active=False, replaced=True))
    summary = yield from _add(
        replace(
            old,
            text=change.text,
            model=change.model,
            prompt=change.prompt,
            created_at=moment(change.created_at or now()),
            quality=change.quality,
            edited_by=change.edited_by,
            replaces=old.id,
            version=old.version + 1,
        )
    )
    yield RecordAudit(change.scope, change.actor, "summary.revise", f"summary {summary.id} in the place of {old.id}")
    return summary


def restore(row: SummaryRow) -> Rule[Restored]:
    """Store a summary of a dump, unless it is here. One whose sources are not free any more is rolled back."""
    new = row.summary
    scope = Scope(new.space, new.user, new.thread)
    yield KeepUser(scope, microseconds(new.created_at, "the time"))
    similar = yield from ask(SimilarSummaries(new))
    for known in similar:
        if (known.created_at, known.text) == (new.created_at, new.text):
            yield from _catch_up(known, new)
            return Restored(known.id, False)
    chunks, free = yield from _place(scope, row)
    stands = free and not new.rolled_back and all(each.rolled_back for each in similar)
    active = stands and new.active
    if active and new.reach != "chunks":
        active = not (yield from _current(scope, new))
    if stands and row.messages and new.replaces is None:
        archived = yield from ask(MessagesByNumber(scope, row.messages))
        turns = sum(message.role == "user" for message in archived)
        yield ArchiveMessages(scope, row.messages, chunks[0], turns)
    placed = replace(new, chunks=chunks, active=active, rolled_back=not stands, replaced=new.replaced and stands)
    number = yield from ask(AddSummary(placed, least=new.id))
    return Restored(number, True)


def _catch_up(known: Summary, new: Summary) -> Rule[None]:
    """Bring a summary to the state that it got later elsewhere."""
    if new.rolled_back and not known.rolled_back:
        yield from undo(known)
    elif known.active and not new.active:
        yield SetSummaryState(replace(known, active=False, replaced=new.replaced))


def _place(scope: Scope, row: SummaryRow) -> Rule[tuple[tuple[int, ...], bool]]:
    """Return the chunks that a summary of a dump has here, and whether its sources are free."""
    new = row.summary
    if new.replaces is not None:
        before = (yield from ask(SummariesByNumber(scope, [new.replaces])))[0]
        return before.chunks, not before.rolled_back
    if new.reach in ("thread", "user"):
        return (), (yield from _covers_the_same(scope, new))
    if new.reach == "sources":
        return (), not any(each.rolled_back for each in (yield from ask(SummariesByNumber(scope, new.sources))))
    if new.level > 1:
        sources = yield from ask(SummariesByNumber(scope, new.sources))
        above = yield from ask(SummariesMadeFrom(new.space, new.sources))
        folded = any(each.reach == "chunks" for each in above)
        return _chunks_of(sources), not folded and not any(each.rolled_back for each in sources)
    chunk = max(((yield from ask(LastChunk(scope))) + 1, *new.chunks))
    yield SetLastChunk(scope, chunk)
    messages = yield from ask(MessagesByNumber(scope, row.messages))
    # An archive whose messages were removed by their age stands by itself.
    free = len(messages) == len(row.messages) and len(row.messages) in (0, new.covered)
    if not free or not all(message.active for message in messages):
        return (chunk,), False
    return (chunk,), not (yield from _is_outdated(scope, new))


def _covers_the_same(scope: Scope, view: Summary) -> Rule[bool]:
    """Return whether a view of a dump says nothing but what its messages say here.

    It may cover fewer messages than it says: some may have been deleted because of their age.
    """
    since, until = (microseconds(each, "the time") for each in (view.began_at, view.ended_at))
    bounds = (view.first, view.last, since, until + 1)
    covered = yield from ask(MessagesCovered(scope, *bounds, here=view.reach == "thread"))
    if covered is not None and covered.rows > view.covered:
        return False
    return not (yield from _is_outdated(scope, view))


def _is_outdated(scope: Scope, summary: Summary) -> Rule[bool]:
    """Return whether a message that a summary of a dump covers was edited or taken back after it was made."""
    made = microseconds(summary.created_at, "the time")
    return (yield from ask(IsChangedSince(scope, summary.first, summary.last, made)))


def _archive_messages(scope: Scope, draft: SummaryDraft) -> Rule[tuple[tuple[int, ...], Coverage]]:
    seqs, shown = draft.messages, set(draft.shown)
    messages = yield from ask(MessagesByNumber(scope, seqs))
    if len(messages) != len(seqs):
        raise NotFound("a message to be archived is not one of this user's")
    if not all(message.active and message.chunk is None for message in messages):
        raise SourcesChanged("a message to be archived is archived already")
    expect_newest(message for message in messages if message.seq in shown)
    chunk = (yield from ask(LastChunk(scope))) + 1
    yield SetLastChunk(scope, chunk)
    yield ArchiveMessages(scope, seqs, chunk, sum(message.role == "user" for message in messages))
    times = [microseconds(message.at, "the time") for message in messages]
    newest = sum(not message.replaced for message in messages)
    return (chunk,), Coverage(len(seqs), min(seqs), max(seqs), min(times), max(times), newest)


def _archive_summaries(scope: Scope, numbers: tuple[int, ...]) -> Rule[tuple[int, tuple[int, ...], Coverage]]:
    sources = yield from ask(SummariesByNumber(scope, numbers))
    if len(sources) != len(numbers):
        raise NotFound("a summary to be archived is not one of this user's")
    if not all(source.active and source.reach == "chunks" for source in sources):
        raise SourcesChanged("a summary to be archived is archived or rolled back already")
    for source in sources:
        yield SetSummaryState(replace(source, active=False))
    return max(source.level for source in sources) + 1, _chunks_of(sources), _coverage_of(sources)


def _expected_previous(draft: ViewDraft) -> Rule[Summary | None]:
    """Return the summary that a view continues or replaces. Raises when another is the newest by now."""
    scope = draft.scope
    current = yield from ask(Summaries(scope, kind=draft.kind, day=draft.day, here=draft.reach == "thread"))
    if [summary.id for summary in current] != ([] if draft.previous is None else [draft.previous]):
        raise SourcesChanged(_not_the_newest(draft, current))
    if draft.summaries and len((yield from ask(SummariesByNumber(scope, draft.summaries)))) != len(draft.summaries):
        raise NotFound("a summary that it was made of is not one of this user's")
    return current[0] if current else None


def _not_the_newest(draft: ViewDraft, current: Sequence[Summary]) -> str:
    """Say why a view cannot be stored, and what to give instead."""
    of_day = "" if draft.day is None else f" of {draft.day}"
    if not current:
        return f"summary {draft.previous} is no active {draft.kind} summary{of_day}; leave out `previous`"
    found = ", ".join(str(summary.id) for summary in current)
    other = ", or the `day` that it is about" if draft.kind in ("day", "week") and draft.day is None else ""
    return (
        f"another {draft.kind} summary{of_day} was stored first: read summary {found} again, and give its id as "
        f"`previous`{other}"
    )


def _covered(draft: ViewDraft) -> Rule[Coverage]:
    """Return what a view covers that the previous one does not. Raises when that is not what the draft says."""
    if draft.reach == "sources":
        sources = yield from ask(SummariesByNumber(draft.scope, draft.summaries))
        covered = _coverage_of(sources) if sources else None
    else:
        bounds = (draft.first, draft.last, draft.since, draft.until)
        covered = yield from ask(MessagesCovered(draft.scope, *bounds, here=draft.reach == "thread"))
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


def _current(scope: Scope, summary: Summary) -> Rule[list[Summary]]:
    """Return the active views that a view of a dump would stand beside."""
    found = yield from ask(Summaries(scope, kind=summary.kind, day=summary.day, here=summary.reach == "thread"))
    return [each for each in found if each.reach != "chunks"]


def _drafted(draft: SummaryDraft | ViewDraft, covered: Coverage) -> Summary:
    """Return the summary of a draft, of level 1 and without sources."""
    scope = draft.scope
    return Summary(
        id=_UNNUMBERED,
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


def _add(summary: Summary) -> Rule[Summary]:
    return replace(summary, id=(yield from ask(AddSummary(summary))))


def _rows(rows: int, messages: int) -> int | None:
    return None if rows == messages else rows


def _archives_messages(summary: Summary) -> bool:
    """Return whether rolling a summary back would make messages active again."""
    return summary.reach == "chunks" and summary.level == 1 and summary.replaces is None


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
