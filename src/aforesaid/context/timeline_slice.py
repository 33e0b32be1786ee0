"""The part of a user's timeline that a question is about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from aforesaid.context.relevant import TermCache, found_memories
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import MemoryRecord
from aforesaid.text.sentences import topic_words
from aforesaid.text.times.periods import periods


def timeline_slice(
    dated: Sequence[MemoryRecord], question: str, hits: Sequence[Hit], asked: datetime, cache: TermCache
) -> list[MemoryRecord]:
    """Return the memories of a timeline that a question is about, in the same order.

    A period that the question names ("in May") limits them, and so does what it is about ("the kitchen"): memories that
    share words with it, or that were extracted from what the search found. `hits` are that, best first.
    """
    named = periods(question, asked)
    inside = [memory for memory in dated if not named or any(_lies_in(memory, *period) for period in named)]
    topic = topic_words(question)
    if not topic:
        return inside
    chosen = {memory.id for memory, _ in found_memories(inside, topic, hits, cache)}
    if not chosen and named:
        return inside
    return [memory for memory in inside if memory.id in chosen]


def _lies_in(memory: MemoryRecord, start: datetime, end: datetime) -> bool:
    happened = memory.happened
    return happened is not None and happened.start < end and max(happened.end, happened.start) >= start
