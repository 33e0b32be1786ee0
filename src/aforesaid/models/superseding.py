"""Judges which older statements a new one makes outdated: "we moved to Kaluga" after "we live in Tula".

A linear model over the vectors that the built-in encoder gives both messages, what their words have in common, words
that announce a change, and the time between them. The weights come with the package, in one file with those of
`salience`. Plain statements ("I live in Leeds.") have weights of their own, because conversations have few of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from math import log
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aforesaid.domain.caches import holds_texts
from aforesaid.extras import np, re
from aforesaid.models.salience import text_features, weights
from aforesaid.models.weights import arrays, read_weights
from aforesaid.text.languages import count_change_words, terms
from aforesaid.text.sentences import is_question, length_in_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_MOST_SHARED: Final = 12.0
_FEW: Final = 3
_SAME_DAY: Final = 0.9
_PLAIN_HASH: Final = "bea1e85f9054cda0fdf007ca618a5e2041babba3893dc245351d32c89d69b394"
"""The SHA-256 of the weights for plain statements."""
_NUMBER: Final = re.compile(r"\d+")
_MOST_WORDS: Final = 14
"""Maximum words of a message that changes a plain statement. Of those trained on, 99 % have no more."""
RELATED: Final = 0.35
"""Least cosine of a plain statement with what makes it outdated. In matters left out of training, 59 of the 152
superseded statements below it had not changed, and 331 of the 1,256 above it."""
_PUNCTUATION: Final = ".,!?;:\"'()"
_MOST_CACHED: Final = 4_096
"""Statements whose words are cached: new ones are compared with the last 1,000 of a person again and again."""


class StatementWords(NamedTuple):
    """The words of a statement by which it is compared with others."""

    terms: frozenset[str]
    """Its index terms."""
    names: frozenset[str]
    """Its capitalised words, without the first word."""
    numbers: frozenset[str]
    changes: int
    """How many of its words announce a change."""


class Compared(NamedTuple):
    """How a new statement compares with older ones: an array with one number for each of them, oldest first."""

    similarity: Floats
    """Cosines of the vectors."""
    days: Floats
    """Days since the older one was said."""
    shared: Floats
    """The weight of the index terms that both have."""
    names: Floats
    """How many names both have."""
    numbers: Floats
    """0 if one of them names no number, 1 if both name others, 2 if both name the same one."""
    changes: int
    """How many words of the new statement announce a change."""


class SupersedingModel(NamedTuple):
    new: Floats
    """From the vector of a message to how likely it says that something changed; the offset is last."""
    old: Floats
    """From the vector of a message to how likely what it says changes later; the offset is last."""
    pair: Floats
    """From the properties of a pair to the log-odds that the new message makes the old one outdated; offset last."""
    threshold: float
    """Log-odds from which an older statement is superseded."""

    def changes_later(self, old: Floats) -> Floats:
        """Return how likely what each message says changes later. `old` has one row for the vector of each."""
        result: Floats = old @ self.old[:-1] + self.old[-1]
        return result

    def says_change(self, new: Floats) -> float:
        return float(new @ self.new[:-1] + self.new[-1])

    def margins(self, says_change: float, changes_later: Floats, compared: Compared) -> Floats:
        """Return the log-odds that a new statement makes each older one outdated, above the threshold.

        `changes_later` has one number for each older one. From a margin of 0 on, it is outdated.
        """
        rows = pair_features(compared, says_change, changes_later)
        result: Floats = rows @ self.pair[:-1] + (self.pair[-1] - self.threshold)
        return result


class PlainSupersedingModel(NamedTuple):
    """The trained weights for older statements that are plain."""

    model: SupersedingModel
    features: Floats
    """From the properties of a text that `salience` reads to how likely it says that something changed."""
    plain: Floats
    """From the vector of a remembered message to how likely it is a plain statement; the offset is last."""

    def says_change(self, text: str, vector: Floats) -> float:
        return self.model.says_change(vector) + float(self.features @ text_features(text))

    def are_plain(self, vectors: Floats) -> NDArray[np.bool_]:
        """Return which remembered messages are plain statements. `vectors` has one row for each."""
        result: NDArray[np.bool_] = vectors @ self.plain[:-1] + self.plain[-1] >= 0
        return result


def may_change_plainly(text: str) -> bool:
    """Return whether a message is as short as those that the weights for plain statements know, and no question."""
    return length_in_words(text) <= _MOST_WORDS and not is_question(text)


@cache
def load_superseding() -> SupersedingModel:
    """Load the weights. Raises ModelError if they are not the expected ones."""
    values = arrays(weights())
    return SupersedingModel(values["new"], values["old"], values["pair"], float(values["pair_threshold"]))


@cache
def load_plain_superseding() -> PlainSupersedingModel:
    """Load the weights for plain statements. Raises ModelError if they are not the expected ones."""
    values = arrays(read_weights("plain_changes.npz", _PLAIN_HASH))
    model = SupersedingModel(values["new"], values["old"], values["pair"], float(values["threshold"]))
    return PlainSupersedingModel(model, values["features"], values["plain"])


def pair_features(compared: Compared, says_change: float, changes_later: Any) -> Floats:  # noqa: ANN401 - an array
    """Return the properties of a new statement's pairs with all older ones, one row each.

    `says_change` says how likely the new message tells a change, `changes_later` how likely each old one changes.
    """
    similarity, shared, days = compared.similarity, compared.shared, compared.days
    place = np.argsort(np.argsort(-similarity, kind="stable"), kind="stable")
    word_place = np.argsort(np.argsort(-shared, kind="stable"), kind="stable")
    count = len(similarity)
    rows = np.empty((count, 25), dtype=np.float32)
    columns = (
        5 * similarity,
        5 * similarity**2,
        np.log1p(place),
        place == 0,
        place < _FEW,
        5 * (similarity.max() - similarity),
        np.log1p(days) / 2,
        days > _SAME_DAY,
        says_change / 2,
        changes_later / 2,
        similarity * says_change,
        similarity * changes_later,
        np.minimum(shared, _MOST_SHARED) / 3,
        np.log1p(word_place),
        word_place == 0,
        (shared.max() - shared) / 3,
        (similarity - similarity.mean()) / (similarity.std() + 1e-3),
        np.log1p(count - 1 - np.arange(count)) / 2,
        log(count) / 2,
        np.log1p(compared.changes),
        similarity * (5 * np.log1p(compared.changes)),
        np.minimum(compared.names, _FEW),
        compared.numbers > 0,
        compared.numbers > 1,
        says_change * changes_later / 4,
    )
    for number, column in enumerate(columns):
        rows[:, number] = column
    return rows


@holds_texts
@lru_cache(_MOST_CACHED)
def statement_words(text: str) -> StatementWords:
    capitalised = (word.strip(_PUNCTUATION) for word in text.split()[1:] if word[0].isupper())
    return StatementWords(
        frozenset(terms(text)), frozenset(capitalised), frozenset(_NUMBER.findall(text)), count_change_words(text)
    )


class OlderWords:
    """The words of older statements, by which a new one is compared with all of them at once."""

    def __init__(self, statements: Iterable[StatementWords] = ()) -> None:
        self._count = 0
        self._terms: dict[str, list[int]] = {}
        """The statements that have an index term, by their numbers."""
        self._names: dict[str, list[int]] = {}
        self._numbers: dict[str, list[int]] = {}
        self._with_numbers: list[int] = []
        for each in statements:
            self.add(each)

    def add(self, statement: StatementWords) -> None:
        for words, places in (
            (statement.terms, self._terms),
            (statement.names, self._names),
            (statement.numbers, self._numbers),
        ):
            for word in words:
                places.setdefault(word, []).append(self._count)
        if statement.numbers:
            self._with_numbers.append(self._count)
        self._count += 1

    def compare(self, similarity: Floats, days: Floats, new: StatementWords, chosen: Any = None) -> Compared:  # noqa: ANN401 - an array
        """Compare a new statement with older ones. Of the index terms that they share, rare ones weigh more.

        `chosen` has the numbers of the statements to compare with, if not all; `similarity` and `days` belong to them.
        """
        compared = np.ones(self._count, dtype=bool)
        if chosen is not None:
            compared[:] = False
            compared[chosen] = True
        number = int(compared.sum()) + 1
        shared, names, numbers = np.zeros((3, self._count), dtype=np.float32)
        for term in new.terms:
            if term in self._terms:
                having = np.array(self._terms[term])
                shared[having] += log(number / (int(compared[having].sum()) + 1))
        for name in new.names:
            names[self._names.get(name, [])] += 1
        if new.numbers:
            numbers[self._with_numbers] = 1
        for each in new.numbers:
            numbers[self._numbers.get(each, [])] = 2
        return Compared(similarity, days, shared[compared], names[compared], numbers[compared], new.changes)
