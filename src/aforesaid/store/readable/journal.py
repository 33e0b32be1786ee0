"""Journals of earlier versions, which hold what was changed after their files were last written.

A group of lines was only written once the group before it was known to be on the disk. So damage in any group but the
last is damage to what was acknowledged; at the very end, it can be what a crash left of a group that nobody was told
about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from aforesaid.errors import StoreDamaged
from aforesaid.store.readable.document import DamagedRecord, Header, unsealed
from aforesaid.store.readable.records import Record, Records, UnknownRecord, key_of, put

_SECTOR: Final = 512
_ZEROS: Final = re.compile(rb"\0+")


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
        lines = _read(path, newest=number == max(current))
        store = str(lines[0].get("store")) if lines else None
        if header is not None and store not in (None, header.store) and header.counter > 1:
            raise StoreDamaged(f"{path} belongs to other files than {beside}; move one of them away")
        for line in lines[1:]:
            try:
                _replay(records, line)
            except (UnknownRecord, KeyError, TypeError, ValueError, AttributeError) as error:
                raise StoreDamaged(
                    f"{path} holds what cannot be read ({error}); run: aforesaid verify --repair"
                ) from error


def salvage(records: Records, path: Path) -> list[str]:
    """Make the changes of the lines that are whole; return what is lost, one line each."""
    data = path.read_bytes()
    found = [(start, line, ended) for start, line, ended in _lines(data) if line]
    damaged = 0
    for start, line, ended in found:
        try:
            record = _record(line)
        except DamagedRecord:
            damaged += not (start == found[-1][0] and _torn(data, start, line, ended=ended))
            continue
        with suppress(UnknownRecord, KeyError, TypeError, ValueError, AttributeError):
            _replay(records, record)
    return [f"{path.name}: {damaged} of {len(found)} lines"] if damaged else []


def _replay(records: Records, line: Record) -> None:
    """Make the changes of a line. Making them twice is as good as once."""
    for name, packed in line["put"].items():
        for each in packed:
            put(records, name, each)
    for name, keys in line.get("gone", {}).items():
        for key in keys:
            records.get(name, {}).pop(key_of(key), None)


def _record(line: bytes) -> Record:
    try:
        return unsealed(json.loads(line))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise DamagedRecord(str(error)) from None


def _read(path: Path, *, newest: bool) -> list[Record]:
    data = path.read_bytes()
    records: list[Record] = []
    group = 0
    for start, line, ended in _lines(data):
        try:
            record = _record(line)
        except DamagedRecord as error:
            if newest and _torn(data, start, line, ended=ended) and not _goes_on(data, start, group + 1):
                break
            raise StoreDamaged(f"{path} is damaged at byte {start} ({error}); run: aforesaid verify --repair") from None
        group = int(record.pop("group", 0))
        records.append(record)
    return records


def _lines(data: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """Return each line with its place, and whether it has an end."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        yield start, data[start : end if end >= 0 else len(data)], end >= 0
        start = end + 1 if end >= 0 else len(data)


def _torn(data: bytes, start: int, line: bytes, *, ended: bool) -> bool:
    """Tell whether a line looks like what a crash leaves: it stops, or sectors of it were never written.

    A sector that was never written is all zeros, or zeros from where the line begins: the rest of the
    sector was written earlier.
    """
    if not ended:
        return True
    for zeros in _ZEROS.finditer(data, start, start + len(line)):
        begins = zeros.start() % _SECTOR == 0 or zeros.start() == start
        if begins and (zeros.end() % _SECTOR == 0 or zeros.end() == len(data)):
            return True
    return False


def _goes_on(data: bytes, start: int, group: int) -> bool:
    """Tell whether a later group follows, so that what is at `start` had been synced."""
    for _, line, _ in _lines(data[start:]):
        with suppress(DamagedRecord):
            if int(_record(line).get("group", 0)) > group:
                return True
    return False
