"""LangChain's message histories and LangGraph's stores, as JSON or as SQLite databases.

Histories: `messages_to_dict` (what `FileChatMessageHistory` writes), serialised messages, the messages of a graph's
state, and the table of `SQLChatMessageHistory`. Stores: the items of a `BaseStore`, and the table of `SqliteStore`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aforesaid.domain.checks import Role
from aforesaid.domain.details import ToolCall
from aforesaid.errors import InvalidInput, quoted
from aforesaid.portability.formats import openai
from aforesaid.portability.import_items import (
    NO_WORDS,
    ImportedMessage,
    ImportedRow,
    Item,
    Problem,
    ReadOptions,
    Skipped,
    imported_memory,
    metadata_tags,
    numbered,
)
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_stream import parsed
from aforesaid.portability.reader_helpers import (
    Ids,
    any_moment,
    each,
    file_objects,
    mapping_of,
    name_of,
    objects_of,
    parts_text,
    placed,
    until_damaged,
)
from aforesaid.portability.row_codec import Fields

if TYPE_CHECKING:
    import sqlite3

SQLITE: Final = b"SQLite format 3\x00"
_ROLES: Final[dict[str, Role]] = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
}
_REMOVED: Final = ("remove", "RemoveMessage")
_TIMES: Final = ("timestamp", "created_at", "time", "date")
_GENERIC: Final = frozenset(
    {"memories", "memory", "users", "user", "facts", "profile", "profiles", "store", "default", "app", "agent"}
)
"""Words in a namespace that name no user."""
_TEXTS: Final = ("content", "text", "memory", "data", "fact", "value", "summary")


def read(source: Source, reading: ReadOptions) -> Iterator[Item]:
    """Yield messages and memories."""
    for name in source.named(".json", ".jsonl", ".db", ".sqlite", ".sqlite3") or source.names[:1]:
        head = source.head(name)
        if head.startswith(SQLITE):
            with source.on_disk(name) as path:
                yield from numbered(_database(path, reading))
            continue
        with source.open(name) as stream:
            reader = partial(_entry, _talk(name), Ids("langchain"), reading)
            yield from numbered(until_damaged(each(file_objects(stream, head), reader)))


def _talk(name: str) -> str:
    stem = name.rpartition("/")[2].rpartition(".")[0] or name
    return f"langchain:{stem}"[:255]


def _entry(thread: str, ids: Ids, reading: ReadOptions, found: Fields, where: str) -> Iterator[Item]:
    """Yield a message, an item of a store, or the messages of a history or a graph's state."""
    if found.has("namespace") and found.has("key"):
        yield _memory(found.items("namespace"), found, reading, where)
        return
    values = found.raw("values") if isinstance(found.raw("values"), dict) else found.raw_all()
    messages = values.get("messages")
    if isinstance(messages, list):
        own = name_of(found, "thread_id", "session_id")
        talk = thread if own is None else f"langchain:{own}"[:255]
        yield from each(placed(messages, where), partial(_message, talk, ids, reading))
        return
    yield _message(thread, ids, reading, found, where)


def _message(thread: str, ids: Ids, reading: ReadOptions, found: Fields, where: str) -> Item:
    kind, data = _unwrapped(found)
    if kind in _REMOVED:
        return Skipped("messages that were removed from a history")
    role = _ROLES.get(kind)
    if kind in ("chat", "ChatMessage"):
        role = _ROLES.get(str(data.raw("role")).casefold(), "user")
    if role is None:
        raise InvalidInput(f"the type of the message is {quoted(kind)}; it must be one of {', '.join(_ROLES)}")
    content = data.raw("content")
    text, parts = parts_text(content), openai.media_parts(content)
    calls = _calls(data)
    if not text.strip() and not parts and not calls:
        return NO_WORDS
    more = {**mapping_of(data, "additional_kwargs"), **mapping_of(data, "response_metadata")}
    at = next((any_moment(more[name], name, reading.zone) for name in _TIMES if more.get(name) is not None), None)
    return ImportedMessage(
        where,
        thread,
        role,
        text,
        at,
        name_of(data, "id") or ids.of(at, thread, role, text, *(call.id for call in calls)),
        name=name_of(data, "name") if role == "user" else None,
        parts=parts,
        tool_calls=calls,
        tool_call_id=name_of(data, "tool_call_id") if role == "tool" else None,
    )


