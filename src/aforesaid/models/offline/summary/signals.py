"""The value of a sentence, from its words and its kind.

Each number is a factor on the value of a word or a sentence, fitted to public conversations with known summaries
(`bench/eval.py summaries`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from math import exp, log
from typing import Final, NamedTuple

from aforesaid.text.languages import guess_language, stems, stop_words
from aforesaid.text.sentences import is_question, length_in_words, without_hesitation, without_opener
from aforesaid.text.vocabulary import Vocabulary, vocabulary
from aforesaid.text.words import UNSPACED_LANGUAGES, UNSPACED_LETTERS, fold, words_of

# Words.
_REPEATED: Final = 0.51
_NUMBER: Final = 2.44
_NAMED: Final = 2.37
_SPEAKER: Final = 1.8
_SMALL_TALK: Final = 0.054
_DULL: Final = 0.38
_PER_LETTER: Final = 0.031
_USUAL_LETTERS: Final = 5
_MOST_LETTERS: Final = 12
_PAIR: Final = 0.6
"""A pair of characters in languages without spaces, where a word has about two."""
_LONGEST_WORD: Final = 30
"""Maximum characters of a word; longer ones are keys, hashes or encoded data."""

# Sentences.
_CUES: Final = {"first_person": 1.3, "second_person": 0.82, "times": 1.59, "reactions": 0.52}
_QUESTION: Final = 0.9
_BRACKETED: Final = 0.48
_EMPTY: Final = 0.135
_FEW: Final = 2
_EARLY: Final = 0.315
_EARLY_TURNS: Final = 14.9
_OPENING: Final = (0.8, 0.2)
_SHORT_CHAT: Final = 10
"""Maximum turns of a short chat, in which the first turns state the subject."""
_ASSISTANT: Final = 0.6
"""Factor for the assistant, whose sentences are more often general than about the user."""
_SYMBOLS: Final = 0.4

_ADDRESS: Final = re.compile(r"https?://\S+|www\.\S+")
_INSIDE: Final = re.compile(r"(?<=[\w,;:] )[^\W\d_]\w+")
"""Words that do not begin a sentence."""
_HAS_DIGIT: Final = re.compile(r"\d")
_SIGNS: Final = re.compile(r"[{}<>=;|\\/*#@$^~`_+&\[\]()]")
_MANY_SIGNS: Final = 0.12
_UNSPACED: Final = re.compile(f"[{UNSPACED_LETTERS}]")
_HIRAGANA: Final = re.compile("[\u3040-\u309f]+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A candidate for a summary. Its place is the number of its turn and its number in the turn."""

    place: tuple[int, int]
    speaker: str
    day: date | None
    text: str
    assistant: bool = False


class Weighed(NamedTuple):
    """A sentence with the weights of its words and the factor of its kind."""

    sentence: Sentence
    terms: dict[str, float]
    factor: float
    length: float
    """The length in words."""
    telling: bool
    """Whether it contains information."""


class _Read(NamedTuple):
    sentence: Sentence
    whole: str
    """The original text, including interjections at the beginning."""
    language: str
    cues: tuple[str, ...]
    """The vocabulary lists that contain words of it."""
    kinds: dict[str, float]
    """The factor of each of its terms."""
    strong: float


def weigh(sentences: Sequence[Sentence]) -> list[Weighed]:
    """Weigh every sentence of a conversation relative to the others."""
    usual = guess_language("\n".join(sentence.text for sentence in sentences[:200]))
    names = frozenset(word for name in {one.speaker for one in sentences} for word in words_of(name))
    read = [_read(sentence, usual, names) for sentence in sentences]
    frequency = Counter(term for one in read for term in one.kinds)
    turns = 1 + max((one.place[0] for one in sentences), default=0)
    return [
        Weighed(
            one.sentence,
            {term: kind * (1 + _REPEATED * log(frequency[term])) for term, kind in one.kinds.items()},
            _factor(one, turns),
            length_in_words(one.sentence.text),
            _is_telling(one),
        )
        for one in read
    ]


