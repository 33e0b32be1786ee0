"""Rules for the agenda of pending summaries."""

from __future__ import annotations

from dataclasses import replace

from aforesaid.domain.scope import Entry, Subject, Touch
from aforesaid.domain.summary import Advance, FinishEntry
from aforesaid.domain.transfer import DayRow, Restored
from aforesaid.errors import SourcesChanged
from aforesaid.store.questions import PlannedEntry
from aforesaid.store.rules.driving import Rule, ask
from aforesaid.store.rules.lookups import MessagesPassed, PlannedEntries, Progress
from aforesaid.store.rules.writes import PutEntries, SetProgress


def advance(change: Advance) -> Rule[None]:
    """Update the agenda of a policy for new messages, and record that they were processed."""
    space = processed_space(change)
    if (yield from ask(Progress(space, change.policy))) != change.after:
        raise SourcesChanged(f"somebody else has walked past message {change.after}")
    if change.messages is not None:
        # Counted again, because the agenda would count erased messages forever, and name users who were purged.
        left = yield from ask(MessagesPassed(space, change.after, change.up_to))
        if left != change.messages:
            raise SourcesChanged(f"some of the messages {change.after + 1} to {change.up_to} were erased since")
    yield SetProgress(change.policy, space, change.up_to)
    if change.touched:
        found = yield from ask(PlannedEntries([touch.subject for touch in change.touched]))
        planned = {entry.subject: entry for entry in found}
        for touch in change.touched:
            planned[touch.subject] = _touched(planned.get(touch.subject), touch)
        yield PutEntries(list(planned.values()))


def processed_space(change: Advance) -> str:
    """Return the space whose messages were processed."""
    return change.space or next((touch.subject.space for touch in change.touched), "")


def finish_entry(change: FinishEntry) -> Rule[None]:
    """Record that a subject was processed, or why not."""
    entry = yield from ask(PlannedEntry(change.subject))
    if entry is None:
        return
    if change.error is not None:
        failed = replace(entry, failures=entry.failures + 1, error=change.error, due_at=change.due_at)
        yield PutEntries([failed])
        return
    unchanged = entry.last_seq == change.last_seq
    done = replace(
        entry,
        failures=0,
        error=None,
        done_at=entry.done_at if change.done_at is None else change.done_at,
        done_seq=entry.done_seq if change.done_at is None else change.last_seq,
        due_at=change.due_at if unchanged or entry.due_at is None else entry.due_at,
        waiting=0 if unchanged else entry.waiting,
    )
    yield PutEntries([done])


def restore_day(row: DayRow) -> Rule[Restored]:
    """Record that a day was summarised, unless there is something new of it here."""
    subject = Subject(row.policy, row.space, day=row.day)
    known = yield from ask(PlannedEntry(subject))
    entry = known or Entry(subject, messages=0, characters=0, waiting=0, last_seq=0, due_at=None)
    if known is not None and known.last_seq > known.done_seq:
        return Restored(0, False)
    done_at = max(row.done_at, entry.done_at or row.done_at)
    done = replace(entry, done_at=done_at, done_seq=max(row.done_seq, entry.done_seq))
    if done != known:
        yield PutEntries([done])
    return Restored(0, done != known)


def _touched(entry: Entry | None, touch: Touch) -> Entry:
    if entry is None:
        return Entry(touch.subject, touch.messages, touch.characters, touch.messages, touch.last_seq, touch.due_at)
    due_at = touch.due_at if entry.due_at is None else min(entry.due_at, touch.due_at)
    return replace(
        entry,
        messages=entry.messages + touch.messages,
        characters=entry.characters + touch.characters,
        waiting=entry.waiting + touch.messages,
        last_seq=touch.last_seq,
        due_at=entry.due_at if entry.failures else due_at,
    )
