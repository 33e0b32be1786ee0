"""A document of records: JSON in UTF-8, a record on each line. People may edit it, and lay it out anew with any tool.

Each record has a checksum, and the last one has their number and sum: the document's seal. What is damaged cannot be
read. What can be read and does not fit the seal was changed by somebody, and counts. One changed byte can be either:
in a text it counts and is named, as somebody may have typed it; in a number, a time or a name it is damage.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import ne
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from aforesaid.domain.checks import moment, now
from aforesaid.domain.message import Message
from aforesaid.errors import StoreDamaged, StoreError, StoreRefused, StoreTooNew
from aforesaid.store.readable.records import TABLES, Record, Records, UnknownRecord

FORMAT: Final = 1
HEADER: Final = "aforesaid"
"""The section that a document begins with. It is recognised by its keys: earlier versions gave it another name."""
_OF_HEADERS: Final = {"format", "kind", "store", "journal"}
END: Final = "end"
ADVICE: Final = "; run: aforesaid verify --repair"
CHECK: Final = "check"
"""The field with a record's checksum."""
_TEXTS: Final = frozenset(
    ("content", "details", "forgotten", "name", "summary_text", "tags", "text", "value", "versions")
)
"""Fields with words of people, in which one changed byte may have been typed."""
_encoder: Final = json.JSONEncoder(ensure_ascii=False)


class Header(NamedTuple):
    """What a document says of itself, and the database beside it too."""

    store: str
    """A name that no other store has."""
    counter: int
    """How often the files had been written. Earlier versions: the journal that goes on from here."""


class DamagedRecord(ValueError):
    """A record is not what was written."""


def sealed(record: Record) -> bytes:
    """Write a record as one line, without its end, with its checksum as the last field."""
    written = _encoder.encode(record).encode()
    return _sealed(written, f"{zlib.crc32(written):08x}")


def _sealed(written: bytes, check: str) -> bytes:
    return b'%b, "%b": "%b"}' % (written[:-1], CHECK.encode(), check.encode())


def unsealed(record: object) -> Record:
    """Return a record that was read, without its checksum, or raise DamagedRecord. Spaces between fields are free."""
    if not isinstance(record, dict) or not isinstance(check := record.pop(CHECK, None), str):
        raise DamagedRecord("it has no checksum")
    if f"{zlib.crc32(_encoded(record)):08x}" != check:
        raise DamagedRecord("it is not what was written")
    return record


def _encoded(record: Record) -> bytes:
    try:
        return _encoder.encode(record).encode()
    except UnicodeEncodeError:
        raise DamagedRecord("it is not valid Unicode") from None


Section: TypeAlias = list[Record] | dict[str, Record] | dict[str, list[Record]]


class Document(NamedTuple):
    """A file that is to be written."""

    path: Path
    about: Record
    """What is said at its head, for people. It is not read again."""
    lines: list[bytes]
    end: Record
    digest: str
    """Tells its records from others, whatever surrounds them."""


def document(path: Path, sections: Mapping[str, Section], about: Record) -> Document:
    lines: list[bytes] = []
    records: list[bytes] = []
    for name, section in sections.items():
        lines += b",\n", _text(name), b": "
        lines += _written(section, records)
    return Document(path, about, lines, *_seal(records))


def _written(section: Section, records: list[bytes]) -> Iterator[bytes]:
    is_list = isinstance(section, list)
    yield b"[" if is_list else b"{"
    before = b"\n"
    for name, each in enumerate(section) if isinstance(section, list) else section.items():
        yield before if is_list else before + _text(name) + b": "
        before = b",\n"
        if isinstance(each, list):
            yield from _written(each, records)
        else:
            records.append(sealed(each))
            yield records[-1]
    yield b"\n]" if is_list else b"\n}"


def _seal(records: Sequence[bytes]) -> tuple[Record, str]:
    """Return the seal of records as they are written, and their digest."""
    total, digest = 0, blake2b(digest_size=12)
    for record in records:
        total = zlib.crc32(record[-10:-2], total)
        digest.update(record)
    return {"records": len(records), "sum": f"{total:08x}"}, digest.hexdigest()


def pieces(kind: str, header: Header, made: Document) -> Iterator[bytes]:
    head = {"format": FORMAT, "kind": kind, "store": header.store, "journal": header.counter}
    yield b'{\n"%b": %b' % (HEADER.encode(), sealed(head | {"written_at": moment(now()).isoformat()}))
    for name, value in made.about.items():
        yield b",\n%b: %b" % (_text(name), _text(value))
    yield from made.lines
    yield b',\n"%b": %b\n}\n' % (END.encode(), sealed(made.end))


