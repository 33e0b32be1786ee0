"""Searches and vectors: questions and changes that each database answers and carries out in its own way."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from aforesaid.domain.checks import Within
from aforesaid.domain.hit import EVERY_MESSAGE, Hit, MessageFilter, Similar, Unembedded, VectorRow
from aforesaid.domain.memory import MemoryRecord, NoteMatch, NoteVector, UnembeddedNote
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.extras import np
from aforesaid.store.columns import Columns
from aforesaid.store.memories import RelevantMemories
from aforesaid.store.messages import ITS_SESSION, MessagesByNumber, add_filter, inside
from aforesaid.store.operations import Change, OfScope, OfScopeShort, OfSpace, Question, Transaction
from aforesaid.store.ranking import TextMatches, hashed
from aforesaid.store.sql import USER, Answer, Conditions, Row, done, first, listed, rows
from aforesaid.text.languages import query_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SearchText(OfScope[list[Hit]]):
    """The messages that best match any of the words; newer first among equals. `words` may be any text."""

    words: str
    within: Within = "user"
    limit: int = 10
    where: MessageFilter = EVERY_MESSAGE

    @property
    def matching(self) -> MatchText:
        return MatchText(self.scope, self.words, self.within, None, self.where)

    def hits(self, matches: TextMatches) -> Answer[list[Hit]]:
        """Return the best of the matches."""
        scores = matches.scores()
        best = {int(matches.columns.seq[row]): row for row in matches.best(scores, self.limit)}
        found = yield from MessagesByNumber(self.scope, list(best), self.within).answer()
        messages = {each.seq: each for each in found}
        return [
            Hit(
                kind="message",
                id=(it := messages[seq]).id,
                text=it.text,
                score=float(scores[row]),
                at=it.at,
                sources=(it.id,),
                terms=matches.words(row),
                message=it,
            )
            for seq, row in best.items()
        ]


@dataclass(frozen=True, slots=True)
class MatchText(OfScope[TextMatches]):
    """What `SearchText` ranks: the scope's messages as columns, and which of them have which words.

    The vectors that `embedder` gave them may come with it. The columns hold all messages of the scope, so that the
    neighbours of each are known; words and vectors are only those of messages that fulfil `where`.
    """

    words: str
    within: Within = "user"
    embedder: str | None = None
    where: MessageFilter = EVERY_MESSAGE


_PEOPLE_WITH: Final = """
[[SELECT log.owner, count(DISTINCT w.term), count(DISTINCT log.seq)
  FROM log JOIN unnest(ARRAY[{hashes}]::bytea[]) AS w (term) ON position(w.term IN log.terms) > 0
 WHERE log.space = $1 AND cardinality($2::text[]) > 0 AND NOT log.replaced GROUP BY log.owner
~ SELECT p.name, count(DISTINCT w.value), count(DISTINCT log.seq)
  FROM person p CROSS JOIN json_each($2) w CROSS JOIN log_posting v ON v.term = 'u' || p.id || '.' || w.value
  CROSS JOIN log ON log.seq = v.doc
 WHERE p.space = $1 AND p.owner = 1 AND log.replaced = 0 GROUP BY p.id]]
 ORDER BY 2 DESC, 3 DESC, 1
"""
"""The terms are those of the keyword index: in SQLite with the number of their owner, in PostgreSQL hashed."""


_MOST_TERMS: Final = 8
"""Maximum words that are looked up for every person of a space: each costs 0.03 ms of CPU per person."""


class PersonWithWords(NamedTuple):
    user: str
    terms: int
    """How many of the words the person's messages have."""
    messages: int
    """How many of the messages have one of them."""


@dataclass(frozen=True, slots=True)
class PeopleWithWords(OfSpace[list[PersonWithWords]]):
    """The people of a space whose messages have any of the words, those who have most of them first.

    In SQLite this looks up each word once per person; in PostgreSQL it reads the words of all messages of the space.
    """

    needs_store = True
    words: str

    def answer(self) -> Answer[list[PersonWithWords]]:
        terms = list(dict.fromkeys(term for word in query_words(self.words) for term in word.terms))[:_MOST_TERMS]
        if not terms:
            return []
        hashes = ", ".join(f"'\\x{hashed([term]).hex()}'" for term in terms)
        found = yield from rows(_PEOPLE_WITH.replace("{hashes}", hashes), self.space, terms)
        return [PersonWithWords(*row) for row in found]


@dataclass(frozen=True, slots=True, eq=False)
class SearchVector(OfScope[Similar | None]):
    """The messages most similar to a vector, and those in `also`; None when `embedder` has seen nothing."""

    embedder: str
    vector: Vector
    within: Within = "user"
    limit: int = 10
    also: Sequence[int] = ()
    where: MessageFilter = EVERY_MESSAGE


@dataclass(frozen=True, slots=True, eq=False)
class SearchNotes(OfScope[list[NoteMatch]]):
    """The user's active summaries and memories that fit best, by words and by meaning."""

    words: str
    embedder: str
    vector: Vector | None
    limit: int = 10


