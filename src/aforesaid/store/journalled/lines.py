"""Records as lines of JSON, each with a checksum of its own: damage is found, and no larger than it is."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

Record: TypeAlias = dict[str, Any]

CHECK: Final = "check"
"""The field with a record's checksum."""
_START: Final = re.compile(r"\{")
_decoder: Final = json.JSONDecoder()
_encoder: Final = json.JSONEncoder(ensure_ascii=False)


class DamagedRecord(ValueError):
    """A record is not what was written."""


def sealed(record: Record) -> bytes:
    """Write a record as one line, without its end, with its checksum as the last field."""
    body = _encoder.encode(record).encode()
    return b'%b, "%b": "%08x"}' % (body[:-1], CHECK.encode(), zlib.crc32(body))


def check_of(line: bytes) -> bytes:
    """Return the checksum of a line that was just sealed."""
    return line[-10:-2]


def unsealed(record: object) -> Record:
    """Return a record that was read, without its checksum, or raise DamagedRecord. Spaces between fields are free."""
    if not isinstance(record, dict) or not isinstance(check := record.pop(CHECK, None), str):
        raise DamagedRecord("it has no checksum")
    try:
        body = _encoder.encode(record).encode()
    except UnicodeEncodeError:
        raise DamagedRecord("it is not valid Unicode") from None
    if f"{zlib.crc32(body):08x}" != check:
        raise DamagedRecord("it is not what was written")
    return record


def read_line(line: bytes) -> Record:
    """Return the record of a line, or raise DamagedRecord."""
    try:
        return unsealed(json.loads(line))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise DamagedRecord(str(error)) from None


def salvaged(data: bytes) -> Iterator[Record]:
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
