"""Searches by words and by vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from aforesaid.background import to_the_end
from aforesaid.domain.checks import Within, now
from aforesaid.domain.hit import EVERY_MESSAGE, TOKENS, Hit, Similar, Unembedded
from aforesaid.domain.memory import MemoryRecord, NoteKey, NoteKind, NoteMatch, UnembeddedNote
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.extras import np
from aforesaid.store import ranking, searches
from aforesaid.store.columns import Growing, Roll, places_of
from aforesaid.store.messages import add_filter, inside
from aforesaid.store.operations import Question
from aforesaid.store.postgres.queries import Queries, Row, Vector, answered, over_rows
from aforesaid.store.postgres.transaction import MARKS
from aforesaid.store.sql import NOT_SEARCHED, SEARCHED, for_postgres
from aforesaid.store.vector_matrix import SAMPLE, Signs, SizedCache, in_words
from aforesaid.text.languages import query_words

if TYPE_CHECKING:
    from numpy.typing import NDArray


_PAGE: Final = 10_000
_IN_A_THREAD: Final = 1_000
"""Number of new messages from which another thread adds them, so that the event loop is not blocked."""

_COUNTS: Final = "SELECT messages, words, revision FROM {table} WHERE space = $1 AND name = $2"
_NEW: Final = f"""
SELECT seq, at, thread, session, coalesce(name, author), role = 'assistant', words, terms FROM log
 WHERE space = $1 AND {{limit}} = $2 AND seq > $3 AND {{searched}} {{shared}} ORDER BY seq LIMIT {_PAGE}
"""
_HAS_NOTES: Final = """
SELECT EXISTS (SELECT 1 FROM summary WHERE space = $1 AND owner = $2)
    OR EXISTS (SELECT 1 FROM memory WHERE space = $1 AND owner = $2)
"""


class Place(NamedTuple):
    """Whose messages are searched: all of a person's, or all of a shared thread's."""

    shared: bool
    space: str
    name: str

    @property
    def counts(self) -> str:
        return _COUNTS.format(table="thread" if self.shared else "person")

    @property
    def new(self) -> str:
        limit, shared = ("thread", "AND shared") if self.shared else ("owner", "")
        return _NEW.format(limit=limit, shared=shared, searched=for_postgres(SEARCHED))


def place_of(scope: Scope, within: Within) -> Place:
    shared = within != "user" and not is_direct(scope.thread)
    return Place(shared, scope.space, scope.thread if shared else scope.user)


@dataclass(slots=True)
class _Kept:
    """What is kept of a place. Whoever changes it holds the lock."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    roll: Roll = field(default_factory=Roll)
    index: ranking.Inverted = field(default_factory=ranking.Inverted)
    threads: dict[str, int] = field(default_factory=dict)
    revision: int = -1

    @property
    def size(self) -> int:
        return self.roll.size + self.index.size

    def start_again(self, revision: int) -> None:
        self.roll, self.index, self.threads, self.revision = Roll(), ranking.Inverted(), {}, revision

    def extend(self, rows: list[Row]) -> None:
        seq, at, names, sessions, speakers, assistant, words, terms = zip(*rows, strict=True)
        threads = [self.threads.setdefault(name, len(self.threads)) for name in names]
        self.index.extend(terms)
        numbers = (np.array(column) for column in (seq, at, threads, assistant, words))
        self.roll.extend(*numbers, sessions=sessions, speakers=speakers)


