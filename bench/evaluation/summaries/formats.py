"""Read published chats with summaries: DialogSum, SAMSum, QMSum and LoCoMo."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from aforesaid.models.offline import Spoken
from evaluation.json_files import Node
from evaluation.summaries.chats import Chat

_TURN: Final = re.compile(r"\s*([^:\n]{1,60}):\s*(.*)")
_PERSON: Final = "#Person1#"
_MARK: Final = re.compile(r"\{\w+\}\s*")
"""Annotations of a transcript, such as {vocalsound}, which are not words."""
_SESSION: Final = re.compile(r"session_([0-9]+)")
_WHEN: Final = "%I:%M %p on %d %B, %Y"


def read(row: Node) -> Iterator[tuple[str, Chat]]:
    """Return the chats in one row of a file; none if the row has another format."""
    if not isinstance(row.raw, dict):
        return
    if isinstance(row.raw.get("dialogue"), str):
        yield from _dialogue(row)
    elif isinstance(row.raw.get("meeting_transcripts"), list):
        yield from _meeting(row)
    elif isinstance(row.raw.get("conversation"), dict) and isinstance(row.raw.get("observation"), dict):
        yield from _sessions(row)


def _dialogue(row: Node) -> Iterator[tuple[str, Chat]]:
    """Read a chat with a line for each turn. DialogSum numbers its persons; its test part has three summaries."""
    text = row.text_of("dialogue")
    turns: list[Spoken] = []
    for line in text.splitlines():
        match = _TURN.match(line)
        if match is not None:
            turns.append(Spoken(match[1].strip(), match[2].strip()))
        elif turns:
            turns[-1] = turns[-1]._replace(text=f"{turns[-1].text} {line.strip()}")
    names = [name for name, _ in row.fields() if re.fullmatch(r"summary\d*", name)]
    summaries = tuple(filter(None, (row.text_of(name) for name in names)))
    yield (
        "DialogSum" if _PERSON in text else "SAMSum",
        Chat(tuple(turn for turn in turns if turn.text.strip()), summaries),
    )


def _meeting(row: Node) -> Iterator[tuple[str, Chat]]:
    """Read a meeting: the summary of the whole, and those of passages about something, as chats of their own."""
    turns = [
        Spoken(turn.field("speaker").text(), _MARK.sub("", turn.text_of("content")).strip())
        for turn in row.field("meeting_transcripts").items()
    ]
    for query in row.field("general_query_list").items():
        yield "QMSum", Chat(tuple(turn for turn in turns if turn.text), (query.field("answer").text(),))
    for query in row.field("specific_query_list").items():
        passage = [turn for span in query.field("relevant_text_span").items() for turn in _span(span, turns)]
        yield "QMSum passages", Chat(tuple(turn for turn in passage if turn.text), (query.field("answer").text(),))


def _span(span: Node, turns: list[Spoken]) -> list[Spoken]:
    try:
        first, last = (int(place.name()) for place in span.items())
    except ValueError:
        raise span.damaged("is not a first and a last turn") from None
    return turns[first : last + 1]


def _sessions(row: Node) -> Iterator[tuple[str, Chat]]:
    """Read the sessions of a LoCoMo conversation: what was observed in each are the facts."""
    chat = row.field("conversation")
    numbers = sorted(int(found[1]) for name, _ in chat.fields() if (found := _SESSION.fullmatch(name)))
    for number in numbers:
        session = f"session_{number}"
        turns = chat.find(session)
        observed = row.field("observation").find(f"{session}_observation")
        if turns is None or observed is None:
            continue
        at = chat.field(f"{session}_date_time").moment(_WHEN, example="1:56 pm on 8 May, 2023")
        spoken = tuple(turn for node in turns.items() if (turn := _turn(node, at)).text)
        facts = tuple(next(item.items()).text() for _, person in observed.fields() for item in person.items())
        yield "LoCoMo", Chat(spoken, facts=facts)


def _turn(node: Node, at: datetime) -> Spoken:
    """Read a turn. A picture is replaced by its caption."""
    text, caption = node.text_of("text"), node.text_of("blip_caption")
    return Spoken(node.field("speaker").name(), f"{text} [{caption}]".strip() if caption else text, at)
