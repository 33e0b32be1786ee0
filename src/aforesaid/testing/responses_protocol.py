"""The replies of a scripted model to requests of OpenAI's Responses."""

from __future__ import annotations

import json
from typing import Any

from aforesaid.testing.http_connection import HttpResponse, answer_json
from aforesaid.testing.openai_responses import CREATED, tokens, words_of
from aforesaid.testing.script import Request, Writes


def response(request: Request, writes: Writes, number: int) -> HttpResponse:
    """Return a response, whole or as the events of a stream. `number` makes its id unique."""
    output = _output(writes, number)
    whole = _frame(request, number) | {"status": "completed", "output": output, "usage": _usage(request, writes)}
    if writes.finish == "length":
        whole |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    if not request.body.get("stream"):
        return answer_json(whole)
    begun = _frame(request, number) | {"status": "in_progress", "output": [], "usage": None}
    events = [{"type": "response.created", "response": begun}, {"type": "response.in_progress", "response": begun}]
    for place, item in enumerate(output):
        events += _text_events(place, item) if item["type"] == "message" else _call_events(place, item)
    if writes.finish is not None:
        events.append({"type": f"response.{whole['status']}", "response": whole})
    parts = [_event(event | {"sequence_number": at}) for at, event in enumerate(events)]
    return HttpResponse(tuple(parts), content_type="text/event-stream; charset=utf-8", streamed=True)


def _output(writes: Writes, number: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if writes.text or not writes.tools:
        part = {"type": "output_text", "text": writes.text, "annotations": [], "logprobs": []}
        items.append(
            {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [part]}
        )
    items += [
        {
            "type": "function_call",
            "id": f"fc_{number}_{at}",
            "call_id": f"call_{at}",
            "name": name,
            "arguments": json.dumps(dict(arguments)),
            "status": "completed",
        }
        for at, (name, arguments) in enumerate(writes.tools.items())
    ]
    return items


def _text_events(place: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    part = item["content"][0]
    here = {"item_id": item["id"], "output_index": place, "content_index": 0}
    empty = item | {"status": "in_progress", "content": []}
    deltas = [
        {"type": "response.output_text.delta", **here, "delta": word, "logprobs": []} for word in words_of(part["text"])
    ]
    return [
        {"type": "response.output_item.added", "output_index": place, "item": empty},
        {"type": "response.content_part.added", **here, "part": part | {"text": ""}},
        *deltas,
        {"type": "response.output_text.done", **here, "text": part["text"], "logprobs": []},
        {"type": "response.content_part.done", **here, "part": part},
        {"type": "response.output_item.done", "output_index": place, "item": item},
    ]


def _call_events(place: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    here = {"item_id": item["id"], "output_index": place}
    written = item["arguments"]
    return [
        {"type": "response.output_item.added", "output_index": place, "item": item | {"arguments": ""}},
        {"type": "response.function_call_arguments.delta", **here, "delta": written},
        {"type": "response.function_call_arguments.done", **here, "arguments": written, "name": item["name"]},
        {"type": "response.output_item.done", "output_index": place, "item": item},
    ]


def _frame(request: Request, number: int) -> dict[str, Any]:
    body = request.body
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": CREATED,
        "model": body.get("model", ""),
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": body.get("metadata") or {},
        "parallel_tool_calls": True,
        "previous_response_id": body.get("previous_response_id"),
        "store": body.get("store", True),
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "top_p": 1.0,
    }


def _usage(request: Request, writes: Writes) -> dict[str, Any] | None:
    if not writes.usage:
        return None
    given = tokens(json.dumps(request.body.get("input", ""))) + tokens(str(request.body.get("instructions") or ""))
    made = tokens(writes.text)
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + made,
    }


def _event(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
