"""The way from a question to hits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from aforesaid.domain.hit import Hit
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.domain.words import Within
from aforesaid.models.embed import Embedder
from aforesaid.recall.candidates import Candidates
from aforesaid.recall.fuse import Kind, fuse, kind_of, weights
from aforesaid.recall.gather import Begun, Gathered, Gatherer
from aforesaid.recall.notes import note_hits
from aforesaid.recall.ranked import message_hits, order, rows_around, without_repeated_sessions, without_repetitions
from aforesaid.recall.request import SearchRequest
from aforesaid.store import Store

_READ: Final = 50
"""Minimum number of candidates whose text is read. More changed nothing on labelled conversations."""
_MORE: Final = 30
"""Candidates read beyond the number wanted: their text may change the order."""


class Recall:
    """Search over one store."""

    def __init__(self, store: Store, embedder: Embedder | None) -> None:
        self._store = store
        self._embedder = embedder
        self._gatherer = Gatherer(store, embedder)

    def forget_all(self) -> None:
        """Drop what is at hand: somebody was erased."""
        self._gatherer.forget_all()

    def begin(self, scope: Scope, query: str, within: Within, at: datetime | None) -> Begun:
        """Begin with what takes longest of a search that will be made in a moment."""
        return self._gatherer.begin(scope, query, within, at)

    async def search(
        self,
        scope: Scope,
        asking: SearchRequest,
        beside: Callable[[], Awaitable[frozenset[int]]] | None = None,
        begun: Begun | None = None,
    ) -> list[Hit]:
        """Return the best hits, best first, newer first among equals.

        `beside` is asked for more that is not wanted once the search cannot go on without knowing it. `begun` is the
        same search, where it has begun already.
        """
        if asking.arms == "keyword":
            hits = await self._store.search_text(
                scope, asking.query, within=asking.within, limit=asking.limit + asking.unwanted
            )
            return _wanted(hits, asking)
        gathered = await self._gatherer.gather(scope, asking, begun)
        if beside is not None:
            asking = replace(asking, beside=asking.beside | await beside())
        kind = kind_of(gathered.candidates)
        hits = []
        if {"message", "session"}.intersection(asking.kinds) and len(gathered.candidates.rows):
            hits = await self._messages(scope, asking, gathered.candidates, kind)
        if gathered.notes and {"summary", "memory"}.intersection(asking.kinds) and asking.arms == "all":
            hits += await self._notes(scope, asking, gathered, kind)
            hits.sort(key=lambda hit: -hit.score)
        return _wanted(hits, asking)

    async def candidates(self, scope: Scope, asking: SearchRequest) -> Candidates:
        """Return all messages that may be the answer, with their texts: what weights are fitted to."""
        found = (await self._gatherer.gather(scope, asking)).candidates
        return (await self._gatherer.read(scope, asking, found, range(len(found.rows)))).candidates

    async def _messages(self, scope: Scope, asking: SearchRequest, candidates: Candidates, kind: Kind) -> list[Hit]:
        parts = (
            fuse(candidates, kind, textual=False)
            if asking.arms == "all"
            else {"dense": candidates.dense[candidates.rows]}
        )
        # Only what can still be among the hits is read.
        many = asking.limit + len(asking.without)
        best = sorted(_not_beside(asking, candidates, order(candidates, parts))[: max(_READ, many + _MORE)])
        candidates, places, messages = await self._gatherer.read(scope, asking, candidates, best)
        parts = {name: values[places] for name, values in parts.items()}
        if asking.arms == "all":
            parts |= fuse(candidates, kind, textual=True)
        ranked = order(candidates, parts)
        if asking.similarity is not None:
            ranked = [place for place in ranked if _similarity(candidates, place) >= asking.similarity]
        hits = []
        if "message" in asking.kinds:
            groups = without_repetitions(ranked, candidates.texts, many)
            around = await self._around(scope, asking, candidates, groups)
            hits += message_hits(candidates, groups, parts, messages, around, explained=asking.explained)
        if "session" in asking.kinds:
            groups = without_repeated_sessions(ranked, candidates)[:many]
            around = await self._around(scope, asking, candidates, groups)
            hits += [_as_session(hit) for hit in message_hits(candidates, groups, parts, messages, around)]
        return hits

    async def _around(
        self, scope: Scope, asking: SearchRequest, candidates: Candidates, groups: Sequence[Sequence[int]]
    ) -> dict[int, list[Message]]:
        """Return the messages around the first of each group, where they are asked for."""
        if not asking.around:
            return {}
        columns = candidates.columns
        beside = {
            group[0]: columns.seq[rows_around(columns, int(candidates.rows[group[0]]), asking.around)].tolist()
            for group in groups
        }
        wanted = sorted({seq for seqs in beside.values() for seq in seqs})
        found = {message.seq: message for message in await self._store.pick(scope, wanted, within=asking.within)}
        return {place: [found[seq] for seq in seqs if seq in found] for place, seqs in beside.items()}

    async def _notes(self, scope: Scope, asking: SearchRequest, gathered: Gathered, kind: Kind) -> list[Hit]:
        name = "" if self._embedder is None else self._embedder.name
        found = await self._store.search_notes(scope, asking.query, name, gathered.vector, limit=2 * asking.limit)
        return note_hits(
            [note for note in found if note.key.kind in asking.kinds], gathered.candidates.usual, weights(kind)
        )


def _not_beside(asking: SearchRequest, candidates: Candidates, places: list[int]) -> list[int]:
    """Leave out what is not wanted, as far as it is known by its number."""
    if not asking.beside or "session" in asking.kinds:
        return places
    there = [seq in asking.beside for seq in candidates.columns.seq[candidates.rows].tolist()]
    return [place for place in places if not there[place]]


def _wanted(hits: Sequence[Hit], asking: SearchRequest) -> list[Hit]:
    """Leave out what is not wanted, and stop at the limit."""
    least = asking.similarity
    return [
        hit
        for hit in hits
        if not (hit.kind == "message" and hit.id in asking.without)
        and not (hit.kind == "message" and hit.message is not None and hit.message.seq in asking.beside)
        and (least is None or (hit.similarity is not None and hit.similarity >= least))
    ][: asking.limit]


def _similarity(candidates: Candidates, place: int) -> float:
    cosine = candidates.usual.cosine(float(candidates.dense[candidates.rows[place]]))
    return -1.0 if cosine is None else cosine


def _as_session(hit: Hit) -> Hit:
    if hit.message is None:
        return hit
    return replace(hit, kind="session", id=hit.message.session)
