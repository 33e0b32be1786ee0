"""Figures of judged answers: how many are right, how sure that is, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, NamedTuple

from evaluation.answers.results import Result, RunHeader
from evaluation.metrics import wilson

_MILLION: Final = 1_000_000


class Prices(NamedTuple):
    """Prices for a million tokens, in any currency."""

    prompt: float
    reply: float

    def of(self, prompt_tokens: int, reply_tokens: int) -> float:
        """Return the price of a call."""
        return (prompt_tokens * self.prompt + reply_tokens * self.reply) / _MILLION


@dataclass(frozen=True, slots=True)
class Proportion:
    """A share of questions, with Wilson's 95% confidence interval."""

    questions: int
    count: int
    share: float | None
    """None if there are no questions."""
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens per question, as the servers reported them (0 if a server reports none), and the price of it."""

    prompt_tokens: float
    reply_tokens: float
    cost: float | None
    """Per question, None without prices."""
    total_cost: float | None


@dataclass(frozen=True, slots=True)
class AnswerReport:
    """The figures of a run."""

    run: RunHeader
    results: str
    """The path of the file with the results."""
    questions: int
    judged: int
    failed: int
    """Questions without a verdict; no figure contains them."""
    left: int
    """Questions that were not asked yet."""
    right: Proportion
    """Right answers to all questions: as expected, or declined where nothing was said."""
    answered: Proportion
    """Right answers to questions whose answer was said."""
    declined: Proportion
    """Of the questions about what was never said, those that were declined."""
    wrongly_declined: Proportion
    """Of the questions whose answer was said, those that were declined."""
    refusal_score: float | None
    """F1 of declining: the harmonic mean of the share of questions about what was never said that were declined, and
    the share of declined questions that were about what was never said."""
    with_evidence: Proportion
    """Right answers where the context contained all labelled evidence."""
    without_evidence: Proportion
    """Right answers where the context lacked some of the labelled evidence."""
    formats: dict[str, Proportion]
    categories: dict[str, Proportion]
    languages: dict[str, Proportion]
    kinds: dict[str, Proportion]
    context_tokens: float
    """Tokens of a context, as counted by Aforesaid, on average."""
    model: Spent
    judge: Spent


def sum_up(
    run: RunHeader,
    path: str,
    asked: int,
    results: Sequence[Result],
    *,
    model_prices: Prices | None = None,
    judge_prices: Prices | None = None,
) -> AnswerReport:
    """Combine the results of `asked` questions. Results without a verdict count as failed."""
    judged = [each for each in results if each.verdict is not None]
    said = [each for each in judged if not each.never_said]
    labelled = [each for each in said if each.evidence is not None]
    return AnswerReport(
        run=run,
        results=path,
        questions=asked,
        judged=len(judged),
        failed=len(results) - len(judged),
        left=asked - len(results),
        right=_right(judged),
        answered=_right(said),
        declined=_declined(each for each in judged if each.never_said),
        wrongly_declined=_declined(said),
        refusal_score=_refusal_score(judged),
        with_evidence=_right(each for each in labelled if each.evidence == 1),
        without_evidence=_right(each for each in labelled if each.evidence != 1),
        formats=_by(judged, lambda each: each.format),
        categories=_by(judged, lambda each: each.category),
        languages=_by(judged, lambda each: each.language),
        kinds=_by(judged, lambda each: each.kind),
        context_tokens=_mean(each.context_tokens for each in judged),
        model=_spent([(each.prompt_tokens, each.reply_tokens) for each in judged], model_prices),
        judge=_spent([(each.judge_prompt_tokens, each.judge_reply_tokens) for each in judged], judge_prices),
    )


def _proportion(outcomes: Iterable[bool]) -> Proportion:
    known = list(outcomes)
    low, high = wilson(sum(known), len(known))
    return Proportion(len(known), sum(known), sum(known) / len(known) if known else None, low, high)


def _right(results: Iterable[Result]) -> Proportion:
    return _proportion(each.right for each in results)


def _declined(results: Iterable[Result]) -> Proportion:
    return _proportion(each.verdict == "declined" for each in results)


def _refusal_score(judged: Sequence[Result]) -> float | None:
    never_said = sum(each.never_said for each in judged)
    if not never_said:
        return None
    declined = sum(each.verdict == "declined" for each in judged)
    rightly = sum(each.never_said and each.verdict == "declined" for each in judged)
    return 2 * rightly / (never_said + declined)


def _by(judged: Sequence[Result], group: Callable[[Result], str]) -> dict[str, Proportion]:
    """Return the right answers of each group, sorted by name. Results without a group are left out."""
    names = sorted({group(each) for each in judged} - {""})
    return {name: _right(each for each in judged if group(each) == name) for name in names}


def _spent(calls: Sequence[tuple[int, int]], prices: Prices | None) -> Spent:
    costs = [] if prices is None else [prices.of(*call) for call in calls]
    return Spent(
        _mean(call[0] for call in calls),
        _mean(call[1] for call in calls),
        None if prices is None else _mean(costs),
        None if prices is None else sum(costs),
    )


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return fmean(known) if known else 0.0
