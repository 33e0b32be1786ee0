"""Reading whatever is whole in a damaged database."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TypeAlias

import apsw

from aforesaid.domain.message import Message, message_hash
from aforesaid.domain.transfer import MemoryRow, Row, SummaryRow
from aforesaid.errors import AforesaidError, StoreDamaged, StoreRefused
from aforesaid.store import dumping
from aforesaid.store.checksums import CHECKSUM
from aforesaid.store.contract import Salvage, missing, ranges
from aforesaid.store.messages import read_message
from aforesaid.store.sqlite.connection import Options, answered, connect, is_plain, unreadable
from aforesaid.store.sqlite.verify import FRAME_HEADER, LOG_HEADER, check_checksums

_LOG, _PERSON, _THREAD, _SESSION, _NAME_INDEX, _SEQUENCE = 16, 13, (5, 6, 7), (11, 12), 3, 2
"""How many values the rows of these have: columns were added to them."""

_Names: TypeAlias = dict[int, set[tuple[str, str]]]
RawRow: TypeAlias = tuple[int, tuple[Any, ...]]
"""A row of a table, or an entry of an index (whose number is zero)."""


def salvage(path: Path) -> Salvage:
    """Read everything that is whole. The file itself is not touched."""
    path = path.expanduser().absolute().resolve()
    with tempfile.TemporaryDirectory(prefix="aforesaid-salvage-") as folder:
        copied = Path(folder) / "copy.db"
        for suffix in ("", "-wal"):
            source = path.with_name(path.name + suffix)
            if source.exists():
                shutil.copyfile(source, copied.with_name(copied.name + suffix))
        found = _Found(raw_rows(copied))
        copies = [(seq, _message(found, seq, values)) for seq, values in found.log]
        others, lost = _others(copied)
    messages = {seq: message for seq, message in copies if message is not None}
    damaged = {seq for seq, message in copies if message is None}
    if not messages and not is_plain(path):
        raise StoreRefused(unreadable(path))
    if not messages:
        raise StoreDamaged(
            f"no message can be read from {path} (one that is encrypted cannot be read past its damage); nothing was "
            "changed. Restore a backup: aforesaid restore BACKUP --replace"
        )
    if changed := sorted(damaged - messages.keys()):
        lost.append(f"messages that are not what was stored: {ranges(changed)}")
    summaries = {row.summary.id for row in others if isinstance(row, SummaryRow)}
    memories = {row.memory.id for row in others if isinstance(row, MemoryRow)}
    lost += missing("messages", messages, found.given.get("log", 0), damaged)
    lost += missing("summaries", summaries, found.given.get("summary", 0))
    lost += missing("memories", memories, found.given.get("memory", 0))
    return Salvage([*(messages[seq] for seq in sorted(messages)), *others], tuple(lost))


_VERSIONED: Final = 16
"""A row of the log that has more columns than this says which message it replaces."""
_DETAILED: Final = 18
"""A row of the log that has more columns than this has details."""

_RENAMED: Final = {"walk": "cursor", "forgotten": "tombstone", "mark": "metadata"}
"""What tables of files of earlier versions are called now."""


class _Found:
    """What the pages say: names by number, and rows of the log."""

    def __init__(self, rows: Iterable[RawRow]) -> None:
        self.people: _Names = {}
        self.threads: _Names = {}
        self.sessions: dict[int, str] = {}
        self.log: list[RawRow] = []
        self.given: dict[str, int] = {}
        """The highest number that each table has given out."""
        for row in rows:
            self._take(*row)

    def _take(self, number: int, values: tuple[Any, ...]) -> None:
        if len(values) >= _LOG and values[0] is None and _texts((values[6], values[8])):
            self.log.append((number, values))
        elif len(values) >= _PERSON and values[0] is None and _texts(values[1:3]):
            self.people.setdefault(number, set()).add(values[1:3])
        elif len(values) in _THREAD and values[0] is None and _texts(values[1:3]):
            self.threads.setdefault(number, set()).add(values[1:3])
        elif len(values) in _SESSION and values[0] is None and isinstance(values[2], str):
            self.sessions[number] = values[2]
        elif len(values) == _NAME_INDEX and _texts(values[:2]) and isinstance(values[2], int):
            # The indexes of people and threads repeat their names.
            for names in (self.people, self.threads):
                names.setdefault(values[2], set()).add(values[:2])
        elif len(values) == _SEQUENCE and isinstance(values[0], str) and isinstance(values[1], int):
            self.given[values[0]] = max(values[1], self.given.get(values[0], 0))


def _texts(values: tuple[Any, ...]) -> bool:
    return all(isinstance(value, str) for value in values)


def _message(found: _Found, seq: int, values: tuple[Any, ...]) -> Message | None:
    """Return the message of a row of the log, if it is what was stored."""
    replaces = values[16] if len(values) > _VERSIONED and isinstance(values[16], int) else None
    match (*values[1:16], values[18] if len(values) > _DETAILED else None):
        case (
            int(owner), int(thread), _, int(session), int(author), str(role), str() | None as name, str(text), int(at),
            int(stored_at), str() | None as given, active, chunk, _, bytes(digest), str() | None as details,
        ):  # fmt: skip
            pass
        case _:
            return None
    people, threads = found.people, found.threads
    names = itertools.product(people.get(owner, ()), threads.get(thread, ()), people.get(author, ()))
    for (space, user), (_, where), (_, who) in names:
        if message_hash(space, user, where, given, role, who, name, text, at, stored_at, details) == digest:
            return read_message((
                seq, given, space, user, where, found.sessions.get(session, f"s-{seq}"), role, who, name, text, at,
                stored_at, active, chunk if isinstance(chunk, int) else None, digest, replaces, False, details,
            ))  # fmt: skip
    return None


def _others(path: Path) -> tuple[list[Row], list[str]]:
    """Return all rows but messages, as far as the database itself gives them out."""
    rows: list[Row] = []
    lost: list[str] = []
    try:
        with closing(connect(path, Options(), create=False)) as connection:
            for before, name in _RENAMED.items():
                if connection.execute("SELECT 1 FROM pragma_table_info(?)", (before,)).get is not None:
                    connection.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM main.{before}")
            for section in dumping.OTHERS:
                _read(connection, section, rows, lost)
            # Files of earlier versions have no checksums.
            if (
                connection.execute("SELECT 1 FROM pragma_table_info('memory') WHERE name = ?", (CHECKSUM,)).get
                is not None
            ):
                lost += [
                    f"{finding}; it is recovered as it is now: check it" for finding in check_checksums(connection)
                ]
    except (apsw.Error, AforesaidError, UnicodeDecodeError) as error:
        lost.append(f"all that is not a message: the database cannot be opened ({error})")
    return rows, lost


def _read(connection: apsw.Connection, section: dumping.Section, rows: list[Row], lost: list[str]) -> None:
    after: dumping.Key | None = section.start
    try:
        while after is not None:
            # One by one: what was read up to the damage is kept.
            found, after = answered(connection, dumping.page(section, after, 1))
            rows.extend(found)
    except Exception as error:
        # Damage shows itself in many ways. The next section is tried all the same.
        lost.append(f"some or all {section.name}: {error}")


_PAGE_HEADER: Final = 100
"""Bytes of the first page that belong to the file header."""
_TABLE_LEAF: Final = 0x0D
_INDEX_LEAF: Final = 0x0A
_USUAL_SIZE: Final = 4096
_TEXT: Final = 13
"""Odd types from here on are texts, even ones from 12 on are bytes."""
_NUMBERS: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""The lengths of whole numbers by their types."""


