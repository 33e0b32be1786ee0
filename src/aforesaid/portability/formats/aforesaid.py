"""Aforesaid's own export format: JSON Lines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b

from aforesaid.errors import InvalidInput
from aforesaid.portability.exporting import VERSION
from aforesaid.portability.formats.base import Format
from aforesaid.portability.import_items import ImportedRow, Item, Problem
from aforesaid.portability.json_stream import numbered_lines, parsed
from aforesaid.portability.row_codec import decode
from aforesaid.store.row_importer import NAMES


class Aforesaid(Format):
    app = "aforesaid"

    def files(self) -> list[str]:
        return self.source.names[:1]

    def items(self, name: str) -> Iterator[Item]:
        found: Counter[str] = Counter()
        total = blake2b(digest_size=16)
        ended = False
        with self.source.open(name) as stream:
            for number, line in numbered_lines(stream):
                where = f"line {number}"
                try:
                    entry = parsed(line)
                    if number == 1:
                        _check_header(entry)
                    elif isinstance(entry, dict) and entry.get("kind") == "end":
                        ended = True
                        rows = entry.get("rows")
                        if rows != found:
                            read = json.dumps(found)
                            yield Problem(where, f"{json.dumps(rows)} rows were written, but {read} were read")
                        elif entry.get("sum") != total.hexdigest():
                            yield Problem(where, "the checksum does not match: the file was changed after the export")
                    else:
                        row = decode(entry)
                        found[NAMES[type(row)]] += 1
                        yield ImportedRow(where, row)
                except InvalidInput as error:
                    if number == 1:
                        raise
                    yield Problem(where, str(error))
                total.update(line or b"")
        if not ended:
            yield Problem("the end", "the file is cut off: its last line is missing")


def _check_header(entry: object) -> None:
    # The first key is the name of the program; older exports have an earlier name.
    if not isinstance(entry, dict) or "export" not in entry.values():
        raise InvalidInput("this is not an export of Aforesaid")
    version = entry.get("version")
    if version != VERSION:
        raise InvalidInput(
            f"this export has version {json.dumps(version)} of the format, but this program supports only "
            f"version {VERSION}: install a newer Aforesaid"
        )
