"""Connections: how they are made, shared and given up, and what their errors mean."""

from __future__ import annotations

import asyncio
import logging
import struct
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, LiteralString, NamedTuple

import psycopg
from pgvector.psycopg.halfvec import register_halfvec_info
from pgvector.psycopg.vector import register_vector_info
from psycopg import DataError, conninfo, errors
from psycopg.adapt import PyFormat, Transformer
from psycopg.generators import fetch_many, send
from psycopg.pq import ExecStatus, Format
from psycopg.types import TypeInfo

from aforesaid.errors import (
    AforesaidError,
    SourcesChanged,
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreFailed,
    StoreFull,
    StoreRefused,
    StoreUnavailable,
    TooLarge,
)
from aforesaid.extras import re
from aforesaid.store.contract import Rule, of, rule_for
from aforesaid.store.postgres.queries import Row, Statement, cut_after

if TYPE_CHECKING:
    from psycopg import abc
    from psycopg.abc import Buffer
    from psycopg.pq.abc import PGconn, PGresult


_HEAD: Final = struct.Struct("!IIIII")
"""Dimensions, whether there are NULLs, the elements' type, how many there are, the number of the first."""
_LENGTH: Final = struct.Struct("!i").pack
_NULL: Final = b"\xff\xff\xff\xff"


class _Kind(NamedTuple):
    """A type of elements: its number and that of its arrays in PostgreSQL, and how elements are written."""

    element: int
    array: int
    written: Callable[[Sequence[Any]], bytes]


def _of_any_length(encoded: Sequence[bytes]) -> bytes:
    return b"".join(chain.from_iterable((_LENGTH(len(each)), each) for each in encoded))


def _texts(values: Sequence[str]) -> bytes:
    return _of_any_length([value.encode() for value in values])


def _whole_numbers(values: Sequence[int]) -> bytes:
    try:
        return struct.pack("!" + "iq" * len(values), *chain.from_iterable((8, value) for value in values))
    except struct.error as error:
        raise DataError(f"a number is too large: {error}") from error


def _truths(values: Sequence[bool]) -> bytes:
    return b"".join([b"\x00\x00\x00\x01\x01" if value else b"\x00\x00\x00\x01\x00" for value in values])


_KINDS: Final[dict[type, _Kind]] = {
    str: _Kind(25, 1009, _texts),
    int: _Kind(20, 1016, _whole_numbers),
    bool: _Kind(16, 1000, _truths),
    bytes: _Kind(17, 1001, _of_any_length),
}


def _array(values: Sequence[Any]) -> tuple[bytes, int] | None:
    """Return a list as PostgreSQL reads it and the type of arrays, if its first element is of a kind that we know."""
    kind = _KINDS.get(type(next((value for value in values if value is not None), None)))
    if kind is None:
        return None
    missing = None in values
    head = _HEAD.pack(1, int(missing), kind.element, len(values), 1)
    if missing:
        return head + b"".join([_NULL if value is None else kind.written((value,)) for value in values]), kind.array
    return head + kind.written(values), kind.array


_PREPARED: Final = 100
"""Maximum prepared statements of a connection."""


