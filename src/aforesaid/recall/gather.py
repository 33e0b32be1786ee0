"""Finding the messages that may be the answer, by words and by meaning."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from cachetools import LRUCache

from aforesaid.background import begin
from aforesaid.domain.checks import Within
from aforesaid.domain.hit import EVERY_MESSAGE, MessageFilter
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.models.asked_role import load_role_model
from aforesaid.models.embed import Embedder, Vectors
from aforesaid.models.salience import ENCODER
from aforesaid.recall.background import Background
from aforesaid.recall.candidates import Candidates, candidates_of, neighbours
from aforesaid.recall.question import Question, shortened, without
from aforesaid.recall.question_vectors import QuestionVectors
from aforesaid.recall.request import SearchRequest
from aforesaid.store import Store, questions
from aforesaid.store.columns import sorted_unique
from aforesaid.store.ranking import TextMatches
from aforesaid.telemetry import Metrics
from aforesaid.text.words import words_of

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers
    from aforesaid.store.columns import Rows

_CANDIDATES: Final = 200
"""How many messages words and meaning each bring in."""
_PLACES: Final = 1_000
"""How many users' and threads' speaker names are cached."""
_Speakers: TypeAlias = LRUCache[tuple[str, ...], Sequence[str]]


class FoundCandidates(NamedTuple):
    """Candidates, the vector of the question, and whether the user has summaries or memories."""

    candidates: Candidates
    vector: Vectors | None
    notes: bool
    asked: str
    """The question as it was embedded: shortened, and without the names of those who speak."""


@dataclass(slots=True)
class Begun:
    """A search that has begun. A caller that does not finish it must cancel it."""

    question: Question
    place: tuple[str, ...]
    guess: str | None
    """The question without the speakers' names, where these are known from before."""
    vector: asyncio.Future[Vectors | None] | None
    """That of the guess."""
    matches: asyncio.Future[TextMatches]
    speakers: _Speakers
    """Where the speakers' names are cached."""
    by_words: bool = False
    """Whether the embedder gave no vector, so that the search went by words alone."""

    def cancel(self) -> None:
        """Cancel what is not finished."""
        self.matches.cancel()
        if self.vector is not None:
            self.vector.cancel()


class ReadCandidates(NamedTuple):
    """Candidates with their texts, their places among the candidates before, and the messages themselves."""

    candidates: Candidates
    places: Rows
    messages: dict[int, Message]


