"""Describes a person in short lines, from what is known, and tells who the people around them are.

Only what is current is shown. The lines are in the language in which most values were told.
"""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple
from unicodedata import normalize

from aforesaid.domain.memory import DOUBTED, EDITED, ENDED, FORGOTTEN, INSTRUCTION, TAKEN_BACK, MemoryRecord
from aforesaid.extras import re
from aforesaid.facts.people import Person, folded_name, person_called
from aforesaid.facts.statement import says_the_same
from aforesaid.facts.values import ESSENTIAL, LIVING, PEOPLE, importance_of, line, matters, only_titles
from aforesaid.text.languages import guess_language, query_terms
from aforesaid.text.relations import mentioned_people, relation_called
from aforesaid.text.sentences import begins_with_anaphor, begins_with_pronoun, split_sentences
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
_LEAST_ALLERGY: Final = 0.45
"""Minimum confidence of a described allergy: leaving one out does more harm."""
_LEAST_QUOTED: Final = 0.75
"""Minimum confidence of a quote that tells neither a value nor something to come."""
_QUOTING: Final = "salience/"
"""The extractor that quotes what seems worth remembering."""
_UNDATED: Final = timedelta(days=14)
"""How long an event is coming of which no date is known."""
_OPEN: Final = timedelta(days=30)
"""How long an event that is over is described, and what somebody said in passing."""


_PLACES: Final = frozenset({"home", "from", "address", "employer"})
_SHOWN_ONCE: Final = frozenset({"name", "age", "birthday", "home"})
"""What has one value at a time, whatever was added."""
_CONTAINED: Final = frozenset({"employer", "from"})
"""What is not told again where it is the place of a home."""
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
    language = language_of(memories, stated)
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
        if is_quote and _needs_more(memory, person):
            continue
        if passing and is_quote and (memory.seen_at <= at - _OPEN or (memory.confidence or 0.0) < _LEAST_QUOTED):
            continue
        if topic is None or (passing and notes == _MOST_NOTES) or len(memory.text) > _LONGEST_NOTE:
            continue
        if not any(says_the_same(memory.text, each, person.names) for each in said):
            notes += passing
            said.append(memory.text)
            found.append(_line(topic, memory.text.replace(f'{person.name}: "', '"'), [memory], memory.importance - 1))
    return sorted(found, key=lambda each: TOPICS.index(each.topic))


def answer_from(question: str, memories: Sequence[MemoryRecord], language: str) -> list[str] | None:
    """Return what is known of the matter that a question asks for, one line each; None if it asks for none.

    The matter is the author's own, and what is over is not told: "where do I live" after a move.
    """
    asked = asked_for(question)
    if asked is None:
        return None
    is_whether = _matched(question, "whether") is not None
    for matter in (asked,) if is_whether else _ALSO.get(asked, (asked,)):
        known = [e for e in memories if e.matter == matter and e.speaker == e.user and e.about is None]
        own = [each for each in known if each.active]
        # Doubtful values, and those that name nobody, are told where there are no others.
        own = [e for e in own if _is_sure(e)] or own or [e for e in known if e.reason == DOUBTED]
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
    return _matched(question) or _matched(question, "whether")


def _matched(question: str, of: str | None = None) -> str | None:
    plain = normalize("NFC", question)
    return next((matter for matter, pattern in _questions(of).items() if pattern.search(plain)), None)


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
        name = titled(each.value or "", language)[1]
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


def names_somebody(text: str, memories: Iterable[MemoryRecord], language: str) -> bool:
    """Return whether a text speaks of somebody else: by a relation, a kind of pet, or a name that is known."""
    folded = fold(text)
    words = set(words_of(folded))
    names = {fold(titled(each.value, language)[1]) for each in memories if each.value and each.matter in LIVING}
    spaced = language not in UNSPACED_LANGUAGES
    titles = matters(language).titles
    return any(
        each and (words.issuperset(words_of(each)) if spaced else each in folded)
        for each in (*names, *map(fold, titles))
    )


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
    parts = {"about": table.pop("about"), "whether": table.pop("whether")}
    chosen = table if of is None else parts[of]
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
    """Return the language in which most of what is known was told. Longer texts show theirs more surely."""
    counted = Counter[str]()
    for memory in memories:
        if memory.language is not None:
            counted[memory.language] += min(len(memory.text), _LONGEST_NOTE)
    return counted.most_common(1)[0][0] if counted else guess_language(stated)


