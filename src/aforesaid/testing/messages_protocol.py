"""The replies of a scripted model to requests of Anthropic's Messages."""

from __future__ import annotations

import json
from typing import Any, Final

from aforesaid.testing.http_connection import HttpResponse, answer_json
from aforesaid.testing.openai_responses import tokens, words_of
from aforesaid.testing.script import Request, Writes

_STOPS: Final = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


def message(request: Request, writes: Writes, number: int) -> HttpResponse:
    """Return a message, whole or as the events of a stream. `number` makes its id unique."""
    frame = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model", ""),
        "stop_sequence": None,
    }
    blocks, stop = _blocks(writes), _stop(writes)
    usage = {"input_tokens": _input_tokens(request), "output_tokens": tokens(writes.text)}
    if not request.body.get("stream"):
        return answer_json({**frame, "content": blocks, "stop_reason": stop, "usage": usage})
    begun = {**frame, "content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(blocks):
        events += _block_events(index, block)
    if writes.finish is not None:
        ended = {"stop_reason": stop, "stop_sequence": None}
        events += [{"type": "message_delta", "delta": ended, "usage": usage}, {"type": "message_stop"}]
    parts = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
    return HttpResponse(tuple(parts), content_type="text/event-stream; charset=utf-8", streamed=True)


def count(request: Request) -> HttpResponse:
    """Return how many tokens a request has."""
    return answer_json({"input_tokens": _input_tokens(request)})


def models(names: tuple[str, ...]) -> HttpResponse:
    """Return the list of models."""
    data = [{"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"} for name in names]
    return answer_json({"data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]})


def failure(status: int, text: str, kind: str) -> HttpResponse:
    """Return an error in the format of Anthropic's API."""
    return answer_json({"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_1"}, status)


def _blocks(writes: Writes) -> list[dict[str, Any]]:
    text = [{"type": "text", "text": writes.text}] if writes.text or not writes.tools else []
    return text + [
        {"type": "tool_use", "id": f"toolu_{at}", "name": name, "input": dict(arguments)}
        for at, (name, arguments) in enumerate(writes.tools.items())
    ]


def _block_events(index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    if block["type"] == "text":
        begun, deltas = (
            {**block, "text": ""},
            [{"type": "text_delta", "text": word} for word in words_of(block["text"])],
        )
    else:
        begun = {**block, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _stop(writes: Writes) -> str | None:
    return "tool_use" if writes.tools and writes.finish == "stop" else _STOPS.get(writes.finish or "")


def _input_tokens(request: Request) -> int:
    return tokens(json.dumps([request.body.get("system"), request.body.get("messages")]))