@dataclass(frozen=True, slots=True)
class SearchMemories(OfScope[list[tuple[MemoryRecord, float]]]):
    """The memories that a question is about, each with its relevance from 0 to 1, the best and most important first.

    A memory is found by the words that it shares with the question, weighted by rarity, or by a message that it rests
    on. Which ones count, `RelevantMemories` says. No more than the newest of those that have a word are looked at.
    """

    words: str
    messages: Sequence[tuple[int, float]]
    """Sequence numbers of messages that were found for the question, each with its relevance."""
    limit: int
    dated: bool = False
    periods: Sequence[tuple[datetime, datetime]] = ()

    def relevant(self, worded: Sequence[tuple[int, float]]) -> Answer[list[tuple[MemoryRecord, float]]]:
        found = RelevantMemories(self.scope, worded, self.messages, self.limit, self.dated, self.periods)
        return found.answer()


@dataclass(frozen=True, slots=True)
class MessageVectors(OfScope[dict[int, bytes]]):
    """The vectors of those of the messages that are the user's and that an embedder has seen."""

    needs_store = True
    embedder: str
    seqs: Sequence[int]

    def vectors(self) -> Answer[list[Row]]:
        return _vectors(self.scope, "user", self.embedder, self.seqs)


@dataclass(frozen=True, slots=True)
class TokenVectors(OfScopeShort[dict[int, bytes]]):
    """The token vectors of those of the messages that the scope holds and that have some, by sequence number."""

    encoder: str
    seqs: Sequence[int]
    within: Within = "user"

    def vectors(self) -> Answer[list[Row]]:
        return _vectors(self.scope, self.within, self.encoder, self.seqs)


def _vectors(scope: Scope, within: Within, embedder: str, seqs: Sequence[int]) -> Answer[list[Row]]:
    """Return the numbers of those of the messages that the scope holds and that have a vector, and the vectors."""
    if within == "user":
        limits, join = Conditions(f"[[v.space = $1 AND v.owner ~ +v.owner]] = {USER}", *scope[:2]), ""
    else:
        limits = yield from inside(scope, within)
        join = "[[JOIN log ON log.space = v.space AND ~ CROSS JOIN log ON]] log.seq = v.seq"
    limits.add("v.embedder = [[{0} ~ (SELECT id FROM embedder WHERE name = {0})]]", embedder)
    limits.add(listed("v.seq", "{0}"), list(seqs))
    value = "[[coalesce(v.tokens, halfvec_send(v.value)) ~ v.value]]"
    return (
        yield from rows(f"SELECT v.seq, {value} FROM [[embedding ~ vector]] v {join} WHERE {limits}", *limits.values)
    )


def holds_place(scope: Scope, within: Within) -> bool:
    """Tell whether a scope is all of a person's messages, or all of a shared thread's."""
    return within == "user" or (within == "thread" and not is_direct(scope.thread))


def selected(columns: Columns, question: MatchText | SearchVector, thread: int) -> Answer[NDArray[np.bool_] | None]:
    """Return which messages the scope holds and the filter lets through; None for all that the columns hold.

    `thread` is what the columns call the scope's own thread.
    """
    scope, within, chosen = question.scope, question.within, None
    if within == "session":
        found = yield from first(ITS_SESSION, scope.space, scope.thread, scope.named_session())
        known = found is not None and found[0] in columns.sessions
        chosen = columns.session == (columns.sessions.index(found[0]) if found is not None and known else -1)
    elif not holds_place(scope, within):
        chosen = columns.thread == thread
    if question.where != EVERY_MESSAGE:
        limits = yield from inside(scope, within)
        add_filter(limits, question.where)
        # One value with all numbers in it: handing over rows one by one would take ten times as long.
        numbers = f"SELECT [[array_agg ~ group_concat]](log.seq) FROM log WHERE {limits}"
        ((listing,),) = yield from rows(numbers, *limits.values)
        seqs = np.fromstring(listing, dtype=np.int64, sep=",") if isinstance(listing, str) else listing or []
        fulfilling = np.isin(columns.seq, seqs)
        chosen = fulfilling if chosen is None else chosen & fulfilling
    return chosen


@dataclass(frozen=True, slots=True)
class UnembeddedMessages(Question[list[Unembedded]]):
    """The oldest messages, of all spaces, that an embedder has not seen."""

    needs_store = True
    embedder: str
    limit: int


@dataclass(frozen=True, slots=True)
class UnembeddedNotes(Question[list[UnembeddedNote]]):
    """The oldest summaries and memories, of all spaces, that an embedder has not seen."""

    needs_store = True
    embedder: str
    limit: int


@dataclass(frozen=True, slots=True)
class ChangeToken(Question[str]):
    """A text that is another one once any process has changed something. Cheap: no data is read.

    A store that one process has to itself always returns the same: that process knows what it changes.
    """

    needs_store = True


@dataclass(frozen=True, slots=True)
class AddVectors(Change):
    """Store vectors of messages, and that the embedder has processed the log up to `up_to`. Idempotent.

    A store that numbers each space for itself goes by the last message of each space instead.
    """

    embedder: str
    rows: tuple[VectorRow, ...]
    up_to: int

    @property
    def spaces(self) -> Collection[str]:
        return {row.space for row in self.rows}

    def carry_out(self, within: Transaction) -> Answer[None]:
        within.add_vectors(self.embedder, self.rows, self.up_to)
        return done(None)


@dataclass(frozen=True, slots=True)
class AddNoteVectors(Change):
    """Store vectors of summaries and memories, oldest first. Idempotent."""

    embedder: str
    rows: tuple[NoteVector, ...]

    @property
    def spaces(self) -> Collection[str]:
        return {row.space for row in self.rows}

    def carry_out(self, within: Transaction) -> Answer[None]:
        within.add_note_vectors(self.embedder, self.rows)
        return done(None)
