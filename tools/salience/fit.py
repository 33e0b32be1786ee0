"""Train the model that says what is worth remembering, and write its weights and figures.

    python tools/salience/fit.py

Everything is learned from bench/conversations without its test part. Figures are for conversations that were left out:
in five folds, and for the test part with the weights that are written. The vectors of all messages are computed once
(two minutes) and kept in .cache/; the training itself takes seconds. Nothing is random.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from changes import Statements, fitted, lowest_threshold, pairs_of, superseded
from common import encoded, write
from evaluation.memories.transcripts import FactTranscript, load_fact_transcripts
from linear import Floats, Inputs, Projection, linear, logistic
from numpy.typing import NDArray

from aforesaid.domain.checks import Kind
from aforesaid.domain.memory import KINDS
from aforesaid.models.salience import CHARACTERS, HEADS, RECENT, read_salience, relative_margin, text_features

ROOT = Path(__file__).parents[2]
CONVERSATIONS = ROOT / "bench" / "conversations"
VECTORS = ROOT / ".cache" / "salience-vectors.npz"
WEIGHTS = ROOT / "src" / "aforesaid" / "models" / "salience.npz"
MODULE = ROOT / "src" / "aforesaid" / "models" / "salience.py"
FIGURES = Path(__file__).with_name("figures.json")
FOLDS = 5
RIDGE = {"worth": 1.0, "importance": 30.0, "kind": 3.0, "instruction": 10.0, "alone": 10.0}
SHARE = 0.34
"""Share of the messages that are taken to be worth remembering. Of all messages, 34 % rest under a fact."""
NOT_ALONE = 0.15
"""Share of the messages worth remembering that are taken not to be understood alone."""
LIKELY_INSTRUCTION = -1.25
"""Log-odds from which a message to the assistant is taken to hold a standing instruction: three of four then do."""
KIND_OF: dict[str, Kind] = {
    "work": "fact",
    "health": "fact",
    "home": "fact",
    "finance": "fact",
    "other": "fact",
    "family": "relationship",
}
"""The kinds of the data that are no kinds of memories."""
KIND_SCALE = 1.5
"""Weight of the probabilities of kinds beside the other inputs of the importance."""
EXAMPLE_EVERY = 4
"""One fact in four is an example. With every second one, the average precision on conversations falls by 0.02."""
MANY = 100
"""Numbers in an array from which half precision is enough."""


class Data(NamedTuple):
    """The messages of people in all conversations, one row for each."""

    conversations: Sequence[FactTranscript]
    texts: Sequence[str]
    inputs: Inputs
    conversation: NDArray[np.int64]
    speaker: Sequence[str]
    turn: Sequence[str]
    worth: NDArray[np.bool_]
    importance: Floats
    kind: Sequence[str]
    to_assistant: NDArray[np.bool_]
    """Whether it was said in a conversation with an assistant."""
    instructs: NDArray[np.bool_]
    """Whether a standing instruction rests on it, perhaps beside other facts."""
    likeness: Floats
    """Cosine with an annotator's sentence about a fact in the message: low if the message needs those before it."""
    examples: Inputs
    """Every fourth fact in the words of its author: plain statements, which conversations have few of."""
    example_of: NDArray[np.int64]
    """The conversation of each."""

    def rows(self, wanted: Callable[[FactTranscript], bool]) -> NDArray[np.bool_]:
        """Return which rows belong to conversations."""
        return np.array([wanted(self.conversations[number]) for number in self.conversation])


