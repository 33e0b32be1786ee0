"""What is kept in memory of the people and threads that were searched last: columns of messages, and vectors.

All of it is made from the file and can be dropped at any time. It is brought up to date at the start of each search,
inside the search's own read transaction.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import apsw

from aforesaid.domain.caches import TwoGenerationCache
from aforesaid.domain.checks import Within
from aforesaid.domain.hit import EVERY_MESSAGE, MessageFilter, Similar
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.extras import np
from aforesaid.store import messages
from aforesaid.store.columns import Columns, Roll
from aforesaid.store.searches import SearchVector
from aforesaid.store.sql import NOT_SEARCHED, SEARCHED, for_sqlite
from aforesaid.store.sqlite import rows
from aforesaid.store.sqlite.append import Place, is_complete_for
from aforesaid.store.sqlite.rows import find_person, find_thread
from aforesaid.store.vector_matrix import Few, Matrix, SizedCache, unpacked

if TYPE_CHECKING:
    from numpy.typing import NDArray


_BLOCK: Final = 4_096
_SCOPES: Final = 10_000
_MANY: Final = 10_000
_HELD: Final = 150_000
"""Maximum vectors of one place that are in memory: 150 MB. Of more, their signs are, a sixteenth of that."""

# One text for each column: handing over rows one by one takes several times as long. The inner limit keeps the order.
_COLUMNS: Final = f"""
SELECT count(*), group_concat(seq), group_concat(at), group_concat(thread), group_concat(assistant),
       group_concat(words), group_concat(session), json_group_array(speaker)
  FROM (SELECT log.seq AS seq, log.at AS at, log.thread AS thread, log.role = 'assistant' AS assistant,
               log.words AS words, log.session AS session, coalesce(log.name, a.name) AS speaker
          FROM log JOIN person a ON a.id = log.author WHERE {{limit}} AND log.seq > ?
           AND {for_sqlite(SEARCHED)}
         ORDER BY log.seq LIMIT ?)
"""
_OF_OWNER: Final = f"""
SELECT n, seq, value FROM vector WHERE embedder = ?1 AND n > ?2 AND owner = ?3
   AND seq NOT IN (SELECT log.seq FROM log WHERE log.owner = ?3 AND {for_sqlite(NOT_SEARCHED)}) ORDER BY n
"""
_BY_NUMBER: Final = """
SELECT seq, value FROM vector
 WHERE embedder = (SELECT id FROM embedder WHERE name = ?) AND seq IN (SELECT value FROM json_each(?))
"""
_OF_THREAD: Final = f"""
SELECT v.n, v.seq, v.value FROM log JOIN vector v ON v.seq = log.seq AND v.embedder = ? AND v.n > ?
 WHERE log.shared = 1 AND log.thread = ? AND {for_sqlite(SEARCHED)} ORDER BY v.seq
"""
_NEW_OF_THREAD: Final = f"""
SELECT v.n, v.seq, v.value FROM vector v CROSS JOIN log ON log.seq = v.seq
 WHERE v.embedder = ? AND v.n > ? AND log.shared = 1 AND log.thread = ? AND {for_sqlite(SEARCHED)}
 ORDER BY v.n
"""


class Found(NamedTuple):
    """A scope as a search sees it."""

    place: Place
    columns: Columns
    inside: NDArray[np.bool_] | None
    """Which of the columns' messages the scope holds and the filter lets through; None for all of them."""
    documents: int
    words: int
    revision: int


