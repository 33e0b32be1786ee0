"""Chooses the sentences of a summary that is made without a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import groupby
from math import exp, inf, log
from typing import Final, NamedTuple

from aforesaid.domain.caches import holds_texts
from aforesaid.extras import np, re
from aforesaid.models.offline.request_rules import asks
from aforesaid.text.languages import Vocabulary, guess_language, stems, stop_words, vocabulary, word_finder
from aforesaid.text.sentences import (
    begins_with_anaphor,
    is_question,
    length_in_words,
    without_hesitation,
    without_opener,
)
from aforesaid.text.words import UNSPACED_LANGUAGES, UNSPACED_LETTERS, fold, words_of

_FOLLOWING: Final = 0.85
_STEPS: Final = 12


def centrality(terms: Sequence[Mapping[str, float]]) -> list[float]:
    """Return the centrality of each sentence; the most central one has 1.0.

    The similarity of two sentences is the cosine of their weighted words. The matrix of all pairs is not computed: it
    is the product of the word matrix and its transpose, so each step multiplies by both. Time and memory grow linearly
    with the length of the conversation.
    """
    count = len(terms)
    if not any(terms):
        return [1.0] * count
    frequency = Counter(term for words in terms for term in words)
    numbers = {term: number for number, term in enumerate(frequency)}
    rows = np.fromiter((row for row, words in enumerate(terms) for _ in words), dtype=np.intp)
    columns = np.fromiter((numbers[term] for words in terms for term in words), dtype=np.intp)
    rarity = np.array([log(1 + count / times) for times in frequency.values()])
    values = rarity[columns]
    lengths = np.sqrt(np.bincount(rows, values**2, count))
    values /= lengths[rows]
    own = (lengths > 0).astype(float)

    def among(vector: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        by_term = np.bincount(columns, values * vector[rows], len(numbers))
        # Without a sentence's similarity to itself.
        return np.maximum(np.bincount(rows, values * by_term[columns], count) - own * vector, 0.0)

    degrees = among(np.ones(count))
    degrees[degrees <= 0] = 1.0
    rank = np.full(count, 1 / count)
    for _ in range(_STEPS):
        rank = (1 - _FOLLOWING) / count + _FOLLOWING * among(rank / degrees)
    return [float(value) for value in rank / rank.max()]


# Words.
_REPEATED: Final = 0.51
_NUMBER: Final = 4.4
_NAMED: Final = 3.5
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
_EXCLAIMED: Final = 1.5
"""Factor for news as people tell it: "We got the flat!"."""
_EMPTY: Final = 0.12
_FEW: Final = 2
_EARLY: Final = 0.39
_EARLY_TURNS: Final = 14.9
_OPENING: Final = (0.8, 0.2)
_SHORT_CHAT: Final = 10
"""Maximum turns of a short chat, in which the first turns state the subject."""
_ASSISTANT: Final = 0.3
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
_LAUGHTER: Final = re.compile(
    r"\D?(\D{1,2})\1{2,}\D?|[jhх]ah?[jh][jhaeks]+|lo+l|x+d+|ㅋ+|ㅎ+|ㅠ+|w{2,}|哈{2,}|呵{2,}|笑+"
)
"""A word that is laughter, or a single letter held for long."""
_WORTHY: Final = 1.3
"""Worth from which a turn tells something, however few words it has: "She was born!"."""
_WORTHLESS: Final = 0.35
"""Worth up to which a turn tells nothing, whatever its words are."""
_SENTENCES: Final = 1_000
"""Sentences whose words are cached: two people's summaries of one conversation weigh the same ones."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A candidate for a summary. Its place is the number of its turn and its number in the turn."""

    place: tuple[int, int]
    speaker: str
    day: date | None
    text: str
    assistant: bool = False
    worth: float = 1.0
    """How much its turn changes in what is known, beside what its words tell."""
    alone: bool = True
    """Whether its turn is understood without what was said before, as far as its meaning tells."""
    thread: str = ""
    answers: tuple[int, int] | None = None
    """The place of the sentence that it replies to, if the summary quotes that too; otherwise None."""