def main() -> None:
    """Train, measure and write."""
    data = load()
    tested = set((CONVERSATIONS / "test-part.txt").read_text(encoding="utf-8").split())
    is_test = data.rows(lambda each: each.id in tested)
    fold = np.array([zlib.crc32(data.conversations[number].id.encode()) % FOLDS for number in data.conversation])
    parts = [((fold == number) & ~is_test, (fold != number) & ~is_test) for number in range(FOLDS)]
    parts.append((is_test, ~is_test))
    outputs = np.zeros((len(data.texts), HEADS))
    arrays: dict[str, Floats] = {}
    for left_out, learned in parts:
        # The last part is measured with the weights that are written.
        arrays = trained(data, learned)
        model = read_salience(packed(arrays))
        inputs = data.inputs.of(left_out)
        outputs[left_out] = model.outputs(inputs.vectors.astype(np.float32), inputs.features.astype(np.float32))
        outputs[left_out, -1] -= model.alone
        outputs[left_out, 0] = relative(model.usual, data, left_out, outputs[left_out, 0] - model.threshold)
    # What cannot be understood alone is mostly left out.
    kept = (outputs[:, 0] >= 0) & (outputs[:, -1] >= 0)
    statements = Statements(data.conversations, data.conversation, data.turn, data.texts, data.inputs.vectors, kept)
    pairs = pairs_of(statements)
    successions = []
    for left_out, learned in parts:
        changes = fitted(statements, pairs, learned)
        successions += superseded(changes, statements, pairs, left_out)
    tuned = [each for each in successions if not is_test[each.old]]
    threshold = lowest_threshold(statements, tuned)
    outdated = np.zeros(len(kept), bool)
    outdated[[each.old for each in successions if each.log_odds >= threshold]] = True
    arrays |= {name: getattr(changes, name).astype(np.float64) for name in ("new", "old", "pair")}
    arrays["pair_threshold"] = np.array(threshold)
    results = Results(outputs, kept & ~outdated, kept)
    figures = {
        "left out in five folds": measured(data, results, ~is_test),
        "test part": measured(data, results, is_test),
    }
    write(packed(arrays), WEIGHTS, MODULE, "_WEIGHTS", figures, FIGURES)


def load() -> Data:
    """Read the conversations and the vectors of their messages."""
    conversations = load_fact_transcripts(CONVERSATIONS)
    texts, owner, speakers, turns, worth, importance, kind = [], [], [], [], [], [], []
    for number, each in enumerate(conversations):
        best = {turn: fact for fact in sorted(each.facts, key=lambda fact: fact.importance) for turn in fact.turns}
        for turn in each.turns:
            if turn.role != "user":
                continue
            fact = best.get(turn.id)
            texts.append(turn.text[:CHARACTERS])
            owner.append(number)
            speakers.append(turn.speaker or "")
            turns.append(turn.id)
            worth.append(fact is not None)
            importance.append(0 if fact is None else fact.importance)
            kind.append("" if fact is None else KIND_OF.get(fact.kind, fact.kind))
    features = np.array([text_features(text) for text in texts], dtype=np.float64)
    facts = [(number, fact) for number, each in enumerate(conversations) for fact in each.facts]
    vectors = vectors_of([*texts, *(fact.text for _, fact in facts)])
    fact_vectors = vectors[len(texts) :]
    places = {place: row for row, place in enumerate(zip(owner, turns, strict=True))}
    instructing = {(number, turn) for number, fact in facts if fact.kind == "instruction" for turn in fact.turns}
    likeness = np.zeros(len(texts))
    for (number, fact), vector in zip(facts, fact_vectors, strict=True):
        for row in [places[number, turn] for turn in fact.turns if (number, turn) in places]:
            likeness[row] = max(likeness[row], vectors[row] @ vector)
    facts = facts[::EXAMPLE_EVERY]
    examples = np.array([text_features(fact.text) for _, fact in facts], dtype=np.float64)
    return Data(
        conversations,
        texts,
        Inputs(vectors[: len(texts)], features),
        np.array(owner),
        speakers,
        turns,
        np.array(worth),
        np.array(importance, np.float64),
        kind,
        np.array([conversations[number].kind == "assistant" for number in owner]),
        np.array([place in instructing for place in zip(owner, turns, strict=True)]),
        likeness,
        Inputs(fact_vectors[::EXAMPLE_EVERY], examples),
        np.array([number for number, _ in facts]),
    )