@dataclass(slots=True)
class _Kept:
    """What is kept of a place. Whoever changes it, or asks the matrix, holds the lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    roll: Roll | None = None
    revision: int = -1
    matrix: Matrix = field(default_factory=Matrix)
    seen: int = 0
    """The newest vector in the matrix."""

    @property
    def size(self) -> int:
        return self.matrix.size + (0 if self.roll is None else self.roll.size)


class Caches:
    def __init__(self) -> None:
        self._kept: SizedCache[tuple[Place, str | None], _Kept] = SizedCache()
        self._scopes: TwoGenerationCache[tuple[str, ...], Place] = TwoGenerationCache(_SCOPES)

    def lately(self, scope: Scope, within: Within) -> bool:
        place = self._scopes.get(_key(scope, within))
        return place is not None and (place, None) in self._kept

    def find(self, connection: apsw.Connection, scope: Scope, within: Within, where: MessageFilter) -> Found | None:
        """Return the messages of a scope as columns; None when nobody has heard of it. Raises IndexIncomplete."""
        place = place_of(connection, scope, within)
        if place is None:
            return None
        complete = is_complete_for(connection, place)
        documents, words, revision = rows.one(
            connection.execute(f"SELECT messages, words, revision FROM {place.table} WHERE id = ?", (place.number,))
        )
        self._scopes.put(_key(scope, within), place)
        # The number of words of a message is known once it is indexed.
        kept = self._kept.get((place, None), _Kept) if complete else _Kept()
        with kept.lock:
            if kept.roll is None or kept.revision != revision:
                kept.roll, kept.revision = Roll(), revision
            while _extend_roll(connection, kept.roll, place) == _BLOCK:
                pass
            columns = kept.roll.columns()
            if complete:
                self._kept.resized((place, None))
        inside = _selected(connection, columns, scope, within)
        if where != EVERY_MESSAGE:
            chosen = _fulfilling(connection, columns, scope, within, where)
            inside = chosen if inside is None else inside & chosen
        return Found(place, columns, inside, documents, words, revision)

    def similar(self, connection: apsw.Connection, question: SearchVector) -> Similar | None:
        found = self.find(connection, question.scope, question.within, question.where)
        if found is None:
            return None
        read = partial(_read_vectors, connection, question.embedder)
        with self._vectors(connection, found, question.embedder) as matrix:
            if matrix is None:
                return None
            return matrix.similar(question.vector, question.limit, question.also, _only(found), read)

    def few(self, connection: apsw.Connection, found: Found, embedder: str) -> Few | None:
        with self._vectors(connection, found, embedder) as matrix:
            return None if matrix is None else matrix.few(_only(found), partial(_read_vectors, connection, embedder))

    @contextmanager
    def _vectors(self, connection: apsw.Connection, found: Found, embedder: str) -> Iterator[Matrix | None]:
        """Give what is kept of a place's vectors, brought up to date; None when the embedder has seen nothing."""
        number = connection.execute("SELECT id FROM embedder WHERE name = ?", (embedder,)).get
        if number is None:
            yield None
            return
        kept = self._kept.get((found.place, embedder), _Kept)
        with kept.lock:
            if kept.revision != found.revision:
                # Messages were erased, replaced or regrouped. All are rare, so everything is read again.
                kept.matrix, kept.seen, kept.revision = Matrix(found.documents, _HELD), 0, found.revision
            # New vectors in the order in which they were embedded: late ones of old messages come too.
            query = _OF_OWNER
            if found.place.shared:
                newest = connection.execute("SELECT coalesce(max(n), 0) FROM vector").get
                query = _OF_THREAD if newest - kept.seen > _MANY else _NEW_OF_THREAD
            fresh = connection.execute(query, (number, kept.seen, found.place.number))
            while block := list(islice(fresh, _BLOCK)):
                kept.matrix.extend([(seq, value) for _, seq, value in block])
                kept.seen = max(kept.seen, *(n for n, _, _ in block))
            self._kept.resized((found.place, embedder))
            yield kept.matrix

    def clear(self) -> None:
        self._kept.clear()
        self._scopes.clear()


def _extend_roll(connection: apsw.Connection, roll: Roll, place: Place) -> int:
    """Add a block of messages that the roll does not have yet, and return how many they are."""
    query = _COLUMNS.replace("{limit}", place.limit)
    count, *numbers, speakers = rows.one(connection.execute(query, (place.number, roll.last, _BLOCK)))
    if count:
        seq, at, thread, assistant, length, session = (
            np.fromstring(column, dtype=np.int64, sep=",") for column in numbers
        )
        roll.extend_columns(
            seq, at, thread, assistant, length, sessions=session.tolist(), speakers=json.loads(speakers)
        )
    return int(count)


def _read_vectors(connection: apsw.Connection, embedder: str, seqs: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return vectors by sequence number. One that this transaction does not see is all zeros: similar to nothing."""
    found: dict[int, bytes] = dict(rows.every(connection.execute(_BY_NUMBER, (embedder, json.dumps(seqs.tolist())))))
    vectors = unpacked(list(found.values()))
    made = np.zeros((len(seqs), vectors.shape[1]), dtype=np.float32)
    known = np.fromiter(found, dtype=np.int64, count=len(found))
    # The sequence numbers that were asked for are in order.
    made[np.searchsorted(seqs, known)] = vectors
    return made


def _key(scope: Scope, within: Within) -> tuple[str, ...]:
    return (scope.space, scope.user) if within == "user" else (scope.space, scope.user, scope.thread)


def _only(found: Found) -> NDArray[np.int64] | None:
    return None if found.inside is None else found.columns.seq[found.inside]


def place_of(connection: apsw.Connection, scope: Scope, within: Within) -> Place | None:
    """Return the place whose posting lists hold the whole scope."""
    shared = within != "user" and not is_direct(scope.thread)
    find, name = (find_thread, scope.thread) if shared else (find_person, scope.user)
    number = find(connection, scope.space, name)
    return None if number is None else Place(shared, number)


def _selected(connection: apsw.Connection, columns: Columns, scope: Scope, within: Within) -> NDArray[np.bool_] | None:
    """Return which messages the scope holds, where that is not all of its place."""
    if within == "user" or (within == "thread" and not is_direct(scope.thread)):
        return None
    thread = find_thread(connection, scope.space, scope.thread)
    inside: NDArray[np.bool_] = columns.thread == (-1 if thread is None else thread)
    if within == "session":
        query = "SELECT id FROM session WHERE thread = ? AND name = ?"
        session = connection.execute(query, (thread, scope.named_session())).get
        inside = columns.session == (columns.sessions.index(session) if session in columns.sessions else -1)
    return inside


def _fulfilling(
    connection: apsw.Connection, columns: Columns, scope: Scope, within: Within, where: MessageFilter
) -> NDArray[np.bool_]:
    limits = rows.answered(connection, messages.inside(scope, within))
    messages.add_filter(limits, where)
    # One text with all numbers in it: handing over rows one by one would take ten times as long.
    query = for_sqlite(f"SELECT group_concat(log.seq) FROM log WHERE {limits}")
    listed = connection.execute(query, limits.values).get or ""
    return np.isin(columns.seq, np.fromstring(listed, dtype=np.int64, sep=","))
