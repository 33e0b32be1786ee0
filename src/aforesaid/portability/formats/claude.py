"""Claude's export format: `conversations.json`, alone or in its zip archive, and `memories.json`: what it remembers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Final

from aforesaid.domain.details import Part, ToolCall
from aforesaid.errors import InvalidInput
from aforesaid.portability.import_items import (
    NO_WORDS,
    REPLACED,
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
    any_moment,
    attachment,
    each,
    filled,
    lines,
    mapping_of,
    name_of,
    objects,
    objects_of,
    placed,
    shown_branch,
    until_damaged,
)
from aforesaid.portability.row_codec import Fields

_UNSEEN_BLOCKS: Final = ("This block is not supported on your current device yet.",)
"""What stands in `text` for something that is only in `content`."""


_HEADING: Final = re.compile(r"\*\*[^*]+\*\*:?")
"""A line of its own above paragraphs: `**Work context**`."""
_PROJECT: Final = Skipped("projects and their documents")


def read(source: Source, reading: ReadOptions) -> Iterator[Item]:
    """Yield the messages of all conversations, and then what Claude remembers."""
    others = source.called("memories.json", "projects.json", "users.json")
    files = [name for name in source.named(".json") if name.rpartition("/")[2].startswith("conversations")]
    newest: datetime | None = None
    for name in files or [name for name in source.names[:1] if name not in others]:
        with source.open(name) as stream:
            entries = objects(JsonStream(stream), "conversation")
            for item in until_damaged(each(entries, partial(_conversation, reading))):
                if isinstance(item, ImportedMessage) and item.at is not None:
                    newest = item.at if newest is None else max(newest, item.at)
                yield item
    for name in source.called("memories.json"):
        with source.open(name) as stream:
            remembered = objects(JsonStream(stream), "memories")
            yield from numbered(until_damaged(each(remembered, partial(_memories, reading, newest))))
    for name in source.called("projects.json"):
        with source.open(name) as stream:
            yield from until_damaged(each(objects(JsonStream(stream), "project"), lambda _, __: _PROJECT))


def _memories(reading: ReadOptions, newest: datetime | None, found: Fields, where: str) -> Iterator[Item]:
    """Yield a memory for each paragraph of what Claude remembers: from all chats, and from those of each project."""
    at = any_moment(found.raw("updated_at"), "updated_at", reading.zone) or newest
    if at is None:
        raise InvalidInput("only the conversations say when Claude remembered this; import the whole export")
    texts = [(name_of(found, "conversations_memory"), "claude")]
    texts += [(text, "project") for text in mapping_of(found, "project_memories").values() if isinstance(text, str)]
    for text, tag in texts:
        for line in (text or "").splitlines():
            words = line.strip().removeprefix("- ").removeprefix("* ").strip()
            if words and not words.startswith("#") and not _HEADING.fullmatch(words):
                row = imported_memory(words, reading.user, at, space=reading.space, extractor="claude", tags=[tag])
                yield ImportedRow(where, row)


def _conversation(reading: ReadOptions, found: Fields, where: str) -> Iterator[Item]:
    thread = f"claude:{found.text('uuid')}"
    entries = found.items("chat_messages")
    messages = [entry for entry in entries if isinstance(entry, dict)]
    shown = _shown(messages, found.raw("current_leaf_message_uuid"))
    for _ in range(len(messages) - len(shown)):
        yield REPLACED
    kept = [entry for entry in entries if not isinstance(entry, dict) or str(entry.get("uuid")) in shown]
    yield from each(placed(kept, where), partial(_message, thread, name_of(found, "name"), reading))


def _shown(messages: list[dict[str, object]], current: object) -> set[str]:
    """Return the ids of the messages on the branch shown last; of all messages where the export has no branches."""
    ids = [str(message.get("uuid")) for message in messages]
    if not all(isinstance(message.get("parent_message_uuid"), str) for message in messages):
        return set(ids)
    return set(shown_branch(dict(zip(ids, (m["parent_message_uuid"] for m in messages), strict=True)), current))


def _message(thread: str, title: str | None, reading: ReadOptions, found: Fields, where: str) -> Item:
    blocks = objects_of(found, "content")
    said = lines(*(name_of(block, "text") for block in blocks if block.raw("type") == "text"))
    text = said or name_of(found, "text") or ""
    for unseen in _UNSEEN_BLOCKS:
        text = text.replace(f"```\n{unseen}\n```", "").replace(unseen, "")
    text = text.strip()
    parts = tuple(_part(file) for file in (*objects_of(found, "attachments"), *objects_of(found, "files")))
    calls = tuple(_call(block, number) for number, block in enumerate(blocks) if block.raw("type") == "tool_use")
    if not text and not parts and not calls:
        return NO_WORDS
    role = found.word("sender", ("human", "assistant"))
    return ImportedMessage(
        where,
        thread,
        "user" if role == "human" else "assistant",
        text,
        any_moment(found.raw("created_at"), "created_at", reading.zone),
        found.text("uuid"),
        parts=parts,
        kind=None if text or not parts else parts[0].type,
        metadata=filled(title=title),
        tool_calls=calls,
    )


def _part(file: Fields) -> Part:
    """Return an attached file. Pasted text has no name: only its words."""
    words = name_of(file, "extracted_content")
    return attachment(
        name_of(file, "file_name") or ("pasted text" if words else None),
        file.raw("file_type") if "/" in str(file.raw("file_type")) else None,
        size=file.raw("file_size"),
        text=words,
    )


def _call(block: Fields, number: int) -> ToolCall:
    arguments = json.dumps(block.raw("input"), ensure_ascii=False)
    return ToolCall(name_of(block, "id") or f"call-{number}", name_of(block, "name") or "tool", arguments)