class Connection(psycopg.AsyncConnection[Row]):
    """A connection that sends several statements at once, and waits once for all of their answers.

    A pipeline of psycopg waits after each statement that it sends: those waits took most of the time of an add.
    """

    def __init__(self, *arguments: Any, **others: Any) -> None:  # noqa: ANN401 - as psycopg's
        super().__init__(*arguments, **others)
        self._uses: Counter[tuple[str, tuple[int, ...]]] = Counter()
        """How often each statement was sent with parameters of these types, before it was prepared."""
        self._names: OrderedDict[tuple[str, tuple[int, ...]], bytes] = OrderedDict()
        """What the statements are called that are prepared, the one that was used last at the end."""
        self._named = 0
        self._transformer: abc.Transformer | None = None

    async def together(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run statements in one round trip, and return the rows of each.

        Outside of a transaction, they are one: PostgreSQL commits after the last one, or takes all of them back.
        """
        # It knows the types that are registered when it is made.
        transformer = self._transformer = self._transformer or Transformer(self)
        bound = [(query, *_bound(transformer, values)) for query, values in statements]
        self.pgconn.enter_pipeline_mode()
        answers = [self._send(*each) for each in bound]
        self.pgconn.pipeline_sync()
        try:
            results = await self.wait(_results(self.pgconn, sum(answers)))
        except BaseException:
            await self.close()  # nobody knows what is still to come on it
            raise
        self.pgconn.exit_pipeline_mode()
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise errors.error_from_result(result, self.info.encoding)
        rows, place = [], -1
        for count in answers:
            place += count
            transformer.set_pgresult(results[place])
            rows.append(transformer.load_rows(0, results[place].ntuples, tuple))
        return rows

    def _send(
        self, query: str, values: Sequence[Buffer | None], types: tuple[int, ...], formats: Sequence[Format]
    ) -> int:
        """Send a statement, prepared once it has been sent often. Return how many answers there will be."""
        answers = 1
        name = self._names.get((query, types))
        if name is None:
            self._uses[query, types] += 1
            if self.prepare_threshold is None or self._uses[query, types] <= self.prepare_threshold:
                self.pgconn.send_query_params(query.encode(), values, types, formats, Format.BINARY)
                if len(self._uses) > 10 * _PREPARED:
                    self._uses.clear()
                return answers
            del self._uses[query, types]
            self._named += 1
            name = self._names[query, types] = f"aforesaid_{self._named}".encode()
            self.pgconn.send_prepare(name, query.encode(), types)
            answers += 1
            if len(self._names) > _PREPARED:
                _, oldest = self._names.popitem(last=False)
                self.pgconn.send_query_params(b"DEALLOCATE " + oldest, None)
                answers += 1
        self._names.move_to_end((query, types))
        self.pgconn.send_query_prepared(name, values, formats, Format.BINARY)
        return answers


def _bound(
    transformer: abc.Transformer, values: Sequence[Any]
) -> tuple[Sequence[Buffer | None], tuple[int, ...], Sequence[Format]]:
    """Return values as they are sent, their types and their formats. Lists are written here, which is much faster."""
    arrays = {place: array for place, value in enumerate(values) if type(value) is list and (array := _array(value))}
    others = [None if place in arrays else value for place, value in enumerate(values)] if arrays else values
    sent = [*transformer.dump_sequence(others, [PyFormat.AUTO] * len(values))]
    types, formats = [*(transformer.types or ())], [*(transformer.formats or ())]
    for place, (written, kind) in arrays.items():
        sent[place], types[place], formats[place] = written, kind, Format.BINARY
    return sent, tuple(types), formats


def _results(pgconn: PGconn, answers: int) -> Generator[Any, Any, list[PGresult]]:
    """Wait for so many answers, and for the end of the pipeline."""
    yield from send(pgconn)
    results = []
    for _ in range(answers + 1):
        results += yield from fetch_many(pgconn)
    return results


_CONNECT_SECONDS: Final = 5
_SETTINGS: Final = (
    "SELECT set_config('statement_timeout', $1, $3), set_config('lock_timeout', $2, $3), "
    "set_config('idle_in_transaction_session_timeout', $1, $3), set_config('TimeZone', 'UTC', $3), "
    # A transaction that is one round trip has no BEGIN that could name its isolation.
    "set_config('default_transaction_isolation', 'read committed', $3), "
    # A plan for anybody is a bad plan for somebody: one user has ten messages, another a million.
    "set_config('plan_cache_mode', 'force_custom_plan', $3)"
)
_DISTRIBUTED_SETTINGS: Final = """
SELECT set_config('citus.propagate_set_commands', 'local', $1), set_config('citus.max_adaptive_executor_pool_size', '1', $1)
"""
"""The workers hear of the space that a transaction may see. One connection to each of them, so that it sees one moment there."""
_FULL_AT_CONNECTING: Final = re.compile("could not write init file|No space left on device")
"""A server on a full disk cannot begin to serve a connection. libpq gives no code for that."""
_REFUSED_AT_CONNECTING: Final = re.compile(
    r"FATAL: .*(authentication failed|does not exist|is not permitted|permission denied|no pg_hba\.conf entry)"
)
"""What a server says when it refuses a connection. libpq has no SQLSTATE for these."""
_WORKER_IS_GONE: Final = re.compile("could not commit transaction for shard|failure on connection marked as essential")
"""What Citus says, with XX000, when a worker goes away during a commit: it may have committed or not."""


@dataclass(frozen=True, slots=True)
class Options:
    """How the database is used."""

    connections: int = 12
    """Maximum connections that this store has open at a time."""
    transactions: int = 4
    """Maximum transactions that write at a time. Writes to one space always keep their order."""
    patience: float = 30.0
    """Seconds that a call waits for a database that cannot be reached or does not answer, before it gives up."""
    statement_seconds: float = 60.0
    """Seconds that the server may work on one statement, and that a write waits for an answer."""
    lock_seconds: float = 30.0
    """Seconds that a statement waits for a lock."""


class Pool:
    """A few connections, used by one task at a time. Those that broke are replaced when they are needed again."""

    def __init__(self, dsn: str, options: Options) -> None:
        self._dsn = dsn
        self._options = options
        self._free = asyncio.Semaphore(options.connections)
        self._idle: list[tuple[Connection, int]] = []
        self._generation = 0
        self._closed = False
        self._types: list[TypeInfo | None] = []
        self.distributed = False
        """Whether Citus distributes the tables. It is asked with the types of vectors."""
        self.pooled: bool | None = None
        """Whether a pooler is between us and the database. It is asked once."""
        self.open = 0
        """How many connections there are."""

    @property
    def shown(self) -> str:
        return shown(self._dsn)

    @asynccontextmanager
    async def connection(self, seconds: float | None = None, *, vectors: bool = True) -> AsyncIterator[Connection]:
        """Lend a connection that is in no transaction. One that is returned inside of one is closed.

        After `seconds` the connection is cut, and whatever waits for it fails.
        """
        self._check_open()
        async with self._free:
            held = await self._take(vectors=vectors)
            generation, usable = self._generation, False
            try:
                with cut_after(held, seconds):
                    yield held
                usable = True
            except AforesaidError:
                usable = True
                raise
            except psycopg.OperationalError:
                # Others are likely to have lost their connections too: none of them is tried again.
                if held.broken or held.closed:
                    self._generation += 1
                raise
            finally:
                # After a failed round trip we count on prepared statements that the server never saw.
                usable = usable and held.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
                if not usable or self._closed or generation != self._generation:
                    await self._drop(held)
                else:
                    self._idle.append((held, generation))

    async def close(self) -> None:
        """Close what is idle now, and everything else when it comes back."""
        self._closed = True
        while self._idle:
            await self._drop(self._idle.pop()[0])

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"{self.shown} has been closed")

    async def _take(self, *, vectors: bool) -> Connection:
        while self._idle:
            held, generation = self._idle.pop()
            if generation == self._generation and not held.closed:
                return held
            await self._drop(held)
        held = await Connection.connect(
            self._dsn,
            autocommit=True,
            cursor_factory=psycopg.AsyncRawCursor,
            connect_timeout=_CONNECT_SECONDS,
            application_name=application_name(self._dsn),
        )
        self.open += 1
        try:
            with cut_after(held, _CONNECT_SECONDS):
                await self._set_up(held, vectors=vectors)
        except BaseException:
            await self._drop(held)
            raise
        return held

    async def _set_up(self, held: Connection, *, vectors: bool) -> None:
        if self.pooled is None:
            self.pooled = await is_pooled(held)
        if vectors:
            await self._register(held)
        if self.pooled:
            # What is prepared in a session of the database is not there in the session of the next transaction.
            held.prepare_threshold = None
            return
        for query, values in self._settings(local=False):
            await held.execute(query, values)

    @property
    def transaction_settings(self) -> list[Statement]:
        """What each transaction begins with behind a pooler, where others use the same session before and after it."""
        return self._settings(local=True) if self.pooled else []

    def _settings(self, *, local: bool) -> list[Statement]:
        limits = milliseconds(self._options.statement_seconds), milliseconds(self._options.lock_seconds)
        settings: list[Statement] = [(_SETTINGS, (*limits, local))]
        return [*settings, (_DISTRIBUTED_SETTINGS, (local,))] if self.distributed else settings

    async def _register(self, held: Connection) -> None:
        """Teach a connection the types of vectors. What they are called inside the database is asked once."""
        if not self._types:
            self.distributed = await is_distributed(held)
            self._types = [await TypeInfo.fetch(held, name) for name in ("vector", "halfvec")]
        for info, register in zip(self._types, (register_vector_info, register_halfvec_info), strict=True):
            if info is None:
                raise StoreRefused(f"{self.shown} has no type for vectors: CREATE EXTENSION vector (0.7 or newer)")
            register(held, info)

    async def _drop(self, held: Connection) -> None:
        self.open -= 1
        await held.close()


async def is_pooled(connection: psycopg.AsyncConnection[Any]) -> bool:
    """Tell whether a pooler such as pgbouncer answers in the place of the database: it gives out process ids of its own."""
    row = await (await connection.execute("SELECT pg_backend_pid()")).fetchone()
    return row is not None and row[0] != connection.info.backend_pid


async def is_distributed(connection: psycopg.AsyncConnection[Any]) -> bool:

    async def says(question: LiteralString) -> bool:
        row = await (await connection.execute(question)).fetchone()
        return bool(row and row[0])

    return await says("SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL") and await says(
        "SELECT EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = to_regclass('log'))"
    )


def milliseconds(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"


def application_name(dsn: str) -> str:
    return str(conninfo.conninfo_to_dict(dsn).get("application_name") or "aforesaid")


def shown(dsn: str) -> str:
    """Return where a database is, without its password."""
    try:
        parts = conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        return "postgresql"
    host = parts.get("host") or parts.get("hostaddr") or "localhost"
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{host}{port}/{parts.get('dbname') or parts.get('user') or ''}"


def is_gone(error: BaseException) -> bool:
    """Tell whether an error means that the database went away, and not that it refused what was asked."""
    if isinstance(error, errors.CannotConnectNow | errors.AdminShutdown | errors.CrashShutdown):
        return True
    if isinstance(error, psycopg.OperationalError):
        # Without a code it is the connection that failed; codes of class 08 and 53300 say the same.
        state = error.sqlstate
        if state is None:
            return not (_REFUSED_AT_CONNECTING.search(str(error)) or _FULL_AT_CONNECTING.search(str(error)))
        return state.startswith("08") or state in ("53300", "57P05")
    if isinstance(error, errors.InternalError_):
        return _WORKER_IS_GONE.search(str(error)) is not None
    return isinstance(error, OSError | TimeoutError)


def can_be_repeated(error: BaseException) -> bool:
    """Tell whether a transaction was taken back for reasons that will not be there the next time."""
    return isinstance(error, errors.SerializationFailure | errors.DeadlockDetected)


@contextmanager
def translated(where: str, doing: str) -> Iterator[None]:
    try:
        yield
    except AforesaidError:
        raise
    except (psycopg.Error, OSError) as error:
        raise translate(error, where, doing) from error


def _code(*beginnings: str) -> Callable[[BaseException], bool]:
    """Make a condition: the SQLSTATE begins with one of these."""
    return lambda error: isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith(beginnings)


def _is_refused_at_connecting(error: BaseException) -> bool:
    return _code("28", "3D")(error) or _REFUSED_AT_CONNECTING.search(str(error)) is not None


def _is_full(error: BaseException) -> bool:
    return _code("53100")(error) or _FULL_AT_CONNECTING.search(str(error)) is not None


RULES: Final = (
    Rule(
        "no SQLSTATE (a lost connection), 08, 57P01 to 57P05, 53300, XX000 of a lost Citus worker, errors of the system",
        is_gone,
        StoreUnavailable,
        "Is the database running, and is its address right?",
    ),
    Rule("23505 unique_violation", of(errors.UniqueViolation), SourcesChanged, ""),
    Rule(
        "54 program_limit_exceeded",
        _code("54"),
        TooLarge,
        "Several very long names do not fit into an index; shorten them",
    ),
    Rule(
        "53100 disk_full, and no room for what a new connection writes",
        _is_full,
        StoreFull,
        "Make room on the database's disk; nothing was stored",
    ),
    Rule("58030 io_error", _code("58030"), StoreFailed, "Look at the database's log"),
    Rule(
        "40 transaction_rollback (repeated first), 55P03 lock_not_available, 57014 query_canceled, 53 out of resources",
        _code("40", "55P03", "57014", "53"),
        StoreBusy,
        "Others work on the same space, or the database is overloaded; try again",
    ),
    Rule("XX001 data_corrupted, XX002 index_corrupted", _code("XX001", "XX002"), StoreDamaged, "Restore a backup"),
    Rule(
        "42501 insufficient_privilege, 0A feature_not_supported, 58P01 undefined_file",
        _code("42501", "0A", "58P01"),
        StoreRefused,
        "The role must own the schema, and an administrator must once have run CREATE EXTENSION vector in this "
        "database, on a server that has pgvector",
    ),
    Rule(
        "28 authorization, 3D unknown database",
        _is_refused_at_connecting,
        StoreRefused,
        "Check the address, the role and the password",
    ),
    Rule("every other SQLSTATE, such as 42P01 undefined_table", of(BaseException), StoreRefused, ""),
)
"""What errors of PostgreSQL mean."""


def translate(error: BaseException, where: str, doing: str) -> AforesaidError:
    said = str(error).strip().splitlines()
    rule = rule_for(error, RULES)
    what = f"{doing} {where} failed: {said[0] if said else type(error).__name__}"
    return rule.becomes(f"{what}. {rule.advice}" if rule.advice else what)


_log: Final = logging.getLogger("aforesaid.store")

_PROBE_SECONDS: Final = 2.0


class Breaker:
    """Opens when a call has waited for the database in vain. Then one call per interval may try; the first success closes.

    Only a database that cannot be reached counts. One that refuses what was asked is there.
    """

    def __init__(
        self, name: str, probe_seconds: float = _PROBE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._interval = probe_seconds
        self._clock = clock
        self._next_probe: float | None = None
        self.error: str | None = None
        """Why it is open."""

    @property
    def state(self) -> Literal["closed", "open", "half-open"]:
        """Closed: calls go through. Open: none does. Half-open: the next call tries."""
        if self._next_probe is None:
            return "closed"
        return "open" if self._clock() < self._next_probe else "half-open"

    def admit(self) -> bool:
        """Let a call through, or raise; tell whether it is a probe, which does not wait."""
        if self._next_probe is None:
            return False
        left = self._next_probe - self._clock()
        if left > 0:
            raise StoreUnavailable(
                f"{self._name} is left alone for {left:.1f} s, because it did not answer. The last failure: {self.error}"
            )
        self._next_probe = self._clock() + self._interval
        return True

    def answered(self) -> None:
        if self._next_probe is not None:
            _log.warning("%s answers again", self._name)
            self._next_probe, self.error = None, None

    def failed(self, error: Exception) -> None:
        if self._next_probe is None:
            _log.error("%s does not answer and is left alone: %s", self._name, error)
        self._next_probe, self.error = self._clock() + self._interval, str(error)
