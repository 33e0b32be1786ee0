"""Rules of deletion: purging, retention, spaces."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Final, NamedTuple

from aforesaid.domain.change import (
    AddMessage,
    AddNoteVectors,
    AddVectors,
    Archive,
    Change,
    Discard,
    Discardable,
    Discarded,
    PutMark,
    SetAside,
    Spend,
    Withdraw,
)
from aforesaid.domain.checks import counted, microseconds, moment, now
from aforesaid.domain.memory import EDITED, TAKEN_BACK, AddMemory, ChangeMemory
from aforesaid.domain.message import Draft, Message
from aforesaid.domain.scope import Entry, Scope, Subject, is_direct
from aforesaid.domain.summary import AddView, Advance, FinishEntry, Summary
from aforesaid.domain.transfer import MemoryRow, Purged, Restore, Row, SessionRow, SummaryRow
from aforesaid.store.questions import Memories, MessagesByNumber, VersionsOf
from aforesaid.store.rules.known import change as change_memory
from aforesaid.store.rules.known import expect_user, processed_space
from aforesaid.store.rules.summaries import release_sources
from aforesaid.store.rules.writes import (
    ChunkMessages,
    EntriesOfUsers,
    EraseDerived,
    EraseFacts,
    EraseMemories,
    EraseMemoryVersions,
    EraseMessages,
    EraseOldRows,
    EraseSummaries,
    EraseUser,
    HideMessages,
    MemoriesFrom,
    MemoriesToPurge,
    MemoryToPurge,
    MessagesToPurge,
    MessageToPurge,
    OldRow,
    OldRows,
    OldTable,
    PlannedEntries,
    Progress,
    PutEntries,
    RecordAudit,
    RelatedSummaries,
    Rule,
    SourcesOf,
    SummariesOfUsers,
    TakenBackBefore,
    WasPurged,
    Write,
    ask,
)


def purge(scope: Scope, actor: str) -> Rule[Purged]:
    """Delete a user, and everything that was made from the user's words."""
    space, user = scope.space, scope.user
    messages = yield from ask(MessagesToPurge(scope))
    if not messages and not (yield from ask(WasPurged(scope))):
        yield from expect_user(scope)
    messages += yield from ask(TakenBackBefore(space, [message.seq for message in messages]))
    summaries, memories = yield from _resting(space, messages, scope)
    of_others = [owner for owner in [*(y.user for y in summaries), *(m.user for m in memories)] if owner != user]
    others = sorted({*of_others, *(message.user for message in messages)} - {user})
    yield from _plan_again(space, others, messages, summaries)
    yield from _release(summary for summary in summaries if summary.user != user)
    yield EraseMemories(space, [memory.id for memory in memories])
    yield EraseSummaries(space, [summary.id for summary in summaries])
    yield EraseMessages(space, [message.seq for message in messages])
    yield EraseUser(scope, others)
    purged = Purged(len(messages), len(summaries), len(memories), len(of_others))
    yield RecordAudit(scope, actor, "purge", purged.counts)
    return purged


def erase(scope: Scope, actor: str, seqs: Sequence[int]) -> Rule[Purged]:
    """Delete messages of a user in all their versions, and everything that was made from them."""
    space = scope.space
    messages = [_to_purge(message) for message in (yield from ask(VersionsOf(scope, seqs)))]
    if not messages:
        return Purged(0, 0, 0)  # erased before
    summaries, memories = yield from _without_summaries(space, messages, messages)
    yield EraseMemories(space, [memory.id for memory in memories])
    yield EraseMessages(space, [message.seq for message in messages])
    of_others = [owner for owner in [*(y.user for y in summaries), *(m.user for m in memories)] if owner != scope.user]
    purged = Purged(len(messages), len(summaries), len(memories), len(of_others))
    yield RecordAudit(scope, actor, "messages.erase", purged.counts)
    return purged


