"""Candidates of a search: the question, its vectors, and the messages and notes that may answer it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

from cachetools import LRUCache

from aforesaid.background import begin
from aforesaid.domain.checks import HitKind, Within, microseconds, query_text
from aforesaid.domain.hit import EVERY_MESSAGE, MessageFilter
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.errors import ModelError, ModelUnavailable
from aforesaid.extras import np, re
from aforesaid.models.asked_role import load_role_model
from aforesaid.models.embed import CachingEmbedder, Embedder, Vectors
from aforesaid.models.embed.caching import MOST_CHARACTERS
from aforesaid.models.resilience import Breaker, BreakerOpen
from aforesaid.models.salience import ENCODER
from aforesaid.recall.queue import SAME, Background
from aforesaid.settings import Resilience
from aforesaid.store import Store
from aforesaid.store.columns import sorted_unique
from aforesaid.store.messages import MessagesByNumber
from aforesaid.store.ranking import MOST_GAIN, Posting, TextMatches, have
from aforesaid.store.searches import MatchText, SearchVector
from aforesaid.telemetry import OWN, SEARCH_VECTOR, Metrics, kind_of
from aforesaid.text.times.find import Period, asks_for_a_time, periods
from aforesaid.text.words import fold, word_key, words_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aforesaid.store.columns import Columns, Rows

    Numbers = NDArray[np.float64]


_WHEN: Final = re.compile(
    r"\b(when|what (date|day|month|year|time)|how long ago|since when|wann|cuando|quand|quando|wanneer|когда)\b"
    r"|什么时候|何时|いつ|متى"
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its words and the periods that it names."""

    text: str
    asked: datetime
    words: frozenset[str]
    periods: tuple[Period, ...]
    asks_when: bool
    is_time: bool = False
    """Whether it names a time and nothing else: then it asks for what was said at that time."""

    @classmethod
    def of(cls, text: str, asked: datetime | None) -> Question:
        """Analyse a question. `asked`: when it is asked; None: now."""
        at, brief = asked or datetime.now(UTC), shortened(text)
        named = tuple(periods(brief, at))
        return cls(
            text=text,
            asked=at,
            words=frozenset(words_of(text)),
            periods=named,
            asks_when=_WHEN.search(fold(brief)) is not None,
            is_time=bool(named) and asks_for_a_time(brief, at),
        )


def shortened(text: str) -> str:
    """Return the part of a long question that is embedded and read for dates: as many characters as of a message."""
    return query_text(text, MOST_CHARACTERS)


def without(text: str, names: frozenset[str]) -> str:
    """Return a question without the names of speakers, since speakers rarely say their own names."""
    kept = [word for word in text.split() if not names.intersection(words_of(word.removesuffix("'s")))]
    return " ".join(kept) or text


_LONGEST_TIME: Final = timedelta(days=31)
"""The longest time for which all that was said then answers a question."""
_PUNCTUATION: Final = 10
"""Characters by which a message with the words of the question may be longer than it. Most need no closer look."""


