"""A model of what a store promises about messages, sessions, archives and memories, for the random machine.

It is written from the contract (`aforesaid.domain`) and shares no code with the stores: it is slow, and simple enough
to be checked by reading. It numbers all spaces together, as SQLite does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from aforesaid.domain.checks import microseconds, moment, now
from aforesaid.domain.memory import EDITED, TAKEN_BACK, MemoryDraft, MemoryRecord
from aforesaid.domain.message import Draft, Message, stored_message
from aforesaid.domain.report import Ledger
from aforesaid.domain.scope import Scope, Session
from aforesaid.domain.summary import Summary
from aforesaid.errors import AforesaidError, InvalidInput, NotFound, SourcesChanged

if TYPE_CHECKING:  # What is applied is a value of the store, whose code is not used.
    from aforesaid.store.erasing import SetAside, Withdraw
    from aforesaid.store.memories import AddMemory, ChangeMemory
    from aforesaid.store.messages import AddMessage
    from aforesaid.store.operations import Change
    from aforesaid.store.summaries import Archive, RollBack


class Model:
    """Applies change sets, whole or not at all, and answers questions."""

    def __init__(self) -> None:
        self._messages: dict[int, Message] = {}
        self._sessions: dict[int, Session] = {}
        self._by_name: set[int] = set()  # sessions that are continued by their names, whatever the silences say
        self._summaries: dict[int, Summary] = {}
        self._memories: dict[int, MemoryRecord] = {}
        self._users: set[tuple[str, str]] = set()
        self._given: dict[str, int] = {}  # the last number of each kind: none is given out twice

    def apply(self, changes: Sequence[Change]) -> list[Any]:
        """Return the result of each change, by the method with its name: for a message, it and whether it is new."""
        before = {name: value.copy() for name, value in vars(self).items()}
        try:
            names = [re.sub("([A-Z])", r"_\1", type(change).__name__).lower() for change in changes]
            return [getattr(self, name)(change) for name, change in zip(names, changes, strict=True)]
        except Exception:
            vars(self).update(before)
            raise

    def log(self, scope: Scope, within: str = "user", *, versions: bool = False) -> list[Message]:
        """Return messages by when they were said."""
        found = [
            each
            for each in self._messages.values()
            if each.space == scope.space
            and (each.user == scope.user if within == "user" else each.thread == scope.thread)
            and (within != "session" or each.session == scope.named_session())
            and (versions or not each.replaced)
        ]
        return sorted(found, key=lambda each: (each.at, each.seq))

    def versions_of(self, scope: Scope, seqs: Iterable[int]) -> list[Message]:
        """Return all versions of messages of the user, in the order of the log."""
        mine = sorted(self.log(scope, versions=True), key=lambda each: each.seq)
        found = {*seqs} & {each.seq for each in mine}
        for each in [*mine, *reversed(mine), *mine]:  # to the first versions, then to the last ones
            if each.replaces is not None and found & {each.seq, each.replaces}:
                found |= {each.seq, each.replaces}
        return [each for each in mine if each.seq in found]

    def sessions(self, scope: Scope) -> list[Session]:
        """Return the sessions of the thread, oldest first."""
        found = [each for each in self._sessions.values() if (each.space, each.thread) == (scope.space, scope.thread)]
        return sorted(found, key=lambda each: each.started_at)

    def summaries(self, scope: Scope) -> list[Summary]:
        """Return all of the user, highest level first."""
        mine = [each for each in self._summaries.values() if (each.space, each.user) == scope[:2]]
        return sorted(mine, key=lambda each: (-each.level, each.id))

    def memories(self, scope: Scope) -> list[MemoryRecord]:
        """Return all of the user, most important first, newest first among equals."""
        mine = [each for each in self._memories.values() if (each.space, each.user) == scope[:2]]
        return sorted(mine, key=lambda each: (-each.importance, -each.id))

    def ledger(self, scope: Scope) -> Ledger:
        """Count what the user has."""
        log = self.log(scope, versions=True)
        turns = [each for each in log if each.role == "user"]
        levels = [each.level for each in self.summaries(scope) if each.active]
        counts = len(log), sum(not each.active for each in log), len(turns), sum(each.active for each in turns)
        newest = max((each.seq for each in log), default=0), self._given.get(f"chunk {scope[:2]}", 0)
        return Ledger(*counts, *newest, tuple(sorted(Counter(levels).items())), max(levels, default=0))

    def _next(self, kind: str) -> int:
        self._given[kind] = self._given.get(kind, 0) + 1
        return self._given[kind]

    def _add_message(self, change: AddMessage) -> tuple[Message, str]:
        draft, scope = change.draft, change.draft.scope
        thread = [each for each in self._messages.values() if (each.space, each.thread) == (scope.space, scope.thread)]
        named = [each for each in thread if each.user == scope.user and draft.replaces in (each.seq, each.id)]
        if named:
            draft = draft._replace(replaces=named[0].seq)
        known = [each for each in thread if each.id == draft.id] or [each for each in thread if _repeats(draft, each)]
        if known:
            return known[0], "Repeated"
        before = None
        if draft.replaces is not None:
            _expect(bool(named), NotFound)
            _expect(named[0].role == draft.role, InvalidInput)
            before = self.versions_of(scope, [named[0].seq])[-1]
            at = draft.at if draft.at_given else microseconds(before.at, "at")
            draft = draft._replace(replaces=before.seq, at=at)
        seq = self._next("message")
        session = self._placed(draft, seq, timedelta(microseconds=change.silence), thread)
        self._messages[seq] = replace(stored_message(draft, seq, session, b""), replaced=draft.is_tombstone)
        self._users.add(scope[:2])
        if before is not None:
            # Placing the new version may have joined the session of the one before to another.
            self._messages[before.seq] = replace(self._messages[before.seq], replaced=True)
            old = {each.seq for each in self.versions_of(scope, [seq]) if each.replaced and each.text != draft.text}
            self._deactivate(scope, set() if draft.is_tombstone else old, EDITED)
        return self._messages[seq], "Stored"

    def _placed(self, draft: Draft, seq: int, silence: timedelta, thread: Sequence[Message]) -> str:
        """Put a message into the named session, one that the silence does not close, or a new one: return its name."""
        scope, at = draft.scope, moment(draft.at)
        here = {key: s for key, s in self._sessions.items() if (s.space, s.thread) == (scope.space, scope.thread)}
        if scope.session is not None:
            keys = [key for key, session in here.items() if session.id == scope.session]
            if not keys and scope.session.startswith("s-"):  # a name that was given out, of a session that was joined
                first = [each.session for each in thread if f"s-{each.seq}" == scope.session]
                keys = [key for key, session in here.items() if session.id in first]
                _expect(bool(keys), InvalidInput)
        else:
            begun = [key for key in here if key not in self._by_name and here[key].started_at < at + silence]
            latest = sorted(begun, key=lambda key: (here[key].started_at, key))[-2:]
            keys = [k for k in latest if here[k].started_at - silence < at < here[k].last_activity + silence]
        key, *gone = keys or [self._next("session")]
        opened = Session(scope.session or f"s-{seq}", scope.space, scope.thread, scope.user, at, at, 0, silence)
        session, *joined = parts = [here.get(each, opened) for each in (key, *gone)]
        if scope.session is not None:
            self._by_name.add(key)
        for each in thread:  # the message closes the silence between two
            if each.session in [other.id for other in joined]:
                self._messages[each.seq] = replace(self._messages[each.seq], session=session.id)
        self._sessions = {number: each for number, each in self._sessions.items() if number not in gone}
        started, last = min(at, *(each.started_at for each in parts)), max(at, *(each.last_activity for each in parts))
        count = 1 + sum(each.messages for each in parts)
        self._sessions[key] = replace(session, started_at=started, last_activity=last, messages=count)
        return session.id

    def _set_aside(self, change: SetAside) -> None:
        hidden = [each for each in self.log(change.scope) if each.seq in change.messages]
        self._messages |= {each.seq: replace(each, replaced=True) for each in hidden}
        self._deactivate(change.scope, {each.seq for each in hidden}, EDITED)

    def _archive(self, change: Archive) -> Summary:
        draft, scope = change.draft, change.draft.scope
        _expect(scope[:2] in self._users, NotFound)
        if draft.messages:
            rows = [each for each in self.log(scope, versions=True) if each.seq in draft.messages]
            _expect(len(rows) == len(draft.messages), NotFound)
            _expect(all(each.active for each in rows), SourcesChanged)
            _expect(not any(each.replaced and each.seq in draft.shown for each in rows), SourcesChanged)
            chunk = self._next(f"chunk {scope[:2]}")
            self._messages |= {each.seq: replace(each, active=False, chunk=chunk) for each in rows}
            level, chunks = 1, [chunk]
            messages, covered = sum(not each.replaced for each in rows), len(rows)
            spans = [(each.seq, each.seq, each.at, each.at) for each in rows]
        else:
            below = [each for each in self.summaries(scope) if each.id in draft.summaries]
            _expect(len(below) == len(draft.summaries), NotFound)
            _expect(all(each.active for each in below), SourcesChanged)
            self._summaries |= {each.id: replace(each, active=False) for each in below}
            level, chunks = below[0].level + 1, sorted(chunk for each in below for chunk in each.chunks)
            messages, covered = sum(each.messages for each in below), sum(each.covered for each in below)
            spans = [(each.first, each.last, each.began_at, each.ended_at) for each in below]
        first, last, began, ended = zip(*spans, strict=True)
        new = Summary(
            id=self._next("summary"), space=scope.space, user=scope.user, thread=scope.thread, kind="tree", model=None,
            level=level, text=draft.text, chunks=tuple(chunks), sources=tuple(sorted(draft.summaries)), prompt="",
            first=min(first), last=max(last), messages=messages, created_at=moment(now()), active=True,
            rolled_back=False, began_at=min(began), ended_at=max(ended), fresh=min(first),
            rows=None if covered == messages else covered,
        )  # fmt: skip
        self._summaries[new.id] = new
        return new

    def _roll_back(self, change: RollBack) -> Summary:
        _expect(change.scope[:2] in self._users, NotFound)
        found = [each for each in self.summaries(change.scope) if each.id == change.summary]
        _expect(bool(found), NotFound)
        summary = found[0]
        above = [each for each in self._summaries.values() if summary.id in each.sources and not each.rolled_back]
        _expect(not summary.rolled_back and not above, SourcesChanged)
        self._release(summary)
        self._summaries[summary.id] = replace(summary, active=False, rolled_back=True)
        return self._summaries[summary.id]

    def _release(self, summary: Summary) -> None:
        """Make active again what a summary archived."""
        if summary.level == 1:
            scope = Scope(summary.space, summary.user, summary.thread)
            rows = [each for each in self.log(scope, versions=True) if each.chunk in summary.chunks]
            self._messages |= {each.seq: replace(each, active=True, chunk=None) for each in rows}
        sources = [each for each in self._summaries.values() if each.id in summary.sources and not each.rolled_back]
        self._summaries |= {each.id: replace(each, active=True) for each in sources}

    def _withdraw(self, change: Withdraw) -> None:
        """Undo what was made from messages that are taken back."""
        scope = change.scope
        gone = {each.seq for each in self.versions_of(scope, change.messages)}
        # Summaries state important memories, so those that archived another source of a memory go too.
        touched = gone.union(*(each.sources for each in self.memories(scope) if gone & {*each.sources}))
        rows = [self._messages[seq] for seq in touched]
        doomed = {each.id: each for each in self.summaries(scope) if any(_covers(each, row) for row in rows)}
        for each in sorted(self.summaries(scope), key=lambda each: each.level):
            if doomed.keys() & {*each.sources}:
                doomed[each.id] = each
        for each in [each for each in doomed.values() if not each.rolled_back]:
            self._release(each)
        self._summaries = {number: each for number, each in self._summaries.items() if number not in doomed}
        self._deactivate(scope, gone, TAKEN_BACK)

    def _deactivate(self, scope: Scope, seqs: set[int], reason: str) -> None:
        """Deactivate memories that rest on these messages alone; what they had superseded is active again."""
        mine = self.memories(scope)
        withdrawn = {each.id for each in mine if each.sources and seqs >= {*each.sources}}
        for each in mine:
            if each.id in withdrawn and each.state != "deactivated":
                after = replace(each, state="deactivated", active=False, valid_to=moment(now()), reason=reason)
            elif each.id not in withdrawn and each.state == "superseded" and each.superseded_by in withdrawn:
                after = replace(each, state="active", active=True, valid_to=None, superseded_by=None, reason="")
            else:
                continue
            self._memories[each.id] = replace(after, revision=each.revision + 1)

    def _add_memory(self, change: AddMemory) -> MemoryRecord:
        draft, scope, at = change.draft, change.draft.scope, moment(now())
        sources = [each for each in self.log(scope, versions=True) if each.seq in draft.sources]
        _expect(len(sources) == len({*draft.sources}), NotFound)
        _expect(not any(each.replaced for each in sources), SourcesChanged)
        given = {each.name: getattr(draft, each.name) for each in fields(MemoryDraft) if each.name != "scope"}
        since = draft.valid_from or at
        given |= {"sources": tuple(sorted({*draft.sources})), "active": draft.state == "active", "valid_from": since}
        given |= {"space": scope.space, "user": scope.user, "speaker": draft.speaker or scope.user, "seen_at": since}
        given |= {"created_at": at, "said_at": draft.said_at or since, "delivered_at": None, "revision": 1}
        new = MemoryRecord(id=self._next("memory"), **given)
        for each in change.supersedes:
            old = self._unchanged(scope, each.memory, each.revision)
            old = replace(old, state="superseded", active=False, valid_to=max(old.valid_from, since), reason="")
            self._memories[old.id] = replace(old, superseded_by=new.id, revision=old.revision + 1)
        self._memories[new.id] = new
        self._users.add(scope[:2])
        return new

    def _change_memory(self, change: ChangeMemory) -> MemoryRecord:
        scope = Scope.of(change.memory.user, change.memory.space)
        _expect(scope[:2] in self._users, NotFound)
        old = self._unchanged(scope, change.memory.id, change.memory.revision)
        self._memories[old.id] = replace(change.memory, revision=old.revision + 1)
        return self._memories[old.id]

    def _unchanged(self, scope: Scope, number: int, revision: int) -> MemoryRecord:
        found = [each for each in self.memories(scope) if each.id == number]
        _expect(bool(found), NotFound)
        _expect(found[0].revision == revision, SourcesChanged)
        return found[0]


def _expect(condition: bool, error: type[AforesaidError]) -> None:  # noqa: FBT001
    if not condition:
        raise error("the contract refuses this")


def _repeats(new: Draft, stored: Message) -> bool:
    """Return whether a message with a time was sent before: the same words of the same person, as the same version."""
    words = new.text, new.author, new.role, moment(new.at)
    same_words = words == (stored.text, stored.author, stored.role, stored.at)
    same_id = new.id is None or stored.id.startswith("#")
    same_details = new.details == stored.details or (new.text and None in (new.details, stored.details))
    same_owner = new.role == "user" or new.scope.user == stored.user
    later = isinstance(new.replaces, int) and stored.seq > new.replaces
    same_version = later if stored.replaces is not None else not isinstance(new.replaces, int)
    return new.at_given and same_words and same_id and bool(same_details) and same_owner and same_version


def _covers(summary: Summary, message: Message) -> bool:
    """Return whether a summary may say something of a message; one that was rolled back, by its range or its time."""
    if summary.rolled_back:
        return summary.first <= message.seq <= summary.last or summary.began_at <= message.at <= summary.ended_at
    return message.chunk in summary.chunks