class Gatherer:
    """Finds candidates in one store."""

    def __init__(self, store: Store, embedder: Embedder | None, metrics: Metrics | None = None) -> None:
        self._store = store
        self._questions = QuestionVectors(embedder, metrics)
        self._speakers: _Speakers = LRUCache(_PLACES)

    def forget_all(self) -> None:
        """Empty the cache of speaker names."""
        # A new one: a search that goes on writes into the one that was there when it began.
        self._speakers = LRUCache(_PLACES)

    def begin(
        self, scope: Scope, query: str, within: Within, at: datetime | None, where: MessageFilter = EVERY_MESSAGE
    ) -> Begun:
        """Begin to look up the words and to embed the question, side by side where the speakers' names are cached.

        Embedding takes longer, so it starts first.
        """
        place = _place(scope, within)
        guess = _without_names(shortened(query), self._speakers.get(place))
        if guess is not None:
            self._questions.expect(guess)
        vector = None if guess is None else begin(self._questions.embed(guess))
        matches = begin(
            self._store.read(
                questions.MatchText(scope, query, within=within, embedder=self._questions.name, where=where)
            )
        )
        return Begun(Question.of(query, at), place, guess, vector, matches, self._speakers)

    async def gather(self, scope: Scope, request: SearchRequest, begun: Begun | None = None) -> FoundCandidates:
        """Return the messages found by words or by meaning, without their texts.

        `begun` is the same search, where it has begun already.
        """
        import numpy as np  # noqa: PLC0415 - loaded with the first search

        begun = begun or self.begin(scope, request.query, request.within, request.at, request.where)
        many = max(_CANDIDATES, request.limit)
        try:
            matches, vector, asked = await self._matched_and_embedded(begun)
        finally:
            begun.cancel()
        scores = matches.scores()
        # A message with every word is a candidate even where its length makes many others better.
        rows = sorted_unique(np.concatenate([matches.best(scores, many), matches.holding()[-many:]]))
        if request.arms == "dense":
            rows = rows[:0]
        dense, background = np.zeros(len(scores) + 1), Background()
        if vector is not None:
            rows, background = await self._compare(scope, request, vector, many, matches, rows, dense)
        candidates = candidates_of(begun.question, matches, rows, np.append(scores, 0.0), dense, background)
        if vector is not None and self._questions.name == ENCODER and matches.columns.assistant[rows].any():
            candidates = replace(candidates, asks_assistant=load_role_model().log_odds(asked, vector))
        return FoundCandidates(candidates, vector, matches.notes, asked)

    async def read(
        self,
        scope: Scope,
        request: SearchRequest,
        candidates: Candidates,
        chosen: Sequence[int],
        also: Iterable[int] = (),
    ) -> ReadCandidates:
        """Return the chosen candidates, by their places in order, with their texts.

        `also` are sequence numbers of further messages to read with them.
        """
        import numpy as np  # noqa: PLC0415

        places = np.array(chosen, dtype=np.intp)
        seqs = candidates.columns.seq[candidates.rows[places]].tolist()
        wanted = sorted({*seqs, *also})
        read = await self._store.read(questions.MessagesByNumber(scope, wanted, within=request.within))
        messages = {message.seq: message for message in read}
        # What was removed since the search began is no candidate any more.
        there = [seq in messages for seq in seqs]
        texts = [messages[seq].text for seq in seqs if seq in messages]
        return ReadCandidates(candidates.narrowed(places[there], texts), places[there], messages)

    async def _matched_and_embedded(self, begun: Begun) -> tuple[TextMatches, Vectors | None, str]:
        matches = await begun.matches
        begun.speakers[begun.place] = matches.columns.speakers
        brief = shortened(begun.question.text)
        text = _without_names(brief, matches.columns.speakers) or brief
        embedding = begun.vector if begun.vector is not None and text == begun.guess else self._questions.embed(text)
        vector = await embedding
        begun.by_words = vector is None and self._questions.name is not None and bool(text.strip())
        return matches, vector, text

    async def _compare(
        self,
        scope: Scope,
        request: SearchRequest,
        vector: Vectors,
        many: int,
        matches: TextMatches,
        rows: Rows,
        dense: Numbers,
    ) -> tuple[Rows, Background]:
        """Return all candidates; write the nearness of the compared messages into `dense`."""
        import numpy as np  # noqa: PLC0415

        columns = matches.columns
        if matches.vectors is not None:
            nearest = matches.vectors.similar(vector)
        else:
            beside = sorted_unique(np.concatenate([rows, *neighbours(columns, rows)]))
            also = columns.seq[beside[beside < len(columns)]].tolist()
            name = self._questions.name or ""
            nearest = await self._store.read(
                questions.SearchVector(
                    scope, name, vector, within=request.within, limit=many, also=also, where=request.where
                )
            )
        if nearest is None:
            return rows, Background()
        compared = len(columns) if matches.vectors is None else len(nearest.seqs)
        usual = Background.usual(nearest.mean, nearest.deviation, nearest.scores, compared)
        background = Background.of(usual.mean, usual.deviation, len(columns), self._questions.name or "")
        # Messages that came after the columns were read have no row; the next search finds them.
        found, known = columns.locate(nearest.seqs)
        dense[found] = (nearest.scores[known] - background.mean) / background.deviation
        return sorted_unique(np.concatenate([rows, columns.locate(nearest.seqs[:many])[0]])), background


def _without_names(query: str, speakers: Sequence[str] | None) -> str | None:
    if speakers is None:
        return None
    return without(query, frozenset(word for speaker in speakers for word in words_of(speaker)))


def _place(scope: Scope, within: Within) -> tuple[str, ...]:
    return (scope.space, scope.user) if within == "user" else (scope.space, "", scope.thread)
