"""Taking in rows of a dump, on the store in memory."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING

from aforesaid.domain.agenda import Entry as Planned
from aforesaid.domain.agenda import Subject
from aforesaid.domain.memory import Facts, MemoryRecord, MemoryVersion, Tombstone
from aforesaid.domain.memory_change import SOURCES_KEPT
from aforesaid.domain.message import Message
from aforesaid.domain.note import NoteKey
from aforesaid.domain.report import AuditEntry
from aforesaid.domain.scope import Scope
from aforesaid.domain.session import automatic_name, opening_message
from aforesaid.domain.summary import Summary
from aforesaid.domain.transfer import (
    DayRow,
    ForgottenRow,
    MemoryRow,
    Restored,
    Row,
    SessionRow,
    SettingRow,
    SpendingRow,
    SuccessorRow,
    SummaryRow,
    UserRow,
    VectorOf,
    draft_of,
)
from aforesaid.store.ephemeral import summaries
from aforesaid.store.ephemeral.state import State, as_microseconds

if TYPE_CHECKING:
    from aforesaid.store.ephemeral.changes import Changes


class _Standing:
    """What is taken by the summaries that were not rolled back."""

    def __init__(self) -> None:
        self.once: set[Hashable] = set()
        self.folded: set[int] = set()
        """Those that a summary of a higher level stands for."""
        self.newest: set[Hashable] = set()

    def note(self, summary: Summary) -> None:
        """Count a summary in."""
        if summary.rolled_back:
            return
        self.once.add(_once(summary))
        if summary.reach == "chunks":
            self.folded.update(summary.sources)
        elif summary.active:
            self.newest.add(_newest(summary))


class Restoring:
    """Rows of one change set. What is here already is looked up in tables that are made when first needed."""

    def __init__(self, work: Changes, state: State) -> None:
        self._work = work
        self._state = state
        self._known_summaries: dict[Hashable, int] | None = None
        self._known_memories: dict[Hashable, int] | None = None
        self._known_audit: set[Hashable] | None = None
        self._stands: _Standing | None = None

    def carry_out(self, row: Row) -> Restored:  # noqa: C901, PLR0912 - a case for each kind of row
        """Store a row, unless it is here."""
        match row:
            case Message():
                return self._message(row)
            case SessionRow():
                return self._session(row)
            case SummaryRow():
                return self._summary(row)
            case MemoryRow():
                return self._memory(row)
            case SuccessorRow():
                return self._successor(row)
            case Facts():
                return self._facts(row)
            case ForgottenRow():
                return self._forgotten(row)
            case SettingRow():
                return self._setting(row)
            case UserRow():
                return self._user(row)
            case DayRow():
                return self._day(row)
            case SpendingRow():
                payer = (row.day, (row.space, row.user) if row.space else None)
                fresh = payer not in self._state.spending
                self._state.spending[payer] = max(row.tokens, self._state.spending.get(payer, 0))
                return Restored(0, fresh)
            case AuditEntry():
                return self._audit(row)
            case VectorOf():
                fresh = row.seq in self._state.log and (row.embedder, row.seq) not in self._state.vectors
                if fresh:
                    self._state.vectors[row.embedder, row.seq] = row.value
                    text = self._state.log[row.seq].message.text
                    self._state.embedded.setdefault((row.embedder, text), row.seq)
                return Restored(0, fresh)

    def _message(self, row: Message) -> Restored:
        draft = draft_of(row)
        named = None if draft.replaces is None else self._work.named_by(draft)
        draft = draft._replace(replaces=None if named is None else named.seq)
        earlier = self._work.delivered_before(draft)
        if earlier is not None:
            return Restored(earlier.seq, False)
        if named is not None:
            draft = self._work.new_version(draft, named)
        seq = self._state.number("log", row.seq)
        session = automatic_name(seq) if opening_message(row.session) == row.seq else row.session
        self._work.append(draft, seq, self._work.enter(draft, session))
        return Restored(seq, True)

    def _session(self, row: SessionRow) -> Restored:
        wanted = row.session
        key = self._state.session_names.get(((wanted.space, wanted.thread), wanted.id))
        if key is not None:
            kept = self._state.sessions[key]
            session = replace(kept.session, user=wanted.user, timeout=wanted.timeout)
            self._work.keep_session(replace(kept, session=session, automatic=row.automatic))
        return Restored(0, False)

    def _summary(self, row: SummaryRow) -> Restored:
        new, state = row.summary, self._state
        if self._known_summaries is None:
            self._known_summaries = {_identity(each): each.id for each in state.summaries.values()}
        known = self._known_summaries.get(_identity(new))
        if known is not None:
            self._catch_up(state.summaries[known], new)
            return Restored(known, False)
        self._work.own(Scope.of(new.user, new.space))
        number = state.number("summaries", new.id)
        stored = summaries.store(state, self._placed(row), number)
        self._known_summaries[_identity(new)] = number
        self._standing.note(stored)
        return Restored(number, True)

    def _placed(self, row: SummaryRow) -> Summary:
        """Return a summary as it can stand here, after what it archives was archived."""
        new, state = row.summary, self._state
        owner = (new.space, new.user)
        stands = not new.rolled_back and _once(new) not in self._standing.once
        chunks = new.chunks
        if new.replaces is not None:
            before = state.summaries[new.replaces]
            chunks, stands = before.chunks, stands and not before.rolled_back
        elif new.reach == "chunks" and new.level == 1:
            last = state.chunks.get(owner, 0)
            chunk = max((last + 1, *new.chunks))
            chunks = (chunk,)
            state.chunks[owner] = chunk
            stands = stands and self._take(row, chunk)
        elif new.reach == "chunks":
            below = [state.summaries[source] for source in new.sources]
            chunks = tuple(sorted(chunk for each in below for chunk in each.chunks))
            stands = stands and not any(each.rolled_back or each.id in self._standing.folded for each in below)
        active = new.active and (new.reach == "chunks" or _newest(new) not in self._standing.newest)
        return replace(
            new, chunks=chunks, active=active and stands, rolled_back=not stands, replaced=new.replaced and stands
        )

    @property
    def _standing(self) -> _Standing:
        if self._stands is None:
            self._stands = _Standing()
            for summary in self._state.summaries.values():
                self._stands.note(summary)
        return self._stands

    def _take(self, row: SummaryRow, chunk: int) -> bool:
        """Archive the messages of a summary, if all of them are free."""
        owner, log = (row.summary.space, row.summary.user), self._state.log
        mine = [log[seq] for seq in row.messages if seq in log and log[seq].owner == owner and log[seq].message.active]
        # An archive whose messages were removed by their age stands by itself.
        if len(mine) != len(row.messages) or len(row.messages) not in (0, row.summary.messages):
            return False
        for entry in mine:
            log[entry.message.seq] = replace(entry, message=replace(entry.message, active=False, chunk=chunk))
        return True

    def _catch_up(self, known: Summary, new: Summary) -> None:
        """Bring a summary to the state that it got later elsewhere."""
        if new.rolled_back and not known.rolled_back:
            summaries.undo(self._state, known)
            self._stands = None
        elif known.active and not new.active:
            self._state.summaries[known.id] = replace(known, active=False, replaced=new.replaced)
            self._stands = None

    def _memory(self, row: MemoryRow) -> Restored:
        new, state = replace(row.memory, revision=1 + len(row.versions)), self._state
        owner = Scope.of(new.user, new.space)
        identity = (new.space, new.user, new.created_at, row.first_text)
        if self._known_memories is None:
            self._known_memories = {self._memory_identity(each): each.id for each in state.memories.values()}
        known = self._known_memories.get(identity)
        self._work.own(owner)
        number = state.number("memories", new.id) if known is None else known
        self._known_memories[identity] = number
        if known is None:
            state.memories[number] = replace(new, id=number)
            self._keep_versions(number, row.versions)
            return Restored(number, True)
        before = state.memories[known]
        if before.revision < new.revision:
            kept = len(state.versions.get(known, ()))
            self._keep_versions(known, row.versions[kept:])
            if new.text != before.text:
                for embedder, key in [each for each in state.note_vectors if each[1] == NoteKey("memory", known)]:
                    del state.note_vectors[embedder, key]
            after = replace(new, id=known)
        else:
            after = replace(before, times=max(before.times, new.times), seen_at=max(before.seen_at, new.seen_at))
        sources = sorted({*before.sources, *new.sources})[: max(SOURCES_KEPT, len(before.sources))]
        state.memories[known] = replace(after, sources=tuple(sources))
        return Restored(known, False)

    def _memory_identity(self, memory: MemoryRecord) -> Hashable:
        versions = self._state.versions.get(memory.id, ())
        return memory.space, memory.user, memory.created_at, MemoryRow(memory, versions).first_text

    def _keep_versions(self, memory: int, versions: tuple[MemoryVersion, ...]) -> None:
        if versions:
            kept = self._state.versions.get(memory, ())
            numbered = tuple(
                replace(each, before=replace(each.before, id=memory, revision=len(kept) + place))
                for place, each in enumerate(versions, 1)
            )
            self._state.versions[memory] = (*kept, *numbered)

    def _successor(self, row: SuccessorRow) -> Restored:
        if row.revision is None:
            memory = self._state.memories[row.memory]
            self._state.memories[row.memory] = replace(memory, superseded_by=row.by)
        else:
            versions = list(self._state.versions[row.memory])
            before = versions[row.revision - 1].before
            versions[row.revision - 1] = replace(
                versions[row.revision - 1], before=replace(before, superseded_by=row.by)
            )
            self._state.versions[row.memory] = tuple(versions)
        return Restored(row.memory, False)

    def _facts(self, row: Facts) -> Restored:
        owner = (row.space, row.user)
        self._work.own(Scope.of(row.user, row.space))
        mine = [facts for (whose, _), facts in self._state.facts.items() if whose == owner]
        if any((facts.text, facts.updated_at, facts.cause) == (row.text, row.updated_at, row.cause) for facts in mine):
            return Restored(0, False)
        merged = sorted([*mine, row], key=lambda facts: (facts.updated_at, facts.version))
        for version, facts in enumerate(merged, 1):
            self._state.facts[owner, version] = replace(facts, version=version)
        return Restored(0, True)

    def _forgotten(self, row: ForgottenRow) -> Restored:
        self._work.own(Scope.of(row.user, row.space))
        stones = self._state.tombstones.get((row.space, row.user), ())
        new = Tombstone(row.words, row.up_to)
        if new in stones:
            return Restored(0, False)
        self._state.tombstones[row.space, row.user] = (*stones, new)
        return Restored(0, True)

    def _setting(self, row: SettingRow) -> Restored:
        self._work.own(Scope.of(row.user, row.space))
        key = ((row.space, row.user), row.setting.key)
        known = self._state.settings.get(key)
        if known is not None and known.updated_at >= row.setting.updated_at:
            return Restored(0, False)
        self._state.settings[key] = row.setting
        return Restored(0, True)

    def _user(self, row: UserRow) -> Restored:
        state, owner = self._state, (row.space, row.user)
        fresh = owner not in state.owners
        state.owners[owner] = min(row.created_at, state.owners.get(owner, row.created_at))
        state.chunks[owner] = max(row.last_chunk, state.chunks.get(owner, 0))
        mine = state.inside(Scope.of(row.user, row.space), "user")
        # Otherwise something of them is here that was not looked through there.
        if sum(entry.message.seq <= row.extracted for entry in mine) == row.looked_through:
            state.extracted[owner] = max(row.extracted, state.extracted.get(owner, 0))
        return Restored(0, fresh)

    def _day(self, row: DayRow) -> Restored:
        subject = Subject(row.policy, row.space, day=row.day)
        known = self._state.agenda.get(subject)
        if known is None:
            known = Planned(subject, messages=0, characters=0, waiting=0, last_seq=0, due_at=None)
        elif known.last_seq > known.done_seq:
            return Restored(0, False)
        done_at = max(row.done_at, known.done_at or row.done_at)
        done = replace(known, done_at=done_at, done_seq=max(row.done_seq, known.done_seq))
        fresh = self._state.agenda.get(subject) != done
        self._state.agenda[subject] = done
        return Restored(0, fresh)

    def _audit(self, row: AuditEntry) -> Restored:
        state = self._state
        if self._known_audit is None:
            self._known_audit = {_what(entry) for entry in state.audit.values()}
        if _what(row) in self._known_audit:
            return Restored(0, False)
        self._known_audit.add(_what(row))
        number = state.number("audit")
        state.audit[number] = replace(row, id=number)
        return Restored(0, True)


def _identity(summary: Summary) -> Hashable:
    return (*_once(summary), summary.created_at, summary.text)


def _once(summary: Summary) -> tuple[Hashable, ...]:
    place = (summary.space, summary.user, summary.thread)
    return (*place, summary.kind, summary.level, summary.first, summary.last, summary.prompt, summary.day) + (
        summary.version,
    )


def _newest(summary: Summary) -> Hashable:
    """Return what only one active view can be the newest of."""
    thread = summary.thread if summary.reach == "thread" else None
    return summary.space, summary.user, summary.kind, summary.day, thread


def _what(entry: AuditEntry) -> Hashable:
    return entry.space, entry.user, as_microseconds(entry.at), entry.actor, entry.action, entry.subject
