"""The protocols that a scripted model answers in."""

from __future__ import annotations

import base64
import io
import json
import re
import struct
import wave
from collections.abc import Mapping
from hashlib import blake2b
from itertools import zip_longest
from math import sqrt
from typing import Any, Final

from aforesaid.testing.faults import HttpResponse, answer_json
from aforesaid.testing.script import Request, Writes

CREATED: Final = 1_767_225_600
_DIMENSIONS: Final = 32
_RATE: Final = 16_000
_SPOKEN: Final = b"said"
"""Id of the WAV chunk that contains the spoken text."""


def tokens(text: str) -> int:
    """Count about four characters as one token."""
    return -(-len(text) // 4)


def words_of(text: str) -> list[str]:
    """Return the pieces that a streamed text comes in: its words, with the white space before them."""
    return re.findall(r"\s*\S+|\s+$", text)


def chat(request: Request, writes: Writes) -> HttpResponse:
    """Return the response to a chat request, whole or streamed word by word."""
    prompt = sum(tokens(str(message.get("content", ""))) for message in request.messages)
    reply = tokens(writes.text)
    usage = {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply}
    if request.body.get("stream"):
        return _streamed(request, writes, usage)
    message: dict[str, Any] = {"role": "assistant", "content": writes.text}
    if writes.tools:
        message |= {"content": writes.text or None, "tool_calls": _calls(writes)}
    spoken = [message, *({"role": "assistant", "content": text} for text in writes.more)]
    choices = [
        {"index": at, "message": each, "finish_reason": _finish(writes), "logprobs": None}
        for at, each in enumerate(spoken)
    ]
    made = {**_frame(request, "chat.completion"), "choices": choices}
    return answer_json({**made, "usage": usage} if writes.usage else made)


def _streamed(request: Request, writes: Writes, usage: Mapping[str, int]) -> HttpResponse:
    frame = _frame(request, "chat.completion.chunk")
    deltas: list[tuple[int, dict[str, Any], str | None]] = [(0, {"role": "assistant", "content": ""}, None)]
    words = [words_of(text) for text in (writes.text, *writes.more)]
    # The choices come in turns, as from a provider.
    for spoken in zip_longest(*words):
        deltas += [(choice, {"content": word}, None) for choice, word in enumerate(spoken) if word is not None]
    deltas += [(0, {"tool_calls": [call | {"index": at}]}, None) for at, call in enumerate(_calls(writes))]
    if writes.finish is not None:
        deltas += [(choice, {}, _finish(writes)) for choice in range(len(words))]
    events = [
        {**frame, "choices": [{"index": choice, "delta": delta, "finish_reason": finish}]}
        for choice, delta, finish in deltas
    ]
    if writes.usage and request.body.get("stream_options", {}).get("include_usage"):
        events.append({**frame, "choices": [], "usage": dict(usage)})
    return _events(events, writes)


def completion(request: Request, writes: Writes) -> HttpResponse:
    """Return the completion of a prompt, whole or streamed word by word."""
    frame = _frame(request, "text_completion")
    prompt, reply = tokens(str(request.body.get("prompt", ""))), tokens(writes.text)
    usage = {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply}
    texts = (writes.text, *writes.more)
    if not request.body.get("stream"):
        choices = [
            {"index": at, "text": text, "finish_reason": writes.finish, "logprobs": None}
            for at, text in enumerate(texts)
        ]
        return answer_json({**frame, "choices": choices, "usage": usage})
    pieces = [(at, word, None) for at, text in enumerate(texts) for word in words_of(text)]
    ends = [] if writes.finish is None else [(at, "", writes.finish) for at in range(len(texts))]
    events: list[dict[str, Any]] = [
        {**frame, "choices": [{"index": at, "text": text, "finish_reason": finish, "logprobs": None}]}
        for at, text, finish in (*pieces, *ends)
    ]
    if request.body.get("stream_options", {}).get("include_usage"):
        events.append({**frame, "choices": [], "usage": usage})
    return _events(events, writes)


def _events(events: list[dict[str, Any]], writes: Writes) -> HttpResponse:
    parts = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
    if writes.finish is not None:
        parts.append(b"data: [DONE]\n\n")
    return HttpResponse(tuple(parts), content_type="text/event-stream", streamed=True)


def _calls(writes: Writes) -> list[dict[str, Any]]:
    return [
        {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(dict(arguments))}}
        for at, (name, arguments) in enumerate(writes.tools.items())
    ]


def _finish(writes: Writes) -> str | None:
    return "tool_calls" if writes.tools and writes.finish == "stop" else writes.finish


def _frame(request: Request, kind: str) -> dict[str, Any]:
    return {"id": "scripted", "object": kind, "created": CREATED, "model": request.body.get("model", "")}


