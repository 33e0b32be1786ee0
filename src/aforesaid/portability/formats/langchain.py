"""LangChain's message histories and LangGraph's stores, as JSON or as SQLite databases.

Histories: `messages_to_dict` (what `FileChatMessageHistory` writes), serialised messages, the messages of a graph's
state, and the table of `SQLChatMessageHistory`. Stores: the items of a `BaseStore`, and the table of `SqliteStore`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import IO, Final

from aforesaid.domain.checks import Role
from aforesaid.domain.details import ToolCall
from aforesaid.errors import InvalidInput, quoted
from aforesaid.portability.formats import openai
from aforesaid.portability.formats.base import (
    Entry,
    Format,
    Ids,
    each,
    entry_of,
    file_objects,
    metadata_tags,
    parts_text,
    placed,
)
from aforesaid.portability.import_items import NO_WORDS, ImportedMessage, Item, Skipped
from aforesaid.portability.json_stream import Damaged, Fields

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
_HISTORY: Final = "SELECT id, session_id, message FROM message_store ORDER BY id"
_STORE: Final = "SELECT prefix, key, value, created_at, updated_at FROM store ORDER BY prefix, key"
_TEXTS: Final = ("content", "text", "memory", "data", "fact", "value", "summary")


class LangChain(Format):
    app = "langgraph"  # the origin of memories, which LangGraph's stores have
    endings = (".json", ".jsonl", ".db", ".sqlite", ".sqlite3")
    _thread = ""

    def items(self, name: str) -> Iterator[Item]:
        self._thread = f"langchain:{name.rpartition('/')[2].rpartition('.')[0] or name}"[:255]
        self.ids = Ids("langchain")
        if not self.source.head(name).startswith(SQLITE):
            yield from super().items(name)
            return
        with self.source.on_disk(name) as path:
            yield from self._database(path)

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:
        return file_objects(stream, self.source.head(name))

    def record(self, found: Fields, where: str) -> Item | Iterator[Item]:
        """Return a message, an item of a store, or the messages of a history or a graph's state."""
        if found.has("namespace") and found.has("key"):
            return self._memory(found, where)
        values = found.inner("values") if isinstance(found.raw("values"), dict) else found
        messages = values.raw("messages")
        if isinstance(messages, list):
            own = found.words("thread_id", "session_id")
            talk = self._thread if own is None else f"langchain:{own}"[:255]
            return each(placed(messages, where), partial(self._message, talk), "the message")
        return self._message(self._thread, found, where)

    def _message(self, thread: str, found: Fields, where: str) -> Item:
        if found.has("lc"):
            names, data = found.items("id"), Fields(found.raw("kwargs") or {}, "kwargs")
            kind = str(names[-1] if names else "").removesuffix("Chunk").removesuffix("Message").casefold()
        else:
            kind = str(found.raw("type") or found.raw("role")).removesuffix("MessageChunk").casefold()
            data = Fields(found.raw("data"), "data") if found.has("data") else found
        if kind in _REMOVED:
            return Skipped("messages that were removed from a history")
        role = _ROLES.get(kind)
        if kind in ("chat", "ChatMessage"):
            role = _ROLES.get(str(data.raw("role")).casefold(), "user")
        if role is None:
            raise InvalidInput(f"the type of the message is {quoted(kind)}; it must be one of {', '.join(_ROLES)}")
        content = data.raw("content")
        text, parts, calls = parts_text(content), openai.media_parts(content), _calls(data)
        if not text.strip() and not parts and not calls:
            return NO_WORDS
        more = {**data.inner("additional_kwargs").values, **data.inner("response_metadata").values}
        at = next((self.moment(more[name], name) for name in _TIMES if more.get(name) is not None), None)
        return ImportedMessage(
            where,
            thread,
            role,
            text,
            at,
            data.words("id") or self.ids.of(at, thread, role, text, *(call.id for call in calls)),
            name=data.words("name") if role == "user" else None,
            parts=parts,
            tool_calls=calls,
            tool_call_id=data.words("tool_call_id") if role == "tool" else None,
        )

    def _memory(self, found: Fields, where: str) -> Item:
        value = found.raw("value")
        text = _words(value)
        if not text:
            return Skipped("entries without text")
        names = [str(name) for name in found.items("namespace")]
        user = next((name for name in reversed(names) if name.casefold() not in _GENERIC), self.reading.user)
        rest = {key: item for key, item in found.inner("value").values.items() if key not in (*_TEXTS, "kind")}
        return self.memory(
            where,
            text,
            self.moment(found.raw("created_at") or found.raw("updated_at"), "created_at"),
            [*(name for name in names if name != user), *metadata_tags(rest)],
            user=user,
            seen_at=self.moment(found.raw("updated_at"), "updated_at"),
        )

    def _database(self, path: Path) -> Iterator[Item]:
        """Read the tables of a SQLite database that LangChain or LangGraph made. Nothing is written to it."""
        import sqlite3  # noqa: PLC0415 - loaded on first use

        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
                for number, session, message in connection.execute(_HISTORY) if "message_store" in tables else ():
                    entry = entry_of(f"row {number} of message_store", message)
                    yield from each([entry], partial(self._message, f"langchain:{session}"[:255]))
                for prefix, key, value, *times in connection.execute(_STORE) if "store" in tables else ():
                    where, found = entry_of(f"{prefix} {key} of store", value)
                    # SQLite wrote the times in UTC, and does not say so.
                    created, updated = (
                        f"{at}+00:00" if isinstance(at, str) and "+" not in at and not at.endswith("Z") else at
                        for at in times
                    )
                    if not isinstance(found, Damaged):
                        names = str(prefix).split(".")
                        found = {"namespace": names, "value": found, "created_at": created, "updated_at": updated}
                    yield from each([(where, found)], self._memory)
                if not tables & {"message_store", "store"}:
                    raise InvalidInput(
                        f"{path.name} has neither the table `message_store` (LangChain) nor `store` (LangGraph). "
                        "A store of Aforesaid is copied with `aforesaid migrate`"
                    )
        except sqlite3.Error as error:
            raise InvalidInput(f"{path.name} cannot be read as a SQLite database: {error}") from None


def _calls(data: Fields) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for number, call in enumerate(data.objects("tool_calls"), 1):
        if call.has("name"):
            given = call.raw("args")
            arguments = given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)
            calls.append(ToolCall(call.words("id") or f"call-{number}", call.words("name") or "tool", arguments))
    return tuple(calls) or openai.tool_calls(data.inner("additional_kwargs"))


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
