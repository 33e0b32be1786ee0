"""From features to one score."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Literal, get_args

from aforesaid.recall.candidates import Candidates
from aforesaid.recall.features import FEATURES, NEED_TEXT

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers

Kind = Literal["people", "assistant", "alone"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_ASSISTANT_SHARE: Final = 0.2
"""A chat in which the assistant has at least this part of the turns is one with an assistant."""


@cache
def weights(kind: Kind) -> dict[str, float]:
    """Return how much each feature counts in a kind of chat."""
    text = (files("aforesaid.recall") / "weights.toml").read_text(encoding="utf-8")
    return {name: float(weight) for name, weight in tomllib.loads(text)[kind].items()}


def kind_of(candidates: Candidates) -> Kind:
    """Return whether people talk with one another, or with an assistant, or one person alone keeps notes.

    It matters: between people, answers are statements after questions. With an assistant, the user's turns are the
    questions, and the assistant's are long. Where nobody answers, a session is about one thing.
    """
    columns, rows = candidates.columns, candidates.rows
    if len(rows) and columns.assistant[rows].mean() >= _ASSISTANT_SHARE:
        return "assistant"
    return "people" if len(set(columns.speaker[rows].tolist())) > 1 else "alone"


def fuse(candidates: Candidates, kind: Kind, *, textual: bool) -> dict[str, Numbers]:
    """Return what each feature adds to the candidates' scores: those that read texts, or those that do without."""
    return {
        name: weight * FEATURES[name](candidates)
        for name, weight in weights(kind).items()
        if (name in NEED_TEXT) == textual
    }