class Search:
    def __init__(self) -> None:
        self._kept: SizedCache[Place, _Kept] = SizedCache()

    async def search(self, queries: Queries, question: searches.SearchText) -> list[Hit]:
        return await answered(queries, question.hits(await self.match(queries, question.matching)))

    async def match(self, queries: Queries, question: searches.MatchText) -> ranking.TextMatches:
        place = place_of(question.scope, question.within)
        kept = self._kept.get(place, _Kept)
        async with kept.lock:
            counts, notes = await self._bring_up_to_date(queries, place, kept, question.scope)
            if counts is None:
                self._kept.drop(place)
                return ranking.TextMatches(Roll().columns(), (), 1.0)
            columns, thread = kept.roll.columns(), kept.threads.get(question.scope.thread, -1)
            inside = await answered(queries, searches.selected(columns, question, thread))
            words = [(word, *kept.index.having(terms)) for word, terms in query_words(question.words)]
            self._kept.resized(place)
        return ranking.text_matches(columns, words, inside, counts, notes=question.within == "user" and notes)

    @staticmethod
    async def _bring_up_to_date(
        queries: Queries, place: Place, kept: _Kept, scope: Scope
    ) -> tuple[tuple[int, int] | None, bool]:
        """Read what is new. Return how many messages and words there are, and whether the user has notes."""
        here = place.space, place.name
        counts, [(notes,)], new = await queries.together(
            (place.counts, here), (_HAS_NOTES, (scope.space, scope.user)), (place.new, (*here, kept.roll.last))
        )
        if not counts:
            return None, notes
        documents, total, revision = counts[0]
        if kept.revision != revision:
            kept.start_again(revision)
            new = await queries.rows(place.new, *here, 0)
        while new:
            if len(new) >= _IN_A_THREAD:
                await to_the_end(kept.extend, new)
            else:
                kept.extend(new)
            new = [] if len(new) < _PAGE else await queries.rows(place.new, *here, kept.roll.last)
        return (documents, total), notes


_DUE: Final = """
SELECT s.space, l.seq, l.text, l.role
  FROM space s LEFT JOIN embedder e ON e.space = s.space AND e.name = $1
  CROSS JOIN LATERAL (
    SELECT seq, text, role FROM log WHERE space = s.space AND seq > coalesce(e.up_to, 0) ORDER BY seq LIMIT $2
  ) l WHERE s.last_seq > coalesce(e.up_to, 0) ORDER BY s.space, l.seq LIMIT $2
"""
_KNOWN: Final = over_rows(
    """
    SELECT DISTINCT ON (l.space, l.text) l.space, l.text, coalesce(v.tokens, halfvec_send(v.value))
      FROM {rows} JOIN embedding v ON v.space = {space} AND v.content = new.content AND v.embedder = {0}
      JOIN log l ON l.space = v.space AND l.seq = v.seq
    """,
    "content bigint",
)
_JOIN_LOG: Final = "JOIN log ON log.space = v.space AND log.seq = v.seq"


async def unembedded(queries: Queries, question: searches.UnembeddedMessages) -> list[Unembedded]:
    """Return the oldest messages, space by space, that an embedder has not seen, with the vectors of equal texts."""
    due = await queries.rows(_DUE, question.embedder, question.limit)
    if not due:
        return []
    contents = {(space, ranking.content_hash(text)) for space, _, text, _ in due}
    found = await queries.rows_of(_KNOWN, list(contents), question.embedder)
    known = {(space, text): stored(value) for space, text, value in found}
    return [Unembedded(seq, text, known.get((space, text)), space, role) for space, seq, text, role in due]


async def stored_vectors(
    queries: Queries, question: searches.MessageVectors | searches.TokenVectors
) -> dict[int, bytes]:
    return {seq: stored(value) for seq, value in await answered(queries, question.vectors())}


def stored(sent: bytes) -> bytes:
    """Return token vectors or, from what the database sends of a vector, its numbers of half precision in a row."""
    return sent if sent.startswith(TOKENS) else halves(sent)


def halves(sent: bytes) -> bytes:
    """Turn what the database sends of a vector into numbers of half precision in a row."""
    return np.frombuffer(sent, dtype=">f2", offset=4).astype(np.float16).tobytes()


