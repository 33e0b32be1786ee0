"""What people tell about themselves, as values: which matter, in their own words, and whether it still holds.

The built-in reader marks the words; here they become whole: a relation and a name are one value, what is said of
somebody else belongs to that person, and an event has its time. The texts, headings and endings of each language are
data (`matters/`).
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta, tzinfo
from difflib import SequenceMatcher
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple, cast
from unicodedata import normalize

from aforesaid.domain.caches import holds_texts
from aforesaid.domain.checks import Category, Kind, to_zone
from aforesaid.domain.memory import VALUE_CHARACTERS, Event, Matter, MemoryRecord
from aforesaid.domain.message import Message, in_time_order
from aforesaid.extras import re
from aforesaid.facts.candidate import Candidate, lasting, statement_in
from aforesaid.facts.people import Person, by_id
from aforesaid.facts.timing import told_time
from aforesaid.models.offline import is_joke
from aforesaid.models.offline.memories.extract import written_time
from aforesaid.models.offline.memories.keys import introduction
from aforesaid.models.offline.request_rules import asks
from aforesaid.models.reader import Holds, Mark, Reading
from aforesaid.text.languages import guess_language, language_told, stems, stop_words, vocabulary
from aforesaid.text.sentences import is_question, length_in_words, split_sentences
from aforesaid.text.times.time_words import NUMBERS
from aforesaid.text.words import UNSPACED_LANGUAGES, fold, words_of

VALUES: Final = "values/1"
"""The version of this extractor."""
PEOPLE: Final = frozenset({
    "partner", "child", "parent", "sibling", "relative", "friend", "colleague", "boss", "neighbour",
})  # fmt: skip
"""Matters that are a person."""
_USUAL_PEOPLE: Final = frozenset({"parent", "friend", "colleague", "boss", "neighbour"})
"""Who says nothing without a name."""
LIVING: Final = PEOPLE | {"pet"}
SINGLE: Final = frozenset({
    "name", "age", "birthday", "home", "job", "employer", "partner", "phone", "email", "address",
})  # fmt: skip
"""Matters with one value at a time."""
ESSENTIAL: Final = ("name", "allergy", "condition", "medicine", "diet", "partner", "child", "home")
"""What always matters, whatever is asked, the most important first."""
_IMPORTANCE: Final[Mapping[str, int]] = {
    "name": 9, "allergy": 10, "condition": 9, "medicine": 9, "diet": 8, "birthday": 8, "partner": 8, "child": 8,
    "home": 8, "job": 7, "employer": 7, "age": 7, "parent": 7, "sibling": 7, "phone": 7, "email": 7, "address": 7,
    "pet": 7, "relative": 6, "friend": 6, "from": 6, "study": 6, "speaks": 6, "event": 6, "like": 5, "dislike": 5,
}  # fmt: skip
_USUAL: Final = 5
_CACHED: Final = 4_096
_INFLECTED: Final = frozenset({"german", "russian", "polish", "turkish", "arabic", "hindi", *UNSPACED_LANGUAGES})
"""Languages in which names have endings, or no capital letters of their own."""
_MOST_OF: Final = 0.6
_LEAST_FORM: Final = 4
_LONGEST_ENDING: Final = 4
_A_WORD: Final = r"[^\s.,;:!?،。、，？！\"'“”«»„()]+"
HEALTH: Final = frozenset({"allergy", "condition", "medicine", "diet"})
_BODILY: Final = HEALTH | {"age"}
_ILL: Final = frozenset({"allergy", "condition"})
"""What is not doubted where somebody says it of themselves in plain words,"""
_PLAINLY_ILL: Final = 0.75
"""with at least this certainty."""
_THIRD: Final = frozenset({
    "english", "german", "french", "spanish", "italian", "portuguese", "dutch", "polish", "russian",
})  # fmt: skip
"""Languages whose verbs tell of whom a value is."""
_PREFERENCES: Final = frozenset({"diet", "like", "dislike", "hobby"})
_LEAST: Final[Mapping[str, float]] = {
    "tell": 0.4, "correct": 0.4, "ask": 0.45, "request": 0.45, "feel": 0.6, "greet": 0.5, "remind": 0.6, "chat": 0.6,
}  # fmt: skip
"""Least probability that words are a value, by what their message wants. Messages that want others tell none."""
_LEAST_DATED: Final = 0.4
"""The same of an event in a message that sounds like a reminder: "dentist on Monday at 9"."""
_IMPLIED: Final = 0.6
_INTRODUCED: Final = 0.9
_CALLED: Final = re.compile(r"[^\W\d_][\w'’-]*(?: [A-ZÀ-ÖØ-ÞĀ-ſА-ЯЁ][\w'’-]*)?")
_WORD: Final = re.compile(r"[^\W\d_]+")
_YEARS: Final = re.compile(r"\d{1,3}")
_ENDING: Final = frozenset({"tell", "correct", "feel"})
"""What messages want that may say that something is over."""
_TELLING: Final = 0.6
"""Least probability that a message tells anything."""
_PLAINLY: Final = 0.8
"""Probability from which a word is plainly a value,"""
_PLAIN: Final = 0.7
"""and certainty from which it is plainly one of its matter."""
_TELLS_SURELY: Final = 0.9
_TELLING_PLAINLY: Final = 0.25
"""Least probability that a message with such a word tells anything."""
_TELLING_END: Final = 0.4
"""The same of one that says that something known is over."""
_LEAST_CERTAIN: Final[Mapping[str, float]] = {
    "name": 0.6, "birthday": 0.65, "address": 0.6, "age": 0.6, "job": 0.5, "employer": 0.5, "own": 0.5, "friend": 0.55,
    "pet": 0.5, "hobby": 0.5, "goal": 0.6,
}  # fmt: skip
"""Least certainty that a value is one of its matter, where others are easily taken for one: a date for a birthday."""
_USUALLY_CERTAIN: Final = 0.4
_LEAST_RIGHT: Final = 0.35
"""Least probability that a value is right;"""
_LEAST_RIGHT_HEALTH: Final = 0.2
"""the same of health, where leaving one out does more harm; and"""
_SURELY_RIGHT: Final = 0.45
"""that it is beyond doubt: what is doubted is found by searches, but not described, and it replaces nothing."""
_DOUBTED: Final = 0.55
"""Most certainty of what is doubted."""
_LEAST_ELSEWHERE: Final = 0.55
"""The same of where somebody else lives or works: many places are named beside people."""
_LEAST_OVER: Final = 0.5
"""Least certainty of what is over and known: a quarrel with a partner does not end anything."""
_SURELY_OVER: Final = 0.8
"""Certainty from which a place is over, whatever words like "now" say."""
_SURELY_ASKS: Final = 0.5
"""Probability from which a clause asks that has neither a question mark nor a word that asks."""
_SHORT_ANSWER: Final = 8
"""Maximum words of a message that is read after the question before it."""
_LONGEST_QUESTION: Final = 160
_MOST_COUNTED: Final = 240
"""Characters of a message that count for the language of its author."""
_SHORT_NAME: Final = 3
_WITHOUT_I: Final = frozenset({"polish", "turkish", "hindi", "korean", "japanese", "chinese", "arabic", "russian"})
"""Languages in which sentences often name nobody, or in which words are not separated."""
_WITH_I: Final = frozenset({"english", "german", "french", "dutch"})
"""Languages in which who speaks of their own people says "I" or "my"."""
_SURELY_MINE: Final = 0.9
"""Certainty from which somebody is somebody to the author, whatever the sentence says."""
_SMALL_NATIONS: Final = frozenset({"italian", "spanish", "portuguese", "french", "russian"})
"""Languages that write nationalities small, so that a capital after "I am" begins a name."""
_ANYWHERE: Final = frozenset({"event", "goal", "phone", "email", "address"})
"""What need not be told of its author to be the author's."""
_BESIDE: Final = 12
"""Characters behind a place in which it is said to be where somebody moved to."""
_BETWEEN: Final = 16
"""Maximum characters between the parts of one value."""
_FOR_LIFE: Final = frozenset({"child", "parent", "sibling", "relative"})
"""Who somebody is to a person until death."""
_NUMBERED: Final = 0.8
"""Certainty of what has the form of a phone number or a mail address."""
_APART: Final = 24
"""Maximum characters between a relation and a name that belong together."""
_ENDINGS: Final[Mapping[str, re.Pattern[str]]] = {
    "korean": re.compile(
        r"(?<=[가-힣])(?:에서는?|에는?|에게는?|한테는?|께서?|으로는?|로|이랑|랑|하고|까지|부터|처럼|보다|이라고|라고|이라서|라서|이라|인데|이고|이지만|"
        r"이에요|예요|이야|입니다|은|는|이|가|을|를|와|과|도|만|의)$"
    ),
    "japanese": re.compile(r"(?<=[^ぁ-ん])(?:[はがをへとものや]|[にで].?)$"),
}
"""What values end with that is no part of them,"""
_BEFORE: Final = re.compile(
    r"^(?:(?:bende|bizde|benim|bizim|bana)\s+|在|本人|我们?的?(?=.)|私の?(?=.)|うちの(?=.)|の(?=.)|(?:저는|나는|제가)\s+)",
    re.IGNORECASE,
)
"""and what they begin with."""
_AFTER_CLOSED: Final = frozenset("은이을과")
"""Korean particles after a syllable that ends with a consonant;"""
_AFTER_OPEN: Final = frozenset("는가를와")
"""after one that ends with a vowel."""
_NAME: Final = re.compile(r" (?:[A-ZÀ-ÖØ-ÞĀ-ſА-ЯЁ][\w'’-]+)(?=[\s.,!?;:)]|$)")
_PLACES: Final = frozenset({"home", "job", "employer", "study"})
_GIVEN_UP: Final = frozenset({"hobby", "speaks", "own", "medicine", "diet", "study", "like", "pet"})
"""What somebody can give up, in plain words."""
_NOW: Final = frozenset({"home", "job", "employer", "study", "diet", "medicine", "hobby", "own", "boss", "speaks"})
"""What is so now if it is said with a word like "now"."""
_FINISHED: Final = frozenset({
    "study", "hobby", "goal", "condition", "medicine", "diet", "own", "event", "employer", "job", "speaks", "pet",
})  # fmt: skip
"""What is over where a clause names it and says that something is over."""
_ONCE: Final = frozenset({"like", "dislike", "hobby", "own", "home", "job", "employer"})
"""What may have been so once."""
_REACHED: Final = frozenset({"phone", "email", "address"})
_NUMBERS: Final = frozenset({"phone", "email", "address", "age", "when", "birthday"})
_PHONE: Final = re.compile(r"[+(]?[\d٠-٩०-९][\d٠-٩०-९ ()/-]{5,}[\d٠-٩०-९]")
_FORMS: Final[Mapping[str, re.Pattern[str]]] = {
    "phone": re.compile(r"^(?!\d{4}-\d\d-\d\d)(?:[+(]*[\d٠-٩०-९][ ()/.-]*){5}"),
    "email": re.compile("@"),
    "address": re.compile(r"\d.*[^\W\d]|[^\W\d].*\d"),
}
"""What numbers and addresses look like."""
_LEAST_MOVED: Final = 0.4
"""The same of the place that somebody says to have moved to."""
_MOVED: Final = 0.6
"""Certainty of such a place: the words before it say what it is."""
_SHORTEST_COURSE: Final = 3
"""Days: "twice in one day" is no length."""
_MOST_DIGITS: Final = 3
_CLAUSES: Final = re.compile(r"[.!?;,\n。！？；，、؛،]")
_UNIT: Final = re.compile(r"(?:mg|mcg|µg|μg|g|ml|мг|мкг|мл)\b")
_AMOUNT: Final = re.compile(r"\d[\d.,]*\s*$")
_EMAIL: Final = re.compile(r"[^\s@,;]+@[^\s@]+\.\w+")
_EDGES: Final = " \t\n.,;:!?…。、，！？؟،\"'“”«»„()[]-–—"