def withdraw(change: Withdraw) -> Rule[None]:
    """Undo what was made from messages that are taken back."""
    scope = change.scope
    versions = yield from ask(VersionsOf(scope, change.messages))
    yield from _without_summaries(scope.space, [_to_purge(message) for message in versions], ())
    gone = {message.seq for message in versions}
    yield from _deactivate(scope, gone, TAKEN_BACK, "take_back", change.actor)
    yield RecordAudit(scope, change.actor, "messages.take_back", counted(len(change.messages), "message"))


def replace_version(draft: Draft) -> Rule[None]:
    """Deactivate memories of a message's owner that rest on replaced versions of it alone.

    `draft` is the newest version, which has just been stored. Versions with the same text still say the same.
    """
    if not isinstance(draft.replaces, int) or draft.is_tombstone:
        return
    scope = draft.scope
    versions = yield from ask(VersionsOf(scope, [draft.replaces]))
    gone = {message.seq for message in versions if message.replaced and message.text != draft.text}
    # Most messages led to no memory; then the user's memories need not be read.
    if gone and (yield from ask(MemoriesFrom(scope.space, sorted(gone)))):
        yield from _deactivate(scope, gone, EDITED, "edit_message", "aforesaid")


def set_aside(change: SetAside) -> Rule[None]:
    """Hide the messages of a branch, and deactivate memories that rest on them alone."""
    scope = change.scope
    found = yield from ask(MessagesByNumber(scope, change.messages))
    hidden = [message.seq for message in found if not message.replaced]
    if not hidden:
        return
    yield HideMessages(scope, hidden)
    if (yield from ask(MemoriesFrom(scope.space, hidden))):
        yield from _deactivate(scope, set(hidden), EDITED, "edit_message", "aforesaid")


def _deactivate(scope: Scope, gone: set[int], reason: str, action: str, actor: str) -> Rule[None]:
    """Deactivate memories that rest on these messages alone. What such a memory had superseded is active again."""
    memories = yield from ask(Memories(scope, active=None))
    withdrawn = {memory.id for memory in memories if memory.sources and gone.issuperset(memory.sources)}
    for memory in memories:
        if memory.id in withdrawn and memory.state != "deactivated":
            after = replace(memory, state="deactivated", active=False, valid_to=moment(now()), reason=reason)
        elif memory.id not in withdrawn and memory.state == "superseded" and memory.superseded_by in withdrawn:
            after = replace(memory, state="active", active=True, valid_to=None, superseded_by=None, reason="")
        else:
            continue
        yield from change_memory(ChangeMemory(after, action, actor))


def _to_purge(message: Message) -> MessageToPurge:
    at = microseconds(message.at, "the time")
    return MessageToPurge(message.seq, message.user, message.thread, at, message.chunk, len(message.text))


def _without_summaries(
    space: str, messages: Sequence[MessageToPurge], deleted: Sequence[MessageToPurge]
) -> Rule[_Resting]:
    """Delete the summaries that rest on messages, and what was derived, and have them made again."""
    resting = yield from _resting(space, messages)
    summaries = resting.summaries
    owners = sorted({*(summary.user for summary in summaries), *(message.user for message in messages)})
    yield from _plan_again(space, owners, deleted, summaries)
    yield from _release(summaries)
    yield EraseSummaries(space, [summary.id for summary in summaries])
    yield EraseDerived(space, owners)
    return resting


def _release(summaries: Iterable[Summary]) -> Rule[None]:
    """Make what summaries archived active again."""
    for summary in summaries:
        if not summary.rolled_back and not summary.replaced:
            yield from release_sources(summary)


class _Resting(NamedTuple):
    summaries: list[Summary]
    memories: list[MemoryToPurge]


