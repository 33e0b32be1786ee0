"""Searches: by the posting lists of one scope, and by vectors.

What is kept in memory of the people and threads that were searched last (columns of messages, and vectors) is made from
the file and can be dropped at any time. It is brought up to date at the start of each search, inside the search's own
read transaction.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import apsw

from aforesaid.domain.caches import TwoGenerationCache
from aforesaid.domain.checks import Within, now
from aforesaid.domain.hit import Hit, Similar, Unembedded
from aforesaid.domain.memory import MemoryRecord, NoteKey, NoteKind, NoteMatch, UnembeddedNote
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.extras import np
from aforesaid.store import ranking, searches
from aforesaid.store.columns import Columns, Roll, places_of
from aforesaid.store.sql import NOT_SEARCHED, SEARCHED, for_sqlite
from aforesaid.store.sqlite.append import Place, is_complete_for
from aforesaid.store.sqlite.connection import answered, every, one, owner_prefix
from aforesaid.store.sqlite.transaction import find_person, find_thread
from aforesaid.store.vector_matrix import CACHE_BYTES, Few, Matrix, SizedCache, unpacked
from aforesaid.text.languages import query_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aforesaid.store.columns import Rows


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
        self._notes: SizedCache[tuple[int, str], _KeptNotes] = SizedCache(CACHE_BYTES // 4)
        self._scopes: TwoGenerationCache[tuple[str, ...], Place] = TwoGenerationCache(_SCOPES)

    def lately(self, scope: Scope, within: Within) -> bool:
        place = self._scopes.get(_key(scope, within))
        return place is not None and (place, None) in self._kept

    def find(self, connection: apsw.Connection, question: searches.MatchText | searches.SearchVector) -> Found | None:
        """Return the messages of a scope as columns; None when nobody has heard of it. Raises IndexIncomplete."""
        scope, within = question.scope, question.within
        place = place_of(connection, scope, within)
        if place is None:
            return None
        complete = is_complete_for(connection, place)
        documents, words, revision = one(
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
        thread = None if searches.holds_place(scope, within) else find_thread(connection, scope.space, scope.thread)
        inside = answered(connection, searches.selected(columns, question, -1 if thread is None else thread))
        return Found(place, columns, inside, documents, words, revision)

    def similar(self, connection: apsw.Connection, question: searches.SearchVector) -> Similar | None:
        found = self.find(connection, question)
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

    def note_vectors(self, connection: apsw.Connection, owner: int, embedder: str, vectors: str) -> _NoteVectors:
        """Return the vectors of a person's notes. `vectors` says which, in SQL."""
        kept = self._notes.get((owner, embedder), _KeptNotes)
        kept.latest = latest = kept.latest.read(connection, owner, embedder, vectors)
        self._notes.resized((owner, embedder))
        return latest

    def clear(self) -> None:
        self._kept.clear()
        self._notes.clear()
        self._scopes.clear()


def _extend_roll(connection: apsw.Connection, roll: Roll, place: Place) -> int:
    """Add a block of messages that the roll does not have yet, and return how many they are."""
    query = _COLUMNS.replace("{limit}", place.limit)
    count, *numbers, speakers = one(connection.execute(query, (place.number, roll.last, _BLOCK)))
    if count:
        seq, at, thread, assistant, length, session = (
            np.fromstring(column, dtype=np.int64, sep=",") for column in numbers
        )
        roll.extend(seq, at, thread, assistant, length, sessions=session.tolist(), speakers=json.loads(speakers))
    return int(count)


