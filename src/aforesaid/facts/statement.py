"""Compares statements: whether two say the same, contradict each other, or are unrelated."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from math import ceil
from typing import Final, NamedTuple

from aforesaid.domain.caches import holds_texts
from aforesaid.extras import re
from aforesaid.models.offline.memories.keys import Claim, claim_of, says_less
from aforesaid.text.languages import guess_language, stems, stop_words, vocabulary
from aforesaid.text.words import fold, words_of

_CACHED: Final = 10_000
"""Texts whose comparable parts are cached, about 30 MB.

What is learned is compared with all memories of a person. If they were more than the cache holds, each of them would be
parsed again for every batch.
"""
_ALIKE: Final = 0.8
_ENOUGH: Final = 3
"""Minimum words of a statement that counts as equal to one with one more word."""
_NUMBER: Final = re.compile(r"\d+")
_DENIAL: Final = re.compile(
    r"\b(?:not|no longer|never|hates?|dislikes?|doesn|don|didn|isn|aren|wasn|cannot|"
    r"(?:were|has|have|had|ca|wo|would|could|should)n t|nicht|kein\w*|nie|"
    r"hass\w*|pas|jamais|deteste\w*|nunca|odi[oa]|non|mai|nao|niet|geen|nooit|не|ни|никогда|ненавиж\w*)\b|[不没無]|讨厌|ない|嫌い|ません"
)
_HEDGE: Final = re.compile(
    r"\b(?:maybe|perhaps|might|possibly|probably|wish\w*|if only|imagin\w*|pretend\w*|consider(?:s|ed|ing)?|"
    r"thinking (?:of|about)|not sure|unsure|wonder(?:s|ed|ing)?|vielleicht|eventuell|moglicherweise|"
    r"wahrscheinlich|uberleg\w*|quizas?|tal vez|"
    r"a lo mejor|probablemente|peut etre|probablement|hesit\w*|forse|magari|probabilmente|talvez|quem sabe|"
    r"provavelmente|misschien|wellicht|waarschijnlijk|может быть|возможно|наверное|вероятно|byc moze|chyba|belki|"
    r"galiba|herhalde|ربما|शायद)\b|也许|可能|或许|大概|かもしれ|たぶん|多分|おそらく|아마|어쩌면|지도 몰라"
)
_NO: Final = re.compile(r"\bno\b")
"""Denies in English ("I have no children") and in Spanish; in Portuguese it means "in the"."""
_SINGLE: Final = frozenset({
    "name", "birthday", "age", "home", "work", "study", "marital", "diet", "favourite", "contact", "taste", "choice",
    "request",
})  # fmt: skip
"""Keys with one current value per person. Pets, allergies and origins, for example, can be several."""


class Statement(NamedTuple):
    """The comparable parts of a text."""

    words: frozenset[str]
    """The stems of its content words."""
    numbers: frozenset[str]
    denies: bool
    hedges: bool
    """Whether it says that something may be so, or is only wished for or thought about."""
    claim: Claim | None


@holds_texts
@lru_cache(_CACHED)
def statement(text: str, names: tuple[str, ...] = ()) -> Statement:
    """Return the comparable parts of a text, whose language `names` of the person do not decide. Cached."""
    language = guess_language(text, names=names)
    found = words_of(text)
    dull = stop_words(language) | vocabulary(language).dull
    content = [word for word in found if word not in dull] or found
    folded = re.sub(r"['’-]", " ", fold(text))
    denied = _DENIAL.search(folded) or (language in {"english", "spanish"} and _NO.search(folded))
    return Statement(
        frozenset(stems(content, language)),
        frozenset(_NUMBER.findall(text)),
        bool(denied),
        _HEDGE.search(folded) is not None,
        claim_of(text, names),
    )


def says_the_same(one: str, other: str, names: Collection[str] = ()) -> bool:
    """Return whether two texts say nearly the same about the same thing. Names of the person do not count as words."""
    if one == other:
        return True
    left, right = statement(one, tuple(names)), statement(other, tuple(names))
    if left.numbers != right.numbers or left.denies != right.denies:
        return False
    mine, others = left.claim, right.claim
    if mine is not None and others is not None and mine.key == others.key and None not in (mine.liked, others.liked):
        return mine.liked == others.liked
    called = name_stems(names)
    first, second = left.words - called, right.words - called
    if not first or not second:
        return first == second
    shared = first & second
    smaller, larger = sorted((len(first), len(second)))
    if len(shared) == smaller and larger - smaller <= 1 and smaller >= _ENOUGH:
        return True
    return len(shared) >= _ALIKE * len(first | second)


def least_shared(words: int) -> int:
    """Return how many words a statement of this many words shares at least with any that says the same by its words."""
    return max(1, min(words - 1, ceil(_ALIKE * words)))


def contradicts(new: str, old: str, names: tuple[str, ...] = ()) -> bool:
    """Return whether a new text excludes an old one about the same subject. `names` are those of the person."""
    mine, others = statement(new, names).claim, statement(old, names).claim
    if mine is None or others is None or mine.key != others.key or not single(mine.key):
        return False
    return not says_less(new, old, names) if mine.liked is None else mine.liked != others.liked


def single(key: str) -> bool:
    """Return whether a key allows only one current value, such as a home town."""
    return key.rpartition(": ")[2].split(" ")[0] in _SINGLE


def support(text: str, sources: Iterable[str], names: Collection[str] = ()) -> float:
    """Return the share of a text's words that occur in its sources, 0 to 1; 1 for a text without words."""
    words = statement(text, tuple(names)).words - name_stems(names)
    return len(words & stems_in(sources)) / len(words) if words else 1.0


def stems_in(sources: Iterable[str]) -> set[str]:
    """Return the stems of all words of some texts.

    The language is guessed per text: sources are longer than statements, so the guess is more reliable.
    """
    return {stem for source in sources for stem in stems(words_of(source), guess_language(source))}


def name_stems(names: Collection[str]) -> frozenset[str]:
    """Return the words of a person's names, as statements have them."""
    return _name_stems(tuple(names))


@holds_texts
@lru_cache(maxsize=256)
def _name_stems(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(stem for name in names for stem in stems(words_of(name), "english"))
