"""Train the model that recognises short plain statements ("I live in Leeds."), and write its weights and figures.

    python tools/salience/plain.py

It learns from plain_statements.txt, and from the short messages in bench/conversations that no fact rests on, without
its test part. The threshold is chosen on languages that were left out. Most statements are in the list in several
languages, so what is measured on it is too good; tests/facts/plain_held_out.py has others, about other matters, on
which the figures rest. Encoding takes about two minutes, the training seconds. Nothing is random.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import encoded, write
from linear import Floats, Inputs, Projection, logistic
from numpy.typing import NDArray

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from evaluation.memories.transcripts import load_fact_transcripts  # noqa: E402
from fit import CONVERSATIONS, MODULE, packed  # noqa: E402

from aforesaid.models.salience import PLAIN_WORDS, text_features  # noqa: E402
from aforesaid.text.sentences import length_in_words  # noqa: E402
from facts.plain_held_out import FLEETING, PLAIN  # noqa: E402 - found by the path above

STATEMENTS = Path(__file__).with_name("plain_statements.txt")
FIGURES = Path(__file__).with_name("plain_figures.json")
WEIGHTS = ROOT / "src" / "aforesaid" / "models" / "plain.npz"
RIDGE = 10.0
TIMES = 3
"""How often a statement of the list counts beside a message of a conversation. There are many more of those. This and
the ridge keep most statements of left out languages, with at most one in a hundred of the messages."""
FALSE = 0.005
"""Share of the statements not worth remembering, in languages left out, that the threshold lets through."""


class Line(NamedTuple):
    """A short text, its language, whether it is worth remembering, and where it comes from."""

    text: str
    language: str
    worth: bool
    source: str


class Data(NamedTuple):
    """Short texts, one row for each."""

    inputs: Inputs
    language: NDArray[np.str_]
    worth: NDArray[np.bool_]
    source: NDArray[np.str_]


def main() -> None:
    """Train, measure and write."""
    data = read([*listed(), *held_out(), *short_messages()])
    learned = (data.source == "list") | ((data.source == "conversation") & ~data.worth)
    left_out = np.full(len(data.worth), -np.inf)
    for language in sorted(set(data.language[learned])):
        spoken = data.language == language
        weights = trained(data, learned & ~spoken)
        left_out[spoken] = scores(data.inputs.of(spoken), *weights)
    threshold = float(np.quantile(left_out[(data.source == "list") & ~data.worth], 1 - FALSE))
    vector, features, offset = trained(data, learned)
    final = scores(data.inputs, vector, features, offset)
    figures = {
        "list, language left out": shares(data, "list", left_out >= threshold),
        "conversations, language left out": shares(data, "conversation", left_out >= threshold),
        "held out": shares(data, "held out", final >= threshold),
        "conversations of the test part": shares(data, "test part", final >= threshold),
    }
    packed_weights = packed({"vector": vector, "features": features, "offset": np.array(offset - threshold)})
    write(packed_weights, WEIGHTS, MODULE, "_PLAIN_HASH", figures, FIGURES)


def listed() -> list[Line]:
    """Return the statements of the list."""
    found, language = [], ""
    for line in STATEMENTS.read_text(encoding="utf-8").splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "==":
            language = rest
        elif mark in {"+", "-"}:
            found.append(Line(rest, language, mark == "+", "list"))
    return found


def held_out() -> list[Line]:
    """Return the statements that nothing is trained on."""

    def lines(texts: Mapping[str, Sequence[str]], *, worth: bool) -> list[Line]:
        return [Line(text, language, worth, "held out") for language, own in texts.items() for text in own]

    return [*lines(PLAIN, worth=True), *lines(FLEETING, worth=False)]


def short_messages() -> list[Line]:
    """Return the short messages of people in all conversations."""
    tested = set((CONVERSATIONS / "test-part.txt").read_text(encoding="utf-8").split())
    found = []
    for each in load_fact_transcripts(CONVERSATIONS):
        telling = {turn for fact in each.facts for turn in fact.turns}
        source = "test part" if each.id in tested else "conversation"
        found += [
            Line(turn.text, each.id.split("-")[0], turn.id in telling, source)
            for turn in each.turns
            if turn.role == "user" and length_in_words(turn.text) <= PLAIN_WORDS
        ]
    return found


def read(lines: Sequence[Line]) -> Data:
    """Return lines with the encoder's vectors and the properties of their texts."""
    texts = [line.text for line in lines]
    return Data(
        Inputs(
            encoded(texts),
            np.array([text_features(text) for text in texts], dtype=np.float64),
        ),
        np.array([line.language for line in lines]),
        np.array([line.worth for line in lines]),
        np.array([line.source for line in lines]),
    )


def trained(data: Data, rows: NDArray[np.bool_]) -> tuple[Floats, Floats, float]:
    """Train on some rows. Return the weights of vectors and of features, and the offset."""
    places = np.flatnonzero(rows)
    places = np.concatenate([places, *[places[data.source[places] == "list"]] * (TIMES - 1)])
    inputs = Inputs(data.inputs.vectors[places], data.inputs.features[places])
    projection = Projection.fit(inputs)
    return projection.expand(logistic(projection.reduce(inputs), data.worth[places], RIDGE))


def scores(inputs: Inputs, vector: Floats, features: Floats, offset: float) -> Floats:
    """Return the log-odds of rows."""
    found: Floats = inputs.vectors @ vector + inputs.features @ features + offset
    return found


def shares(data: Data, source: str, taken: NDArray[np.bool_]) -> dict[str, float]:
    """Return how many lines of a source there are, and which shares are taken for plain statements."""
    rows = data.source == source
    kept, wrong = taken[rows & data.worth], taken[rows & ~data.worth]
    return {
        "worth remembering": len(kept),
        "remembered": round(float(kept.mean()), 3),
        "not worth remembering": len(wrong),
        "remembered wrongly": round(float(wrong.mean()), 3),
    }


if __name__ == "__main__":
    main()
