"""Measures a summary, and checks that its sources support it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from aforesaid.domain.message import Message
from aforesaid.domain.summary import Quality, Summary
from aforesaid.errors import ModelError, ModelGarbled
from aforesaid.extras import np, re
from aforesaid.models.calibration import nearness
from aforesaid.models.embed import Embedder
from aforesaid.models.embed.caching import MOST_CHARACTERS, MessageVectors
from aforesaid.models.offline.summary.choose import join
from aforesaid.text.languages import ENGLISH, guess_language, language_told, stems, stop_words
from aforesaid.text.sentences import split_sentences
from aforesaid.text.times.find import find_times
from aforesaid.text.words import UNSPACED_LANGUAGES, fold, words_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


_ISO_DATE: Final = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_INSIDE: Final = re.compile(r"(?<=[\w,;] )[^\W\d_a-zß-öø-ÿ][\w'’-]+")
"""A word with a capital letter that does not begin a sentence."""
_MOST_SOURCES: Final = 200
_AROUND_QUOTE: Final = ' "“”„«».…'
"""What a summary may put around the words of a message."""
_LEAST_QUOTED: Final = 3
"""Sentences that quote at least a third of a message say what it says."""
_MOST_LABELS: Final = 2
"""Labels that a summary puts before a quote, at most: who said it when, and who it is about."""
_DAY: Final = timedelta(days=1)


async def measure(
    text: str, messages: Sequence[Message], summaries: Sequence[Summary], vectors: MessageVectors | None
) -> Quality:
    """Measure a summary against its sources. Without `vectors`, its coverage is not known. Raises ModelError."""
    sources = [message.text for message in messages] + [summary.text for summary in summaries]
    told, invented = _invented(text, messages, summaries)
    return Quality(
        compression=round(len(text) / max(sum(map(len, sources)), 1), 4),
        coverage=None if vectors is None else await _coverage(text, messages, summaries, vectors),
        grounded=round(1 - len(invented) / told, 4) if told else 1.0,
        invented=tuple(invented),
    )


def _invented(text: str, messages: Sequence[Message], summaries: Sequence[Summary]) -> tuple[int, list[str]]:
    """Return how many dates, numbers and names a text has, and those of them that are not in its sources."""
    sources = [message.text for message in messages] + [summary.text for summary in summaries]
    names = [message.name or message.author for message in messages]
    known = {word for source in (*sources, *names) for word in words_of(source)}
    numbers = {number for source in sources for number in _NUMBER.findall(source)}
    days = _days_of(messages, summaries)
    rest = _ISO_DATE.sub(" ", text)
    names_told = [word for word in _INSIDE.findall(rest) if fold(word)]
    told = list(dict.fromkeys([*_ISO_DATE.findall(text), *_NUMBER.findall(rest), *names_told]))
    invented = []

    def mentioned() -> set[date]:
        found = (find_times(message.text[:MOST_CHARACTERS], message.at) for message in messages)
        return _with_neighbours({when.start.date() for times in found for when in times})

    for word in told:
        if _ISO_DATE.fullmatch(word):
            # Most summaries name the days of their messages alone, so dates in messages are read last.
            grounded = (
                as_date(word) in days or any(word in source for source in sources) or as_date(word) in mentioned()
            )
        elif word[0].isdigit():
            grounded = word in numbers
        else:
            grounded = all(part in known for part in words_of(word)) or word in {"User", "Assistant"}
        if not grounded:
            invented.append(word)
    return len(told), invented


def _days_of(messages: Sequence[Message], summaries: Sequence[Summary]) -> set[date]:
    """Return the days of the sources of a summary, and those that summaries among them name."""
    days = {message.at.date() for message in messages}
    for summary in summaries:
        days.update((summary.began_at.date(), summary.ended_at.date()))
        days.update(found for word in _ISO_DATE.findall(summary.text) if (found := as_date(word)))
    return _with_neighbours(days)


def _with_neighbours(days: set[date]) -> set[date]:
    """Return days with the ones before and after them: a time can be on another day in another time zone."""
    near = set(days)
    for day in days:
        if date.min < day < date.max:
            near.update((day - _DAY, day + _DAY))
    return near


def as_date(word: str) -> date | None:
    try:
        return date.fromisoformat(word)
    except ValueError:
        return None


async def _coverage(
    text: str, messages: Sequence[Message], summaries: Sequence[Summary], vectors: MessageVectors
) -> float | None:
    """Return the average similarity of each source to its nearest sentence of the summary.

    Sentences that quote most of a message together have its vector, so that no text is encoded twice. Those that quote
    less of one say little, and are encoded only where there is nothing else.
    """
    step = max(1, (len(messages) + len(summaries)) // _MOST_SOURCES)
    said = [message for message in messages[::step] if message.text.strip()]
    texts = [summary.text[:MOST_CHARACTERS] for summary in summaries[::step]]
    if not said and not texts:
        return None
    sentences = [sentence[:MOST_CHARACTERS] for sentence in split_sentences(text)] or [text[:MOST_CHARACTERS]]
    starts = [0, *accumulate(len(message.text) + 1 for message in said)]
    whole = "\n".join(message.text for message in said)
    quotes = {sentence: _quoted(sentence, whole, starts) for sentence in sentences}
    quoted: Counter[int] = Counter()
    for place, length in filter(None, quotes.values()):
        quoted[place] += length
    most = {place for place, length in quoted.items() if _LEAST_QUOTED * length >= len(said[place].text)}
    new = [sentence for sentence, quote in quotes.items() if quote is None or not most]
    known = list(await vectors.of(said)) if said else []
    made = list(await vectors.embedder.embed([*new, *texts])) if new or texts else []
    own = [known[place] for place in sorted(most)] + made[: len(new)]
    near: NDArray[np.float32] = np.stack(known + made[len(new) :]) @ np.stack(own).T
    return round(float(near.max(axis=1).mean()), 4)


def _quoted(sentence: str, whole: str, starts: Sequence[int]) -> tuple[int, int] | None:
    """Return the place of the message that a sentence quotes, after labels or without, and the length of the quote.

    `whole` is all messages, which begin at `starts`.
    """
    parts = sentence.split(": ")
    for labels in range(min(len(parts), _MOST_LABELS + 1)):
        quote = ": ".join(parts[labels:]).strip(_AROUND_QUOTE)
        at = whole.find(quote) if quote else -1
        if at >= 0:
            return bisect_right(starts, at) - 1, len(quote)
    return None


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
_OF_LANGUAGES: Final = 8
"""A summary may be in a language of one source in eight that tell theirs, or of more."""
_WRITTEN_OUT: Final = 12
"""Numbers up to this one are often written as words: they may be in a summary without being in its sources."""
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


def language_of(sources: Sequence[str]) -> str | None:
    """Return the language of most sources that tell theirs, if any does."""
    told = Counter(filter(None, map(language_told, sources[:_SOURCES])))
    return told.most_common(1)[0][0] if told else None


def told_in_another_language(text: str, sources: Sequence[str]) -> str | None:
    """Return the language of a text if it is surely none of those in which its sources are written."""
    told = Counter(filter(None, map(language_told, sources[:_SOURCES])))
    usual = told.most_common(1)[0][0] if told else None
    language = language_told(text, usual)
    few = usual is None or len(words_of(text)) < _ENOUGH_WORDS
    if few or language is None or _OF_LANGUAGES * told[language] >= sum(told.values()):
        return None
    return language


def true_sentences(
    text: str, messages: Sequence[Message], summaries: Sequence[Summary], names: Mapping[str, str]
) -> str:
    """Return the sentences of a text that its sources do not show to be false.

    False are those with a number, a date or a name that is in no source, those that share no word with a source, and
    those that say of one person what another one said. `names` are those of the authors of the messages.
    """
    german = language_told(text) == "german"  # where nouns have capitals
    sources = [each.shown_text for each in messages] + [each.text for each in summaries]
    labels = {author: frozenset(words_of(name)) for author, name in names.items()}
    everybody = frozenset(word for name in labels.values() for word in name)
    said = [(labels.get(each.author, frozenset()), frozenset(words_of(each.shown_text))) for each in messages]

    def is_false(sentence: str) -> bool:
        wrong = _invented(sentence, messages, summaries)[1]
        if any(not (german if word[0].isalpha() else word.isdigit() and int(word) <= _WRITTEN_OUT) for word in wrong):
            return True
        words = frozenset(words_of(sentence))
        language = guess_language(sentence)
        content = {word for word in words - everybody if _tells(word, language)}
        shared = [len(content & each) for _, each in said]
        most = max(shared, default=0)
        if not most and len(content) >= _ENOUGH_WORDS:
            return not shared_words(" ".join(content), sources, ())[1]
        if not words & everybody or most < _ENOUGH_WORDS:
            return False
        nearest = [each for each, count in zip(said, shared, strict=True) if count == most]
        return not any(words & everybody & (author | each) for author, each in nearest)

    return join([sentence for sentence in split_sentences(text) if not is_false(sentence)] or [""])


async def require_support(
    text: str, sources: Sequence[str], names: Sequence[str], embedder: Embedder | None, model: str
) -> None:
    """Raise ModelGarbled unless a text is in a language of its sources and supported by them.

    `names` are of people who may appear in it.
    """
    if not await is_supported(text, sources, names, embedder):
        # Without the text: the agenda keeps this error, also when the messages are erased.
        raise ModelGarbled(f"{model} wrote a summary that its sources do not support")
    if language := told_in_another_language(text, sources):
        raise ModelGarbled(f"{model} wrote a summary in another language than its sources ({language})")


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
    if shared > 0 or words < _ENOUGH_WORDS:
        return True
    return guess_language("\n".join(source[:_CHARACTERS] for source in sources[:_SOURCES])) != guess_language(text)


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