EXACT: Final = 20_000
"""Maximum messages of a place whose vectors are all compared with a question."""
_MANY: Final = 4_000
"""Similarities that are returned, best first, unless a question asks for more."""
_PAGE_OF_SIGNS: Final = 20_000
_MOST_BYTES: Final = 128 * 1024 * 1024
"""Signs that are kept, as bytes: those of two million vectors of 512 numbers."""
# The stored numbers are compared at full precision with the vector that was asked for. A product is the cosine, because
# all vectors have the length one.
_SCORE: Final = "-(v.value::vector <#> {vector}::vector)"
_SCORES: Final = f"""
SELECT v.seq, {_SCORE} AS score FROM embedding v {{join}} WHERE {{limit}} AND v.embedder = {{embedder}}
"""
_OF_USER: Final = f"""
v.seq != ALL(ARRAY(SELECT log.seq FROM log WHERE log.space = $1 AND log.owner = $2 AND {for_postgres(NOT_SEARCHED)}))
"""
_BEST: Final = """
WITH scored AS MATERIALIZED ({scores}), best AS (SELECT * FROM scored ORDER BY score DESC, seq DESC LIMIT {limit})
SELECT 0, seq, score FROM best
UNION ALL SELECT 1, seq, score FROM scored WHERE seq = ANY({also}::bigint[]) AND seq NOT IN (SELECT seq FROM best)
UNION ALL SELECT 2, count(*), avg(score) FROM scored
UNION ALL SELECT 3, count(*), stddev_pop(score) FROM scored
"""
_STATE: Final = """
SELECT place.messages, place.revision, embedder.up_to
  FROM {table} place JOIN embedder ON embedder.space = place.space AND embedder.name = $3
 WHERE place.space = $1 AND place.name = $2
"""
_SIGNS_OF_USER: Final = f"""
SELECT v.seq, bit_send(binary_quantize(v.value)) FROM embedding v
 WHERE v.space = $1 AND v.owner = $2 AND v.embedder = $3 AND v.seq > $4 AND v.seq <= $5
   AND {_OF_USER} ORDER BY v.seq LIMIT $6
"""
_SIGNS_OF_THREAD: Final = f"""
SELECT v.seq, bit_send(binary_quantize(v.value)) FROM embedding v {_JOIN_LOG}
 WHERE log.space = $1 AND log.thread = $2 AND v.embedder = $3 AND log.seq > $4 AND log.seq <= $5
   AND log.shared AND {for_postgres(SEARCHED)} ORDER BY log.seq LIMIT $6
"""
_VALUES_OF: Final = """
SELECT seq, halfvec_send(value) FROM embedding WHERE space = $1 AND embedder = $2 AND seq = ANY($3::bigint[]) ORDER BY seq
"""
_SCORES_OF: Final = f"""
SELECT v.seq, {_SCORE.format(vector="$1")} FROM embedding v
 WHERE v.space = $2 AND v.embedder = $3 AND v.seq = ANY($4::bigint[]) ORDER BY v.seq
"""


