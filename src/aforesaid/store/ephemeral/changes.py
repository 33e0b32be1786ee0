"""Carrying out changes on the store in memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from aforesaid.domain.change import AddMessage, AddNoteVectors, AddVectors, Change
from aforesaid.domain.checks import moment, now
from aforesaid.domain.message import Draft, Message, new_version, no_such_version, repeats
from aforesaid.domain.receipt import Repeated, Result, Stored
from aforesaid.domain.scope import SESSION_SILENCE, Scope, Session, automatic_name, opening_message, place
from aforesaid.domain.transfer import Restore, Restored, as_expected, draft_of
from aforesaid.errors import InvalidInput, quoted
from aforesaid.store.contract import Progress, reporting
from aforesaid.store.ephemeral.answers import ANSWERS
from aforesaid.store.ephemeral.lookups import LOOKUPS, RestoreIndex
from aforesaid.store.ephemeral.reader import Reader
from aforesaid.store.ephemeral.state import Entry, KeptSession, State, person, thread
from aforesaid.store.ephemeral.writes import WRITES
from aforesaid.store.questions import Question
from aforesaid.store.rules import RULES
from aforesaid.store.rules.purging import replace_version
from aforesaid.store.rules.writes import Operation, Rule, run

T = TypeVar("T")


def carry_out(state: State, changes: Sequence[Change], progress: Progress | None = None) -> tuple[Result, ...]:
    """Carry out a change set on a layer."""
    work = Changes(state)
    return tuple([work.carry_out(change) for change in reporting(changes, "stored", progress)])


class Changes:
    """Changes to one state. A change that raises may leave it half changed: it is a layer, and the caller drops it."""

    def __init__(self, state: State) -> None:
        """Work on `state`."""
        self.state: State = state
        self.index: RestoreIndex = RestoreIndex(state)
        self._reader = Reader(state)

    def carry_out(self, change: Change) -> Result:
        """Carry out one change."""
        match change:
            case AddMessage():
                return self._add_message(change)
            case Restore(row=Message() as row):
                return as_expected(change, self._restore_message(row))
            case AddVectors():
                for vector in change.rows:
                    if vector.value and vector.seq in self.state.log:
                        self.state.vectors.setdefault((change.embedder, vector.seq), vector.value)
                        self.state.embedded.setdefault((change.embedder, vector.text), vector.seq)
                self.state.seen[change.embedder] = max(change.up_to, self.state.seen.get(change.embedder, 0))
            case AddNoteVectors():
                for key, value, _ in change.rows:
                    if key.id in (self.state.summaries if key.kind == "summary" else self.state.memories):
                        self.state.note_vectors.setdefault((change.embedder, key), value)
            case _:
                return cast("Result", self.run(RULES[type(change)](change)))
        return None

    def run(self, rule: Rule[T]) -> T:
        """Carry out a rule."""
        return run(rule, self._perform)

    def _perform(self, operation: Operation) -> Any:  # noqa: ANN401 - the operation says it
        if not isinstance(operation, Question):
            return WRITES[type(operation)](self, operation)
        look_up = LOOKUPS.get(type(operation))
        if look_up is not None:
            return look_up(self, operation)
        return ANSWERS[type(operation)](self._reader, operation)

    def _restore_message(self, row: Message) -> Restored:
        draft = draft_of(row)
        named = None if draft.replaces is None else self._named_by(draft)
        draft = draft._replace(replaces=None if named is None else named.seq)
        earlier = self._delivered_before(draft)
        if earlier is not None:
            return Restored(earlier.seq, False)
        if named is not None:
            draft = self._new_version(draft, named)
        seq = self.state.number("log", row.seq)
        session = automatic_name(seq) if opening_message(row.session) == row.seq else row.session
        self._append(draft, seq, self._enter(draft, session), hidden=row.replaced)
        return Restored(seq, True)

    def _add_message(self, change: AddMessage) -> Stored | Repeated:
        draft, state = change.draft, self.state
        named = None if draft.replaces is None else self._named_by(draft)
        earlier = self._delivered_before(draft if named is None else draft._replace(replaces=named.seq))
        if earlier is not None:
            return Repeated(earlier)
        if draft.replaces is not None:
            if named is None:
                raise no_such_version(draft)
            draft = self._new_version(draft, named)
        seq = state.number("log")
        stored = self._append(draft, seq, self._session_for(draft, seq, change.silence))
        if draft.replaces is not None:
            self.run(replace_version(draft))
        return stored

    def _named_by(self, draft: Draft) -> Message | None:
        """Return the message that a draft says it replaces, if the owner has it in that thread."""
        state, replaces = self.state, draft.replaces
        seq = replaces if isinstance(replaces, int) else state.by_given_id.get((thread(draft.scope), str(replaces)))
        entry = None if seq is None else state.log.get(seq)
        if entry is None or entry.owner != person(draft.scope) or entry.message.thread != draft.scope.thread:
            return None
        return entry.message

    def _new_version(self, draft: Draft, named: Message) -> Draft:
        """Return the draft of a new version, which replaces the newest one."""
        newest = named
        while newest.replaced:
            later = (each for each in self._after(draft.scope, newest.seq) if each.replaces == newest.seq)
            if (newer := next(later, None)) is None:
                break  # the tombstone of a message that was taken back
            newest = newer
        return new_version(draft, named.position, named.role, newest.position)

    def _after(self, scope: Scope, seq: int) -> Iterator[Message]:
        mine = self.state.numbers.owned(person(scope))
        return (self.state.log[each].message for each in mine[bisect_right(mine, seq) :])

    def _append(self, draft: Draft, seq: int, session: str, *, hidden: bool = False) -> Stored:
        """Store a message under its number."""
        scope, state = draft.scope, self.state
        self.own(scope, draft.stored_at)
        if draft.id is not None:
            state.by_given_id[thread(scope), draft.id] = seq
        said_then = thread(scope), draft.at
        state.by_time[said_then] = (*state.by_time.get(said_then, ()), seq)
        stored = Stored(draft, seq, session, draft.hash)
        message = replace(stored.message, replaced=True) if hidden else stored.message
        state.log[seq] = Entry(message, draft.id)
        state.numbers.add(message)
        if isinstance(draft.replaces, int):
            entry = state.log[draft.replaces]
            state.log[draft.replaces] = replace(entry, message=replace(entry.message, replaced=True))
        return stored

    def _delivered_before(self, draft: Draft) -> Message | None:
        """Return the message that a draft repeats."""
        state = self.state
        if draft.id is not None:
            seq = state.by_given_id.get((thread(draft.scope), draft.id))
            if seq is not None:
                return state.log[seq].message
        for seq in state.by_time.get((thread(draft.scope), draft.at), ()):
            entry = state.log[seq]
            if repeats(draft, entry.message, entry.given_id):
                return entry.message
        return None

    def _session_for(self, draft: Draft, seq: int, silence: int) -> str:
        sessions, scope = self.state.sessions, draft.scope
        if scope.session is not None:
            keep, absorb = self._session_named(scope, scope.session), None
        else:
            here = self.state.threads.get(thread(scope), ())
            until = bisect_left(here, draft.at + silence, key=lambda key: sessions[key].stretch.started)
            placement = place(draft.at, silence, [sessions[key].stretch for key in here[max(0, until - 2) : until]])
            keep = None if placement.keep is None else sessions[placement.keep.key]
            absorb = None if placement.absorb is None else sessions[placement.absorb.key]
        if keep is None:
            return self._open_session(draft, scope.session or automatic_name(seq), silence)
        if absorb is not None:
            keep = self._merge(keep, absorb)
        return self._grow(keep, moment(draft.at))

    def _enter(self, draft: Draft, name: str) -> str:
        """Put a message into the session of its thread that has a name, whatever the silences say."""
        key = self.state.session_names.get((thread(draft.scope), name))
        if key is None:
            return self._open_session(draft, name, SESSION_SILENCE)
        return self._grow(self.state.sessions[key], moment(draft.at))

    def _grow(self, keep: KeptSession, at: datetime) -> str:
        old = keep.session
        grown = replace(
            old,
            started_at=min(old.started_at, at),
            last_activity=max(old.last_activity, at),
            messages=old.messages + 1,
        )
        self.keep_session(replace(keep, session=grown))
        return grown.id

    def _session_named(self, scope: Scope, name: str) -> KeptSession | None:
        state = self.state
        key = state.session_names.get((thread(scope), name))
        opened_by = opening_message(name)
        if key is None and opened_by is not None:
            entry = state.log.get(opened_by)
            if entry is None or (entry.message.space, entry.message.thread) != thread(scope):
                raise InvalidInput(
                    f"there is no session {quoted(name)} in this thread; names like it are given by Aforesaid"
                )
            key = state.session_names[thread(scope), entry.message.session]
        return None if key is None else replace(state.sessions[key], automatic=False)

    def _open_session(self, draft: Draft, name: str, silence: int) -> str:
        scope = draft.scope
        at = moment(draft.at)
        key = self.state.number("sessions")
        session = Session(name, scope.space, scope.thread, scope.user, at, at, 1, timedelta(microseconds=silence))
        self.keep_session(KeptSession(key, session, automatic=opening_message(name) is not None))
        return name

    def _merge(self, keep: KeptSession, absorb: KeptSession) -> KeptSession:
        state, old, gone = self.state, keep.session, absorb.session
        merged = replace(
            keep,
            session=replace(
                old,
                started_at=min(old.started_at, gone.started_at),
                last_activity=max(old.last_activity, gone.last_activity),
                messages=old.messages + gone.messages,
            ),
        )
        here = gone.space, gone.thread
        for seq in state.numbers.said(here):
            entry = state.log[seq]
            if entry.message.session == gone.id:
                state.log[seq] = replace(entry, message=replace(entry.message, session=old.id))
        state.threads[here] = tuple(key for key in state.threads[here] if key != absorb.key)
        del state.sessions[absorb.key]
        del state.session_names[here, gone.id]
        self.keep_session(merged)
        return merged

    def keep_session(self, kept: KeptSession) -> None:
        """Put a session where it is looked for: by its name and, where the log found it, by its start."""
        state, here = self.state, (kept.session.space, kept.session.thread)
        before = state.sessions.get(kept.key)
        state.sessions[kept.key] = kept
        state.session_names[here, kept.session.id] = kept.key
        if before is not None and (before.automatic, before.session.started_at) == (
            kept.automatic,
            kept.session.started_at,
        ):
            return
        others = state.threads.get(here, ())
        if before is not None:
            others = tuple(key for key in others if key != kept.key)
        if kept.automatic:
            place = bisect_left(others, (kept.stretch.started, kept.key), key=self._order_of_sessions)
            others = (*others[:place], kept.key, *others[place:])
        state.threads[here] = others

    def _order_of_sessions(self, key: int) -> tuple[int, int]:
        return self.state.sessions[key].stretch.started, key

    def own(self, scope: Scope, at: int | None = None) -> None:
        """Write down that something belongs to a user."""
        self.state.owners.setdefault(person(scope), moment(now() if at is None else at))