def _text(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


@dataclass(slots=True)
class Read:
    """A document as it was read."""

    header: Header | None = None
    records: Records = field(default_factory=Records)
    error: StoreError | None = None
    """Why it is damaged: then its records are those that are as they were written. Otherwise, all of them count."""
    digest: str = ""
    is_edited: bool = False
    """Whether records were changed, added or removed since it was written."""
    edited_messages: set[int] = field(default_factory=set)
    doubtful: list[str] = field(default_factory=list)
    """Records in which one byte of a text changed: typed by somebody, or damaged."""
    whole: int = 0
    expected: int | None = None
    """How many records of a damaged document are whole, and how many it had; None where its end is damaged."""

    def lost(self, name: str, recovered: int = 0) -> list[str]:
        """Say how many records of a damaged document are missing. `recovered` ones were found elsewhere."""
        found = self.whole + recovered
        if self.expected is None:
            return [f"{name}: its end is damaged, so how many records it had is not known; {found} are there"]
        missing = self.expected - found
        return [] if missing <= 0 else [f"{name}: {missing} of {self.expected} records"]


def read(path: Path, kind: str) -> Read:
    """Read a document; of a damaged one, what is whole. Raises StoreTooNew."""
    data = path.read_bytes()
    try:
        return _read(path, kind, data)
    except StoreRefused as error:
        return salvage(data, error)
    except (ValueError, RecursionError) as error:
        return salvage(data, StoreDamaged(f"{path} is damaged ({error}){ADVICE}"))


def _read(path: Path, kind: str, data: bytes) -> Read:
    whole = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_object, parse_constant=_refuse)
    if not isinstance(whole, dict):
        raise DamagedRecord("it is no object")
    found, end = Read(), None
    lines: list[bytes] = []
    for section, content in whole.items():
        if section == END:
            end = unsealed(content)
        elif section in TABLES:
            for record in _records(content):
                check, written = record.pop(CHECK, None), _encoded(record)
                fitting = f"{zlib.crc32(written):08x}"
                lines.append(_sealed(written, fitting))
                value, is_new = found.records.put(section, record)
                if not is_new:
                    raise DamagedRecord(f"a record of {section} is there twice: {written[:60].decode(errors='ignore')}")
                if check == fitting:
                    continue
                found.is_edited = True
                if isinstance(value, Message):
                    found.edited_messages.add(value.seq)
                if isinstance(check, str) and sum(map(ne, check, fitting)) == 1:
                    raise DamagedRecord(f"a checksum in {section} changed")
                if (before := _before_one_byte(written, check)) is not None:
                    if not _may_be_typed(before, record):
                        raise DamagedRecord(f"a byte of a record of {section} changed")
                    found.doubtful.append(f"{section} {record.get('id', record.get('key', ''))}".strip())
        elif isinstance(content, dict) and content.keys() >= _OF_HEADERS:
            found.header = _header(path, kind, unsealed(content))
        elif any(CHECK in each for each in _objects(content)):
            raise DamagedRecord(f"nothing here is called {section!r}")
    if found.header is None:
        raise DamagedRecord("its first record is missing")
    expected, found.digest = _seal(lines)
    found.is_edited |= end != expected
    return found


def _object(pairs: list[tuple[str, Any]]) -> Record:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise DamagedRecord("a name is there twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise DamagedRecord(f"{constant} is no number")


def _records(content: object) -> Iterator[Record]:
    for each in content.values() if isinstance(content, dict) else [content]:
        for record in each if isinstance(each, list) else [each]:
            if not isinstance(record, dict):
                raise DamagedRecord("there is something else in the place of a record")
            yield record


def _objects(content: object) -> Iterator[Record]:
    if isinstance(content, dict):
        yield content
    for each in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
        yield from _objects(each)


def _header(path: Path, kind: str, record: Record) -> Header:
    if not isinstance(record["format"], int):
        raise StoreRefused(f"{path} was not written by Aforesaid; choose another file, or import it")
    if record["format"] > FORMAT:
        raise StoreTooNew(
            f"{path} was written by a newer Aforesaid (format {record['format']}; this version knows {FORMAT}): "
            "install that version or a later one"
        )
    if record["kind"] != kind:
        raise StoreRefused(f"{path} is part of a store of the kind {record['kind']!r}, not {kind!r}")
    return Header(str(record["store"]), int(record["journal"]))


_CRC: Final = [zlib.crc32(bytes([byte])) ^ zlib.crc32(b"\0") for byte in range(256)]
_BY_TOP: Final = {value >> 24: byte for byte, value in enumerate(_CRC)}


def _before_one_byte(written: bytes, check: object) -> bytes | None:
    """Return what a record was if the change of a single byte explains its checksum.

    A checksum is linear: it differs by that of the byte's difference and of as many zeros as bytes follow it. So the
    zeros are taken back one by one, until what is left is the checksum of one byte.
    """
    try:
        rest = int(str(check), 16) ^ zlib.crc32(written)
    except ValueError:
        return None
    for place in range(len(written) - 1, -1, -1):
        byte = _BY_TOP[rest >> 24 & 0xFF]
        if rest == _CRC[byte]:
            return written[:place] + bytes([written[place] ^ byte]) + written[place + 1 :]
        rest = (rest ^ _CRC[byte]) << 8 & 0xFFFFFFFF | byte
    return None


def _may_be_typed(before: bytes, record: Record) -> bool:
    try:
        known = json.loads(before)
    except ValueError:
        return True  # the checksum fits by chance
    return {name for name in known.keys() | record.keys() if known.get(name) != record.get(name)} <= _TEXTS


def salvage(data: bytes, error: StoreError | None = None) -> Read:
    """Read every record that is as it was written, wherever it is in a damaged document, whatever surrounds it."""
    found = Read(error=error)
    text, position = data.decode(errors="replace"), 0
    while (place := text.find("{", position)) >= 0:
        position = place + 1
        with suppress(json.JSONDecodeError, DamagedRecord, RecursionError):
            value, end = json.JSONDecoder().raw_decode(text, place)
            record = unsealed(value)
            position = end
            if "format" in record and "store" in record:
                found.header = Header(str(record["store"]), int(record["journal"]))
            elif record.keys() == {"records", "sum"}:
                found.expected = int(record["records"])
            else:
                found.whole += _put_somewhere(found.records, record)
    return found


def _put_somewhere(records: Records, record: Record) -> bool:
    """Put a record into the table that it fits. Users come last: messages have all that they have, and more."""
    for name in (*(name for name in TABLES if name != "users"), "users"):
        with suppress(UnknownRecord):
            records.put(name, record)
            return True
    return False
