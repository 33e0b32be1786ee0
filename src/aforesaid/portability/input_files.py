"""Files that are imported and exported: opened, unpacked, written, and their messages sorted by time."""

from __future__ import annotations

import codecs
import gzip
import heapq
import io
import os
import pickle
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, cast

from aforesaid.errors import InvalidInput, StoreUnavailable
from aforesaid.store.contract import FILE_RULES, rule_for
from aforesaid.store.unfinished import unfinished

STREAM: Final = Path("-")
"""Standard input or output."""


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file for writing. It gets its name only after it is complete and synced to disk."""
    if path == STREAM:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = path.expanduser().absolute()
    if path.exists():
        raise InvalidInput(f"{path} exists already; nothing was overwritten. Choose another name")
    with telling(path), ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            arriving = stack.enter_context(unfinished(path))
        except (FileNotFoundError, NotADirectoryError, FileExistsError) as error:
            raise StoreUnavailable(
                f"{path} cannot be written ({error.strerror}); check that the folder exists and is writable"
            ) from error
        with arriving.open("wb") as plain:
            if path.suffix == ".gz":
                with gzip.GzipFile(fileobj=plain, mode="wb", mtime=0) as packed:
                    yield cast("IO[bytes]", packed)
            else:
                yield plain
            plain.flush()
            os.fsync(plain.fileno())
        arriving.rename(path)


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    if path == STREAM:
        yield cast("BinaryIO", sys.stdin.buffer)
        return
    with telling(path), path.expanduser().open("rb") as plain:
        if plain.read(2) == b"\x1f\x8b":
            plain.seek(0)
            with gzip.GzipFile(fileobj=plain) as packed:
                yield cast("BinaryIO", packed)
        else:
            plain.seek(0)
            yield plain


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """Convert file system errors to Aforesaid's errors."""
    try:
        yield
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {path}") from None
    except IsADirectoryError:
        raise InvalidInput(f"{path} is a folder") from None
    except EOFError:
        raise InvalidInput(f"{path} is truncated") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InvalidInput(f"{path} is damaged and cannot be decompressed: {error}") from None
    except OSError as error:
        rule = rule_for(error, FILE_RULES)
        advice = f"; {rule.advice}" if rule.advice else ""
        raise rule.becomes(f"{path} cannot be used: {error.strerror or error}{advice}") from error


MOST_MEMBERS: Final = 200_000
LARGEST_MEMBER: Final = 64 * 1024**3
"""Maximum size of a file in an archive after decompression, in bytes."""
_RATIO: Final = 250
_FROM: Final = 64 * 1024**2
"""A file above `_FROM` bytes with a compression ratio above `_RATIO` is an archive bomb. Chats reach 3 to 20."""
_FROM_TOTAL: Final = 1024**3
"""The same limit for an archive as a whole, in bytes: many files can be a bomb together."""
SNIFFED: Final = 256 * 1024
"""Bytes read from the beginning of a file to detect its format."""
_ZIP: Final = b"PK\x03\x04"


