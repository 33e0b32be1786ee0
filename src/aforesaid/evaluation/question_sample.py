"""Choose some questions of a data set, for a quick evaluation."""

from __future__ import annotations

from dataclasses import replace

from aforesaid.evaluation.conversation import Conversation, Count, Dataset, Question


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
    size = min(limit, len(everything))
    kept: dict[str, tuple[Conversation, list[Question]]] = {}
    for number in range(size):
        conversation, question = everything[number * len(everything) // size]
        kept.setdefault(conversation.id, (conversation, []))[1].append(question)
    conversations = tuple(replace(whole, questions=tuple(questions)) for whole, questions in kept.values())
    asked = sum(len(conversation.questions) for conversation in dataset.conversations)
    left_out = Count("questions outside the sample", asked - size)
    return replace(
        dataset,
        conversations=conversations,
        left_out=dataset.left_out + ((left_out,) if left_out.number else ()),
    )