def _values(values: Sequence[MemoryRecord], language: str) -> Iterator[Line]:
    own, others = defaultdict[str, list[MemoryRecord]](list), defaultdict[str, list[MemoryRecord]](list)
    for memory in sorted(values, key=lambda each: each.id):
        if memory.about is None:
            own[memory.matter or ""].append(memory)
        else:
            others[fold(memory.about)].append(memory)
    homes = {fold(memory.value or "") for memory in own["home"]}
    for matter in _CONTAINED & own.keys():
        own[matter] = [each for each in own[matter] if fold(each.value or "") not in homes]
    for matter in sorted((each for each in own if own[each]), key=lambda each: -_weight(each)):
        topic, known = _TOPIC_OF[matter], own[matter]
        if matter in PEOPLE or matter == "pet":
            for memory, also in _distinct(known, language):
                about = [told for each in (memory, *also) for told in others.pop(fold(each.value or ""), [])]
                if not about and matter in PEOPLE and only_titles(memory.value or "", language):
                    # "Husband" alone tells hardly anything.
                    continue
                text = _with_more(_person(memory, language), about, language)
                yield _line(topic, text, [memory, *about], _weight(matter))
        elif matter == "event":
            for memory in known:
                yield _line(topic, memory.text.partition(": ")[2] or memory.text, [memory], _weight(matter))
        else:
            known = known[-1:] if matter in _SHOWN_ONCE else known[-_MOST_VALUES:]
            separator = "、" if language in {"chinese", "japanese"} else ", "
            told = dict.fromkeys(memory.value or "" for memory in known)
            yield _line(topic, line(matter, separator.join(told), language), known, _weight(matter))
    for about in others.values():
        called = about[0].about or ""
        yield _line("family", _with_more(_capital(called), about, language), about, importance_of("relative"))


def _distinct(known: Sequence[MemoryRecord], language: str) -> list[tuple[MemoryRecord, list[MemoryRecord]]]:
    """Return people or pets, each once, with those that are the same: of "dog Pip" and "Pip too" the surer one."""
    kept: list[tuple[set[str], MemoryRecord, list[MemoryRecord]]] = []
    for memory in sorted(known, key=lambda each: (-each.times, -(each.confidence or 1.0), each.id)):
        name = set(words_of(titled(memory.value or "", memory.language or language)[1]))
        same = next((also for other, _, also in kept if name and other and (name <= other or other <= name)), None)
        if same is None:
            kept.append((name, memory, []))
        else:
            same.append(memory)
    return sorted(((memory, also) for _, memory, also in kept), key=lambda each: each[0].id)


def _is_sure(memory: MemoryRecord) -> bool:
    """Return whether a value is sure enough to be shown to everybody. A search finds the others, too."""
    least = _LEAST_ALLERGY if memory.matter == "allergy" else _LEAST_SHOWN
    return memory.confidence is None or memory.confidence >= least or memory.times > 1


def _needs_more(memory: MemoryRecord, person: Person) -> bool:
    """Return whether a quote cannot be understood without what it answers: it names nothing, or begins with "she"."""
    quote = memory.text.removeprefix(f'{person.name}: "')
    language = memory.language or "english"
    return begins_with_anaphor(quote, language) or begins_with_pronoun(quote, language)


def _is_coming(event: MemoryRecord, at: datetime) -> bool:
    """Return whether an event is still to come; one without a date, whether it was told lately."""
    happened = event.happened
    return happened.end > at if happened is not None else event.valid_from > at - _UNDATED


def _person(memory: MemoryRecord, language: str) -> str:
    """Return a person or a pet by what they are to somebody, and their name: "Sister: Inês", for "hermana Inês" too."""
    value = memory.value or ""
    title, name = titled(value, language)
    if not title and memory.language not in (None, language):
        told, name = titled(value, memory.language or language)
        title = _relations(language).get(relation_called(told) or "", "")
        if not title and not name:
            return _capital(told)
    colon = "：" if language in {"chinese", "japanese"} else ": "
    if title and name:
        return f"{_capital(title)}{colon}{name}"
    return _capital(title) or line(memory.matter or "", name or value, language)


