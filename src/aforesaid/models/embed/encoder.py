"""The program of the subprocess of `SubprocessEmbedder`."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import IO, Any

from aforesaid.models.embed.local import load_encoder
from aforesaid.models.embed.process import FAILED, LENGTH, SHAPE


def serve(heard: IO[bytes], sent: IO[bytes]) -> None:
    """Answer requests until the input ends."""
    encoder: Any = None
    while len(length := heard.read(LENGTH.size)) == LENGTH.size:
        texts = json.loads(heard.read(LENGTH.unpack(length)[0]))
        try:
            encoder = encoder or load_encoder()
            vectors = encoder.encode(texts).astype("<f4")
            answer = SHAPE.pack(*vectors.shape) + vectors.tobytes()
        except Exception as error:
            # Every error is returned to the caller.
            words = str(error).encode(errors="replace")
            answer = SHAPE.pack(FAILED, len(words)) + words
        sent.write(answer)
        sent.flush()


def main() -> None:
    """Serve requests on standard input and output."""
    # Ctrl+C is handled by the server, which stops this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # output of libraries must not mix with responses
        try:
            serve(sys.stdin.buffer, answers)
        except BrokenPipeError:
            os._exit(0)  # the server has ended, so nobody reads the result


if __name__ == "__main__":
    main()
