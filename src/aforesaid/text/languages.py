"""Guesses the language of a text by its script, its common words and its accents; the word lists of each language."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.domain.caches import holds_texts
from aforesaid.extras import re
from aforesaid.text.times.time_words import full_calendar_words
from aforesaid.text.words import UNSPACED_LANGUAGES, by_language, fold, listed_words, split, words_of

if TYPE_CHECKING:
    from Stemmer import Stemmer


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language, folded as in the keyword index; empty for a language without a list."""
    return listed_words(language, "stop_words")


class Vocabulary(NamedTuple):
    """The word lists of a language."""

    small_talk: frozenset[str]
    """Greetings, thanks, agreement, applause. A sentence with nothing else contains no information."""
    reactions: frozenset[str]
    """The one or two words that begin a reaction."""
    joints: frozenset[str]
    """Introductory words that can be removed without changing the meaning."""
    first_person: frozenset[str]
    second_person: frozenset[str]
    times: frozenset[str]
    """Words of times, with the names of days and months."""
    dull: frozenset[str]
    """Frequent words that say little about the topic of a conversation."""


@cache
def vocabulary(language: str) -> Vocabulary:
    """Return the word lists of a language; empty ones for an unknown language."""
    phrases = by_language().get(language, {}).get("reactions", "").split("|")
    lists = {name: listed_words(language, name) for name in Vocabulary._fields}
    lists["reactions"] = frozenset(" ".join(fold(each).replace("'", " ").split()) for each in phrases) - {""}
    lists["times"] |= full_calendar_words(language) - {"may"}  # far more often a verb
    return Vocabulary(**lists)


def word_finder(text: str, language: str) -> Callable[[frozenset[str]], bool]:
    """Return a function that tells whether a text has any of some folded words."""
    if language in UNSPACED_LANGUAGES:
        folded = fold(text)
        return lambda wanted: any(word in folded for word in wanted)
    words = set(words_of(text))
    return lambda wanted: not wanted.isdisjoint(words)


ENGLISH: Final = "english"
LATIN_LANGUAGES: Final = ("english", "german", "spanish", "french", "italian", "portuguese", "dutch")
"""The known languages that are written in Latin letters. In a tie, the first one is guessed."""
ROMANCE: Final = ("spanish", "portuguese", "italian", "french")
"""Languages that are so alike that a few words may be taken for another one of them."""
_SCRIPTS: Final = {
    "japanese": "[\u3040-\u30ff]",
    "korean": "[\uac00-\ud7af]",
    "chinese": "[\u3400-\u4dbf\u4e00-\u9fff]",
    "russian": "[\u0400-\u052f]",
    "arabic": "[\u0600-\u06ff]",
    "greek": "[\u0370-\u03ff]",
    "hindi": "[\u0900-\u097f]",
    "tamil": "[\u0b80-\u0bff]",
    "armenian": "[\u0530-\u058f]",
}
"""Characters that show a language by themselves."""
LANGUAGES: Final = (*LATIN_LANGUAGES, *_SCRIPTS)
"""All languages that are guessed."""
CODES: Final = {
    "english": "en", "german": "de", "french": "fr", "spanish": "es", "italian": "it", "portuguese": "pt",
    "dutch": "nl", "polish": "pl", "russian": "ru", "turkish": "tr", "arabic": "ar", "chinese": "zh",
    "japanese": "ja", "korean": "ko", "hindi": "hi",
}  # fmt: skip
"""The tags of the languages in which a person is answered."""
_LETTERS_PER_UNSPACED: Final = 3
"""A character of an unspaced language counts as three letters, since it carries about as much text."""
_STEMMED: Final = {
    language: re.compile(script) for language, script in _SCRIPTS.items() if language not in UNSPACED_LANGUAGES
}
_LATIN_LETTERS: Final = "[A-Za-z\u00c0-\u024f]"
_BEYOND_LATIN: Final = re.compile("[^\x00-\u036f]")
_BEYOND_PUNCTUATION: Final = re.compile("[^\x00-\u036f\u1e00-\u1eff\u2000-\u27ff\U0001f000-\U0001ffff]")
"""Neither Latin letters nor the quotation marks, dashes, arrows, signs and emoji that are typed with them."""
_ACCENTS: Final = {
    "german": "äöüß", "spanish": "ñ¿¡áéíóú", "french": "àâçéèêëîïôœù", "italian": "àèéìòù", "portuguese": "ãõáâàçéêíóú",
    "dutch": "ëï", "polish": "ąćęłńóśźż", "turkish": "çğıöşü",
}  # fmt: skip
_SHIFTS: Final = range(0, 16 * len(LATIN_LANGUAGES), 16)
"""Where the count of each language begins, in bits. No language has more stop words than fit into 16 bits."""
_FIELD: Final = (1 << 16) - 1
_MOST_CHARACTERS: Final = 20_000
"""Maximum characters of a text that are examined."""
_CACHED_CHARACTERS: Final = 1_000
"""Maximum characters of a text whose language is cached: one message passes through many rules."""
_MOST_CACHED: Final = 2_048
_MOST_NAMES: Final = 256
"""Sets of names whose pattern is cached."""


