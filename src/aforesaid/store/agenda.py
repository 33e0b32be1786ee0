"""The agenda: how far policies have processed the log, and what they have to look at."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from aforesaid.domain.scope import Ahead, Backlog, Entry, Passed, Subject, Touch
from aforesaid.domain.transfer import DayRow, Restored
from aforesaid.errors import SourcesChanged
from aforesaid.store.checksums import Checksums, both
from aforesaid.store.messages import count_between
from aforesaid.store.operations import Change, Question, Transaction
from aforesaid.store.sql import BY_NAME, Answer, Row, Statement, first, number, rows

ENTRY_ROWS: Final = """
SELECT agenda.policy, agenda.space, agenda.[[owner ~ user]], agenda.thread, agenda.day, messages, characters, waiting,
       last_seq, due_at, done_at, done_seq, failures, error FROM agenda
"""
"""What `read_entry` reads."""


def read_entry(row: Row) -> Entry:
    return Entry(Subject(*row[:5]), *row[5:])


# In PostgreSQL, one space after another. The last number may be that of a message that was erased, so there must be
# one to be seen.
_PROGRESS: Final = """
[[SELECT s.space, coalesce(w.up_to, 0) FROM space s LEFT JOIN cursor w ON w.space = s.space AND w.policy = $1
   WHERE s.last_seq > coalesce(w.up_to, 0)
     AND EXISTS (SELECT 1 FROM log l WHERE l.space = s.space AND l.seq > coalesce(w.up_to, 0)) ORDER BY s.space LIMIT 1
~ SELECT '', coalesce((SELECT up_to FROM cursor WHERE policy = $1), 0)]]
"""
_AHEAD: Final = """
SELECT l.seq, [[l.space, l.owner, l.thread ~ o.space, o.name, t.name]], l.role, l.at, length(l.text)
  FROM log l[[ ~  JOIN person o ON o.id = l.owner JOIN thread t ON t.id = l.thread]]
 WHERE [[l.space = $1 AND ]]l.seq > $2 ORDER BY l.seq LIMIT $3
"""
_ORDER: Final = "ORDER BY due_at[[, space, owner, thread, day]] LIMIT $3"
_DUE: Final = f"{ENTRY_ROWS} WHERE policy = $1 AND due_at <= $2 {_ORDER}"
_FAILING_LATER: Final = f"{ENTRY_ROWS} WHERE policy = $1 AND failures > 0 AND due_at > $2 {_ORDER}"
_BACKLOG: Final = """
SELECT count(*), coalesce(sum(waiting), 0)[[::bigint]] FROM agenda WHERE policy = $1 AND due_at <= $2
"""
_FAILING: Final = "FROM agenda WHERE policy = $1 AND failures > 0 AND due_at IS NOT NULL"
_LAST_ERROR: Final = f"""
SELECT error {_FAILING} ORDER BY due_at DESC[[, space DESC, owner DESC, thread DESC, day DESC]] LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Unprocessed(Question[Ahead]):
    """The oldest messages, of all spaces, that a policy has not yet seen."""

    needs_store = True
    policy: str
    limit: int

    def answer(self) -> Answer[Ahead]:
        found = yield from first(_PROGRESS, self.policy)
        if found is None:
            return Ahead(0, ())
        space, after = found
        return Ahead(after, tuple(Passed(*row) for row in (yield from rows(_AHEAD, space, after, self.limit))))


@dataclass(frozen=True, slots=True)
class DueEntries(Question[list[Entry]]):
    """What a policy has to look at by a moment, longest waiting first.

    With `failing` also what failed and is to be tried again later.
    """

    needs_store = True
    policy: str
    due_by: int
    limit: int
    failing: bool = False

    def answer(self) -> Answer[list[Entry]]:
        asked = self.policy, self.due_by
        found = yield from rows(_DUE, *asked, self.limit)
        if self.failing:
            found += yield from rows(_FAILING_LATER, *asked, self.limit - len(found))
        return [read_entry(row) for row in found]


@dataclass(frozen=True, slots=True)
class PlannedEntry(Question[Entry | None]):
    """What is planned for one subject."""

    needs_store = True
    short = True
    subject: Subject

    @property
    def within_space(self) -> str:
        return self.subject.space

    def answer(self) -> Answer[Entry | None]:
        found = yield from planned([self.subject])
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class PolicyBacklog(Question[Backlog]):
    """How much a policy has to do by a moment, and how much of it fails."""

    needs_store = True
    policy: str
    due_by: int

    def answer(self) -> Answer[Backlog]:
        policy = (self.policy,)
        [(due, messages)], [(failing,)], errors = yield (
            Statement(_BACKLOG, (*policy, self.due_by)),
            Statement(f"SELECT count(*) {_FAILING}", policy),
            Statement(_LAST_ERROR, policy),
        )
        return Backlog(due, messages, failing, errors[0][0] if errors else None)


def progress_of(space: str, policy: str) -> Answer[int]:
    """Return the last message of a space that a policy has processed; 0 for none."""
    return number("SELECT up_to FROM cursor WHERE [[space = $1 AND ]]policy = $2", space, policy)


