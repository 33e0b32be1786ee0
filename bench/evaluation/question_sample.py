"""Choose some questions of a data set, for a quick evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from evaluation.conversation import Conversation, Count, Dataset, Question

T = TypeVar("T")


def evenly(items: Sequence[T], limit: int) -> list[T]:
    """Return `limit` of the items, or all if there are fewer: always the same ones, spread evenly."""
    size = min(limit, len(items))
    return [items[number * len(items) // size] for number in range(size)]


def sample(dataset: Dataset, limit: int) -> Dataset:
    """Keep `limit` questions, always the same ones, spread evenly over all conversations and their categories.

    Questions that are counted apart are left out, and so are conversations about which nothing is asked any more.
    """
    everything = [
        (conversation, question)
        for conversation in dataset.conversations
        for question in conversation.questions
        if not question.apart
    ]
    chosen = evenly(everything, limit)
    kept: dict[str, tuple[Conversation, list[Question]]] = {}
    for conversation, question in chosen:
        kept.setdefault(conversation.id, (conversation, []))[1].append(question)
    conversations = tuple(replace(whole, questions=tuple(questions)) for whole, questions in kept.values())
    asked = sum(len(conversation.questions) for conversation in dataset.conversations)
    left_out = Count("questions outside the sample", asked - len(chosen))
    return replace(
        dataset,
        conversations=conversations,
        left_out=dataset.left_out + ((left_out,) if left_out.number else ()),
    )
