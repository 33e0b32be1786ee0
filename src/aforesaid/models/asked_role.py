"""Guesses whether a question, such as "What did you recommend?", is about what the assistant said.

A linear model over the vector that the built-in encoder gives the question, and over its personal pronouns. The weights
come with the package; tools/ranker/asked_role.py trains them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.extras import np
from aforesaid.models.weights import arrays, read_weights
from aforesaid.text.languages import guess_language, vocabulary, word_finder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_WEIGHTS: Final = "1c037c74a030f3109e9af9dffdc7ea3829c09e6533a5ca2c13b4387e6992dc68"
"""The SHA-256 of the weights."""
_PRESENT: Final = 0.5
"""The value of a pronoun that is there. Small, so that the penalty on large weights lets pronouns count less."""
_LEAST: Final = -1.0
_MOST: Final = 2.0
"""Bounds of the log-odds: a request to the assistant ("Can you help me?") looks like such a question, too."""


class RoleModel(NamedTuple):
    vector: Floats
    pronouns: Floats
    offset: float
    """Added to the log-odds, so that an average question has none."""

    def log_odds(self, question: str, vector: Floats) -> float:
        """Return the log-odds that the assistant said the answer, above those of an average question."""
        found = vector @ self.vector + pronouns(question) @ self.pronouns
        return min(max(float(found) + self.offset, _LEAST), _MOST)


def pronouns(question: str) -> Floats:
    """Return whether a question has second person pronouns, first person ones, both, or only the second."""
    language = guess_language(question)
    lists, has = vocabulary(language), word_finder(question, language)
    second, first = has(lists.second_person), has(lists.first_person)
    return _PRESENT * np.array([second, first, second and first, second and not first], dtype=np.float32)


@cache
def load_role_model() -> RoleModel:
    """Load the model. Raises ModelError if its weights are not the expected ones."""
    values = arrays(read_weights("asked_role.npz", _WEIGHTS))
    return RoleModel(values["vector"], values["pronouns"], float(values["offset"]))