def vectors_of(texts: Sequence[str]) -> Floats:
    """Return the encoder's vectors, in half precision as stores keep them; from the cache if the texts are the same."""
    key = sha256("\0".join(texts).encode()).hexdigest()
    if VECTORS.exists():
        with np.load(VECTORS) as stored:
            if str(stored["key"]) == key:
                return np.asarray(stored["vectors"], dtype=np.float64)
    vectors = encoded(texts)
    VECTORS.parent.mkdir(exist_ok=True)
    np.savez_compressed(VECTORS, vectors=vectors.astype(np.float16), key=np.array(key))
    return vectors


def packed(arrays: dict[str, Floats]) -> bytes:
    """Return a file of weights, in half precision where there are many."""
    buffer = BytesIO()
    np.savez(
        buffer,
        **{  # type: ignore[arg-type] # arrays by name
            name: values.astype(np.float16 if len(np.atleast_1d(values)) >= MANY else np.float32)
            for name, values in arrays.items()
        },
    )
    return buffer.getvalue()


def trained(data: Data, rows: NDArray[np.bool_]) -> dict[str, Floats]:
    """Train on some rows. Return the weights by name."""
    inputs = data.inputs.of(rows)
    projection = Projection.fit(inputs)
    reduced, worth = projection.reduce(inputs), data.worth[rows]
    kinds = np.array(data.kind)[rows][worth]
    importance = data.importance[rows][worth]
    learned = np.isin(data.example_of, data.conversation[rows])
    examples = projection.reduce(data.examples.of(learned))
    wanted = np.append(worth, np.ones(len(examples), dtype=bool))
    heads = [logistic(np.vstack([reduced, examples]), wanted, RIDGE["worth"])]
    kind_heads = [logistic(reduced[worth], kinds == kind, RIDGE["kind"]) for kind in KINDS]
    kind_heads[KINDS.index("instruction")] = _instruction_head(reduced, data, rows)
    chances = np.stack([1 / (1 + np.exp(-(reduced[worth] @ head[:-1] + head[-1]))) for head in kind_heads], axis=1)
    guess = linear(np.hstack([KIND_SCALE * chances, reduced[worth]]), importance, RIDGE["importance"])
    guess = _stretched(guess, np.hstack([KIND_SCALE * chances, reduced[worth]]), importance)
    alone_head = linear(reduced[worth], data.likeness[rows][worth], RIDGE["alone"])
    expanded = [projection.expand(head) for head in (*heads, guess[len(KINDS) :], *kind_heads, alone_head)]
    values = {
        "vector": np.stack([vector for vector, _, _ in expanded], axis=1),
        "features": np.stack([features for _, features, _ in expanded], axis=1),
        "offset": np.array([offset for _, _, offset in expanded]),
        "kind_importance": KIND_SCALE * guess[: len(KINDS)],
    }
    log_odds = reduced @ heads[0][:-1] + heads[0][-1]
    usual = float(log_odds.mean())
    margins = relative(usual, data, rows, log_odds)
    threshold = np.quantile(margins, 1 - SHARE)
    likeness = reduced @ alone_head[:-1] + alone_head[-1]
    return {
        **values,
        "threshold": np.array(threshold),
        "usual": np.array(usual - threshold),
        "alone": np.quantile(likeness[margins >= threshold], NOT_ALONE),
    }


def _instruction_head(reduced: Floats, data: Data, rows: NDArray[np.bool_]) -> Floats:
    """Train what finds standing instructions, on what was said to assistants: elsewhere they are rules of people."""
    said = data.to_assistant[rows]
    head = logistic(reduced[said], data.instructs[rows][said], RIDGE["instruction"])
    head[-1] -= LIKELY_INSTRUCTION
    return head


def relative(usual: float, data: Data, rows: NDArray[np.bool_], margins: Floats) -> Floats:
    """Return margins of some rows as the product uses them: beside those of the same speaker's last messages."""
    recent: dict[tuple[int, str], deque[float]] = {}
    found = []
    for row, margin in zip(np.flatnonzero(rows).tolist(), margins.tolist(), strict=True):
        own = recent.setdefault((int(data.conversation[row]), data.speaker[row]), deque(maxlen=RECENT))
        own.append(margin)
        found.append(relative_margin(margin, own, usual))
    return np.array(found)