def _read_vectors(connection: apsw.Connection, embedder: str, seqs: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return vectors by sequence number. One that this transaction does not see is all zeros: similar to nothing."""
    found: dict[int, bytes] = dict(every(connection.execute(_BY_NUMBER, (embedder, json.dumps(seqs.tolist())))))
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


_HAS_NOTES: Final = """
SELECT EXISTS (SELECT 1 FROM summary WHERE owner = ?1) OR EXISTS (SELECT 1 FROM memory WHERE owner = ?1)
"""
# One text with all numbers in it: handing over rows one by one would take ten times as long.
_POSTING: Final = "SELECT group_concat(doc) FROM log_posting WHERE term = ?"


def search(connection: apsw.Connection, caches: Caches, question: searches.SearchText) -> list[Hit]:
    return answered(connection, question.hits(match(connection, caches, question.matching)))


def match(connection: apsw.Connection, caches: Caches, question: searches.MatchText) -> ranking.TextMatches:
    """Return which messages have which words. Terms are looked up one by one: no query language is involved."""
    found = caches.find(connection, question)
    if found is None:
        return ranking.TextMatches(Roll().columns(), (), 1.0)
    vectors = None if question.embedder is None else caches.few(connection, found, question.embedder)
    notes = question.within == "user" and bool(connection.execute(_HAS_NOTES, (found.place.number,)).get)
    words = (
        (word, *_posting(connection, found.columns, [found.place.prefix + term for term in terms]))
        for word, terms in query_words(question.words)
    )
    counts = found.documents, found.words
    return ranking.text_matches(found.columns, words, found.inside, counts, notes=notes, vectors=vectors)


def _posting(connection: apsw.Connection, columns: Columns, terms: Sequence[str]) -> tuple[Rows, NDArray[np.int64]]:
    listed = [connection.execute(_POSTING, (term,)).get for term in terms]
    found = [np.fromstring(numbers, dtype=np.int64, sep=",") for numbers in listed if numbers]
    if not found:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64)
    # In order already, but for what several terms have found. A message comes once for each time it has the word.
    seqs = found[0] if len(found) == 1 else np.sort(np.concatenate(found))
    again = seqs[1:] == seqs[:-1]
    if not again.any():
        rows, _ = columns.locate(seqs)
        return rows, np.ones(len(rows), dtype=np.int64)
    first = np.flatnonzero(np.concatenate([[True], ~again]))
    rows, known = columns.locate(seqs[first])
    return rows, np.diff(first, append=len(seqs))[known]


_DUE: Final = """
SELECT seq, text, role FROM log
 WHERE seq > coalesce((SELECT up_to FROM embedder WHERE name = ?), 0) ORDER BY seq LIMIT ?
"""
_KNOWN: Final = """
SELECT v.value FROM vector v JOIN log ON log.seq = v.seq
 WHERE v.embedder = (SELECT id FROM embedder WHERE name = ?) AND v.content = ? AND log.text = ? LIMIT 1
"""


def unembedded(connection: apsw.Connection, question: searches.UnembeddedMessages) -> list[Unembedded]:
    return [
        Unembedded(
            seq, text, connection.execute(_KNOWN, (question.embedder, ranking.content_hash(text), text)).get, role=role
        )
        for seq, text, role in every(connection.execute(_DUE, (question.embedder, question.limit)))
    ]


def stored_vectors(
    connection: apsw.Connection, question: searches.MessageVectors | searches.TokenVectors
) -> dict[int, bytes]:
    return dict(answered(connection, question.vectors()))


_NOTES: Final = """
SELECT (SELECT count(*) FROM summary WHERE owner = ?1) + (SELECT count(*) FROM memory WHERE owner = ?1)
"""
# Few are active, however many there were: summaries of summaries archive their sources.
_ACTIVE: Final = """
SELECT 2 * id AS note FROM summary WHERE owner = ?1 AND active = 1
UNION ALL SELECT 2 * id + 1 FROM memory WHERE owner = ?1 AND active = 1
"""
_VECTORS: Final = "FROM note_vector WHERE embedder = (SELECT id FROM embedder WHERE name = ?2) AND owner = ?1"
_ACTIVE_VECTORS: Final = f"{_VECTORS} AND note IN ({_ACTIVE})"
_SOME_VECTORS: Final = f"SELECT note, value {_VECTORS} AND note IN (SELECT value FROM json_each(?3)) ORDER BY note"
# The vector of a note is another one after its text was changed: parts of it tell, and are read in a fraction of the
# time that all of it takes.
_STATE: Final = """
SELECT group_concat(note), group_concat(part)
  FROM (SELECT note, hex(substr(value, 1, 20) || substr(value, -12)) AS part {vectors} ORDER BY note)
"""
_IN_A_ROW: Final = 4
"""A vector is read this many times as fast in a row with all others as alone."""
_COVERING: Final = (
    "id", "reach", "chunks", "owner", "first_seq", "last_seq", "fresh_seq", "thread", "began_at", "ended_at",
)  # fmt: skip
_SUMMARY: Final = f"""
SELECT text, created_at, {", ".join(_COVERING)} FROM summary WHERE id = ? AND owner = ? AND active = 1
"""
# A summary of summaries may stand for everything that was ever said: the log is read until there are enough.
_BELOW: Final = f"""
SELECT l.seq, l.given_id FROM log l WHERE l.owner = :owner AND l.seq BETWEEN :first_seq AND :last_seq AND {{belongs}}
 ORDER BY l.seq LIMIT {ranking.MOST_SOURCES}
"""
_WITHIN: Final = "l.seq >= :fresh_seq AND l.at BETWEEN :began_at AND :ended_at"
_BELONGS: Final = {
    "chunks": "l.chunk IN (SELECT value FROM json_each(:chunks))",
    "sources": """EXISTS (
        SELECT 1 FROM summary_source x JOIN summary z ON z.id = x.source
         WHERE x.summary = :id AND l.seq BETWEEN z.first_seq AND z.last_seq
           AND l.at BETWEEN z.began_at AND z.ended_at)""",
    "thread": f"{_WITHIN} AND l.thread = :thread",
    "user": _WITHIN,
}
_MEMORY: Final = """
SELECT text, created_at FROM memory
 WHERE id = ? AND owner = ? AND active = 1 AND (expires_at IS NULL OR expires_at > ?)
"""
_SAID: Final = (
    "SELECT l.seq, l.given_id FROM memory_source s JOIN log l ON l.seq = s.seq WHERE s.memory = ? ORDER BY l.seq"
)
# A note whose text was changed is embedded again: the mark goes back to it, and those after it have their vectors.
_UNEMBEDDED: Final = """
SELECT id, text FROM {table} WHERE id > :mark AND NOT EXISTS (
    SELECT 1 FROM note_vector v WHERE v.embedder = (SELECT id FROM embedder WHERE name = :embedder)
       AND v.owner = {table}.owner AND v.note = 2 * {table}.id + :odd
) ORDER BY id LIMIT :limit
"""
_MARKS: Final = "SELECT summaries_up_to, memories_up_to FROM embedder WHERE name = ?"


def unembedded_notes(connection: apsw.Connection, question: searches.UnembeddedNotes) -> list[UnembeddedNote]:
    summaries, memories = connection.execute(_MARKS, (question.embedder,)).fetchone() or (0, 0)
    kinds: tuple[tuple[NoteKind, int], ...] = (("summary", summaries), ("memory", memories))
    found: list[UnembeddedNote] = []
    for kind, mark in kinds:
        query, odd = _UNEMBEDDED.format(table=kind), kind == "memory"
        bindings = {"embedder": question.embedder, "mark": mark, "odd": odd, "limit": question.limit - len(found)}
        found += [UnembeddedNote(NoteKey(kind, note), text) for note, text in connection.execute(query, bindings)]
    return found


@dataclass(slots=True)
class _NoteVectors:
    """The vectors of a person's notes, as of the last search."""

    notes: str = ""
    parts: str = ""
    numbers: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    values: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), dtype=np.float32))

    def read(self, connection: apsw.Connection, owner: int, embedder: str, vectors: str) -> _NoteVectors:
        """Return them as they are now; those that are new or were changed are read."""
        state = connection.execute(_STATE.format(vectors=vectors), (owner, embedder)).fetchone() or ()
        notes, parts = (each or "" for each in state)
        if (notes, parts) == (self.notes, self.parts):
            return self
        known = dict(zip(self.notes.split(","), self.parts.split(","), strict=True))
        now = list(zip(notes.split(","), parts.split(","), strict=True)) if notes else []
        new = [note for note, part in now if known.get(note) != part]
        asked = (owner, embedder, f"[{','.join(new)}]")
        fresh = unpacked([value for _, value in every(connection.execute(_SOME_VECTORS, asked))])
        numbers = _numbers(notes)
        values = np.empty((len(numbers), fresh.shape[1] or self.values.shape[1]), dtype=np.float32)
        is_new = np.isin(numbers, _numbers(",".join(new)), assume_unique=True)
        if new:
            values[is_new] = fresh
        if len(new) < len(numbers):
            values[~is_new] = self.values[places_of(numbers[~is_new], self.numbers)]
        return _NoteVectors(notes, parts, numbers, values)


