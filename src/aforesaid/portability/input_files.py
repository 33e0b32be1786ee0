"""Read a file, folder or zip archive: nothing is unpacked to disk, and the contents are not trusted."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, Final, cast

from aforesaid.errors import InvalidInput
from aforesaid.portability.file_streams import STREAM, reading, telling

MOST_MEMBERS: Final = 200_000
LARGEST_MEMBER: Final = 64 * 1024**3
"""Maximum size of a file in an archive after decompression, in bytes."""
_RATIO: Final = 250
_FROM: Final = 64 * 1024**2
"""A file above `_FROM` bytes with a compression ratio above `_RATIO` is an archive bomb. Chats reach 3 to 20."""
SNIFFED: Final = 256 * 1024


class Source:
    """A set of named files. A single file is a set of one."""

    def __init__(self, path: Path) -> None:
        """Open the folder or archive and list its files. Raises InvalidInput."""
        self.path = path
        self.done = 0
        """Number of bytes read so far."""
        self._archive: zipfile.ZipFile | None = None
        self._head: tuple[bytes, BinaryIO] | None = None
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
                self.names, self.size = [path.name], path.stat().st_size

    def close(self) -> None:
        """Close the archive."""
        if self._archive is not None:
            self._archive.close()

    def named(self, *endings: str) -> list[str]:
        """Return the files whose names end with this suffix, in any folder."""
        return [name for name in self.names if name.lower().endswith(endings)]

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open one of the files."""
        if self.path == STREAM:
            with reading(self.path) as stream:
                yield cast("IO[bytes]", _Counted(self, self._rest(stream)))
        elif self._archive is not None:
            yield from self._member(self._archive, name)
        else:
            folder = self.path.expanduser()
            with reading(folder / name if folder.is_dir() else folder) as stream:
                yield cast("IO[bytes]", _Counted(self, stream))

    def head(self, name: str) -> bytes:
        """Return the beginning of a file; a later `open` still reads it from the start."""
        if self.path == STREAM:
            with reading(self.path) as stream:
                if self._head is None:
                    self._head = stream.read(SNIFFED), stream
                return self._head[0]
        before = self.done
        with self.open(name) as stream:
            start = stream.read(SNIFFED)
        self.done = before
        return start

    def _rest(self, stream: BinaryIO) -> BinaryIO:
        if self._head is None:
            return stream
        start, self._head = self._head[0], None
        return cast("BinaryIO", io.BufferedReader(_Joined(start, stream)))

    def _member(self, archive: zipfile.ZipFile, name: str) -> Iterator[IO[bytes]]:
        try:
            with archive.open(name) as stream:
                yield cast("IO[bytes]", _Counted(self, cast("BinaryIO", stream)))
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
            raise InvalidInput(f"{name} in {self.path} cannot be unpacked: {error}") from None


class _Joined(io.RawIOBase):
    """A stream that continues after data that was read ahead."""

    def __init__(self, start: bytes, rest: BinaryIO) -> None:
        super().__init__()
        self._start = io.BytesIO(start)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        block = self._start.read(len(buffer)) or self._rest.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)


class _Counted:
    """A stream that reports its progress, and fails above the size limit."""

    def __init__(self, source: Source, stream: BinaryIO) -> None:
        self._source = source
        self._stream = stream
        self._read = 0

    def read(self, size: int = -1) -> bytes:
        return self._count(self._stream.read(size))

    def readline(self, limit: int = -1) -> bytes:
        return self._count(self._stream.readline(limit))

    def _count(self, block: bytes) -> bytes:
        self._source.done += len(block)
        self._read += len(block)
        if self._read > LARGEST_MEMBER:
            raise InvalidInput(f"{self._source.path} holds more than {LARGEST_MEMBER // 1024**3} GiB; refused")
        return block


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise InvalidInput(f"{path} is a damaged archive: {error}") from None
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise InvalidInput(f"{path} has {len(members):,} files in it; at most {MOST_MEMBERS:,} are allowed")
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
