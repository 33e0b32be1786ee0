"""A document of records: plain JSON, a record on each line, that is written and read without holding all of it.

A person may lay it out anew with any tool; what counts is the records and their checksums.
"""

from __future__ import annotations

import codecs
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NamedTuple, TypeAlias

from aforesaid.domain.checks import moment, now
from aforesaid.errors import StoreDamaged, StoreRefused, StoreTooNew
from aforesaid.store.readable.records import TABLES, Record, UnknownRecord

FORMAT: Final = 1
HEADER: Final = "aforesaid"
"""The section that a document begins with. It is recognised by its keys: earlier versions gave it another name."""
_OF_HEADERS: Final = {"format", "kind", "store", "journal"}
END: Final = "end"
_CHUNK: Final = 1 << 20
_SPACE: Final = re.compile(r"[ \t\r\n]*")

CHECK: Final = "check"
"""The field with a record's checksum."""
_START: Final = re.compile(r"\{")
_decoder: Final = json.JSONDecoder()
_encoder: Final = json.JSONEncoder(ensure_ascii=False)
Put: TypeAlias = Callable[[str, Record], None]
"""Takes the name of a table and a record of it."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a document says of itself: its seal. The database beside it has the same one."""

    store: str
    """A name that no other store has."""
    counter: int
    """How often the files had been written. Earlier versions: the journal that goes on from here."""


class DamagedRecord(ValueError):
    """A record is not what was written."""


def sealed(record: Record) -> bytes:
    """Write a record as one line, without its end, with its checksum as the last field."""
    written = _encoder.encode(record).encode()
    return b'%b, "%b": "%08x"}' % (written[:-1], CHECK.encode(), zlib.crc32(written))


def unsealed(record: object) -> Record:
    """Return a record that was read, without its checksum, or raise DamagedRecord. Spaces between fields are free."""
    if not isinstance(record, dict) or not isinstance(check := record.pop(CHECK, None), str):
        raise DamagedRecord("it has no checksum")
    try:
        written = _encoder.encode(record).encode()
    except UnicodeEncodeError:
        raise DamagedRecord("it is not valid Unicode") from None
    if f"{zlib.crc32(written):08x}" != check:
        raise DamagedRecord("it is not what was written")
    return record


def _whole_records(data: bytes) -> Iterator[Record]:
    """Return every record that is whole, wherever it is in a damaged file, whatever surrounds it."""
    text = data.decode(errors="replace")
    position = 0
    while (found := _START.search(text, position)) is not None:
        position = found.end()
        try:
            value, end = _decoder.raw_decode(text, found.start())
            record = unsealed(value)
        except (json.JSONDecodeError, DamagedRecord, RecursionError):
            continue
        position = end
        yield record


Shape: TypeAlias = Literal["named", "grouped", "listed"]
"""Records by a name each, lists of records by a name each, or one list of records."""
Section: TypeAlias = tuple[str, Shape, Iterable[tuple[str, Record]]]
"""Its name, its shape, and the records with their names."""


@dataclass(frozen=True, slots=True)
class Body:
    """The records of a document as they are written."""

    lines: list[bytes]
    count: int
    check: int
    digest: str
    """Tells records from others, whatever surrounds them."""


def body(sections: Iterable[Section]) -> Body:
    """Write the records of a document."""
    lines: list[bytes] = []
    count, check, digest = 0, 0, blake2b(digest_size=12)
    for name, shape, records in sections:
        lines.append(b",\n%b: %b" % (_text(name), b"[" if shape == "listed" else b"{"))
        before: str | None = None
        for group, record in records:
            line = sealed(record)
            count, check = count + 1, zlib.crc32(line[-10:-2], check)
            digest.update(line)
            lines.append(_opening(shape, group, before) + line)
            before = group
        if shape == "grouped" and before is not None:
            lines.append(b"\n]")
        lines.append(b"\n]" if shape == "listed" else b"\n}")
    return Body(lines, count, check, digest.hexdigest())


def pieces(kind: str, header: Header, made: Body, about: Record | None = None) -> Iterator[bytes]:
    """Write a document. What is said `about` it stands at its head, for people, and is not read again."""
    head = {"format": FORMAT, "kind": kind, "store": header.store, "journal": header.counter}
    yield b'{\n"%b": %b' % (HEADER.encode(), sealed(head | {"written_at": moment(now()).isoformat()}))
    for name, value in (about or {}).items():
        yield b",\n%b: %b" % (_text(name), _text(value))
    yield from made.lines
    yield b',\n"%b": %b\n}\n' % (END.encode(), sealed({"records": made.count, "sum": f"{made.check:08x}"}))


def _opening(shape: Shape, group: str, before: str | None) -> bytes:
    """Return the text before a record."""
    comma = b"" if before is None else b","
    if shape == "named":
        return comma + b"\n%b: " % _text(group)
    if shape == "listed" or group == before:
        return comma + b"\n"
    return (b"" if before is None else b"\n],") + b"\n%b: [\n" % _text(group)


