"""MemoryAgentBench: a long text and questions about it in each line. The text is read in pieces, as messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from evaluation.conversation import PAUSE, Conversation, Tallies
from evaluation.conversation_builder import ConversationBuilder
from evaluation.json_files import Node

_PIECE: Final = 2_000
"""Maximum characters of a message: about 512 tokens, as in the published evaluation."""
_END: Final = re.compile(r"(?<=\n)|(?<=[.!?] )|(?<=[。！？])")
"""Where a text may be divided: after a line or a sentence."""
_START: Final = datetime(2024, 1, 1, tzinfo=UTC)
"""The time of the first piece: the texts have none."""


def fits(root: Node) -> bool:
    """Return whether this is MemoryAgentBench, exported as JSON."""
    return root.starts_with(context=str, questions=list, answers=list)


def load(root: Node, tallies: Tallies) -> Iterator[Conversation]:
    """Read every text with its questions. Nothing says where the answers are, so there is no recall to measure."""
    numbers: Counter[str] = Counter()
    for entry in root.items():
        metadata = entry.find("metadata")
        source = (metadata.text_of("source") if metadata is not None else "") or root.file.stem
        numbers[source] += 1
        builder = ConversationBuilder(f"{source} {numbers[source]}", tallies)
        context = entry.field("context")
        for place, piece in enumerate(_pieces(context.text())):
            builder.say(context, str(place), piece, session="context", at=_START + place * PAUSE)
        questions, answers = list(entry.field("questions").items()), list(entry.field("answers").items())
        if len(questions) != len(answers):
            raise entry.damaged(f"has {len(questions)} questions and {len(answers)} answers")
        for question, answer in zip(questions, answers, strict=True):
            # Each of the listed answers is right.
            accepted = " or ".join(dict.fromkeys(str(leaf.raw) for leaf in answer.leaves()))
            builder.ask_unlabelled(question.text(), source, accepted)
        yield builder.conversation()


def _pieces(text: str) -> Iterator[str]:
    """Yield the text in pieces that end with a line or a sentence, where that is possible."""
    piece = ""
    for part in _END.split(text):
        if piece and len(piece) + len(part) > _PIECE:
            yield piece
            piece = ""
        piece += part
        while len(piece) > _PIECE:
            yield piece[:_PIECE]
            piece = piece[_PIECE:]
    yield piece
