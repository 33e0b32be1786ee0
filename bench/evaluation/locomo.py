"""LoCoMo: two people who chat over months. A list of samples; evidence names turns as `D<session>:<turn>`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from evaluation.conversation import PAUSE, Conversation, Tallies
from evaluation.conversation_builder import ConversationBuilder
from evaluation.json_files import Node

_CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_APART: Final = 5
"""The category of adversarial questions, reported separately: they have no answer in the conversation."""
_SESSION: Final = re.compile(r"session_([0-9]+)")
_EVIDENCE: Final = re.compile(r"D:?([0-9]+):([0-9]+)")
_WHEN: Final = "%I:%M %p on %d %B, %Y"


def fits(root: Node) -> bool:
    """Return whether this is LoCoMo."""
    return root.starts_with(conversation=dict, qa=list)


def load(root: Node, tallies: Tallies) -> Iterator[Conversation]:
    """Read every sample."""
    for number, sample in enumerate(root.items(), 1):
        given = sample.find("sample_id")
        builder = ConversationBuilder(f"sample {number}" if given is None else given.name(), tallies)
        _read_turns(sample.field("conversation"), builder)
        read_questions(sample, _CATEGORIES, builder, tallies)
        yield builder.conversation()


def _read_turns(chat: Node, builder: ConversationBuilder) -> None:
    numbers = sorted(int(found[1]) for name, _ in chat.fields() if (found := _SESSION.fullmatch(name)))
    for number in numbers:
        session = f"session_{number}"
        turns = chat.find(session)
        if turns is None:
            continue
        start = chat.field(f"{session}_date_time").moment(_WHEN, example="1:56 pm on 8 May, 2023")
        for place, turn in enumerate(turns.items()):
            text, caption = turn.text_of("text"), turn.text_of("blip_caption")
            builder.say(
                turn,
                turn.field("dia_id").name(),
                f"{text} [{caption}]".lstrip() if caption else text,
                session=session,
                at=start + place * PAUSE,
                speaker=turn.field("speaker").name(),
            )


def read_questions(chat: Node, categories: Mapping[int, str], builder: ConversationBuilder, tallies: Tallies) -> None:
    """Read the questions of a chat. `categories` names the numbers of their categories."""
    for question in chat.field("qa").items():
        category = question.field("category")
        name = categories.get(category.raw) if isinstance(category.raw, int) else None
        if name is None:
            raise category.damaged(f"is none of the categories 1 to {len(categories)}")
        builder.ask(
            question.field("question").text(),
            f"{category.raw} {name}",
            _read_evidence(question, tallies),
            apart=category.raw == _APART,
            answer=question.words_of("answer"),
        )


def _read_evidence(question: Node, tallies: Tallies) -> list[str]:
    """Return the ids of the turns with the answer, malformed ones repaired."""
    evidence: list[str] = []
    named = question.find("evidence")
    for node in () if named is None else named.leaves():
        written = node.text()
        found = [f"D{int(session)}:{int(turn)}" for session, turn in _EVIDENCE.findall(written)]
        if found and found != [written]:
            tallies.mended["malformed evidence ids, repaired"] += 1
        # An unreadable id counts as a turn that does not exist, like any other wrong id.
        evidence += found or [written]
    return evidence
