"""Splits a message into sentences, and recognises openers, sentences that point back, and kinds of questions."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

from aforesaid.domain.caches import holds_texts
from aforesaid.extras import re
from aforesaid.text.languages import Vocabulary, guess_language, stop_words, vocabulary
from aforesaid.text.times.time_words import calendar_words, month_words, plain_calendar_words
from aforesaid.text.words import UNSPACED_LANGUAGES, UNSPACED_LETTERS, any_of, fold, listed_words, words_of

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
_QUESTION_MARKS: Final = frozenset("?？؟¿;")
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
        pieces, start = [], 0
        for match in _END.finditer(line):
            if not _goes_on(line, max(start, match.start() - _LOOK_BACK), match.end()):
                pieces.append(line[start : match.end()])
                start = match.end()
        for piece in (*pieces, line[start:]):
            if plain := _SPACE.sub(" ", piece).strip():
                found += _breathe(plain) if len(plain) > LONGEST else [plain]
    return tuple(found)


def is_question(sentence: str) -> bool:
    """Return whether a sentence has a question mark at its end (or beginning, in Spanish)."""
    end = sentence[-40:]
    if _QUESTION_MARKS.isdisjoint(end):
        return sentence.startswith("¿")
    return sentence.startswith("¿") or any(pattern.search(end) for pattern in (_QUESTION, _GREEK_QUESTION))


def length_in_words(text: str) -> float:
    """Return the length of a text in words; in scripts without spaces, two characters count as a word."""
    if text.isascii():
        return len(text.split())
    return len(_UNSPACED.sub(" ", text).split()) + len(_UNSPACED_LETTER.findall(text)) / 2


def _goes_on(line: str, start: int, end: int) -> bool:
    """Return whether a full stop belongs to an abbreviation, an ordinal or an ellipsis."""
    before, after = line[start:end].rstrip(), line[end : end + 1]
    if not before.endswith(".") or not after:
        return False
    if before.endswith(".."):
        return after.islower()
    if _ORDINAL.search(before) is not None:
        word = _WORD.match(line[end : end + _LONGEST_MONTH])
        return after.islower() or (word is not None and fold(word[0]) in _MONTHS)
    return _ABBREVIATED.search(before) is not None or (before.lower().endswith(("a.m.", "p.m.")) and after.islower())


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


_OPENER: Final = re.compile(r"([^\W\d_]+(?:[’'][^\W\d_]+)?)(\s*[,!.:;…–—-]+\s*|\s+)")
_HESITATION: Final = {
    language: re.compile(rf"(?<![\w'’-])(?:{sounds})(?![\w'’-])(?:\s*,)?\s*", re.IGNORECASE)
    for language, sounds in (("english", "uh|um|erm|uhm|mm|hmm"), ("german", "äh|ähm|öhm|hm"), ("french", "euh|heu"))
}
_GAP: Final = re.compile(r"\s+([,.!?;:])|(?<=\s)\s+")
_LEAST_REST: Final = 3
"""Minimum words that must remain."""


def without_hesitation(text: str, language: str) -> str:
    """Remove filler sounds, such as "um", which transcripts contain."""
    pattern = _HESITATION.get(language)
    if pattern is None:
        return text
    return _GAP.sub(r"\1", pattern.sub(" ", text)).strip() or text


def without_opener(text: str, words: Vocabulary, names: Collection[str]) -> str:
    """Remove interjections and the addressed name from the beginning of a sentence.

    A word that could be part of the statement ("No dogs are allowed") is removed only before a comma or similar.
    """
    start = 0
    while (match := _OPENER.match(text, start)) is not None:
        word = fold(match[1])
        light = word in words.small_talk or word in names
        if not (word in words.joints or (light and not match[2].isspace())):
            break
        start = match.end()
    rest = text[start:]
    if not start or len(rest.split()) < _LEAST_REST:
        return text
    first = rest[0].upper()
    return (first if len(first) == 1 else rest[0]) + rest[1:]


def begins_with_anaphor(sentence: str, language: str) -> bool:
    """Return whether a sentence begins with a word that points to something said before."""
    return _begins_with("anaphora", sentence, language)


def begins_with_pronoun(sentence: str, language: str) -> bool:
    """Return whether a sentence begins with a pronoun for somebody or something mentioned before.

    Unlike other words that point back, it cannot be an article or mean somebody who is spoken to.
    """
    return _begins_with("pronouns", sentence, language)


def is_about_somebody(sentence: str, language: str) -> bool:
    """Return whether a sentence begins with "he" or "she", so that it is not about its speaker."""
    return _begins_with("persons", sentence, language)


_word_list: Final = cache(listed_words)


def _begins_with(wanted: str, sentence: str, language: str) -> bool:
    if language in UNSPACED_LANGUAGES:
        return fold(sentence).startswith(tuple(_word_list(language, wanted)))
    return bool(words := words_of(sentence)) and words[0] in _word_list(language, wanted)


POLITE: Final = re.compile(
    r"\b(?:please|pls|kindly|would you|could you|bitte|könnten sie|por favor|s'il (?:vous|te) plaît|per favore|"
    r"alsjeblieft|alstublieft|proszę|lütfen|пожалуйста|من فضلك|لو سمحت|कृपया)\b|[请請]|お願い|ください|下さい|주세요",
    re.IGNORECASE,
)


_EAST_ASIAN_DATE: Final = re.compile("(?:[0-9]+|[一二三四五六七八九十]+)[年月日号월일년]|[上下先来今]个?[周月年週]")
_YEAR_DIGITS: Final = 4
_MOST_CHARACTERS: Final = 1_000
"""Longer questions are cut off: the time that the patterns take grows with the square of the length."""


def asks_for_order(question: str) -> bool:
    """Return whether a question is about the course of events."""
    return _words().pattern.search(_folded_words(question)) is not None


def topic_words(question: str) -> str:
    """Return the words of a question about the course of events that say what it is about; empty for everything."""
    language = guess_language(question)
    dates = plain_calendar_words() | calendar_words(language)
    dull = stop_words(language) | vocabulary(language).dull | dates | _words().fillers
    words = words_of(_EAST_ASIAN_DATE.sub(" ", _words().pattern.sub(" ", _folded_words(question))))
    telling = [word for word in words if word not in dull and not (len(word) == _YEAR_DIGITS and word.isdecimal())]
    return " ".join([word for word in telling if word not in _words().undertakings] or telling)


class _Words(NamedTuple):
    """What order_questions.toml holds."""

    pattern: re.Pattern[str]
    fillers: frozenset[str]
    undertakings: frozenset[str]


@cache
def _words() -> _Words:
    table = tomllib.loads((files("aforesaid.text") / "order_questions.toml").read_text(encoding="utf-8"))
    patterns = "|".join(f"(?:{pattern})" for patterns in table["patterns"].values() for pattern in patterns)
    return _Words(re.compile(patterns), *(frozenset(table[name].split()) for name in ("fillers", "undertakings")))


def _folded_words(question: str) -> str:
    return fold(question[:_MOST_CHARACTERS]).replace("’", "'")


GAP: Final = "…"
"""Stands for what was quoted."""
_TITLE_WORDS: Final = 6
"""Words in quotation marks up to which they are a name or a title, such as that of a book."""
_FENCED: Final = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|<(pre|code|blockquote)\b.*?(?:</\1>|\Z)", re.DOTALL)
_QUOTED_LINE: Final = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_MARKED: Final = re.compile(
    r'(?<!\w)"(?=\S)[^"]*"(?!\w)|“[^”“]*”|«[^»]*»|»[^«»]*«|„[^“”"]*[“”"]|‘[^’\n]{12,}’(?!\w)|'
    r"(?<!\w)'(?=\S)[^'\n]{12,}'(?!\w)|`[^`\n]+`|「[^」]*」|『[^』]*』"
)
_COLON: Final = re.compile(r"[:：](?=\s|\Z|[\"“«»„‘'「『\u2e80-\uffff…])")
_SENTENCE_END: Final = re.compile(r"[.!?。！？\n]")
_ANNOUNCEMENT: Final = 200
"""Characters before a colon that can announce what follows it."""
_MOST_COLONS: Final = 100
"""Colons that are examined. A message with more of them is a table, a log or a program."""
_MOST_QUOTED_CHARACTERS: Final = 20_000
"""Characters of a message that are examined. What follows in a longer one counts as pasted."""


class _Patterns(NamedTuple):
    reports: re.Pattern[str]
    own_reports: re.Pattern[str]
    announced: re.Pattern[str]
    pasted: re.Pattern[str]
    role_play: re.Pattern[str]


@holds_texts
@lru_cache(1_024)
def own_text(text: str) -> str:
    """Return what the author of a message says in words of their own, with an ellipsis in place of what they quote.

    Left out are code, quoted lines, words in quotation marks (titles stay), forwarded letters, and all that follows
    where somebody else's words are announced ("the page says: …"). Nothing is left of a message that sets up a scene.
    """
    if is_role_play(text):
        return ""
    plain = _FENCED.sub(GAP, text[:_MOST_QUOTED_CHARACTERS])
    lines = plain.splitlines(keepends=True)
    pasted = next((place for place, line in enumerate(lines) if _patterns().pasted.search(fold(line))), len(lines))
    plain = without_quotes(_QUOTED_LINE.sub(GAP, "".join(lines[:pasted])))
    # Up to the sentence that announces words of somebody else: nobody knows where those end.
    for number, colon in enumerate(_COLON.finditer(plain), 1):
        before = _SENTENCE_END.split(plain[max(colon.start() - _ANNOUNCEMENT, 0) : colon.start()])[-1]
        if number > _MOST_COLONS or reports_somebody(before) or _holds(_patterns().announced, before):
            plain = plain[: colon.start() - len(before)] + GAP
            break
    return plain if plain.replace(GAP, "").strip() else ""


def reports_somebody(text: str) -> bool:
    """Return whether a text reports in any part what somebody other than its author said."""
    return _holds(_patterns().reports, _patterns().own_reports.sub(" ", fold(text).replace("’", "'")))


def without_quotes(text: str, longest: int = _TITLE_WORDS) -> str:
    """Return a text with an ellipsis in place of each sentence, and of more than so many words, in quotation marks."""

    def shown(quoted: re.Match[str]) -> str:
        words = quoted[0][1:-1]
        return quoted[0] if length_in_words(words) <= longest and len(split_sentences(words)) <= 1 else GAP

    return _MARKED.sub(shown, text)


def is_role_play(text: str) -> bool:
    """Return whether a message sets up a scene in which its words are meant: "pretend you are a pirate"."""
    return _holds(_patterns().role_play, text)


def _holds(pattern: re.Pattern[str], text: str) -> bool:
    """Return whether a text holds a pattern. Kana and Russian letters are looked for as written too."""
    folded = fold(text).replace("’", "'")
    return pattern.search(folded) is not None or (not text.isascii() and pattern.search(text.casefold()) is not None)


@cache
def _patterns() -> _Patterns:
    table = tomllib.loads((files("aforesaid.text") / "quotations.toml").read_text(encoding="utf-8"))

    def compiled(patterns: Iterable[str]) -> re.Pattern[str]:
        return re.compile(any_of(patterns).replace("\n", ""))

    return _Patterns(
        compiled(table["REPORTS"]),
        compiled(table["OWN_REPORTS"]),
        compiled(table["ANNOUNCED"]),
        compiled([table["PASTED"]]),
        compiled(table["ROLE_PLAY"]),
    )
