"""Erasing a user from the store in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from aforesaid.domain.agenda import Subject
from aforesaid.domain.clock import now
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.domain.summary import CONTINUED, Summary
from aforesaid.domain.transfer import Purged, purged_by
from aforesaid.errors import NotFound, quoted
from aforesaid.store.ephemeral import summaries
from aforesaid.store.ephemeral.layer import Rows
from aforesaid.store.ephemeral.numbers import Name
from aforesaid.store.ephemeral.state import KeptSession, State, as_microseconds, facts_table, person

if TYPE_CHECKING:
    from aforesaid.store.ephemeral.changes import Changes

K = TypeVar("K", bound=Hashable)

_COUNTED = ("log", "sessions", "summaries", "memories", "audit")


def purge(work: Changes, state: State, scope: Scope, actor: str) -> Purged:
    """Erase a user and what was made with their words."""
    return _Purge(work, state, scope).carry_out(actor)


class _Purge:
    """What goes, gathered before anything is changed."""

    def __init__(self, work: Changes, state: State, scope: Scope) -> None:
        self._work = work
        self._state = state
        self._scope = scope
        self._who = person(scope)
        self._messages = {
            seq: entry.message
            for seq, entry in state.log.items()
            if entry.message.space == scope.space
            and purged_by(scope.user, entry.message.user, entry.message.author, entry.message.role)
        }
        known = self._who in state.owners or self._messages
        erased_before = any(e.action == "purge" and (e.space, e.user) == self._who for e in state.audit.values())
        if not known and not erased_before:
            raise NotFound(f"there is no user {quoted(scope.user)} in the space {quoted(scope.space)}")
        self._summaries = self._with_versions_and_above(set(self._made_with_them()))
        self._memories = {memory.id for memory in state.memories.values() if self._goes(memory)}

    def carry_out(self, actor: str) -> Purged:
        """Erase it all."""
        state = self._state
        gone: list[Summary | MemoryRecord] = [state.summaries[key] for key in self._summaries]
        gone += [state.memories[key] for key in self._memories]
        others = {(each.space, each.user) for each in gone} | {(m.space, m.user) for m in self._messages.values()}
        others.discard(self._who)
        for table in _COUNTED:
            state.given[table] = state.last_number(table)
        self._count_agenda()
        self._plan_again(others)
        self._erase_summaries()
        self._erase_memories()
        threads = {(each.space, each.thread) for each in gone if isinstance(each, Summary)}
        opened = [kept.session for kept in state.sessions.values() if kept.session.user == self._scope.user]
        threads |= {(each.space, each.thread) for each in opened if each.space == self._scope.space}
        erase_messages(self._work, state, self._messages, threads, gone=self._scope.user)
        self._erase_names(others)
        of_others = sum((each.space, each.user) != self._who for each in gone)
        done = Purged(len(self._messages), len(self._summaries), len(self._memories), of_others)
        self._work.note(self._scope, actor, "purge", done.counts)
        return done

    def _made_with_them(self) -> Iterator[int]:
        """Give out the summaries of the user, and those of others that cover what goes or read it on their day."""
        theirs = {(message.space, message.user) for message in self._messages.values()}
        days = {message.at.date() for message in self._messages.values() if not is_direct(message.thread)}
        near = {day + timedelta(days=step) for day in days for step in (-1, 0, 1)}
        for summary in self._state.summaries.values():
            owner = (summary.space, summary.user)
            read_them = summary.kind == "day" and summary.day in near and summary.space == self._scope.space
            if owner == self._who or read_them or (owner in theirs and self._covers_them(summary)):
                yield summary.id

    def _covers_them(self, summary: Summary) -> bool:
        return any(message.seq in self._messages for message in summaries.below(self._state, summary))

    def _with_versions_and_above(self, found: set[int]) -> set[int]:
        every = self._state.summaries.values()
        while True:
            more = {each.id for each in every if found.intersection(each.sources) or each.replaces in found}
            more |= {self._state.summaries[key].replaces or 0 for key in found} - {0}
            if more <= found:
                return found
            found = found | more

    def _goes(self, memory: MemoryRecord) -> bool:
        if memory.space != self._scope.space:
            return False
        every = [memory, *(version.before for version in self._state.versions.get(memory.id, ()))]
        said = any(each.speaker == self._scope.user for each in every)
        return memory.user == self._scope.user or said or any(seq in self._messages for seq in memory.sources)

    def _erase_summaries(self) -> None:
        state = self._state
        for summary in [state.summaries.pop(key) for key in sorted(self._summaries)]:
            if not summary.rolled_back and not summary.replaced:
                self._give_back(summary)
        for embedder, key in list(state.note_vectors):
            gone = self._summaries if key.kind == "summary" else self._memories
            if key.id in gone:
                del state.note_vectors[embedder, key]

    def _give_back(self, summary: Summary) -> None:
        """Make active again what an erased summary stood for."""
        state = self._state
        if summary.reach == "chunks" and summary.level == 1:
            for entry in state.stretch(Scope(summary.space, summary.user, ""), summary.first, summary.last):
                if entry.message.chunk in summary.chunks:
                    freed = replace(entry.message, active=True, chunk=None)
                    state.log[entry.message.seq] = replace(entry, message=freed)
        elif summary.reach == "chunks" or summary.kind in CONTINUED:
            for source in summary.sources:
                below = state.summaries.get(source)
                if below is not None and not below.rolled_back and not below.replaced:
                    state.summaries[source] = replace(below, active=True)

    def _erase_memories(self) -> None:
        for number in self._memories:
            del self._state.memories[number]
            self._state.versions.pop(number, None)
        for number, memory in self._state.memories.items():
            if memory.superseded_by in self._memories:
                self._state.memories[number] = replace(memory, superseded_by=None)
            for place, version in enumerate(versions := list(self._state.versions.get(number, ()))):
                if version.before.superseded_by in self._memories:
                    versions[place] = replace(version, before=replace(version.before, superseded_by=None))
                    self._state.versions[number] = tuple(versions)

    def _erase_names(self, others: set[Name]) -> None:
        state, who = self._state, self._who
        tables: tuple[Rows[Name, Any], ...] = (state.tombstones, state.extracted, state.owners, state.chunks)
        for table in tables:
            table.pop(who, None)
        state.given.pop(facts_table(who), None)
        _take_out(state.facts, lambda key: key[0] == who)
        _take_out(state.settings, lambda key: key[0] == who)
        _take_out(state.spending, lambda key: key[1] == who)
        # What was worked out for the others may repeat what was in their summaries.
        _take_out(state.derived, lambda key: key[0] == who or key[0] in others)
        for number in [number for number, row in state.audit.items() if (row.space, row.user) == who]:
            del state.audit[number]

    def _count_agenda(self) -> None:
        """Take what goes off the counts of those who walked past it."""
        state = self._state
        for subject, planned in list(state.agenda.items()):
            if subject.space != self._scope.space or not subject.user:
                continue
            passed = [
                message
                for message in self._messages.values()
                if message.user == subject.user
                and subject.thread in ("", message.thread)
                and message.seq <= state.walks.get(subject.policy, 0)
            ]
            if subject.user == self._scope.user:
                del state.agenda[subject]
            elif passed:
                left = max(planned.messages - len(passed), 0)
                characters = max(planned.characters - sum(len(message.text) for message in passed), 0)
                state.agenda[subject] = replace(
                    planned, messages=left, characters=characters, waiting=min(planned.waiting, left)
                )

    def _plan_again(self, others: set[Name]) -> None:
        """Have those looked at whose summaries go, and the days of which one goes."""
        state, at = self._state, now()
        for user in {name for _, name in others}:
            for subject, planned in state.agenda.items():
                if (subject.space, subject.user) == (self._scope.space, user):
                    state.agenda[subject] = replace(planned, due_at=at, failures=0, error=None)
        days = {summary.day for key in self._summaries if (summary := state.summaries[key]).kind == "day"}
        for day in days:
            subject = Subject("calendar", self._scope.space, day="" if day is None else day.isoformat())
            found = state.agenda.get(subject)
            if found is not None:
                state.agenda[subject] = replace(found, due_at=at, done_at=None, done_seq=0, failures=0, error=None)


def erase_messages(
    work: Changes, state: State, messages: Mapping[int, Message], threads: Iterable[Name] = (), gone: str | None = None
) -> None:
    """Take messages out, and bring the sessions of their threads, and of others, to what is left.

    Sessions that `gone` opened belong to whoever speaks first in what is left.
    """
    places = set(threads)
    for seq, message in messages.items():
        entry = state.log.pop(seq)
        place = (message.space, message.thread)
        places.add(place)
        if entry.given_id is not None:
            del state.by_given_id[place, entry.given_id]
        said_then = place, as_microseconds(message.at)
        left = tuple(other for other in state.by_time.pop(said_then, ()) if other not in messages)
        if left:
            state.by_time[said_then] = left
    state.numbers.remove(messages.keys())
    _part_versions(state, messages)
    _erase_vectors(state, messages)
    for place in places:
        _count_sessions(work, state, place, gone)


def _part_versions(state: State, gone: Mapping[int, Message]) -> None:
    """Bring versions to what is left: one whose newer version is gone counts again."""
    for message in gone.values():
        entry = None if message.replaces is None else state.log.get(message.replaces)
        if entry is not None:
            state.log[entry.message.seq] = replace(entry, message=replace(entry.message, replaced=False))
    if any(message.replaced for message in gone.values()):
        owners = {(message.space, message.user) for message in gone.values()}
        for seq in [seq for owner in owners for seq in state.numbers.owned(owner)]:
            entry = state.log[seq]
            if entry.message.replaces in gone:
                state.log[seq] = replace(entry, message=replace(entry.message, replaces=None))


def _erase_vectors(state: State, messages: Mapping[int, Message]) -> None:
    for key in [key for key in state.vectors if key[1] in messages]:
        del state.vectors[key]
    for found in [found for found, seq in state.embedded.items() if seq in messages]:
        del state.embedded[found]
    for embedder, seq in state.vectors:
        state.embedded.setdefault((embedder, state.log[seq].message.text), seq)


def _count_sessions(work: Changes, state: State, place: Name, gone: str | None) -> None:
    """Bring the sessions of a thread to what is left, and drop what is empty."""
    left: dict[str, list[Message]] = {}
    for seq in state.numbers.said(place):
        message = state.log[seq].message
        left.setdefault(message.session, []).append(message)
    for (where, name), key in list(state.session_names.items()):
        if where == place:
            _count_session(work, state, state.sessions[key], left.get(name), gone)
    kept = any(where == place for where, _ in state.session_names)
    if not kept and not any((each.space, each.thread) == place for each in state.summaries.values()):
        state.threads.pop(place, None)


def _count_session(
    work: Changes, state: State, kept: KeptSession, left: list[Message] | None, gone: str | None
) -> None:
    here = kept.session.space, kept.session.thread
    if left is None:
        del state.sessions[kept.key]
        del state.session_names[here, kept.session.id]
        state.threads[here] = tuple(key for key in state.threads.get(here, ()) if key != kept.key)
        return
    session = replace(
        kept.session,
        user=left[0].user if kept.session.user == gone else kept.session.user,
        started_at=min(each.at for each in left),
        last_activity=max(each.at for each in left),
        messages=len(left),
    )
    work.keep_session(replace(kept, session=session))


def _take_out(table: Rows[K, Any], goes: Callable[[K], bool]) -> None:
    for key in [key for key in table if goes(key)]:
        del table[key]