def _is_telling(read: _Read) -> bool:
    """Return whether a sentence contains two specific words, or one and the first person."""
    if read.strong >= _FEW:
        return True
    return read.strong > 0 and "first_person" in read.cues and "reactions" not in read.cues


def _read(sentence: Sentence, usual: str, names: Collection[str]) -> _Read:
    whole = sentence.text
    language = guess_language(whole, usual)
    lists = vocabulary(language)
    core = without_opener(without_hesitation(whole, language), lists, names)
    if core != whole:
        sentence = Sentence(sentence.place, sentence.speaker, sentence.day, core, sentence.assistant)
    kinds, strong = _kinds(core, language, lists, names)
    return _Read(sentence, whole, language, _cues(whole, language, lists), kinds, strong)


def _cues(whole: str, language: str, lists: Vocabulary) -> tuple[str, ...]:
    unspaced = language in UNSPACED_LANGUAGES
    words = words_of(whole)
    text = fold(whole) if unspaced else ""
    found = [
        name
        for name, wanted in (
            ("first_person", lists.first_person),
            ("second_person", lists.second_person),
            ("times", lists.times),
        )
        if (any(piece in text for piece in wanted) if unspaced else not wanted.isdisjoint(words))
    ]
    if unspaced:
        reacts = any(text.startswith(phrase) for phrase in lists.reactions)
    else:
        reacts = any(" ".join(words[:count]) in lists.reactions for count in (1, 2, 3))
    return (*found, "reactions") if reacts else tuple(found)


def _kinds(text: str, language: str, words: Vocabulary, names: Collection[str]) -> tuple[dict[str, float], float]:
    """Return the factors of the terms of a sentence, and the number of strong ones."""
    bare = _ADDRESS.sub(" ", text)
    plain = [word for word in words_of(bare) if len(word) <= _LONGEST_WORD]
    inside = [] if bare.isupper() else _INSIDE.findall(bare)
    capital = {fold(word) for word in inside if word[0].isupper()}
    stop = stop_words(language)
    pairs = dict.fromkeys(word for word in plain if _UNSPACED.match(word))
    spaced = [word for word in plain if word not in pairs]
    found: dict[str, float] = {}
    strong = 0.0
    for word, stem in zip(spaced, stems(spaced, language), strict=True):
        if word in stop or stem in found:
            continue
        kind, counts = _kind(word, words, names, capital)
        found[stem] = kind * (1 + _PER_LETTER * (min(len(word), _MOST_LETTERS) - _USUAL_LETTERS))
        strong += counts
    for pair in pairs:
        weight = _pair(pair, words)
        if weight is not None:
            found[pair] = weight
            strong += weight == _PAIR
    return found, strong


def _kind(word: str, words: Vocabulary, names: Collection[str], capital: Collection[str]) -> tuple[float, int]:
    if _HAS_DIGIT.search(word):
        return _NUMBER, 1
    if word in names:
        return _SPEAKER, 0
    if word in words.small_talk:
        return _SMALL_TALK, 0
    if word in words.dull:
        return _DULL, 0
    return (_NAMED if word in capital else 1.0), 1


def _pair(pair: str, words: Vocabulary) -> float | None:
    """Return the factor of a pair of characters; a single one is already part of two pairs."""
    if len(pair) == 1:
        return None
    if not words.dull.isdisjoint(pair) or _HIRAGANA.fullmatch(pair):
        return _PAIR * _DULL / 2
    return _PAIR


def _factor(read: _Read, turns: int) -> float:
    turn = read.sentence.place[0]
    factor = 1 + _EARLY * exp(-turn / _EARLY_TURNS)
    if turn < len(_OPENING):
        factor *= 1 + _OPENING[turn] * min(1.0, _SHORT_CHAT / turns) ** 3
    if read.sentence.assistant:
        factor *= _ASSISTANT
    if read.strong < _FEW:
        factor *= _EMPTY
    for cue in read.cues:
        factor *= _CUES[cue]
    if is_question(read.whole):
        factor *= _QUESTION
    if read.whole.startswith(("[", "(", "*")):
        factor *= _BRACKETED
    if len(_SIGNS.findall(read.whole)) > _MANY_SIGNS * len(read.whole):
        factor *= _SYMBOLS
    return factor
