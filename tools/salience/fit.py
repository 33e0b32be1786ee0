"""Train the model that says what is worth remembering, and write its weights and figures.

    python tools/salience/fit.py

Everything is learned from bench/conversations without its test part. Figures are for conversations that were left out:
in five folds, and for the test part with the weights that are written. The vectors of all messages are computed once
(two minutes) and kept in .cache/; the training itself takes seconds. Nothing is random.
"""

from __future__ import annotations

import json
import re
import sys
import zlib
from collections.abc import Callable, Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from linear import Floats, Inputs, Projection, linear, logistic
from numpy.typing import NDArray

from aforesaid.evaluation.memories.transcripts import FactTranscript, load_fact_transcripts
from aforesaid.models.embed.local import load_encoder
from aforesaid.models.salience import CHARACTERS, KINDS, Kind, SalienceModel, read_salience, text_features

ROOT = Path(__file__).parents[2]
CONVERSATIONS = ROOT / "bench" / "conversations"
VECTORS = ROOT / ".cache" / "salience-vectors.npz"
WEIGHTS = ROOT / "src" / "aforesaid" / "models" / "salience.npz"
MODULE = ROOT / "src" / "aforesaid" / "models" / "salience.py"
FIGURES = Path(__file__).with_name("figures.json")
FOLDS = 5
RIDGE = {"worth": 1.0, "importance": 30.0, "kind": 3.0}
SHARE = 0.36
"""Share of the messages that are taken to be worth remembering. Of all messages, 34 % rest under a fact."""
KIND_OF: dict[str, Kind] = {
    "work": "fact",
    "health": "fact",
    "home": "fact",
    "finance": "fact",
    "other": "fact",
    "family": "relationship",
}
"""The kinds of the data that are no kinds of memories."""
_BATCH = 32


class Data(NamedTuple):
    """The messages of people in all conversations, one row for each."""

    conversations: Sequence[FactTranscript]
    texts: Sequence[str]
    inputs: Inputs
    conversation: NDArray[np.int64]
    turn: Sequence[str]
    worth: NDArray[np.bool_]
    importance: Floats
    kind: Sequence[str]

    def rows(self, wanted: Callable[[FactTranscript], bool]) -> NDArray[np.bool_]:
        """Return which rows belong to conversations."""
        return np.array([wanted(self.conversations[number]) for number in self.conversation])


def main() -> None:
    """Train, measure and write."""
    data = load()
    tested = set((CONVERSATIONS / "test-part.txt").read_text(encoding="utf-8").split())
    is_test = data.rows(lambda each: each.id in tested)
    fold = np.array([zlib.crc32(data.conversations[number].id.encode()) % FOLDS for number in data.conversation])
    outputs = np.zeros((len(data.texts), 2 + len(KINDS)))
    thresholds = []
    for number in range(FOLDS):
        left_out = (fold == number) & ~is_test
        model = read_salience(trained(data, ~left_out & ~is_test))
        outputs[left_out] = judged(model, data, left_out)
        thresholds.append(model.threshold)
    weights = trained(data, ~is_test)
    shipped = read_salience(weights)
    outputs[is_test] = judged(shipped, data, is_test)
    figures = {
        "left out in five folds": measured(data, outputs, ~is_test, float(np.mean(thresholds))),
        "test part": measured(data, outputs, is_test, shipped.threshold),
    }
    WEIGHTS.write_bytes(weights)
    digest = sha256(weights).hexdigest()
    module = re.sub(r'(_WEIGHTS: Final = )"\w+"', rf'\1"{digest}"', MODULE.read_text(encoding="utf-8"))
    MODULE.write_text(module, encoding="utf-8")
    FIGURES.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    json.dump(figures, sys.stdout, indent=1)


def load() -> Data:
    """Read the conversations and the vectors of their messages."""
    conversations = load_fact_transcripts(CONVERSATIONS)
    texts, owner, turns, worth, importance, kind = [], [], [], [], [], []
    for number, each in enumerate(conversations):
        best = {turn: fact for fact in sorted(each.facts, key=lambda fact: fact.importance) for turn in fact.turns}
        for turn in each.turns:
            if turn.role != "user":
                continue
            fact = best.get(turn.id)
            texts.append(turn.text[:CHARACTERS])
            owner.append(number)
            turns.append(turn.id)
            worth.append(fact is not None)
            importance.append(0 if fact is None else fact.importance)
            kind.append("" if fact is None else KIND_OF.get(fact.kind, fact.kind))
    features = np.array([text_features(text) for text in texts], dtype=np.float64)
    inputs = Inputs(vectors_of(texts), features)
    return Data(
        conversations, texts, inputs, np.array(owner), turns, np.array(worth), np.array(importance, np.float64), kind
    )


