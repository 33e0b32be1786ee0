"""Reading along in an answer, to know what the assistant said."""

from __future__ import annotations

import json
from typing import Final

_MOST: Final = 8 * 1024 * 1024
"""What is longer is passed on and not read along in."""


class Reply:
    """What the assistant said, as far as the answer has come."""

    def __init__(self, content_type: str) -> None:
        self.streams = content_type.startswith("text/event-stream")
        """Whether it comes word by word."""
        self._rest = b""
        self._pieces: dict[int, list[str]] = {}
        """The pieces of each choice."""
        self._read = 0
        self.ended = False
        """Whether a stream has said that it is complete."""
        self._finished = False
        """Whether a choice has a reason why it is complete. Some providers end their streams without a last word."""

    def feed(self, data: bytes) -> None:
        """Read the next bytes."""
        self._read += len(data)
        if self._read > _MOST:
            self._rest = b""
            return
        self._rest += data
        if not self.streams:
            return
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            name, _, value = line.strip().partition(b":")
            if name == b"data":
                self._event(value.strip())

    def texts(self) -> list[str]:
        """Return what was said so far: one text, or several if the client asked for several choices (`n`)."""
        if not self.streams and self._rest:
            self._add(_loaded(self._rest), "message")
            self._rest = b""
        return ["".join(pieces) for _, pieces in sorted(self._pieces.items())]

    @property
    def partial(self) -> bool:
        """Whether it is a stream that was broken off."""
        return self.streams and not self.ended and not self._finished

    def _event(self, value: bytes) -> None:
        if value == b"[DONE]":
            self.ended = True
            return
        self._add(_loaded(value), "delta")

    def _add(self, answer: object, name: str) -> None:
        choices = answer.get("choices") if isinstance(answer, dict) else None
        for choice in choices if isinstance(choices, list) else ():
            said = choice.get(name) if isinstance(choice, dict) else None
            piece = said.get("content") if isinstance(said, dict) else None
            index = choice.get("index", 0) if isinstance(choice, dict) else 0
            self._finished = self._finished or (isinstance(choice, dict) and bool(choice.get("finish_reason")))
            if isinstance(piece, str) and isinstance(index, int):
                self._pieces.setdefault(index, []).append(piece)


def _loaded(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
