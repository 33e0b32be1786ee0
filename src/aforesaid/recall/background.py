"""How near in meaning unrelated messages are, so that a cosine means the same with every encoder.

Encoders differ: unrelated sentences have a cosine of 0.07 with one and of 0.7 with another. So a cosine is measured in
standard deviations above what is usual between the question and the messages of the scope. A few messages show little
of what is usual: there, figures measured beforehand for the encoder count (`calibration.toml`). Of an encoder without
such figures only the spread is assumed, so that in a memory of a few messages nothing looks very near.
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
"""The encoder's own figures count as much as this many messages."""
_SPREAD: Final = 0.1
"""The standard deviation between unrelated texts that is assumed of an encoder without figures."""
MIDDLE: Final = 1.0
STEEPNESS: Final = 1.7
"""A message this many deviations above the background has similarity 0.5; 1.5 deviations above it, 0.7."""
_STEEPEST: Final = 700.0
"""The exponential function of a greater number overflows."""


@cache
def calibration() -> dict[str, Any]:
    """Return the fitted figures."""
    return tomllib.loads((files("aforesaid.recall") / "calibration.toml").read_text(encoding="utf-8"))


class Background(NamedTuple):
    """Mean and standard deviation of the cosine between a question and messages that do not answer it."""

    mean: float = 0.0
    deviation: float = 1.0

    @classmethod
    def of(cls, mean: float, deviation: float, messages: int, encoder: str) -> Background:
        """Combine what this many messages show with what is known about the encoder."""
        known = calibration()["encoders"].get(encoder, {"mean": mean, "deviation": _SPREAD})
        share = messages / (messages + _MESSAGES)
        variance = share * deviation**2 + (1 - share) * known["deviation"] ** 2
        return cls(share * mean + (1 - share) * known["mean"], math.sqrt(variance))

    def standard(self, cosine: float) -> float:
        """Return a cosine as a number of standard deviations above the mean."""
        return (cosine - self.mean) / self.deviation

    def similarities(self, standards: Numbers) -> list[float | None]:
        """Return calibrated similarities of numbers of standard deviations. Exactly zero means: not compared."""
        near = logistics(STEEPNESS * (standards - MIDDLE))
        return [value if compared else None for value, compared in zip(near, standards.tolist(), strict=True)]


def similarity(standard: float) -> float:
    """Return how near in meaning something is, 0 to 1, from its distance to the background.

    0.7 has the meaning that thresholds give it: what answers an ordinary question is above it, what does not is below.
    """
    return logistic(STEEPNESS * (standard - MIDDLE))


def logistics(values: Numbers) -> list[float]:
    """Return the logistic function of all values at once: one by one takes most of the time of a small search."""
    import numpy as np  # noqa: PLC0415 - loaded with the first search

    result: list[float] = (1 / (1 + np.exp(-np.clip(values, -_STEEPEST, _STEEPEST)))).tolist()
    return result


def logistic(value: float) -> float:
    """Return 1 / (1 + exp(-value)) without overflow."""
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))
