"""Checks the wording of memories that a model writes: each can be understood alone and states only what was said."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Final

from aforesaid.domain.checks import to_zone
from aforesaid.domain.message import Message
from aforesaid.text.languages import guess_language
from aforesaid.text.sentences import length_in_words, points_elsewhere
from aforesaid.text.times.find import When, find_times
from aforesaid.text.vocabulary import vocabulary
from aforesaid.text.words import UNSPACED_LANGUAGES, fold, words_of

_NUMBER: Final = re.compile(r"\d+")
_DATE: Final = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_INFLECTED: Final = 2
"""Letters by which the end of a name may differ, as in "Анна" and "Анны"."""
_SHORTEST_STEM: Final = 3
_FIRST_WORDS: Final = 4
"""Words in which a sentence that begins with "she" or "there" must name somebody."""
_SHOWS_LANGUAGE: Final = 4
"""Words of a text from which its language can be guessed."""
_COUNTRY: Final = re.compile(r"\bUS\b|\bU\.S\.")
"""Not the pronoun "us"."""


def stands_alone(text: str, names: Collection[str]) -> bool:
    """Return whether a text can be understood without the conversation: it names somebody and has no "I" or "we"."""
    language = guess_language(text, names=names)
    words = words_of(_COUNTRY.sub(" ", text))
    first_person = vocabulary(language).first_person
    if language in UNSPACED_LANGUAGES:
        folded = fold(text)
        if any(word in folded for word in first_person):
            return False
    elif not first_person.isdisjoint(words):
        return False
    if not any(mentions(text, name) for name in names):
        return False
    beginning = " ".join(text.split()[:_FIRST_WORDS])
    return not points_elsewhere(text, language) or any(mentions(beginning, name) for name in names)


def mentions(text: str, name: str) -> bool:
    """Return whether a text has a word of a name in it, perhaps with another ending."""
    if guess_language(name) in UNSPACED_LANGUAGES:
        return fold(name) in fold(text)
    words = set(words_of(text))
    return any(_among(word, words) for word in words_of(name) if len(word) > 1)


def is_mentioned(name: str, texts: Iterable[str]) -> bool:
    """Return whether every word of a name occurs in one of the texts, perhaps with another ending."""
    joined = " ".join(texts)
    if guess_language(name) in UNSPACED_LANGUAGES:
        return fold(name) in fold(joined)
    said = set(words_of(joined))
    return all(_among(word, said) for word in words_of(name) if len(word) > 1)


def is_in_their_language(text: str, said: Sequence[str]) -> bool:
    """Return whether a text is in a language that was said. Texts of a few words do not show their language."""
    spoken = {guess_language(each) for each in (*said, " ".join(said)) if length_in_words(each) >= _SHOWS_LANGUAGE}
    return not spoken or any(guess_language(text, usual=language) == language for language in spoken)


def numbers_nobody_said(text: str, sources: Sequence[Message], others: Sequence[str], zone: tzinfo) -> set[str]:
    """Return the dates and other numbers of a text that neither its sources nor `others` have.

    A date may be that of a message, or lie in a time that its words mean ("on Monday").
    """
    days: set[str] = set()
    allowed = {"0"}
    named: list[When] = []
    for message in sources:
        said = to_zone(message.at, zone)
        days.add(said.date().isoformat())
        allowed |= {str(said.year), str(said.month), str(said.day)}
        named += times_in(message.text, said)
    for each in (*(message.text for message in sources), *others):
        allowed |= _numbers(each)
        days.update(_DATE.findall(each))
    for when in named:
        allowed |= _of_time(when)
    wrong = {day for day in _DATE.findall(text) if day not in days and not any(_covers(when, day) for when in named)}
    return wrong | (_numbers(_DATE.sub(" ", text)) - allowed)


def times_in(text: str, said: datetime) -> list[When]:
    """Return the times that a text can mean, in whatever direction from when it was said."""
    found = [*find_times(text, said, "future"), *find_times(text, said, "nearest"), *find_times(text, said, "past")]
    return list(dict.fromkeys(found))


def _of_time(when: When) -> set[str]:
    """Return the numbers by which a time is written, on a clock of 12 hours too."""
    last = when.end - timedelta(microseconds=1)
    days = {str(number) for at in (when.start, last) for number in (at.year, at.month, at.day)}
    hour, minute = when.start.hour, when.start.minute
    return days | ({str(hour), str(hour % 12), str(minute)} if when.timed else set())


def _covers(when: When, day: str) -> bool:
    return when.start.date().isoformat() <= day <= (when.end - timedelta(microseconds=1)).date().isoformat()


def _numbers(text: str) -> set[str]:
    return {number.lstrip("0") or "0" for number in _NUMBER.findall(text)}


def _among(word: str, words: Collection[str]) -> bool:
    if word in words:
        return True
    stem = word[:-_INFLECTED]
    return len(stem) >= _SHORTEST_STEM and any(other.startswith(stem) for other in words)
