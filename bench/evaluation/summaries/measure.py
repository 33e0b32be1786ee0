"""Summarise every chat of a data set with every method, and compare the results with the labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from aforesaid.models.offline import count_words
from aforesaid.store import Progress
from evaluation.conversation import Count
from evaluation.summaries.chats import Chat, ChatSet
from evaluation.summaries.content_metrics import facts_covered, small_talk
from evaluation.summaries.methods import METHODS
from evaluation.summaries.rouge import Rouge, rouge


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one method: averages over chats, shares of all facts and of all sentences."""

    method: str
    rouge_1: float | None
    rouge_2: float | None
    rouge_l: float | None
    facts_covered: float | None
    small_talk: float | None
    words: float
    """Average length of its summaries, in words."""


@dataclass(frozen=True, slots=True)
class SummaryReport:
    """The figures of every method on one data set."""

    format: str
    path: str
    chats: int
    turns: int
    facts: int
    room: float
    """Average maximum length of a summary, in words."""
    left_out: tuple[Count, ...]
    methods: tuple[Figures, ...]


def measure_summaries(chat_set: ChatSet, words: int | None, progress: Progress) -> SummaryReport:
    """Summarise every chat with every method, in at most `words` words (None: depending on the chat's length)."""
    chats = chat_set.chats
    total = len(chats) * len(METHODS)
    figures = []
    for number, (name, method) in enumerate(METHODS.items()):
        made = []
        for place, chat in enumerate(chats, 1):
            made.append(method(chat.turns, chat.room(words)))
            progress(name, number * len(chats) + place, total)
        figures.append(_figures(name, chats, made))
    return SummaryReport(
        chat_set.format,
        str(chat_set.path),
        len(chats),
        sum(len(chat.turns) for chat in chats),
        sum(len(chat.facts) for chat in chats),
        fmean(chat.room(words) for chat in chats),
        chat_set.left_out,
        tuple(figures),
    )


def _figures(name: str, chats: Sequence[Chat], made: Sequence[str]) -> Figures:
    pairs = list(zip(made, chats, strict=True))
    scores = [_rouge(text, chat.summaries) for text, chat in pairs if chat.summaries]
    one, two, longest = map(fmean, zip(*scores, strict=True)) if scores else (None, None, None)
    return Figures(
        name,
        one,
        two,
        longest,
        _share(facts_covered(text, chat) for text, chat in pairs),
        _share(small_talk(text, chat) for text, chat in pairs),
        fmean(count_words(text) for text in made),
    )


def _rouge(text: str, references: Sequence[str]) -> Rouge:
    """Return the average over several reference summaries."""
    return Rouge(*map(fmean, zip(*(rouge(text, reference) for reference in references), strict=True)))


def _share(parts: Iterable[tuple[int, int]]) -> float | None:
    counted = list(parts)
    whole = sum(number for _, number in counted)
    return sum(number for number, _ in counted) / whole if whole else None
