"""Labelled transcripts: a text file for each conversation, one message in a line, followed by questions about it.

    # id: en-people-01
    # lang: en
    # kind: people
    == 2025-01-12 19:40           a session begins
    Mara: one message in one line
    Q single | question | 12 | short answer

The numbers of a question are those of the lines that answer it, counted from 1; a question of kind `none` has none.
Lines that begin with F and X describe facts and what replaced them; recall does not use them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from evaluation.conversation import PAUSE, Conversation, Tallies
from evaluation.conversation_builder import ConversationBuilder
from evaluation.json_files import Node

_ASSISTANT: Final = "assistant"
_BEGINNING: Final = b"# id:"
_HEADER: Final = re.compile(r"# id: +(\S+)")
_DETAIL: Final = re.compile(r"# (\w+): +(\S+)")
_SESSION: Final = re.compile(r"== (\d{4}-\d{2}-\d{2} \d{2}:\d{2})\s*")
_TURN: Final = re.compile(r"([^:]{1,30}): +(.+)")
_IGNORED: Final = ("# ", "F ", "X ")
_QUESTION: Final = "Q "
_QUESTION_PARTS: Final = 4
_NEVER_SAID: Final = "none"


def begins(file: Path) -> bool:
    """Return whether a file begins like a transcript, without reading all of it: folders hold other texts too."""
    with file.open("rb") as opened:
        return opened.read(len(_BEGINNING)) == _BEGINNING


def fits(root: Node) -> bool:
    """Return whether this is a labelled transcript."""
    return isinstance(root.raw, str) and _HEADER.match(root.raw) is not None


def load(root: Node, tallies: Tallies) -> Iterator[Conversation]:
    """Read one transcript."""
    header, *rest = root.text().splitlines()
    found = _HEADER.match(header)
    details = {match[1]: match[2] for line in rest if (match := _DETAIL.match(line))}
    builder = ConversationBuilder(
        found[1] if found else root.file.stem,
        tallies,
        language=details.get("lang", ""),
        kind=details.get("kind", ""),
    )
    lines = [Node(text, root.file, (f"line {number}",)) for number, text in enumerate(rest, 2) if text.strip()]
    questions = [line for line in lines if line.text().startswith(_QUESTION)]
    _read_turns([line for line in lines if not line.text().startswith((_QUESTION, *_IGNORED))], builder)
    for line in questions:
        parts = [part.strip() for part in line.text().removeprefix(_QUESTION).split("|")]
        if len(parts) != _QUESTION_PARTS:
            raise line.damaged("is not a question in the form: Q kind | question | numbers | answer")
        kind, text, turns, answer = parts
        if kind == _NEVER_SAID:
            builder.ask_unanswerable(text, kind, answer=answer)
        else:
            builder.ask(text, kind, re.findall(r"\d+", turns), answer=answer)
    yield builder.conversation()


def _read_turns(lines: list[Node], builder: ConversationBuilder) -> None:
    sessions = number = 0
    at: datetime | None = None
    for line in lines:
        if line.text().startswith("=="):
            if _SESSION.fullmatch(line.text()) is None:
                raise line.damaged("does not begin a session: write == 2025-01-12 19:40")
            at = datetime.strptime(line.text().strip(), "== %Y-%m-%d %H:%M").replace(tzinfo=UTC)
            sessions += 1
            continue
        turn = _TURN.fullmatch(line.text().strip())
        if turn is None or at is None:
            raise line.damaged("is neither the beginning of a session nor a message: write Name: text")
        number += 1
        speaker = turn[1].strip()
        builder.say(
            line,
            str(number),
            turn[2].strip(),
            session=f"session {sessions}",
            at=at,
            role="assistant" if speaker == _ASSISTANT else "user",
            speaker=None if speaker == _ASSISTANT else speaker,
        )
        at += PAUSE
