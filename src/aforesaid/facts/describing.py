"""Describes a person in short lines, from what is known: values under their headings, then what else they said.

Only what is current is shown. The lines are in the language in which most values were told.
"""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple
from unicodedata import normalize

from aforesaid.domain.memory import ENDED, INSTRUCTION, MemoryRecord
from aforesaid.extras import re
from aforesaid.facts.people import Person
from aforesaid.facts.statement import says_the_same
from aforesaid.facts.values import ESSENTIAL, HEALTH, LIVING, PEOPLE, importance_of, line, matters, only_titles
from aforesaid.text.languages import guess_language, query_terms
from aforesaid.text.sentences import split_sentences
from aforesaid.text.words import UNSPACED_LANGUAGES, fold, words_of

TOPICS: Final = ("who", "home", "family", "health", "likes", "coming", "wishes", "other")
"""The topics of a description, in its order. Each has a heading in every language."""
LEAST_LINES: Final = 5
"""Lines from which a description has headings. Fewer are read at a glance."""
_TOPIC_OF: Final[Mapping[str, str]] = {
    **dict.fromkeys(("name", "age", "birthday", "from", "speaks", "phone", "email"), "who"),
    **dict.fromkeys(("home", "address", "job", "employer", "study", "own"), "home"),
    **dict.fromkeys(("allergy", "diet", "condition", "medicine"), "health"),
    **dict.fromkeys(("like", "dislike", "hobby", "goal"), "likes"),
    **dict.fromkeys((*PEOPLE, "pet"), "family"),
    "event": "coming",
}
_MOST_VALUES: Final = 12
"""Values of one matter in a line: the newest ones."""
_MOST_NOTES: Final = 6
"""What somebody said in passing, the most important first."""
_STATED: Final = 15
"""How much it matters what a person stated to be remembered."""
_LONGEST_NOTE: Final = 240
"""Characters of a note. A longer one is a story, which the search finds."""
_LEAST_SHOWN: Final = 0.6
"""Minimum confidence of a described value. One that was told several times needs none."""
_LEAST_HEALTH: Final = 0.45
"""Minimum confidence of a described allergy, condition, medicine or diet: leaving one out does more harm."""
_QUOTING: Final = "salience/"
"""The extractor that quotes what seems worth remembering."""
_UNDATED: Final = timedelta(days=14)
"""How long an event is coming of which no date is known."""
_OPEN: Final = timedelta(days=30)
"""How long an event that is over is described, and what somebody said in passing."""


_ALSO: Final[Mapping[str, tuple[str, ...]]] = {
    "employer": ("employer", "job"),
    "job": ("job", "employer"),
    "diet": ("diet", "allergy", "condition"),
}
"""The matters that answer a question for one, the first that is known."""


class Line(NamedTuple):
    """A line of a description."""

    topic: str
    text: str
    memories: frozenset[int] = frozenset()
    """The ids of the memories that it tells."""
    sources: frozenset[int] = frozenset()
    """The messages that these rest on."""
    weight: int = 5
    """How much it matters, whatever is asked."""
    terms: frozenset[str] = frozenset()
    """Its words, by which a question touches it."""


def describe(stated: str, memories: Sequence[MemoryRecord], person: Person, at: datetime) -> list[Line]:
    """Return what is known about a person in lines: what they stated as a text, and their active memories."""
    values = [
        memory for memory in memories if memory.value is not None and memory.speaker == memory.user and _is_sure(memory)
    ]
    language = language_of(values, stated)
    remembered = {memory.text: memory for memory in memories if memory.value is None}
    found = [
        _line("who", sentence, [remembered[sentence]] if sentence in remembered else [], _STATED)
        for sentence in split_sentences(stated)
    ]
    found += _values([each for each in values if each.matter != "event" or _is_coming(each, at)], language)
    said = [*split_sentences(stated), *(memory.text for memory in values)]
    notes = 0
    for memory in memories:
        topic = _topic_of_note(memory, at)
        passing = topic in {"other", "family"} and memory.trust != "stated"
        is_quote = memory.extractor.startswith(_QUOTING) and memory.kind != "preference"
        if passing and is_quote and memory.seen_at <= at - _OPEN:
            continue
        if topic is None or (passing and notes == _MOST_NOTES) or len(memory.text) > _LONGEST_NOTE:
            continue
        if not any(says_the_same(memory.text, each, person.names) for each in said):
            notes += passing
            said.append(memory.text)
            found.append(_line(topic, memory.text, [memory], memory.importance - 1))
    return sorted(found, key=lambda each: TOPICS.index(each.topic))


