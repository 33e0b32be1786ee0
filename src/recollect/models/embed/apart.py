"""The embedder that comes with the package, in a process of its own.

A server does many things at once, and all of them take turns in one interpreter. Embedding would take long turns: in a
process of its own it takes none. The two talk over a pipe, in frames: a length, then the texts as JSON; the number of
rows and columns, then the vectors. When the server ends, in whatever way, the pipe closes and the process ends too.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, Final

from recollect.errors import ModelError
from recollect.models.embed.local import LocalEmbedder, load_encoder

if TYPE_CHECKING:
    from recollect.models.embed.contract import Vectors

_LENGTH: Final = struct.Struct("<I")
_SHAPE: Final = struct.Struct("<II")
_FAILED: Final = 0xFFFF_FFFF
"""In the place of the number of rows: words that say what went wrong follow, so many bytes of them."""
_SECONDS_TO_END: Final = 5.0


class ApartEmbedder(LocalEmbedder):
    """The same vectors as those of `LocalEmbedder`."""

    def __init__(self) -> None:
        super().__init__()
        self._process: subprocess.Popen[bytes] | None = None

    async def close(self) -> None:
        """Let the process end."""
        await self._worker.run(self._end)
        await super().close()

    def _encode(self, texts: list[str]) -> Vectors:
        try:
            return self._asked(texts)
        except (OSError, EOFError):
            # It was killed, perhaps for the memory that it takes. A new one may fare better.
            self._end()
        try:
            return self._asked(texts)
        except (OSError, EOFError) as error:
            code = self._end()
            raise ModelError(f"the process of the local embedder has ended twice (exit code {code})") from error

    def _asked(self, texts: Sequence[str]) -> Vectors:
        import numpy as np  # noqa: PLC0415

        if self._process is None:
            self._process = _start()
        sent, heard = _ends(self._process)
        data = json.dumps(texts).encode()
        sent.write(_LENGTH.pack(len(data)) + data)
        sent.flush()
        rows, columns = _SHAPE.unpack(_read(heard, _SHAPE.size))
        if rows == _FAILED:
            raise ModelError(_read(heard, columns).decode(errors="replace"))
        vectors: Vectors = np.frombuffer(_read(heard, rows * columns * 4), dtype="<f4").reshape(rows, columns)
        return vectors

    def _end(self) -> int | None:
        """End the process, and return what it ended with."""
        process, self._process = self._process, None
        if process is None:
            return None
        for end in _ends(process):
            try:
                end.close()
            except OSError:
                continue  # it was gone before us
        try:
            return process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def _start() -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - this very interpreter, and a module of our own
            [sys.executable, "-m", __name__],
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


def _read(source: IO[bytes], size: int) -> bytes:
    data = source.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _serve(heard: IO[bytes], sent: IO[bytes]) -> None:
    """Answer until nobody asks any more."""
    encoder: Any = None
    while length := heard.read(_LENGTH.size):
        texts = json.loads(_read(heard, _LENGTH.unpack(length)[0]))
        try:
            encoder = encoder or load_encoder()
            vectors = encoder.encode(texts).astype("<f4")
            answer = _SHAPE.pack(*vectors.shape) + vectors.tobytes()
        except Exception as error:
            # Whoever asked hears of it, whatever it is.
            words = str(error).encode(errors="replace")
            answer = _SHAPE.pack(_FAILED, len(words)) + words
        sent.write(answer)
        sent.flush()


def _main() -> None:
    # Ctrl+C is for the server, which ends this when it does not need it any more.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no answer
    _serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    _main()