@dataclass(slots=True)
class _KeptVectors:
    """What is kept of a place. Whoever changes it holds the lock."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    signs: Signs = field(default_factory=Signs)
    seqs: Growing | None = None
    seen: int = 0
    """All messages up to this one are here, if they have a vector: embedders go through a space in order."""
    revision: int = -1
    sample: NDArray[np.float32] | None = None
    """Some of the vectors, from the first to the last, which tell how similar vectors usually are."""
    step: int = 0
    """The distance between two vectors of the sample."""

    @property
    def size(self) -> int:
        return self.signs.nbytes + sum(array.nbytes for array in (self.seqs, self.sample) if array is not None)

    def start_again(self, revision: int) -> None:
        self.signs, self.seqs, self.seen, self.revision = Signs(), None, 0, revision
        self.sample, self.step = None, 0

    def extend(self, rows: list[Row], seen: int) -> None:
        self.seen = seen
        if not rows:
            return
        seqs = np.array([seq for seq, _ in rows], dtype=np.int64)
        if self.seqs is None:
            self.seqs = Growing(seqs[:0])
        self.seqs.extend(seqs)
        # The database sends the number of bits before them, in four bytes.
        packed = np.frombuffer(b"".join([bits for _, bits in rows]), dtype=np.uint8).reshape(len(rows), -1)
        self.signs.extend(in_words(packed[:, 4:]))


class _Key(NamedTuple):
    place: Place
    embedder: str


class VectorSearch:
    def __init__(self) -> None:
        self._kept: SizedCache[_Key, _KeptVectors] = SizedCache(_MOST_BYTES)

    async def similar(self, queries: Queries, question: searches.SearchVector) -> Similar | None:
        place = place_of(question.scope, question.within)
        if not searches.holds_place(question.scope, question.within) or question.where != EVERY_MESSAGE:
            return await _compared(queries, question)
        query = _STATE.format(table="thread" if place.shared else "person")
        state = await queries.first(query, place.space, place.name, question.embedder)
        key = _Key(place, question.embedder)
        if state is None:
            self._kept.drop(key)
            return None
        messages, revision, up_to = state
        if messages <= EXACT:
            return await _compared(queries, question)
        kept = self._kept.get(key, _KeptVectors)
        async with kept.lock:
            if kept.revision != revision:
                kept.start_again(revision)
            await _bring_up_to_date(queries, key, kept, up_to)
            self._kept.resized(key)
            if kept.seqs is None or kept.sample is None:
                return None
            seqs, usual = kept.seqs.rows, kept.sample @ question.vector
            shortlist = kept.signs.nearest(question.vector, question.limit)
        found = await _compared_with(queries, question, seqs, shortlist)
        return None if found is None else Similar(*found, float(usual.mean()), float(usual.std()))


async def _bring_up_to_date(queries: Queries, key: _Key, kept: _KeptVectors, up_to: int) -> None:
    """Read the signs of vectors that came since the last search, and a new sample once it would be sparser."""
    query = _SIGNS_OF_THREAD if key.place.shared else _SIGNS_OF_USER
    while kept.seen < up_to:
        new = await queries.rows(query, key.place.space, key.place.name, key.embedder, kept.seen, up_to, _PAGE_OF_SIGNS)
        whole = len(new) < _PAGE_OF_SIGNS
        await to_the_end(kept.extend, new, up_to if whole else new[-1][0])
    if kept.seqs is not None and kept.step != (step := max(len(kept.seqs) // SAMPLE, 1)):
        chosen = kept.seqs.rows[::step].tolist()
        found = [halves(value) for _, value in await queries.rows(_VALUES_OF, key.place.space, key.embedder, chosen)]
        rows = np.frombuffer(b"".join(found), dtype=np.float16).reshape(len(chosen), -1)
        kept.sample, kept.step = rows.astype(np.float32), step


async def _compared_with(
    queries: Queries, question: searches.SearchVector, seqs: NDArray[np.int64], shortlist: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
    """Compare a shortlist, which comes first, and the messages that were asked for by name."""
    listed, wanted = np.zeros(len(seqs), dtype=np.bool_), np.zeros(len(seqs), dtype=np.bool_)
    listed[shortlist] = wanted[shortlist] = True
    wanted[places_of(np.array(question.also, dtype=np.int64), seqs)] = True
    asked = question.scope.space, question.embedder, seqs[wanted].tolist()
    found = await queries.rows(_SCORES_OF, Vector(question.vector), *asked)
    if not found:
        return None
    numbers, values = np.array([seq for seq, _ in found]), np.array([score for _, score in found], dtype=np.float32)
    first = listed[np.searchsorted(seqs, numbers)]
    # Ties go to the newer message, so that the answer is always the same: rows are in order, seen from the end.
    places = np.flatnonzero(first)[::-1]
    every = np.concatenate([places[np.argsort(-values[places], kind="stable")], np.flatnonzero(~first)])
    return numbers[every], values[every]


async def _compared(queries: Queries, question: searches.SearchVector) -> Similar | None:
    """Compare all vectors of the scope that fulfil the filter."""
    limits = await answered(queries, inside(question.scope, question.within))
    add_filter(limits, question.where)
    join, where = _JOIN_LOG, f"{limits} AND {for_postgres(SEARCHED)}"
    if question.within == "user" and question.where == EVERY_MESSAGE:
        join, where = "", f"{str(limits).replace('log.', 'v.')} AND {_OF_USER}"
    vector, embedder = limits.bind(Vector(question.vector)), limits.bind(question.embedder)
    scores = _SCORES.format(vector=vector, embedder=embedder, join=join, limit=where)
    most, also = limits.bind(max(_MANY, question.limit)), limits.bind(list(question.also))
    found = await queries.rows(for_postgres(_BEST.format(scores=scores, limit=most, also=also)), *limits.values)
    by_kind: dict[int, list[tuple[int, float]]] = {}
    for kind, seq, score in found:
        by_kind.setdefault(kind, []).append((seq, score))
    [(total, mean)], [(_, deviation)] = by_kind[2], by_kind[3]
    if not total:
        return None
    # Ties go to the newer message, so that the answer is always the same.
    best = sorted(by_kind.get(0, ()), key=lambda row: (-row[1], -row[0])) + sorted(by_kind.get(1, ()))
    return Similar(
        np.array([row[0] for row in best], dtype=np.int64),
        np.array([row[1] for row in best], dtype=np.float32),
        float(mean),
        float(deviation),
    )


_TERMS: Final = """
SELECT 2 * id, terms FROM summary WHERE space = $1 AND owner = $2
UNION ALL SELECT 2 * id + 1, terms FROM memory WHERE space = $1 AND owner = $2
"""
_SIMILAR: Final = """
SELECT note, -(value::vector <#> $4::vector) FROM note_embedding WHERE space = $1 AND owner = $2 AND embedder = $3
"""
# A summary of summaries may stand for everything that was ever said: the log is read until there are enough.
_SUMMARIES: Final = f"""
SELECT 2 * y.id, y.text, y.created_at, l.seqs, l.given_ids FROM summary y CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(k.seq ORDER BY k.seq), '{{}}') AS seqs,
           coalesce(array_agg(k.given_id ORDER BY k.seq), '{{}}') AS given_ids
      FROM (SELECT log.seq, log.given_id FROM log WHERE log.space = $1 AND log.owner = $2 AND CASE y.reach
        WHEN 'chunks' THEN log.chunk = ANY(y.chunks)
        WHEN 'sources' THEN EXISTS (
            SELECT 1 FROM summary_source x JOIN summary z ON z.space = x.space AND z.id = x.source
             WHERE x.space = $1 AND x.summary = y.id AND log.seq BETWEEN z.first_seq AND z.last_seq
               AND log.at BETWEEN z.began_at AND z.ended_at)
        ELSE log.seq BETWEEN y.fresh_seq AND y.last_seq AND log.at BETWEEN y.began_at AND y.ended_at
             AND (y.reach = 'user' OR log.thread = y.thread)
        END AND log.seq BETWEEN y.first_seq AND y.last_seq ORDER BY log.seq LIMIT {ranking.MOST_SOURCES}) k
) l WHERE y.space = $1 AND y.owner = $2 AND y.id = ANY($3::bigint[]) AND y.active
"""
_MEMORIES: Final = """
SELECT 2 * m.id + 1, m.text, m.created_at, l.seqs, l.given_ids FROM memory m CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(log.seq ORDER BY log.seq), '{}') AS seqs,
           coalesce(array_agg(log.given_id ORDER BY log.seq), '{}') AS given_ids
      FROM memory_source s JOIN log ON log.space = s.space AND log.seq = s.seq
     WHERE s.space = $1 AND s.memory = m.id
) l WHERE m.space = $1 AND m.owner = $2 AND m.id = ANY($3::bigint[]) AND m.active
      AND (m.expires_at IS NULL OR m.expires_at > $4)