def answer_from(question: str, memories: Sequence[MemoryRecord], language: str) -> list[str] | None:
    """Return what is known of the matter that a question asks for, one line each; None if it asks for none.

    The matter is the author's own, and what is over is not told: "where do I live" after a move.
    """
    asked = asked_for(question)
    if asked is None:
        return None
    for matter in _ALSO.get(asked, (asked,)):
        known = [each for each in memories if each.active and each.matter == matter and each.speaker == each.user]
        own = [each for each in known if each.about is None]
        # Doubtful values, and those that name nobody, are told where there are no others.
        own = [each for each in own if _is_sure(each)] or own
        whose = {fold(each.value or "") for each in own}
        others = [each for each in memories if each.active and each.about is not None and fold(each.about) in whose]
        if matter in LIVING:
            told = {fold(each.about or "") for each in others}
            own = [e for e in own if fold(e.value or "") in told or not only_titles(e.value or "", language)]
        if own:
            return [each.text for each in _values([*own, *others], language)]
    return []


def asked_for(question: str) -> str | None:
    """Return the matter of the author that a question asks for: "home" for "where do I live"."""
    plain = normalize("NFC", question)
    return next((matter for matter, pattern in _questions().items() if pattern.search(plain)), None)


def asked_about(question: str) -> list[str]:
    """Return the matters of which somebody who is named in a question is asked for; `who` for who they are."""
    plain = normalize("NFC", question)
    found = [matter for matter, pattern in _questions("about").items() if pattern.search(plain)]
    return [each for matter in found for each in _ALSO.get(matter, (matter,))]


def of_somebody(question: str, memories: Sequence[MemoryRecord], language: str) -> tuple[list[str], list[str]]:
    """Return what is known of people and pets whose name a question has and of whom it asks, and what is over."""
    asked, now, before = asked_about(question), list[str](), list[str]()
    words = set(words_of(fold(question)))
    for each in memories if asked else ():
        name = _titled(each.value or "", language)[1]
        if each.matter not in LIVING or each.about is not None or each.speaker != each.user or not name:
            continue
        if not _is_sure(each):
            continue
        if not (
            fold(name) in fold(question) if language in UNSPACED_LANGUAGES else words.issuperset(words_of(fold(name)))
        ):
            continue
        about = [one for one in memories if one.active and one.about and fold(one.about) == fold(each.value or "")]
        if each.active and ("who" in asked or any(one.matter in asked for one in about)):
            now += [one.text for one in _values([each, *about], language)]
        elif not each.active and each.reason == ENDED and "who" in asked:
            before += [one.text for one in _values([each], language)]
    return list(dict.fromkeys(now)), list(dict.fromkeys(before))


def of_member(asked: Sequence[str], memories: Sequence[MemoryRecord], language: str) -> list[str]:
    """Return what is known of the author of memories of the matters that are asked for; of `who`, what names them."""
    wanted = {"name", "age", "home", "job", "employer"} if "who" in asked else set(asked)
    own = [each for each in memories if each.active and each.about is None and each.speaker == each.user]
    return [each.text for each in _values([each for each in own if each.matter in wanted], language)]


def people_lines(memories: Sequence[MemoryRecord], language: str) -> dict[int, str]:
    """Return how people and pets are described, with what is known of them, by the ids of all memories that tell it."""
    values = [each for each in memories if each.active and each.value is not None and each.speaker == each.user]
    living = [each for each in values if each.about is not None or each.matter in PEOPLE or each.matter == "pet"]
    return {number: each.text for each in _values(living, language) for number in each.memories}


@cache
def _questions(of: str | None = None) -> Mapping[str, re.Pattern[str]]:
    table = tomllib.loads((files("aforesaid.facts") / "asked.toml").read_text(encoding="utf-8"))
    about = table.pop("about")
    chosen = table if of is None else about
    return {matter: re.compile("|".join(found), re.IGNORECASE) for matter, found in chosen.items()}


def under_headings(lines: Sequence[Line], language: str) -> str:
    """Return the lines as a text: a few as they are, more under headings."""
    if len(lines) < LEAST_LINES:
        return "\n".join(each.text for each in lines)
    headings, shown = matters(language).headings, list[str]()
    for topic in TOPICS:
        of_topic = [each.text for each in lines if each.topic == topic]
        shown += [f"{headings[topic]}:", *of_topic] if of_topic else []
    return "\n".join(shown)


def language_of(memories: Iterable[MemoryRecord], stated: str = "") -> str:
    """Return the language in which most of what is known was told."""
    counted = Counter(memory.language for memory in memories if memory.language is not None)
    return counted.most_common(1)[0][0] if counted else guess_language(stated)


