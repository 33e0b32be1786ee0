"""Messages and memories of frameworks and of their stores: OpenAI's messages, LangChain and LangGraph, mem0, Letta."""

from __future__ import annotations

import io
import json
import mimetypes
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from datetime import datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import IO, Final

from aforesaid.domain.checks import Role, json_object
from aforesaid.domain.details import Part, ToolCall
from aforesaid.errors import InvalidInput, quoted
from aforesaid.extras import re
from aforesaid.portability.formats.base import (
    HIDDEN,
    NO_WORDS,
    NOTICE,
    Entry,
    Format,
    Ids,
    ImportedMessage,
    Item,
    ReadOptions,
    Skipped,
    attachment,
    each,
    entry_of,
    file_objects,
    filled,
    line_objects,
    lines,
    metadata_tags,
    objects,
    paragraphs,
    parts_text,
    placed,
)
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_stream import Damaged, Fields, JsonStream

_TIMES: Final = ("at", "timestamp", "created_at", "created", "create_time", "time", "date")
_ROLES: Final[dict[str, Role]] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_ITEMS: Final[dict[str, Role]] = {"function_call": "assistant", "function_call_output": "tool"}
"""The roles of the items of the Responses API that have none."""

_NAMING_MESSAGES: Final = 4
"""Messages that name a conversation: with fewer, different ones with the same greeting would be one thread."""
_NAME_BYTES: Final = 12


class OpenAI(Format):
    """Messages without a conversation belong to the user's direct chat."""

    app = "openai"
    endings = (".json", ".jsonl")

    def __init__(self, source: Source, reading: ReadOptions) -> None:
        super().__init__(source, reading)
        self._names: Counter[str] = Counter()

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:
        return file_objects(stream, self.source.head(name))

    def record(self, found: Fields, where: str) -> Item | Iterator[Item]:
        """Return a message, or the messages of a conversation."""
        talk = found.words("thread", "thread_id", "conversation_id", "conversation", "session_id")
        if not found.has("messages"):
            return self._message(talk, found, where)
        messages = found.items("messages")
        if talk is None:
            # The same name when the conversation is imported again, or has grown. Conversations of one import that
            # begin in the same way are numbered in their order.
            start = json.dumps(messages[:_NAMING_MESSAGES], sort_keys=True).encode()
            talk = f"openai:{blake2b(start, digest_size=_NAME_BYTES).hexdigest()}"
            self._names[talk] += 1
            talk = talk if self._names[talk] == 1 else f"{talk}-{self._names[talk]}"
        return each(placed(messages, where), partial(self._message, talk), "the message")

    def _message(self, talk: str | None, found: Fields, where: str) -> Item:
        given = found.raw("role") or _ITEMS.get(str(found.raw("type")))
        if str(given) not in _ROLES:
            raise InvalidInput(f"role is {quoted(given)}; it must be one of {', '.join(_ROLES)}")
        role = _ROLES[str(given)]
        content = found.raw("content") if found.has("content") else found.raw("output")
        text = parts_text(content) or parts_text(found.raw("text")) or found.words("refusal") or ""
        parts = media_parts(content)
        calls = tool_calls(found)
        if not text.strip() and not parts and not calls:
            return NO_WORDS
        at = next((self.moment(found.raw(name), name) for name in _TIMES if found.has(name)), None)
        user = found.words("user", "user_id")
        metadata = found.raw("metadata")
        return ImportedMessage(
            where,
            talk or f"direct:{self.reading.user}",
            role,
            text,
            at,
            found.words("id") or self.ids.of(at, talk, role, user, text, *(call.id for call in calls)),
            user if role == "user" else None,
            found.words("name"),
            owner=user,
            parts=parts,
            tool_calls=calls,
            tool_call_id=found.words("tool_call_id", "call_id") if role == "tool" else None,
            metadata=metadata if isinstance(metadata, dict) else filled(),
        )


def media_parts(content: object) -> tuple[Part, ...]:
    """Return the pictures, recordings and files among the parts of a content. Data in the address is left out."""
    parts: list[Part] = []
    for piece in content if isinstance(content, list) else []:
        if not isinstance(piece, dict):
            continue
        match piece.get("type"):
            case "image_url" | "input_image" | "image":
                given = piece.get("image_url") or piece.get("url") or piece.get("source")
                address, media_type = _address(given.get("url") if isinstance(given, dict) else given)
                guessed = mimetypes.guess_type(address)[0] if address is not None else None
                parts.append(Part("image", url=address, media_type=media_type or guessed))
            case "input_audio" | "audio":
                sound = piece.get("input_audio")
                kind = sound.get("format", "wav") if isinstance(sound, dict) else "wav"
                parts.append(attachment(None, f"audio/{kind}", text=piece.get("transcript")))
            case "file" | "input_file":
                inner = piece.get("file")
                file = inner if isinstance(inner, dict) else piece
                name = file.get("filename") or file.get("file_id")
                parts.append(attachment(name, url=_address(file.get("file_url"))[0]))
            case _:
                pass
    return tuple(parts)