class Weighed(NamedTuple):
    """A sentence with the weights of its words and the factor of its kind; or several that are told together."""

    sentence: Sentence
    terms: dict[str, float]
    factor: float
    length: float
    """The length in words."""
    telling: bool
    """Whether it contains information."""
    strong: float = 0.0
    """The number of its specific words."""
    leans: bool = False
    """Whether it begins with a word that points to something said before."""
    told: tuple[Sentence, ...] = ()
    """The sentences of a matter, in order."""


class _Read(NamedTuple):
    """What a text says by itself, wherever it stands."""

    text: str
    """Without interjections at the beginning."""
    length: float
    """The length in words."""
    leans: bool
    """Whether it begins with a word that points to something said before."""
    cues: tuple[str, ...]
    """The vocabulary lists that contain words of it."""
    kinds: dict[str, float]
    """The factor of each of its terms."""
    strong: float
    factor: float
    """The factor of its kind."""


def weigh(sentences: Sequence[Sentence]) -> list[Weighed]:
    """Weigh every sentence of a conversation relative to the others."""
    usual = guess_language("\n".join(sentence.text for sentence in sentences[:200]))
    names = frozenset(word for name in {one.speaker for one in sentences} for word in words_of(name))
    read = [_read(sentence.text, usual, names) for sentence in sentences]
    frequency = Counter(term for one in read for term in one.kinds)
    turns = 1 + max((one.place[0] for one in sentences), default=0)
    return [
        Weighed(
            sentence if one.text == sentence.text else replace(sentence, text=one.text),
            {term: kind * (1 + _REPEATED * log(frequency[term])) for term, kind in one.kinds.items()},
            _factor(one, sentence, turns),
            one.length,
            _is_telling(one, sentence.worth),
            one.strong,
            not sentence.alone or one.leans,
        )
        for sentence, one in zip(sentences, read, strict=True)
    ]


def _is_telling(read: _Read, worth: float) -> bool:
    """Return whether a sentence contains two specific words, or one and the first person, or changes what is known."""
    if read.strong >= _FEW:
        return worth > _WORTHLESS
    return read.strong > 0 and (worth >= _WORTHY or ("first_person" in read.cues and "reactions" not in read.cues))


@holds_texts
@lru_cache(_SENTENCES)
def _read(whole: str, usual: str, names: frozenset[str]) -> _Read:
    language = guess_language(whole, usual)
    lists = vocabulary(language)
    core = without_opener(without_hesitation(whole, language), lists, names)
    kinds, strong = _kinds(core, language, lists, names)
    cues, factor = _cues(whole, language, lists), 1.0
    for cue in cues:
        factor *= _CUES[cue]
    if is_question(whole):
        factor *= _QUESTION
    if whole.startswith(("[", "(", "*")):
        factor *= _BRACKETED
    if len(_SIGNS.findall(whole)) > _MANY_SIGNS * len(whole):
        factor *= _SYMBOLS
    return _Read(core, length_in_words(core), begins_with_anaphor(whole, language), cues, kinds, strong, factor)


def _cues(whole: str, language: str, lists: Vocabulary) -> tuple[str, ...]:
    has = word_finder(whole, language)
    found = [name for name in ("first_person", "second_person", "times") if has(getattr(lists, name))]
    if language in UNSPACED_LANGUAGES:
        reacts = fold(whole).startswith(tuple(lists.reactions))
    else:
        words = words_of(whole)
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
    if word in words.small_talk or _LAUGHTER.fullmatch(word):
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


def _factor(read: _Read, sentence: Sentence, turns: int) -> float:
    turn = sentence.place[0]
    factor = (1 + _EARLY * exp(-turn / _EARLY_TURNS)) * sentence.worth
    if turn < len(_OPENING):
        factor *= 1 + _OPENING[turn] * min(1.0, _SHORT_CHAT / turns) ** 3
    if sentence.assistant:
        factor *= _ASSISTANT
    if read.strong < _FEW and sentence.worth < _WORTHY:
        factor *= _EMPTY
    elif sentence.text.endswith(("!", "！")):
        factor *= _EXCLAIMED
    return factor * read.factor


