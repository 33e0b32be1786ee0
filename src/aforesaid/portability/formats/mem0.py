"""A dump of mem0's memories: what `get_all` or an export returns, as JSON or as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from aforesaid.errors import InvalidInput
from aforesaid.portability.import_items import (
    ImportedRow,
    Item,
    ReadOptions,
    Skipped,
    imported_memory,
    metadata_tags,
    numbered,
)
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_stream import JsonStream
from aforesaid.portability.reader_helpers import any_moment, each, line_objects, name_of, objects, until_damaged
from aforesaid.portability.row_codec import Fields

_LISTS = ("results", "memories")


def read(source: Source, reading: ReadOptions) -> Iterator[Item]:
    """Yield memories. Those without a user are stored for the requested user."""
    for name in source.named(".json", ".jsonl") or source.names[:1]:
        with source.open(name) as stream:
            if _is_lines(source.head(name)):
                yield from numbered(each(line_objects(stream), partial(_memory, reading)))
            else:
                yield from numbered(until_damaged(_whole(JsonStream(stream), reading)))


def _is_lines(head: bytes) -> bool:
    first = head.lstrip().partition(b"\n")[0].strip()
    return first.startswith(b"{") and first.endswith(b"}") and b'"results"' not in first


def _whole(stream: JsonStream, reading: ReadOptions) -> Iterator[Item]:
    if stream.peek() == "[":
        yield from each(objects(stream, "memory"), partial(_memory, reading))
        return
    for key in stream.members():
        if key in _LISTS and stream.peek() == "[":
            yield from each(objects(stream, "memory"), partial(_memory, reading))
        elif key == "relations" and stream.peek() == "[":
            yield from (Skipped("relations of the graph: their words are in the memories") for _ in stream.elements())


def _memory(reading: ReadOptions, found: Fields, where: str) -> Item:
    text = name_of(found, "memory", "data", "text")
    if text is None:
        return Skipped("entries without text")
    known = any_moment(found.raw("created_at") or found.raw("updated_at"), "created_at", reading.zone)
    if known is None:
        raise InvalidInput("created_at is missing")
    origin = ((name, name_of(found, name)) for name in ("agent_id", "app_id", "run_id"))
    row = imported_memory(
        text,
        name_of(found, "user_id", "agent_id", "run_id") or reading.user,
        known,
        space=reading.space,
        extractor="mem0",
        tags=[
            *found.items("categories"),
            found.raw("category"),
            *metadata_tags(found.raw("metadata")),
            *(f"{name}={value}" for name, value in origin if value and found.has("user_id")),
        ],
        seen_at=any_moment(found.raw("updated_at"), "updated_at", reading.zone),
        expires_at=any_moment(found.raw("expiration_date"), "expiration_date", reading.zone),
    )
    return ImportedRow(where, row)