def _address(value: object) -> tuple[str | None, str | None]:
    """Return an address, or the media type of data that stands in place of one."""
    if not isinstance(value, str):
        return None, None
    if value.startswith("data:"):
        return None, value[5:].partition(";")[0] or None
    return value, None


def tool_calls(found: Fields) -> tuple[ToolCall, ...]:
    if found.raw("type") == "function_call":
        return (_call(found, found, "call"),)
    calls = [
        _call(call, call.inner("function"), f"call-{number}")
        for number, call in enumerate(found.objects("tool_calls"), 1)
    ]
    if isinstance(found.raw("function_call"), dict):
        calls.append(_call(found, found.inner("function_call"), "call"))
    return tuple(calls)


def _call(call: Fields, function: Fields, usual: str) -> ToolCall:
    number = call.words("call_id", "id") or usual
    return ToolCall(number, function.words("name") or "function", function.words("arguments") or "{}")


SQLITE: Final = b"SQLite format 3\x00"
_LANGCHAIN_ROLES: Final = {name: role for name, role in _ROLES.items() if name != "developer"}
_REMOVED: Final = ("remove", "RemoveMessage")
_LANGCHAIN_TIMES: Final = ("timestamp", "created_at", "time", "date")
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
        role = _LANGCHAIN_ROLES.get(kind)
        if kind in ("chat", "ChatMessage"):
            role = _LANGCHAIN_ROLES.get(str(data.raw("role")).casefold(), "user")
        if role is None:
            raise InvalidInput(
                f"the type of the message is {quoted(kind)}; it must be one of {', '.join(_LANGCHAIN_ROLES)}"
            )
        content = data.raw("content")
        text, parts, calls = parts_text(content), media_parts(content), _langchain_calls(data)
        if not text.strip() and not parts and not calls:
            return NO_WORDS
        more = {**data.inner("additional_kwargs").values, **data.inner("response_metadata").values}
        at = next((self.moment(more[name], name) for name in _LANGCHAIN_TIMES if more.get(name) is not None), None)
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
        text = _stored_words(value)
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


def _langchain_calls(data: Fields) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for number, call in enumerate(data.objects("tool_calls"), 1):
        if call.has("name"):
            given = call.raw("args")
            arguments = given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)
            calls.append(ToolCall(call.words("id") or f"call-{number}", call.words("name") or "tool", arguments))
    return tuple(calls) or tool_calls(data.inner("additional_kwargs"))


def _stored_words(value: object) -> str:
    """Return the words of a stored value: those of the field that usually has them, or all of it as JSON."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        for name in _TEXTS:
            inner = value.get(name)
            if isinstance(inner, str) and inner.strip():
                return inner.strip()
            if isinstance(inner, Mapping) and (words := _stored_words(inner)):
                return words
    return json.dumps(value, ensure_ascii=False) if value else ""


class Mem0(Format):
    """Memories without a user are stored for the requested user."""

    app = "mem0"
    endings = (".json", ".jsonl")

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:
        first = self.source.head(name).lstrip().partition(b"\n")[0].strip()
        if first.startswith(b"{") and first.endswith(b"}") and b'"results"' not in first:
            yield from line_objects(stream)
            return
        whole = JsonStream(stream)
        if whole.peek() == "[":
            yield from objects(whole, "memory")
            return
        for key in whole.members():
            if key in ("results", "memories") and whole.peek() == "[":
                yield from objects(whole, "memory")
            elif key == "relations" and whole.peek() == "[":
                yield from (("relation", {}) for _ in whole.elements())

    def record(self, found: Fields, where: str) -> Item:
        if where == "relation":
            return Skipped("relations of the graph: their words are in the memories")
        text = found.words("memory", "data", "text")
        if text is None:
            return Skipped("entries without text")
        origin = ((name, found.words(name)) for name in ("agent_id", "app_id", "run_id"))
        return self.memory(
            where,
            text,
            self.moment(found.raw("created_at") or found.raw("updated_at"), "created_at"),
            [
                *found.items("categories"),
                found.raw("category"),
                *metadata_tags(found.raw("metadata")),
                *(f"{name}={value}" for name, value in origin if value and found.has("user_id")),
            ],
            user=found.words("user_id", "agent_id", "run_id"),
            seen_at=self.moment(found.raw("updated_at"), "updated_at"),
            expires_at=self.moment(found.raw("expiration_date"), "expiration_date"),
        )


_SEND: Final = "send_message"
"""The tool with which agents of the older kind speak to the user. Their other text is their inner monologue."""
_ABOUT_THE_USER: Final = re.compile(
    r"(?:^|[^a-z])(?:human|users?|customer|preferences?|profile|facts|custom_instructions|archival)(?:[^a-z]|$)",
    re.IGNORECASE,
)
"""Labels of blocks about the user. Others have the agent's persona, rules and notes."""
_KEYS: Final = ("agents", "blocks", "core_memory", "messages", "name", "id", "created_at", "archival_memory")


