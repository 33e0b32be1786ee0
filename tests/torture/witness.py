"""A witness hears every acknowledgement, and later says what of it is missing from a file.

It reads the tables itself, so that a mistake in the store's own reads or in `verify` does not hide a loss.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, field
from typing import Any, TypeAlias

import apsw


@dataclass(frozen=True, slots=True)
class Said:
    """Messages of one change set were acknowledged to a writer."""

    writer: str
    messages: tuple[tuple[str, int, str, str, str], ...]
    """Of each message: text, seq, user, thread, id."""


@dataclass(frozen=True, slots=True)
class Archived:
    """An archive was acknowledged."""

    summary: int
    user: str
    messages: tuple[int, ...]
    summaries: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RollBackAsked:
    """Somebody is about to ask for a roll back; from here on it may or may not have happened."""

    summary: int


@dataclass(frozen=True, slots=True)
class RolledBack:
    """A roll back was acknowledged."""

    summary: int


Event: TypeAlias = Said | Archived | RollBackAsked | RolledBack

Row: TypeAlias = tuple[Any, ...]

_EVENTS = {kind.__name__: kind for kind in (Said, Archived, RollBackAsked, RolledBack)}


def to_wire(event: Event) -> list[Any]:
    """Return an event as JSON can carry it."""
    return [type(event).__name__, *astuple(event)]


def from_wire(parts: list[Any]) -> Event:
    """Read an event that came through a pipe."""
    kind, *fields = parts
    event: Event = _EVENTS[kind](*[_frozen(field) for field in fields])
    return event


def _frozen(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


PART_OF_CHANGE_SET = re.compile(r"^(\S+)/(\d+)of(\d+) ")
"""How a text begins that was stored together with others: all of them must be there, or none."""


@dataclass(slots=True)
class Snapshot:
    """The log and the summaries of a file, as plain rows."""

    log: list[Row]
    summaries: dict[int, Row]
    sources: dict[int, set[int]]
    audit: dict[str, int]

    @classmethod
    def of(cls, connection: apsw.Connection) -> Snapshot:
        """Read a file within one transaction."""
        with connection:
            log = connection.execute(
                """SELECT l.seq, coalesce(l.given_id, '#' || l.seq), l.text, l.owner, p.name, t.name, l.active, l.chunk
                     FROM log l JOIN person p ON p.id = l.owner JOIN thread t ON t.id = l.thread ORDER BY l.seq"""
            ).fetchall()
            summaries = {
                row[0]: row
                for row in connection.execute(
                    """SELECT id, owner, level, json_extract(chunks, '$[0]'), messages, first_seq, last_seq, active,
                              rolled_back FROM summary"""
                )
            }
            sources: dict[int, set[int]] = {}
            for summary, source in connection.execute("SELECT summary, source FROM summary_source"):
                sources.setdefault(summary, set()).add(source)
            audited = """SELECT action || ' ' || substr(subject, 1, instr(subject, ',')), count(*) FROM audit
                          WHERE action IN ('archive', 'roll_back') GROUP BY 1"""
            audit = {str(subject): count for subject, count in connection.execute(audited)}
        return cls(log, summaries, sources, audit)

    def chunks(self) -> dict[tuple[int, int], list[int]]:
        """Return which messages are archived, by owner and chunk."""
        found: dict[tuple[int, int], list[int]] = {}
        for seq, _, _, owner, _, _, _, chunk in self.log:
            if chunk is not None:
                found.setdefault((owner, chunk), []).append(seq)
        return found


@dataclass(slots=True)
class Witness:
    """Everything that was acknowledged about one file."""

    said: dict[str, tuple[int, str, str, str]] = field(default_factory=dict)
    """By text, which is never used twice: seq, user, thread, id."""
    archives: dict[int, Archived] = field(default_factory=dict)
    asked_back: set[int] = field(default_factory=set)
    rolled_back: set[int] = field(default_factory=set)
    _last: dict[tuple[str, str], int] = field(default_factory=dict)

    def hear(self, event: Event) -> None:
        """Remember an acknowledgement. Each writer hears growing numbers, in every thread."""
        match event:
            case Said(writer, messages):
                for text, seq, user, thread, id_ in messages:
                    assert text not in self.said, f"{text[:40]!r} was acknowledged twice"
                    assert self._last.get((writer, thread), 0) < seq, f"{writer} heard {seq} out of order"
                    self._last[writer, thread] = seq
                    self.said[text] = (seq, user, thread, id_)
            case Archived():
                self.archives[event.summary] = event
            case RollBackAsked(summary):
                self.asked_back.add(summary)
            case RolledBack(summary):
                self.rolled_back.add(summary)

    def findings(self, connection: apsw.Connection) -> list[str]:
        """Say everything that is wrong with a file, by its log and its summaries."""
        snapshot = Snapshot.of(connection)
        return [
            *self._missing_messages(snapshot),
            *broken_log(snapshot.log),
            *broken_archives(snapshot),
            *self._missing_archives(snapshot),
        ]

    def _missing_messages(self, snapshot: Snapshot) -> Iterator[str]:
        stored = {row[2]: row for row in snapshot.log}
        for text, expected in self.said.items():
            row = stored.get(text)
            if row is None:
                yield f"lost: message #{expected[0]} {text[:40]!r}"
            elif (row[0], row[4], row[5], row[1]) != expected:
                yield f"changed: message {text[:40]!r} was acknowledged as {expected}, and is {row}"

    def _missing_archives(self, snapshot: Snapshot) -> Iterator[str]:
        chunks = snapshot.chunks()
        for number, archive in self.archives.items():
            row = snapshot.summaries.get(number)
            if row is None:
                yield f"lost: archive {number}"
                continue
            _, owner, level, chunk, _, _, _, _, rolled_back = row
            if rolled_back:
                if number not in self.asked_back:
                    yield f"archive {number} was rolled back, and nobody asked for that"
            elif number in self.rolled_back:
                yield f"lost: the roll back of archive {number}"
            elif level == 1 and chunks.get((owner, chunk)) != sorted(archive.messages):
                yield f"archive {number} does not hold the messages that were acknowledged"
            if level > 1 and snapshot.sources.get(number) != set(archive.summaries):
                yield f"archive {number} does not stand on the summaries that were acknowledged"


def broken_log(log: list[Row]) -> Iterator[str]:
    """Find what no log may look like, whatever was acknowledged."""
    # A number is given only once its change set is stored, so a gap is a message that was there and is gone.
    if log and log[-1][0] != len(log):
        yield f"lost: {log[-1][0]} numbers were given, {len(log)} messages are there"
    texts = {row[2] for row in log}
    if len(texts) != len(log):
        yield f"{len(log) - len(texts)} messages are there twice"
    seen: dict[str, set[str]] = {}
    wanted: dict[str, int] = {}
    for text in texts:
        part = PART_OF_CHANGE_SET.match(text)
        if part is not None:
            seen.setdefault(part[1], set()).add(part[2])
            wanted[part[1]] = int(part[3])
    for key, parts in seen.items():
        if len(parts) != wanted[key]:
            yield f"half of the change set {key} is there"


def broken_archives(snapshot: Snapshot) -> Iterator[str]:
    """Find half archives: a chunk without its summary, a summary without its chunk, either without its audit row."""
    for seq, _, _, _, _, _, active, chunk in snapshot.log:
        if bool(active) != (chunk is None):
            yield f"half archive: message #{seq} has active={active} and chunk={chunk}"
    chunks = snapshot.chunks()
    standing = {(row[1], row[3]) for row in snapshot.summaries.values() if row[2] == 1 and not row[8]}
    for owner, chunk in chunks.keys() - standing:
        yield f"half archive: chunk {chunk} of owner {owner} has no summary"
    for row in snapshot.summaries.values():
        yield from _broken_summary(row, chunks, snapshot)


def _broken_summary(row: Row, chunks: dict[tuple[int, int], list[int]], snapshot: Snapshot) -> Iterator[str]:
    number, owner, level, chunk, messages, first, last, active, rolled_back = row
    if level == 1 and not rolled_back:
        held = chunks.get((owner, chunk), [])
        if (len(held), held[:1], held[-1:]) != (messages, [first], [last]):
            yield f"half archive: summary {number} stands for {messages} messages, its chunk holds {len(held)}"
    if rolled_back and active:
        yield f"summary {number} is rolled back and active"
    if snapshot.audit.get(f"archive summary {number},") != 1:
        yield f"half archive: summary {number} has no audit row"
    if snapshot.audit.get(f"roll_back summary {number},", 0) != int(rolled_back):
        yield f"half roll back: the audit rows of summary {number} do not say rolled_back={rolled_back}"
    for source in () if rolled_back else snapshot.sources.get(number, ()):
        if snapshot.summaries[source][7]:
            yield f"half archive: summary {source} is active below summary {number}"


def damage(connection: apsw.Connection) -> list[str]:
    """Let SQLite say what is wrong: pages and indexes, references, and the keyword index against the messages."""
    found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
    found += [f"a dangling reference: {row}" for row in connection.execute("PRAGMA foreign_key_check")]
    try:
        connection.execute("INSERT INTO log_index (log_index, rank) VALUES ('integrity-check', 1)")
    except apsw.CorruptError as error:
        found.append(f"the keyword index does not match the messages: {error}")
    return found


def losses(findings: Iterable[str]) -> int:
    """Count what was acknowledged and is gone."""
    return sum(finding.startswith("lost:") for finding in findings)
