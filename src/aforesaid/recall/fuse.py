"""Weights the features by the kind of chat."""

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
"""Minimum share of the assistant's turns in a chat with an assistant."""


@cache
def weights(kind: Kind) -> dict[str, float]:
    """Return the weight of each feature for a kind of chat."""
    text = (files("aforesaid.recall") / "weights.toml").read_text(encoding="utf-8")
    return {name: float(weight) for name, weight in tomllib.loads(text)[kind].items()}


def kind_of(candidates: Candidates) -> Kind:
    """Return the kind of chat: between people, with an assistant, or one person alone.

    The weights differ: between people, statements follow questions. With an assistant, the user asks and the replies
    are long. Alone, a session has one topic.
    """
    columns, rows = candidates.columns, candidates.rows
    if len(rows) and columns.assistant[rows].mean() >= _ASSISTANT_SHARE:
        return "assistant"
    return "people" if len(set(columns.speaker[rows].tolist())) > 1 else "alone"


def fuse(candidates: Candidates, kind: Kind, *, textual: bool) -> dict[str, Numbers]:
    """Return the weighted values of the features that read texts (`textual`), or of the others."""
    return {
        name: weight * FEATURES[name](candidates)
        for name, weight in weights(kind).items()
        if (name in NEED_TEXT) == textual
    }
