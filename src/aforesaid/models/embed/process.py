"""The embedder that comes with the package, in a process of its own.

A server does many things at once, and all of them take turns in one interpreter. Embedding would take long turns: in a
process of its own it takes none. The two talk over a pipe, in frames: a length, then the texts as JSON; the number of
rows and columns, then the vectors; the number of texts and columns, then the vectors and weights of the tokens of each
text. Instead of texts, null empties the caches; it has no answer. When the server ends, in whatever way, the pipe
closes and the process ends too.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from typing import IO, TYPE_CHECKING, Final

from aforesaid.errors import ModelError
from aforesaid.models.embed.local import LocalEmbedder
from aforesaid.models.embed.token_vectors import TokenVectors

if TYPE_CHECKING:
    from aforesaid.models.embed.contract import Vectors

LENGTH: Final = struct.Struct("<I")
SHAPE: Final = struct.Struct("<II")
FAILED: Final = 0xFFFF_FFFF
"""Sent instead of the number of rows after a failure; the length and the text of the error follow."""
WITHOUT_RANKER: Final = "--without-ranker"
_SECONDS_TO_END: Final = 5.0


class SubprocessEmbedder(LocalEmbedder):
    """Runs `LocalEmbedder` in a subprocess. The vectors are the same."""

    def __init__(self, *, ranker: bool = True) -> None:
        """With `ranker`, texts are encoded for the ranker too."""
        super().__init__(ranker=ranker)
        self._process: subprocess.Popen[bytes] | None = None

    async def close(self) -> None:
        """Stop the process."""
        await self._worker.run(self._end)
        await super().close()

    def _encode(self, texts: list[str]) -> tuple[Vectors, list[TokenVectors]]:
        try:
            return self._asked(texts)
        except (OSError, EOFError):
            # It was killed, perhaps because memory ran out. Try once more with a new process.
            self._end()
        try:
            return self._asked(texts)
        except (OSError, EOFError) as error:
            code = self._end()
            raise ModelError(f"the process of the local embedder has ended twice (exit code {code})") from error

    def _forget(self) -> None:
        self._recent = {}
        if self._process is None:
            return
        try:
            _send(self._process, None)
        except OSError:
            self._end()  # a new one has empty caches

    def _asked(self, texts: list[str]) -> tuple[Vectors, list[TokenVectors]]:
        import numpy as np  # noqa: PLC0415

        if self._process is None:
            self._process = _start(ranker=self._ranker)
        _send(self._process, texts)
        heard = _ends(self._process)[1]
        rows, columns = SHAPE.unpack(_read(heard, SHAPE.size))
        if rows == FAILED:
            raise ModelError(_read(heard, columns).decode(errors="replace"))
        vectors: Vectors = np.frombuffer(_read(heard, rows * columns * 4), dtype="<f4").reshape(rows, columns)
        tokens = _read_tokens(heard)
        self._remember(texts, tokens)
        return vectors, tokens

    def _end(self) -> int | None:
        """Stop the process and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        for end in _ends(process):
            try:
                end.close()
            except OSError:
                continue  # it had already ended
        try:
            return process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def _start(*, ranker: bool) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "aforesaid.models.embed.encoder", *([] if ranker else [WITHOUT_RANKER])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # One thread, as in `LocalEmbedder`.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
    except OSError as error:
        raise ModelError(f"no process for the local embedder can be started: {error}") from error


def _ends(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None:
        raise ValueError("the process has no pipes")
    return process.stdin, process.stdout


def _send(process: subprocess.Popen[bytes], texts: list[str] | None) -> None:
    sent, data = _ends(process)[0], json.dumps(texts).encode()
    sent.write(LENGTH.pack(len(data)) + data)
    sent.flush()


def _read_tokens(heard: IO[bytes]) -> list[TokenVectors]:
    import numpy as np  # noqa: PLC0415

    texts, columns = SHAPE.unpack(_read(heard, SHAPE.size))
    made = []
    for _ in range(texts):
        count = LENGTH.unpack(_read(heard, LENGTH.size))[0]
        vectors = np.frombuffer(_read(heard, count * columns * 4), dtype="<f4").reshape(count, columns)
        made.append(TokenVectors(vectors, np.frombuffer(_read(heard, count * 4), dtype="<f4")))
    return made


def _read(source: IO[bytes], size: int) -> bytes:
    data = source.read(size)
    if len(data) < size:
        raise EOFError
    return data
