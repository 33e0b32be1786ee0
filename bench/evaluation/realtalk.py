"""REALTALK: two people who write to each other for three weeks. A file for each chat; evidence as in LoCoMo."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from evaluation.conversation import Conversation, Tallies
from evaluation.conversation_builder import ConversationBuilder
from evaluation.json_files import Node
from evaluation.locomo import read_questions

_CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "commonsense"}
_SESSION: Final = re.compile(r"session_([0-9]+)")
_WHEN: Final = "%d.%m.%Y, %H:%M:%S"


def fits(root: Node) -> bool:
    """Return whether this is a chat of REALTALK."""
    return root.has(name=dict, qa=list, session_1=list)


def load(root: Node, tallies: Tallies) -> Iterator[Conversation]:
    """Read a chat."""
    builder = ConversationBuilder(root.file.stem, tallies, kind="people")
    numbers = sorted(int(found[1]) for name, _ in root.fields() if (found := _SESSION.fullmatch(name)))
    for session in (f"session_{number}" for number in numbers):
        for turn in root.field(session).items():
            text, caption = turn.text_of("clean_text"), turn.text_of("blip_caption")
            builder.say(
                turn,
                turn.field("dia_id").name(),
                f"{text} [{caption}]".lstrip() if caption else text,
                session=session,
                at=turn.field("date_time").moment(_WHEN, example="29.12.2023, 22:42:04"),
                speaker=turn.field("speaker").name(),
            )
    read_questions(root, _CATEGORIES, builder, tallies)
    yield builder.conversation()