def raw_rows(path: Path) -> Iterator[RawRow]:
    """Return every row that can be read from a database and from the write-ahead log beside it.

    Pages that are no longer in use may still hold rows, and one row may come several times.
    """
    data = path.read_bytes()
    size = int.from_bytes(data[16:18], "big")
    size = 65536 if size == 1 else size
    if size < 512 or size & (size - 1):  # noqa: PLR2004 - no page is smaller
        size = _USUAL_SIZE
    pages = {number + 1: data[start : start + size] for number, start in enumerate(range(0, len(data), size))}
    newer = list(_page_frames(path.with_name(path.name + "-wal"), size))
    images = [*pages.items(), *newer]
    latest = pages | dict(newer)
    for number, page in images:
        yield from _leaf(page, _PAGE_HEADER if number == 1 else 0, latest, size)


def _page_frames(path: Path, size: int) -> Iterator[tuple[int, bytes]]:
    if not path.exists():
        return
    data = path.read_bytes()
    step = FRAME_HEADER + size
    for start in range(LOG_HEADER, len(data) - step + 1, step):
        yield int.from_bytes(data[start : start + 4], "big"), data[start + FRAME_HEADER : start + step]


def _leaf(page: bytes, start: int, pages: dict[int, bytes], size: int) -> Iterator[RawRow]:
    kind = page[start] if len(page) > start else 0
    if kind not in (_TABLE_LEAF, _INDEX_LEAF):
        return
    cells = int.from_bytes(page[start + 3 : start + 5], "big")
    for place in range(start + 8, min(start + 8 + 2 * cells, size), 2):
        offset = int.from_bytes(page[place : place + 2], "big")
        try:
            yield _cell(page, offset, kind, pages, size)
        except (ValueError, IndexError, KeyError, UnicodeDecodeError, OverflowError):
            continue  # a damaged cell; the others are tried all the same


def _cell(page: bytes, offset: int, kind: int, pages: dict[int, bytes], size: int) -> RawRow:
    length, offset = _varint(page, offset)
    number = 0
    if kind == _TABLE_LEAF:
        number, offset = _varint(page, offset)
        most = size - 35
    else:
        most = (size - 12) * 64 // 255 - 23
    local = length
    if length > most:
        least = (size - 12) * 32 // 255 - 23
        spilled = least + (length - least) % (size - 4)
        local = spilled if spilled <= most else least
    if length > (1 << 26) or offset + local > len(page):
        raise ValueError("the cell does not fit")
    payload = bytearray(page[offset : offset + local])
    following = int.from_bytes(page[offset + local : offset + local + 4], "big") if local < length else 0
    while len(payload) < length:
        more = pages[following]
        payload += more[4 : 4 + min(size - 4, length - len(payload))]
        following = int.from_bytes(more[:4], "big")
    return number, tuple(_record(bytes(payload)))


def _record(payload: bytes) -> Iterator[Any]:
    end, at = _varint(payload, 0)
    types = []
    while at < end:
        kind, at = _varint(payload, at)
        types.append(kind)
    if at != end:
        raise ValueError("the head of the record does not fit")
    for kind in types:
        value, at = _value(payload, at, kind)
        yield value


def _value(payload: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind == 0:
        return None, at
    if kind in (8, 9):
        return kind - 8, at
    if kind in _NUMBERS:
        end = at + _NUMBERS[kind]
        return int.from_bytes(payload[at:end], "big", signed=True), end
    if kind < _TEXT - 1:
        raise ValueError("a type that is not used here")
    end = at + (kind - (_TEXT if kind % 2 else _TEXT - 1)) // 2
    if end > len(payload):
        raise ValueError("the value does not fit")
    return (payload[at:end].decode() if kind % 2 else payload[at:end]), end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(8):
        byte = data[at + place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that more follows
            return value, at + place + 1
    return value << 8 | data[at + 8], at + 9
