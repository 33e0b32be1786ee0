"""Checks whether a summary written by a model is supported by its sources.

Junk, refusals and summaries of something else must not take the place of messages. A summary is supported if it shares
enough words with its sources, or if half of it is near to them in meaning. The second test knows no language, so a good
summary in other words, or in another language, passes too. Where neither can tell, the summary is accepted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from aforesaid.errors import ModelError, ModelGarbled
from aforesaid.models.calibration import nearness
from aforesaid.models.embed import Embedder
from aforesaid.text.languages import ENGLISH, guess_language, stems, stop_words
from aforesaid.text.sentences import split_sentences
from aforesaid.text.words import UNSPACED_LANGUAGES, fold, words_of

_ENOUGH_SHARED: Final = 0.5
_ENOUGH_WORDS: Final = 3
"""A summary is supported if half of its words, and at least three, are in its sources."""
_NEAR: Final = 3.5
"""Minimum similarity of a supported passage. The good summaries of tests/digest/test_support.py reach 4.4 or more."""
_LEAST_LETTERS: Final = 0.5
"""Minimum share of letters and digits; a text with fewer is not prose."""
_LONGEST_REFUSAL: Final = 400
"""Maximum characters of a refusal; a longer text may be a summary of an apology."""
_SHORT: Final = 60
_CHARACTERS: Final = 800
_SOURCES: Final = 200
_DEBRIS: Final = frozenset({"null", "none", "nan", "undefined", "true", "false", "json", "error", "nil", "summary"})
_REFUSAL: Final = re.compile(
    r"\W*(?:(?:i m|i am|we re) (?:very |so |really )?(?:sorry|afraid|unable)|sorry\b|i apologi[sz]e|"
    r"as an? (?:ai|large language|language)\b|"
    r"i (?:can ?not|can t|won t|will not|do not|don t) (?:help|assist|summari[sz]e|comply|have|provide|fulfil)|"
    r"(?:sure|certainly|of course|okay)?\W*here(?: is| s| are) (?:the|your|a) (?:summary|notes)[^.]*:?\s*$|"
    r"(?:es tut mir leid|tut mir leid|entschuldigung)\b.*\b(?:nicht|kein)|"
    r"ich kann (?:dabei|das|diese|dir|ihnen)\b.*\bnicht|"
    r"(?:je suis desole|desole)\b.*\bpas\b|je ne (?:peux|puis) pas (?:vous |t )?(?:aider|resumer)|"
    r"lo siento\b.*\bno\b|no puedo (?:ayudar|resumir)|mi dispiace\b.*\bnon\b|desculpe\b.*\bnao\b|"
    r"извините\b.*\bне\b|к сожалению\b.*\bне могу|申し訳|すみません|対応できません|抱歉|对不起|很抱歉|我无法)"
)
_KANA: Final = re.compile("[\u3040-\u309f]+")


async def require_support(
    text: str, sources: Sequence[str], names: Sequence[str], embedder: Embedder | None, model: str
) -> None:
    """Raise ModelGarbled unless a text is supported by its sources. `names` are of people who may appear in it."""
    if not await is_supported(text, sources, names, embedder):
        # Without the text: the agenda keeps this error, also when the messages are erased.
        raise ModelGarbled(f"{model} wrote a summary that its sources do not support")


async def is_supported(text: str, sources: Sequence[str], names: Sequence[str], embedder: Embedder | None) -> bool:
    """Return whether a text is supported by its sources: by its words, or else by its meaning."""
    if is_junk(text):
        return False
    words, shared = shared_words(text, sources, names)
    if shared >= _ENOUGH_SHARED * words and (shared >= _ENOUGH_WORDS or shared == words):
        return True
    if embedder is not None:
        if words < _ENOUGH_WORDS:
            return shared > 0
        try:
            near = await nearness(split_sentences(text) or [text], sources, embedder)
        except ModelError:
            pass  # The embedder is down, so the words alone decide.
        else:
            return 2 * sum(number >= _NEAR for number in near) >= len(near)
    return shared > 0 or words < _ENOUGH_WORDS or _language_of(sources) != guess_language(text)


def is_junk(text: str) -> bool:
    """Return whether a text is not prose: remains of a format, a refusal, or repeated words."""
    said = words_of(text)
    solid = [character for character in text if not character.isspace()]
    letters = sum(character.isalnum() for character in solid)
    different = set(said)
    debris = not said or (different & _DEBRIS and different - stop_words(ENGLISH) <= _DEBRIS)
    if debris or letters < _LEAST_LETTERS * len(solid):
        return True
    if len(text) <= _LONGEST_REFUSAL and _REFUSAL.match(re.sub(r"['’´]", " ", fold(text))):
        return True
    if len(said) < 2 * _ENOUGH_WORDS:
        return len(said) >= _ENOUGH_WORDS and len(different) == 1
    most = max(Counter(said).values())
    return len(different) * (3 if len(said) < _SHORT else 10) <= len(said) or 2 * most > len(said)


def shared_words(text: str, sources: Sequence[str], names: Sequence[str]) -> tuple[int, int]:
    """Return the number of distinct content words of a text, and how many of them its sources contain."""
    language = guess_language(text)
    own = set(stems([word for word in words_of(text) if _tells(word, language)], language))
    known = dict.fromkeys(word for source in (*sources, *names) for word in words_of(source))
    return len(own), len(own & set(stems(list(known), language)))


def _tells(word: str, language: str) -> bool:
    """Return whether a word is a content word. In languages without spaces, pairs of characters are, except endings."""
    if language in UNSPACED_LANGUAGES:
        return len(word) > 1 and _KANA.fullmatch(word) is None
    return word not in stop_words(language)


def _language_of(sources: Sequence[str]) -> str:
    return guess_language("\n".join(source[:_CHARACTERS] for source in sources[:_SOURCES]))
