"""Fit the scores of recall to labelled conversations, and report how they do on conversations that were left out.

    python tools/fit_scores.py PATH [PATH …] [--keep FOLDER] [--questions NUMBER] [--embedder NAME …]

Each question is asked to its own conversation, where some of the first ten hits are right, and to the next one, where
the answer was never said and all hits are wrong. Questions without evidence are asked to their own conversation, and
all hits are wrong. One or two rare words of the answer are searched for in the same way: there, messages with these
words are right. Conversations in other languages are asked in English too (questions_in_english.toml), and of the
project's own conversations memories of a few turns are made and asked in the same ways. The score is a logistic
function of the weighted sum of a hit and of what all candidates of a search share (`question_features`). Right and
wrong hits count the same in total, so that 0.5 means: as common among right hits as among wrong ones. Every data set,
kind of search and encoder counts the same, questions in another language less.

The tool prints the coefficients in the form of src/aforesaid/recall/calibration.toml, then the figures of the present
and of the new coefficients, by kind of search, encoder and language. Those of the new coefficients are held out: the
conversations are split into five parts, and each part is judged by coefficients fitted to the other four. `--keep`
leaves the filled memories in a folder for the next fit. `--embedder` takes any name that `aforesaid` takes, several
times; one set of coefficients is fitted to all encoders.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from evaluation import load_datasets
from evaluation.conversation import Conversation, Dataset, Question
from fit_recall import store
from numpy.typing import NDArray

from aforesaid.memory import Memory, connect
from aforesaid.recall import SearchRequest
from aforesaid.recall.queue import calibration
from aforesaid.recall.ranker import DEPTH
from aforesaid.recall.score import (
    MIN_SCORE,
    QUESTION_FEATURES,
    NoteEvidence,
    kind_of,
    order,
    question_features,
    totals,
    weighted_features,
)
from aforesaid.store.messages import MessagesByNumber
from aforesaid.text.words import words_of

TRANSCRIPTS = "transcripts"
"""The format of the project's own data set, whose conversations have their language at the beginning of their ids."""
NAMES = ("slope", *QUESTION_FEATURES)
FOLDS = 5
HITS = 10
PULL = 1e-3
STEPS = 50
PROFILE = {"message_bytes": 2**24, "summaries": "none", "extract": False}
"""Data sets contain a few very long turns. Only messages are searched, so nothing is summarised or learned."""
SHORTEST_WORD = 4
BINS = 10
ACROSS = "another language"
SHORT_MEMORIES = "short memories"
SHORT_ACROSS = "short, another language"
SHORT = 12
"""Turns of a short memory."""
SHORT_QUESTIONS = 6
"""Short memories per conversation."""
ACROSS_SHARE = 0.05
"""Weight of all questions in another language than the conversation, as a share of that of all other searches. They are
rare, and with more weight more hits of what was never said would be shown in all other searches."""

Floats = NDArray[np.float64]


class Search(NamedTuple):
    """The first hits of one search, and which of them are right."""

    dataset: str
    conversation: str
    encoder: str
    language: str
    way: str
    """Kind of chat and length of the query, such as `people, question`; for short memories the length alone."""
    features: Floats
    """One row for each hit: its weighted sum, then what all candidates share."""
    right: NDArray[np.bool_]
    answered: bool
    """Whether the conversation has the answer."""


class Asked(NamedTuple):
    """A memory filled with the conversations of one data set, and how it was filled."""

    memory: Memory
    dataset: str
    encoder: str


async def collect(dataset: Dataset, encoder: str, folder: Path, most: int) -> list[Search]:
    """Search for up to `most` questions of each conversation, there and in the next conversation."""
    name = "".join(letter if letter.isalnum() else "-" for letter in f"{dataset.format}-{encoder}")
    path = folder / f"{name}.db"
    filled = path.exists()
    found: list[Search] = []
    async with connect(path, profile=PROFILE, embedder=encoder) as memory:
        if not filled:
            await asyncio.gather(*[store(memory, conversation) for conversation in dataset.conversations])
        await memory.upkeep()
        asked = Asked(memory, dataset.format, encoder.partition("@")[0])
        others = [*dataset.conversations[1:], dataset.conversations[0]]
        for conversation, other in zip(dataset.conversations, others, strict=True):
            found += await _ask_all(asked, conversation, other, most)
        if dataset.format == TRANSCRIPTS:
            found += await _ask_across(asked._replace(dataset=ACROSS), dataset)
    return found


