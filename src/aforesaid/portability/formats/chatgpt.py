"""ChatGPT's export format: `conversations.json`, alone or in its zip archive.

A conversation is a tree: edited questions and regenerated answers are branches. The branch shown last is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aforesaid.domain.literals import Role
from aforesaid.errors import InvalidInput
from aforesaid.portability.import_items import ImportedMessage, Item, Problem, ReadOptions, Skipped
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_fields import Fields
from aforesaid.portability.json_stream import JsonStream
from aforesaid.portability.reader_helpers import from_seconds, objects, opened, parts_text, told

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}


def read(source: Source, _: ReadOptions) -> Iterator[Item]:
    """Yield the messages of all conversations."""
    files = [name for name in source.named(".json") if name.rpartition("/")[2].startswith("conversations")]
    for name in files or source.names[:1]:
        with source.open(name) as stream:
            yield from told(_conversations(opened(stream)))


def _conversations(stream: JsonStream) -> Iterator[Item]:
    for where, found in objects(stream, "conversation"):
        if isinstance(found, Problem):
            yield found
            continue
        try:
            yield from _messages(found, where)
        except InvalidInput as error:
            yield Problem(where, str(error))


def _messages(found: Fields, where: str) -> Iterator[Item]:
    mapping = found.needed("mapping")
    if not isinstance(mapping, dict):
        raise InvalidInput("mapping must be an object")
    thread = f"chatgpt:{found.raw('conversation_id') or found.raw('id') or found.text('title')}"
    shown = _shown(mapping, found.raw("current_node"))
    for node in shown:
        message = mapping[node].get("message")
        if message is None:
            continue
        try:
            yield _message(Fields(message, "the message"), f"{where}, message {node}", thread)
        except InvalidInput as error:
            yield Problem(f"{where}, message {node}", str(error))
    for _ in range(sum(1 for node in mapping.values() if isinstance(node, dict) and node.get("message")) - len(shown)):
        yield Skipped("answers and questions that were replaced by others")


def _shown(mapping: dict[str, Any], current: object) -> list[str]:
    """Return the nodes from the root to the message shown last."""
    if not isinstance(current, str) or current not in mapping:
        parents = {node.get("parent") for node in mapping.values() if isinstance(node, dict)}
        current = next((name for name in reversed(mapping) if name not in parents), None)
    path: list[str] = []
    seen: set[str] = set()
    while isinstance(current, str) and current in mapping and current not in seen:
        node = mapping[current]
        if not isinstance(node, dict):
            break
        seen.add(current)
        path.append(current)
        current = node.get("parent")
    return path[::-1]


def _message(found: Fields, where: str, thread: str) -> Item:
    author = Fields(found.raw("author") or {}, "the author")
    role = _ROLES.get(str(author.raw("role")))
    content = Fields(found.raw("content") or {}, "the content")
    text = parts_text(content.raw("parts")) or parts_text(content.raw("text"))
    if role is None or not text.strip():
        return Skipped("instructions, and messages without text")
    at = from_seconds(found.raw("create_time"), "create_time") if found.has("create_time") else None
    return ImportedMessage(where, thread, role, text, at, found.text("id"))
