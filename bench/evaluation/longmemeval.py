"""LongMemEval: long histories with an assistant. A list of questions, each with a haystack of sessions of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from evaluation.conversation import PAUSE, Conversation, Tallies
from evaluation.conversation_builder import ConversationBuilder
from evaluation.json_files import Node

_ABSTENTION: Final = "_abs"
_LEFT_OUT: Final = "questions that must be left unanswered (abstention)"
_WEEKDAY: Final = r"\(\w+\)"


def fits(root: Node) -> bool:
    """Return whether this is LongMemEval."""
    return root.starts_with(haystack_sessions=list, question=str)


def load(root: Node, tallies: Tallies) -> Iterator[Conversation]:
    """Read every question with its haystack."""
    for entry in root.items():
        name = entry.field("question_id").name()
        builder = ConversationBuilder(name, tallies)
        evidence = _read_turns(entry, builder)
        text, category = entry.field("question").text(), entry.field("question_type").text()
        date = entry.find("question_date")
        asked, answer = None if date is None else _moment(date), entry.words_of("answer")
        if name.endswith(_ABSTENTION):
            # As in the published evaluation: the conversation does not contain the answer, so there is nothing to find.
            builder.ask_unanswerable(text, category, at=asked, answer=answer, reason=_LEFT_OUT)
        else:
            sessions = [session.name() for session in entry.field("answer_session_ids").items()]
            builder.ask(text, category, evidence, sessions=sessions, at=asked, answer=answer)
        yield builder.conversation()


def _read_turns(entry: Node, builder: ConversationBuilder) -> list[str]:
    evidence: list[str] = []
    said: Counter[str] = Counter()
    for start, session, turns in _sessions(entry):
        for turn in turns.items():
            # A haystack can contain a session twice; the numbering of its turns continues.
            identity = f"{session}:{said[session]}"
            at = start + said[session] * PAUSE
            said[session] += 1
            builder.say(turn, identity, turn.text_of("content"), session=session, at=at, role=turn.field("role").role())
            if (label := turn.find("has_answer")) is not None and label.raw is True:
                evidence.append(identity)
    return evidence


def _sessions(entry: Node) -> list[tuple[datetime, str, Node]]:
    names = list(entry.field("haystack_session_ids").items())
    dates = list(entry.field("haystack_dates").items())
    sessions = list(entry.field("haystack_sessions").items())
    if not len(names) == len(dates) == len(sessions):
        raise entry.damaged(f"has {len(sessions)} sessions, {len(names)} ids and {len(dates)} dates of them")
    together = [(_moment(date), name.name(), turns) for date, name, turns in zip(dates, names, sessions, strict=True)]
    # One of the published files is not sorted by time, the order in which a memory would receive it.
    return sorted(together, key=lambda session: session[0])


def _moment(node: Node) -> datetime:
    return node.moment("%Y/%m/%d %H:%M", "%Y/%m/%d", example="2023/05/20 (Sat) 02:21", ignoring=_WEEKDAY)