def with_short_memories(dataset: Dataset) -> list[Dataset]:
    """Return a data set, and the short memories that are made of it if it is the project's own."""
    if dataset.format != TRANSCRIPTS:
        return [dataset]
    return [
        dataset,
        shortened(SHORT_MEMORIES, dataset.conversations, dataset),
        shortened(SHORT_ACROSS, in_english(dataset), dataset),
    ]


async def _ask_across(asked: Asked, dataset: Dataset) -> list[Search]:
    """Ask in English about conversations in other languages, there and in the next of these conversations."""
    conversations = in_english(dataset)
    found: list[Search] = []
    for own, other in zip(conversations, [*conversations[1:], *conversations[:1]], strict=True):
        for question in own.questions:
            found += await _ask(asked, own, other, question, question.text, None)
    return found


def in_english(dataset: Dataset) -> list[Conversation]:
    """Return the conversations in other languages that have questions in English, with these questions alone."""
    across = tomllib.loads((Path(__file__).parent / "questions_in_english.toml").read_text(encoding="utf-8"))
    return [
        replace(
            each,
            questions=tuple(
                replace(each.questions[0], text=text, turns=tuple(str(turn) for turn in turns))
                for text, turns in across[each.id].items()
            ),
        )
        for each in dataset.conversations
        if each.id in across
    ]


