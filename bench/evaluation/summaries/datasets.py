"""Load chats with reference summaries or facts. Formats are recognised by their content."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from aforesaid.errors import InvalidInput
from evaluation.conversation import counts
from evaluation.json_files import Node, read_first_value, read_text
from evaluation.summaries import formats
from evaluation.summaries.chats import Chat, ChatSet

NAMES: Final = ("DialogSum", "SAMSum", "QMSum", "LoCoMo")
_ENDINGS: Final = (".json", ".jsonl", ".csv")


class _Collected(NamedTuple):
    chats: list[Chat]
    left_out: Counter[str]


def load_chats(path: Path) -> list[ChatSet]:
    """Load every data set in a file or folder, sorted by path. Raises if there is none."""
    collected: dict[tuple[Path, str], _Collected] = {}
    for file in _files(path.absolute()):
        for row in _rows(file):
            for name, chat in formats.read(row):
                into = collected.setdefault((file, name), _Collected([], Counter()))
                if chat.turns and (chat.summaries or chat.facts):
                    into.chats.append(chat)
                else:
                    into.left_out["chats without turns, or without anything to compare with"] += 1
    found = [
        ChatSet(name, file, tuple(each.chats), counts(each.left_out))
        for (file, name), each in collected.items()
        if each.chats
    ]
    if not found:
        raise InvalidInput(
            f"no chats with summaries in {path}: nothing there is {', '.join(NAMES[:-1])} or {NAMES[-1]}"
        )
    return found


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InvalidInput(f"{path} does not exist; pass a file or folder with chats and their summaries")
    return sorted(file for file in path.rglob("*") if file.suffix in _ENDINGS and file.is_file())


def _rows(file: Path) -> Iterable[Node]:
    """Return possible chats: the items of a JSON list, the lines of a JSON Lines file, the rows of a CSV file."""
    if file.suffix == ".jsonl":
        return _lines(file)
    if file.suffix == ".csv":
        return _table(file)
    root, rest = read_first_value(file)
    if rest is not None:
        return []  # something else, such as JSON lines under another name
    return root.items() if isinstance(root.raw, list) else [root]


def _lines(file: Path) -> Iterable[Node]:
    for number, line in enumerate(read_text(file).splitlines(), 1):
        if line.strip():
            try:
                yield Node(json.loads(line), file, (f"line {number}",))
            except (json.JSONDecodeError, RecursionError) as error:
                raise InvalidInput(f"{file} is damaged: line {number} is not JSON: {error}") from None


def _table(file: Path) -> Iterable[Node]:
    try:
        for number, row in enumerate(csv.DictReader(io.StringIO(read_text(file), newline=""), strict=True), 1):
            yield Node({key: value for key, value in row.items() if key is not None}, file, (f"row {number}",))
    except csv.Error as error:
        raise InvalidInput(f"{file} is damaged: it is not valid CSV: {error}") from None
