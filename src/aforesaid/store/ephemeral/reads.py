"""Reads of the store in memory: one function for each question."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date
from itertools import chain, islice

from aforesaid.domain.checks import EARLIEST, LARGEST, LATEST, Within, moment
from aforesaid.domain.details import is_regular
from aforesaid.domain.hit import Unembedded
from aforesaid.domain.memory import NoteKey, UnembeddedNote
from aforesaid.domain.message import Message, Position, in_time_order
from aforesaid.domain.report import Activity, AuditEntry, Ledger, Setting, Stats
from aforesaid.domain.scope import Scope, Session
from aforesaid.domain.setting import EVERYBODY
from aforesaid.domain.thread import Thread, newest_first, threads_after, threads_of
from aforesaid.errors import NotFound, quoted
from aforesaid.store import questions
from aforesaid.store.ephemeral.known_reads import summaries_of
from aforesaid.store.ephemeral.reader import Reader
from aforesaid.store.ephemeral.state import Entry, person, thread
from aforesaid.store.records import hashes_in


def messages(reader: Reader, question: questions.Messages) -> list[Message]:
    """Return the newest messages by when they were said, or the first ones after a position, oldest first."""
    wanted = (
        entry.message
        for entry in _ordered(reader, question)
        if (question.archived or entry.message.active)
        and (question.versions or not entry.message.replaced)
        and question.where.holds(entry.message)
    )
    found = list(islice(wanted, question.limit))
    return found if question.after is not None else found[::-1]


def count(reader: Reader, question: questions.MessageCount) -> int:
    """Return the number of messages."""
    wanted = questions.Messages(
        question.scope, question.within, LARGEST, archived=question.archived, where=question.where
    )
    return len(messages(reader, wanted))


def threads(reader: Reader, question: questions.Threads) -> list[Thread]:
    """Return the user's threads, newest first."""
    every = newest_first(threads_of(messages(reader, questions.Messages(question.scope, limit=LARGEST))).values())
    return [*threads_after(every, question.before, question.scope.user)][: question.limit]


def _ordered(reader: Reader, question: questions.Messages) -> Iterator[Entry]:
    """Return what the scope holds between two positions, by when it was said: newest first without `after`."""
    scope, within, before = question.scope, question.within, question.before
    holds = reader.state.holding(scope, within)
    ordered = reader.time_order.of(reader.state, person(scope) if within == "user" else thread(scope), within != "user")
    end = len(ordered)
    if before is not None:
        end = bisect_left(ordered, _position(reader, scope, within, before))
    start = 0 if question.after is None else bisect_right(ordered, question.after)
    for place in range(end - 1, -1, -1) if question.after is None else range(start, end):
        entry = reader.state.log[ordered[place].seq]
        if within != "session" or holds(entry.message):
            yield entry


def _position(reader: Reader, scope: Scope, within: Within, before: int | Position) -> Position:
    """Return the position that a read ends before."""
    if isinstance(before, Position):
        return before
    for entry in reader.state.newest_inside(scope, within):
        if entry.message.seq <= before:
            at, seq = entry.message.position
            return Position(at, seq if seq == before else seq + 1)
    return Position(EARLIEST, 0)


def message(reader: Reader, question: questions.MessageById) -> Message:
    """Return one message by its id."""
    found = [
        entry.message
        for entry in reader.state.inside(question.scope, question.within)
        if entry.message.id == question.message_id
    ]
    if not found:
        raise NotFound(f"{quoted(question.scope.user)} has no message {quoted(question.message_id)}")
    return max(found, key=lambda message: (message.thread == question.scope.thread, message.seq))


def said_between(reader: Reader, question: questions.MessagesBetween) -> list[Message]:
    """Return what was said in a space, by when it was said."""
    first, last = moment(max(question.since, EARLIEST)), moment(min(question.until - 1, LATEST))
    every = (entry.message for entry in reader.state.log.values())
    return in_time_order(each for each in every if each.space == question.space and first <= each.at <= last)


