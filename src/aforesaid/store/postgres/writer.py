"""Group commit: callers hand in change sets, and those that wait together are stored in one transaction.

What one process writes to a space is stored in the order in which it was handed in: no two of its transactions work in
the same space at a time, and nothing overtakes what waits for the same space. Waiting makes the next group larger, so
the cost of a commit is shared by the more callers the slower the disk is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from inspect import isawaitable
from typing import Any, Final, NamedTuple, TypeVar, cast

from aforesaid.domain.change import AddNoteVectors, AddVectors, Change, Discard, Discarded
from aforesaid.domain.checks import microseconds, now
from aforesaid.domain.receipt import Receipt, Result, Stored
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import as_expected
from aforesaid.errors import AforesaidError, StoreClosed, StoreError, StoreUnavailable
from aforesaid.store import records
from aforesaid.store.checksums import POSTGRES as CHECKSUMS
from aforesaid.store.contract import Progress, reporting
from aforesaid.store.group_commit import GROUP, settle
from aforesaid.store.operations import performers
from aforesaid.store.postgres import search, verify
from aforesaid.store.postgres.answers import ANSWERS, LOOKUPS
from aforesaid.store.postgres.append import Appender
from aforesaid.store.postgres.database import Database
from aforesaid.store.postgres.queries import HalfVector, Queries, insert_rows
from aforesaid.store.postgres.search import embed_again
from aforesaid.store.postgres.write_transaction import WriteTransaction
from aforesaid.store.questions import Question
from aforesaid.store.ranking import content_hash, hashed
from aforesaid.store.rules import RULES, writes
from aforesaid.store.rules.purging import discard, replace_version
from aforesaid.store.rules.purging import spaces_of as spaces_of_change
from aforesaid.store.rules.writes import Operation, Rule, run_waiting
from aforesaid.store.sql import writes as in_sql
from aforesaid.store.sql.appending import Prepared, Returning, prepare_change
from aforesaid.store.sql.statements import for_postgres
from aforesaid.store.sql.upkeep import OLD, moment_of

_SESSION: Final = CHECKSUMS.update(
    "session",
    "space = $1 AND name = $3 AND md5(thread) = md5($2) AND thread = $2",
    automatic="$4",
    timeout="$5",
    opened_by="$6",
)
_TEXT: Final = "SELECT text FROM log WHERE space = $1 AND seq = $2"
_VECTOR: Final = """
INSERT INTO meaning (space, seq, embedder, owner, content, value)
SELECT space, seq, $3, owner, $4, $5 FROM log WHERE space = $1 AND seq = $2
ON CONFLICT DO NOTHING RETURNING 1
"""
_ENTRIES: Final = insert_rows(
    "agenda",
    ", ".join(f"{name} {column.type}" for name, column in CHECKSUMS.columns["agenda"].items() if name != "space"),
    CHECKSUMS.replacing("agenda", "space", "policy", "owner", "thread", "day", derived=True),
)
_TOKENS: Final = CHECKSUMS.insert(
    "spending",
    ("space", "day", "owner", "tokens"),
    f"""
    ON CONFLICT (space, day, owner)
    DO UPDATE SET {CHECKSUMS.setting("spending", tokens="spending.tokens + excluded.tokens")}
    """,
)


def _describe_session(transaction: WriteTransaction, write: writes.DescribeSession) -> None:
    session = write.row.session
    opener = transaction.person(session.space, session.user, microseconds(session.started_at, "the time"))
    timeout = round(session.timeout.total_seconds() * 1_000_000)
    transaction.later(_SESSION, session.space, session.thread, session.id, write.row.automatic, timeout, opener)


async def _put_vector(transaction: WriteTransaction, write: writes.PutVector) -> bool:
    import numpy as np  # noqa: PLC0415 - loaded with the first vector

    row = write.row
    text = await transaction.queries.value(_TEXT, row.space, row.seq)
    value = HalfVector(np.frombuffer(row.value, dtype=np.float16))
    return bool(
        await transaction.queries.rows(_VECTOR, row.space, row.seq, row.embedder, content_hash(text or ""), value)
    )


def _put_memory(transaction: WriteTransaction, write: writes.PutMemoryRow) -> None:
    memory = write.memory
    in_sql.put_memory(transaction, memory)
    if memory.text != write.before:
        embed_again(transaction, Scope.of(memory.user, memory.space), memory.id)


def _put_entries(transaction: WriteTransaction, write: writes.PutEntries) -> None:
    values = [records.entry_values(entry) for entry in write.entries]
    transaction.later_rows(_ENTRIES, [(space, policy, *others) for policy, space, *others in values])


def _add_tokens(transaction: WriteTransaction, write: writes.AddTokens) -> None:
    transaction.later(_TOKENS, write.space, write.day.isoformat(), write.user or "", write.tokens)


WRITES: Final = {**in_sql.WRITES, **performers(writes.Write, globals(), vars(verify))}


class Discarding(NamedTuple):
    """A discard in the space that it was found to have something to do in."""

    step: Discard
    space: str | None
    """None where nothing is old enough in any space."""


async def locate(queries: Queries, step: Discard) -> Discarding:
    """Find a space in which something is old enough."""
    for old in OLD[step.what]:
        text = for_postgres(f"SELECT y.space {old} LIMIT 1")
        space = await queries.value(text, moment_of(step.what, step.before))
        if space is not None:
            return Discarding(step, space)
    return Discarding(step, None)


T = TypeVar("T")

Step = Change | Prepared | Returning | Discarding

_READS: Final = {**ANSWERS, **LOOKUPS}


def prepared(changes: Sequence[Change], progress: Progress | None = None) -> list[Step]:
    """Compute what a change set needs that needs no database."""
    return [_prepared(change) for change in reporting(changes, "prepared", progress)]


def _prepared(change: Change) -> Step:
    return Discarding(change, None) if isinstance(change, Discard) else prepare_change(change, hashed)


def can_share(steps: Sequence[Step]) -> bool:
    """Tell whether a change set may share a transaction: nothing in it can be refused because of what is stored."""
    return all(isinstance(step, Prepared) and not step.can_be_refused for step in steps)


def spaces_of(steps: Sequence[Step]) -> set[str]:
    """Return the spaces that a change set writes to."""
    found: set[str] = set()
    for step in steps:
        match step:
            case Prepared():
                found.add(step.draft.scope.space)
            case Returning():
                found.add(step.message.draft.scope.space)
            case Discarding():
                found.add(step.space or "")
            case _:
                found |= spaces_of_change(step)
    return found


async def append_all(transaction: WriteTransaction, change_sets: Sequence[Sequence[Step]]) -> list[tuple[Result, ...]]:
    """Carry out several change sets of messages alone, together."""
    sets = [[step for step in steps if isinstance(step, Prepared)] for steps in change_sets]
    appender = Appender(transaction, [step for steps in sets for step in steps])
    await appender.begin()
    results: list[tuple[Result, ...]] = [tuple([await appender.append(step) for step in steps]) for steps in sets]
    appender.write()
    return results


async def carry_out(
    transaction: WriteTransaction, steps: Sequence[Step], progress: Progress | None = None
) -> tuple[Result, ...]:
    """Carry out one change set."""
    messages = [step.message if isinstance(step, Returning) else step for step in steps]
    appender = Appender(transaction, [step for step in messages if isinstance(step, Prepared)])
    await appender.begin()
    results: list[Result] = []
    for step in reporting(steps, "stored", progress):
        if isinstance(step, Prepared):
            stored = await appender.append(step)
            if isinstance(stored, Stored) and stored.draft.replaces is not None:
                appender.write()
                await run_rule(transaction, replace_version(stored.draft))
            results.append(stored)
        elif isinstance(step, Returning):
            results.append(as_expected(step.change, await appender.restore(step)))
        else:
            appender.write()
            results.append(await _step(transaction, step))
    appender.write()
    return tuple(results)


async def _step(transaction: WriteTransaction, step: Step) -> Result:
    match step:
        case Discarding():
            return Discarded(0) if step.space is None else await run_rule(transaction, discard(*step))
        case AddVectors():
            search.add(transaction, step)
        case AddNoteVectors():
            search.add_vectors(transaction, step)
        case _:
            return cast("Result", await run_rule(transaction, RULES[type(step)](step)))
    return None


async def run_rule(transaction: WriteTransaction, rule: Rule[T]) -> T:
    """Carry out a rule in a transaction that has begun."""
    return await run_waiting(rule, lambda operation: _perform(transaction, operation))


async def run_alone(transaction: WriteTransaction, rule: Rule[T]) -> T:
    """Carry out a rule in a transaction of its own."""
    await transaction.begin()
    return await run_rule(transaction, rule)


async def _perform(transaction: WriteTransaction, operation: Operation) -> Any:  # noqa: ANN401 - the operation says it
    if isinstance(operation, Question):
        return await _READS[type(operation)](transaction.queries, operation)
    written = WRITES[type(operation)](transaction, operation)
    return await written if isawaitable(written) else written


ENOUGH: Final = 128
"""Change sets that do not wait for the group before them to be stored."""


class _Job(NamedTuple):
    steps: Sequence[Step]
    spaces: set[str]
    shares: bool
    """Whether it may be stored together with others."""
    future: asyncio.Future[Receipt]
    progress: Progress | None


class Writer:
    """All writing of one store."""

    def __init__(self, database: Database, transactions: int) -> None:
        """Write to `database`, in at most `transactions` at a time."""
        self._database = database
        self._transactions = transactions
        self._waiting: list[_Job] = []
        self._held: set[str] = set()
        """The spaces in which a transaction works."""
        self._running: dict[asyncio.Task[None], bool] = {}
        """The transactions, and whether each is one that others could have shared."""
        self._starting = False
        self._closed = False
        self.last_commit: int | None = None
        self.last_error: str | None = None

    @property
    def waiting(self) -> int:
        """How many change sets wait."""
        return len(self._waiting)

    def submit(self, steps: Sequence[Step], progress: Progress | None = None) -> asyncio.Future[Receipt]:
        """Store a change set. The result arrives when it is durable, also for a caller who has stopped waiting."""
        if self._closed:
            raise StoreClosed(f"{self._database.pool.shown} has been closed")
        future: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        shares = progress is None and can_share(steps)
        self._waiting.append(_Job(steps, spaces_of(steps), shares, future, progress))
        self._start_soon()
        return future

    async def close(self) -> None:
        """Finish what was handed in."""
        self._closed = True
        self._start()
        while self._running:
            await asyncio.wait([*self._running])
            self._start()

    def _start_soon(self) -> None:
        """Begin what can be begun, once everybody who has something to hand in at this moment has done so."""
        if not self._starting:
            self._starting = True
            asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        """Begin as many transactions as can be begun now."""
        self._starting = False
        while len(self._running) < self._transactions and (group := self._next_group()):
            spaces = {space for job in group for space in job.spaces}
            self._held |= spaces
            task = asyncio.create_task(self._run(group, spaces), name="aforesaid-writer")
            self._running[task] = group[0].shares
            task.add_done_callback(self._ended)

    def _next_group(self) -> list[_Job]:
        """Take what can be stored together out of what waits: one job, or several that share."""
        group: list[_Job] = []
        left: list[_Job] = []
        blocked = set(self._held)
        # On Citus a transaction that writes to one space writes to one machine: each space has its own.
        apart = self._database.pool.distributed
        sharing = not apart and any(self._running.values()) and len(self._waiting) < ENOUGH
        for place, job in enumerate(self._waiting):
            if len(group) == GROUP or (group and not group[0].shares):
                left += self._waiting[place:]
                break
            fits = job.shares if group else not (job.shares and sharing)
            if apart and group:
                fits = fits and job.spaces == group[0].spaces
            if fits and blocked.isdisjoint(job.spaces):
                group.append(job)
            else:
                left.append(job)
                blocked |= job.spaces
        self._waiting = left
        return group

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        # Whoever was answered hands in the next message before this happens, and it joins those that waited.
        self._start_soon()

    async def _run(self, group: list[_Job], spaces: set[str]) -> None:
        try:
            for job, outcome in zip(group, await self._commit(group), strict=True):
                settle(job.future, outcome)
        finally:
            self._held -= spaces

    async def _commit(self, group: list[_Job]) -> Sequence[Receipt | Exception]:
        # Whatever happens, the callers hear of it: without an answer they would wait forever.
        try:
            receipts = await self._store(group)
        except StoreUnavailable as error:
            return self._failed(group, error)
        except Exception as error:
            if len(group) == 1:
                return self._failed(group, error)
            # One of them is at fault. Each is tried alone, so that only that one fails.
            return [outcome for job in group for outcome in await self._commit([job])]
        self.last_commit, self.last_error = now(), None
        return receipts

    async def _store(self, group: list[_Job]) -> list[Receipt]:
        spaces = sorted({space for job in group for space in job.spaces})
        if len(group) == 1:
            steps, progress = group[0].steps, group[0].progress
            if not spaces:
                return [Receipt(True, (None,) * len(steps))]
            stored_alone = await self._database.write(
                spaces, "writer", lambda transaction: carry_out(transaction, steps, progress)
            )
            return [Receipt(True, stored_alone)]
        change_sets = [job.steps for job in group]
        stored = await self._database.write(spaces, "writer", lambda transaction: append_all(transaction, change_sets))
        return [Receipt(True, results) for results in stored]

    def _failed(self, group: list[_Job], error: Exception) -> Sequence[Exception]:
        if not isinstance(error, AforesaidError) or isinstance(error, StoreError):
            self.last_error = str(error)
        return [error] * len(group)
