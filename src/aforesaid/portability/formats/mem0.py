"""A dump of mem0's memories: what `get_all` returns, as JSON or as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import IO

from aforesaid.domain import checks
from aforesaid.domain.literals import Category
from aforesaid.domain.memory import CATEGORIES, USUAL_IMPORTANCE, USUAL_PRIORITY, MemoryRecord
from aforesaid.domain.transfer import MemoryRow
from aforesaid.errors import InvalidInput
from aforesaid.portability.import_items import ImportedRow, Item, Problem, ReadOptions, Skipped
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_fields import Fields
from aforesaid.portability.json_lines import numbered_lines, parsed
from aforesaid.portability.json_stream import JsonStream
from aforesaid.portability.reader_helpers import any_moment, name_of, objects, opened, told

_TAGS = 20


def read(source: Source, reading: ReadOptions) -> Iterator[Item]:
    """Yield memories. Those without a user are stored for the requested user."""
    for name in source.named(".json", ".jsonl") or source.names[:1]:
        with source.open(name) as stream:
            if _is_lines(source.head(name)):
                yield from _numbered(_lines(stream, reading))
            else:
                yield from _numbered(told(_whole(opened(stream), reading)))


def _numbered(items: Iterator[Item]) -> Iterator[Item]:
    """Give each memory a number, since its own id is not one."""
    number = 0
    for item in items:
        if isinstance(item, ImportedRow) and isinstance(item.row, MemoryRow):
            number += 1
            yield ImportedRow(item.where, MemoryRow(replace(item.row.memory, id=number)))
        else:
            yield item


def _is_lines(head: bytes) -> bool:
    first = head.lstrip().partition(b"\n")[0].strip()
    return first.startswith(b"{") and first.endswith(b"}") and b'"results"' not in first


def _lines(stream: IO[bytes], reading: ReadOptions) -> Iterator[Item]:
    for number, line in numbered_lines(stream):
        if line is None or line.strip():
            where = f"line {number}"
            try:
                yield _memory(Fields(parsed(line)), where, reading)
            except InvalidInput as error:
                yield Problem(where, str(error))


def _whole(stream: JsonStream, reading: ReadOptions) -> Iterator[Item]:
    if stream.peek() == "[":
        yield from _list(stream, reading)
        return
    for key in stream.members():
        if key in ("results", "memories") and stream.peek() == "[":
            yield from _list(stream, reading)


def _list(stream: JsonStream, reading: ReadOptions) -> Iterator[Item]:
    for where, found in objects(stream, "memory"):
        if isinstance(found, Problem):
            yield found
            continue
        try:
            yield _memory(found, where, reading)
        except InvalidInput as error:
            yield Problem(where, str(error))


def _memory(found: Fields, where: str, reading: ReadOptions) -> Item:
    text = name_of(found, "memory", "data", "text")
    if text is None:
        return Skipped("entries without text")
    user = name_of(found, "user_id", "agent_id", "run_id") or reading.user
    known = any_moment(found.raw("created_at") or found.raw("updated_at"), "created_at", reading.zone)
    if known is None:
        raise InvalidInput("created_at is missing")
    checks.message_text(text)
    checks.identifier(user, "user_id")
    return ImportedRow(where, MemoryRow(_as_memory(text, user, known, found, reading)))


def _as_memory(text: str, user: str, known: datetime, found: Fields, reading: ReadOptions) -> MemoryRecord:
    metadata = Fields(found.raw("metadata") or {}, "metadata")
    words = [*found.items("categories"), metadata.raw("category"), found.raw("category")]
    tags = tuple(dict.fromkeys(word for word in words if isinstance(word, str) and word))[:_TAGS]
    category: Category = next((each for each in CATEGORIES if each in tags), "other")
    seen = any_moment(found.raw("updated_at"), "updated_at", reading.zone) or known
    expires = any_moment(found.raw("expiration_date"), "expiration_date", reading.zone)
    return MemoryRecord(
        id=1,
        space=reading.space,
        user=user,
        category=category,
        text=text,
        importance=USUAL_IMPORTANCE,
        tags=tags,
        sources=(),
        created_at=known,
        active=True,
        state="active",
        priority=USUAL_PRIORITY,
        speaker=user,
        subject=None,
        event=None,
        remind_at=None,
        delivered_at=None,
        expires_at=expires,
        valid_from=known,
        valid_to=None,
        superseded_by=None,
        extractor="mem0",
        trust="said",
        reason="",
        times=1,
        seen_at=max(seen, known),
        revision=1,
    )
