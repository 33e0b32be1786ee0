"""Splits a message into sentences, in the scripts of many languages."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from aforesaid.domain.text_caches import holds_texts
from aforesaid.text.folding import fold
from aforesaid.text.scripts import UNSPACED_LETTERS
from aforesaid.text.times.time_words import month_words

LONGEST: Final = 400
"""Maximum characters of a sentence. Longer ones are cut at commas, dashes or spaces."""

# Chinese and Japanese stops, the Indian danda and the Urdu stop always end a sentence. A Latin full stop, question mark
# or exclamation mark does so only before a space, because URLs contain them.
_STOPS: Final = "。！？｡︒।॥۔؟"
_CLOSING: Final = "\"'”’»)\\]】」』）"
# A run of stops is matched possessively, so that a long run takes linear time.
_END: Final = re.compile(rf"(?:[{_STOPS}]++[{_CLOSING}]*+|(?<![.!?…‽])[.!?…‽]++[{_CLOSING}]*+(?=\s))\s*+")
_ABBREVIATED: Final = re.compile(
    r"(?:^|[\s(\"'])(?:mr|mrs|ms|dr|prof|st|vs|jr|sr|inc|ltd|co|no|nr|approx|dept|e\.g|i\.e|etc|bzw|ca|z\.\s?b|d\.\s?h|u\.\s?a"
    r"|usw|str|sra|srta|mme|mlle|т\.\s?е|т\.\s?д|им|ул|[^\W\d_])\.$",
    re.IGNORECASE,
)
_ORDINAL: Final = re.compile(r"(?:^|\s)\d{1,2}\.$")
_WORD: Final = re.compile(r"[^\W\d_]+")
_MONTHS: Final = (month_words("german") | month_words("english")) - {"may"}
"""Months that follow a day with a full stop, as in "am 3. Juli"; other languages write them in small letters."""
_BREATH: Final = re.compile(r"[,;:，、；：،]\s*|\s+[-–—]+\s+|\s+")
_SPACE: Final = re.compile(r"\s+")
_QUESTION: Final = re.compile(r"[?？؟]\W*$|^\W*¿")
_GREEK_QUESTION: Final = re.compile(r"[\u0370-\u03ff]\W*;\W*$")
_UNSPACED_LETTER: Final = re.compile(f"[{UNSPACED_LETTERS}]")
_UNSPACED: Final = re.compile(f"[{UNSPACED_LETTERS}\u3000-\u303f\uff00-\uff0f\uff1a-\uff20]")
"""Letters of scripts without spaces, and their punctuation."""
_LONGEST_MONTH: Final = 20
"""Characters after a full stop that are checked for a month."""
_LOOK_BACK: Final = 12
"""Number of characters before a full stop that are checked for an abbreviation."""
_CACHED_CHARACTERS: Final = 1_000
"""Maximum characters of a text whose sentences are cached: one message passes through many rules."""
_MOST_CACHED: Final = 2_048


def split_sentences(text: str) -> list[str]:
    """Return the non-empty sentences of a text, each on one line."""
    return [*(_sentences(text) if len(text) <= _CACHED_CHARACTERS else _sentences.__wrapped__(text))]


@holds_texts
@lru_cache(_MOST_CACHED)
def _sentences(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for line in text.splitlines():
        for sentence in _of_line(line):
            found += _breathe(sentence) if len(sentence) > LONGEST else [sentence]
    return tuple(found)


def is_question(sentence: str) -> bool:
    """Return whether a sentence has a question mark at its end (or beginning, in Spanish)."""
    return _QUESTION.search(sentence[-40:]) is not None or (
        sentence.startswith("¿") or _GREEK_QUESTION.search(sentence[-40:]) is not None
    )


def length_in_words(text: str) -> float:
    """Return the length of a text in words; in scripts without spaces, two characters count as a word."""
    if text.isascii():
        return len(text.split())
    return len(_UNSPACED.sub(" ", text).split()) + len(_UNSPACED_LETTER.findall(text)) / 2


def _of_line(line: str) -> list[str]:
    found = []
    start = 0
    for match in _END.finditer(line):
        if not _goes_on(line, max(start, match.start() - _LOOK_BACK), match.end()):
            found.append(line[start : match.end()])
            start = match.end()
    found.append(line[start:])
    return [plain for piece in found if (plain := _SPACE.sub(" ", piece).strip())]


def _goes_on(line: str, start: int, end: int) -> bool:
    """Return whether a full stop belongs to an abbreviation, an ordinal or an ellipsis."""
    before, after = line[start:end].rstrip(), line[end : end + 1]
    if not before.endswith(".") or not after:
        return False
    if before.endswith(".."):
        return after.islower()
    if _ORDINAL.search(before) is not None:
        return after.islower() or _begins_with_month(line[end : end + _LONGEST_MONTH])
    return _ABBREVIATED.search(before) is not None or (before.lower().endswith(("a.m.", "p.m.")) and after.islower())


def _begins_with_month(text: str) -> bool:
    word = _WORD.match(text)
    return word is not None and fold(word[0]) in _MONTHS


def _breathe(sentence: str) -> list[str]:
    """Cut a very long sentence at commas, dashes or spaces, or else at the limit."""
    found = []
    start = 0
    while len(sentence) - start > LONGEST:
        places = [match.end() for match in _BREATH.finditer(sentence, start + LONGEST // 2, start + LONGEST)]
        end = places[-1] if places else start + LONGEST
        found.append(sentence[start:end].strip())
        start = end
    found.append(sentence[start:].strip())
    return [piece for piece in found if piece]