class Source:
    """A set of named files. A single file is a set of one."""

    def __init__(self, path: Path) -> None:
        """Open the folder or archive and list its files. Raises InvalidInput."""
        self.path = path
        self.done = 0
        """Number of bytes read so far."""
        self._archive: zipfile.ZipFile | None = None
        self._stdin: _Counted | None = None
        self._copy: IO[bytes] | None = None
        """What standard input held, once it was read to the end."""
        if path == STREAM:
            self.names, self.size = ["-"], 0
            return
        path = path.expanduser()
        with telling(path):
            if path.is_dir():
                inside = sorted(each for each in path.rglob("*") if each.is_file() and not each.is_symlink())
                self.names = [each.relative_to(path).as_posix() for each in inside]
                self.size = sum(each.stat().st_size for each in inside)
            elif zipfile.is_zipfile(path):
                self._archive = _opened(path)
                self.names = sorted(each.filename for each in self._archive.infolist() if not each.is_dir())
                self.size = sum(each.file_size for each in self._archive.infolist())
            else:
                with path.open("rb") as stream:
                    if stream.read(len(_ZIP)) == _ZIP:
                        raise InvalidInput(
                            f"{path} is a truncated archive: its end is missing. Download or copy it again"
                        )
                self.names, self.size = [path.name], path.stat().st_size

    def close(self) -> None:
        for each in (self._archive, self._copy):
            if each is not None:
                each.close()

    def named(self, *endings: str, start: str = "") -> list[str]:
        return [
            name for name in self.names if name.lower().endswith(endings) and name.rpartition("/")[2].startswith(start)
        ]

    def called(self, *names: str) -> list[str]:
        return [path for path in self.names if path.rpartition("/")[2].lower() in names]

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open one of the files. Text in UTF-16 is read as UTF-8, and a byte order mark is left out."""
        if self._copy is not None:
            self._copy.seek(0)
            yield _as_utf8(_Counted(self, self._copy))
        elif self.path == STREAM:
            yield _as_utf8(self._standard_input())
        elif self._archive is not None:
            try:
                with self._archive.open(name) as member:
                    yield _as_utf8(_Counted(self, member))
            except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
                raise InvalidInput(f"{name} in {self.path} cannot be unpacked: {error}") from None
        else:
            with reading(self._on_disk(name)) as stream:
                yield _as_utf8(_Counted(self, stream))

    @contextmanager
    def scan(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file for a pass before the one that imports it: it does not count as progress.

        Standard input can be read once only. It is copied to a temporary file first.
        """
        before = self.done
        if self.path == STREAM and self._copy is None:
            copy = tempfile.TemporaryFile(prefix="aforesaid-import-")  # noqa: SIM115 - closed by `close`
            shutil.copyfileobj(self._standard_input(), copy)
            self._copy = copy
        with self.open(name) as stream:
            yield stream
        self.done = before

    @contextmanager
    def on_disk(self, name: str) -> Iterator[Path]:
        """Give the path of a file, for a reader that cannot work on a stream."""
        if self.path != STREAM and self._archive is None:
            self.done += self.size
            yield self._on_disk(name)
            return
        with tempfile.TemporaryDirectory(prefix="aforesaid-import-") as folder:
            copy = Path(folder) / "file"
            with self.open(name) as stream, copy.open("wb") as target:
                shutil.copyfileobj(stream, target)
            yield copy

    def head(self, name: str) -> bytes:
        """Return the beginning of a file; a later `open` still reads it from the start."""
        if self.path == STREAM and self._copy is None:
            return _as_utf8(_Counted(self, io.BytesIO(self._standard_input().start))).read()
        with self.scan(name) as stream:
            return stream.read(SNIFFED)

    def _standard_input(self) -> _Counted:
        self._stdin = self._stdin or _Counted(self, sys.stdin.buffer)
        return self._stdin

    def _on_disk(self, name: str) -> Path:
        path = self.path.expanduser()
        return path / name if path.is_dir() else path


class _Counted:
    """A stream whose start can be seen before it is read. It reports its progress, and fails above the size limit."""

    def __init__(self, source: Source, stream: IO[bytes]) -> None:
        self.start = stream.read(SNIFFED)
        self._ahead = io.BytesIO(self.start)
        self._source = source
        self._stream = stream
        self._read = 0

    def drop(self, size: int) -> None:
        self._ahead.seek(size)

    def read(self, size: int = -1) -> bytes:
        block = self._ahead.read(size)
        if size < 0 or len(block) < size:
            block += self._stream.read(size - len(block) if size >= 0 else size)
        return self._count(block)

    def readline(self, limit: int = -1) -> bytes:
        line = self._ahead.readline(limit)
        if len(line) != limit and not line.endswith(b"\n"):
            line += self._stream.readline(limit - len(line) if limit >= 0 else limit)
        return self._count(line)

    def _count(self, block: bytes) -> bytes:
        self._source.done += len(block)
        self._read += len(block)
        if self._read > LARGEST_MEMBER:
            raise InvalidInput(f"{self._source.path} holds more than {LARGEST_MEMBER // 1024**3} GiB; refused")
        return block