def planned(subjects: Sequence[Subject]) -> Answer[list[Entry]]:
    """Return the entries of these subjects. Those without one are missing."""
    text = f"{ENTRY_ROWS} WHERE {BY_NAME} AND policy = $3 AND thread = $4 AND day = $5"
    found = yield tuple(Statement(text, (*each[1:3], each.policy, *each[3:])) for each in subjects)
    return [read_entry(row) for some in found for row in some]


def _put_entry(checksums: Checksums) -> str:
    names = tuple(checksums.columns["agenda"])
    return checksums.insert("agenda", names, checksums.replacing("agenda", *names[:5], derived=True))


_PUT: Final = both(_put_entry)


def put_entries(within: Transaction, entries: Iterable[Entry]) -> None:
    """Store entries in the place of those of the same subjects."""
    for it in entries:
        key = it.subject.space, it.subject.policy, *it.subject[2:]
        counts = it.messages, it.characters, it.waiting, it.last_seq
        within.later(_PUT, *key, *counts, it.due_at, it.done_at, it.done_seq, it.failures, it.error)


def entries_of(space: str, users: Collection[str]) -> Answer[list[Entry]]:
    """Return the agenda's entries of users, in any order."""
    text = f"{ENTRY_ROWS} WHERE space = $1 AND [[owner = ANY($2::text[]) ~ user IN (SELECT value FROM json_each($2))]]"
    return [read_entry(row) for row in (yield from rows(text, space, list(users)))]


@dataclass(frozen=True, slots=True)
class Advance(Change):
    """Update the agenda of a policy for the messages after `after`, up to `up_to`.

    Raises SourcesChanged when somebody else has processed them already, or when some of them were erased since.
    """

    policy: str
    after: int
    up_to: int
    touched: tuple[Touch, ...]
    space: str = ""
    """The space of the messages; a store that numbers each space for itself hands out those of one at a time."""
    messages: int | None = None
    """How many messages were read; None if their number does not matter."""

    @property
    def _of_space(self) -> str:
        return self.space or next((touch.subject.space for touch in self.touched), "")

    @property
    def spaces(self) -> Collection[str]:
        """The space of the messages, and those of what they touched."""
        return {self._of_space, *(touch.subject.space for touch in self.touched)}

    def carry_out(self, within: Transaction) -> Answer[None]:
        space = self._of_space
        if (yield from progress_of(space, self.policy)) != self.after:
            raise SourcesChanged(f"somebody else has walked past message {self.after}")
        if self.messages is not None:
            # Counted again, because the agenda would count erased messages forever, and name users who were purged.
            left = yield from count_between(space, self.after, self.up_to)
            if left != self.messages:
                raise SourcesChanged(f"some of the messages {self.after + 1} to {self.up_to} were erased since")
        columns = within.space(space)
        row = {**columns, "policy": self.policy, "up_to": self.up_to}
        within.insert("cursor", row, replacing=(*columns, "policy"))
        if self.touched:
            found = yield from planned([touch.subject for touch in self.touched])
            entries = {entry.subject: entry for entry in found}
            for touch in self.touched:
                entries[touch.subject] = _touched(entries.get(touch.subject), touch)
            put_entries(within, entries.values())


@dataclass(frozen=True, slots=True)
class FinishEntry(Change):
    """Record that a subject was processed. Messages that arrived since then keep it on the agenda."""

    subject: Subject
    last_seq: int
    """The last message at the time of the check."""
    due_at: int | None
    """Time of the next check."""
    done_at: int | None = None
    """When it was summarised; None if it was not."""
    error: str | None = None
    """The error; None if there was none."""

    @property
    def spaces(self) -> Collection[str]:
        return (self.subject.space,)

    def carry_out(self, within: Transaction) -> Answer[None]:
        entry = yield from PlannedEntry(self.subject).answer()
        if entry is None:
            return
        if self.error is not None:
            failed = replace(entry, failures=entry.failures + 1, error=self.error, due_at=self.due_at)
            put_entries(within, [failed])
            return
        unchanged = entry.last_seq == self.last_seq
        finished = replace(
            entry,
            failures=0,
            error=None,
            done_at=entry.done_at if self.done_at is None else self.done_at,
            done_seq=entry.done_seq if self.done_at is None else self.last_seq,
            due_at=self.due_at if unchanged or entry.due_at is None else entry.due_at,
            waiting=0 if unchanged else entry.waiting,
        )
        put_entries(within, [finished])


def restore_day(within: Transaction, row: DayRow) -> Answer[Restored]:
    """Record that a day was summarised, unless there is something new of it here."""
    subject = Subject(row.policy, row.space, day=row.day)
    known = yield from PlannedEntry(subject).answer()
    entry = known or Entry(subject, messages=0, characters=0, waiting=0, last_seq=0, due_at=None)
    if known is not None and known.last_seq > known.done_seq:
        return Restored(0, False)
    done_at = max(row.done_at, entry.done_at or row.done_at)
    finished = replace(entry, done_at=done_at, done_seq=max(row.done_seq, entry.done_seq))
    if finished != known:
        put_entries(within, [finished])
    return Restored(0, finished != known)


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
