"""Reading whatever is whole in a damaged database."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final, cast

import apsw

from aforesaid.domain.checks import Role, moment
from aforesaid.domain.message import Message, message_hash, message_id
from aforesaid.domain.transfer import MemoryRow, Row, SummaryRow
from aforesaid.errors import AforesaidError, StoreDamaged, StoreRefused
from aforesaid.store import dumping
from aforesaid.store.checksums import CHECKSUM
from aforesaid.store.contract import Salvage, missing, ranges
from aforesaid.store.sqlite.connection import Options, connect, is_plain, unreadable
from aforesaid.store.sqlite.rows import answered
from aforesaid.store.sqlite.verify import RawRow, Value, check_checksums, raw_rows

_LOG, _PERSON, _THREAD, _SESSION, _NAME_INDEX, _SEQUENCE = 16, 13, (5, 6, 7), (11, 12), 3, 2
"""How many values the rows of these have: columns were added to them."""

_Names = dict[int, set[tuple[str, str]]]


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
        messages, damaged = _messages(found)
        others, lost = _others(copied)
    if not messages and not is_plain(path):
        raise StoreRefused(unreadable(path))
    if not messages:
        raise StoreDamaged(
            f"no message can be read from {path} (one that is encrypted cannot be read past its damage); nothing was "
            "changed. Restore a backup: aforesaid restore BACKUP --replace"
        )
    seqs = sorted(messages)
    if changed := sorted(damaged - messages.keys()):
        lost.append(f"messages that are not what was stored: {ranges(changed)}")
    summaries = {row.summary.id for row in others if isinstance(row, SummaryRow)}
    memories = {row.memory.id for row in others if isinstance(row, MemoryRow)}
    lost += missing("messages", messages, found.given.get("log", 0), damaged)
    lost += missing("summaries", summaries, found.given.get("summary", 0))
    lost += missing("memories", memories, found.given.get("memory", 0))
    return Salvage([*(messages[seq] for seq in seqs), *others], tuple(lost))


_VERSIONED: Final = 16
"""A row of the log that has more columns than this says which message it replaces."""
_DETAILED: Final = 18
"""A row of the log that has more columns than this has details."""

_RENAMED: Final = {"walk": "cursor", "forgotten": "tombstone", "mark": "metadata"}
"""What tables are called since a step of the schema."""


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
            self._take(row)

    def _take(self, row: RawRow) -> None:
        number, values = row
        if len(values) >= _LOG and values[0] is None and _texts((values[6], values[8])):
            self.log.append(row)
        elif len(values) >= _PERSON and values[0] is None and _texts(values[1:3]):
            self.people.setdefault(number, set()).add(cast("tuple[str, str]", values[1:3]))
        elif len(values) in _THREAD and values[0] is None and _texts(values[1:3]):
            self.threads.setdefault(number, set()).add(cast("tuple[str, str]", values[1:3]))
        elif len(values) in _SESSION and values[0] is None and isinstance(values[2], str):
            self.sessions[number] = values[2]
        elif len(values) == _NAME_INDEX and _texts(values[:2]) and isinstance(values[2], int):
            # The indexes of people and threads repeat their names.
            for names in (self.people, self.threads):
                names.setdefault(values[2], set()).add(cast("tuple[str, str]", values[:2]))
        elif len(values) == _SEQUENCE and isinstance(values[0], str) and isinstance(values[1], int):
            self.given[values[0]] = max(values[1], self.given.get(values[0], 0))


def _texts(values: tuple[Value, ...]) -> bool:
    return all(isinstance(value, str) for value in values)


def _messages(found: _Found) -> tuple[dict[int, Message], set[int]]:
    """Return the messages that are what was stored, and the numbers of rows that are not."""
    messages: dict[int, Message] = {}
    damaged: set[int] = set()
    for seq, values in found.log:
        message = _message(found, seq, values)
        if message is None:
            damaged.add(seq)
        else:
            messages[seq] = message
    return messages, damaged


def _message(found: _Found, seq: int, values: tuple[Value, ...]) -> Message | None:
    owner, thread, _, session, author, role, name, text, at, stored_at, given = values[1:12]
    active, chunk, _, digest = values[12:16]
    numbers = (owner, thread, session, author, at, stored_at)
    if not all(isinstance(number, int) for number in numbers) or not isinstance(digest, bytes):
        return None
    if not _texts((role, text)) or not (name is None or isinstance(name, str)):
        return None
    if not (given is None or isinstance(given, str)):
        return None
    details = values[18] if len(values) > _DETAILED else None
    if not (details is None or isinstance(details, str)):
        return None
    said, stored = cast("int", at), cast("int", stored_at)
    names = itertools.product(
        found.people.get(cast("int", owner), ()),
        found.threads.get(cast("int", thread), ()),
        found.people.get(cast("int", author), ()),
    )
    for (space, user), (_, where), (_, who) in names:
        spoken = cast("str", role), who, name, cast("str", text)
        if message_hash(space, user, where, given, *spoken, said, stored, details) == digest:
            return Message(
                seq=seq,
                id=message_id(seq, given),
                space=space,
                user=user,
                thread=where,
                session=found.sessions.get(cast("int", session), f"s-{seq}"),
                role=cast("Role", role),
                author=who,
                name=name,
                text=cast("str", text),
                at=moment(said),
                stored_at=moment(stored),
                active=bool(active),
                chunk=chunk if isinstance(chunk, int) else None,
                hash=digest,
                replaces=values[16] if len(values) > _VERSIONED and isinstance(values[16], int) else None,
                details=details,
            )
    return None


def _others(path: Path) -> tuple[list[Row], list[str]]:
    """Return all rows but messages, as far as the database itself gives them out."""
    rows: list[Row] = []
    lost: list[str] = []
    try:
        with closing(connect(path, Options(), create=False)) as connection:
            _rename(connection)
            for section in dumping.OTHERS:
                _read(connection, section, rows, lost)
            lost += _changed(connection)
    except (apsw.Error, AforesaidError, UnicodeDecodeError) as error:
        lost.append(f"all that is not a message: the database cannot be opened ({error})")
    return rows, lost


def _rename(connection: apsw.Connection) -> None:
    """Let the tables of a file of an earlier version be read under the names that they have now."""
    for before, name in _RENAMED.items():
        if connection.execute("SELECT 1 FROM pragma_table_info(?)", (before,)).get is not None:
            connection.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM main.{before}")


def _changed(connection: apsw.Connection) -> list[str]:
    """Name the rows that are given out although they are not what was stored. Files of earlier versions cannot tell."""
    if connection.execute("SELECT 1 FROM pragma_table_info('memory') WHERE name = ?", (CHECKSUM,)).get is None:
        return []
    return [f"{finding}; it is recovered as it is now: check it" for finding in check_checksums(connection)]


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