def said_per_day(reader: Reader, question: questions.ActivityPerDay) -> list[Activity]:
    """Return how much was said on each day."""
    said = said_between(reader, questions.MessagesBetween(question.space, question.since, question.until))
    roles: dict[date, list[str]] = {}
    for message in said:
        if question.user in (None, message.user):
            roles.setdefault(message.at.astimezone(UTC).date(), []).append(message.role)
    return [Activity(day, len(some), some.count("user")) for day, some in sorted(roles.items())]


def vectors(reader: Reader, question: questions.MessageVectors) -> dict[int, bytes]:
    """Return the vectors of messages."""
    known = reader.state.vectors
    mine = [message.seq for message in pick(reader, questions.MessagesByNumber(question.scope, question.seqs))]
    return {seq: known[question.embedder, seq] for seq in mine if (question.embedder, seq) in known}


def token_vectors(reader: Reader, question: questions.TokenVectors) -> dict[int, bytes]:
    """Return the token vectors of messages."""
    known = reader.state.vectors
    inside = pick(reader, questions.MessagesByNumber(question.scope, question.seqs, within=question.within))
    return {each.seq: known[question.encoder, each.seq] for each in inside if (question.encoder, each.seq) in known}


def sessions(reader: Reader, question: questions.Sessions) -> list[Session]:
    """Return the sessions that the scope's newest messages are in, oldest first by start."""
    wanted = dict[int, None]()
    for entry in _ordered(reader, questions.Messages(question.scope, question.within)):
        message = entry.message
        wanted[reader.state.session_names[(message.space, message.thread), message.session]] = None
        if len(wanted) == question.limit:
            break
    found = [reader.state.sessions[key] for key in wanted]
    return [kept.session for kept in sorted(found, key=lambda kept: (kept.session.started_at, kept.key))]


def settings(reader: Reader, question: questions.Settings) -> list[Setting]:
    """Return the user's settings, by name."""
    found = [setting for (owner, _), setting in reader.state.settings.items() if owner == person(question.scope)]
    return sorted(found, key=lambda setting: setting.key)


def ledger(reader: Reader, question: questions.UserLedger) -> Ledger:
    """Return the user's counts."""
    mine = [entry.message for entry in reader.state.inside(question.scope, "user")]
    wanted = questions.Summaries(question.scope, kind=None if question.here else "tree", here=question.here)
    found = summaries_of(reader, wanted)
    covered, last_chunk = 0, reader.state.chunks.get(person(question.scope), 0)
    if question.here:
        mine = [message for message in mine if message.thread == question.scope.thread]
        found = [summary for summary in found if summary.reach in ("thread", "chunks")]
        covered = max((summary.last for summary in found if summary.reach == "thread"), default=0)
        last_chunk = max((message.chunk or 0 for message in mine), default=0)
    turns = [message for message in mine if message.role == "user"]
    active = Counter(summary.level for summary in found)
    return Ledger(
        messages=len(mine),
        archived=sum(not message.active for message in mine),
        turns=len(turns),
        open_turns=sum(message.chunk is None and message.seq > covered for message in turns),
        last_seq=max((message.seq for message in mine), default=0),
        last_chunk=last_chunk,
        active_summaries=tuple(sorted(active.items())),
        highest_level=max(active, default=0),
    )


def unembedded(reader: Reader, question: questions.UnembeddedMessages) -> list[Unembedded]:
    """Return the oldest messages that an embedder has not seen."""
    due = [
        entry.message
        for entry in islice(reader.state.after(reader.state.seen.get(question.embedder, 0)), question.limit)
    ]
    equal = [reader.state.embedded.get((question.embedder, message.text)) for message in due]
    return [
        Unembedded(message.seq, message.text, None if seq is None else reader.state.vectors[question.embedder, seq])
        for message, seq in zip(due, equal, strict=True)
    ]


def unembedded_notes(reader: Reader, question: questions.UnembeddedNotes) -> list[UnembeddedNote]:
    """Return the oldest notes that an embedder has not seen."""
    notes = [UnembeddedNote(NoteKey("summary", each.id), each.text) for each in reader.state.summaries.values()]
    notes += [UnembeddedNote(NoteKey("memory", each.id), each.text) for each in reader.state.memories.values()]
    return [note for note in notes if (question.embedder, note.key) not in reader.state.note_vectors][: question.limit]