class Told(NamedTuple):
    """One value that a message tells."""

    matter: Matter
    value: str
    holds: Holds
    about: str | None
    """Of whom it is true, by name or relation; None for the author."""
    certainty: float
    sentence: str
    """Where it is said."""
    when: str = ""
    """The words that say when an event is."""


class Matters(NamedTuple):
    """The texts of one language."""

    lines: Mapping[str, str]
    headings: Mapping[str, str]
    endings: Mapping[str, re.Pattern[str]]
    """By which words the current value of a matter is over without being named."""
    titles: frozenset[str]
    """Relations and kinds of pets, folded."""
    people: tuple[str, ...]
    """Relations as they are written, the usual word for each first."""
    stops: frozenset[str]
    """Words at which a value ends."""
    plain: Mapping[str, tuple[re.Pattern[str], ...]]
    """Which words say a value of a matter, whatever else is read."""


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of changing.toml, in which "§" is a word."""
    table = tomllib.loads((files("aforesaid.facts") / "changing.toml").read_text(encoding="utf-8"))
    return re.compile("|".join(table[name]).replace("§", _A_WORD), re.IGNORECASE)


@cache
def matters(language: str) -> Matters:
    """Return the texts of a language; those of English for one that has none."""
    path = files("aforesaid.facts") / "matters" / f"{language}.toml"
    if not path.is_file():
        return matters("english")
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return Matters(
        table["lines"],
        table["headings"],
        {matter: re.compile("|".join(found)) for matter, found in table["endings"].items()},
        frozenset(fold(word) for words in table["titles"].values() for word in words),
        tuple(table["titles"]["people"]),
        frozenset(map(fold, table["stop"]["value"])),
        {
            matter: tuple(re.compile(each.replace("§", _A_WORD), re.IGNORECASE) for each in found)
            for matter, found in table["plain"].items()
        },
    )


def line(matter: str, value: str, language: str) -> str:
    """Return a value as a short line: "Allergic to hazelnuts"."""
    return matters(language).lines[matter].replace("{value}", value)


def importance_of(matter: str) -> int:
    return _IMPORTANCE.get(matter, _USUAL)


def category_of(matter: str) -> tuple[Category, Kind]:
    if matter in _PREFERENCES:
        return "preference", "preference"
    return "fact", "relationship" if matter in PEOPLE else "event" if matter == "event" else "fact"


def key_of(matter: str, about: str | None) -> str:
    """Return the subject of a value: memories of one subject may take each other's place."""
    return matter if about is None else f"{fold(about)}: {matter}"


def composed(message: Message) -> str:
    """Return the statement in a message as it is read: composed, so that the places of marks are those in it."""
    return normalize("NFC", statement_in(message))


