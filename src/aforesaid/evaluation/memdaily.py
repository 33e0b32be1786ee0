"""MemDaily: messages of one person, in Chinese. A file has many trajectories, each of another person."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from aforesaid.evaluation.conversation import Conversation, Tallies
from aforesaid.evaluation.conversation_builder import ConversationBuilder
from aforesaid.evaluation.json_files import Node

_WEEKDAY: Final = r"(周|星期)\w"


def fits(root: Node) -> bool:
    """Return whether this is MemDaily."""
    return root.starts_with(message_list=list, question_list=list)


def load(root: Node, tallies: Tallies) -> Iterator[Conversation]:
    """Read a file. Each trajectory describes another person, so it is a memory of its own."""
    for trajectory in root.items():
        session = f"trajectory {trajectory.field('tid').name()}"
        builder = ConversationBuilder(f"{root.file.stem}, {session}", tallies)
        for message in trajectory.field("message_list").items():
            builder.say(
                message,
                message.field("mid").name(),
                message.text_of("message"),
                session=session,
                at=_moment(message.field("time")),
            )
        for question in trajectory.field("question_list").items():
            asked = question.find("time")
            builder.ask(
                question.field("question").text(),
                _category(root),
                [step.name() for step in question.field("target_step_id").leaves()],
                at=None if asked is None else _moment(asked),
                answer=question.words_of("answer"),
            )
        yield builder.conversation()


def _category(root: Node) -> str:
    """Read the kind of question out of a name like `01_simple_roles`."""
    return root.file.stem.rpartition("_")[0] or root.file.stem


def _moment(node: Node) -> datetime:
    return node.moment("%Y年%m月%d日 %H:%M", "%Y年%m月%d日", example="2024年04月01日 周一 08:30", ignoring=_WEEKDAY)
