"""The background: cosines between a question and unrelated messages, to make similarities comparable across encoders.

Unrelated sentences have a cosine of 0.07 with one encoder and of 0.7 with another. So a cosine is measured in standard
deviations above the mean cosine of the question with the messages of the scope. If there are few messages, figures
measured in advance for the encoder are used too (`calibration.toml`). For an encoder without such figures a standard
deviation is assumed, so that nothing looks very similar in a memory of a few messages.
"""

from __future__ import annotations

import math
import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

_MESSAGES: Final = 30
"""The encoder's figures weigh as much as this many messages."""
_SPREAD: Final = 0.1
"""Assumed standard deviation of cosines between unrelated texts, for an encoder without figures."""
_LEAST: Final = 0.6
"""The deviation is at least this share of the encoder's."""
SAME: Final = 0.95
"""Minimum cosine of a message that repeats the question."""
MIDDLE: Final = 1.0
STEEPNESS: Final = 1.7
"""A cosine `MIDDLE` deviations above the background is a similarity of 0.5; 1.5 deviations are 0.7."""
_STEEPEST: Final = 700.0
"""Maximum exponent: the exponential function of a greater one overflows."""


@cache
def calibration() -> dict[str, Any]:
    """Return the figures of calibration.toml."""
    return tomllib.loads((files("aforesaid.recall") / "calibration.toml").read_text(encoding="utf-8"))


class Background(NamedTuple):
    """Mean and standard deviation of the cosine between a question and messages that do not answer it."""

    mean: float = 0.0
    deviation: float = 1.0

    @classmethod
    def of(cls, mean: float, deviation: float, messages: int, encoder: str) -> Background:
        """Combine the figures of this many messages with those of the encoder."""
        known = calibration()["encoders"].get(encoder, {"mean": mean, "deviation": _SPREAD})
        share = messages / (messages + _MESSAGES)
        variance = share * deviation**2 + (1 - share) * known["deviation"] ** 2
        # Messages that are much alike have hardly any deviation; small differences would look large.
        spread = max(math.sqrt(variance), _LEAST * known["deviation"])
        return cls(share * mean + (1 - share) * known["mean"], spread)

    @classmethod
    def usual(cls, mean: float, deviation: float, cosines: NDArray[np.float32], compared: int) -> Background:
        """Return mean and deviation of the compared messages without those that repeat the question.

        Their cosine says nothing about other messages: in a small memory, a question that was asked before would make
        its own answer look far away.
        """
        repeated = cosines[cosines >= SAME].astype(float)
        rest = compared - len(repeated)
        if not len(repeated) or rest <= 0:
            return cls(mean, deviation)
        usual = (compared * mean - float(repeated.sum())) / rest
        squares = (compared * (deviation**2 + mean**2) - float((repeated**2).sum())) / rest
        return cls(usual, math.sqrt(max(squares - usual**2, 0.0)))

    def standard(self, cosine: float) -> float:
        """Return a cosine as a number of standard deviations above the mean."""
        return (cosine - self.mean) / self.deviation

    def similarities(self, standards: Numbers) -> list[float | None]:
        """Return the similarities of values in standard deviations; None for exactly zero, which means not compared."""
        near = logistics(STEEPNESS * (standards - MIDDLE))
        return [value if compared else None for value, compared in zip(near, standards.tolist(), strict=True)]


def similarity(standard: float) -> float:
    """Return the similarity, 0 to 1, of a value in standard deviations above the background.

    Answers to an ordinary question are above 0.7, other messages below.
    """
    return logistic(STEEPNESS * (standard - MIDDLE))


def logistics(values: Numbers) -> list[float]:
    """Return the logistic function of many values. Vectorised: a loop would take most of the time of a small search."""
    import numpy as np  # noqa: PLC0415 - loaded with the first search

    result: list[float] = (1 / (1 + np.exp(-np.clip(values, -_STEEPEST, _STEEPEST)))).tolist()
    return result


def logistic(value: float) -> float:
    """Return 1 / (1 + exp(-value)) without overflow."""
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))
