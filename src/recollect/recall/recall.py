"""The way from a question to hits."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final, Literal, TypeAlias

from recollect.domain.hit import Hit
from recollect.domain.scope import Scope
from recollect.domain.vector import Turn
from recollect.domain.words import Within
from recollect.errors import ModelError
from recollect.models.embed import Embedder, Vectors
from recollect.recall.candidates import Candidates
from recollect.recall.fuse import fuse
from recollect.recall.question import Question
from recollect.store import Store
from recollect.store.ranking import MOST_GAIN
from recollect.store.terms import words_of

Arms = Literal["all", "keyword", "dense"]
"""Which arms find candidates: both, with everything that scores them, or one alone, to compare."""

_log: Final = logging.getLogger("recollect.recall")

_CANDIDATES: Final = 200
"""So many are taken from each arm."""


Scored: TypeAlias = tuple[Turn, dict[str, float]]
"""A candidate, and what each feature adds to its score."""


class Recall:
    """Search over one store."""

    def __init__(self, store: Store, embedder: Embedder | None) -> None:
        self._store = store
        self._embedder = embedder

    async def search(
        self, scope: Scope, query: str, *, within: Within, limit: int, asked: datetime | None, arms: Arms
    ) -> list[Hit]:
        """Return the best hits, best first, newer first among equals."""
        if arms == "keyword":
            return await self._store.search_text(scope, query, within=within, limit=limit)
        candidates = await self.candidates(scope, query, within=within, limit=limit, asked=asked, arms=arms)
        if not candidates.turns:
            return []
        if arms == "all":
            parts = fuse(candidates)
        else:
            parts = [{"dense": candidates.dense[turn.message.seq]} for turn in candidates.turns]
        ranked = sorted(
            zip(candidates.turns, parts, strict=True),
            key=lambda pair: (-sum(pair[1].values()), -pair[0].message.seq),
        )
        return [_hit(scored, ids, candidates) for scored, ids in _without_repetitions(ranked, limit)]

    async def candidates(
        self, scope: Scope, query: str, *, within: Within, limit: int, asked: datetime | None, arms: Arms = "all"
    ) -> Candidates:
        """Return the messages that may be the answer, with what is known of them."""
        question, many = Question.of(query, asked), max(_CANDIDATES, limit)
        found = await self._store.match_text(scope, query, within=within, limit=many)
        matches = {match.seq: match for match in found.matches}
        turns = {turn.message.seq: turn for turn in await self._store.turns(scope, list(matches), within=within)}
        vector = await self._embed(question, turns)
        if arms == "dense":
            # The words have only told who takes part.
            matches.clear()
            turns.clear()
        dense = {} if vector is None else await self._similar(scope, vector, within, many, turns)
        total = sum(found.rarity.values()) or 1.0
        return Candidates(
            question=question,
            turns=tuple(turns[seq] for seq in sorted(turns)),
            keyword={seq: match.score / (total * MOST_GAIN) for seq, match in matches.items()},
            matched={seq: match.terms for seq, match in matches.items()},
            rarity=found.rarity,
            total=total,
            dense=dense,
        )

    async def _embed(self, question: Question, turns: dict[int, Turn]) -> Vectors | None:
        if self._embedder is None or not question.text.strip():
            return None
        speakers = {turn.message.name or turn.message.author for turn in turns.values()}
        names = frozenset(word for speaker in speakers for word in words_of(speaker))
        try:
            vectors = await self._embedder.embed([question.without(names)])
        except ModelError as error:
            # Words alone still find most of it; health says that the model is down.
            _log.warning("searching by words alone: %s", error)
            return None
        first: Vectors = vectors[0]
        return first

    async def _similar(
        self, scope: Scope, vector: Vectors, within: Within, many: int, turns: dict[int, Turn]
    ) -> dict[int, float]:
        """Add the candidates of the dense arm to `turns`; return the similarity of all of them and their neighbours."""
        if self._embedder is None:
            return {}
        name = self._embedder.name
        nearest = await self._store.search_vector(scope, name, vector, within=within, limit=many, also=list(turns))
        if nearest is None:
            return {}
        new = [seq for seq in nearest.scores if seq not in turns]
        turns.update((turn.message.seq, turn) for turn in await self._store.turns(scope, new, within=within))
        beside = {seq for turn in turns.values() for seq in (turn.before, turn.after) if seq is not None}
        others = await self._store.search_vector(
            scope, name, vector, within=within, limit=1, also=sorted(beside - set(nearest.scores))
        )
        scores = {**(others.scores if others else {}), **nearest.scores}
        deviation = nearest.deviation or 1.0
        return {seq: (score - nearest.mean) / deviation for seq, score in scores.items()}


def _without_repetitions(ranked: list[Scored], limit: int) -> list[tuple[Scored, list[str]]]:
    """Keep the best of several messages that say the same in the same words, with the ids of the others."""
    kept: dict[tuple[str, ...], tuple[Scored, list[str]]] = {}
    for scored in ranked:
        message = scored[0].message
        said = tuple(words_of(message.text)) or (message.text,)
        if said in kept:
            kept[said][1].append(message.id)
        elif len(kept) < limit:
            kept[said] = scored, [message.id]
        else:
            break
    return list(kept.values())


def _hit(scored: Scored, ids: list[str], candidates: Candidates) -> Hit:
    turn, parts = scored
    message = turn.message
    return Hit(
        kind="message",
        id=message.id,
        text=message.text,
        score=sum(parts.values()),
        at=message.at,
        sources=tuple(ids),
        terms=candidates.matched.get(message.seq, ()),
        message=message,
        parts=tuple(parts.items()),
    )