@dataclass(frozen=True)
class Candidates:
    """Candidates in the order of the log, with what words and meaning say about them and their neighbours.

    `keyword` and `dense` have one number for each message of the scope and a zero at their end, which is where `before`
    and `after` point when there is no neighbour.
    """

    question: Question
    columns: Columns
    rows: Rows
    before: Rows
    """The message before each of them in the same session."""
    after: Rows
    texts: Sequence[str]
    """The candidates' texts. Empty while only features that need no text are computed."""
    postings: tuple[Posting, ...]
    worth: float
    """The summed rarity of the question's words; never zero."""
    keyword: Numbers
    """The BM25 score of each message as a share of a perfect match, 0 to 1."""
    dense: Numbers
    """How many standard deviations a message is nearer in meaning than unrelated ones; zero where that is not known."""
    background: Background
    held: Rows
    """The rows of all messages that have every word of the question, stop words aside."""
    asks_assistant: float = 0.0
    """Log-odds that the question is about what the assistant said, above those of an average question."""
    ranker: Numbers | None = None
    """How much better than most candidates each one answers the question, as the ranker sees it. None: it does
    not take part."""

    def narrowed(self, chosen: Rows, texts: Sequence[str]) -> Candidates:
        """Return some of the candidates, by their place among the rows, with their texts."""
        return replace(self, rows=self.rows[chosen], before=self.before[chosen], after=self.after[chosen], texts=texts)

    def ranked(self, ranker: Numbers | None) -> Candidates:
        """Return the same candidates with the ranker's scores, and with what was computed about them already."""
        made = replace(self, ranker=ranker)
        vars(made).update({name: value for name, value in vars(self).items() if name not in vars(made)})
        return made

    @cached_property
    def repeating(self) -> NDArray[np.bool_]:
        """Which of the candidates repeat the question instead of answering it, in meaning or word for word."""
        repeating: NDArray[np.bool_] = self.dense[self.rows] >= self.background.standard(SAME)
        return repeating | self.same_words

    @cached_property
    def same_words(self) -> NDArray[np.bool_]:
        """Which of the candidates are the text of the question, punctuation and case aside. None without texts."""
        if not self.texts:
            return np.zeros(len(self.rows), dtype=np.bool_)
        asked, most = word_key(self.question.text), len(self.question.text) + _PUNCTUATION
        least = len(asked)  # the key of an ASCII text is not longer than the text
        return np.array(
            [
                len(text) <= most and (len(text) >= least or not text.isascii()) and word_key(text) == asked
                for text in self.texts
            ],
            dtype=np.bool_,
        )

    @cached_property
    def then(self) -> NDArray[np.bool_]:
        """Which of the candidates were said at the time that the question asks for, where it names nothing else."""
        return np.array(have(said_then(self.question, self.columns), self.rows), dtype=np.bool_)

    @cached_property
    def holding(self) -> NDArray[np.bool_]:
        """Which of the candidates have all that the question names: its words, stop words aside, its text, its time."""
        return np.array(have(self.held, self.rows), dtype=np.bool_) | self.same_words | self.then

    def coverage(self) -> Numbers:
        """Return the share of the question's words, weighted by rarity, that each message has, 0 to 1."""
        covered = np.zeros(len(self.columns) + 1)
        for posting in self.postings:
            covered[posting.rows] += posting.rarity
        return covered / self.worth


def said_then(question: Question, columns: Columns) -> Rows:
    """Return the rows of what was said at the time that a question asks for, where it names nothing else."""
    if not question.is_time:
        return np.empty(0, dtype=np.intp)
    inside = np.zeros(len(columns), dtype=np.bool_)
    for named in question.periods:
        if named.end - named.start <= _LONGEST_TIME:
            start, end = microseconds(named.start, "the period"), microseconds(named.end, "the period")
            inside |= (columns.at >= start) & (columns.at < end)
    rows: Rows = np.flatnonzero(inside)
    return rows


def candidates_of(
    question: Question, matches: TextMatches, rows: Rows, keyword: Numbers, dense: Numbers, background: Background
) -> Candidates:
    columns = matches.columns
    before, after = neighbours(columns, rows)
    worth = sum(posting.rarity for posting in matches.postings) or 1.0
    return Candidates(
        question=question,
        columns=columns,
        rows=rows,
        before=before,
        after=after,
        texts=(),
        postings=matches.postings,
        worth=worth,
        keyword=keyword / (worth * MOST_GAIN),
        dense=dense,
        background=background,
        held=matches.holding(),
    )


def neighbours(columns: Columns, rows: Rows) -> tuple[Rows, Rows]:
    """Return the rows before and after these in the same session; beyond the last row where there is none."""
    nobody, session = len(columns), columns.session
    earlier, later = np.maximum(rows - 1, 0), np.minimum(rows + 1, max(nobody - 1, 0))
    before = np.where((rows > 0) & (session[earlier] == session[rows]), earlier, nobody)
    after = np.where((rows + 1 < nobody) & (session[later] == session[rows]), later, nobody)
    return before, after


_log: Final = logging.getLogger("aforesaid.recall")

LEAST_WAIT_SECONDS: Final = 1.0
"""A search that is cancelled sooner says nothing about the embedder."""
_BREAKER: Final = Resilience(failures=2, probe_seconds=30.0)
"""Two searches in a row that were given up open the breaker: one can be a coincidence, such as a model that is still
being loaded."""


