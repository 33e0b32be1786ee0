"""Sorts what is known about a person by topic, for a portrait that a person reads."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Final

from aforesaid.domain.memory import INSTRUCTION, MemoryRecord
from aforesaid.facts.people import Person
from aforesaid.text.languages import guess_language
from aforesaid.text.relations import mentioned_people
from aforesaid.text.words import UNSPACED_LANGUAGES, fold, words_of

HEADINGS: Final = {
    "who": "Who",
    "family": "Family and friends",
    "health": "Health",
    "home": "Home",
    "work": "Work and studies",
    "likes": "Likes and dislikes",
    "wishes": "Wishes",
    "now": "Now",
    "coming": "Coming up",
    "past": "What happened",
}
"""The heading of each topic, in the order of a portrait."""
LEAST_LINES: Final = 8
"""Lines from which a portrait has headings. Fewer are read at a glance."""
_NOW: Final = timedelta(days=30)
"""What happened in this time is going on now."""


def by_topic(facts: str, memories: Sequence[MemoryRecord], person: Person, at: datetime) -> str:
    """Return the lines of what is known about a person under headings; a short text as it is.

    `memories` are those that lines repeat: their kinds say more than the words do.
    """
    lines = [line for line in facts.splitlines() if line.strip()]
    if len(lines) < LEAST_LINES:
        return facts
    by_text = {memory.text: memory for memory in memories}
    sorted_lines: dict[str, list[str]] = {topic: [] for topic in HEADINGS}
    for line in lines:
        memory = by_text.get(line)
        topic = None if memory is None else _topic_of_kind(memory, at)
        sorted_lines[topic or _topic_of_words(line, memory, person)].append(line)
    return "\n".join(line for topic, found in sorted_lines.items() if found for line in (f"{HEADINGS[topic]}:", *found))


def _topic_of_kind(memory: MemoryRecord, at: datetime) -> str | None:
    """Return the topic of a memory as far as its kind and its date show it."""
    if memory.kind == INSTRUCTION:
        return "wishes"
    happened = memory.happened
    if happened is not None and (happened.end > at or happened.start > at):
        return "coming"
    if happened is not None:
        return "now" if happened.start > at - _NOW else "past"
    if memory.kind == "task":
        return "coming"
    if memory.kind == "relationship" or memory.about not in (None, memory.user):
        return "family"
    return "likes" if memory.kind == "preference" else None


def _topic_of_words(line: str, memory: MemoryRecord | None, person: Person) -> str:
    """Return the topic of a line by the people and the words in it."""
    if memory is None and any(mention.relation is not None for mention in mentioned_people(line, person.names)):
        return "family"
    own = {word for name in person.names for word in words_of(name)}
    unspaced = guess_language(line) in UNSPACED_LANGUAGES
    said = [fold(line)] if unspaced else [word for word in words_of(line) if word not in own]
    for topic, beginnings in _beginnings().items():
        if any(part in said[0] for part in beginnings if not part.isascii()) if unspaced else _begins(said, beginnings):
            return topic
    return "who"


def _begins(words: Sequence[str], beginnings: tuple[str, ...]) -> bool:
    return any(word.startswith(beginnings) for word in words)


@cache
def _beginnings() -> dict[str, tuple[str, ...]]:
    table = tomllib.loads((files("aforesaid.facts") / "portrait_topics.toml").read_text(encoding="utf-8"))
    return {topic: tuple(map(fold, words.split())) for topic, words in table.items()}