@cache
def _relations(language: str) -> Mapping[str, str]:
    """Return the first word of a language for each relation."""
    found: dict[str, str] = {}
    for word in matters(language).people:
        found.setdefault(relation_called(word) or "", word)
    return found


def titled(value: str, language: str) -> tuple[str, str]:
    """Return what somebody is, as far as a value says it, and their name: "sister", "Inês" for "my sister Inês"."""
    folded = fold(value)
    found = [title for title in matters(language).titles if title in folded] if len(folded) == len(value) else []
    for title in sorted(found, key=len, reverse=True):
        at = folded.index(title)
        before, after = value[:at], value[at + len(title) :]
        whole = language in UNSPACED_LANGUAGES or not (before[-1:].isalnum() or after[:1].isalnum())
        name = " ".join(f"{before} {after}".split())
        if whole:
            # "親父" is one word.
            is_word = not name or (language in UNSPACED_LANGUAGES and len(name) == 1)
            return (value, "") if is_word else (value[at : at + len(title)], name)
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


_UNBELIEVED: Final = frozenset({DOUBTED, FORGOTTEN, TAKEN_BACK, EDITED})
_RELATED: Final = "relation "
"""The beginning of the key of somebody of whom only the relation is known."""


_MY: Final = re.compile(r"^\s*my\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class KnownPerson:
    """A person around a user, and what is known about them."""

    name: str
    """The name; of somebody of whom only the relation is known, that (`sister`)."""
    id: str | None
    """The id, if the person is a user of the same space who is known from conversations."""
    relation: str | None
    """To the user, such as `sister` or `boss`; None if unknown."""
    first_mentioned: datetime
    last_mentioned: datetime
    memories: tuple[MemoryRecord, ...]
    """The active memories that mention the person, those about the person first, then by importance."""
    all_memories: tuple[MemoryRecord, ...]
    """All memories that mention the person, also those that are no longer active, oldest first."""


@dataclass(slots=True)
class _Collected:
    names: Counter[str] = field(default_factory=Counter)
    relations: Counter[str] = field(default_factory=Counter)
    id: str | None = None
    memories: dict[int, MemoryRecord] = field(default_factory=dict)
    about: set[int] = field(default_factory=set)
    """Ids of memories that are about the person."""

    def add(self, other: _Collected) -> None:
        self.names += other.names
        self.relations += other.relations
        self.id = self.id or other.id
        self.memories |= other.memories
        self.about |= other.about


def known_people(memories: Sequence[MemoryRecord], user: str, names: Mapping[str, str]) -> list[KnownPerson]:
    """Return the people whom memories of a user mention, those with most memories first.

    `names` are the display names of the users whom this user may know, by id. Quarantined and forgotten memories do not
    count.
    """
    owner = person_called(user, names.get(user))
    believed = [each for each in memories if each.state != "quarantined" and each.reason not in _UNBELIEVED]
    found: dict[str, _Collected] = {}
    others = _pets_and_places(believed)
    for memory in believed:
        _collect(memory, owner, names, found)
    for key in others & found.keys():
        del found[key]
    # Join "Tavares" with "Senhor Tavares", if only one person has a longer name with these words.
    words = {key: set(words_of(key)) for key in found if not key.startswith(_RELATED)}
    for short in sorted(words, key=lambda key: -len(words[key])):
        longer = [key for key in words if words[short] < words[key]]
        if len(longer) == 1 and None in (found[short].id, found[longer[0]].id):
            found[longer[0]].add(found.pop(short))
            del words[short]
    # Join "my sister" with the one sister whose name is known.
    for key in [key for key in found if key.startswith(_RELATED)]:
        relation = key.removeprefix(_RELATED)
        named = [each for other, each in found.items() if other != key and relation in each.relations]
        if len(named) == 1:
            named[0].add(found.pop(key))
    _add_later_mentions(believed, found)
    people = [_known_person(each) for each in found.values() if each.memories]
    return sorted(people, key=lambda person: (-len(person.memories), -person.last_mentioned.timestamp(), person.name))


def called(people: Sequence[KnownPerson], who: str) -> list[KnownPerson]:
    """Return the people who are called so: by name, first name, id or relation."""
    wanted = folded_name(_MY.sub("", who))
    relation = relation_called(wanted)
    exact = [each for each in people if wanted in {folded_name(each.name), each.id}]
    if exact:
        return exact
    return [
        each for each in people if wanted in words_of(each.name) or (relation is not None and relation == each.relation)
    ]


def _collect(memory: MemoryRecord, owner: Person, names: Mapping[str, str], found: dict[str, _Collected]) -> None:
    speaker = Person(memory.speaker, names.get(memory.speaker, memory.speaker))
    if memory.about is not None and memory.about != owner.id:
        related = relation_called(memory.about)
        name = None if related else names.get(memory.about, memory.about)
        title, called_so = titled(memory.about, memory.language or "english") if memory.matter is not None else ("", "")
        if related is None and title and called_so:
            related, name = relation_called(title), called_so
        person = _entry(found, name, related)
        person.id = memory.about if memory.about in names or memory.about == memory.speaker else person.id
        person.memories[memory.id] = memory
        person.about.add(memory.id)
    if speaker.id != owner.id:
        person = _entry(found, speaker.name, None)
        person.id = speaker.id
        person.memories[memory.id] = memory
    if memory.value is not None:
        if memory.matter in PEOPLE and memory.about is None and speaker.id == owner.id:
            title, called_so = titled(memory.value, memory.language or "english")
            relation = relation_called(title) or relation_called(called_so) or memory.matter
            named = called_so if called_so and relation_called(called_so) is None else None
            person = _entry(found, named, relation)
            person.memories[memory.id] = memory
            person.about.add(memory.id)
        return
    for mention in mentioned_people(memory.text, speaker.names):
        if mention.name is not None and folded_name(mention.name) in {folded_name(each) for each in owner.names}:
            continue
        person = _entry(found, mention.name, mention.relation if speaker.id == owner.id else None)
        person.memories[memory.id] = memory


def _pets_and_places(memories: Sequence[MemoryRecord]) -> set[str]:
    """Return the names of pets and places that values tell: a text may speak of them as of people."""
    names = set[str]()
    for memory in memories:
        if memory.value is not None and memory.matter == "pet":
            names.add(folded_name(titled(memory.value, memory.language or "english")[1]))
        elif memory.value is not None and memory.matter in _PLACES:
            names.add(folded_name(memory.value))
    return names


def _entry(found: dict[str, _Collected], name: str | None, relation: str | None) -> _Collected:
    key = f"{_RELATED}{relation}" if name is None else folded_name(name)
    person = found.setdefault(key, _Collected())
    if name is not None:
        person.names[name] += 1
    if relation is not None:
        person.relations[relation] += 1
    return person


def _add_later_mentions(memories: Sequence[MemoryRecord], found: dict[str, _Collected]) -> None:
    """Add the memories that name a known person in any way."""
    by_name = {key: set(words_of(key)) for key in found if not key.startswith(_RELATED)}
    for memory in memories:
        words = set(words_of(memory.text))
        for key, name in by_name.items():
            if name and name <= words:
                found[key].memories.setdefault(memory.id, memory)


def _known_person(collected: _Collected) -> KnownPerson:
    relation = next((each for each, _ in collected.relations.most_common(1)), None)
    name = next((each for each, _ in collected.names.most_common(1)), None)
    memories = collected.memories.values()
    active = [memory for memory in memories if memory.active]
    return KnownPerson(
        name=name or relation or "",
        id=collected.id,
        relation=relation,
        first_mentioned=min(memory.said_at for memory in memories),
        last_mentioned=max(memory.seen_at for memory in memories),
        memories=tuple(sorted(active, key=lambda each: (each.id not in collected.about, -each.importance, -each.id))),
        all_memories=tuple(sorted(memories, key=lambda each: (each.said_at, each.id))),
    )