"""
# A note whose text was changed is embedded again: the mark goes back to it, and those after it have their vectors.
_UNEMBEDDED: Final = """
SELECT s.space, n.id, n.text
  FROM space s LEFT JOIN embedder e ON e.space = s.space AND e.name = $1
  CROSS JOIN LATERAL (
    SELECT t.id, t.text FROM {table} t WHERE t.space = s.space AND t.id > coalesce(e.{mark}, 0) AND NOT EXISTS (
        SELECT 1 FROM note_embedding v WHERE v.space = t.space AND v.owner = t.owner AND v.note = 2 * t.id + {odd}
           AND v.embedder = $1
    ) ORDER BY t.id LIMIT $2
  ) n WHERE s.{last} > coalesce(e.{mark}, 0) ORDER BY s.space, n.id LIMIT $2
"""
_NOTES_PAGE: Final = 50
"""Notes read at a time, until enough of them are active."""


async def unembedded_notes(queries: Queries, question: searches.UnembeddedNotes) -> list[UnembeddedNote]:
    kinds: tuple[NoteKind, ...] = ("summary", "memory")
    found: list[UnembeddedNote] = []
    for kind in kinds:
        query = _UNEMBEDDED.format(table=kind, mark=MARKS[kind], odd=int(kind == "memory"), last=f"last_{kind}")
        rows = await queries.rows(query, question.embedder, question.limit - len(found))
        found += [UnembeddedNote(NoteKey(kind, note), text, space) for space, note, text in rows]
    return found


async def search(queries: Queries, question: searches.SearchNotes) -> list[NoteMatch]:
    here = question.scope.space, question.scope.user
    notes = await queries.rows(_TERMS, *here)
    if not notes:
        return []
    similar: dict[int, float] = {}
    if question.vector is not None:
        similar.update(await queries.rows(_SIMILAR, *here, question.embedder, Vector(question.vector)))
    having = _having(question.words, dict(notes))
    ranked = ranking.rank_notes(having, ranking.similarities_of(similar), len(notes))
    matches: list[NoteMatch] = []
    while len(matches) < question.limit and (page := list(islice(ranked, _NOTES_PAGE))):
        matches += await _read(queries, question.scope, page)
    return matches[: question.limit]


def _having(words: str, stored: Mapping[int, bytes]) -> dict[str, list[int]]:
    known = {note: set(np.frombuffer(terms, dtype="<i8").tolist()) for note, terms in stored.items()}
    numbers = {word: list(map(ranking.number_of, wanted)) for word, wanted in query_words(words)}
    return {
        word: [note for note, found in known.items() if not found.isdisjoint(wanted)]
        for word, wanted in numbers.items()
    }


_NEWEST_HAVING: Final = f"""
SELECT w.word, (array_agg(DISTINCT m.id ORDER BY m.id DESC))[1:{ranking.MOST_HAVING}]
  FROM memory m JOIN unnest($3::text[], $4::bytea[]) AS w (word, term) ON position(w.term IN m.terms) > 0
 WHERE m.space = $1 AND m.owner = $2 GROUP BY w.word