class QuestionVectors:
    """Embeds the questions of searches. A question without a vector is searched for by its words alone.

    There is no time limit: a caller that must not wait cancels its search. After two such cancellations in a row a
    circuit breaker opens, and questions get no vector at once. Every 30 seconds one question is embedded in the
    background, and the breaker closes if that takes less time than the callers had waited.
    """

    def __init__(self, embedder: Embedder | None, metrics: Metrics | None = None) -> None:
        self._embedder = embedder
        self._metrics = metrics
        self._breaker = Breaker("the embedder", _BREAKER)
        self._given_up_after = float("inf")
        """Seconds that the last caller that gave up had waited."""
        self._probe: asyncio.Future[None] | None = None

    @property
    def name(self) -> str | None:
        return None if self._embedder is None else self._embedder.name

    def expect(self, text: str) -> None:
        """Begin to embed a question that will be asked for in a moment."""
        is_open = self._breaker.state().state != "closed"
        if text.strip() and isinstance(self._embedder, CachingEmbedder) and not is_open:
            self._embedder.expect(text)

    async def embed(self, text: str) -> Vectors | None:
        """Return the vector of a question, or None if there is no embedder or it cannot answer."""
        if self._embedder is None or not text.strip():
            return None
        try:
            probe = self._breaker.admit()
        except BreakerOpen as error:
            self._note_failure(error)
            return None
        if not probe:
            return await self._embed(self._embedder, text)
        self._probe = begin(self._try_again(self._embedder, text))
        self._note_failure(ModelUnavailable("the embedder is tried again in the background"))
        return None

    async def _embed(self, embedder: Embedder, text: str) -> Vectors | None:
        began = perf_counter()
        try:
            vectors = await embedder.embed([text])
        except asyncio.CancelledError:
            if (waited := perf_counter() - began) >= LEAST_WAIT_SECONDS:
                self._given_up_after = waited
                self._breaker.failed(ModelUnavailable(f"a search was given up after {waited:.1f} s"))
                self._count(waited, "timeout")
            raise
        except ModelError as error:
            self._note_failure(error, perf_counter() - began)
            return None
        seconds = perf_counter() - began
        if seconds < self._given_up_after:
            self._breaker.answered()
        self._count(seconds)
        first: Vectors = vectors[0]
        return first

    async def _try_again(self, embedder: Embedder, text: str) -> None:
        """Embed a text that nobody waits for, and close the breaker if that is quick enough."""
        try:
            async with asyncio.timeout(self._given_up_after):
                await embedder.embed([text])
        except (TimeoutError, ModelError) as error:
            _log.warning("the embedder does not answer yet: %s %s", type(error).__name__, error)
        else:
            self._breaker.answered()
        finally:
            self._breaker.done(probe=True)

    def _note_failure(self, error: ModelError, seconds: float = 0.0) -> None:
        _log.warning("searching by words alone: %s", error)
        self._count(seconds, kind_of(error))

    def _count(self, seconds: float, failure: str | None = None) -> None:
        if self._metrics is not None:
            self._metrics.called(SEARCH_VECTOR, OWN, seconds, failure=failure)


Arms: TypeAlias = Literal["all", "keyword", "dense"]
"""Which ranking to use: words and vectors with all features, or words or vectors alone, for comparison."""