def answered(messages: Sequence[Message]) -> dict[int, str]:
    """Return the question that each message follows directly, somebody else's, by sequence number."""
    found: dict[int, str] = {}
    last: dict[str, Message] = {}
    for message in in_time_order(messages):
        before = last.get(message.thread)
        last[message.thread] = message
        if before is None or message.role != "user" or before.author == message.author:
            continue
        question = normalize("NFC", (split_sentences(before.text[-_LONGEST_QUESTION:]) or [""])[-1])
        if is_question(question):
            found[message.seq] = question
    return found


def may_answer(text: str, reading: Reading) -> bool:
    """Return whether a message is short, and tells nothing that can be read without the question before it."""
    is_statement = reading.intents.best in {"tell", "chat", "correct"} and length_in_words(text) <= _SHORT_ANSWER
    return is_statement and not told_in(text, reading, language_told(text) or "")


def by_values(
    messages: Sequence[Message],
    readings: Mapping[int, Reading],
    people: Mapping[str, Person],
    owner: Person,
    zone: tzinfo,
    known: Sequence[MemoryRecord] = (),
    usual: str | None = None,
) -> list[Candidate]:
    """Return the values that messages of the owner tell. `readings` are those of `composed`, by sequence number.

    `usual` is the language that the owner speaks mostly: values are labelled in it.
    """
    found: list[Candidate] = []
    named = {name for person in people.values() if person.id != owner.id for name in map(fold, person.names)}
    named |= {fold(name) for each in known if each.state == "active" for name in _names_in(each)}
    words = {fold(word) for each in known if each.value and each.state == "active" for word in each.value.split()}
    for message in messages:
        reading, before = readings.get(message.seq), len(found)
        if reading is None or message.role != "user" or message.author != owner.id:
            continue
        text, speaker = composed(message), by_id(people, message.author)
        language = language_told(text, usual) or usual or guess_language(text, names=speaker.names)
        corrects = reading.intents.best == "correct"
        told = [*told_in(text, reading, language, words)]
        mended = _corrected(text, told, known, message.author, language)
        told, corrects = mended, corrects or mended != told
        told += _introduced(text, told, reading)
        plainly = list(_plainly(text, reading, language, told))
        # "I love hiking but hate crowds": the verb beside it says what is liked.
        told = [each for each in told if not any(_opposite(each, other) or _names(other, each) for other in plainly)]
        told += plainly
        named |= {name for each in told if each.matter in LIVING for name in _folded_names(each.value, language)}
        told = _one_of_each([_of_whom(each, named, language) for each in told], language)
        found += [
            _candidate(each, message, speaker, usual or language, zone)._replace(corrects=corrects, language=language)
            for each in told
        ]
        words |= {fold(word) for each in told for word in each.value.split()}
        best = reading.intents.best
        # "Reksio zdechł wczoraj" is short, and sounds like anything.
        if (best in _ENDING or (best != "ask" and pattern("died").search(text))) and not is_joke(text):
            own: list[MemoryRecord | Candidate] = [
                each for each in known if each.state == "active" and each.speaker == message.author
            ]
            own += [each for each in found[:before] if each.holds == "own"]
            finished = list(_finished(text, own, language))
            # "The gastritis is cured": what is named is not told as something that is so.
            ended = {(each.matter, each.value) for each in finished}
            found[before:] = [each for each in found[before:] if (each.matter, each.value) not in ended]
            its = found[before:]
            found += [
                _candidate(each, message, speaker, usual or language, zone)._replace(language=language)
                for each in (*_implied(text, own, language), *finished)
                if not any(
                    other.matter == each.matter
                    and (
                        other.value == each.value
                        or (other.holds == "over" and touches(other.value or "", each.value, language))
                    )
                    for other in its
                )
            ]
        if reading.intents.best in _ENDING:
            found += [
                _ending(matter, sentence, message, speaker)._replace(language=language)
                for sentence in split_sentences(text)
                if not is_question(sentence)
                for matter in ended_in(sentence, language)
                if not any(each.matter == matter and each.holds == "own" for each in found[before:])
            ]
    return found


def usual_language(messages: Iterable[Message], owner: Person, known: Iterable[MemoryRecord] = ()) -> str | None:
    """Return the language of most of what somebody wrote; without any, of what is known of them."""
    counted = Counter[str]()
    for message in messages:
        if message.role == "user" and message.author == owner.id:
            language = language_told(message.text)
            counted[language or ""] += min(len(message.text), _MOST_COUNTED) if language else 0
    if not counted.total():
        counted.update(each.language for each in known if each.language and each.speaker == owner.id)
    return counted.most_common(1)[0][0] if counted.total() else None


def _names_in(memory: MemoryRecord) -> Iterator[str]:
    """Yield the names of people and pets that a value tells."""
    if memory.about is not None:
        yield memory.about
    if memory.matter in LIVING and memory.value is not None:
        yield from _folded_names(memory.value, memory.language or "english")


def _folded_names(value: str, language: str) -> Iterator[str]:
    name = " ".join(word for word in value.split() if not only_titles(word, language))
    if language in UNSPACED_LANGUAGES:
        found = [title for title in matters(language).titles if title in name]
        name = name.replace(max(found, key=len, default=""), "", 1).strip("の的 ") if found else name
    if len(name) > 1:
        yield fold(name)
    # "compadre Chema"
    yield from (fold(word) for word in name.split() if word[:1].isupper() and len(word) > 1)


def _of_whom(told: Told, named: Collection[str], language: str) -> Told | None:
    """Return a value with whom it is about if its sentence begins with a known name: "Tom is allergic to nuts".

    None for what a name is taken for, as in "I take Tom to school".
    """
    if told.matter in LIVING:
        return told
    value = fold(told.value)
    if value in named and told.matter != "name":
        return None
    if told.matter == "name":
        is_somebody = told.about is None and any(only_titles(word, language) for word in told.value.split())
        return None if is_somebody else told
    if told.matter in _ANYWHERE or told.about is not None or told.holds != "own":
        return told
    words = words_of(told.sentence)
    if _says_i(words, language) or pattern("we").search(told.sentence):
        return told
    spaced = language not in UNSPACED_LANGUAGES
    for name in named:
        begins = words[: len(name.split())] == name.split() if spaced else fold(told.sentence).startswith(name)
        if begins and len(name) > 1:
            return told._replace(about=told.sentence.lstrip(_EDGES)[: len(name)])
    return told


def _one_of_each(told: Iterable[Told | None], language: str) -> list[Told]:
    """Return values with the surest one of each matter that has one at a time, unless one comes to the other."""
    found = [each for each in told if each is not None]
    best: dict[tuple[str, str | None], Told] = {}
    for each in found:
        if each.matter in SINGLE and each.holds == "own":
            key = (each.matter, each.about)
            best[key] = max(best.get(key, each), each, key=lambda one: one.certainty)

    def is_one(each: Told) -> bool:
        if each.matter not in SINGLE or each.holds != "own":
            return True
        other = best[each.matter, each.about]
        # "I live in Bern and Rome"
        is_list = other.sentence == each.sentence and pattern("and").search(_between(each, other)) is not None
        return other is each or is_list or adds(each.sentence, language)

    return list(filter(is_one, found))


def _between(one: Told, other: Told) -> str:
    """Return the few words between two values of a sentence; empty if there are more."""
    first, second = sorted((one.value, other.value), key=one.sentence.find)
    between = one.sentence.partition(first)[2].partition(second)[0]
    return between if len(between) <= _BETWEEN else ""


