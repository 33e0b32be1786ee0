"""Letta's agent files (`.af`): the messages of agents, and the blocks of their memory."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, Final

from aforesaid.errors import InvalidInput
from aforesaid.portability.formats import openai
from aforesaid.portability.import_items import (
    HIDDEN,
    NO_WORDS,
    NOTICE,
    ImportedMessage,
    ImportedRow,
    Item,
    ReadOptions,
    Skipped,
    imported_memory,
    numbered,
)
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_stream import JsonStream
from aforesaid.portability.reader_helpers import (
    Ids,
    any_moment,
    each,
    filled,
    name_of,
    objects_of,
    parts_text,
    placed,
    until_damaged,
)
from aforesaid.portability.row_codec import Fields

_SEND: Final = "send_message"
"""The tool with which agents of the older kind speak to the user. Their other text is their inner monologue."""
_ABOUT_THE_USER: Final = re.compile(
    r"(?:^|[^a-z])(?:human|users?|customer|preferences?|profile|facts|custom_instructions|archival)(?:[^a-z]|$)",
    re.IGNORECASE,
)
"""Labels of blocks about the user. Others have the agent's persona, rules and notes."""
_OF_THE_AGENT: Final = Skipped("memory blocks that are not about the user")
_KEYS: Final = ("agents", "blocks", "core_memory", "messages", "name", "id", "created_at", "archival_memory")


def read(source: Source, reading: ReadOptions) -> Iterator[Item]:
    """Yield the messages and memories of all agents."""
    for name in source.named(".af", ".json") or source.names[:1]:
        with source.open(name) as stream:
            yield from numbered(until_damaged(_file(JsonStream(stream), reading)))


def _file(stream: JsonStream, reading: ReadOptions) -> Iterator[Item]:
    if stream.peek() == '"':
        # Some versions write the file as JSON in a JSON text.
        stream = JsonStream(io.BytesIO(str(stream.value()).encode(errors="surrogatepass")))
    values: dict[str, Any] = {}
    for key in stream.members():
        if key in _KEYS:
            values[key] = stream.value()
    whole = Fields(values)
    blocks = {str(block.raw("id")): block for block in objects_of(whole, "blocks")}
    agents = objects_of(whole, "agents")
    for number, agent in enumerate(agents or [whole], 1):
        known = [blocks[key] for key in map(str, agent.items("block_ids")) if key in blocks]
        yield from _agent(agent, known, whole.raw("created_at"), f"agent {number}", reading)


def _agent(agent: Fields, blocks: list[Fields], written: object, where: str, reading: ReadOptions) -> Iterator[Item]:
    thread = f"letta:{name_of(agent, 'name') or agent.raw('id') or 'agent'}"[:255]
    entries = [entry for entry in agent.items("messages") if isinstance(entry, dict)]
    spoken = frozenset(call.id for entry in entries for call in _calls(entry) if call.name == _SEND)
    read_message = partial(_message, thread, Ids("letta"), reading, spoken)
    yield from each(placed(agent.items("messages"), where), read_message)
    times = [entry.get("created_at") for entry in entries if entry.get("created_at")]
    start = any_moment(
        agent.raw("created_at") or min(map(str, times), default=None) or written, "created_at", reading.zone
    )
    for block in (*blocks, *objects_of(agent, "core_memory"), *objects_of(agent, "archival_memory")):
        yield from _block(block, start, f"{where}, block {block.raw('label') or ''}".rstrip(), reading)


def _calls(entry: dict[str, Any]) -> tuple[Any, ...]:
    with suppress(InvalidInput):  # reported with its message
        return openai.tool_calls(Fields(entry))
    return ()


def _message(thread: str, ids: Ids, reading: ReadOptions, spoken: frozenset[str], found: Fields, where: str) -> Item:
    """Return a message. `spoken` has the ids of the calls with which the agent spoke to the user."""
    role = str(found.raw("role"))
    if role in ("system", "approval"):
        return HIDDEN
    at = any_moment(found.raw("created_at"), "created_at", reading.zone)
    text = _text(found)
    calls = openai.tool_calls(found)
    if role == "user":
        said = _wrapped(text)
        if said is None:
            return NOTICE
        text = said
    elif role == "tool":
        if name_of(found, "name") == _SEND or name_of(found, "tool_call_id") in spoken:
            return NOTICE
        text = _result(text)
    elif role == "assistant" and spoken:
        if not calls:
            return HIDDEN
        text = "\n".join(filter(None, (_spoken(call.arguments) for call in calls if call.name == _SEND)))
        calls = tuple(call for call in calls if call.name != _SEND)
    if role not in ("user", "assistant", "tool"):
        raise InvalidInput(f"the role {role!r} is unknown")
    if not text.strip() and not calls:
        return NO_WORDS
    return ImportedMessage(
        where,
        thread,
        "user" if role == "user" else "tool" if role == "tool" else "assistant",
        text,
        at,
        # The ids in a file are numbers within it, so another export can give them to other messages.
        ids.of(at, thread, role, text, *(call.id for call in calls)),
        name=name_of(found, "name") if role == "user" else None,
        parts=openai.media_parts(found.raw("content")),
        tool_calls=calls,
        tool_call_id=name_of(found, "tool_call_id") if role == "tool" else None,
        metadata=filled(model=name_of(found, "model")),
    )


def _text(found: Fields) -> str:
    content = found.raw("content")
    if isinstance(content, list):
        content = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return parts_text(content) or name_of(found, "text") or ""


def _wrapped(text: str) -> str | None:
    """Return what a user said, which older agents wrap in JSON with its time; None for an event such as a heartbeat."""
    value = _object(text)
    if value is None or "type" not in value:
        return text
    said = value.get("message")
    return said if value["type"] == "user_message" and isinstance(said, str) else None


def _result(text: str) -> str:
    value = _object(text)
    said = value.get("message") if value is not None and "status" in value else None
    return said if isinstance(said, str) else text


def _spoken(arguments: str) -> str:
    value = _object(arguments)
    said = value.get("message") if value is not None else None
    return said if isinstance(said, str) else ""


def _object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _block(block: Fields, start: datetime | None, where: str, reading: ReadOptions) -> Iterator[Item]:
    """Yield a memory for each line of a block."""
    label = name_of(block, "label") or "archival"
    if not _ABOUT_THE_USER.search(label):
        yield _OF_THE_AGENT
        return
    at = any_moment(block.raw("created_at"), "created_at", reading.zone) or start
    if at is None:
        raise InvalidInput(f"nothing in the file says when {where} was made")
    for line in (name_of(block, "value", "text") or "").splitlines():
        words = line.strip().removeprefix("- ").removeprefix("* ").strip()
        if words and not words.startswith("#"):
            row = imported_memory(words, reading.user, at, space=reading.space, extractor="letta", tags=[label])
            yield ImportedRow(where, row)