_CENTRAL: Final = 0.527
_LENGTH: Final = 0.4
"""Exponent of the length by which a sentence's value is divided; below 1, because long sentences say more."""
_ITSELF: Final = 2.0
"""Value of each matter beside that of its words: how it ended is often told in words that were used before."""
_NEW_SPEAKER: Final = 3.0
"""Value added to a sentence of a speaker who has none in the summary yet."""

_LABEL: Final = 4
"""Words of a label. A sentence longer by more than this than one that did not fit is not tried."""
_TOGETHER: Final = 160
"""Maximum characters of the sentences of a turn that are told together,"""
_LEAD: Final = 40
"""beside a first one that is not longer than this: "I looked at the papers."."""
_BEGINS: Final = 3
"""Words that the first turn of a matter must have."""
_BARE: Final = 3
"""Specific words below which a turn is not understood without the one before."""
_UNANSWERED: Final = 0.3
"""Factor for a question that nobody answered."""
_UNCLEAR: Final = 0.42
"""Factor for what is not understood without the turn before, if that tells nothing, and for later parts of a turn."""
_INTERRUPTED: Final = 2
"""Turns by which somebody goes on after a reaction of somebody else, at most."""
_LONGEST_CHAIN: Final = 3
"""Maximum turns of a matter."""
_LONGEST_BEFORE: Final = 300
"""Maximum characters of the turns that are quoted before the one that a matter is about, if there are several."""
_RARE: Final = 2
"""Matters of summaries in which a word is that shows that they are about the same."""
_SLIGHT: Final = 0.6
"""Worth below which a matter is not told beside one of the usual worth."""
_MATTERS: Final = 0.01
"""Choosing ends at the first matter that is worth less than this share of the first one."""
_OF_OTHERS: Final = 0.6
"""Factor for what others said, in a summary for one person."""
_CACHED: Final = 8
"""Conversations whose weighed sentences are cached: two for each summary that is made at the same time."""

Fits = Callable[[Sequence[Sentence]], bool]


def choose(
    sentences: Sequence[Sentence], fits: Fits, person: str | None = None, *, folded: bool = False
) -> list[Sentence]:
    """Return chosen sentences in the order of the conversation. `fits` returns whether they are short enough together.

    The choice is greedy: the matter with the highest value for its length first, until no other fits. A matter is what
    a turn tells, with the turn that it answers. A word counts once, so repetition lowers the value of a matter. Small
    talk is not chosen, nor is what is worth little beside the first one; and so there may be nothing. With `person`,
    what others said counts less. With `folded`, the sentences are matters of summaries: one that comes up again later
    is told with how it went on.
    """
    first: dict[str, Sentence] = {}
    for sentence in sentences:
        first.setdefault(sentence.text, sentence)
    matters, factors = _weighed(tuple(first.values()), folded)
    if person is not None:
        shares = [1.0 if one.sentence.speaker == person else _OF_OTHERS for one in matters]
        factors = [factor * share for factor, share in zip(factors, shares, strict=True)]
    return _pick(matters, factors, fits)


@holds_texts
@lru_cache(_CACHED)
def _weighed(sentences: tuple[Sentence, ...], folded: bool) -> tuple[list[Weighed], list[float]]:  # noqa: FBT001 - a key of the cache
    """Return the matters of sentences that tell something, with their factors: more for central ones.

    Cached: the same sentences are often chosen from again, with less room or for another person.
    """
    matters = _matters(_turns(weigh(sentences)))
    if folded:
        matters = _with_outcomes(matters)
    central = centrality([one.terms for one in matters])
    return matters, [one.factor * (1 + _CENTRAL * rank) for one, rank in zip(matters, central, strict=True)]


def _turns(weighed: Sequence[Weighed]) -> list[Weighed]:
    """Return what is told together: the sentences of a turn, or parts of a long one, without small talk."""
    made: list[Weighed] = []
    for _, group in groupby(weighed, key=lambda one: one.sentence.place[0]):
        said = list(group)
        kept = [one for one in said if one.strong] if any(one.telling for one in said) else said
        part: list[Weighed] = []
        for one in kept:
            so_far = sum(len(each.sentence.text) for each in part)
            if so_far > _LEAD and so_far + len(one.sentence.text) > _TOGETHER:
                made.append(_joined(part))
                part = []
            part.append(one)
        if part:
            made.append(_joined(part))
    return made