def _stretched(weights: Floats, rows: Floats, wanted: Floats) -> Floats:
    """Return weights whose outputs vary as much as the labels: regression alone keeps near the mean."""
    outputs = rows @ weights[:-1]
    stretched: Floats = weights * (wanted.std() / outputs.std())
    stretched[-1] = wanted.mean() - (rows @ stretched[:-1]).mean()
    return stretched


class Results(NamedTuple):
    """What the models say about each row."""

    outputs: Floats
    active: NDArray[np.bool_]
    """Worth remembering, and not superseded."""
    noticed: NDArray[np.bool_]
    """Worth remembering."""


def measured(data: Data, results: Results, rows: NDArray[np.bool_]) -> dict[str, object]:
    """Return the figures of some rows, whole and by language."""
    spoken = np.array([data.conversations[number].language for number in data.conversation])
    figures = _figures(data, results, rows)
    figures["languages"] = {
        language: _figures(data, results, rows & (spoken == language)) for language in sorted(set(spoken[rows]))
    }
    return figures


def _figures(data: Data, results: Results, rows: NDArray[np.bool_]) -> dict[str, object]:
    active, noticed, outputs = results.active & rows, results.noticed & rows, results.outputs
    labelled = rows & data.worth
    kinds = np.array(KINDS)[outputs[:, 2:-1].argmax(axis=1)]
    superseded = noticed & ~active
    return {
        "messages": int(rows.sum()),
        "worth remembering": int(labelled.sum()),
        "remembered": int(noticed.sum()),
        "coverage": _coverage(data, rows, active),
        "coverage without superseding": _coverage(data, rows, noticed),
        "precision": round(float(data.worth[active].mean()), 3),
        "average precision": round(_average_precision(data.worth[rows], outputs[rows, 0]), 3),
        "importance correlation": round(_rank_correlation(outputs[labelled, 1], data.importance[labelled]), 3),
        "likeness correlation": round(_rank_correlation(outputs[labelled, -1], data.likeness[labelled]), 3),
        "right kind": round(float((kinds == np.array(data.kind))[labelled].mean()), 3),
        "superseded": int(superseded.sum()),
        **_changes(data, rows, active, noticed),
    }


def _turns(data: Data, rows: NDArray[np.bool_]) -> dict[int, set[str]]:
    """Return the turns of some rows, by conversation."""
    found: dict[int, set[str]] = {}
    for row in np.flatnonzero(rows).tolist():
        found.setdefault(int(data.conversation[row]), set()).add(data.turn[row])
    return found


def _coverage(data: Data, rows: NDArray[np.bool_], active: NDArray[np.bool_]) -> float:
    covered = total = 0
    kept = _turns(data, active)
    for number in _turns(data, rows):
        each = data.conversations[number]
        lasting = [fact for place, fact in enumerate(each.facts) if place not in each.replaced]
        covered += sum(not kept.get(number, set()).isdisjoint(fact.turns) for fact in lasting)
        total += len(lasting)
    return round(covered / max(total, 1), 3)


def _changes(
    data: Data, rows: NDArray[np.bool_], active: NDArray[np.bool_], noticed: NDArray[np.bool_]
) -> dict[str, object]:
    """Return how many changes were noticed and settled, and how many superseded messages state a replaced fact."""
    seen, kept = _turns(data, noticed), _turns(data, active)
    settled = both = rightly = superseded = 0
    for number in _turns(data, rows):
        each = data.conversations[number]
        known, now = seen.get(number, set()), kept.get(number, set())
        replaced = {turn for place in each.replaced for turn in each.facts[place].turns}
        superseded += len(known - now)
        rightly += len((known - now) & replaced)
        for before, after in each.changes:
            old, new = each.facts[before].turns, each.facts[after].turns
            if not known.isdisjoint(old) and not known.isdisjoint(new):
                both += 1
                settled += now.isdisjoint(old) and not now.isdisjoint(new)
    return {
        "noticed changes": both,
        "changes": round(settled / max(both, 1), 3),
        "superseded rightly": round(rightly / max(superseded, 1), 3),
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
