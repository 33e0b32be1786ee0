"""What the process of `SubprocessEmbedder` runs."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import IO, Any

from aforesaid.models.embed.local import load_encoder
from aforesaid.models.embed.process import FAILED, LENGTH, SHAPE


def serve(heard: IO[bytes], sent: IO[bytes]) -> None:
    """Answer until nobody asks any more."""
    encoder: Any = None
    while len(length := heard.read(LENGTH.size)) == LENGTH.size:
        texts = json.loads(heard.read(LENGTH.unpack(length)[0]))
        try:
            encoder = encoder or load_encoder()
            vectors = encoder.encode(texts).astype("<f4")
            answer = SHAPE.pack(*vectors.shape) + vectors.tobytes()
        except Exception as error:
            # Whoever asked hears of it, whatever it is.
            words = str(error).encode(errors="replace")
            answer = SHAPE.pack(FAILED, len(words)) + words
        sent.write(answer)
        sent.flush()


def main() -> None:
    """Answer on the pipe that came with the process."""
    # Ctrl+C is for the server, which ends this when it does not need it any more.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # whatever a library prints is no answer
        try:
            serve(sys.stdin.buffer, answers)
        except BrokenPipeError:
            os._exit(0)  # the server is gone, and with it everybody who would hear of it


if __name__ == "__main__":
    main()
