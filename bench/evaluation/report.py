"""Reports of an evaluation, and how the results of single questions are combined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from evaluation.conversation import Conversation, Count, Dataset, Question
from evaluation.metrics import Score, average, by_session, percentile, score, separation


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """The result of one question: its figures (None if that level is not labelled) and its latency."""

    question: Question
    by_turn: Score | None
    by_session: Score | None
    milliseconds: float
    language: str = ""
    kind: str = ""
    """The kind of chat."""
    best: float = 0.0
    """The score of the best hit."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Averages over questions. The denominators differ if some questions have labelled sessions but no turns."""

    questions_by_turn: int
    by_turn: Score | None
    questions_by_session: int
    by_session: Score | None


@dataclass(frozen=True, slots=True)
class CategoryFigures:
    """The figures of one category of questions."""

    category: str
    apart: bool
    """Whether the category is left out of the headline figures."""
    figures: Figures


@dataclass(frozen=True, slots=True)
class NeverSaid:
    """How well searches tell questions about what was never said from questions with an answer."""

    questions: int
    """Questions about what was never said."""
    nothing_found: float
    """Share of them for which a search finds nothing."""
    wrongly_nothing_found: float | None
    """Share of the questions with evidence for which it finds nothing, although there is something."""
    told_apart: float | None
    """Probability that the best hit of a question with evidence has a higher score than the best hit of a question
    about what was never said (the area under the ROC curve): 0.5 is chance, 1 is perfect."""


@dataclass(frozen=True, slots=True)
class RankingReport:
    """The figures of one ranking."""

    ranking: str
    overall: Figures
    categories: tuple[CategoryFigures, ...]
    p50_ms: float | None
    p95_ms: float | None
    languages: dict[str, Figures]
    """The figures by language, where the data set names it."""
    kinds: dict[str, Figures]
    """The figures by kind of chat, where the data set names it."""
    never_said: NeverSaid | None
    """None if the data set has no such questions, or if the ranking has no minimum score."""


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """The figures of every ranking on one data set, and the number of questions they are based on."""

    format: str
    path: str
    conversations: int
    turns: int
    questions: int
    """Questions asked, including those reported separately."""
    in_headline: int
    apart: int
    left_out: tuple[Count, ...]
    mended: tuple[Count, ...]
    embedder: str
    rankings: tuple[RankingReport, ...]


def mark(
    question: Question,
    hits: Sequence[Sequence[str]],
    conversation: Conversation,
    milliseconds: float,
    best: float = 0.0,
) -> QuestionResult:
    """Return the result of a question: compare the turns in each hit, best first, with its labels.

    A hit stands for all turns with the same words. It finds the evidence whichever of them is labelled.
    """
    sessions = {turn.id: turn.session for turn in conversation.turns}
    shown_as = {turn: hit[0] for hit in hits for turn in hit}
    turns = {shown_as.get(turn, turn) for turn in question.turns}
    return QuestionResult(
        question,
        score([hit[0] for hit in hits], turns) if turns else None,
        score(by_session(chain.from_iterable(hits), sessions), question.sessions) if question.sessions else None,
        milliseconds,
        conversation.language,
        conversation.kind,
        best,
    )


def sum_up_ranking(ranking: str, answers: Sequence[QuestionResult], never_said: Sequence[float] = ()) -> RankingReport:
    """Combine the results of all questions for one ranking.

    `never_said` has the score of the best hit for each question about what was never said, 0 where there was none.
    """
    headline = [answer for answer in answers if not answer.question.apart]
    categories = sorted({(answer.question.apart, answer.question.category) for answer in answers})
    return RankingReport(
        ranking,
        _figures(headline),
        tuple(
            CategoryFigures(
                category,
                apart,
                _figures([a for a in answers if (a.question.apart, a.question.category) == (apart, category)]),
            )
            for apart, category in categories
        ),
        percentile(0.50, [answer.milliseconds for answer in answers]),
        percentile(0.95, [answer.milliseconds for answer in answers]),
        _by(headline, lambda answer: answer.language),
        _by(headline, lambda answer: answer.kind),
        _never_said([answer.best for answer in headline], never_said),
    )


def sum_up_dataset(dataset: Dataset, embedder: str, rankings: Sequence[RankingReport]) -> DatasetReport:
    """Combine the rankings of a data set into a report that also describes the data set."""
    questions = [question for conversation in dataset.conversations for question in conversation.questions]
    apart = sum(question.apart for question in questions)
    return DatasetReport(
        dataset.format,
        str(dataset.path),
        len(dataset.conversations),
        sum(len(conversation.turns) for conversation in dataset.conversations),
        len(questions),
        len(questions) - apart,
        apart,
        dataset.left_out,
        dataset.mended,
        embedder,
        tuple(rankings),
    )


def _figures(answers: Sequence[QuestionResult]) -> Figures:
    turns = [answer.by_turn for answer in answers if answer.by_turn is not None]
    sessions = [answer.by_session for answer in answers if answer.by_session is not None]
    return Figures(len(turns), average(turns), len(sessions), average(sessions))


def _by(answers: Sequence[QuestionResult], group: Callable[[QuestionResult], str]) -> dict[str, Figures]:
    """Return the figures of each group, sorted by name. Results without a group are left out."""
    names = sorted({group(answer) for answer in answers} - {""})
    return {name: _figures([answer for answer in answers if group(answer) == name]) for name in names}


def _never_said(said: Sequence[float], never_said: Sequence[float]) -> NeverSaid | None:
    if not never_said:
        return None
    return NeverSaid(
        len(never_said),
        sum(not best for best in never_said) / len(never_said),
        sum(not best for best in said) / len(said) if said else None,
        separation(said, never_said),
    )