def shortened(name: str, conversations: Sequence[Conversation], dataset: Dataset) -> Dataset:
    """Return a memory of a few turns for each of some questions: those around the first turn that answers it."""
    short = []
    for conversation in conversations:
        places = {turn.id: place for place, turn in enumerate(conversation.turns)}
        answered = [each for each in conversation.questions if each.turns and not each.apart]
        for number, question in enumerate(answered[:: max(1, -(-len(answered) // SHORT_QUESTIONS))]):
            first = max(0, places[question.turns[0]] - number % SHORT)
            turns = conversation.turns[first : first + SHORT]
            inside = tuple(turn.id for turn in turns if turn.id in question.turns)
            short.append(Conversation(f"{conversation.id}/{number}", turns, (replace(question, turns=inside),)))
    # The next one, where the answer was never said, is of another conversation.
    short.sort(key=lambda each: int(each.id.rpartition("/")[2]))
    return Dataset(name, dataset.path, tuple(short))


async def _ask_all(asked: Asked, conversation: Conversation, other: Conversation, most: int) -> list[Search]:
    """Search for questions and words of one conversation, there and in another one."""
    found: list[Search] = []
    counts = Counter(word for said in _words_by_turn(conversation).values() for word in said)
    answered = [each for each in conversation.questions if each.turns and not each.apart]
    for number, question in enumerate(answered[:: max(1, -(-len(answered) // most))]):
        found += await _ask(asked, conversation, other, question, question.text, None)
        words = _rare_words(conversation, question, counts)[: 1 + number % 2]
        if words and asked.dataset != SHORT_ACROSS:
            found += await _ask(asked, conversation, other, question, " ".join(words), frozenset(words))
    for question in conversation.questions:
        if not question.turns and not question.sessions and not question.apart:
            kind, hits, features = await _first_hits(asked.memory, conversation, question, question.text)
            nothing = np.zeros(len(hits), dtype=bool)
            way = _way(asked.dataset, kind, "question")
            found.append(_search(asked, conversation, way, features, nothing, answered=False))
    return found


def _way(dataset: str, kind: str, length: str) -> str:
    if dataset in {ACROSS, SHORT_ACROSS}:
        return dataset
    return f"short, {length}" if dataset == SHORT_MEMORIES else f"{kind}, {length}"


def _search(
    asked: Asked, own: Conversation, way: str, features: Floats, right: NDArray[np.bool_], *, answered: bool
) -> Search:
    language = own.id[:2] if asked.dataset in {TRANSCRIPTS, ACROSS, SHORT_MEMORIES, SHORT_ACROSS} else "en"
    return Search(asked.dataset, own.id.partition("/")[0], asked.encoder, language, way, features, right, answered)


@cache
def _words_by_turn(conversation: Conversation) -> dict[str, frozenset[str]]:
    return {turn.id: frozenset(words_of(turn.text)) for turn in conversation.turns}


def _rare_words(conversation: Conversation, question: Question, counts: Counter[str]) -> list[str]:
    said = next(turn.text for turn in conversation.turns if turn.id == question.turns[0])
    words = {word for word in words_of(said) if len(word) >= SHORTEST_WORD}
    return sorted(words, key=lambda word: (counts[word], word))


async def _ask(
    asked: Asked,
    own: Conversation,
    other: Conversation,
    question: Question,
    query: str,
    words: frozenset[str] | None,
) -> list[Search]:
    """Search in the conversation of a question and in another one."""
    found = []
    for conversation in (own, other) if other is not own else (own,):
        turns = _words_by_turn(conversation)
        if words is None:
            right = set(question.turns) if conversation is own else set()
        else:
            right = {turn for turn, said in turns.items() if words <= said}
        if conversation is not own and words is not None and any(words & said for said in turns.values()):
            continue  # it was said there too
        kind, hits, features = await _first_hits(asked.memory, conversation, question, query)
        way = _way(asked.dataset, kind, "question" if words is None else "one or two words")
        judged = np.array([hit in right for hit in hits], dtype=bool)
        found.append(_search(asked, own, way, features, judged, answered=conversation is own))
    return found


async def _first_hits(
    memory: Memory, conversation: Conversation, question: Question, query: str
) -> tuple[str, list[str], Floats]:
    """Return the kind of chat, the first hits, and their features, computed as a search does."""
    user = memory.user(conversation.id, space="eval")
    request = SearchRequest(query, at=question.asked_at)
    recall = memory._services.recall  # noqa: SLF001 - the tool looks inside
    candidates = await recall.candidates(user.scope, request, read=DEPTH)
    kind = kind_of(candidates)
    sums = totals(
        weighted_features(candidates, kind, textual=False) | weighted_features(candidates, kind, textual=True)
    )
    first = order(candidates, sums)[:HITS]
    answers = sums[~candidates.repeating]
    shared = question_features(candidates, float(answers.max()) if len(answers) else -np.inf, NoteEvidence())
    seqs = candidates.columns.seq[candidates.rows[first]].tolist()
    messages = await memory.store.read(MessagesByNumber(user.scope, seqs))
    ids = {message.seq: message.id for message in messages}
    return kind, [ids[seq] for seq in seqs], np.column_stack([sums[first], np.tile(shared, (len(first), 1))])


def weights_of(searches: Sequence[Search]) -> Floats:
    """Return the weight of each hit: data sets, ways, encoders, and right and wrong hits count the same in total."""
    groups = [(each.dataset, each.way, each.encoder, bool(right)) for each in searches for right in each.right]
    sizes = Counter(groups)
    weights = np.array([1 / sizes[group] for group in groups])
    across = np.array([group[0] in {ACROSS, SHORT_ACROSS} for group in groups])
    if across.any() and not across.all():
        weights[across] *= ACROSS_SHARE * weights[~across].sum() / weights[across].sum()
    result: Floats = weights / weights.sum()
    return result


def joined(searches: Sequence[Search]) -> tuple[Floats, Floats]:
    """Return the features and the labels of all hits."""
    features = np.concatenate([each.features for each in searches])
    return features, np.concatenate([each.right for each in searches]).astype(float)


def fit(searches: Sequence[Search]) -> Floats:
    """Return the coefficients of a logistic regression, by Newton's method, with a small pull towards zero."""
    (features, right), weights = joined(searches), weights_of(searches)
    found: Floats = np.zeros(features.shape[1])
    for _ in range(STEPS):
        likely = scores(features, found)
        slope = features.T @ (weights * (likely - right)) + PULL * found
        curve = (features * (weights * likely * (1 - likely))[:, None]).T @ features + PULL * np.eye(len(found))
        found = found - np.linalg.solve(curve, slope)
    return found


def scores(features: Floats, coefficients: Floats) -> Floats:
    """Return the scores of hits."""
    return 1 / (1 + np.exp(-np.clip(features @ coefficients, -30, 30)))


def held_out(searches: Sequence[Search]) -> Iterator[tuple[list[Search], Floats]]:
    """Yield each part of the conversations, with coefficients fitted to the other parts."""
    names = sorted({each.conversation for each in searches})
    for fold in range(FOLDS):
        apart = set(names[fold::FOLDS])
        rest = [each for each in searches if each.conversation not in apart]
        yield [each for each in searches if each.conversation in apart], fit(rest)


class Scored(NamedTuple):
    """A search and the scores of its hits."""

    search: Search
    scores: Floats


def show(title: str, parts: Sequence[tuple[list[Search], Floats]]) -> None:
    """Print what the cut-off hides and shows, and how far scores are from the share of right hits."""
    print(f"\n# {title}; cut-off {MIN_SCORE}")
    scored = [
        Scored(each, scores(each.features, coefficients)) for searches, coefficients in parts for each in searches
    ]
    print(f"# {'':30}{'right hits':>12}{'never said:':>13}{'and searches':>14}{'right among':>13}{'score':>8}")
    print(f"# {'':30}{'kept, %':>12}{'hits cut, %':>13}{'empty, %':>14}{'shown, %':>13}{'error':>8}{'searches':>10}")
    groups = [("all", scored)]
    for name in ("way", "encoder", "language"):
        values = sorted({getattr(each.search, name) for each in scored})
        groups += [(value, [each for each in scored if getattr(each.search, name) == value]) for value in values]
    for value, group in groups:
        figures = [100 * figure for figure in cut_off(group)]
        print(f"# {value:30}", end="")
        print(f"{figures[0]:12.1f}{figures[1]:13.1f}{figures[2]:14.1f}{figures[3]:13.1f}", end="")
        print(f"{calibration_error(group):8.3f}{len(group):10}", flush=True)


def cut_off(group: Sequence[Scored]) -> tuple[float, float, float, float]:
    """Return what the cut-off does, as shares.

    They are: right hits that are shown; hits of searches for what was never said that are not shown, and such searches
    that show nothing; right ones among the shown hits of the other searches.
    """
    right = _joined([each.scores[each.search.right] >= MIN_SCORE for each in group])
    never = [each.scores < MIN_SCORE for each in group if not each.search.answered]
    shown = _joined([each.search.right[each.scores >= MIN_SCORE] for each in group if each.search.answered])
    empty = np.array([hidden.all() for hidden in never])
    shares = [float(values.mean()) if len(values) else float("nan") for values in (right, _joined(never), empty, shown)]
    return shares[0], shares[1], shares[2], shares[3]


def _joined(values: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    return np.concatenate(values) if values else np.zeros(0, dtype=bool)


def calibration_error(group: Sequence[Scored]) -> float:
    """Return the mean distance between a score and the share of right hits near it.

    Right and wrong hits weigh the same in total, as in the fit.
    """
    weights, (_, right) = weights_of([each.search for each in group]), joined([each.search for each in group])
    score = np.concatenate([each.scores for each in group])
    place = np.minimum((score * BINS).astype(int), BINS - 1)
    error = 0.0
    for number in range(BINS):
        here = place == number
        if weight := float(weights[here].sum()):
            share = float(np.average(right[here], weights=weights[here]))
            error += weight * abs(share - float(np.average(score[here], weights=weights[here])))
    return error / float(weights.sum())


async def main() -> None:
    """Fit, print the coefficients, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, help="data sets, as for `bench/eval.py`")
    parser.add_argument("--keep", type=Path, help="folder in which the filled memories stay for the next fit")
    parser.add_argument("--questions", type=int, default=40, help="questions per conversation; default: 40")
    parser.add_argument("--embedder", action="append", help="a name as for `aforesaid`; default: local")
    options = parser.parse_args()
    searches: list[Search] = []
    with tempfile.TemporaryDirectory() as temporary:
        for path in options.paths:
            for dataset in [each for found in load_datasets(path) for each in with_short_memories(found)]:
                for encoder in options.embedder or ["local"]:
                    searches += await collect(dataset, encoder, options.keep or Path(temporary), options.questions)
    present = np.array([calibration()["score"][name] for name in NAMES])
    print("[score]")
    for name, value in zip(NAMES, fit(searches), strict=True):
        print(f"{name} = {value:.3f}")
    show("present coefficients", [(searches, present)])
    show("new coefficients, on conversations left out of the fit", list(held_out(searches)))


if __name__ == "__main__":
    asyncio.run(main())
