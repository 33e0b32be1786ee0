"""Fit the weights of recall to labelled conversations.

    python tools/fit_recall.py PATH [PATH …]

For every question, the candidates and their features are computed by the real recall on a real store. The weights are
those under which a softmax over the candidates gives the evidence the highest likelihood (with a small pull towards
zero), fitted for the two kinds of chat apart. Every data set counts the same, whatever its size. The result is printed
in the form of src/recollect/recall/weights.toml.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.evaluation import load_datasets
from recollect.evaluation.conversation import Conversation, Dataset
from recollect.memory import Memory, connect
from recollect.recall.features import FEATURES
from recollect.recall.fuse import Kind, kind_of

NAMES = list(FEATURES)
STEPS = 600
RATE = 0.05
PULL = 1e-3


class Example(NamedTuple):
    """The candidates of one question, and which of them are evidence."""

    dataset: str
    kind: Kind
    features: NDArray[np.float64]
    evidence: NDArray[np.float64]


async def collect(dataset: Dataset) -> list[Example]:
    """Compute the features of every question's candidates."""
    with tempfile.TemporaryDirectory() as folder:
        async with connect(Path(folder) / "memory.db", profile={"message_bytes": 2**24}, embedder="local") as memory:
            await asyncio.gather(*[store(memory, conversation) for conversation in dataset.conversations])
            await memory.upkeep()
            found = []
            for conversation in dataset.conversations:
                found += await ask(memory, dataset.format, conversation)
            return found


async def store(memory: Memory, conversation: Conversation) -> None:
    """Put a conversation into the memory."""
    for turn in conversation.turns:
        user = memory.user(conversation.id, space="eval", session=turn.session)
        await user.add(turn.role, turn.text, at=turn.at, id=turn.id, author=turn.speaker, name=turn.speaker)


async def ask(memory: Memory, name: str, conversation: Conversation) -> list[Example]:
    """Compute the features of the candidates of every question."""
    user, examples = memory.user(conversation.id, space="eval"), []
    for question in conversation.questions:
        if question.apart or not question.turns:
            continue
        candidates = await memory._recall.candidates(  # noqa: SLF001 - the tool looks inside
            user.scope, question.text, within="user", limit=10, asked=question.asked_at
        )
        evidence = np.array([turn.message.id in question.turns for turn in candidates.turns], dtype=float)
        if evidence.sum():
            columns = [FEATURES[feature](candidates) for feature in NAMES]
            examples.append(Example(name, kind_of(candidates), np.array(columns).T, evidence / len(question.turns)))
    return examples


def fit(examples: list[Example]) -> dict[str, float]:
    """Return the weights that make the evidence most likely."""
    sizes = Counter(example.dataset for example in examples)
    shares = np.array([1 / sizes[example.dataset] / len(sizes) for example in examples])
    scale = np.concatenate([example.features for example in examples]).std(axis=0)
    scale[scale == 0] = 1
    weights, momentum, spread = np.zeros(len(NAMES)), np.zeros(len(NAMES)), np.zeros(len(NAMES))
    for step in range(1, STEPS + 1):
        slope = PULL * weights
        for example, share in zip(examples, shares, strict=True):
            features = example.features / scale
            scores = features @ weights
            likely = np.exp(scores - scores.max())
            likely *= example.evidence.sum() / likely.sum()
            slope += share * (features.T @ (likely - example.evidence))
        momentum = 0.9 * momentum + 0.1 * slope
        spread = 0.99 * spread + 0.01 * slope * slope
        weights -= RATE * (momentum / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.99**step)) + 1e-8)
    return dict(zip(NAMES, (float(weight) for weight in weights / scale), strict=True))


def recall_at_10(examples: list[Example], weights: dict[str, float]) -> dict[str, float]:
    """Return the recall on each data set, of questions that have evidence among their candidates."""
    column = np.array([weights[name] for name in NAMES])
    found: dict[str, list[float]] = {}
    for example in examples:
        best = np.argsort(-(example.features @ column), kind="stable")[:10]
        found.setdefault(example.dataset, []).append(float(example.evidence[best].sum()))
    return {name: sum(values) / len(values) for name, values in found.items()}


async def main(paths: list[Path]) -> None:
    """Fit and print."""
    examples = []

    for path in paths:
        for dataset in load_datasets(path):
            examples += await collect(dataset)
    for kind in ("people", "assistant"):
        chosen = [example for example in examples if example.kind == kind]
        weights = fit(chosen)
        print(f"\n[{kind}]")
        for name, weight in weights.items():
            print(f"{name} = {weight:.3f}")
        for name, value in recall_at_10(chosen, weights).items():
            print(f"# {name}: {value:.3f} of {sum(example.dataset == name for example in chosen)}")


if __name__ == "__main__":
    asyncio.run(main([Path(argument) for argument in sys.argv[1:]]))
