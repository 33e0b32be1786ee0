"""Open input and output: files, compressed files, standard input and output."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, BinaryIO, Final, cast

from aforesaid.errors import InvalidInput, StoreUnavailable
from aforesaid.store.error_rules import FILE_RULES, rule_for
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
    """Open a file for reading; decompress it if needed."""
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