def pick(reader: Reader, question: questions.MessagesByNumber) -> list[Message]:
    """Return messages of the scope by sequence number, in order."""
    holds = reader.state.holding(question.scope, question.within)
    found = [reader.state.log[seq].message for seq in sorted(set(question.seqs)) if seq in reader.state.log]
    return [message for message in found if holds(message)]


def spent(reader: Reader, question: questions.TokensSpent) -> int:
    """Return the tokens that were spent on a day."""
    return reader.state.spending.get((question.day, None if question.scope is None else person(question.scope)), 0)


def audit(reader: Reader, question: questions.AuditRows) -> list[AuditEntry]:
    """Return the newest audit rows about the user."""
    return [entry for entry in reader.state.audit.values() if (entry.space, entry.user) == person(question.scope)][
        -question.limit :
    ]


def irregular_ids(reader: Reader, _: questions.IrregularIds) -> frozenset[str]:
    """Return the ids that are not spelled regularly."""
    state = reader.state
    ids = {each for pair in chain(state.owners, state.threads) for each in pair}
    ids |= {kept.session.id for kept in state.sessions.values()}
    ids |= {entry.message.author for entry in state.log.values()}
    return frozenset(each for each in ids if not is_regular(each))


def stats(reader: Reader, _: questions.Totals) -> Stats:
    """Return totals."""
    return Stats(
        spaces=len({space for space, _ in reader.state.owners}),
        users=sum(user != EVERYBODY for _, user in reader.state.owners),
        threads=len(reader.state.threads),
        sessions=len(reader.state.sessions),
        messages=len(reader.state.log),
        archived=sum(not entry.message.active for entry in reader.state.log.values()),
        summaries=len(reader.state.summaries),
        memories=len(reader.state.memories),
        bytes=sum(len(entry.message.text.encode()) for entry in reader.state.log.values()),
    )


def following(reader: Reader, question: questions.MessagesAfter) -> list[Message]:
    """Return the user's messages after a sequence number, oldest first."""
    found = (
        entry.message
        for entry in reader.state.stretch(question.scope, question.after + 1, LARGEST)
        if (not question.here or entry.message.thread == question.scope.thread)
        and (question.archived or entry.message.active)
    )
    return list(islice(found, question.limit))


def versions(reader: Reader, question: questions.VersionsOf) -> list[Message]:
    """Return all versions of the user's messages, in the order of the log."""
    mine = [reader.state.log[seq].message for seq in reader.state.numbers.owned(person(question.scope))]
    before = {message.seq: message.replaces for message in mine}
    after = {message.replaces: message.seq for message in mine if message.replaces is not None}
    wanted: set[int] = set()
    reached = {seq for seq in question.seqs if seq in before}
    while reached:
        wanted |= reached
        near = {before.get(seq) for seq in reached} | {after.get(seq) for seq in reached}
        reached = {seq for seq in near if seq is not None} - wanted
    return [message for message in mine if message.seq in wanted]


def attachment_hashes(reader: Reader, _: questions.AttachmentHashes) -> frozenset[str]:
    """Return the hashes that the parts of messages name."""
    found = (entry.message.details for entry in reader.state.log.values())
    return hashes_in(details for details in found if details is not None)


def response_owner(reader: Reader, question: questions.ResponseOwner) -> tuple[str, str] | None:
    """Return whose the first answer with a response id is."""
    found = (
        message
        for entry in reader.state.log.values()
        if (message := entry.message).id.startswith("reply:") and message.metadata.get("response") == question.response
    )
    first = min(found, key=lambda message: (message.stored_at, message.seq), default=None)
    return None if first is None else (first.space, first.user)


def change_token(_: Reader, __: questions.ChangeToken) -> str:
    """Return always the same text: no other process can change this store."""
    return ""


def marks(reader: Reader, _: questions.Marks) -> dict[str, str]:
    """Return what is kept in mind about the store."""
    return dict(reader.state.marks)
