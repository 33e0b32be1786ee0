"""Journals of earlier versions, which hold what was changed after their files were last written."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

from aforesaid.errors import StoreDamaged
from aforesaid.store.readable.document import DamagedRecord, Header, unsealed
from aforesaid.store.readable.records import Record, Records, UnknownRecord, key_of, put


def journals_of(beside: Path) -> dict[int, Path]:
    """Return the journals whose names begin like this, oldest first."""
    pattern = re.compile(re.escape(beside.name) + r"\.journal-(\d{1,18})")
    names = [entry.name for entry in beside.parent.iterdir()] if beside.parent.is_dir() else []
    found = {int(match[1]): beside.with_name(name) for name in names if (match := pattern.fullmatch(name))}
    return dict(sorted(found.items()))


def replay_all(records: Records, beside: Path, header: Header | None) -> None:
    """Make the changes of all journals that go on from the files. Raises StoreDamaged if one is damaged or gone."""
    first = 1 if header is None else header.counter
    current = {number: path for number, path in journals_of(beside).items() if number >= first}
    if current and list(current) != list(range(first, first + len(current))):
        what = "the files are gone" if header is None else f"journal {first} is gone"
        raise StoreDamaged(
            f"{beside} has journals that do not fit: {what}; bring back what was removed, or run: "
            "aforesaid verify --repair"
        )
    for number, path in current.items():
        lines, damaged, before = _lines(path)
        # What a crash left at the very end was acknowledged to nobody: a line without an end, or sectors of zeros.
        if damaged and not (number == max(current) and all(damaged)):
            raise StoreDamaged(f"{path} is damaged; run: aforesaid verify --repair")
        lines = lines[:before]
        store = str(lines[0].get("store")) if lines else None
        if header is not None and store not in (None, header.store) and header.counter > 1:
            raise StoreDamaged(f"{path} belongs to other files than {beside}; move one of them away")
        try:
            _replay(records, lines)
        except (UnknownRecord, KeyError, TypeError, ValueError, AttributeError) as error:
            raise StoreDamaged(f"{path} holds what cannot be read ({error}); run: aforesaid verify --repair") from error


def salvage(records: Records, path: Path) -> list[str]:
    """Make the changes of the lines that are whole; return what is lost, one line each."""
    lines, damaged, _ = _lines(path)
    for line in lines:
        with suppress(UnknownRecord, KeyError, TypeError, ValueError, AttributeError):
            _replay(records, [line])
    lost = sum(not is_torn for is_torn in damaged)
    return [f"{path.name}: {lost} of {len(lines) + lost} lines"] if lost else []


def _replay(records: Records, lines: list[Record]) -> None:
    """Make the changes of lines. Making them twice is as good as once."""
    for line in lines:
        for name, packed in line.get("put", {}).items():
            for each in packed:
                put(records, name, each)
        for name, keys in line.get("gone", {}).items():
            for key in keys:
                records.get(name, {}).pop(key_of(key), None)


def _lines(path: Path) -> tuple[list[Record], list[bool], int | None]:
    """Return the lines that are whole, whether each other one may be what a crash left, and how many came before it.

    A group of lines was only written once the group before it was known to be on the disk. So a line with two groups
    behind it had been acknowledged.
    """
    found: list[Record] = []
    torn: list[bool] = []
    before, group = None, 0
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            found.append(unsealed(json.loads(line)))
        except (DamagedRecord, ValueError, RecursionError):
            torn.append(b"\0" in line or not line.endswith(b"\n"))
            before = len(found) if before is None else before
            continue
        its_group = int(found[-1].get("group", 0))
        if before is None:
            group = its_group
        elif its_group > group + 1:
            torn = [False for _ in torn]
    return found, torn, before
