"""What an evaluation found, and how single questions are summed up in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aforesaid.evaluation.conversation import Conversation, Count, Dataset, Question
from aforesaid.evaluation.metrics import Score, average, by_session, percentile, score


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """What one question got: its figures (None where nothing is labelled at that level), and how long it took."""

    question: Question
    by_turn: Score | None
    by_session: Score | None
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Averages over questions. The two denominators differ where a question has labelled sessions and no turns."""

    questions_by_turn: int
    by_turn: Score | None
    questions_by_session: int
    by_session: Score | None


@dataclass(frozen=True, slots=True)
class CategoryFigures:
    """The figures of one category of questions."""

    category: str
    apart: bool
    """Whether it is left out of the headline."""
    figures: Figures


@dataclass(frozen=True, slots=True)
class RankingReport:
    """How one way to rank did."""

    ranking: str
    overall: Figures
    categories: tuple[CategoryFigures, ...]
    p50_ms: float | None
    p95_ms: float | None


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """How every ranking did on one data set, and what is in the denominator."""

    format: str
    path: str
    conversations: int
    turns: int
    questions: int
    """Asked; those in the headline and those apart."""
    in_headline: int
    apart: int
    left_out: tuple[Count, ...]
    mended: tuple[Count, ...]
    embedder: str
    rankings: tuple[RankingReport, ...]


def mark(question: Question, ranking: Sequence[str], conversation: Conversation, milliseconds: float) -> QuestionResult:
    """Compare a ranking of turns with the labels of a question."""
    sessions = {turn.id: turn.session for turn in conversation.turns}
    return QuestionResult(
        question,
        score(ranking, question.turns) if question.turns else None,
        score(by_session(ranking, sessions), question.sessions) if question.sessions else None,
        milliseconds,
    )


def sum_up_ranking(ranking: str, answers: Sequence[QuestionResult]) -> RankingReport:
    """Sum up all answers of one ranking."""
    categories = sorted({(answer.question.apart, answer.question.category) for answer in answers})
    return RankingReport(
        ranking,
        _figures([answer for answer in answers if not answer.question.apart]),
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
    )


def sum_up_dataset(dataset: Dataset, embedder: str, rankings: Sequence[RankingReport]) -> DatasetReport:
    """Say what was measured on, beside the figures."""
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
