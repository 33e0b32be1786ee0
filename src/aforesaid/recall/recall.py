"""The way from a question to hits."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Final

from aforesaid.domain.checks import Within
from aforesaid.domain.hit import Hit
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import NOTHING_SAID
from aforesaid.models.embed import Embedder
from aforesaid.recall.candidates import Begun, CandidateFinder, Candidates, FoundCandidates, SearchRequest
from aforesaid.recall.features import asked_in_return
from aforesaid.recall.ranker import DEPTH, MOST, TokenRanker, rerank
from aforesaid.recall.score import (
    ALMOST_ALL,
    SIMILARITY_SCALE,
    Kind,
    NoteEvidence,
    ScoredNote,
    ScoreScale,
    evidence,
    kind_of,
    least_score,
    message_hits,
    note_hits,
    order,
    same_words_first,
    score_notes,
    score_scale,
    seqs_around,
    totals,
    weighted_features,
    weights,
    without_quotes,
    without_repeated_sessions,
    without_repetitions,
)
from aforesaid.store import Store
from aforesaid.store.messages import MessagesByNumber
from aforesaid.store.searches import SearchNotes, SearchText
from aforesaid.telemetry import Metrics

if TYPE_CHECKING:
    from aforesaid.models.rerank import Reranker

_READ: Final = 50
"""Texts read per search without the ranker, at least. Reading more changed nothing on labelled conversations."""
_MORE: Final = 30
"""Texts read beyond the number of hits: features of the text may still change the order."""

_MAY_MOVE_UP: Final = 4
"""Messages around this many more candidates are read than are wanted, since features of the text change the order."""


class Recall:
    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        metrics: Metrics | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._finder = CandidateFinder(store, embedder, metrics)
        self._ranker = TokenRanker(store, embedder)
        self._reranker = reranker

    def forget_all(self) -> None:
        self._finder.forget_all()

    def begin(self, scope: Scope, query: str, within: Within, at: datetime | None) -> Begun:
        """Start the slow parts of a search that follows in a moment."""
        return self._finder.begin(scope, query, within, at)

    async def search(
        self,
        scope: Scope,
        request: SearchRequest,
        beside: Callable[[], Awaitable[frozenset[int]]] | None = None,
        begun: Begun | None = None,
    ) -> list[Hit]:
        """Return the best hits, best first, newer first among equals.

        `beside` returns more sequence numbers to leave out, and is awaited as late as possible. `begun` is the same
        search, where it has begun already.
        """
        if request.arms == "keyword":
            by_words = await self._store.read(
                SearchText(
                    scope,
                    request.query,
                    within=request.within,
                    limit=request.limit + request.unwanted,
                    where=request.where,
                )
            )
            # A squashed BM25 score, which compares within one search only.
            scored = [replace(hit, score=hit.score / (1 + hit.score)) for hit in by_words]
            lowest = request.min_score or 0.0
            return [hit for hit in _wanted(scored, request) if hit.score >= lowest][: request.limit]
        found = await self._finder.find(scope, request, begun)
        if beside is not None:
            request = replace(request, beside=request.beside | await beside())
        kind = kind_of(found.candidates)
        notes: list[ScoredNote] = []
        if found.notes and request.searches_notes:
            notes = await self._notes(scope, request, found, kind)
        of_notes = evidence(notes, found.candidates.background)
        if {"message", "session"}.intersection(request.kinds) and len(found.candidates.rows):
            hits, scale, least = await self._messages(scope, request, found, kind, of_notes)
        else:
            hits, scale = [], score_scale(found.candidates, -math.inf, of_notes)
            least = _least_score(request, found.candidates, of_notes)
        literal = request.min_score is None
        notes = [note for note in notes if scale.score(note.total) >= least or (literal and note.holds_all_words)]
        if notes:
            hits = sorted([*hits, *note_hits(notes, scale)], key=lambda hit: -hit.score)
        hits = _wanted(hits, request)
        return (without_quotes(hits) if notes else hits)[: request.limit]

    async def candidates(self, scope: Scope, request: SearchRequest, *, read: int | None = None) -> Candidates:
        """Return the messages that may be the answer, with their texts: what weights are fitted to.

        `read` limits them to those with the highest sums of features that need no text, as a search does. None: all.
        """
        found = await self._finder.find(scope, request)
        sums = totals(weighted_features(found.candidates, kind_of(found.candidates), textual=False))
        chosen = sorted(order(found.candidates, sums)[:read])
        candidates = (await self._finder.read(scope, request, found.candidates, chosen)).candidates
        everyone = range(len(candidates.rows))
        return replace(candidates, ranker=await self._ranker.scores(scope, request, candidates, everyone, found.asked))

    async def _messages(
        self, scope: Scope, request: SearchRequest, found: FoundCandidates, kind: Kind, notes: NoteEvidence
    ) -> tuple[list[Hit], ScoreScale, float]:
        candidates = found.candidates
        parts = (
            weighted_features(candidates, kind, textual=False)
            if request.arms == "all"
            else {"dense": candidates.dense[candidates.rows]}
        )
        # Only texts that can still be among the hits are read.
        many = request.limit + len(request.without)
        ranked_too = request.arms == "all" and found.vector is not None and self._ranker.active
        read = max(DEPTH if ranked_too else _READ, many + _MORE)
        ranked = order(candidates, totals(parts))
        if request.beside and "session" not in request.kinds:
            there = [seq in request.beside for seq in candidates.columns.seq[candidates.rows].tolist()]
            ranked = [place for place in ranked if not there[place]]
        best, rest = ranked[:read], ranked[read:]
        if request.min_score is None:
            held = candidates.holding
            best += [place for place in rest if held[place]][: max(many - int(held[best].sum()), 0)]
        # The messages around those that are likely to be hits are read together with the candidates: a second read
        # takes as long as the first one.
        expected = (request.limit if request.around_best is None else request.around_best) + _MAY_MOVE_UP
        around_best = _seqs_around(request, candidates, best[:expected])
        also = chain.from_iterable(around_best.values())
        candidates, places, messages = await self._finder.read(scope, request, candidates, sorted(best), also)
        parts = {name: values[places] for name, values in parts.items()}
        if ranked_too:
            first = set(best[:MOST])
            scored = [place for place, old in enumerate(places.tolist()) if old in first]
            candidates = candidates.ranked(await self._ranker.scores(scope, request, candidates, scored, found.asked))
        if request.arms == "all":
            parts |= weighted_features(candidates, kind, textual=True)
            parts |= same_words_first(candidates, totals(parts))
        sums = totals(parts)
        ranked = order(candidates, sums)
        if request.arms == "all" and self._reranker is not None:
            parts["rerank"] = await rerank(self._reranker, request.query, candidates, messages, ranked, sums)
            sums = totals(parts)
            ranked = order(candidates, sums)
        scale = SIMILARITY_SCALE
        if request.arms == "all":
            answers = sums[~candidates.repeating]
            scale = score_scale(candidates, float(answers.max()) if len(answers) else -math.inf, notes)
        if request.similarity is not None:
            near = candidates.background.similarities(candidates.dense[candidates.rows])
            ranked = [place for place in ranked if (near[place] or 0.0) >= request.similarity]
        least = _least_score(request, candidates, notes)
        if least:
            scores, literal = scale.scores(sums), request.min_score is None
            ranked = [each for each in ranked if scores[each] >= least or (literal and candidates.holding[each])]
        hits: list[Hit] = []
        explained = parts if request.explained else None
        if "message" in request.kinds:
            groups = without_repetitions(ranked, candidates.texts, many)
            around = await self._around(scope, request, candidates, groups, messages)
            hits += message_hits(candidates, groups, sums, messages, around, scale, explained)
        if "session" in request.kinds:
            groups = without_repeated_sessions(ranked, candidates)[:many]
            around = await self._around(scope, request, candidates, groups, messages)
            hits += [
                hit if hit.message is None else replace(hit, kind="session", id=hit.message.session)
                for hit in message_hits(candidates, groups, sums, messages, around, scale, parts)
            ]
        return hits, scale, least

    async def _around(
        self,
        scope: Scope,
        request: SearchRequest,
        candidates: Candidates,
        groups: Sequence[Sequence[int]],
        messages: Mapping[int, Message],
    ) -> dict[int, list[Message]]:
        """Return the messages around the first of each group, if the request asks for them.

        `messages` are those that were read already, by their sequence numbers. Mostly they are all that is needed.
        """
        if not request.around:
            return {}
        beside = _seqs_around(request, candidates, [group[0] for group in groups[: request.around_best]])
        found = messages
        if wanted := sorted({seq for seqs in beside.values() for seq in seqs if seq not in messages}):
            read = await self._store.read(MessagesByNumber(scope, wanted, within=request.within))
            found = {**messages, **{message.seq: message for message in read}}
        return {place: [found[seq] for seq in seqs if seq in found] for place, seqs in beside.items()}

    async def _notes(
        self, scope: Scope, request: SearchRequest, found: FoundCandidates, kind: Kind
    ) -> list[ScoredNote]:
        name = "" if self._embedder is None else self._embedder.name
        notes = await self._store.read(SearchNotes(scope, request.query, name, found.vector, limit=2 * request.limit))
        wanted = [note for note in notes if note.key.kind in request.kinds and note.text != NOTHING_SAID]
        sessions = len(found.candidates.columns.sessions)
        return score_notes(wanted, found.candidates.background, weights(kind), sessions)


def _seqs_around(request: SearchRequest, candidates: Candidates, places: Sequence[int]) -> dict[int, list[int]]:
    """Return the sequence numbers of the messages around each of these candidates, if the request asks for them."""
    if not request.around:
        return {}
    columns, rows = candidates.columns, candidates.rows[places].tolist()
    return {place: seqs_around(columns, row, request.around) for place, row in zip(places, rows, strict=True)}


def _least_score(request: SearchRequest, candidates: Candidates, notes: NoteEvidence) -> float:
    """Return the minimum score of a hit. Messages that only ask the same question do not count as having its words."""
    if request.min_score is not None:
        return request.min_score
    known = notes.coverage > 0 or any(len(posting.rows) for posting in candidates.postings)
    held = notes.coverage > ALMOST_ALL
    if candidates.texts and not held:
        held = bool((candidates.holding & ~candidates.repeating & (asked_in_return(candidates) == 0)).any())
    return least_score(request.query, known=known, held=held)


def _wanted(hits: Sequence[Hit], request: SearchRequest) -> list[Hit]:
    least = request.similarity
    return [
        hit
        for hit in hits
        if not (hit.kind == "message" and hit.id in request.without)
        and not (hit.kind == "message" and hit.message is not None and hit.message.seq in request.beside)
        and (least is None or (hit.similarity is not None and hit.similarity >= least))
    ]