def _resting(space: str, messages: Sequence[MessageToPurge], purged: Scope | None = None) -> Rule[_Resting]:
    """Return everything with words of messages in it, in whatever state it is; with `purged`, also all of that user.

    - memories that have one of them as a source, with all their versions;
    - summaries that cover one of them, or did when they were made; those of a day on which it was said to several;
    - archives of other sources of these memories, because summaries state important memories;
    - summaries that were made from one of these, or are the version before or after it.

    Texts that are derived for the owners of all this rest on it too (`EraseDerived`). Facts rest on no message.
    """
    user, seqs = None if purged is None else purged.user, [message.seq for message in messages]
    lookup = MemoriesFrom(space, seqs) if purged is None else MemoriesToPurge(purged, seqs)
    memories: list[MemoryToPurge] = yield from ask(lookup)
    by_user, stating = _by_user(messages), _by_user((yield from ask(SourcesOf(space, [each.id for each in memories]))))
    days = set(_days_near(messages))
    users = {*by_user, *stating, *(() if user is None else (user,))}
    found = yield from ask(SummariesOfUsers(space, sorted(users), sorted(days)))
    new = {
        summary.id: summary
        for summary in found
        if summary.user == user
        or (summary.kind == "day" and summary.day in days)
        or _covers(summary, by_user[summary.user])
        or (summary.reach == "chunks" and _covers(summary, stating[summary.user]))
    }
    gone: dict[int, Summary] = {}
    while new:
        gone |= new
        related = yield from ask(RelatedSummaries(space, sorted(new)))
        new = {summary.id: summary for summary in related if summary.id not in gone}
    return _Resting([gone[number] for number in sorted(gone)], memories)


def _by_user(messages: Iterable[MessageToPurge]) -> dict[str, list[MessageToPurge]]:
    """Return messages by their owner, in the order of the log; nothing for others."""
    found: dict[str, list[MessageToPurge]] = defaultdict(list)
    for message in sorted(messages):
        found[message.user].append(message)
    return found


def _days_near(messages: Sequence[MessageToPurge]) -> Iterator[date]:
    """Return the days whose summaries may have read a message. A day begins at a different time in each time zone."""
    for day in {moment(message.at).date().toordinal() for message in messages if not is_direct(message.thread)}:
        yield from (date.fromordinal(near) for near in (day - 1, day, day + 1) if 1 <= near <= date.max.toordinal())


def _covers(summary: Summary, messages: Sequence[MessageToPurge]) -> bool:
    """Return whether a summary covers one of its owner's messages, which are in the order of the log.

    Messages below one that was rolled back are in no archive, or in a later one, and an import may have numbered them
    anew. So it counts as made with whatever lies in its range or in its time.
    """
    began, ended = microseconds(summary.began_at, "the time"), microseconds(summary.ended_at, "the time")
    if summary.rolled_back:
        return any(
            (summary.first <= message.seq <= summary.last or began <= message.at <= ended)
            and (summary.reach != "thread" or summary.thread == message.thread)
            for message in messages
        )
    if summary.reach == "chunks":
        return any(message.chunk in summary.chunks for message in messages)
    if summary.reach == "sources":
        return False
    first = bisect_left(messages, summary.first, key=_seq)
    return any(
        began <= message.at <= ended and (summary.reach == "user" or summary.thread == message.thread)
        for message in messages[first : bisect_right(messages, summary.last, key=_seq)]
    )


def _seq(message: MessageToPurge) -> int:
    return message.seq


def _plan_again(
    space: str, others: Sequence[str], messages: Sequence[MessageToPurge], summaries: Sequence[Summary]
) -> Rule[None]:
    """Make the other users and the days that lose summaries due at once, without counting the deleted messages."""
    at = now()
    entries = yield from ask(EntriesOfUsers(space, others))
    progress: dict[str, int] = {}
    for policy in {entry.subject.policy for entry in entries}:
        progress[policy] = yield from ask(Progress(space, policy))
    due = [replace(_without(entry, messages, progress), due_at=at, failures=0, error=None) for entry in entries]
    days = {summary.day for summary in summaries if summary.kind == "day" and summary.day is not None}
    subjects = [Subject("calendar", space, day=day.isoformat()) for day in sorted({*days, *_days_near(messages)})]
    for entry in (yield from ask(PlannedEntries(subjects))) if subjects else []:
        if entry.subject.date in days:
            due.append(replace(entry, due_at=at, failures=0, error=None, done_at=None, done_seq=0))
        elif entry.error is not None:
            due.append(replace(entry, due_at=at, failures=0, error=None))  # a model's error may quote what it read
    if due:
        yield PutEntries(due)


