"""MemDaily: messages of people, in Chinese. A file has many trajectories, each of another person."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from evaluation.conversation import Conversation, Tallies
from evaluation.conversation_builder import ConversationBuilder
from evaluation.json_files import Node

_WEEKDAY: Final = r"(周|星期)\w"


def fits(root: Node) -> bool:
    """Return whether this is MemDaily."""
    return root.starts_with(message_list=list, question_list=list)


def load(root: Node, tallies: Tallies, *, pooled: bool = True) -> Iterator[Conversation]:
    """Read a file: one memory with all its trajectories, each of them a session.

    A trajectory has about nine messages, so in a memory of its own nearly every message would be among the first ten
    hits. With `pooled=False` each is one nevertheless: for facts, since each describes another person.
    """
    builder = ConversationBuilder(root.file.stem, tallies)
    for trajectory in root.items():
        number = trajectory.field("tid").name()
        session = f"trajectory {number}"
        if not pooled:
            builder = ConversationBuilder(f"{root.file.stem}, {session}", tallies)
        for message in trajectory.field("message_list").items():
            builder.say(
                message,
                f"{number}:{message.field('mid').name()}",
                message.text_of("message"),
                session=session,
                at=_moment(message.field("time")),
            )
        for question in trajectory.field("question_list").items():
            asked = question.find("time")
            builder.ask(
                question.field("question").text(),
                _category(root),
                [f"{number}:{step.name()}" for step in question.field("target_step_id").leaves()],
                at=None if asked is None else _moment(asked),
                answer=question.words_of("answer"),
            )
        if not pooled:
            yield builder.conversation()
    if pooled:
        yield builder.conversation()


def _category(root: Node) -> str:
    """Read the kind of question out of a name like `01_simple_roles`."""
    return root.file.stem.rpartition("_")[0] or root.file.stem


def _moment(node: Node) -> datetime:
    return node.moment("%Y年%m月%d日 %H:%M", "%Y年%m月%d日", example="2024年04月01日 周一 08:30", ignoring=_WEEKDAY)
