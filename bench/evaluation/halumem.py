"""HaluMem: months of sessions with an assistant. One user in a line; each session has questions to ask after it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from evaluation.conversation import PAUSE, Conversation, Tallies
from evaluation.conversation_builder import ConversationBuilder
from evaluation.json_files import Node

_BOUNDARY: Final = "Memory Boundary"
"""The type of questions about what was never said."""
_WHEN: Final = "%b %d, %Y, %H:%M:%S"
_EXAMPLE: Final = "Dec 15, 2025, 06:11:23"


def fits(root: Node) -> bool:
    """Return whether this is HaluMem."""
    return root.starts_with(uuid=str, sessions=list)


def load(root: Node, tallies: Tallies) -> Iterator[Conversation]:
    """Read every user."""
    for user in root.items():
        builder = ConversationBuilder(user.field("uuid").name(), tallies, language="en", kind="assistant")
        sessions = [(f"session {number}", each) for number, each in enumerate(user.field("sessions").items(), 1)]
        known: defaultdict[str, set[str]] = defaultdict(set)
        for name, session in sessions:
            _read_turns(name, session, builder)
            for memory in _listed(session, "memory_points"):
                known[memory.text_of("memory_content")].add(name)
        for _, session in sessions:
            for question in _listed(session, "questions"):
                _read_question(question, session, known, builder)
        yield builder.conversation()


def _read_turns(name: str, session: Node, builder: ConversationBuilder) -> None:
    at = session.field("start_time").moment(_WHEN, example=_EXAMPLE)
    for place, turn in enumerate(session.field("dialogue").items()):
        written = turn.find("timestamp")
        # Both sides of an exchange have the same time.
        at = max(at + PAUSE, at if written is None else written.moment(_WHEN, example=_EXAMPLE))
        identity = f"{name.removeprefix('session ')}:{place}"
        builder.say(turn, identity, turn.text_of("content"), session=name, at=at, role=turn.field("role").role())


def _read_question(question: Node, session: Node, known: Mapping[str, set[str]], builder: ConversationBuilder) -> None:
    """Read a question. Its evidence names memories; the sessions that they are from are labelled, not the turns."""
    text, category = question.field("question").text(), question.field("question_type").text()
    answer, at = question.words_of("answer"), session.field("end_time").moment(_WHEN, example=_EXAMPLE)
    if category == _BOUNDARY:
        builder.ask_unanswerable(text, category, at=at, answer=answer)
        return
    evidence = [memory.text_of("memory_content") for memory in _listed(question, "evidence")]
    sessions = [name for memory in evidence for name in sorted(known.get(memory, ()))]
    builder.ask(text, category, (), sessions=sessions, at=at, answer=answer)


def _listed(node: Node, name: str) -> Iterator[Node]:
    found = node.find(name)
    return iter(()) if found is None else found.items()