def _text(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


@dataclass(frozen=True, slots=True)
class Read:
    """What a whole document says of itself."""

    header: Header
    digest: str
    edited: bool
    """Whether somebody changed records, and took their checksums away as a sign of that."""


def read(path: Path, kind: str, put: Put) -> Read:
    """Read a document, record by record. Raises StoreDamaged when it is not whole, and says where.

    A record without a checksum was written by a person. In a document with such records, or without its last one, none
    needs to be missed.
    """
    header: Header | None = None
    ended: Record | None = None
    count, check, digest, edited = 0, 0, blake2b(digest_size=12), False
    with path.open("rb") as file:
        try:
            for section, found in _Reader(file).records():
                by_hand = header is not None and isinstance(found, dict) and CHECK not in found
                seal = str(found.get(CHECK)).encode() if isinstance(found, dict) else b""
                record = found if by_hand else unsealed(found)
                if header is None:
                    header = _header(path, kind, section, record)
                elif section == END:
                    ended = record
                else:
                    edited = edited or by_hand
                    count, check = count + 1, zlib.crc32(seal, check)
                    digest.update(sealed(record))
                    put(section, record)
        except (DamagedRecord, UnknownRecord, json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise StoreDamaged(
                f"{path} is damaged near byte {file.tell()} ({error}); run: aforesaid verify --repair"
            ) from error
    edited = edited or ended is None
    if header is None or not (edited or ended == {"records": count, "sum": f"{check:08x}"}):
        raise StoreDamaged(f"{path} is damaged: some of it is missing; run: aforesaid verify --repair")
    return Read(header, digest.hexdigest(), edited)


def salvage(path: Path, put: Put) -> Salvaged:
    """Read every record that is whole."""
    header: Header | None = None
    expected: int | None = None
    count = 0
    for record in _whole_records(path.read_bytes()):
        if "format" in record and "store" in record:
            header = Header(str(record["store"]), int(record["journal"]))
        elif record.keys() == {"records", "sum"}:
            expected = int(record["records"])
        elif put_somewhere(record, put):
            count += 1
    return Salvaged(path.name, header, count, expected)


class Salvaged(NamedTuple):
    """What is whole in a damaged document."""

    name: str
    header: Header | None
    whole: int
    """How many records."""
    expected: int | None
    """How many records it had; None where its end is damaged."""

    def lost(self, recovered: int = 0) -> tuple[str, ...]:
        """Say how many records are missing; nothing where none are. `recovered` ones were found elsewhere."""
        if self.expected is None:
            found = f"{self.whole + recovered} are there"
            return (f"{self.name}: its end is damaged, so how many records it had is not known; {found}",)
        missing = self.expected - self.whole - recovered
        return () if missing <= 0 else (f"{self.name}: {missing} of {self.expected} records",)


def put_somewhere(record: Record, put: Put) -> bool:
    """Put a record into the table that it fits. Users come last: messages have all that they have, and more."""
    for name in (*(name for name in TABLES if name != "users"), "users"):
        try:
            put(name, dict(record))
        except UnknownRecord:
            continue
        return True
    return False


def _header(path: Path, kind: str, section: str, record: Record) -> Header:
    if section != HEADER or not isinstance(record["format"], int):
        raise StoreRefused(f"{path} was not written by Aforesaid; choose another file, or import it")
    if record["format"] > FORMAT:
        raise StoreTooNew(
            f"{path} was written by a newer Aforesaid (format {record['format']}; this version knows {FORMAT}): "
            "install that version or a later one"
        )
    if record["kind"] != kind:
        raise StoreRefused(f"{path} is part of a store of the kind {record['kind']!r}, not {kind!r}")
    return Header(str(record["store"]), int(record["journal"]))


class _Reader:
    """Reads JSON that is larger than what is held of it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._json = json.JSONDecoder()
        self._text = ""
        self._at = 0
        self._over = False

    def records(self) -> Iterator[tuple[str, Any]]:
        """Return each record, still sealed, with the name of its section."""
        self._expect("{")
        while True:
            name = self._value()
            self._expect(":")
            if name == END:
                yield name, self._value()
            elif name not in TABLES:
                value = self._value()
                if isinstance(value, dict) and value.keys() >= _OF_HEADERS:
                    yield HEADER, value
            else:
                yield from ((str(name), record) for record in self._section())
            if self._next(",}") == "}":
                break
        if self._peek():
            raise json.JSONDecodeError("more after the end", self._text, self._at)

    def _section(self) -> Iterator[Any]:
        if self._next("[{") == "[":
            yield from self._list()
            return
        if self._peek() == "}":
            self._next("}")
            return
        while True:
            self._value()
            self._expect(":")
            if self._peek() == "[":
                self._next("[")
                yield from self._list()
            else:
                yield self._value()
            if self._next(",}") == "}":
                return

    def _list(self) -> Iterator[Any]:
        if self._peek() == "]":
            self._next("]")
            return
        while True:
            yield self._value()
            if self._next(",]") == "]":
                return

    def _value(self) -> Any:  # noqa: ANN401 - whatever JSON holds
        self._peek()
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._at)
            except json.JSONDecodeError:
                if self._over:
                    raise
            else:
                # A number at the end of what is held could go on.
                if end < len(self._text) or self._over:
                    self._at = end
                    return value
            self._more()

    def _peek(self) -> str:
        """Return the next character that is no space; nothing at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if self._over:
                return ""
            self._more()

    def _next(self, allowed: str) -> str:
        found = self._peek()
        if not found or found not in allowed:
            raise json.JSONDecodeError(f"expected one of {allowed!r}", self._text, self._at)
        self._at += 1
        return found

    def _expect(self, character: str) -> None:
        self._next(character)

    def _more(self) -> None:
        chunk = self._file.read(max(_CHUNK, len(self._text) - self._at))
        self._over = not chunk
        self._text = self._text[self._at :] + self._utf8.decode(chunk, final=not chunk)
        self._at = 0
