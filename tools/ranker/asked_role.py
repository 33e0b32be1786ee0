"""Train the model that says whether a question is about what the assistant said.

    python tools/ranker/asked_role.py bench/conversations [PATH …]

A PATH is what `bench/eval.py` reads. Only the project's own conversations with an assistant are trained on, without
their test part; all other data is measured. A question's label is the share of its evidence that the assistant said.
Writes the weights, their SHA-256 and the figures (area under the curve, conversations left out in five parts). Takes
seconds on a CPU; nothing is random.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from evaluation import load_datasets
from evaluation.conversation import Conversation
from numpy.typing import NDArray
from parts import OWN, test_part

from aforesaid.models import asked_role
from aforesaid.models.embed.local import load_encoder
from aforesaid.recall.candidates import without
from aforesaid.text.words import words_of

FOLDS: Final = 5
RIDGE: Final = 2e-3
"""Penalty on the squares of the weights, for each question."""
STEPS: Final = 12
"""Steps of Newton's method, which converges in six."""
LEAST_SHARE: Final = 0.2
"""Minimum share of the assistant's turns in a chat with an assistant, as in recall."""
ROOT: Final = Path(__file__).parents[2]
WEIGHTS: Final = ROOT / "src" / "aforesaid" / "models" / "asked_role.npz"
MODULE: Final = WEIGHTS.with_suffix(".py")
FIGURES: Final = Path(__file__).with_name("asked_role.json")

Floats = NDArray[np.float64]


class Example(NamedTuple):
    """A question, and the share of its evidence that the assistant said."""

    source: str
    conversation: str
    text: str
    share: float


def examples_of(source: str, conversation: Conversation) -> Iterator[Example]:
    """Return the questions of a chat with an assistant, without the names of speakers, as recall embeds them."""
    roles = {turn.id: turn.role == "assistant" for turn in conversation.turns}
    if sum(roles.values()) < LEAST_SHARE * len(roles):
        return
    names = frozenset(word for turn in conversation.turns for word in words_of(turn.speaker or ""))
    for question in conversation.questions:
        if question.turns and not question.apart:
            share = sum(roles[turn] for turn in question.turns) / len(question.turns)
            yield Example(source, conversation.id, without(question.text, names), share)


def fit(inputs: Floats, shares: Floats) -> Floats:
    """Return the weights of a logistic regression with a penalty; the last one is the constant."""
    penalty = np.eye(inputs.shape[1]) * RIDGE * len(shares)
    penalty[-1, -1] = 0
    weights = np.zeros(inputs.shape[1])
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-inputs @ weights))
        slope = inputs.T @ (likely - shares) + penalty @ weights
        curvature = (inputs * (likely * (1 - likely))[:, None]).T @ inputs + penalty
        weights = weights - np.linalg.solve(curvature, slope)
    return weights


def area(found: Floats, shares: Floats) -> float:
    """Return how often a question about the assistant's words has higher log-odds than another one."""
    ours, others = found[shares > 0.5], found[shares <= 0.5]  # noqa: PLR2004 - most of the evidence
    return round(float((ours[:, None] > others[None]).mean()), 3)


def save(weights: Floats, offset: float) -> None:
    """Write the weights, and their SHA-256 into the module that reads them."""
    file = BytesIO()
    pronouns = len(asked_role.pronouns(""))
    vector, rest = weights[: -pronouns - 1], weights[-pronouns - 1 : -1]
    np.savez_compressed(
        file, vector=vector.astype(np.float16), pronouns=rest.astype(np.float32), offset=np.float32(offset)
    )
    WEIGHTS.write_bytes(file.getvalue())
    module = MODULE.read_text(encoding="utf-8")
    digest = sha256(file.getvalue()).hexdigest()
    MODULE.write_text(re.sub(r'(?<=_WEIGHTS: Final = ")\w*', digest, module), encoding="utf-8")


def main() -> None:
    """Train, measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    datasets = [dataset for path in parser.parse_args().paths for dataset in load_datasets(path)]
    examples = [each for data in datasets for chat in data.conversations for each in examples_of(data.format, chat)]
    encoder, texts = load_encoder(), [example.text for example in examples]
    vectors = np.concatenate([encoder.encode(texts[start : start + 32]) for start in range(0, len(texts), 32)])
    read = np.array([asked_role.pronouns(text) for text in texts])
    inputs = np.concatenate([vectors, read, np.ones((len(texts), 1))], axis=1).astype(np.float64)
    shares = np.array([example.share for example in examples])
    tested = np.array([example.conversation in test_part() for example in examples])
    sources = np.array([example.source for example in examples])
    trained = (sources == OWN) & ~tested
    fold = np.array([int(sha256(each.conversation.encode()).hexdigest(), 16) % FOLDS for each in examples])
    found = np.zeros(len(examples))
    for part in range(FOLDS):
        rest, apart = trained & (fold != part), trained & (fold == part)
        found[apart] = inputs[apart] @ fit(inputs[rest], shares[rest])
    weights = fit(inputs[trained], shares[trained])
    found[~trained] = inputs[~trained] @ weights
    save(weights, float(weights[-1] - (inputs[trained] @ weights).mean()))
    groups = {"own, left out in turn": trained, "own, test part": (sources == OWN) & tested}
    groups |= {source: sources == source for source in dict.fromkeys(sources.tolist()) if source != OWN}
    figures = {
        name: {"questions": int(rows.sum()), "about the assistant": int((shares[rows] > 0.5).sum()),  # noqa: PLR2004
               "area under the curve": area(found[rows], shares[rows])}
        for name, rows in groups.items()
    }  # fmt: skip
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
