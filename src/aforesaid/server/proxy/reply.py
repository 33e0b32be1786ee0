"""Reading a provider's reply while it is passed on, to know what the assistant said."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeGuard

from aforesaid.server.proxy.conversations import role_of, storable, text_of

TOOLS: Final = "tools"
"""The metadata key of a stored answer that has the tools which were used for it."""
_RESULT_BYTES: Final = 64 * 1024
"""Maximum bytes of the arguments and of the result of a tool that are stored."""
_ALL_BYTES: Final = 512 * 1024
"""Maximum bytes of all steps of an answer. The details of a message may have 1 MiB."""

ToolStep: TypeAlias = dict[str, str]
"""A call of a tool: `id`, `name` and `arguments`, and `result` once there is one."""


def tool_steps(messages: Sequence[object], earlier: Sequence[ToolStep] = ()) -> list[ToolStep]:
    """Return the tools that were used since the last question of a request, after those of earlier replies.

    `messages` are those of Chat Completions, or of Ollama, which have no ids: there results belong to calls in order.
    Some providers number the calls of each reply anew, so a result belongs to the first call with its id that has none.
    """
    since = max((place for place, each in enumerate(messages) if role_of(each) == "user"), default=-1) + 1
    steps = [dict(step) for step in earlier]
    for message in messages[since:]:
        if not isinstance(message, Mapping):
            continue
        steps += _calls(message, len(steps))
        if message.get("role") == "tool":
            name = _short(message.get("tool_call_id"))
            waiting = (step for step in steps if "result" not in step and name in ("", step["id"]))
            step = next(waiting, None)
            if step is None:
                step = {"id": name or f"call-{len(steps) + 1}", "name": _short(message.get("tool_name")) or "tool"}
                steps.append(step)
            step["result"] = storable(text_of(message.get("content")), _RESULT_BYTES)
    # The first steps that fit into the metadata of a message.
    kept: list[ToolStep] = []
    room = _ALL_BYTES
    for step in steps:
        room -= len(json.dumps(step).encode())
        if room < 0:
            break
        kept.append(step)
    return kept


def call_of(number: int, name: object, arguments: object, call_id: object) -> ToolStep:
    """Return the step of a call. One without an id gets its number."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {
        "id": _short(call_id) or f"call-{number + 1}",
        "name": _short(name) or "tool",
        "arguments": storable(written, _RESULT_BYTES),
    }


def _calls(message: Mapping[str, Any], before: int) -> Iterator[ToolStep]:
    calls = message.get("tool_calls")
    for number, call in enumerate(calls if isinstance(calls, list) else (), before):
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield call_of(number, function.get("name"), function.get("arguments"), call.get("id"))


def _short(name: object) -> str:
    return storable(name, 200) if isinstance(name, str) else ""


_MOST: Final = 8 * 1024 * 1024
"""Bytes of a reply that are read. A longer one is passed on all the same."""
_EVENTS: Final = "text/event-stream"
_LINES: Final = "application/x-ndjson"


def is_stream(content_type: str) -> bool:
    return content_type.startswith((_EVENTS, _LINES))


class Reply:
    """What the assistant said, as far as the reply has come.

    Splits a reply into JSON values: the events of a stream (server-sent events, or one value per line), or the whole
    body. Each protocol reads the text out of them.
    """

    def __init__(self, content_type: str) -> None:
        self.streams = is_stream(content_type)
        self.id: str | None = None
        """The id by which a later request can go on from this reply."""
        self.calls: list[ToolStep] = []
        """The tools that it calls, in protocols where a later request need not repeat them."""
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.ended = False
        """Whether a stream has said that it is complete."""
        self._finished = False
        """Whether a stop reason was given. Some providers end their streams without a last event."""
        self._plain_lines = content_type.startswith(_LINES)
        self._pieces: dict[int, list[str]] = {}
        """The pieces of each choice, or of each part of a reply."""
        self._rest = b""
        self._bytes_read = 0

    def feed(self, data: bytes) -> None:
        self._bytes_read += len(data)
        if self._bytes_read > _MOST:
            self._rest = b""
            return
        self._rest += data
        if not self.streams:
            return
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            if self._plain_lines:
                self._read_event(_loaded(line))
                continue
            name, _, value = line.strip().partition(b":")
            if name == b"data" and value.strip() == b"[DONE]":
                self.ended = True
            elif name == b"data":
                self._read_event(_loaded(value.strip()))

    def texts(self) -> list[str]:
        """Return what was said so far: one text, or several if the client asked for several choices (`n`)."""
        if not self.streams and self._rest:
            self._read_whole(_loaded(self._rest))
            self._rest = b""
        return ["".join(pieces) for _, pieces in sorted(self._pieces.items())]

    @property
    def partial(self) -> bool:
        return self.streams and not self.ended and not self._finished

    def _read_event(self, event: object) -> None:
        raise NotImplementedError

    def _read_whole(self, answer: object) -> None:
        raise NotImplementedError

    def _read_id(self, answer: Mapping[str, Any]) -> None:
        name = answer.get("id")
        self.id = name if isinstance(name, str) and name else None

    def _read_usage(self, usage: object, asked: tuple[str, ...], said: str) -> None:
        """Read the tokens that the provider counted. `asked` are the fields that add up to those of the request."""
        if not isinstance(usage, Mapping):
            return
        counts = [count for count in map(usage.get, asked) if _is_count(count)]
        if counts:
            self.input_tokens = sum(counts)
        if _is_count(count := usage.get(said)):
            self.output_tokens = count

    def _add(self, place: object, piece: object) -> None:
        """Add a piece of text to the choice, or the part of the reply, at a place."""
        if isinstance(piece, str) and isinstance(place, int):
            self._pieces.setdefault(place, []).append(piece)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _loaded(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