def guess_language(text: str, usual: str = ENGLISH, names: Collection[str] = ()) -> str:
    """Return the language of a text by its script, common words and accents; `usual` if they do not decide.

    `names` of people in the text are not looked at: "Mei Lin is vegetarian" is not Dutch.
    """
    if names and (pattern := _name_pattern(tuple(names))) is not None:
        text = pattern.sub(" ", text)
    if len(text) <= _CACHED_CHARACTERS:
        return _guess(text, usual)
    return _guess.__wrapped__(text[:_MOST_CHARACTERS], usual)


@holds_texts
@lru_cache(_MOST_NAMES)
def _name_pattern(names: tuple[str, ...]) -> re.Pattern[str] | None:
    known = sorted({re.escape(name) for name in names if name.strip()}, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(known)})(?!\w)") if known else None


@holds_texts
@lru_cache(_MOST_CACHED)
def _guess(beginning: str, usual: str) -> str:
    if not beginning.isascii() and (by_script := _main_script(beginning)) is not None:
        return by_script
    counts, known = dict.fromkeys(LATIN_LANGUAGES, 0), _common_words(LATIN_LANGUAGES)
    for word in known.keys() & words_of(beginning):
        for language in known[word]:
            counts[language] += 1
    letters = set(beginning.casefold())
    for language in LATIN_LANGUAGES:
        counts[language] += not letters.isdisjoint(_ACCENTS.get(language, ""))
    best = max(LATIN_LANGUAGES, key=lambda language: counts[language])
    return usual if counts.get(usual) == counts[best] else best


_TOLD: Final = (*LATIN_LANGUAGES, "polish", "turkish")
_MARGIN: Final = 1.0
"""How much more evidence another language than the known one needs: two words that only it has."""
_AMBIGUOUS_CHARACTERS: Final = 8
"""A text of at most this many Chinese characters may also be Japanese."""


def language_told(text: str, known: str | None = None) -> str | None:
    """Return the language that a person is answered in after saying a text; None if the text does not tell it.

    Names, numbers, emoji and short answers ("ok") tell none. Another language than the `known` one needs more evidence.
    """
    beginning = text[:_CACHED_CHARACTERS]
    by_script = None if beginning.isascii() else _main_script(beginning)
    if by_script is not None:
        if by_script == "chinese" and known == "japanese" and len(beginning) <= _AMBIGUOUS_CHARACTERS:
            return None
        return by_script if by_script in CODES else None
    words, evidence = set(words_of(beginning)), dict.fromkeys(_TOLD, 0.0)
    common = _common_words(_TOLD)
    for word in common.keys() & words:
        for language in common[word]:
            evidence[language] += 1 / len(common[word])
    letters = set(beginning.casefold())
    for language in _TOLD:
        special = letters & set(_ACCENTS.get(language, ""))
        evidence[language] += sum(1 / sum(letter in each for each in _ACCENTS.values()) for letter in special)
    best, second = sorted(evidence, key=lambda language: -evidence[language])[:2]
    if best == known:
        return best if evidence[best] else None
    needed = evidence[second] if known is None else max(evidence[second], evidence.get(known, 0.0) + _MARGIN)
    return best if evidence[best] > needed else None


def index_language(words: Iterable[str]) -> str:
    """Return the language whose stemmer the keyword index uses for the Latin words of a text.

    It is guessed by stop words alone. Stored stems depend on it, so evidence that `guess_language` gains must not
    change it: that would need a rebuild of every index.
    """
    known = _index_words()
    total = sum(map(known.__getitem__, known.keys() & words))
    return _most_frequent(total) if total else ENGLISH


def language_by_script(word: str) -> str | None:
    """Return the language whose stemmer fits the script of a word; None for Latin letters and unspaced scripts."""
    if _BEYOND_LATIN.search(word) is None:
        return None
    return next((language for language, pattern in _STEMMED.items() if pattern.search(word)), None)


def _main_script(text: str) -> str | None:
    """Return the language of the script that most of a text is written in; None for Latin."""
    if _BEYOND_PUNCTUATION.search(text) is None:
        return None
    counts = {
        language: len(re.findall(script, text)) * (_LETTERS_PER_UNSPACED if language in UNSPACED_LANGUAGES else 1)
        for language, script in _SCRIPTS.items()
    }
    # Japanese uses Chinese characters too.
    if counts["japanese"]:
        counts["japanese"] += counts["chinese"]
    most = max(counts, key=lambda language: counts[language])
    return most if counts[most] > len(re.findall(_LATIN_LETTERS, text)) else None


@lru_cache(100_000)
def _most_frequent(total: int) -> str:
    """Return the language with the most words in a sum of `_index_words`; of several, the first."""
    counts = [total >> shift & _FIELD for shift in _SHIFTS]
    return LATIN_LANGUAGES[counts.index(max(counts))]


