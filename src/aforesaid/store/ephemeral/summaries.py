"""Archives, views and versions of summaries, on the store in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aforesaid.domain.change import Archive, RollBack
from aforesaid.domain.checks import moment
from aforesaid.domain.clock import now
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import CONTINUED, Summary, ViewDraft
from aforesaid.domain.summary_change import AddView, Revise
from aforesaid.errors import NotFound, SourcesChanged, quoted
from aforesaid.store.ephemeral.state import State, as_microseconds, person, thread

if TYPE_CHECKING:
    from aforesaid.store.ephemeral.changes import Changes


def archive(work: Changes, state: State, change: Archive) -> Summary:
    """Store a summary and archive what it stands for."""
    draft = change.draft
    scope = draft.scope
    work.known(scope)
    if draft.messages:
        level, chunks, messages = 1, *_take_messages(state, scope, draft.messages)
        times = [message.at for message in messages]
        first, last, count = min(draft.messages), max(draft.messages), len(messages)
    else:
        below = _take_summaries(state, scope, draft.summaries)
        level = max(summary.level for summary in below) + 1
        chunks = tuple(sorted(chunk for summary in below for chunk in summary.chunks))
        times = [at for summary in below for at in (summary.began_at, summary.ended_at)]
        first, last = min(summary.first for summary in below), max(summary.last for summary in below)
        count = sum(summary.messages for summary in below)
    summary = _store(
        state,
        Summary(
            id=0,
            space=scope.space,
            user=scope.user,
            thread=scope.thread,
            kind=draft.kind,
            level=level,
            text=draft.text,
            chunks=chunks,
            sources=tuple(sorted(draft.summaries)),
            first=first,
            last=last,
            messages=count,
            model=draft.model,
            prompt=draft.prompt,
            created_at=moment(draft.created_at or now()),
            active=True,
            rolled_back=False,
            began_at=min(times),
            ended_at=max(times),
            fresh=first,
            quality=draft.quality,
        ),
    )
    work.note(scope, change.actor, "archive", f"summary {summary.id}, level {level}, chunks {list(chunks)}")
    return summary


def roll_back(work: Changes, state: State, change: RollBack) -> Summary:
    """Take back what a summary did."""
    scope = change.scope
    work.known(scope)
    summary = state.summary(scope, change.summary)
    _expect_nothing_above(state, summary)
    if summary.level == 1 and summary.reach == "chunks" and summary.replaces is None and not below(state, summary):
        raise SourcesChanged(f"the messages below summary {summary.id} have been removed, as old as they were")
    done = undo(state, summary)
    subject = f"summary {summary.id}, level {summary.level}, chunks {list(summary.chunks)}"
    work.note(scope, change.actor, "roll_back", subject)
    return done


def undo(state: State, summary: Summary) -> Summary:
    """Mark a summary as rolled back; the version before it, or else its sources, are active again."""
    scope = Scope(summary.space, summary.user, summary.thread)
    if summary.replaces is not None:
        before = state.summaries[summary.replaces]
        state.summaries[before.id] = replace(before, active=True, replaced=False)
    elif summary.reach == "chunks" and summary.level == 1:
        for entry in state.stretch(scope, summary.first, summary.last):
            if entry.message.chunk in summary.chunks:
                freed = replace(entry.message, active=True, chunk=None)
                state.log[entry.message.seq] = replace(entry, message=freed)
    elif summary.reach == "chunks" or summary.kind in CONTINUED:
        for source in summary.sources:
            state.summaries[source] = replace(state.summaries[source], active=True)
    done = state.summaries[summary.id] = replace(summary, active=False, rolled_back=True)
    return done


def _expect_nothing_above(state: State, summary: Summary) -> None:
    if summary.rolled_back:
        raise SourcesChanged(f"summary {summary.id} has been rolled back already")
    if summary.replaced:
        raise SourcesChanged(f"summary {summary.id} has a newer version; roll that one back first")
    for each in state.summaries.values():
        if summary.id in each.sources and not each.rolled_back:
            raise SourcesChanged(f"summary {each.id} stands on summary {summary.id}; roll that one back first")


def add_view(work: Changes, state: State, change: AddView) -> Summary:
    """Store a view, in the place of the one before it."""
    draft = change.draft
    scope = draft.scope
    work.known(scope)
    previous = _expected_previous(state, draft)
    messages = _drafted(state, draft)
    seqs = [message.seq for message in messages]
    if not seqs or (len(seqs), seqs[0], seqs[-1]) != (draft.messages, draft.first, draft.last):
        raise SourcesChanged("the summary does not cover the messages that it says it does; read them again")
    times, first, count = [message.at for message in messages], draft.first, len(messages)
    if previous is not None:
        if draft.continues:
            if previous.last >= first:
                raise SourcesChanged(f"summary {previous.id} covers some of these messages already")
            first, count = previous.first, count + previous.messages
            times += [previous.began_at, previous.ended_at]
        state.summaries[previous.id] = replace(previous, active=False, replaced=not draft.continues)
    newer = previous is not None and not draft.continues
    summary = _store(
        state,
        Summary(
            id=0,
            space=scope.space,
            user=scope.user,
            thread=scope.thread,
            kind=draft.kind,
            level=1,
            text=draft.text,
            chunks=(),
            sources=tuple(
                sorted((*draft.summaries, *([draft.previous] if draft.continues and draft.previous else ())))
            ),
            first=first,
            last=draft.last,
            messages=count,
            model=draft.model,
            prompt=draft.prompt,
            created_at=moment(draft.created_at or now()),
            active=True,
            rolled_back=False,
            began_at=min(times),
            ended_at=max(times),
            reach=draft.reach,
            fresh=draft.first,
            day=draft.day,
            version=previous.version + 1 if previous is not None and newer else 1,
            replaces=draft.previous if newer else None,
            details=draft.details,
            quality=draft.quality,
        ),
    )
    work.note(scope, change.actor, "summary.add", f"summary {summary.id}, {draft.kind}")
    return summary


def revise(work: Changes, state: State, change: Revise) -> Summary:
    """Store a newer version of a summary."""
    work.known(change.scope)
    old = state.summary(change.scope, change.summary)
    if not old.active:
        raise SourcesChanged(f"summary {old.id} is not active any more; revise the one that stands for it")
    state.summaries[old.id] = replace(old, active=False, replaced=True)
    summary = _store(
        state,
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
        ),
    )
    work.note(change.scope, change.actor, "summary.revise", f"summary {summary.id} in the place of {old.id}")
    return summary


def below(state: State, summary: Summary) -> list[Message]:
    """Return the messages below a summary."""
    scope = Scope(summary.space, summary.user, summary.thread)
    if summary.reach == "chunks":
        entries = state.stretch(scope, summary.first, summary.last)
        return [entry.message for entry in entries if entry.message.chunk in summary.chunks]
    if summary.reach == "sources":
        every = {each.seq: each for source in summary.sources for each in below(state, state.summaries[source])}
        return [every[seq] for seq in sorted(every)]
    found = _stretch(state, scope, summary.first, summary.last, here=summary.reach == "thread")
    return [message for message in found if summary.began_at <= message.at <= summary.ended_at]


def above(state: State, scope: Scope, seq: int) -> list[Summary]:
    """Return the summaries that a message lies below."""
    entry = state.log.get(seq)
    if entry is None or entry.owner != person(scope):
        raise NotFound(f"{quoted(scope.user)} has no message with the number {seq}")
    found = [
        summary
        for summary in state.summaries.values()
        if (summary.space, summary.user) == person(scope)
        and not summary.rolled_back
        and not summary.replaced
        and entry.message in below(state, summary)
    ]
    return sorted(found, key=lambda summary: (summary.kind, summary.level, summary.id))


def _store(state: State, summary: Summary) -> Summary:
    return store(state, summary, state.number("summaries"))


def store(state: State, summary: Summary, number: int) -> Summary:
    """Keep a summary under a number."""
    state.threads.setdefault((summary.space, summary.thread), ())
    state.summaries[number] = stored = replace(summary, id=number)
    return stored


def _expected_previous(state: State, draft: ViewDraft) -> Summary | None:
    current = [
        summary
        for summary in state.summaries.values()
        if (summary.space, summary.user) == person(draft.scope)
        and summary.active
        and (summary.kind, summary.day) == (draft.kind, draft.day)
        and (draft.reach != "thread" or (summary.space, summary.thread) == thread(draft.scope))
    ]
    if [summary.id for summary in current] != ([] if draft.previous is None else [draft.previous]):
        raise SourcesChanged(f"another {draft.kind} summary was stored first by another process")
    for source in draft.summaries:
        if source not in state.summaries or (
            (state.summaries[source].space, state.summaries[source].user) != person(draft.scope)
        ):
            raise NotFound("a summary that it was made of is not one of this user's")
    return current[0] if current else None


def _drafted(state: State, draft: ViewDraft) -> list[Message]:
    """Return the messages that a draft covers and the summary before it does not."""
    if draft.reach == "sources":
        every = {each.seq: each for source in draft.summaries for each in below(state, state.summaries[source])}
        return [every[seq] for seq in sorted(every)]
    found = _stretch(state, draft.scope, draft.first, draft.last, here=draft.reach == "thread")
    return [message for message in found if draft.since <= as_microseconds(message.at) < draft.until]


def _stretch(state: State, scope: Scope, first: int, last: int, *, here: bool) -> list[Message]:
    return [
        entry.message for entry in state.stretch(scope, first, last) if not here or entry.message.thread == scope.thread
    ]


def _take_messages(state: State, scope: Scope, sources: tuple[int, ...]) -> tuple[tuple[int, ...], list[Message]]:
    log = state.log
    mine = [log[seq] for seq in sources if seq in log and log[seq].owner == person(scope)]
    if len(mine) != len(sources):
        raise NotFound("a message to be archived is not one of this user's")
    if not all(entry.message.active for entry in mine):
        raise SourcesChanged("a message to be archived is archived already")
    chunk = state.chunks[person(scope)] = state.chunks.get(person(scope), 0) + 1
    for entry in mine:
        log[entry.message.seq] = replace(entry, message=replace(entry.message, active=False, chunk=chunk))
    return (chunk,), [entry.message for entry in mine]


def _take_summaries(state: State, scope: Scope, sources: tuple[int, ...]) -> list[Summary]:
    try:
        found = [state.summary(scope, source) for source in sources]
    except NotFound:
        raise NotFound("a summary to be archived is not one of this user's") from None
    if not all(summary.active and summary.reach == "chunks" for summary in found):
        raise SourcesChanged("a summary to be archived is archived or rolled back already")
    for summary in found:
        state.summaries[summary.id] = replace(summary, active=False)
    return found
