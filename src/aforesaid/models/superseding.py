"""Judges which older statements a new one makes outdated: "we moved to Kaluga" after "we live in Tula".

A linear model over the vectors that the built-in encoder gives both messages, the words that they share and the time
between them. The weights come with the package, in one file with those of `salience`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from math import log
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aforesaid.models.salience import arrays, weights

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_MOST_SHARED: Final = 12.0
_FEW: Final = 3
_SAME_DAY: Final = 0.9


class SupersedingModel(NamedTuple):
    """The trained weights."""

    new: Floats
    """From the vector of a message to how likely it says that something changed; the offset is last."""
    old: Floats
    """From the vector of a message to how likely what it says changes later; the offset is last."""
    pair: Floats
    """From the properties of a pair to the log-odds that the new message makes the old one outdated; offset last."""
    threshold: float
    """Log-odds from which an older statement is superseded."""

    def log_odds(self, new: Floats, old: Floats, days: Floats, shared: Floats) -> Floats:
        """Return the log-odds that a new statement makes each older one outdated.

        `new` is a vector, `old` has one row for each older statement, oldest first, `days` the days since each was
        said, and `shared` the weight of the words that each shares with the new one.
        """
        rows = pair_features(
            old @ new, days, shared, float(new @ self.new[:-1] + self.new[-1]), old @ self.old[:-1] + self.old[-1]
        )
        result: Floats = rows @ self.pair[:-1] + self.pair[-1]
        return result

    def outdated(self, new: Floats, old: Floats, days: Floats, shared: Floats) -> int | None:
        """Return the row of the older statement that a new one makes outdated, or None."""
        if not len(old):
            return None
        found = self.log_odds(new, old, days, shared)
        best = int(found.argmax())
        return best if found[best] >= self.threshold else None


@cache
def load_superseding() -> SupersedingModel:
    """Load the weights. Raises ModelError if they are not the expected ones."""
    return read_superseding(weights())


def read_superseding(data: bytes) -> SupersedingModel:
    """Return the model that a file of weights holds."""
    values = arrays(data)
    return SupersedingModel(values["new"], values["old"], values["pair"], float(values["pair_threshold"]))


def pair_features(similarity: Any, days: Any, shared: Any, new: float, old: Any) -> Floats:  # noqa: ANN401 - arrays
    """Return the properties of a new statement's pairs with all older ones, one row each, oldest first.

    `new` and `old` say how likely the new message tells a change, and how likely what each old one says changes.
    """
    import numpy as np  # noqa: PLC0415 - loaded with the first vector

    place = np.argsort(np.argsort(-similarity, kind="stable"), kind="stable")
    word_place = np.argsort(np.argsort(-shared, kind="stable"), kind="stable")
    count = len(similarity)
    columns = (
        5 * similarity,
        5 * similarity**2,
        np.log1p(place),
        place == 0,
        place < _FEW,
        5 * (similarity.max() - similarity),
        np.log1p(days) / 2,
        days > _SAME_DAY,
        np.full(count, new / 2),
        old / 2,
        similarity * new,
        similarity * old,
        np.minimum(shared, _MOST_SHARED) / 3,
        np.log1p(word_place),
        word_place == 0,
        (shared.max() - shared) / 3,
        (similarity - similarity.mean()) / (similarity.std() + 1e-3),
        np.log1p(count - 1 - np.arange(count)) / 2,
        np.full(count, np.log(count) / 2),
    )
    return np.stack(columns, axis=1).astype(np.float32)


def shared_weights(new: Collection[str], old: Sequence[Collection[str]]) -> list[float]:
    """Return the weight of the index terms that a new statement shares with each older one; rare terms weigh more."""
    number = len(old) + 1
    frequency = Counter(term for terms in (new, *old) for term in set(terms))
    wanted = set(new)
    return [sum(log(number / frequency[term]) for term in wanted.intersection(terms)) for terms in old]
