"""The people around a user: who is mentioned in the memories, and what is known about each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from aforesaid.domain.memory import EDITED, FORGOTTEN, TAKEN_BACK, MemoryRecord
from aforesaid.facts.people import Person, folded_name, person_called
from aforesaid.text.relations import mentioned_people, relation_called
from aforesaid.text.words import words_of

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
    _join_short_names(found)
    _join_relations(found)
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


def _join_short_names(found: dict[str, _Collected]) -> None:
    """Join "Tavares" with "Senhor Tavares", if only one person has a longer name with these words."""
    words = {key: set(words_of(key)) for key in found if not key.startswith(_RELATED)}
    for short in sorted(words, key=lambda key: -len(words[key])):
        longer = [key for key in words if words[short] < words[key]]
        if len(longer) == 1 and None in (found[short].id, found[longer[0]].id):
            found[longer[0]].add(found.pop(short))
            del words[short]


def _join_relations(found: dict[str, _Collected]) -> None:
    """Join "my sister" with the one sister whose name is known."""
    for key in [key for key in found if key.startswith(_RELATED)]:
        relation = key.removeprefix(_RELATED)
        named = [each for other, each in found.items() if other != key and relation in each.relations]
        if len(named) == 1:
            named[0].add(found.pop(key))


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