def _joined(part: Sequence[Weighed]) -> Weighed:
    leans = part[0].leans or (part[0].strong < _FEW and part[0].length < _BARE + 1)
    if len(part) == 1:
        return part[0]._replace(leans=leans)
    terms: dict[str, float] = {}
    for one in part:
        terms.update({term: worth for term, worth in one.terms.items() if worth > terms.get(term, 0.0)})
    return part[0]._replace(
        sentence=replace(part[0].sentence, text=join([one.sentence.text for one in part])),
        terms=terms,
        factor=max(one.factor for one in part),
        length=sum(one.length for one in part),
        telling=any(one.telling for one in part),
        leans=leans,
        strong=sum(one.strong for one in part),
    )


def _matters(turns: Sequence[Weighed]) -> list[Weighed]:
    """Return what turns tell, each with the turns before where it answers them or is not understood without them."""
    made: list[Weighed] = []
    earlier: Weighed | None = None
    last: Weighed | None = None
    asking = False
    for one in turns:
        before, sentence = last, one.sentence
        if (
            before is not None
            and earlier is not None
            and not (before.telling or asking or before.length >= _FEW)
            and before.sentence.speaker != sentence.speaker == earlier.sentence.speaker
        ):
            before = earlier  # somebody went on after "wow!"
        earlier, last = last, one._replace(told=(one.sentence,))
        asked, asking, leans = asking, asks(sentence.text), one.leans or one.strong < _BARE or sentence.assistant
        factor, telling = one.factor * (_UNANSWERED if asking else 1.0), one.telling
        if before is not None:
            near = _goes_before(before.sentence, sentence)
            answers = near and not asking and before.sentence.speaker != sentence.speaker and asked
            answers = answers and (one.telling or one.length < _FEW or not sentence.text.endswith(("!", "！")))
            if near and (leans or answers) and (before.strong or len(before.told) > 1):
                # What an assistant says or asks is about what it was told.
                whole = before.strong < _BARE or (before.leans and not asked) or before.sentence.assistant
                chain = (before.told if whole else before.told[-1:])[1 - _LONGEST_CHAIN :]
                while len(chain) > 1 and sum(len(each.text) for each in chain) > _LONGEST_BEFORE:
                    chain = chain[1:]
                while (
                    chain
                    and length_in_words(chain[0].text) < _BEGINS
                    and (len(chain) > 1 or chain[0].speaker != sentence.speaker)
                ):
                    chain = chain[1:]
                last = last._replace(told=(*chain, replace(sentence, answers=before.sentence.place)))
            if answers and before.telling:
                factor, telling = max(factor, before.factor), True
                last = last._replace(terms=before.terms | one.terms, length=one.length + before.length)
                if made and made[-1].told[-1].place == before.sentence.place:
                    made.pop()  # the answer tells the question
            elif len(last.told) == 1 and (leans or before.sentence.place[0] == sentence.place[0]):
                factor *= _UNCLEAR
            elif sentence.assistant and not asked and 2 * len(one.terms.keys() & before.terms.keys()) >= len(one.terms):
                telling = False  # it repeats what it was told
        if telling:
            made.append(last._replace(factor=factor, telling=True))
    return made


def _with_outcomes(matters: Sequence[Weighed]) -> list[Weighed]:
    """Return matters, each together with the last one of a later day that is about the same.

    These share two words that no other matter has, or a name.
    """
    places: dict[str, list[int]] = {}
    for number, one in enumerate(matters):
        for term in one.terms:
            places.setdefault(term, []).append(number)
    shared: dict[tuple[int, int], list[float]] = {}
    for term, found in places.items():
        if len(found) == _RARE and not _HAS_DIGIT.search(term):
            pair = (found[0], found[1])
            shared.setdefault(pair, []).append(min(matters[number].terms[term] for number in pair))
    made: list[Weighed | None] = list(matters)
    for (first, last), weights in sorted(shared.items(), key=lambda each: -sum(each[1])):
        one, other = matters[first], matters[last]
        # Neither of them is part of another pair.
        if (len(weights) < _FEW and max(weights) < _NAMED) or made[first] is not one or made[last] is not other:
            continue
        began, ended = one.sentence.day, other.sentence.day
        if began is None or ended is None or began >= ended:
            continue
        made[first] = None
        made[last] = other._replace(
            terms=one.terms | other.terms,
            factor=max(one.factor, other.factor),
            length=one.length + other.length,
            told=(*one.told, *other.told),
        )
    return [one for one in made if one is not None]