def _corrected(
    text: str, told: Sequence[Told], known: Sequence[MemoryRecord], author: str, language: str
) -> list[Told]:
    """Return values in which the words that a message says to be wrong are replaced by the right ones."""
    if is_question(text) or (found := pattern("corrected").search(text)) is None:
        return list(told)
    groups = found.groupdict()
    wrong, right = (
        next(filter(None, (value for name, value in groups.items() if name[0] == side)), "") for side in "ab"
    )
    if not (_says_something("name", wrong, language) and _says_something("name", right, language)):
        return list(told)

    def mended(value: str) -> str:
        """Return a value with the right word in place of the wrong one; empty if it does not have that."""
        place = re.search(
            rf"(?<!\w){re.escape(wrong)}(?!\w)" if language not in UNSPACED_LANGUAGES else re.escape(wrong), value
        )
        return "" if place is None else f"{value[: place.start()]}{right}{value[place.end() :]}"

    made = [each._replace(value=mended(each.value) or each.value, holds="own") for each in told]
    for memory in known:
        matter = cast("Matter | None", memory.matter)
        if matter is None or memory.value is None or memory.state != "active" or memory.speaker != author:
            continue
        if value := mended(memory.value):
            made = [each for each in made if each.matter != matter or each.about != memory.about]
            made.append(Told(matter, value, "own", memory.about, _INTRODUCED, _sentence_at(text, found.start())))
    return made


def _introduced(text: str, told: Sequence[Told], reading: Reading) -> Iterator[Told]:
    """Yield the name by which a message introduces its author in plain words, if none was read in it."""
    if any(each.matter == "name" and each.about is None for each in told):
        return
    for sentence in split_sentences(text):
        # "I'm Martha, I'm 58 and I live in Leeds"
        said = introduction(sentence.strip(" ,;")) or introduction(_CLAUSES.split(sentence.strip(" ,;"))[0])
        named = pattern("my_name").search(sentence) if said is None else None
        name = said.name if said is not None else _CALLED.match(sentence, named.end()) if named is not None else None
        if name is not None and not is_question(sentence):
            yield Told("name", name if isinstance(name, str) else name[0], "own", None, _INTRODUCED, sentence)
            return
    for mark in reading.marks if reading.intents.best in _ENDING else ():
        # "저는 민지예요": what is barely read as a name is one there.
        named = pattern("i_am_called").fullmatch(text[: mark.start][-_APART:] + mark.words)
        if named is not None and mark.slot in {"name", "from"}:
            yield Told("name", named["name"], "own", None, _MOVED, _sentence_at(text, mark.start))
            return


def _plainly(text: str, reading: Reading, language: str, told: Sequence[Told]) -> Iterator[Told]:
    """Yield what a message says in plain words, by the patterns of its language, of matters not read in it."""
    known = {
        each.matter
        for each in told
        if each.holds == "own" and (each.matter not in LIVING or not only_titles(each.value, language))
    }
    plain = matters(language).plain
    patterns = {**plain, "home": (*plain.get("home", ()), pattern("moved_to"))}
    patterns = {matter: found for matter, found in patterns.items() if matter not in known}
    if reading.intents.best not in _ENDING or not patterns or is_joke(text):
        return
    for sentence in split_sentences(text):
        if is_question(sentence) or _subject(sentence, language) is not None or pattern("unsure").search(sentence):
            continue
        for matter, found in patterns.items():
            for match in (each for pattern_of in found for each in pattern_of.finditer(sentence)):
                start, end = match.span("v")
                mark = Mark(start, end, sentence[start:end], matter, "own", _INTRODUCED, _INTRODUCED)
                words = _whole(mark, sentence, language).words
                words = " ".join(filter(None, (words, match.groupdict().get("v2") and match["v2"].strip(_EDGES))))
                if words and not any(each.matter == matter and words in each.value for each in told):
                    # Patterns find a verb in a story, too: what tells something as a whole says it plainly.
                    sure = reading.tells >= _PLAINLY or matter == "home"
                    yield Told(cast("Matter", matter), words, "own", None, _MOVED if sure else _DOUBTED, sentence)


def _opposite(one: Told, other: Told) -> bool:
    """Return whether one value is liked and the other, the same, is not."""
    return {one.matter, other.matter} == {"like", "dislike"} and (one.value in other.value or other.value in one.value)


def _names(one: Told, other: Told) -> bool:
    """Return whether one value has the name of a person or a pet of whom the other only says who they are."""
    return one.matter == other.matter in LIVING and one.value.startswith(f"{other.value} ")


def _implied(text: str, known: Sequence[MemoryRecord | Candidate], language: str) -> Iterator[Told]:
    """Yield what a message says only together with what is known: a year older, and no allergy after all."""
    for memory in (each for each in known if each.matter in {"age", "allergy"}):
        value = memory.value or ""
        for sentence in split_sentences(text):
            if memory.matter == "age" and memory.about is None and (years := _YEARS.search(value)) is not None:
                older = str(int(years[0]) + 1)
                if re.search(rf"(?<![\d.,:/]){older}(?![\d.,:/]*\d)", sentence) and not is_question(sentence):
                    yield Told("age", older, "own", None, _IMPLIED, sentence)
            elif (
                memory.matter == "allergy"
                and memory.about is None
                and pattern("no_allergy").search(sentence.casefold())
            ):
                words = [word for word in words_of(value) if len(word) > 1]
                if any(alike(word, each, language) for word in words for each in words_of(sentence)):
                    yield Told("allergy", value, "over", None, _IMPLIED, sentence)


def _finished(text: str, known: Sequence[MemoryRecord | Candidate], language: str) -> Iterator[Told]:
    """Yield known values that a message names in a sentence which says that something is over: "I passed the exam"."""
    for sentence in split_sentences(text):
        if is_question(sentence) or pattern("not_over").search(sentence) or _subject(sentence, language) is not None:
            continue
        clauses = [
            each
            for each in _CLAUSES.split(sentence)
            if any(pattern(name).search(each) for name in ("finished", "parted", "died"))
            if matters(language).titles.isdisjoint(words := words_of(each)) or _says_i(words, language)
        ]
        for memory in known:
            if memory.matter not in _FINISHED or memory.about is not None or memory.value is None:
                continue
            ends = [pattern(name) for name in (("parted", "died") if memory.matter == "pet" else ("finished",))]
            if any(
                names(clause, memory.value, language) and any(each.search(clause) for each in ends)
                for clause in clauses
            ):
                yield Told(cast("Matter", memory.matter), memory.value, "over", None, _IMPLIED, sentence)


def names(clause: str, value: str, language: str) -> bool:
    """Return whether a clause has all words of a value that say something."""
    if language in UNSPACED_LANGUAGES:
        named = [word for word in value.split() if not only_titles(word, language)] or [value]
        return all(len(word) > 1 and word in clause for word in named)
    stops = stop_words(language) | (
        matters(language).titles if matters(language).titles.isdisjoint([fold(value)]) else set()
    )
    words = [word.removeprefix("ال") for word in words_of(value) if word not in stops and len(word) > 1]
    said = [word.removeprefix("ال") for word in words_of(clause)]
    return bool(words) and all(any(alike(word, each, language) for each in said) for word in words)


def _says_i(words: Collection[str], language: str) -> bool:
    """Return whether words speak of their author."""
    return not vocabulary(language).first_person.isdisjoint(words)


