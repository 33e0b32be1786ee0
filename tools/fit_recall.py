"""Fit the weights of recall to labelled conversations.

    python tools/fit_recall.py PATH [PATH …] [--keep FOLDER]

For every question, the candidates and their features are computed by the real recall on a real store. The weights are
those under which a softmax over the candidates gives the evidence the highest likelihood (with a small L2 penalty),
fitted separately per kind of chat. Every data set has the same weight, whatever its size. The result is printed in the
format of src/aforesaid/recall/weights.toml, with the recall on the training questions and on held-out conversations
(five-fold cross-validation).

`--keep` stores the filled memories in a folder, so that the next fit does not embed everything again.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from evaluation import load_datasets
from evaluation.conversation import Conversation, Dataset
from numpy.typing import NDArray

from aforesaid.memory import Memory, connect
from aforesaid.recall import SearchRequest
from aforesaid.recall.features import FEATURES
from aforesaid.recall.score import KINDS, Kind, kind_of

NAMES = list(FEATURES)
STEPS = 400
RATE = 0.05
PULL = 1e-3
FOLDS = 5
REWARDS = np.array([name in {"keyword", "coverage", "dense", "speaker", "period", "when"} for name in NAMES])
"""Features whose weight is never negative. A question that names a day must not lower that day's messages, even if a
fit to a few hundred questions says so."""
LEAST = np.array([0.5 if name == "period" else -np.inf for name in NAMES])
"""Minimum weight of the date feature: a question that names a day means it, also if the labelled ones did not."""

Floats = NDArray[np.float64]


class Example(NamedTuple):
    """The candidates of one question, and which of them are evidence."""

    dataset: str
    conversation: str
    kind: Kind
    features: Floats
    evidence: Floats
    """The contribution of each candidate to the question's recall."""


async def collect(dataset: Dataset, folder: Path) -> list[Example]:
    """Compute the features of every question's candidates."""
    path = folder / f"{dataset.format}.db"
    filled = path.exists()
    async with connect(path, profile={"message_bytes": 2**24}, embedder="local") as memory:
        if not filled:
            await asyncio.gather(*[store(memory, conversation) for conversation in dataset.conversations])
        await memory.upkeep()
        found = []
        for conversation in dataset.conversations:
            found += await ask(memory, dataset.format, conversation)
        return found


async def store(memory: Memory, conversation: Conversation) -> None:
    """Store a conversation in the memory."""
    for turn in conversation.turns:
        user = memory.user(conversation.id, space="eval", session=turn.session)
        await user.add(turn.role, turn.text, at=turn.at, id=turn.id, author=turn.speaker, name=turn.speaker)


async def ask(memory: Memory, name: str, conversation: Conversation) -> list[Example]:
    """Compute the features of the candidates of every question."""
    user, examples = memory.user(conversation.id, space="eval"), []
    places = {message.seq: message.id for message in await user.history(10_000)}
    for question in conversation.questions:
        if question.apart or not question.turns:
            continue
        asking = SearchRequest(question.text, at=question.asked_at)
        candidates = await memory._services.recall.candidates(user.scope, asking)  # noqa: SLF001 - the tool looks inside
        ids = [places.get(seq) for seq in candidates.columns.seq[candidates.rows].tolist()]
        evidence = np.array([each in question.turns for each in ids]) / len(question.turns)
        columns = np.array([FEATURES[feature](candidates) for feature in NAMES]).T
        examples.append(Example(name, conversation.id, kind_of(candidates), columns, evidence))
    return examples


def fit(examples: list[Example]) -> Floats:
    """Return the weights that make the evidence most likely."""
    usable = [example for example in examples if example.evidence.sum()]
    sizes = Counter(example.dataset for example in usable)
    share = np.array([1 / sizes[example.dataset] / len(sizes) for example in usable])
    lengths = np.array([len(example.features) for example in usable])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    features = np.concatenate([example.features for example in usable])
    scale = features.std(axis=0)
    scale[scale == 0] = 1
    features /= scale
    evidence = np.concatenate([example.evidence for example in usable])
    wanted = np.add.reduceat(evidence, starts)
    weights, momentum, spread = np.zeros((3, features.shape[1]))
    for step in range(1, STEPS + 1):
        scores = features @ weights
        likely = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), lengths))
        likely *= np.repeat(wanted / np.add.reduceat(likely, starts), lengths)
        slope = features.T @ (np.repeat(share, lengths) * (likely - evidence)) + PULL * weights
        momentum = 0.9 * momentum + 0.1 * slope
        spread = 0.99 * spread + 0.01 * slope * slope
        weights = weights - RATE * (momentum / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.99**step)) + 1e-8)
        weights = np.where(REWARDS, np.maximum(weights, 0), weights)
    fitted: Floats = weights / scale
    return fitted


def reached(examples: list[Example], weights: Floats) -> dict[str, list[tuple[float, float]]]:
    """Return recall@1 and recall@10 of each question, by data set."""
    found: dict[str, list[tuple[float, float]]] = {}
    for example in examples:
        best = np.argsort(-(example.features @ weights), kind="stable")[:10]
        gained = example.evidence[best]
        found.setdefault(example.dataset, []).append((float(gained[:1].sum()), float(gained.sum())))
    return found


def left_out(examples: list[Example]) -> dict[str, list[tuple[float, float]]]:
    """Return the recall on held-out conversations."""
    names = sorted({example.conversation for example in examples})
    found: dict[str, list[tuple[float, float]]] = {}
    for fold in range(FOLDS):
        apart = set(names[fold::FOLDS])
        weights = fit([example for example in examples if example.conversation not in apart])
        for name, values in reached([each for each in examples if each.conversation in apart], weights).items():
            found.setdefault(name, []).extend(values)
    return found


def show(title: str, found: dict[str, list[tuple[float, float]]]) -> None:
    """Print averages."""
    for name, values in found.items():
        first, ten = np.mean(values, axis=0) * 100
        print(f"# {title} {name}: R@1 {first:.1f}, R@10 {ten:.1f} of {len(values)} questions", flush=True)


async def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    examples = []
    with tempfile.TemporaryDirectory() as temporary:
        for path in options.paths:
            for dataset in load_datasets(path):
                examples += await collect(dataset, options.keep or Path(temporary))
    between_people = np.zeros(len(NAMES))
    for kind in KINDS:
        chosen = [example for example in examples if example.kind == kind]
        if not chosen:
            continue
        weights = fit(chosen)
        # If a kind of chat has no data about a feature, use its weight for chats between people.
        silent = np.concatenate([example.features for example in chosen]).std(axis=0) == 0
        weights = np.maximum(np.where(silent, between_people, weights), LEAST)
        if kind == "people":
            between_people = weights
        print(f"\n[{kind}]")
        for name, weight in zip(NAMES, weights, strict=True):
            print(f"{name} = {weight:.3f}")
        show("fitted to", reached(chosen, weights))
        show("left out ", left_out(chosen))


if __name__ == "__main__":
    asyncio.run(main())