def _values(values: Sequence[MemoryRecord], language: str) -> Iterator[Line]:
    own, others = defaultdict[str, list[MemoryRecord]](list), defaultdict[str, list[MemoryRecord]](list)
    for memory in sorted(values, key=lambda each: each.id):
        if memory.about is None:
            own[memory.matter or ""].append(memory)
        else:
            others[fold(memory.about)].append(memory)
    for matter in sorted(own, key=lambda each: -_weight(each)):
        topic, known = _TOPIC_OF[matter], own[matter]
        if matter in PEOPLE or matter == "pet":
            for memory in known:
                about = others.pop(fold(memory.value or ""), [])
                if not about and matter in PEOPLE and only_titles(memory.value or "", language):
                    # "Husband" alone tells hardly anything.
                    continue
                text = _with_more(_person(memory, language), about, language)
                yield _line(topic, text, [memory, *about], _weight(matter))
        elif matter == "event":
            for memory in known:
                yield _line(topic, memory.text.partition(": ")[2] or memory.text, [memory], _weight(matter))
        else:
            known = known[-_MOST_VALUES:]
            separator = "、" if language in {"chinese", "japanese"} else ", "
            told = dict.fromkeys(memory.value or "" for memory in known)
            yield _line(topic, line(matter, separator.join(told), language), known, _weight(matter))
    for about in others.values():
        called = about[0].about or ""
        yield _line("family", _with_more(_capital(called), about, language), about, importance_of("relative"))


def _is_sure(memory: MemoryRecord) -> bool:
    """Return whether a value is sure enough to be shown to everybody. A search finds the others, too."""
    least = _LEAST_HEALTH if memory.matter in HEALTH else _LEAST_SHOWN
    return memory.confidence is None or memory.confidence >= least or memory.times > 1


def _is_coming(event: MemoryRecord, at: datetime) -> bool:
    """Return whether an event is still to come; one without a date, whether it was told lately."""
    happened = event.happened
    return happened.end > at if happened is not None else event.valid_from > at - _UNDATED


def _person(memory: MemoryRecord, language: str) -> str:
    """Return a person or a pet by what they are to somebody, and their name: "Sister: Inês".

    What they are is in the words in which it was told: "Hermana: Inês".
    """
    value = memory.value or ""
    title, name = _titled(value, language)
    if not title and memory.language not in (None, language):
        title, name = _titled(value, memory.language)
    colon = "：" if language in {"chinese", "japanese"} else ": "
    if title and name:
        return f"{_capital(title)}{colon}{name}"
    return _capital(title) or line(memory.matter or "", value, language)


def _titled(value: str, language: str) -> tuple[str, str]:
    """Return what somebody is, as far as a value says it, and their name: "sister", "Inês" for "my sister Inês"."""
    folded = fold(value)
    found = [title for title in matters(language).titles if title in folded] if len(folded) == len(value) else []
    for title in sorted(found, key=len, reverse=True):
        at = folded.index(title)
        before, after = value[:at], value[at + len(title) :]
        whole = language in UNSPACED_LANGUAGES or not (before[-1:].isalnum() or after[:1].isalnum())
        name = " ".join(f"{before} {after}".split())
        if whole:
            return (value[at : at + len(title)], name) if name else (value, "")
    return "", value


def _with_more(text: str, about: Sequence[MemoryRecord], language: str) -> str:
    told = dict.fromkeys(line(memory.matter or "", memory.value or "", language) for memory in about)
    return f"{text} ({'; '.join(told)})" if told else text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _weight(matter: str) -> int:
    return 20 - ESSENTIAL.index(matter) if matter in ESSENTIAL else importance_of(matter)


def _line(topic: str, text: str, memories: Sequence[MemoryRecord], weight: int) -> Line:
    sources = frozenset(seq for memory in memories for seq in memory.sources)
    text = " ".join(text.split())
    return Line(topic, text, frozenset(memory.id for memory in memories), sources, weight, query_terms(text))


def _topic_of_note(memory: MemoryRecord, at: datetime) -> str | None:
    """Return the topic of a memory that is no value; None if it is over, or no description of the person."""
    if memory.value is not None:
        return None
    if memory.kind == INSTRUCTION:
        return "wishes"
    happened = memory.happened
    if memory.kind in {"schedule", "task"}:
        return "coming" if happened is None or happened.end > at else None
    if happened is not None:
        return "coming" if happened.start > at else "other" if happened.start > at - _OPEN else None
    if memory.trust == "stated" or memory.kind == "relationship":
        return "family" if memory.about not in (None, memory.user) else "other"
    return "other"