ARMS: Final[tuple[Arms, ...]] = get_args(Arms)
KINDS: Final[tuple[HitKind, ...]] = get_args(HitKind)
DEFAULT_KINDS: Final[tuple[HitKind, ...]] = ("message", "summary", "memory")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A validated search."""

    query: str
    limit: int = 10
    within: Within = "user"
    at: datetime | None = None
    """When it is asked; None: now."""
    arms: Arms = "all"
    kinds: tuple[HitKind, ...] = DEFAULT_KINDS
    explained: bool = True
    """Whether hits contain the matched words and the value of each feature."""
    around: int = 0
    """Number of messages around each hit to return with it."""
    around_best: int | None = None
    """Maximum hits that get messages around them; None: all."""
    similarity: float | None = None
    """Minimum similarity of a hit, 0 to 1, calibrated for the encoder."""
    min_score: float | None = 0.0
    """Minimum score of a hit. None: what fits the query (`recall.score.least_score`), and whatever holds all of its
    words is a hit with any score."""
    without: frozenset[str] = frozenset()
    """The ids of messages to leave out."""
    where: MessageFilter = EVERY_MESSAGE
    """Which messages are candidates. With a condition, summaries and memories are not searched: they fulfil none."""
    beside: frozenset[int] = frozenset()
    """The sequence numbers of messages to leave out."""

    @property
    def searches_notes(self) -> bool:
        """Whether summaries or memories are searched too."""
        wanted = "summary" in self.kinds or "memory" in self.kinds
        return wanted and self.arms == "all" and self.where == EVERY_MESSAGE

    @property
    def unwanted(self) -> int:
        """Maximum number of hits that are left out."""
        return len(self.without) + len(self.beside)


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
        self.matches.cancel()
        if self.vector is not None:
            self.vector.cancel()


class ReadCandidates(NamedTuple):
    """Candidates with their texts, their places among the candidates before, and the messages themselves."""

    candidates: Candidates
    places: Rows
    messages: dict[int, Message]


class CandidateFinder:
    """Finds candidates in one store."""

    def __init__(self, store: Store, embedder: Embedder | None, metrics: Metrics | None = None) -> None:
        self._store = store
        self._questions = QuestionVectors(embedder, metrics)
        self._speakers: _Speakers = LRUCache(_PLACES)

    def forget_all(self) -> None:
        # A new one: a search that goes on writes into the one that was there when it began.
        self._speakers = LRUCache(_PLACES)

    def begin(
        self, scope: Scope, query: str, within: Within, at: datetime | None, where: MessageFilter = EVERY_MESSAGE
    ) -> Begun:
        """Begin to look up the words and to embed the question, side by side where the speakers' names are cached.

        Embedding takes longer, so it starts first.
        """
        place = (scope.space, scope.user) if within == "user" else (scope.space, "", scope.thread)
        guess = _without_names(shortened(query), self._speakers.get(place))
        if guess is not None:
            self._questions.expect(guess)
        vector = None if guess is None else begin(self._questions.embed(guess))
        matches = begin(
            self._store.read(MatchText(scope, query, within=within, embedder=self._questions.name, where=where))
        )
        return Begun(Question.of(query, at), place, guess, vector, matches, self._speakers)

    async def find(self, scope: Scope, request: SearchRequest, begun: Begun | None = None) -> FoundCandidates:
        """Return the messages found by words or by meaning, without their texts.

        `begun` is the same search, where it has begun already.
        """
        begun = begun or self.begin(scope, request.query, request.within, request.at, request.where)
        many = max(_CANDIDATES, request.limit)
        try:
            matches = await begun.matches
            begun.speakers[begun.place] = matches.columns.speakers
            brief = shortened(begun.question.text)
            asked = _without_names(brief, matches.columns.speakers) or brief
            guessed = begun.vector is not None and asked == begun.guess
            vector = await (begun.vector if begun.vector is not None and guessed else self._questions.embed(asked))
            begun.by_words = vector is None and self._questions.name is not None and bool(asked.strip())
        finally:
            begun.cancel()
        scores = matches.scores()
        # A message with every word is a candidate even where its length makes many others better.
        then = said_then(begun.question, matches.columns)[-many:]
        rows = sorted_unique(np.concatenate([matches.best(scores, many), matches.holding()[-many:], then]))
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
        places = np.array(chosen, dtype=np.intp)
        seqs = candidates.columns.seq[candidates.rows[places]].tolist()
        wanted = sorted({*seqs, *also})
        read = await self._store.read(MessagesByNumber(scope, wanted, within=request.within))
        messages = {message.seq: message for message in read}
        # What was removed since the search began is no candidate any more.
        there = [seq in messages for seq in seqs]
        texts = [messages[seq].text for seq in seqs if seq in messages]
        return ReadCandidates(candidates.narrowed(places[there], texts), places[there], messages)

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
        columns = matches.columns
        if matches.vectors is not None:
            nearest = matches.vectors.similar(vector)
        else:
            beside = sorted_unique(np.concatenate([rows, *neighbours(columns, rows)]))
            also = columns.seq[beside[beside < len(columns)]].tolist()
            name = self._questions.name or ""
            nearest = await self._store.read(
                SearchVector(scope, name, vector, within=request.within, limit=many, also=also, where=request.where)
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
