"""Finds the known memories that a new statement has to be compared with, so that it is not compared with all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from aforesaid.domain.memory import BY_HAND, MemoryRecord
from aforesaid.facts.statement import least_shared, name_stems, statement


class KnownMemories:
    """The memories of a user, in the order given, by what they have in common with new statements."""

    def __init__(self, known: Sequence[MemoryRecord], names: Collection[str]) -> None:
        """`names` are those of the user. They do not count as words of a statement."""
        self._known = known
        self._names = tuple(names)
        self._name_stems = name_stems(names)
        self._by_word: defaultdict[str, list[int]] = defaultdict(list)
        self._by_claim: defaultdict[str, list[int]] = defaultdict(list)
        self._by_text: defaultdict[str, list[int]] = defaultdict(list)
        self._by_source: defaultdict[int, list[int]] = defaultdict(list)
        self._by_subject: defaultdict[str, list[int]] = defaultdict(list)
        self._by_id: dict[int, int] = {}
        self._without_words: list[int] = []
        self._reminders_by_hand: list[int] = []
        for place, memory in enumerate(known):
            self._add(place, memory)

    def maybe_same(self, text: str, near: Iterable[int] = ()) -> list[MemoryRecord]:
        """Return every memory that may say the same as a text, and reminders that were set by hand.

        `near` are the ids of memories that mean nearly the same.
        """
        mine = statement(text, self._names)
        words = mine.words - self._name_stems
        places = {*self._by_text.get(text, ()), *self._reminders_by_hand}
        places.update(self._by_id[memory] for memory in near if memory in self._by_id)
        if mine.claim is not None:
            places.update(self._by_claim.get(mine.claim.key, ()))
        if not words:
            places.update(self._without_words)
        shared = Counter(chain.from_iterable(self._by_word.get(word, ()) for word in words))
        least = least_shared(len(words))
        places.update(place for place, number in shared.items() if number >= least)
        return self._in_order(places)

    def maybe_outdated(self, subject: str | None, message: int | None, memory: int | None) -> list[MemoryRecord]:
        """Return every memory about a subject, every one that rests on a message, and one with an id."""
        places = set() if message is None else set(self._by_source.get(message, ()))
        if subject is not None:
            places.update(self._by_subject.get(subject, ()))
        if memory is not None and memory in self._by_id:
            places.add(self._by_id[memory])
        return self._in_order(places)

    def _add(self, place: int, memory: MemoryRecord) -> None:
        found = statement(memory.text, self._names)
        words = found.words - self._name_stems
        for word in words:
            self._by_word[word].append(place)
        if not words:
            self._without_words.append(place)
        if found.claim is not None:
            self._by_claim[found.claim.key].append(place)
        self._by_text[memory.text].append(place)
        for seq in memory.sources:
            self._by_source[seq].append(place)
        if memory.subject is not None:
            self._by_subject[memory.subject].append(place)
        self._by_id[memory.id] = place
        if memory.category == "reminder" and memory.extractor == BY_HAND:
            self._reminders_by_hand.append(place)

    def _in_order(self, places: Iterable[int]) -> list[MemoryRecord]:
        return [self._known[place] for place in sorted(places)]
