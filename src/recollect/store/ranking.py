"""BM25 over the posting lists of one scope, the same for every store that has no ranking of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappush, heapreplace
from typing import Final

from recollect.domain.hit import Hit
from recollect.domain.message import Message

# Chat turns are short and rarely repeat a word for emphasis: little is gained from counting repetitions
# and little from punishing length.
_SATURATION: Final = 0.9
_LENGTH_WEIGHT: Final = 0.4
MOST_GAIN: Final = _SATURATION + 1
"""What a word can add at most, times its rarity."""
_PAGE: Final = 64


@dataclass(frozen=True, slots=True)
class Match:
    """A message that matched, by sequence number."""

    seq: int
    score: float
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextMatches:
    """The best matches of a query, best first, and what its words are worth in this scope."""

    matches: tuple[Match, ...]
    rarity: Mapping[str, float]
    """How rare each word of the query is among the messages that were searched; also of words that were not found."""


def best_matches(
    postings: Mapping[str, Sequence[tuple[int, int]]],
    *,
    documents: int,
    average_length: float,
    lengths: Callable[[Sequence[int]], Mapping[int, int]],
    limit: int,
) -> TextMatches:
    """Return the `limit` best messages, best first, newer first among equals.

    `postings` has (sequence number, count) pairs for each term of the query. `lengths` tells how many terms messages
    have, and may leave out messages that must not be returned. It is asked only about messages that can still be among
    the best: a score without its length penalty is an upper bound of the score with it.
    """
    rarity = {term: math.log1p((documents - len(found) + 0.5) / (len(found) + 0.5)) for term, found in postings.items()}
    bounds: dict[int, float] = {}
    for term, found in postings.items():
        for seq, count in found:
            bounds[seq] = bounds.get(seq, 0.0) + rarity[term] * _gain(count, 1 - _LENGTH_WEIGHT)
    order = sorted(bounds, key=lambda seq: (-bounds[seq], -seq))
    by_message = _invert(postings)
    best: list[tuple[float, int]] = []
    for start in range(0, len(order), _PAGE):
        page = order[start : start + _PAGE]
        if len(best) == limit and bounds[page[0]] < best[0][0]:
            break
        for seq, length in lengths(page).items():
            scale = 1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * length / average_length
            score = sum(rarity[term] * _gain(count, scale) for term, count in by_message[seq])
            if len(best) < limit:
                heappush(best, (score, seq))
            elif (score, seq) > best[0]:
                heapreplace(best, (score, seq))
    matches = tuple(
        Match(seq=seq, score=score, terms=tuple(term for term, _ in by_message[seq]))
        for score, seq in sorted(best, reverse=True)
    )
    return TextMatches(matches, rarity)


def hit(match: Match, message: Message) -> Hit:
    """Make a hit of a match."""
    return Hit(
        kind="message",
        id=message.id,
        text=message.text,
        score=match.score,
        at=message.at,
        sources=(message.id,),
        terms=match.terms,
        message=message,
    )


def _gain(count: int, scale: float) -> float:
    return count * (_SATURATION + 1) / (count + _SATURATION * scale)


def _invert(postings: Mapping[str, Sequence[tuple[int, int]]]) -> dict[int, list[tuple[str, int]]]:
    by_message: dict[int, list[tuple[str, int]]] = {}
    for term, found in postings.items():
        for seq, count in found:
            by_message.setdefault(seq, []).append((term, count))
    return by_message
