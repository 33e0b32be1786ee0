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
from aforesaid.portability.formats.base import Format, attachment, each, filled, lines, paragraphs, placed, shown_branch
from aforesaid.portability.import_items import NO_WORDS, REPLACED, ImportedMessage, Item, Skipped
from aforesaid.portability.json_stream import Fields

_UNSEEN: Final = "This block is not supported on your current device yet."
"""What stands in `text` for something that is only in `content`."""
_HEADING: Final = re.compile(r"\*\*[^*]+\*\*:?")
"""A line of its own above paragraphs: `**Work context**`."""


class Claude(Format):
    app = "claude"
    _newest: datetime | None = None
    """The time of the newest message so far."""

    def files(self) -> list[str]:
        others = self.source.called("memories.json", "projects.json", "users.json")
        talks = self.source.named(".json", start="conversations")
        talks = talks or [name for name in self.source.names[:1] if name not in others]
        return [*talks, *self.source.called("memories.json"), *self.source.called("projects.json")]

    def items(self, name: str) -> Iterator[Item]:
        file = name.rpartition("/")[2].lower()
        self.record_name = {"memories.json": "memories", "projects.json": "project"}.get(file, "conversation")
        for item in super().items(name):
            if isinstance(item, ImportedMessage) and item.at is not None:
                self._newest = item.at if self._newest is None else max(self._newest, item.at)
            yield item

    def record(self, found: Fields, where: str) -> Item | Iterator[Item]:
        if self.record_name == "project":
            return Skipped("projects and their documents")
        return self._memories(found, where) if self.record_name == "memories" else self._conversation(found, where)

    def _memories(self, found: Fields, where: str) -> Iterator[Item]:
        """Yield a memory for each paragraph of what Claude remembers: from all chats, and from those of projects."""
        at = self.moment(found.raw("updated_at"), "updated_at") or self._newest
        if at is None:
            raise InvalidInput("only the conversations say when Claude remembered this; import the whole export")
        texts: list[tuple[object, str]] = [(found.words("conversations_memory"), "claude")]
        texts += [(text, "project") for text in found.inner("project_memories").values.values()]
        for text, tag in texts:
            for words in paragraphs(text):
                if not _HEADING.fullmatch(words):
                    yield self.memory(where, words, at, [tag])

    def _conversation(self, found: Fields, where: str) -> Iterator[Item]:
        thread = f"claude:{found.text('uuid')}"
        entries = found.items("chat_messages")
        messages = [entry for entry in entries if isinstance(entry, dict)]
        parents = {str(message.get("uuid")): message.get("parent_message_uuid") for message in messages}
        shown = set(parents)
        if all(isinstance(message.get("parent_message_uuid"), str) for message in messages):
            shown = set(shown_branch(parents, found.raw("current_leaf_message_uuid")))
        for _ in range(len(messages) - len(shown)):
            yield REPLACED
        kept = [entry for entry in entries if not isinstance(entry, dict) or str(entry.get("uuid")) in shown]
        yield from each(placed(kept, where), partial(self._message, thread, found.words("name")), "the message")

    def _message(self, thread: str, title: str | None, found: Fields, where: str) -> Item:
        blocks = found.objects("content")
        said = lines(*(block.words("text") for block in blocks if block.raw("type") == "text"))
        text = said or found.words("text") or ""
        text = text.replace(f"```\n{_UNSEEN}\n```", "").replace(_UNSEEN, "").strip()
        parts = tuple(_part(file) for file in (*found.objects("attachments"), *found.objects("files")))
        calls = tuple(
            ToolCall(
                block.words("id") or f"call-{number}",
                block.words("name") or "tool",
                json.dumps(block.raw("input"), ensure_ascii=False),
            )
            for number, block in enumerate(blocks)
            if block.raw("type") == "tool_use"
        )
        if not text and not parts and not calls:
            return NO_WORDS
        role = found.word("sender", ("human", "assistant"))
        return ImportedMessage(
            where,
            thread,
            "user" if role == "human" else "assistant",
            text,
            self.moment(found.raw("created_at"), "created_at"),
            found.text("uuid"),
            parts=parts,
            kind=None if text or not parts else parts[0].type,
            metadata=filled(title=title),
            tool_calls=calls,
        )


def _part(file: Fields) -> Part:
    """Return an attached file. Pasted text has no name: only its words."""
    words = file.words("extracted_content")
    return attachment(
        file.words("file_name") or ("pasted text" if words else None),
        file.raw("file_type") if "/" in str(file.raw("file_type")) else None,
        size=file.raw("file_size"),
        text=words,
    )
