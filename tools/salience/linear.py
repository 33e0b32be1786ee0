"""Logistic and ridge regression in numpy, over vectors that are first reduced to their main directions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DIRECTIONS = 96
"""Directions of the vectors that are learned on. All 512 are no better on conversations left out, and take longer."""
_STEPS = 12
_ENOUGH = 1e-4


class Inputs(NamedTuple):
    """What a model reads: the vectors of messages and the properties of their texts."""

    vectors: Floats
    features: Floats

    def of(self, rows: NDArray[np.bool_]) -> Inputs:
        """Return some rows."""
        return Inputs(self.vectors[rows], self.features[rows])


class Projection(NamedTuple):
    """How inputs are centred and reduced before learning."""

    mean: Floats
    directions: Floats
    middle: Floats
    spread: Floats

    @classmethod
    def fit(cls, inputs: Inputs) -> Projection:
        """Return the main directions of vectors, and the mean and deviation of features."""
        mean = inputs.vectors.mean(axis=0)
        _, found = np.linalg.eigh(np.cov((inputs.vectors - mean).T))
        spread = inputs.features.std(axis=0) + 1e-6
        return cls(mean, found[:, ::-1][:, :DIRECTIONS] * 4, inputs.features.mean(axis=0), spread / 0.3)

    def reduce(self, inputs: Inputs) -> Floats:
        """Return the inputs as the rows that are learned on."""
        reduced = (inputs.vectors - self.mean) @ self.directions
        return np.hstack([reduced, (inputs.features - self.middle) / self.spread])

    def expand(self, weights: Floats) -> tuple[Floats, Floats, float]:
        """Return learned weights as weights of vectors and of features, and the offset."""
        count = self.directions.shape[1]
        vector, features = self.directions @ weights[:count], weights[count:-1] / self.spread
        return vector, features, float(weights[-1] - self.mean @ vector - self.middle @ features)


def logistic(rows: Floats, wanted: NDArray[np.bool_], ridge: float) -> Floats:
    """Return the weights of a logistic regression, the offset last. The same input gives the same weights."""
    rows = np.hstack([rows, np.ones((len(rows), 1))])
    weights, penalty = np.zeros(rows.shape[1]), np.full(rows.shape[1], ridge)
    penalty[-1] = 1e-6
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (chance - wanted) + penalty * weights
        scaled = rows * np.sqrt(chance * (1 - chance))[:, None]
        step = np.linalg.solve(scaled.T @ scaled + np.diag(penalty), slope)
        weights -= step
        if np.abs(step).max() < _ENOUGH:
            break
    return weights


def linear(rows: Floats, wanted: Floats, ridge: float) -> Floats:
    """Return the weights of a ridge regression, the offset last."""
    rows = np.hstack([rows, np.ones((len(rows), 1))])
    penalty = np.full(rows.shape[1], ridge)
    penalty[-1] = 0
    return np.linalg.solve(rows.T @ rows + np.diag(penalty), rows.T @ wanted).astype(np.float64)