def _without(entry: Entry, messages: Sequence[MessageToPurge], progress: Mapping[str, int]) -> Entry:
    """Return an entry that does not count messages that are deleted."""
    subject = entry.subject
    counted = [
        message.characters
        for message in messages
        if message.user == subject.user
        and subject.thread in ("", message.thread)
        and message.seq <= progress[subject.policy]
    ]
    left = max(entry.messages - len(counted), 0)
    return replace(
        entry,
        messages=left,
        characters=max(entry.characters - sum(counted), 0),
        waiting=min(entry.waiting, left) if counted else entry.waiting,
    )


OLD_TABLES: Final[Mapping[Discardable, Sequence[OldTable]]] = {
    "messages": ("archives",),
    "summaries": ("summaries",),
    "memories": ("memories",),
    "versions": ("facts", "memory_versions"),
}
"""The tables that a kind of rows is in. The other kinds are deleted without an audit entry."""
_ERASE: Final[Mapping[OldTable, Callable[[str, list[OldRow]], Write[None]]]] = {
    "archives": lambda space, rows: EraseMessages(space, [row.number for row in rows]),
    "summaries": lambda space, rows: EraseSummaries(space, [row.number for row in rows]),
    "memories": lambda space, rows: EraseMemories(space, [row.number for row in rows]),
    "facts": EraseFacts,
    "memory_versions": EraseMemoryVersions,
}


def discard(change: Discard, space: str | None = None) -> Rule[Discarded]:
    """Delete some of the rows that are older than a moment, in one space or in all."""
    if change.what not in OLD_TABLES:
        return Discarded((yield from ask(EraseOldRows(change.what, change.before, change.limit, space))))
    gone: Counter[tuple[str, str]] = Counter()
    for table in OLD_TABLES[change.what]:
        old = yield from ask(OldRows(table, change.before, change.limit, space))
        if table == "archives":
            old = yield from _messages_of(old, change.limit)
        by_space: dict[str, list[OldRow]] = defaultdict(list)
        for row in old:
            by_space[row.space].append(row)
        for where, rows in by_space.items():
            yield _ERASE[table](where, rows)
        gone.update((row.space, row.user) for row in old)
    until = moment(change.before).date().isoformat()
    for (where, user), count in gone.items():
        subject = f"{count} {change.what}, older than {until}"
        yield RecordAudit(Scope.of(user, where), change.actor, "retention.purge", subject)
    return Discarded(gone.total())


def _messages_of(archives: Sequence[OldRow], limit: int) -> Rule[list[OldRow]]:
    """Return the messages of whole archives, until there are `limit` of them or more, and what they took back."""
    found: list[OldRow] = []
    for archive in archives:
        if len(found) < limit:
            messages = yield from ask(ChunkMessages(Scope.of(archive.user, archive.space), archive.number))
            found += [archive._replace(number=seq) for seq, _ in messages]
    for space in {row.space for row in found}:
        seqs = [row.number for row in found if row.space == space]
        earlier = yield from ask(TakenBackBefore(space, seqs))
        found += [OldRow(space, message.user, message.seq) for message in earlier]
    return found


OF_NONE = ""
"""Stands for what belongs to no space."""


def spaces_of(change: Change) -> set[str]:
    """Return the spaces that a change writes to. A `Discard` does not know its own before it looks for it."""
    match change:
        case AddMessage() | Archive() | AddView() | AddMemory():
            return {change.draft.scope.space}
        case Discard() | PutMark():
            return {OF_NONE}
        case Restore():
            return {_space_of(change.row)}
        case AddVectors() | AddNoteVectors():
            return {row.space for row in change.rows}
        case Advance():
            return {processed_space(change), *(touch.subject.space for touch in change.touched)}
        case FinishEntry():
            return {change.subject.space}
        case ChangeMemory():
            return {change.memory.space}
        case Spend():
            return {OF_NONE if change.scope is None else change.scope.space}
        case _:
            return {change.scope.space}


def _space_of(row: Row) -> str:
    match row:
        case SessionRow():
            return row.session.space
        case SummaryRow():
            return row.summary.space
        case MemoryRow():
            return row.memory.space
        case _:
            return row.space