def _goes_before(before: Sentence, sentence: Sentence) -> bool:
    """Return whether a sentence can be about what the one before says."""
    turns = _INTERRUPTED if before.speaker == sentence.speaker else 1
    near = sentence.place[0] - before.place[0] <= turns
    return near and (before.day, before.thread) == (sentence.day, sentence.thread)


def best(sentences: Sequence[Sentence]) -> Sentence:
    weighed = weigh(sentences)
    values = [sum(one.terms.values()) * one.factor / (one.length + 0.5) ** _LENGTH for one in weighed]
    return weighed[values.index(max(values))].sentence


def _pick(matters: Sequence[Weighed], factors: Sequence[float], fits: Fits) -> list[Sentence]:
    said: set[str] = set()
    heard: set[str] = set()

    def value(number: int) -> float:
        one = matters[number]
        fresh = (_ITSELF + sum(worth for term, worth in one.terms.items() if term not in said)) * factors[number]
        if one.sentence.speaker not in heard:
            fresh += _NEW_SPEAKER * min(1.0, factors[number])
        return float(fresh / (one.length + 0.5) ** _LENGTH)

    # Values only fall while matters are chosen. So the first of the queue is the best one if its recomputed value is
    # still above the second's.
    queue = [(-value(number), number) for number in range(len(matters))]
    heapify(queue)
    chosen: dict[tuple[int, int], Sentence] = {}
    too_long = inf
    highest = highest_worth = 0.0
    while queue:
        _, number = heappop(queue)
        now = -value(number)
        if queue and (now, number) > queue[0]:
            heappush(queue, (now, number))
            continue
        if chosen and now >= -_MATTERS * highest:
            break
        one = matters[number]
        worth = max(each.worth for each in one.told)
        if one.length > too_long + _LABEL or (worth < _SLIGHT and chosen and highest_worth >= 1):
            continue
        # A sentence that tells what it answers comes after one that was told as what another answers.
        attempt = chosen | {
            each.place: each for each in one.told if each.answers is not None or each.place not in chosen
        }
        is_fitting = fits([attempt[place] for place in sorted(attempt)])
        for shorter in () if is_fitting else _shorter(one):
            attempt = chosen | {each.place: each for each in shorter}
            if is_fitting := fits([attempt[place] for place in sorted(attempt)]):
                break
        if not is_fitting:
            too_long = min(too_long, one.length)
        else:
            highest, highest_worth = highest or -now, max(highest_worth, worth)
            chosen = attempt
            said.update(one.terms)
            heard.add(one.sentence.speaker)
    return [chosen[place] for place in sorted(chosen)]


def _shorter(one: Weighed) -> Iterator[Sequence[Sentence]]:
    """Yield shorter forms of a matter that are understood: without what came before a question, or the last turn alone.

    Of several matters that are told together, the last one tells how they ended.
    """
    *before, last = one.told
    answers = bool(before) and last.answers == before[-1].place and asks(before[-1].text)
    if answers and len(before) > 1 and length_in_words(before[-1].text) >= _BEGINS:
        yield (replace(before[-1], answers=None), last)
    alone = not answers and last.alone and not last.assistant
    if before and alone and ((one.strong >= _BARE and not one.leans) or last.worth >= _WORTHY):
        yield (replace(last, answers=None),)


_UNSPACED_END: Final = "。！？｡）」』】"


def join(texts: Sequence[str]) -> str:
    """Join sentences, adding missing full stops."""
    joined = texts[0]
    for text in texts[1:]:
        if joined[-1].isalnum():
            joined += "."
        joined += text if joined[-1] in _UNSPACED_END else f" {text}"
    return joined
