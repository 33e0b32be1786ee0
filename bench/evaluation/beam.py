"""BEAM: long chats with an assistant. A folder for each chat, with `chat.json` and its probing questions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from aforesaid.errors import InvalidInput
from evaluation.conversation import PAUSE, Conversation, Tallies
from evaluation.conversation_builder import ConversationBuilder
from evaluation.json_files import Node, read_json

_CHAT: Final = "chat.json"
_ABSTENTION: Final = "abstention"
_QUESTIONS: Final = "probing_questions.json"
_MARKER: Final = re.compile(r"\s*->->.*\Z", re.DOTALL)
"""The marker at the end of a user's turn with which the authors number questions."""
_START: Final = datetime(2024, 1, 1, tzinfo=UTC)
"""The time of turns before the first time anchor."""


def fits(root: Node) -> bool:
    """Return whether this is a BEAM chat. Shortened copies in the same folder have other names and do not count."""
    return root.file.name == _CHAT and root.starts_with(batch_number=int, turns=list)


def load(root: Node, tallies: Tallies) -> Iterator[Conversation]:
    """Read a chat, and its questions from the same folder."""
    builder = ConversationBuilder(root.file.parent.name, tallies)
    at = _START
    for batch in root.items():
        session = f"batch {batch.field('batch_number').name()}"
        for exchange in batch.field("turns").items():
            for turn in exchange.items():
                anchor = turn.find("time_anchor")
                at = at + PAUSE if anchor is None else anchor.moment("%B-%d-%Y", "%b-%d-%Y", example="March-15-2024")
                builder.say(
                    turn,
                    turn.field("id").name(),
                    _MARKER.sub("", turn.text_of("content")),
                    session=session,
                    at=at,
                    role=turn.field("role").role(),
                )
    for ability, questions in read_json(_questions_of(root.file)).fields():
        for question in questions.items():
            named, text, answer = question.find("source_chat_ids"), question.field("question").text(), _answer(question)
            if ability == _ABSTENTION:
                builder.ask_unanswerable(text, ability, answer=answer)
                continue
            evidence = [] if named is None else [node.name() for node in named.leaves()]
            builder.ask(text, ability, evidence, answer=answer)
    yield builder.conversation()


def _answer(question: Node) -> str:
    """Return the expected answer; each ability has another field for it."""
    return question.words_of(
        "answer", "ideal_answer", "ideal_summary", "ideal_response", "expected_compliance", "rubric"
    )


def _questions_of(chat: Path) -> Path:
    # The published data set has the questions in a subfolder.
    for path in (chat.parent / _QUESTIONS, chat.parent / "probing_questions" / _QUESTIONS):
        if path.is_file():
            return path
    raise InvalidInput(f"{chat} has no questions: {_QUESTIONS} is missing in its folder")