def _candidate(told: Told, message: Message, speaker: Person, language: str, zone: tzinfo) -> Candidate:
    said = to_zone(message.at, zone)
    category, kind = category_of(told.matter)
    shown, event = line(told.matter, told.value, language), None
    when = None
    if told.matter == "event":
        when, beside = told_time(told.sentence, said), told_time(told.when, said) if told.when else None
        if beside is not None and (when is None or beside.start.day != when.start.day):
            # "I signed the lease yesterday, we move on the 28th": the time beside the event is the one.
            when = beside
    if when is not None:
        event = Event(when.start, when.end, when.timed)
        category = lasting("schedule", event, said)
        kind = "schedule" if category == "schedule" else "event"
        shown = f"{shown} ({written_time(when)})"
    elif told.when:
        shown = f"{shown} ({told.when})"
    return Candidate(
        category=category,
        text=f"{speaker.name}: {shown}" if told.about is None else f"{speaker.name}: {told.about} ({shown})",
        importance=importance_of(told.matter) - (told.about is not None) * 2,
        sources=(message,),
        speaker=speaker,
        subject=key_of(told.matter, told.about),
        event=event,
        replaces=None,
        extractor=VALUES,
        quote=told.sentence,
        kind=kind,
        about=told.about,
        confidence=round(told.certainty, 2),
        matter=told.matter,
        value=told.value,
        holds="over" if told.holds == "over" else "own",
        until=_end_of_course(told.sentence, message.at, language) if told.matter == "medicine" else None,
    )


def _end_of_course(sentence: str, said: datetime, language: str) -> datetime | None:
    """Return until when something is taken, where a sentence says for how long: "for ten days"."""
    for found in pattern("course").finditer(sentence):
        number = next(filter(None, found.groups()))
        is_written = number.isdecimal() and len(number) <= _MOST_DIGITS
        days = int(number) if is_written else NUMBERS.get(language, {}).get(fold(number), 0)
        is_other = pattern("not_a_course").search(sentence[: found.start()])
        if days >= _SHORTEST_COURSE and not is_other and not pattern("not_a_course").match(sentence[found.end() :]):
            with suppress(OverflowError):  # said on the last days of the calendar
                return said + timedelta(days=days)
    return None


def _ending(matter: Matter, sentence: str, message: Message, speaker: Person) -> Candidate:
    category, kind = category_of(matter)
    return Candidate(
        category=category,
        text=f'{speaker.name}: "{sentence}"',
        importance=_USUAL,
        sources=(message,),
        speaker=speaker,
        subject=key_of(matter, None),
        event=None,
        replaces=None,
        extractor=VALUES,
        quote=sentence,
        kind=kind,
        matter=matter,
        holds="over",
    )


def told_in(text: str, reading: Reading, language: str, known: Collection[str] = ()) -> list[Told]:
    """Return the values that a message tells, in its order. `text` is what was read, in its composed form.

    `known` are the folded words of known values: what is said to be over need not be as sure if it is known.
    """
    least = _LEAST.get(reading.intents.best)
    if least is None:
        return []
    intent = reading.intents.best
    targets = [
        each
        for each in reading.marks
        if each.slot in {"home", "medicine"} and intent in _ENDING and _is_target(each, text)
    ]
    # "I moved to Lisbon in May"
    moved = max(targets, key=lambda each: each.certainty, default=None)

    def is_sure(mark: Mark) -> bool:
        if intent == "correct" and pattern("rather_than").search(text[: mark.start]):
            return False
        if intent == "greet" and mark.slot != "name":
            return False
        if intent == "ask" and _is_asked(mark, text, reading):
            return False
        if mark is moved:
            return mark.marked >= _LEAST_MOVED
        if mark.slot == "birthday" and length_in_words(text) > _SHORT_NAME and not pattern("born").search(text):
            return False
        ends = mark.holds == "over" and any(fold(word) in known for word in mark.words.split())
        if ends and intent in _ENDING:
            if mark.certainty >= _LEAST_OVER and reading.tells >= _TELLING_END:
                return True
            if pattern("died").search(_sentence_at(text, mark.start)):
                return True
        if reading.tells < (_TELLING if mark.marked < _PLAINLY or mark.certainty < _PLAIN else _TELLING_PLAINLY):
            return False
        after_i_am = mark.slot == "name" and pattern("i_am").search(text[: mark.start])
        # The form of a number or a mail address says what it is.
        formed = mark.slot in _REACHED and _number_at(text, mark.start, mark.end) is not None
        least_certain = _USUALLY_CERTAIN if after_i_am or formed else _LEAST_CERTAIN.get(mark.slot, _USUALLY_CERTAIN)
        if mark.certainty < least_certain or (not ends and not formed and _is_doubtful(mark)):
            return False
        if mark.holds == "other" and mark.slot in _PLACES and mark.certainty < _LEAST_ELSEWHERE:
            return False
        return mark.marked >= (_LEAST_DATED if intent == "remind" and mark.slot == "event" else least)

    def surer(mark: Mark) -> Mark:
        if mark is moved and mark.holds == "other" and pattern("we").search(_sentence_at(text, mark.start)):
            # "My daughter and I have moved"
            mark = mark._replace(holds="own")
        if mark.holds == "other" and pattern("and_i").search(_CLAUSES.split(text[: mark.start])[-1]):
            mark = mark._replace(holds="own")
        if mark.holds == "over" and mark.slot in {"phone", "email"} and fold(mark.words.strip(_EDGES)) not in known:
            # As in: the old address is gone, the new one is this.
            mark = mark._replace(holds="own")
        is_plain = mark is moved and not pattern("not").search(_sentence_at(text, mark.start))
        if is_plain:
            return mark._replace(certainty=max(mark.certainty, _MOVED))
        is_plainly_ill = mark.slot in _ILL and mark.certainty >= _PLAINLY_ILL and mark.holds == "own"
        if is_plainly_ill and _says_i(words_of(_sentence_at(text, mark.start)), language):
            return mark
        if mark.right < _SURELY_RIGHT:
            return mark._replace(certainty=min(mark.certainty, _DOUBTED))
        # What is judged to be right is not doubted for its matter.
        return mark._replace(certainty=max(mark.certainty, _MOVED)) if mark.holds == "own" else mark

    marks = [_whole(surer(mark), text, language) for mark in reading.marks if is_sure(mark)]
    joking = is_joke(text)
    marks = _joined(marks, text)
    told = _values(text, [mark for mark in marks if mark.words and not (joking and mark.holds == "over")], language)
    # The parts of a number are all marked, and "wool" and "wool products" mean the same.
    its = {(each.matter, each.value, each.about): each for each in told}
    return [
        each
        for each in its.values()
        if not any(_says_less(each, other) for other in its.values())
        # Everybody has a mother.
        and not (each.matter in _USUAL_PEOPLE and each.holds == "own" and only_titles(each.value, language))
    ]


def _is_doubtful(mark: Mark) -> bool:
    return mark.right < (_LEAST_RIGHT_HEALTH if mark.slot in HEALTH else _LEAST_RIGHT)


