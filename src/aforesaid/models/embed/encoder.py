"""The program of the subprocess of `SubprocessEmbedder`."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import IO

from aforesaid.models.embed.local import Encoder
from aforesaid.models.embed.process import FAILED, LENGTH, SHAPE, WITHOUT_RANKER
from aforesaid.models.embed.token_vectors import TokenVectors


def serve(heard: IO[bytes], sent: IO[bytes], *, ranker: bool) -> None:
    """Answer requests until the input ends."""
    encoder: Encoder | None = None
    while len(length := heard.read(LENGTH.size)) == LENGTH.size:
        texts = json.loads(heard.read(LENGTH.unpack(length)[0]))
        if texts is None:
            if encoder is not None:
                encoder.forget_all()
            continue
        try:
            encoder = encoder or Encoder(ranker=ranker)
            vectors, tokens = encoder.encode(texts)
            answer = SHAPE.pack(*vectors.shape) + vectors.astype("<f4").tobytes() + _tokens(tokens)
        except Exception as error:
            # Every error is returned to the caller.
            words = str(error).encode(errors="replace")
            answer = SHAPE.pack(FAILED, len(words)) + words
        sent.write(answer)
        sent.flush()


def _tokens(tokens: list[TokenVectors]) -> bytes:
    """Return the number of tokens and of numbers for each, then for each text its size, vectors and weights."""
    if not tokens:
        return SHAPE.pack(0, 0)
    parts = [SHAPE.pack(len(tokens), tokens[0].vectors.shape[1])]
    for each in tokens:
        parts.append(LENGTH.pack(len(each.vectors)))
        parts.append(each.vectors.astype("<f4").tobytes() + each.weights.astype("<f4").tobytes())
    return b"".join(parts)


def main() -> None:
    """Serve requests on standard input and output."""
    # Ctrl+C is handled by the server, which stops this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # output of libraries must not mix with responses
        try:
            serve(sys.stdin.buffer, answers, ranker=WITHOUT_RANKER not in sys.argv)
        except BrokenPipeError:
            os._exit(0)  # the server has ended, so nobody reads the result


if __name__ == "__main__":
    main()