def _unwrapped(found: Fields) -> tuple[str, Fields]:
    """Return the type of a message in any of its forms, and the object with its fields."""
    if found.has("lc"):
        names = found.items("id")
        kind = str(names[-1] if names else "").removesuffix("Chunk").removesuffix("Message").casefold()
        return kind, Fields(found.raw("kwargs") or {}, "kwargs")
    kind = str(found.raw("type") or found.raw("role")).removesuffix("MessageChunk").casefold()
    return kind, Fields(found.raw("data"), "data") if found.has("data") else found


def _calls(data: Fields) -> tuple[ToolCall, ...]:
    calls = [
        ToolCall(name_of(call, "id") or f"call-{number}", name_of(call, "name") or "tool", _as_json(call.raw("args")))
        for number, call in enumerate(objects_of(data, "tool_calls"), 1)
        if call.has("name")
    ]
    return tuple(calls) or openai.tool_calls(Fields(mapping_of(data, "additional_kwargs")))


def _as_json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value or {}, ensure_ascii=False)


def _memory(namespace: Iterable[object], found: Fields, reading: ReadOptions, where: str) -> Item:
    value = found.raw("value")
    text = _words(value)
    if not text:
        return Skipped("entries without text")
    at = any_moment(found.raw("created_at") or found.raw("updated_at"), "created_at", reading.zone)
    if at is None:
        raise InvalidInput("created_at is missing")
    names = [str(name) for name in namespace]
    user = next((name for name in reversed(names) if name.casefold() not in _GENERIC), reading.user)
    rest = {key: item for key, item in value.items() if key not in (*_TEXTS, "kind")} if isinstance(value, dict) else {}
    row = imported_memory(
        text,
        user,
        at,
        space=reading.space,
        extractor="langgraph",
        tags=[*(name for name in names if name != user), *metadata_tags(rest)],
        seen_at=any_moment(found.raw("updated_at"), "updated_at", reading.zone),
    )
    return ImportedRow(where, row)


def _words(value: object) -> str:
    """Return the words of a stored value: those of the field that usually has them, or all of it as JSON."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        for name in _TEXTS:
            inner = value.get(name)
            if isinstance(inner, str) and inner.strip():
                return inner.strip()
            if isinstance(inner, Mapping) and (words := _words(inner)):
                return words
    return json.dumps(value, ensure_ascii=False) if value else ""


def _database(path: Path, reading: ReadOptions) -> Iterator[Item]:
    """Read the tables of a SQLite database that LangChain or LangGraph made. Nothing is written to it."""
    import sqlite3  # noqa: PLC0415 - loaded on first use

    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if "message_store" in tables:
                yield from _history(connection, reading)
            if "store" in tables:
                yield from _store(connection, reading)
            if not tables & {"message_store", "store"}:
                raise InvalidInput(
                    f"{path.name} has neither the table `message_store` (LangChain) nor `store` (LangGraph). "
                    "A store of Aforesaid is copied with `aforesaid migrate`"
                )
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise InvalidInput(f"{path.name} cannot be read as a SQLite database: {error}") from None


def _history(connection: sqlite3.Connection, reading: ReadOptions) -> Iterator[Item]:
    ids = Ids("langchain")
    for number, session, message in connection.execute("SELECT id, session_id, message FROM message_store ORDER BY id"):
        where = f"row {number} of message_store"
        try:
            yield _message(f"langchain:{session}"[:255], ids, reading, Fields(parsed(message)), where)
        except InvalidInput as error:
            yield Problem(where, str(error))


def _store(connection: sqlite3.Connection, reading: ReadOptions) -> Iterator[Item]:
    rows = connection.execute("SELECT prefix, key, value, created_at, updated_at FROM store ORDER BY prefix, key")
    for prefix, key, value, created, updated in rows:
        where = f"{prefix} {key} of store"
        try:
            found: dict[str, Any] = {"value": parsed(value), "created_at": _utc(created), "updated_at": _utc(updated)}
            yield _memory(str(prefix).split("."), Fields(found), reading, where)
        except InvalidInput as error:
            yield Problem(where, str(error))


def _utc(value: object) -> object:
    """Return a time that SQLite wrote, which is in UTC and does not say so."""
    return f"{value}+00:00" if isinstance(value, str) and "+" not in value and not value.endswith("Z") else value