@dataclass(slots=True)
class _KeptNotes:
    latest: _NoteVectors = field(default_factory=_NoteVectors)
    """Replaced as a whole: a search that goes on has the one that it began with."""

    @property
    def size(self) -> int:
        return 2 * len(self.latest.parts) + self.latest.values.nbytes


def _numbers(listed: str | None) -> NDArray[np.int64]:
    return np.fromstring(listed, dtype=np.int64, sep=",") if listed else np.empty(0, dtype=np.int64)


def search_notes(connection: apsw.Connection, caches: Caches, question: searches.SearchNotes) -> list[NoteMatch]:
    owner = find_person(connection, question.scope.space, question.scope.user)
    if owner is None:
        return []
    count = connection.execute(_NOTES, (owner,)).get
    if not count:
        return []
    prefix, having = owner_prefix(owner), {}
    for word, terms in query_words(question.words):
        query = "SELECT group_concat(doc) FROM note_posting WHERE term = ?"
        listed = [connection.execute(query, (prefix + term,)).get for term in terms]
        having[word] = np.concatenate([_numbers(each) for each in listed]) if listed else _numbers(None)
    active = np.sort(_numbers(connection.execute(f"SELECT group_concat(note) FROM ({_ACTIVE})", (owner,)).get))
    similar = ranking.Similarities(_numbers(None), np.empty(0))
    if question.vector is not None:
        vectors = _VECTORS if count < _IN_A_ROW * len(active) else _ACTIVE_VECTORS
        held = caches.note_vectors(connection, owner, question.embedder, vectors)
        if len(held.numbers):
            similar = ranking.Similarities(held.numbers, held.values @ question.vector)
    matches: list[NoteMatch] = []
    for ranked in ranking.rank_notes(having, similar, count, active):
        match = _read(connection, owner, ranked)
        if match is not None:
            matches.append(match)
            if len(matches) == question.limit:
                break
    return matches