@cache
def _index_words() -> dict[str, int]:
    """Return the stop words, each with a number that has a one in the field of each of its languages.

    The sum of these numbers is how many words of each language a text has. Every stored message is counted this way.
    """
    return {
        word: sum(1 << _SHIFTS[LATIN_LANGUAGES.index(language)] for language in languages)
        for word, languages in _languages_by_word(
            {language: stop_words(language) for language in LATIN_LANGUAGES}
        ).items()
    }


@cache
def _common_words(languages: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    found = {}
    for language in languages:
        lists = vocabulary(language)
        everyday = (lists.small_talk, lists.joints, lists.first_person, lists.second_person, lists.times, lists.dull)
        found[language] = stop_words(language).union(*everyday)
    return _languages_by_word(found)


def _languages_by_word(words: Mapping[str, frozenset[str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for language, listed in words.items():
        for word in listed:
            found.setdefault(word, []).append(language)
    return {word: tuple(languages) for word, languages in found.items()}


_MOST_STEMMED: Final = 200_000
"""Maximum words per language whose stems are cached."""


def stems(words: Iterable[str], language: str) -> list[str]:
    """Return the stems of the folded words of one text.

    The script of a word selects its stemmer. `language` counts for words in Latin letters; if it is not written in
    Latin letters itself, they are taken as English, as a Latin word in a Chinese text most likely is.
    """
    return [*map(_stem_cache(language).__getitem__, words)]


@holds_texts
@lru_cache(maxsize=10_000)
def all_stems(word: str) -> tuple[str, ...]:
    """Return the stems that a word of a query may have been stored under."""
    by_script = language_by_script(word)
    languages = LATIN_LANGUAGES if by_script is None else (by_script,)
    return tuple(dict.fromkeys(str(_stemmer(language).stemWord(word)) for language in languages))


class _Stems(dict[str, str]):
    """The stems of words of one language, computed when they are first asked for."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._latin = language if language in LATIN_LANGUAGES else ENGLISH

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_STEMMED:
            self.clear()
        stemmer = _stemmer(language_by_script(word) or self._latin)
        self[word] = found = str(stemmer.stemWord(word))
        return found


_stem_cache: Final = holds_texts(cache(_Stems))


@cache
def _stemmer(language: str) -> Stemmer:
    from Stemmer import Stemmer  # noqa: PLC0415 - loaded with the first word

    return Stemmer(language, 0)


MOST_TERMS: Final = 512
"""Maximum distinct words of a query that are looked up: its first ones."""


class QueryWord(NamedTuple):
    """A word of a query, and the terms that it may have been stored as."""

    word: str
    terms: tuple[str, ...]


def terms(text: str) -> list[str]:
    """Split a text into index terms, in order and with repetitions: stems of words, characters and pairs of them."""
    words, characters = split(text)
    return stems(words, index_language(words)) + characters


def query_words(text: str) -> list[QueryWord]:
    """Return the different words of a query, in order, without stop words where others remain."""
    words, characters = split(text)
    ignored = stop_words(index_language(words))
    distinct = dict.fromkeys(words)
    content = [word for word in distinct if word not in ignored]
    found = [QueryWord(word, all_stems(word)) for word in content or distinct]
    found += [QueryWord(character, (character,)) for character in dict.fromkeys(characters)]
    return found[:MOST_TERMS]


def query_terms(text: str) -> frozenset[str]:
    """Return the stems of the words of a text that say something; in languages without spaces pairs of characters."""
    return frozenset(term for word in query_words(text) for term in word.terms if len(term) > 1)


MOST_COUNTED: Final = 4
"""More words that announce a change say no more."""
_PIECES: Final = re.compile(
    "अब|नय[ाेी]|नहीं रह|बदल|छोड़|बेच|रद्द|الان|جديد|لم يعد|بدل|انتقل|تاجل|بعت|اخيرا|صار|"
    "现在|新|不再|改|换|搬|取消|推迟|延期|卖|辞|终于|以后|从今|"
    "今は|新し|もう|やめ|変更|変え|変わ|引っ越|中止|売|ようやく|これから|代わり|"
    "이제|새로|더 ?이상|바꾸|바뀌|바꿨|이사|취소|연기|미뤄|팔았|그만|드디어|대신|변경"
)
"""In scripts without spaces or with joined words, parts of words are looked for."""


@cache
def _change_words() -> re.Pattern[str]:
    changes = [table["changes"].replace("\n", "") for table in by_language().values() if "changes" in table]
    return re.compile(rf"\b(?:{'|'.join(changes)})\b")


def count_change_words(text: str) -> int:
    """Return how many words of a text announce a change, at most `MOST_COUNTED`."""
    found = len(_change_words().findall(fold(text)))
    if not text.isascii():
        found += len(_PIECES.findall(text))
    return min(found, MOST_COUNTED)