def _joined(marks: Sequence[Mark], text: str) -> list[Mark]:
    """Return marks in which the parts of one value are one: "appointment with the dentist", "wrist is broken"."""
    found: list[Mark] = []
    for mark in marks:
        last = found[-1] if found else None
        if last is not None and last.slot == mark.slot in {"event", "condition"} and last.holds == mark.holds:
            between = text[last.end : mark.start]
            is_near = not _CLAUSES.search(between) and not pattern("and").search(between)
            if is_near and len(between) <= _BETWEEN and len(words_of(between)) <= _SHORT_NAME:
                whole, certainty = text[last.start : mark.end], max(last.certainty, mark.certainty)
                found[-1] = last._replace(end=mark.end, words=whole, certainty=certainty)
                continue
        found.append(mark)
    return found


def _says_less(one: Told, other: Told) -> bool:
    """Return whether two values of one matter are told in a sentence, and the other is the surer one of them."""
    if one is other or one[3:1:-1] != other[3:1:-1] or one.matter != other.matter or one.sentence != other.sentence:
        return False
    is_part = one.value in other.value or other.value in one.value
    return is_part and (one.certainty, len(one.value)) < (other.certainty, len(other.value))


def says_move(sentence: str) -> bool:
    """Return whether a sentence says that somebody moves to another home."""
    return pattern("moved").search(sentence) is not None


def _clause_at(text: str, start: int, end: int) -> str:
    return _CLAUSES.split(text[:start])[-1] + text[start:end] + _CLAUSES.split(text[end:])[0]


def _is_asked(mark: Mark, text: str, reading: Reading) -> bool:
    """Return whether a value stands in the very clause that asks: "since when do I take ramipril".

    What is asked about health supposes what is so: "may I have grapefruit with ramipril?".
    """
    sentence = _sentence_at(text, mark.start)
    clause = _clause_at(text, mark.start, mark.end)
    if is_question(sentence):
        supposed = mark.slot in HEALTH and mark.certainty >= _PLAIN
        return not supposed and (len(clause) + 2 >= len(sentence) or asks(clause))
    if any(map(is_question, split_sentences(text))):
        return False
    surely = min(mark.certainty, mark.marked, mark.right) >= _PLAINLY and reading.tells >= _TELLS_SURELY
    if surely and mark.slot in HEALTH and pattern("goes_on_with").search(text, mark.end):
        # "tenho enxaqueca e quando ataca só o sumatriptano resolve"
        return False
    return (len(clause) + 1 >= len(text) and reading.intents.of("ask") >= _SURELY_ASKS) or asks(clause)


def _is_target(mark: Mark, text: str) -> bool:
    """Return whether a place is where somebody says to have moved to."""
    before, after = text[: mark.start], text[mark.end :]
    clause = _CLAUSES.split(before)[-1]
    if pattern("now").search(clause) and mark.slot == "home":
        # "I moved, and now I live in Porto"
        return says_move(_sentence_at(text, mark.start))
    # In languages without spaces a mark may have some of the words behind the place.
    towards = pattern("towards").search(before) or pattern("arrived").search(text[mark.start : mark.end + _BESIDE])
    return towards is not None and says_move(clause + mark.words + _CLAUSES.split(after)[0])


def ended_in(text: str, language: str) -> list[Matter]:
    """Return the matters whose current value a text says to be over without naming it: "we broke up"."""
    plain = text.casefold().replace("’", "'")
    return [cast("Matter", matter) for matter, pattern in matters(language).endings.items() if pattern.search(plain)]


def adds(sentence: str, language: str) -> bool:
    """Return whether a sentence says that something comes to what there is: "I also work at the library"."""
    folded = fold(sentence)
    return pattern("also").search(folded.replace("also", "") if language == "german" else folded) is not None


def same_value(one: str, other: str, language: str) -> bool:
    """Return whether two values are the same, or the first says less: "my son" after "my son Tom"."""
    if one == other:
        return True
    others = _keys(other, language)
    return all(any(alike(mine, theirs, language) for theirs in others) for mine in _keys(one, language))


def touches(one: str, other: str, language: str) -> bool:
    """Return whether two values may mean the same thing: they share a word, and not only that somebody is a brother."""
    if same_value(one, other, language) or same_value(other, one, language):
        return True
    if language in UNSPACED_LANGUAGES:
        # Single characters would be compared: most of the shorter value has to be in the other one.
        found = SequenceMatcher(None, one, other, autojunk=False).find_longest_match()
        return found.size >= max(2, _MOST_OF * min(len(one), len(other)))
    titles, others = matters(language).titles, _keys(other, language) - matters(language).titles
    return any(alike(mine, each, language) for mine in _keys(one, language) - titles for each in others)


