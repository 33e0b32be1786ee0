"""People by id and name, and the subjects of statements about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from aforesaid.domain.memory import EDITED, FORGOTTEN, TAKEN_BACK, MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.extras import re
from aforesaid.facts.statement import statement
from aforesaid.text.languages import guess_language, stop_words, vocabulary
from aforesaid.text.relations import mentioned_people, relation_called
from aforesaid.text.words import UNSPACED_LANGUAGES, fold, words_of

NAMELESS: Final = "The user"
_LONGEST_NAME: Final = 100
_QUOTATION: Final = len(': "')
_LONGEST_SUBJECT: Final = 4
"""Maximum words of a subject. More words are a description, not a name."""


class Person(NamedTuple):
    """A person who speaks or is mentioned."""

    id: str
    name: str
    """Their name in sentences."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.name, self.id)))


def person_called(user: str, name: str | None) -> Person:
    """Return a person with a display name; without one, the id is the name if it contains letters."""
    if name is not None and words_of(name):
        return Person(user, " ".join(name.split()))
    return Person(user, user if any(character.isalpha() for character in user) else NAMELESS)


def people_in(messages: Iterable[Message], owner: str) -> dict[str, Person]:
    """Return the speakers of messages, and the owner, by id, each with their last display name."""
    shown: dict[str, str | None] = {owner: None}
    for message in messages:
        if message.role == "user":
            shown[message.author] = message.name or shown.get(message.author)
    return {user: person_called(user, name) for user, name in shown.items()}


def subject_of(text: str, speaker: Person, owner: Person) -> str | None:
    """Return the key of what a statement is about; None if no rule recognises it.

    A statement about the owner has the plain key, such as `home`. A statement about somebody else has a key with their
    id or name (`@bob: home`, `carol: home`), so that it never supersedes one about the owner.
    """
    names = tuple(dict.fromkeys((*speaker.names, *owner.names)))
    claim = statement(text, names).claim
    if claim is None:
        return None
    about_speaker = claim.key if speaker.id == owner.id else f"@{speaker.id}: {claim.key}"
    language = guess_language(text, names=names)
    lists = vocabulary(language)
    before = words_of(text[: claim.start])
    if ": " in claim.key or set(before) & lists.first_person:
        return about_speaker
    subject = [word for word in before if word not in stop_words(language) | lists.dull]
    if not subject or language in UNSPACED_LANGUAGES:
        return about_speaker
    if _is(subject, owner):
        return claim.key
    if _is(subject, speaker):
        return about_speaker
    return f"{' '.join(subject[-_LONGEST_SUBJECT:])}: {claim.key}"


def whom(text: str, subject: str | None, speaker: Person, owner: Person, people: Mapping[str, Person]) -> str | None:
    """Return whom a statement is about: a user's id, or the name of somebody who is no user; None for the owner.

    `subject` is what `subject_of` returned for it. What another person says is about them, unless it names the owner or
    begins with "you". A name by which they only address the owner ("Ann, …") does not count.
    """
    key = "" if subject is None else subject
    own = speaker.id == owner.id
    if not own and _is_told_of(owner, text[_opening(text, speaker) :]):
        return None
    if key.startswith("@"):
        return key[1:].partition(": ")[0]
    mentions = mentioned_people(text, speaker.names, _opening(text, speaker)) if own else []
    if mentions:
        return mentions[0].name or mentions[0].relation
    named, separator, _ = key.partition(": ")
    if separator:
        known = next((each for each in people.values() if _is(words_of(named), each)), None)
        return None if known == owner else _as_written(named, text) if known is None else known.id
    return None if own else speaker.id


def _opening(text: str, speaker: Person) -> int:
    """Return where a statement begins: behind the name of the speaker and a quotation mark."""
    return len(speaker.name) + _QUOTATION if text.startswith(f'{speaker.name}: "') else 0


def _as_written(name: str, text: str) -> str:
    words = {fold(word.strip(".,;:!?\"'’")): word.strip(".,;:!?\"'’") for word in reversed(text.split())}
    return " ".join(words.get(word, word) for word in name.split())


def _is_told_of(person: Person, text: str) -> bool:
    """Return whether somebody says something of a person, to them ("you …") or to others.

    A name that stands before or after a comma only addresses them.
    """
    words = words_of(text)
    if words and words[0] in vocabulary(guess_language(text)).second_person:
        return True
    called = "|".join(sorted((re.escape(name) for name in person.names), key=len, reverse=True))
    rest = re.sub(rf"(?:(?<!\w)(?:{called})\s*[,!?:]|,\s*(?:{called})(?!\w))", " ", text, flags=re.IGNORECASE)
    return not {word for name in person.names for word in words_of(name)}.isdisjoint(words_of(rest))


def _is(subject: Sequence[str], person: Person) -> bool:
    called = {word for name in person.names for word in words_of(name)}
    return set(subject) <= called


def folded_name(name: str) -> str:
    """Return a name without case, accents and extra spaces, to compare it with others."""
    return " ".join(fold(name).split())[:_LONGEST_NAME]


def is_about(memory: MemoryRecord, name: str) -> bool:
    """Return whether a memory is about a person, given by id or name."""
    return memory.about is not None and folded_name(memory.about) == folded_name(name)


def by_id(people: Mapping[str, Person], user: str) -> Person:
    """Return a person by id, also one who is not in `people`."""
    return people.get(user) or person_called(user, None)


_UNBELIEVED: Final = frozenset({FORGOTTEN, TAKEN_BACK, EDITED})
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
    for memory in believed:
        _collect(memory, owner, names, found)
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
    people = [_person(each) for each in found.values() if each.memories]
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
        person = _entry(found, name, related)
        person.id = memory.about if memory.about in names or memory.about == memory.speaker else person.id
        person.memories[memory.id] = memory
        person.about.add(memory.id)
    if speaker.id != owner.id:
        person = _entry(found, speaker.name, None)
        person.id = speaker.id
        person.memories[memory.id] = memory
    for mention in mentioned_people(memory.text, speaker.names):
        if mention.name is not None and folded_name(mention.name) in {folded_name(each) for each in owner.names}:
            continue
        person = _entry(found, mention.name, mention.relation if speaker.id == owner.id else None)
        person.memories[memory.id] = memory


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


def _person(collected: _Collected) -> KnownPerson:
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
