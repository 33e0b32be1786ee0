"""Export everything to one JSON Lines file, and the bytes of attachments to a folder beside it."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Final

from aforesaid.background import to_the_end
from aforesaid.domain.checks import moment, now
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import DayRow, MemoryRow, Row, SessionRow, SuccessorRow, SummaryRow, VectorOf
from aforesaid.portability.attachment_copy import AttachmentCopy, attachments_named_by
from aforesaid.portability.file_streams import STREAM, writing
from aforesaid.portability.row_codec import encode
from aforesaid.portability.row_importer import NAMES
from aforesaid.store import Progress, Store, questions
from aforesaid.store.attachments import Attachments, folder_of

VERSION: Final = 1
_as_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export."""

    path: Path
    rows: dict[str, int]
    """Number of rows by kind."""
    bytes: int
    """Size before compression, without attachments."""
    attachments: int = 0
    """Number of attachments in the folder beside the file."""
    missing_attachments: tuple[str, ...] = ()
    """Hashes of attachments that messages name, but that are not in the folder: the store does not have their bytes or
    has them damaged, or the export went to standard output."""


def is_markdown(path: Path) -> bool:
    """Return whether a file's name asks for Markdown: `ann.md`, `ann.md.gz`."""
    return path.name.lower().removesuffix(".gz").endswith(".md")


class RowsOfUser:
    """Recognises the rows of one user in a dump, which has the messages first."""

    def __init__(self, scope: Scope, *, vectors: bool = False) -> None:
        """With `vectors`, the numbers of the messages are kept, to recognise the vectors of them."""
        self._whose = scope.space, scope.user
        self._messages: set[int] | None = set() if vectors else None

    def __call__(self, row: Row) -> bool:
        """Return whether a row belongs to the user."""
        match row:
            case VectorOf():
                return row.space == self._whose[0] and row.seq in (self._messages or ())
            case SessionRow():
                return (row.session.space, row.session.user) == self._whose
            case SummaryRow():
                return (row.summary.space, row.summary.user) == self._whose
            case MemoryRow():
                return (row.memory.space, row.memory.user) == self._whose
            case DayRow() | SuccessorRow():
                return False
            case _:
                own = (row.space, row.user) == self._whose
                if own and self._messages is not None and isinstance(row, Message):
                    self._messages.add(row.seq)
                return own


class LineWriter:
    """Writes JSON Lines with a count and a checksum, so that truncated or changed files are detected."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._sum = blake2b(digest_size=16)
        self.rows: Counter[str] = Counter()
        self.bytes = 0
        self.attachments: set[str] = set()
        """Hashes of the attachments that messages name."""

    def begin(self, *, vectors: bool) -> None:
        """Write the header line."""
        made_at = moment(now()).isoformat()
        self._lines([{"aforesaid": "export", "version": VERSION, "made_at": made_at, "vectors": vectors}])

    def write(self, page: Sequence[Row]) -> None:
        """Write rows."""
        self._lines([encode(row) for row in page])
        self.rows.update(NAMES[type(row)] for row in page)
        self.attachments.update(attachments_named_by(page))

    def end(self) -> None:
        """Write the last line: the number of rows, and the checksum of all lines before it."""
        self._lines([{"kind": "end", "rows": dict(self.rows), "sum": self._sum.hexdigest()}])

    def _lines(self, entries: Sequence[dict[str, Any]]) -> None:
        text = "".join(f"{_as_json(entry)}\n" for entry in entries)
        block = text.encode()
        self._sum.update(block)
        self._out.write(block)
        self.bytes += len(block)


async def export(
    store: Store,
    path: Path,
    attachments: Attachments | None = None,
    *,
    scope: Scope | None = None,
    vectors: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write a snapshot of a store to a new file; with `scope`, of its user alone. The store can be in use.

    The attachments that its messages name are copied to a folder beside the file, which has its name with
    `.attachments`; standard output has none.
    """
    chosen = None if scope is None else RowsOfUser(scope, vectors=vectors)
    total = (await store.read(questions.Totals())).messages
    stack = ExitStack()
    try:
        lines = LineWriter(await to_the_end(stack.enter_context, writing(path)))
        lines.begin(vectors=vectors)
        async for page in store.dump(vectors=vectors):
            await to_the_end(lines.write, page if chosen is None else [row for row in page if chosen(row)])
            if progress is not None:
                done = lines.rows["message"]
                progress("messages", done, max(total, done))
        lines.end()
        copied, missing = await _copy_attachments(attachments, path, lines.attachments)
    except BaseException:
        stack.__exit__(*sys.exc_info())
        raise
    await to_the_end(stack.close)
    return Exported(path, dict(lines.rows), lines.bytes, copied, missing)


async def _copy_attachments(source: Attachments | None, path: Path, hashes: set[str]) -> tuple[int, tuple[str, ...]]:
    """Copy attachments to the folder beside a file; return how many, and the hashes of those that were not copied."""
    if source is None:
        return 0, ()
    if path == STREAM:
        return 0, tuple(sorted(hashes))
    folder = folder_of(path)
    is_new = not folder.exists()
    try:
        _, missing = await AttachmentCopy([source], Attachments(folder)).copy(hashes)
    except BaseException:
        if is_new:
            await to_the_end(shutil.rmtree, folder, ignore_errors=True)
        raise
    return len(hashes) - len(missing), missing