def embeddings(request: Request) -> HttpResponse:
    """Return embeddings. Texts that share words have similar vectors."""
    given = request.body.get("input", ())
    texts = [given] if isinstance(given, str) else list(given)
    packed = request.body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": at, "embedding": _packed(vector(text)) if packed else vector(text)}
        for at, text in enumerate(texts)
    ]
    count = sum(tokens(text) for text in texts)
    usage = {"prompt_tokens": count, "total_tokens": count}
    return answer_json({"object": "list", "model": request.body.get("model", ""), "data": data, "usage": usage})


def vector(text: str) -> list[float]:
    """Return the unit vector of a text: the sum of one random direction per word."""
    total = [0.0] * _DIMENSIONS
    for word in _words(text) or [""]:
        digest = blake2b(word.encode(), digest_size=_DIMENSIONS).digest()
        total = [have + byte - 127.5 for have, byte in zip(total, digest, strict=True)]
    length = sqrt(sum(value * value for value in total))
    return [value / length for value in total]


def _packed(values: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


def models(names: tuple[str, ...]) -> HttpResponse:
    """Return the list of models."""
    data = [{"id": name, "object": "model", "created": CREATED, "owned_by": "scripted"} for name in names]
    return answer_json({"object": "list", "data": data})


def rerank(request: Request) -> HttpResponse:
    """Return the share of the question's words in each document, best first, in the form of Cohere or of TEI."""
    asked = set(_words(str(request.body.get("query", ""))))
    of_tei = "texts" in request.body
    documents = [str(text) for text in request.body.get("texts" if of_tei else "documents", ())]
    shares = [len(asked.intersection(_words(text))) / max(len(asked), 1) for text in documents]
    order = sorted(range(len(shares)), key=lambda at: -shares[at])
    if of_tei:
        return answer_json([{"index": at, "score": shares[at]} for at in order])
    results = [{"index": at, "relevance_score": shares[at]} for at in order[: request.body.get("top_n")]]
    count = sum(tokens(text) for text in documents)
    return answer_json({"model": request.body.get("model", ""), "results": results, "usage": {"total_tokens": count}})


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def speech(request: Request) -> HttpResponse:
    """Return a WAV file with 0.1 s of silence per word; one of its chunks contains the text."""
    said = str(request.body.get("input", ""))
    silence = b"\0\0" * (_RATE // 10 * max(len(said.split()), 1))
    if request.body.get("response_format") == "pcm":
        return HttpResponse((silence,), content_type="audio/pcm")
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(_RATE)
        sound.writeframes(silence)
    text = said.encode()
    padded = text + b"\0" * (len(text) % 2)
    whole = bytearray(file.getvalue() + _SPOKEN + struct.pack("<I", len(text)) + padded)
    whole[4:8] = struct.pack("<I", len(whole) - 8)
    return HttpResponse((bytes(whole),), content_type="audio/wav")


def transcription(request: Request) -> HttpResponse:
    """Return the text in a WAV file made by `speech`; for other files, their length."""
    file = request.body.get("file", b"")
    sound = file if isinstance(file, bytes) else file.encode()
    at = sound.rfind(_SPOKEN)
    if at < 0:
        return answer_json({"text": f"{len(sound)} bytes of sound"})
    (length,) = struct.unpack_from("<I", sound, at + 4)
    return answer_json({"text": sound[at + 8 : at + 8 + length].decode()})


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


def messages_models(names: tuple[str, ...]) -> HttpResponse:
    """Return the list of models."""
    data = [{"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"} for name in names]
    return answer_json({"data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]})


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


_CREATED: Final = "2026-01-01T00:00:00Z"
_DETAILS: Final = {
    "parent_model": "",
    "format": "gguf",
    "family": "scripted",
    "families": ["scripted"],
    "parameter_size": "1B",
    "quantization_level": "Q4_0",
}


def ollama_chat(request: Request, writes: Writes) -> HttpResponse:
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
        return answer_json({"error": f"model '{model}' not found"}, 404)
    shown = {"modelfile": "", "template": "{{ .Prompt }}", "details": _DETAILS, "capabilities": ["completion", "tools"]}
    return answer_json({**shown, "model_info": {"general.architecture": "scripted"}, "modified_at": _CREATED})


def version() -> HttpResponse:
    """Return the version."""
    return answer_json({"version": "0.12.0"})


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


def response(request: Request, writes: Writes, number: int) -> HttpResponse:
    """Return a response, whole or as the events of a stream. `number` makes its id unique."""
    output = _output(writes, number)
    whole = _responses_frame(request, number) | {
        "status": "completed",
        "output": output,
        "usage": _usage(request, writes),
    }
    if writes.finish == "length":
        whole |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    if not request.body.get("stream"):
        return answer_json(whole)
    begun = _responses_frame(request, number) | {"status": "in_progress", "output": [], "usage": None}
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


def _responses_frame(request: Request, number: int) -> dict[str, Any]:
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
