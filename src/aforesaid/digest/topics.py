"""Detects changes of topic.

Where the topic changes, what is said after differs in meaning from what was said before, on average over a few
messages: single messages differ anyway. The two sides of a place are compared; it is a change of topic where their
distance is above a threshold and higher than at its neighbours. `docs/explanation/summaries.md` says how well it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class TopicRules:
    """Parameters of topic detection, fitted to labelled conversations."""

    before: int = 8
    """Number of messages before a position that are compared with those after it."""
    after: int = 8
    """Number of messages after a position that are compared with those before it."""
    least: int = 6
    """Minimum number of messages on each side."""
    threshold: float = 0.6


RULES: Final = TopicRules()


def changes(seqs: Sequence[int], vectors: Mapping[int, bytes], rules: TopicRules = RULES) -> list[int]:
    """Return the indexes of messages before which the topic changes.

    Only places with enough messages on both sides are looked at. Messages without a vector are left out.
    """
    known = [(place, vectors[seq]) for place, seq in enumerate(seqs) if seq in vectors]
    if len(known) < 2 * rules.least:
        return []
    import numpy as np  # noqa: PLC0415 - loaded with the first vectors

    matrix = np.frombuffer(b"".join(value for _, value in known), dtype=np.float16).reshape(len(known), -1)
    found = distances(matrix.astype(np.float32), rules)
    return [known[place][0] for place in _peaks(found, rules)]


def distances(matrix: NDArray[np.float32], rules: TopicRules = RULES) -> dict[int, float]:
    """Return the difference between the two sides of each position, from 0 (equal) upwards."""
    import numpy as np  # noqa: PLC0415

    found = {}
    for place in range(rules.least, len(matrix) - rules.least + 1):
        before = matrix[max(0, place - rules.before) : place].mean(axis=0)
        after = matrix[place : place + rules.after].mean(axis=0)
        length = float(np.linalg.norm(before) * np.linalg.norm(after)) or 1.0
        found[place] = 1.0 - float(before @ after) / length
    return found


def _peaks(found: Mapping[int, float], rules: TopicRules) -> list[int]:
    """Return the positions above the threshold that are local maxima."""
    peaks = []
    for place, distance in found.items():
        near = [found[other] for other in range(place - rules.least, place + rules.least + 1) if other in found]
        if distance >= rules.threshold and distance == max(near):
            peaks.append(place)
    return peaks
