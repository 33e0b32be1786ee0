"""The replies of a scripted model to requests of Ollama's API."""

from __future__ import annotations

import json
from typing import Any, Final

from aforesaid.testing.http_connection import HttpResponse, answer_json
from aforesaid.testing.openai_responses import tokens, words_of
from aforesaid.testing.script import Request, Writes

_CREATED: Final = "2026-01-01T00:00:00Z"
_DETAILS: Final = {
    "parent_model": "",
    "format": "gguf",
    "family": "scripted",
    "families": ["scripted"],
    "parameter_size": "1B",
    "quantization_level": "Q4_0",
}


def chat(request: Request, writes: Writes) -> HttpResponse:
    """Return the reply to a chat: word by word, unless the request says otherwise."""
    calls = [{"function": {"name": name, "arguments": dict(made)}} for name, made in writes.tools.items()]
    said: list[dict[str, Any]] = [{"message": {"role": "assistant", "content": word}} for word in words_of(writes.text)]
    if calls:
        said.append({"message": {"role": "assistant", "content": "", "tool_calls": calls}})
    whole: dict[str, Any] = {"role": "assistant", "content": writes.text}
    if calls:
        whole["tool_calls"] = calls
    last = {"message": {"role": "assistant", "content": ""}}
    return _reply(request, writes, said, last, {"message": whole})


def generate(request: Request, writes: Writes, number: int) -> HttpResponse:
    """Return the completion of a prompt. `number` makes the context of the reply unique."""
    said = [{"response": word} for word in words_of(writes.text)]
    context = {"context": [1, 2, number]}
    return _reply(request, writes, said, {"response": "", **context}, {"response": writes.text, **context})


def tags(names: tuple[str, ...]) -> HttpResponse:
    """Return the list of models."""
    shared = {"modified_at": _CREATED, "size": 1, "digest": "0" * 64, "details": _DETAILS}
    return answer_json({"models": [{"name": name, "model": name, **shared} for name in names]})


def show(request: Request, names: tuple[str, ...]) -> HttpResponse:
    """Return what is known about a model."""
    model = request.body.get("model")
    if model not in names:
        return failure(404, f"model '{model}' not found")
    shown = {"modelfile": "", "template": "{{ .Prompt }}", "details": _DETAILS, "capabilities": ["completion", "tools"]}
    return answer_json({**shown, "model_info": {"general.architecture": "scripted"}, "modified_at": _CREATED})


def version() -> HttpResponse:
    """Return the version."""
    return answer_json({"version": "0.12.0"})


def failure(status: int, text: str) -> HttpResponse:
    """Return an error in the format of Ollama's API."""
    return answer_json({"error": text}, status)


def _reply(
    request: Request, writes: Writes, said: list[dict[str, Any]], last: dict[str, Any], whole: dict[str, Any]
) -> HttpResponse:
    frame = {"model": request.body.get("model", ""), "created_at": _CREATED}
    ended: dict[str, Any] = {"done": True, "done_reason": writes.finish or "stop"}
    if writes.usage:
        given = tokens(json.dumps([request.body.get("messages"), request.body.get("prompt")]))
        ended |= {"total_duration": 1, "prompt_eval_count": given, "eval_count": tokens(writes.text)}
    if request.body.get("stream") is False:
        return answer_json({**frame, **whole, **ended})
    events = [{**frame, **each, "done": False} for each in said]
    if writes.finish is not None:
        events.append({**frame, **last, **ended})
    parts = tuple(json.dumps(event).encode() + b"\n" for event in events)
    return HttpResponse(parts, content_type="application/x-ndjson", streamed=True)
