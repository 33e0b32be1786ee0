"""The regular responses of a scripted model, in the format of OpenAI's API."""

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

from aforesaid.testing.http_connection import HttpResponse, answer_json
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
    parts = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
    if writes.finish is not None:
        parts.append(b"data: [DONE]\n\n")
    return HttpResponse(tuple(parts), content_type="text/event-stream", streamed=True)


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
