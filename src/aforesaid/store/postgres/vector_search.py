"""Search by meaning: vectors stay in the database, which compares them with a question.

It compares all vectors of a person or thread with up to 20,000 messages. Of larger ones, the signs of the numbers are
kept in memory, 64 bytes for a vector of 512 numbers: they name a shortlist, and the database compares that. The signs
are read once, and from then on only what is new.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.background import to_the_end
from aforesaid.domain.hit import EVERY_MESSAGE, Similar
from aforesaid.domain.scope import is_direct
from aforesaid.store import questions
from aforesaid.store.columns import Growing, places_of
from aforesaid.store.dialects import for_postgres
from aforesaid.store.matrix import SAMPLE
from aforesaid.store.postgres.packages import Vector
from aforesaid.store.postgres.queries import Queries, Row
from aforesaid.store.postgres.rows import answered
from aforesaid.store.postgres.search import Place, place_of
from aforesaid.store.postgres.vectors import halves
from aforesaid.store.signs import Signs, in_words
from aforesaid.store.sized_cache import SizedCache
from aforesaid.store.sql.messages import add_filter, inside
from aforesaid.store.sql.tables import NOT_SEARCHED, SEARCHED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXACT: Final = 20_000
"""Maximum messages of a place whose vectors are all compared with a question."""
_MANY: Final = 4_000
"""Similarities that are returned, best first, unless a question asks for more."""
_PAGE_OF_SIGNS: Final = 20_000
_MOST_BYTES: Final = 128 * 1024 * 1024
"""Signs that are kept, as bytes: those of two million vectors of 512 numbers."""

_JOIN_LOG: Final = "JOIN log ON log.space = v.space AND log.seq = v.seq"
# The stored numbers are compared at full precision with the vector that was asked for. A product is the cosine, because
# all vectors have the length one.
_SCORE: Final = "-(v.value::vector <#> {vector}::vector)"
_SCORES: Final = f"""
SELECT v.seq, {_SCORE} AS score FROM meaning v {{join}} WHERE {{limit}} AND v.embedder = {{embedder}}
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
SELECT v.seq, bit_send(binary_quantize(v.value)) FROM meaning v
 WHERE v.space = $1 AND v.owner = $2 AND v.embedder = $3 AND v.seq > $4 AND v.seq <= $5
   AND {_OF_USER} ORDER BY v.seq LIMIT $6
"""
_SIGNS_OF_THREAD: Final = f"""
SELECT v.seq, bit_send(binary_quantize(v.value)) FROM meaning v {_JOIN_LOG}
 WHERE log.space = $1 AND log.thread = $2 AND v.embedder = $3 AND log.seq > $4 AND log.seq <= $5
   AND log.shared AND {for_postgres(SEARCHED)} ORDER BY log.seq LIMIT $6
"""
_VALUES_OF: Final = """
SELECT seq, halfvec_send(value) FROM meaning WHERE space = $1 AND embedder = $2 AND seq = ANY($3::bigint[]) ORDER BY seq
"""
_SCORES_OF: Final = f"""
SELECT v.seq, {_SCORE.format(vector="$1")} FROM meaning v
 WHERE v.space = $2 AND v.embedder = $3 AND v.seq = ANY($4::bigint[]) ORDER BY v.seq
"""


@dataclass(slots=True)
class _Kept:
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
        import numpy as np  # noqa: PLC0415

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
    """Searches by meaning."""

    def __init__(self) -> None:
        self._kept: SizedCache[_Key, _Kept] = SizedCache(_MOST_BYTES)

    async def similar(self, queries: Queries, question: questions.SearchVector) -> Similar | None:
        """Return the messages of the scope that are most similar to a vector."""
        place = place_of(question.scope, question.within)
        whole = question.within == "user" or (question.within == "thread" and not is_direct(question.scope.thread))
        if not whole or question.where != EVERY_MESSAGE:
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
        kept = self._kept.get(key, _Kept)
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


async def _bring_up_to_date(queries: Queries, key: _Key, kept: _Kept, up_to: int) -> None:
    """Read the signs of vectors that came since the last search, and a new sample once it would be sparser."""
    import numpy as np  # noqa: PLC0415

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
    queries: Queries, question: questions.SearchVector, seqs: NDArray[np.int64], shortlist: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
    """Compare a shortlist, which comes first, and the messages that were asked for by name."""
    import numpy as np  # noqa: PLC0415

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


async def _compared(queries: Queries, question: questions.SearchVector) -> Similar | None:
    """Compare all vectors of the scope that fulfil the filter."""
    import numpy as np  # noqa: PLC0415

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
