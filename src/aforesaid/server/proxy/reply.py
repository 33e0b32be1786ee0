"""Reading along in an answer, to know what the assistant said."""

from __future__ import annotations

import json
from typing import Any, Final

_MOST: Final = 8 * 1024 * 1024
"""What is longer is passed on and not read along in."""


class Reply:
    """What the assistant said, as far as the answer has come."""

    def __init__(self, content_type: str) -> None:
        self.streams = content_type.startswith("text/event-stream")
        """Whether it comes word by word."""
        self._rest = b""
        self._pieces: list[str] = []
        self._read = 0
        self.ended = False
        """Whether a stream has said that it is complete."""

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

    def text(self) -> str:
        """Return what was said so far."""
        if not self.streams and self._rest:
            choice = _first_choice(_loaded(self._rest))
            message = choice.get("message")
            content = message.get("content") if isinstance(message, dict) else None
            return content if isinstance(content, str) else ""
        return "".join(self._pieces)

    def _event(self, value: bytes) -> None:
        if value == b"[DONE]":
            self.ended = True
            return
        delta = _first_choice(_loaded(value)).get("delta")
        piece = delta.get("content") if isinstance(delta, dict) else None
        if isinstance(piece, str):
            self._pieces.append(piece)


def _loaded(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _first_choice(answer: object) -> dict[str, Any]:
    choices = answer.get("choices") if isinstance(answer, dict) else None
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            return choice
    return {}