class Letta(Format):
    app = "letta"
    endings = (".af", ".json")

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:  # noqa: ARG002
        file = JsonStream(stream)
        if file.peek() == '"':
            # Some versions write the file as JSON in a JSON text.
            file = JsonStream(io.BytesIO(str(file.value()).encode(errors="surrogatepass")))
        whole = Fields({key: file.value() for key in file.members() if key in _KEYS})
        self._blocks = {str(block.raw("id")): block for block in whole.objects("blocks")}
        self._written = whole.raw("created_at")
        for number, agent in enumerate(whole.objects("agents") or [whole], 1):
            yield f"agent {number}", agent.values

    def record(self, found: Fields, where: str) -> Iterator[Item]:
        """Yield the messages and memories of an agent."""
        thread = f"letta:{found.words('name') or found.raw('id') or 'agent'}"[:255]
        blocks = [self._blocks[key] for key in map(str, found.items("block_ids")) if key in self._blocks]
        entries = [Fields(entry) for entry in found.items("messages") if isinstance(entry, dict)]
        spoken: set[str] = set()
        for entry in entries:
            with suppress(InvalidInput):  # reported with its message
                spoken.update(call.id for call in tool_calls(entry) if call.name == _SEND)
        self.ids = Ids("letta")
        read_message = partial(self._message, thread, spoken)
        yield from each(placed(found.items("messages"), where), read_message, "the message")
        times = [str(entry.raw("created_at")) for entry in entries if entry.raw("created_at")]
        made = found.raw("created_at") or min(times, default=None) or self._written
        start = self.moment(made, "created_at")
        for block in (*blocks, *found.objects("core_memory"), *found.objects("archival_memory")):
            yield from self._block(block, start, f"{where}, block {block.raw('label') or ''}".rstrip())

    def _message(self, thread: str, spoken: set[str], found: Fields, where: str) -> Item:
        """Return a message. `spoken` has the ids of the calls with which the agent spoke to the user."""
        role = str(found.raw("role"))
        if role in ("system", "approval"):
            return HIDDEN
        at = self.moment(found.raw("created_at"), "created_at")
        content = found.raw("content")
        if isinstance(content, list):
            content = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
        text = parts_text(content) or found.words("text") or ""
        calls = tool_calls(found)
        if role == "user":
            # Older agents wrap what a user said in JSON with its time, and events such as a heartbeat.
            said = _object(text)
            if said is not None and "type" in said.values:
                if said.raw("type") != "user_message" or not isinstance(said.raw("message"), str):
                    return NOTICE
                text = said.raw("message")
        elif role == "tool":
            if found.words("name") == _SEND or found.words("tool_call_id") in spoken:
                return NOTICE
            result = _object(text)
            if result is not None and "status" in result.values and isinstance(result.raw("message"), str):
                text = result.raw("message")
        elif role == "assistant" and spoken:
            if not calls:
                return HIDDEN
            sent = [_object(call.arguments) for call in calls if call.name == _SEND]
            text = lines(*(each.words("message") for each in sent if each is not None))
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
            self.ids.of(at, thread, role, text, *(call.id for call in calls)),
            name=found.words("name") if role == "user" else None,
            parts=media_parts(found.raw("content")),
            tool_calls=calls,
            tool_call_id=found.words("tool_call_id") if role == "tool" else None,
            metadata=filled(model=found.words("model")),
        )

    def _block(self, block: Fields, start: datetime | None, where: str) -> Iterator[Item]:
        label = block.words("label") or "archival"
        if not _ABOUT_THE_USER.search(label):
            yield Skipped("memory blocks that are not about the user")
            return
        at = self.moment(block.raw("created_at"), "created_at") or start
        if at is None:
            raise InvalidInput(f"nothing in the file says when {where} was made")
        for words in paragraphs(block.words("value", "text")):
            yield self.memory(where, words, at, [label])


def _object(text: str) -> Fields | None:
    found = json_object(text) if text.lstrip().startswith("{") else None
    return None if found is None else Fields(found)