def alike(one: str, other: str, language: str) -> bool:
    """Return whether two words may be forms of one word: "Артём" and "Артёмом", where words have endings."""
    if one == other or language not in _INFLECTED or language in UNSPACED_LANGUAGES:
        return one == other
    short, long = sorted((one, other), key=len)
    shared = next((place for place, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    return len(short) >= _LEAST_FORM and shared >= len(short) - 1 and len(long) - shared <= _LONGEST_ENDING


def only_titles(value: str, language: str) -> bool:
    """Return whether a value names nobody: "brother", "cat"."""
    return fold(value) in matters(language).titles or set(words_of(value)) <= matters(language).titles


def renamed(known: str, name: str, language: str) -> str:
    """Return a name with what a known person is to somebody: "sister Irene" for "sister Inês" and "Irene"."""
    titles = [word for word in known.split() if only_titles(word, language)]
    if not titles or len(titles) == len(known.split()) or any(only_titles(word, language) for word in name.split()):
        return name
    return " ".join([*titles, name])


@holds_texts
@lru_cache(_CACHED)
def _keys(value: str, language: str) -> frozenset[str]:
    """Return the words of a value, as stems; names, and words with many endings, as they are."""
    words = words_of(value)
    if language in _INFLECTED:
        return frozenset(words) or frozenset({fold(value)})
    names = {fold(word) for word in value.split() if word[:1].isupper()}
    keys = {word if word in names else stem for word, stem in zip(words, stems(words, language), strict=True)}
    return frozenset(keys) or frozenset({fold(value)})


def _whole(mark: Mark, text: str, language: str) -> Mark:
    """Return a mark without punctuation, articles, particles and what follows a conjunction or a time."""
    start, words, slot, holds = mark.start, mark.words, mark.slot, mark.holds
    if slot not in {"address", "when", "phone", "email"}:
        dated = slot in {"age", "birthday", "event", "goal"}
        words = pattern("moved").split(words)[0] if slot == "home" else words
        words = _cut(words, matters(language).stops | (frozenset() if dated else vocabulary(language).times))
    stripped = words.strip(_EDGES)
    if slot not in _NUMBERS and language not in UNSPACED_LANGUAGES:
        # "Vitamin D"
        while (
            (last := stripped.rpartition(" "))[1]
            and fold(last[2]) in stop_words(language)
            and last[2] != last[2].upper()
        ):
            stripped = last[0].rstrip(_EDGES)
    stripped = _BEFORE.sub("", stripped) or stripped
    if slot in LIVING:
        # "My mother, the 12th" without a space between them.
        stripped = stripped.rstrip("0123456789") or stripped
    if language == "korean":
        stripped = _without_particle(stripped, slot)
    elif language in _ENDINGS:
        stripped = _ENDINGS[language].sub("", stripped) or stripped
    if slot in LIVING and language not in UNSPACED_LANGUAGES:
        stripped = _without_fillers(stripped, language)
    elif slot in {"home", "from"} and language in _THIRD and stripped[:1].isupper():
        # "Burg macht", but "Frankfurt am Main"
        stripped = re.sub(r"(?: [^\W\d_A-ZÀ-ÖØ-ÞĀ-ſА-ЯЁ][^\sA-Z]*)+$", "", stripped)
    start += words.find(stripped) if stripped else 0
    end = start + len(stripped)
    if slot in LIVING and only_titles(stripped, language):
        # "our dog Rex": a name that follows directly belongs to it.
        name = _NAME.match(text, end)
        end, stripped = (name.end(), text[start : name.end()]) if name is not None else (end, stripped)
    if slot in {"event", "goal", "own", "medicine"} and _is_target(mark, text):
        slot = "home"
    if slot == "name" and not _speaks_of_self(_sentence_at(text, start), language):
        return mark._replace(words="")
    if slot == "home" and holds == "over" and _is_target(mark._replace(start=start, end=end), text):
        holds = "own"
    before = _CLAUSES.split(text[:start])[-1]
    if (
        slot in _NOW
        and holds == "over"
        and (slot not in _PLACES or mark.certainty < _SURELY_OVER)
        and (pattern("now").search(before) or pattern("just_now").match(text, end))
        and not pattern("not").search(_clause_at(text, start, end))
    ):
        mark, holds = mark._replace(certainty=max(mark.certainty, _MOVED)), "own"
    if slot in _PLACES and holds == "own" and _is_for_a_while(text, start):
        return mark._replace(words="")
    if slot == "medicine" and _UNIT.match(stripped) and (dose := _AMOUNT.search(text[:start])) is not None:
        start, stripped = dose.start(), text[dose.start() : end]
    if slot in _NUMBERS and (number := _number_at(text, start, end)) is not None:
        start, end = number.span()
        mark = mark._replace(certainty=max(mark.certainty, _NUMBERED))
        stripped, slot = number[0].strip(), "email" if "@" in number[0] else "phone"
    if (wanted := _FORMS.get(slot)) is not None and wanted.search(stripped) is None:
        return mark._replace(words="")
    if slot in _PLACES and pattern("where").fullmatch(stripped):
        return mark._replace(words="")
    if slot in {"diet", "like"} and not pattern("not").search(stripped):
        clause = _CLAUSES.split(text[:start])[-1]
        if (denied := pattern("not").search(clause)) is not None and slot == "like":
            return mark._replace(words="")
        if denied is not None and len(clause) - denied.start() <= _APART:
            # "neither meat nor fish"
            start = start - len(clause) + denied.start()
            stripped = text[start:end]
    sentence = _sentence_at(text, start)
    if slot in LIVING and holds != "other" and _is_theirs(before + "".join(stripped.rpartition(" ")[:2]), language):
        # "Inês visits with her son", "said that her cat is called Ministro"
        return mark._replace(words="")
    if slot in PEOPLE and holds != "other" and not _is_mine(mark, stripped, sentence, language):
        return mark._replace(words="")
    if slot == "event" and pattern("moved").search(stripped) and (place := _place_in(stripped, sentence, language)):
        start, stripped, slot = end - len(place), place, "home"
        mark = mark._replace(certainty=max(mark.certainty, _MOVED))
    # "De dokter heeft metoprolol vervangen door bisoprolol" ends what the author takes.
    is_given_up = pattern("given_up").match(text, end) is not None
    if slot in _BODILY and language in _THIRD and not is_given_up and _is_of_another(before, sentence, language):
        return mark._replace(words="")
    if slot == "allergy" and (
        pattern("fine").search(fold(sentence)) or pattern("no_allergy").search(sentence.casefold())
    ):
        return mark._replace(words="")
    if slot in _ONCE and holds == "own" and pattern("once").search(_clause_at(text, start, end)):
        holds = "over"
    if slot in _GIVEN_UP and (is_given_up or pattern("gave_up").search(text[:start])):
        mark, holds = mark._replace(certainty=max(mark.certainty, _MOVED)), "over"
    if slot == "medicine" and (
        pattern("without").search(before) or pattern("left_out").search(_CLAUSES.split(text[end:])[0])
    ):
        mark, holds = mark._replace(certainty=max(mark.certainty, _MOVED)), "over"
    if slot in _GIVEN_UP | _PLACES and pattern("instead_of").search(text[:start]):
        mark, holds = mark._replace(certainty=max(mark.certainty, _MOVED)), "over"
    if (
        holds == "over"
        and slot in _FOR_LIFE
        and mark.certainty < _SURELY_OVER
        and not pattern("died").search(_sentence_at(text, start))
    ):
        return mark._replace(words="")
    if holds == "over" and pattern("goes_on").search(_clause_at(text, start, end)):
        holds = "own"
    if holds == "over" and (pattern("not_over").search(sentence) or _is_subject(mark, text, language)):
        return mark._replace(words="")
    if slot == "from" and pattern("i_am").search(text[:start]):
        mark = mark._replace(certainty=max(mark.certainty, _MOVED))
    if slot in {"from", "allergy"} and pattern("i_am").search(text[:start]):
        # "Sono Orsola e sono allergica", "أنا سارة" and not "أنا مصرية"
        is_name = language in _SMALL_NATIONS and stripped.istitle()
        slot = "name" if is_name or (language == "arabic" and stripped[-1:] not in "يةى") else slot
    return mark._replace(start=start, end=end, words=stripped, slot=slot, holds=holds)


def _without_fillers(value: str, language: str) -> str:
    """Return who somebody is without the words around it that name nobody: "my mother now" is the mother."""
    lists = vocabulary(language)
    dull = stop_words(language) | lists.dull | lists.times | lists.first_person
    words = value.split()
    if not any(only_titles(word, language) for word in words):
        return value
    if any(word.istitle() for word in words):
        # "my daughter Nur rang"
        while words and words[-1].islower() and not only_titles(words[-1], language):
            words.pop()
    while words and not only_titles(words[-1], language) and (fold(words[-1]) in dull and not words[-1].istitle()):
        words.pop()
    while words and not only_titles(words[0], language) and (fold(words[0]) in dull and not words[0].istitle()):
        words.pop(0)
    return " ".join(words) if " ".join(words) in value else value


def _without_particle(value: str, slot: str) -> str:
    """Return a Korean value without the particle at its end: "서아" for "서아가", but "사과" and "고양이" stay."""
    if slot == "medicine":
        # "암로디핀을 로사르탄으로 (바꿨어요)": the last one holds.
        value = re.split("(?:으로|을|를) ", value)[-1]
    if slot in LIVING and (named := re.fullmatch("(.{2,}?)이?고", value)) is not None:
        # "남편 이름은 준호이고"
        return named[1]
    found = _ENDINGS["korean"].search(value)
    if found is None or only_titles(value, "korean"):
        return value
    rest = value[: found.start()]
    is_closed = (ord(rest[-1]) - ord("가")) % 28 > 0
    if found[0] in _AFTER_CLOSED | _AFTER_OPEN and is_closed != (found[0] in _AFTER_CLOSED):
        return value
    is_short = len(rest.rpartition(" ")[2]) == len(found[0]) == 1 and found[0] not in {"는", "을", "를"}
    return value if is_short and not only_titles(rest, "korean") else rest


def _is_mine(mark: Mark, words: str, sentence: str, language: str) -> bool:
    """Return whether somebody who is only named is somebody to the author: the sentence says "I" or "my"."""
    if language not in _WITH_I or mark.certainty >= _SURELY_MINE:
        return True
    titles, said = matters(language).titles, words_of(sentence)
    if _says_i(said, language) or not titles.isdisjoint(words_of(words)):
        return True
    if pattern("third").match(sentence):
        return False
    return len(said) <= _SHORT_ANSWER or (not titles.isdisjoint(said) and not _is_theirs(sentence, language))


def _is_theirs(before: str, language: str) -> bool:
    """Return whether words speak of somebody who is somebody else's: "her son", "said that her cat is called"."""
    if pattern("theirs").search(before):
        return True
    if _says_i(words_of(before), language):
        return False
    titles = matters(language).titles
    return any(
        fold(word[0]) in titles and pattern("theirs").search(before[: word.start()]) for word in _WORD.finditer(before)
    )


def _is_of_another(before: str, sentence: str, language: str) -> bool:
    """Return whether the verb before a value tells of somebody who is not named: "since he is coeliac"."""
    return pattern(f"third_{language}").search(before.lower()) is not None and not _says_i(words_of(sentence), language)


def _place_in(words: str, sentence: str, language: str) -> str:
    """Return the place at the end of an event, "Lisbon" of "moving to Lisbon"; empty if the move is undecided."""
    found = _NAME.search(words)
    if (
        language in UNSPACED_LANGUAGES
        or found is None
        or found.end() != len(words)
        or pattern("unsure").search(sentence)
    ):
        return ""
    return found[0].strip() if pattern("towards").search(words[: found.start() + 1]) else ""


def _is_for_a_while(text: str, start: int) -> bool:
    sentence = _sentence_at(text, start)
    return pattern("for_a_while").search(sentence) is not None and not says_move(sentence)


def _is_subject(mark: Mark, text: str, language: str) -> bool:
    """Return whether a clause begins with somebody and tells neither of its author nor of a death: "Pilar has quit"."""
    before = _CLAUSES.split(text[: mark.start])[-1]
    if mark.slot not in PEOPLE or before.strip(_EDGES):
        return False
    clause = _CLAUSES.split(text[mark.start :])[0]
    return not pattern("died").search(clause) and not _says_i(words_of(clause), language)


def _speaks_of_self(sentence: str, language: str) -> bool:
    """Return whether a name in a sentence can be that of its author: it says "I" or "my", or hardly anything else."""
    words = words_of(sentence)
    short = language not in UNSPACED_LANGUAGES and len(words) <= _SHORT_NAME
    return short or language in _WITHOUT_I or _says_i(words, language)


def _number_at(text: str, start: int, end: int) -> re.Match[str] | None:
    """Return the whole phone number or mail address of which a mark is a part."""
    found = (match for pattern in (_EMAIL, _PHONE) for match in pattern.finditer(text))
    return next((match for match in found if match.start() < end and start < match.end()), None)


def _cut(words: str, stops: frozenset[str]) -> str:
    """Return the words before the first that ends a value."""
    for match in re.finditer(r"\s(\S+)", words):
        if match.start() > 0 and fold(match[1].strip(_EDGES)) in stops:
            return words[: match.start()]
    return words


def _values(text: str, marks: Sequence[Mark], language: str) -> Iterator[Told]:
    whom: Mark | None = None
    taken: set[int] = set()
    for place, mark in enumerate(marks):
        if mark.slot == "when" or place in taken:
            continue
        told = [mark]
        if mark.slot in LIVING:
            group = _group(text, marks, place, language)
            taken |= set(group)
            told = _people([marks[each] for each in group], text, language)
            last = marks[group[-1]]
            whom = told[0]._replace(end=last.end) if len(told) == 1 else last
        about = None
        if mark.holds == "other":
            if mark.slot in PEOPLE or whom is None or "\n" in text[whom.end : mark.start]:
                continue
            if any(each.slot in LIVING and 0 <= each.start - mark.end <= 1 for each in marks):
                # "My husband Tom and our five-year-old daughter": it is not the age of who was named before.
                continue
            about = whom.words
        elif mark.slot not in LIVING and mark.slot not in _ANYWHERE:
            somebody = _subject(_sentence_at(text, mark.start), language)
            if somebody is not None and (mark.slot == "name" or somebody == ""):
                continue
            about = somebody
        elif mark.slot == "goal" and _subject(_sentence_at(text, mark.start), language) is not None:
            # "They want a final meter reading"
            continue
        for each in told:
            if 0 < len(each.words) <= VALUE_CHARACTERS and _says_something(each.slot, each.words, language):
                matter, sentence = cast("Matter", each.slot), _sentence_at(text, each.start)
                times = [
                    time.words for time in marks if time.slot == "when" and _sentence_at(text, time.start) == sentence
                ]
                when = times[0] if matter == "event" and len(times) == 1 else ""
                yield Told(matter, each.words, each.holds, about, each.certainty, sentence, when)


def _subject(sentence: str, language: str) -> str | None:
    """Return of whom a sentence tells that does not mention its author: a name, or an empty text; None for the author.

    "Tom is vegetarian", "There is a physiotherapist next door".
    """
    found = pattern("third").match(sentence)
    if found is None or _says_i(words_of(sentence), language):
        return None
    name = next(filter(None, found.groupdict().values()), "")
    if pattern("we").fullmatch(name):
        # The French "on" is we.
        return None
    return "" if fold(name) in stop_words(language) | vocabulary(language).dull else name


def _group(text: str, marks: Sequence[Mark], place: int, language: str) -> list[int]:
    """Return the marks that say who somebody is together with one: relations and names, in either order."""
    found = [place]
    for number in range(place + 1, len(marks)):
        last, following = marks[found[-1]], marks[number]
        between = text[last.end : following.start]
        fits = following.slot == last.slot and (following.holds == last.holds or len(between) <= 1)
        if not fits or len(between) > _APART or any(each in between for each in ".!?。！？"):
            break
        is_title, was_title = only_titles(following.words, language), only_titles(last.words, language)
        if (is_title and (was_title or "," in between)) or (was_title and len(found) > 1):
            break
        if not is_title and any(only_titles(word, language) for word in following.words.split()):
            break
        found.append(number)
    return found


def _people(marks: Sequence[Mark], text: str, language: str) -> list[Mark]:
    """Return one mark for each person: a relation with its name, or several names by themselves."""
    names = [each for each in marks if not only_titles(each.words, language)]
    is_called = len(marks) == len(names) == 2 and pattern("called").search(text[marks[0].end : marks[1].start])  # noqa: PLR2004
    if len(marks) == 1 or (len(names) > 1 and not is_called):
        return list(marks)
    separator = "" if language in UNSPACED_LANGUAGES - {"korean"} else " "
    return [marks[0]._replace(words=separator.join(each.words for each in marks))]


def _says_something(slot: str, value: str, language: str) -> bool:
    words = words_of(value)
    if slot in {"phone", "email", "address"}:
        return any(map(str.isalnum, value))
    if language in UNSPACED_LANGUAGES:
        return bool(words)
    if slot in PEOPLE and len(words) > 1 and value.islower() and matters(language).titles.isdisjoint(words):
        # "The old lady" is neither named nor a relation.
        return False
    dull = stop_words(language) | vocabulary(language).dull
    return any(word not in dull for word in words)


def _sentence_at(text: str, place: int) -> str:
    at = 0
    for sentence in split_sentences(text):
        found = text.find(sentence, at)
        at = found + len(sentence) if found >= 0 else at
        if found >= 0 and place < at:
            return sentence
    return text
