"""People by id and name, and the subjects of statements about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.extras import re
from aforesaid.facts.statement import statement
from aforesaid.text.languages import guess_language, stop_words, vocabulary
from aforesaid.text.relations import mentioned_people
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
