"""Recognising standing requests to the assistant: "always answer in metric units", "call me Max".

A request must say that it holds for good ("always", "never", "from now on"), or how to address the person, in words of
the person's own. What could be an attack (ignoring rules, recommending or revealing something, links) is not a request,
nor is what the person promises, reports, quotes, or asks for in a scene. What is unsure is none: one that is missed can
be repeated, and one that is invented would be followed in every answer.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final

from aforesaid.domain.caches import holds_texts
from aforesaid.text.languages import ENGLISH, LATIN_LANGUAGES, guess_language
from aforesaid.text.sentences import is_question, is_role_play, reports_somebody, split_sentences, without_quotes
from aforesaid.text.words import fold, fold_for_patterns

_LONGEST: Final = 240
"""Characters of a request. Longer sentences are stories or pasted texts."""
_LONGEST_MESSAGE: Final = 1_000
"""Characters of a message that may hold a request. Longer ones are mostly pasted."""
_FEW_WORDS: Final = 8
"""Words of a message up to which its language is often guessed wrong."""
_LONGEST_QUOTE: Final = 2
"""Words in quotation marks that may belong to a request: call me "Max"."""
_BEYOND_LATIN: Final = re.compile(r"[^\W\d_a-z\u00df-\u024f]")
"""A letter of another script, in a folded text."""
_NOT_GUESSED: Final = ("polish", "turkish")
"""Languages in Latin letters that `guess_language` does not know. Their patterns are tried with each of the others."""
_MOST_CACHED: Final = 2_048
_NAMES: Final = ("OPEN", "VERBS", "GERUNDS", "FROM_NOW", "WANT")


def standing_request(sentence: str, message: str = "") -> bool:
    """Return whether a sentence asks the assistant for something for good, and is not an attack.

    `message` is the whole message, which shows the language of a short sentence.
    """
    whole = message or sentence
    if len(sentence) > _LONGEST or not may_ask_for_good(whole) or is_question(sentence):
        return False
    plain = without_quotes(sentence, _LONGEST_QUOTE)
    if not any(_asks(plain, language) for language in _languages(plain, whole)) or _promises(plain):
        return False
    return may_hold_requests(whole) and not reads_like_an_attack(sentence)


@holds_texts
@lru_cache(_MOST_CACHED)
def may_ask_for_good(message: str) -> bool:
    """Return whether a message has a word of a standing request, or is written in other letters than Latin ones."""
    folded = fold(message)
    return _BEYOND_LATIN.search(folded) is not None or _patterns()["hints"].search(folded) is not None


def _languages(sentence: str, message: str) -> Iterable[str]:
    """Return the languages whose patterns are tried. The patterns of two languages have little in common."""
    guessed = guess_language(sentence)
    if guessed not in LATIN_LANGUAGES:
        return (guessed,)
    if len(message.split()) <= _FEW_WORDS:
        return (*LATIN_LANGUAGES, *_NOT_GUESSED)
    return dict.fromkeys((guessed, guess_language(message), ENGLISH, *_NOT_GUESSED))


def reads_like_an_attack(sentence: str) -> bool:
    """Return whether a sentence asks to ignore rules, to recommend or reveal something, or contains a link."""
    attack = _patterns()["attack"]
    return attack.search(fold(sentence)) is not None or attack.search(sentence) is not None


def may_hold_requests(message: str) -> bool:
    """Return whether a message may hold a request: it reports nobody, sets up no scene, and does not only promise."""
    if not message.strip() or len(message) > _LONGEST_MESSAGE or reports_somebody(message) or is_role_play(message):
        return False
    return not all(map(_promises, split_sentences(message)))


def without_requests(message: str) -> str:
    """Return the sentences of a message that are no standing requests."""
    return "\n".join(sentence for sentence in split_sentences(message) if not standing_request(sentence, message))


def topic_of(request: str) -> str | None:
    """Return what a standing request is about, where it is one of a few topics."""
    folded = fold(request)
    topics = ((name[6:], each) for name, each in _patterns().items() if name.startswith("topic "))
    return next((topic for topic, each in topics if each.search(folded) or each.search(request)), None)


def _promises(sentence: str) -> bool:
    """Return whether the speaker says what they do or will do themself: "Thanks, I'll do that every time"."""
    promise, plain = _patterns()["promise"], sentence.replace("’", "'")
    return promise.search(fold(plain)) is not None or promise.search(plain) is not None


def _asks(sentence: str, language: str) -> bool:
    pattern = _patterns().get(language)
    matched = fold_for_patterns(sentence, language)
    return pattern is not None and pattern.search(matched.lower() if language == "english" else matched) is not None


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """Return the patterns of the file: of each language, each topic (`topic units`), of attacks, and the hints."""
    text = (files("aforesaid.models.offline.memories") / "requests.toml").read_text(encoding="utf-8")
    table: dict[str, Any] = tomllib.loads(text)
    parts = {name: table[name].replace("\n", "") for name in _NAMES}
    languages = {name: _compiled(patterns, parts) for name, patterns in table["languages"].items()}
    topics = {f"topic {name}": _compiled([pattern], {}) for name, pattern in table["topics"].items()}
    found = {**languages, **topics, "attack": _compiled(table["attack"]["any"], {})}
    return {**found, "hints": _compiled([table["HINTS"]], {}), "promise": _compiled(table["promise"], parts)}


def _compiled(patterns: Iterable[str], parts: dict[str, str]) -> re.Pattern[str]:
    whole = "|".join(f"(?:{pattern})" for pattern in patterns).replace("\n", "")
    for name in reversed(_NAMES):
        whole = whole.replace(name, parts.get(name, name))
    return re.compile(whole)