"""
_SOME: Final = f"""
SELECT count(*) FROM (SELECT 1 FROM memory WHERE space = $1 AND owner = $2 LIMIT {ranking.MOST_HAVING}) x
"""


async def search_memories(queries: Queries, question: searches.SearchMemories) -> list[tuple[MemoryRecord, float]]:
    """Return the memories that a question is about. The database compares the words; it has no index of them."""
    here = question.scope.space, question.scope.user
    asked = ranking.words_asked(question.words)
    pairs = [(word, ranking.hashed([term])) for word, terms in asked for term in terms]
    worded: list[tuple[int, float]] = []
    if pairs:
        words, values = map(list, zip(*pairs, strict=True))
        rows, [(count,)] = await queries.together((_NEWEST_HAVING, (*here, words, values)), (_SOME, here))
        having: dict[str, list[int]] = dict(rows)
        worded = ranking.covering({word: having.get(word, []) for word, _ in asked}, count)
    return await answered(queries, question.relevant(worded))


async def _read(queries: Queries, scope: Scope, ranked: list[ranking.RankedNote]) -> list[NoteMatch]:
    summaries = [each.note // 2 for each in ranked if each.note % 2 == 0]
    memories = [each.note // 2 for each in ranked if each.note % 2]
    here = scope.space, scope.user
    answers = await queries.together((_SUMMARIES, (*here, summaries)), (_MEMORIES, (*here, memories, now())))
    found = {row[0]: row for rows in answers for row in rows}
    return [
        each.match(row[1], row[2], zip(row[3], row[4], strict=True))
        for each in ranked
        if (row := found.get(each.note)) is not None
    ]


Answers: TypeAlias = dict[type[Question[Any]], Callable[[Queries, Any], Awaitable[Any]]]


def answers() -> Answers:
    """Return what answers the questions that each database answers in its own way."""
    found = Search()
    return {
        searches.SearchText: found.search,
        searches.MatchText: found.match,
        searches.SearchVector: VectorSearch().similar,
        searches.SearchNotes: search,
        searches.SearchMemories: search_memories,
        searches.MessageVectors: stored_vectors,
        searches.TokenVectors: stored_vectors,
        searches.UnembeddedMessages: unembedded,
        searches.UnembeddedNotes: unembedded_notes,
    }
