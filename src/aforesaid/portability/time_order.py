"""Sort messages by time in bounded memory.

Files are in any order: ChatGPT writes the newest conversation first, Facebook the newest message, an archive one
channel after the other. Sorted runs that do not fit in memory go to an unnamed temporary file and are merged.
"""

from __future__ import annotations

import heapq
import pickle
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import IO, Any, Final

from aforesaid.portability.import_items import ImportedMessage

RUN_MESSAGES: Final = 50_000
"""Maximum messages of a run, which is sorted in memory: about 50 MB of chat messages."""
RUN_CHARACTERS: Final = 32_000_000
"""Maximum characters of text in a run, for very long messages."""
BLOCK: Final = 100
"""Messages read back at a time from each run while they are merged."""

_LAST: Final = datetime.max.replace(tzinfo=UTC)


_Placed = tuple[datetime, int, tuple[Any, ...]]
"""A message after its sort key: its time and its position. No two have the same position, so messages themselves are
never compared. It is a plain tuple, because named ones take three times as long to write."""


class TimeSort:
    """Collects tuples and returns them by time; of the same time, in the order in which they came."""

    def __init__(self, run_messages: int = RUN_MESSAGES) -> None:
        """Sort up to `run_messages` tuples in memory."""
        self.total = 0
        """Number of tuples collected."""
        self._run_messages = run_messages
        self._run: list[_Placed] = []
        self._characters = 0
        self._file: IO[bytes] | None = None
        self._runs: list[list[int]] = []
        """The positions of the blocks of each run in the file."""

    def add(self, at: datetime, fields: tuple[Any, ...], characters: int) -> None:
        """Collect a tuple with its time and the length of its texts."""
        self.total += 1
        self._run.append((at, self.total, fields))
        self._characters += characters
        if len(self._run) >= self._run_messages or self._characters >= RUN_CHARACTERS:
            self._write_run()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Yield the collected tuples in order, once."""
        self._run.sort()
        for _, _, fields in heapq.merge(*map(self._read_run, self._runs), self._run):
            yield fields

    def close(self) -> None:
        """Delete the temporary file."""
        if self._file is not None:
            self._file.close()

    def _write_run(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="aforesaid-sort-")  # noqa: SIM115 - closed by `close`
        self._run.sort()
        entries = iter(self._run)
        blocks: list[int] = []
        while block := list(islice(entries, BLOCK)):
            blocks.append(self._file.tell())
            pickle.dump(block, self._file, pickle.HIGHEST_PROTOCOL)
        self._runs.append(blocks)
        self._run = []
        self._characters = 0

    def _read_run(self, blocks: list[int]) -> Iterator[_Placed]:
        for position in blocks:
            yield from self._read_block(position)

    def _read_block(self, position: int) -> list[_Placed]:
        if self._file is None:
            raise RuntimeError("a block was written without a file")
        self._file.seek(position)
        block: list[_Placed] = pickle.load(self._file)  # noqa: S301 - written above, to a file without a name
        return block


class TimeOrder:
    """Collects messages of a file and returns them by time; of the same time, in the order of the file.

    Messages without a time come last.
    """

    def __init__(self, run_messages: int = RUN_MESSAGES) -> None:
        """Sort up to `run_messages` messages in memory."""
        self._sort = TimeSort(run_messages)

    @property
    def total(self) -> int:
        """Number of messages collected."""
        return self._sort.total

    def add(self, message: ImportedMessage) -> None:
        """Collect a message."""
        characters = len(message.text) + sum(len(part.text or "") for part in message.parts)
        self._sort.add(_LAST if message.at is None else message.at, tuple(message), characters)

    def __iter__(self) -> Iterator[ImportedMessage]:
        """Yield the collected messages in order, once."""
        return map(ImportedMessage._make, self._sort)

    def close(self) -> None:
        """Delete the temporary file."""
        self._sort.close()