def vectors_of(texts: Sequence[str]) -> Floats:
    """Return the encoder's vectors, in half precision as stores keep them; from the cache if the texts are the same."""
    key = sha256("\0".join(texts).encode()).hexdigest()
    if VECTORS.exists():
        with np.load(VECTORS) as stored:
            if str(stored["key"]) == key:
                return np.asarray(stored["vectors"], dtype=np.float64)
    encoder = load_encoder()
    made = [encoder.encode(list(texts[start : start + _BATCH])) for start in range(0, len(texts), _BATCH)]
    vectors = np.concatenate(made).astype(np.float16)
    VECTORS.parent.mkdir(exist_ok=True)
    np.savez_compressed(VECTORS, vectors=vectors, key=np.array(key))
    return vectors.astype(np.float64)


def trained(data: Data, rows: NDArray[np.bool_]) -> bytes:
    """Train on some rows. Return the file of weights."""
    inputs = data.inputs.of(rows)
    projection = Projection.fit(inputs)
    reduced, worth = projection.reduce(inputs), data.worth[rows]
    kinds = np.array(data.kind)[rows][worth]
    importance = data.importance[rows][worth]
    heads = [logistic(reduced, worth, RIDGE["worth"])]
    guess = linear(reduced[worth], importance, RIDGE["importance"])
    heads.append(_stretched(guess, reduced[worth], importance))
    heads += [logistic(reduced[worth], kinds == kind, RIDGE["kind"]) for kind in KINDS]
    expanded = [projection.expand(head) for head in heads]
    threshold = np.quantile(reduced @ heads[0][:-1] + heads[0][-1], 1 - SHARE)
    buffer = BytesIO()
    np.savez(
        buffer,
        vector=np.stack([vector for vector, _, _ in expanded], axis=1).astype(np.float16),
        features=np.stack([features for _, features, _ in expanded], axis=1).astype(np.float32),
        offset=np.array([offset for _, _, offset in expanded], dtype=np.float32),
        threshold=np.array(threshold, dtype=np.float32),
    )
    return buffer.getvalue()


def _stretched(weights: Floats, rows: Floats, wanted: Floats) -> Floats:
    """Return weights whose outputs vary as much as the labels: regression alone keeps near the mean."""
    outputs = rows @ weights[:-1]
    stretched: Floats = weights * (wanted.std() / outputs.std())
    stretched[-1] = wanted.mean() - (rows @ stretched[:-1]).mean()
    return stretched


def judged(model: SalienceModel, data: Data, rows: NDArray[np.bool_]) -> Floats:
    """Return the outputs of a model."""
    inputs = data.inputs.of(rows)
    result: Floats = inputs.vectors @ model.vector + inputs.features @ model.features + model.offset
    return result


def measured(data: Data, outputs: Floats, rows: NDArray[np.bool_], threshold: float) -> dict[str, object]:
    """Return the figures of some rows, whole and by language."""
    figures: dict[str, object] = _figures(data, outputs, rows, threshold)
    languages = sorted({data.conversations[number].language for number in data.conversation[rows]})
    spoken = np.array([data.conversations[number].language for number in data.conversation])
    figures["languages"] = {
        language: _figures(data, outputs, rows & (spoken == language), threshold) for language in languages
    }
    return figures


def _figures(data: Data, outputs: Floats, rows: NDArray[np.bool_], threshold: float) -> dict[str, object]:
    found = rows & (outputs[:, 0] >= threshold)
    covered = total = 0
    for number in sorted(set(data.conversation[rows].tolist())):
        each = data.conversations[number]
        kept = {data.turn[row] for row in np.flatnonzero(found & (data.conversation == number)).tolist()}
        lasting = [fact for place, fact in enumerate(each.facts) if place not in each.replaced]
        covered += sum(not kept.isdisjoint(fact.turns) for fact in lasting)
        total += len(lasting)
    labelled = rows & data.worth
    kinds = np.array(KINDS)[outputs[:, 2:].argmax(axis=1)]
    return {
        "messages": int(rows.sum()),
        "worth remembering": int(labelled.sum()),
        "coverage": round(covered / max(total, 1), 3),
        "precision": round(float(data.worth[found].mean()), 3),
        "average precision": round(_average_precision(data.worth[rows], outputs[rows, 0]), 3),
        "importance correlation": round(_rank_correlation(outputs[labelled, 1], data.importance[labelled]), 3),
        "right kind": round(float((kinds == np.array(data.kind))[labelled].mean()), 3),
    }


def _average_precision(wanted: NDArray[np.bool_], scores: Floats) -> float:
    hits = wanted[np.argsort(-scores, kind="stable")]
    return float((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits].mean())


def _rank_correlation(one: Floats, other: Floats) -> float:
    """Return Spearman's correlation; equal values share their mean rank."""

    def ranks(values: Floats) -> Floats:
        _, place, count = np.unique(values, return_inverse=True, return_counts=True)
        mean: Floats = np.cumsum(count) - (count - 1) / 2
        return mean[place]

    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


if __name__ == "__main__":
    main()