class _Utf16(io.RawIOBase):
    def __init__(self, stream: _Counted, encoding: str) -> None:
        super().__init__()
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._ready:
            block = self._stream.read(64 * 1024)
            self._ready = self._decoder.decode(block, final=not block).encode("utf-8", errors="replace")
            if not block and not self._ready:
                return 0
        taken = self._ready[: len(buffer)]
        buffer[: len(taken)] = taken
        self._ready = self._ready[len(taken) :]
        return len(taken)


_MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def _as_utf8(stream: _Counted) -> IO[bytes]:
    """Return a stream of UTF-8. UTF-16 is recognised by its mark, or by the zero bytes of its first two letters."""
    zeros = [place for place, byte in enumerate(stream.start[:4]) if byte == 0]
    encoding = "utf-16-le" if zeros == [1, 3] else "utf-16-be" if zeros == [0, 2] else "utf-8"
    for mark, marked in _MARKS:
        if stream.start.startswith(mark):
            stream.drop(len(mark))
            encoding = marked
    return cast("IO[bytes]", stream if encoding == "utf-8" else io.BufferedReader(_Utf16(stream, encoding)))


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise InvalidInput(f"{path} is a damaged archive: {error}") from None
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise InvalidInput(f"{path} has {len(members):,} files in it; at most {MOST_MEMBERS:,} are allowed")
    total = sum(member.file_size for member in members)
    if total > _FROM_TOTAL and total / max(path.stat().st_size, 1) > _RATIO:
        raise InvalidInput(f"{path} would unpack to {total:,} bytes: that is an archive bomb, and is not opened")
    for member in members:
        packed = max(member.compress_size, 1)
        if member.file_size > LARGEST_MEMBER or (member.file_size > _FROM and member.file_size / packed > _RATIO):
            raise InvalidInput(
                f"{member.filename} in {path} would unpack from {member.compress_size:,} to {member.file_size:,} "
                "bytes: that is an archive bomb, and is not opened"
            )
        if member.flag_bits & 1:
            raise InvalidInput(f"{member.filename} in {path} is encrypted; unpack it first")
    return archive


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
    """Collects tuples and returns them by time; of the same time, in the order in which they came.

    Tuples without a time come last. Up to `run_messages` are sorted in memory.
    """

    def __init__(self, run_messages: int = RUN_MESSAGES) -> None:
        self.total = 0
        """Number of tuples collected."""
        self._run_messages = run_messages
        self._run: list[_Placed] = []
        self._characters = 0
        self._file: IO[bytes] | None = None
        self._runs: list[list[int]] = []
        """The positions of the blocks of each run in the file."""

    def add(self, at: datetime | None, fields: tuple[Any, ...], characters: int) -> None:
        self.total += 1
        self._run.append((at or _LAST, self.total, fields))
        self._characters += characters
        if len(self._run) < self._run_messages and self._characters < RUN_CHARACTERS:
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="aforesaid-sort-")  # noqa: SIM115 - closed by `close`
        self._run.sort()
        entries = iter(self._run)
        blocks: list[int] = []
        while block := list(islice(entries, BLOCK)):
            blocks.append(self._file.tell())
            pickle.dump(block, self._file, pickle.HIGHEST_PROTOCOL)
        self._runs.append(blocks)
        self._run, self._characters = [], 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Yield the collected tuples in order, once."""

        def read(file: IO[bytes], blocks: list[int]) -> Iterator[_Placed]:
            for position in blocks:
                file.seek(position)
                yield from pickle.load(file)  # noqa: S301 - written by `add`, to a file without a name

        self._run.sort()
        runs = [read(self._file, blocks) for blocks in self._runs if self._file is not None]
        for _, _, fields in heapq.merge(*runs, self._run):
            yield fields

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
