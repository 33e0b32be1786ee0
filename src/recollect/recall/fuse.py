"""From features to one score."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Final, Literal

from recollect.recall.candidates import Candidates
from recollect.recall.features import FEATURES

Kind = Literal["people", "assistant"]

_ASSISTANT_SHARE: Final = 0.2
"""A chat in which the assistant has at least this part of the turns is one with an assistant."""


@cache
def weights(kind: Kind) -> dict[str, float]:
    """Return how much each feature counts in a kind of chat."""
    text = (files("recollect.recall") / "weights.toml").read_text(encoding="utf-8")
    return {name: float(weight) for name, weight in tomllib.loads(text)[kind].items()}


def kind_of(candidates: Candidates) -> Kind:
    """Tell whether people talk with one another or with an assistant.

    It matters: between people, answers are statements after questions. With an assistant, the user's turns are the
    questions, and the assistant's are long.
    """
    assistant = sum(turn.message.role == "assistant" for turn in candidates.turns)
    return "assistant" if assistant >= _ASSISTANT_SHARE * len(candidates.turns) else "people"


def fuse(candidates: Candidates) -> list[dict[str, float]]:
    """Return for each candidate what each feature adds to its score."""
    columns = {
        name: [weight * value for value in FEATURES[name](candidates)]
        for name, weight in weights(kind_of(candidates)).items()
        if weight
    }
    return [{name: column[row] for name, column in columns.items()} for row in range(len(candidates.turns))]
