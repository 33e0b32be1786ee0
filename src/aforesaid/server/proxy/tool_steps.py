"""The tools that were used to answer a question, with their results.

They are stored as metadata of the answer: history is whole, and they take no room in contexts and searches. Clients
send them with the request that asks for the answer; in the Responses API a client may send only the newest result, and
then the earlier steps are held in memory under the id of the reply that it goes on from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from aforesaid.server.proxy.turns import storable, text_of

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
    since = max((place for place, each in enumerate(messages) if _role(each) == "user"), default=-1) + 1
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
    return _bounded(steps)


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


def _bounded(steps: Iterable[ToolStep]) -> list[ToolStep]:
    """Return the first steps that fit into the metadata of a message."""
    kept: list[ToolStep] = []
    room = _ALL_BYTES
    for step in steps:
        room -= len(json.dumps(step).encode())
        if room < 0:
            break
        kept.append(step)
    return kept


def _role(message: object) -> object:
    return message.get("role") if isinstance(message, Mapping) else None


def _short(name: object) -> str:
    return storable(name, 200) if isinstance(name, str) else ""