_HAVING: Final = """
SELECT group_concat(rowid / 2) FROM (
    SELECT rowid FROM note_index WHERE note_index MATCH ? AND rowid % 2 = 1 ORDER BY rowid DESC LIMIT ?)
"""
_SOME: Final = "SELECT count(*) FROM (SELECT 1 FROM memory WHERE owner = ? LIMIT ?)"


def search_memories(connection: apsw.Connection, question: searches.SearchMemories) -> list[tuple[MemoryRecord, float]]:
    owner = find_person(connection, question.scope.space, question.scope.user)
    if owner is None:
        return []
    prefix, having = owner_prefix(owner), {}
    for word, terms in ranking.words_asked(question.words):
        wanted = " OR ".join([f'"{prefix}{term.replace(chr(34), chr(34) * 2)}"' for term in terms])
        listed = connection.execute(_HAVING, (wanted, ranking.MOST_HAVING)).get
        having[word] = [int(memory) for memory in listed.split(",")] if listed else []
    worded = ranking.covering(having, connection.execute(_SOME, (owner, ranking.MOST_HAVING)).get) if having else []
    return answered(connection, question.relevant(worded))


def _read(connection: apsw.Connection, owner: int, ranked: ranking.RankedNote) -> NoteMatch | None:
    key, execute = ranked.key, connection.execute
    if key.kind == "memory":
        row = execute(_MEMORY, (key.id, owner, now())).fetchone()
        return None if row is None else ranked.match(row[0], row[1], execute(_SAID, (key.id,)))
    row = execute(_SUMMARY, (key.id, owner)).fetchone()
    if row is None:
        return None
    summary = dict(zip(_COVERING, row[2:], strict=True))
    return ranked.match(row[0], row[1], execute(_BELOW.format(belongs=_BELONGS[summary["reach"]]), summary))


OWN: Final[Mapping[type, Callable[[apsw.Connection, Any], Any]]] = {
    searches.UnembeddedMessages: unembedded,
    searches.MessageVectors: stored_vectors,
    searches.TokenVectors: stored_vectors,
    searches.UnembeddedNotes: unembedded_notes,
    searches.SearchMemories: search_memories,
}
"""Questions that are answered in another way than by `answer`."""
CACHED: Final[Mapping[type, Callable[[apsw.Connection, Caches, Any], Any]]] = {
    searches.SearchText: search,
    searches.MatchText: match,
    searches.SearchNotes: search_notes,
    searches.SearchVector: lambda connection, caches, question: caches.similar(connection, question),
}
"""Searches, which keep columns and vectors in memory."""
