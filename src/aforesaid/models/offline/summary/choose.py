"""Chooses the sentences of a summary: the most valuable ones without repetition, within a limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final

from aforesaid.domain.caches import holds_texts
from aforesaid.models.offline.summary.centrality import centrality
from aforesaid.models.offline.summary.signals import Sentence, Weighed, weigh
from aforesaid.text.sentences import is_question

_CENTRAL: Final = 0.527
_LENGTH: Final = 0.68
"""Exponent of the length by which a sentence's value is divided; below 1, because long sentences say more."""
_NEW_SPEAKER: Final = 1.55
"""Value added to a sentence of a speaker who has none in the summary yet."""

_LABEL: Final = 4
"""Words of a label. A sentence longer by more than this than one that did not fit is not tried."""
_SHORT: Final = 30
"""Maximum characters of a short answer."""
_CACHED: Final = 8
"""Conversations whose weighed sentences are cached: two for each summary that is made at the same time."""

Fits = Callable[[Sequence[Sentence]], bool]


def choose(sentences: Sequence[Sentence], fits: Fits) -> list[Sentence]:
    """Return chosen sentences in the order of the conversation. `fits` returns whether they are short enough together.

    The choice is greedy: the sentence with the highest value for its length first, until no other fits. A word counts
    once, so repetition lowers the value of a sentence. Small talk is chosen only if there is nothing else.
    """
    first: dict[str, Sentence] = {}
    for sentence in sentences:
        first.setdefault(sentence.text, sentence)
    weighed, telling, factors = _weighed(tuple(first.values()))
    return _with_answers(_pick(telling, factors, fits), sentences, fits) or _pick(weighed, _factors(weighed), fits)


@holds_texts
@lru_cache(_CACHED)
def _weighed(sentences: tuple[Sentence, ...]) -> tuple[list[Weighed], list[Weighed], list[float]]:
    """Return sentences with their weights, those of them that tell something, and the factors of the latter.

    Cached: the same sentences are often chosen from again, with less room.
    """
    weighed = weigh(sentences)
    telling = [one for one in weighed if one.telling]
    return weighed, telling, _factors(telling)


def _factors(weighed: Sequence[Weighed]) -> list[float]:
    """Return the factor of each sentence: that of its kind, more for central ones."""
    central = centrality([one.terms for one in weighed])
    return [one.factor * (1 + _CENTRAL * rank) for one, rank in zip(weighed, central, strict=True)]


def _with_answers(chosen: list[Sentence], sentences: Sequence[Sentence], fits: Fits) -> list[Sentence]:
    """Add short answers ("Yes!") to the chosen questions if there is room."""
    firsts = {sentence.place[0]: sentence for sentence in reversed(sentences)}
    lasts = {sentence.place[0]: sentence.place for sentence in sentences}
    for question in [sentence for sentence in chosen if is_question(sentence.text)]:
        turn, answer = question.place[0], firsts.get(question.place[0] + 1)
        if answer is None or answer.speaker == question.speaker or len(answer.text) > _SHORT:
            continue
        if lasts[turn] != question.place or answer.place in [sentence.place for sentence in chosen]:
            continue
        attempt = sorted([*chosen, answer], key=lambda sentence: sentence.place)
        if fits(attempt):
            chosen = attempt
    return chosen


def best(sentences: Sequence[Sentence]) -> Sentence:
    """Return the sentence with the highest value for its length."""
    weighed = weigh(sentences)
    values = [sum(one.terms.values()) * one.factor / (one.length + 0.5) ** _LENGTH for one in weighed]
    return weighed[values.index(max(values))].sentence


def _pick(weighed: Sequence[Weighed], factors: Sequence[float], fits: Fits) -> list[Sentence]:
    said: set[str] = set()
    heard: set[str] = set()

    def value(number: int) -> float:
        one = weighed[number]
        fresh = sum(worth for term, worth in one.terms.items() if term not in said) * factors[number]
        if one.sentence.speaker not in heard:
            fresh += _NEW_SPEAKER * min(1.0, factors[number])
        return float(fresh / (one.length + 0.5) ** _LENGTH)

    # Values only fall while sentences are chosen. So the first of the queue is the best one if its recomputed value is
    # still above the second's.
    queue = [(-value(number), number) for number in range(len(weighed))]
    heapify(queue)
    chosen: list[Sentence] = []
    too_long = inf
    while queue:
        _, number = heappop(queue)
        now = -value(number)
        if queue and (now, number) > queue[0]:
            heappush(queue, (now, number))
            continue
        if chosen and now >= 0:
            break
        if weighed[number].length > too_long + _LABEL:
            continue
        attempt = sorted([*chosen, weighed[number].sentence], key=lambda sentence: sentence.place)
        if not fits(attempt):
            too_long = min(too_long, weighed[number].length)
        else:
            chosen = attempt
            said.update(weighed[number].terms)
            heard.add(weighed[number].sentence.speaker)
    return chosen
