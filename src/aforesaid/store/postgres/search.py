"""Keyword search, over what is kept in memory of the people and threads that were searched last.

Columns of messages and the terms by which they are found are read once, and from then on only what is new. All of it is
made from the log and can be dropped at any time. It is brought up to date at the start of each search, inside the
search's own snapshot, so that several servers and workers see the same: messages are only ever added at the end, and a
revision tells when stored ones were regrouped.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.background import to_the_end
from aforesaid.domain.checks import Within
from aforesaid.domain.hit import EVERY_MESSAGE, Hit
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.store import questions
from aforesaid.store.columns import ColumnRow, Columns, Roll, columns_of
from aforesaid.store.dialects import for_postgres
from aforesaid.store.hashed import Inverted
from aforesaid.store.postgres.queries import Queries, Row
from aforesaid.store.postgres.rows import answered
from aforesaid.store.ranking import Posting, TextMatches, best_hits, hit, posting, telling
from aforesaid.store.sized_cache import SizedCache
from aforesaid.store.sql.messages import add_filter, inside, pick
from aforesaid.store.sql.tables import SEARCHED
from aforesaid.text.languages import query_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PAGE: Final = 10_000
_IN_A_THREAD: Final = 1_000
"""Number of new messages from which another thread adds them, so that the event loop is not blocked."""

_COUNTS: Final = "SELECT messages, words, revision FROM {table} WHERE space = $1 AND name = $2"
_NEW: Final = f"""
SELECT seq, at, thread, session, coalesce(name, author), role, words, terms FROM log
 WHERE space = $1 AND {{limit}} = $2 AND seq > $3 AND {{searched}} {{shared}} ORDER BY seq LIMIT {_PAGE}
"""
_HAS_NOTES: Final = """
SELECT EXISTS (SELECT 1 FROM summary WHERE space = $1 AND owner = $2)
    OR EXISTS (SELECT 1 FROM memory WHERE space = $1 AND owner = $2)
"""
_SESSION: Final = "SELECT id FROM session WHERE space = $1 AND name = $3 AND md5(thread) = md5($2) AND thread = $2"


class Place(NamedTuple):
    """Whose messages are searched: all of a person's, or all of a shared thread's."""

    shared: bool
    space: str
    name: str

    @property
    def counts(self) -> str:
        """The query for its counts."""
        return _COUNTS.format(table="thread" if self.shared else "person")

    @property
    def new(self) -> str:
        """The query for what is new."""
        limit, shared = ("thread", "AND shared") if self.shared else ("owner", "")
        return _NEW.format(limit=limit, shared=shared, searched=for_postgres(SEARCHED))


def place_of(scope: Scope, within: Within) -> Place:
    """Return the place that holds the whole scope."""
    shared = within != "user" and not is_direct(scope.thread)
    return Place(shared, scope.space, scope.thread if shared else scope.user)


@dataclass(slots=True)
class _Kept:
    """What is kept of a place. Whoever changes it holds the lock."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    roll: Roll = field(default_factory=Roll)
    index: Inverted = field(default_factory=Inverted)
    threads: dict[str, int] = field(default_factory=dict)
    revision: int = -1

    @property
    def size(self) -> int:
        return self.roll.size + self.index.size

    def start_again(self, revision: int) -> None:
        self.roll, self.index, self.threads, self.revision = Roll(), Inverted(), {}, revision

    def extend(self, rows: list[Row]) -> None:
        threads = self.threads
        self.index.extend([row[7] for row in rows])
        self.roll.extend(
            [ColumnRow(row[0], row[1], threads.setdefault(row[2], len(threads)), *row[3:7]) for row in rows]
        )


class Search:
    """Searches by words."""

    def __init__(self) -> None:
        self._kept: SizedCache[Place, _Kept] = SizedCache()

    @property
    def size(self) -> int:
        """Bytes of all columns and terms in memory."""
        return self._kept.size

    async def search(self, queries: Queries, question: questions.SearchText) -> list[Hit]:
        """Return the best matches of any of the words."""
        best = best_hits(
            await self.match(
                queries, questions.MatchText(question.scope, question.words, question.within, None, question.where)
            ),
            question.limit,
        )
        wanted = questions.MessagesByNumber(question.scope, [seq for seq, _, _ in best], question.within)
        messages = {each.seq: each for each in await answered(queries, pick(wanted))}
        return [hit(messages[seq], score, found) for seq, score, found in best]

    async def match(self, queries: Queries, question: questions.MatchText) -> TextMatches:
        """Return which messages have which words."""
        place = place_of(question.scope, question.within)
        kept = self._kept.get(place, _Kept)
        async with kept.lock:
            counts, notes = await self._bring_up_to_date(queries, place, kept, question.scope)
            if counts is None:
                self._kept.drop(place)
                return TextMatches(columns_of(()), (), 1.0)
            documents, total = counts
            columns = kept.roll.columns()
            selected = await _selected(queries, kept, columns, question)
            postings = []
            for word, terms in query_words(question.words):
                rows, found = kept.index.having(terms)
                made = posting(word, rows, found, documents)
                if selected is not None:
                    here = selected[rows]
                    made = Posting(word, made.rarity, rows[here], found[here])
                postings.append(made)
            self._kept.resized(place)
        average = max(total / max(documents, 1), 1.0)
        return TextMatches(columns, telling(postings), average, question.within == "user" and notes)

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


async def _selected(
    queries: Queries, kept: _Kept, columns: Columns, question: questions.MatchText
) -> NDArray[np.bool_] | None:
    """Return which messages the scope holds and the filter lets through, where that is not all of its place."""
    held = await _held(queries, kept, columns, question.scope, question.within)
    if question.where == EVERY_MESSAGE:
        return held
    import numpy as np  # noqa: PLC0415

    limits = await answered(queries, inside(question.scope, question.within))
    add_filter(limits, question.where)
    query = for_postgres(f"SELECT array_agg(log.seq) FROM log WHERE {limits}")
    chosen = np.isin(columns.seq, await queries.value(query, *limits.values) or [])
    return chosen if held is None else held & chosen


async def _held(
    queries: Queries, kept: _Kept, columns: Columns, scope: Scope, within: Within
) -> NDArray[np.bool_] | None:
    """Return which messages the scope holds, where that is not all of its place."""
    if within == "user" or (within == "thread" and not is_direct(scope.thread)):
        return None
    if within == "thread":
        here: NDArray[np.bool_] = columns.thread == kept.threads.get(scope.thread, -1)
        return here
    session = await queries.value(_SESSION, scope.space, scope.thread, scope.named_session())
    chosen: NDArray[np.bool_] = columns.session == (
        columns.sessions.index(session) if session in columns.sessions else -1
    )
    return chosen
