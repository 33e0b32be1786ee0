"""What the adapters have in common: calls, conversations, documents, vectors."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

import numpy as np

from aforesaid.blocking import unwrapped
from aforesaid.domain import checks
from aforesaid.domain.checks import Within
from aforesaid.domain.details import Part, ToolCall
from aforesaid.domain.message import Message
from aforesaid.domain.receipt import BatchReceipt
from aforesaid.domain.setting import ENABLED
from aforesaid.domain.thread import Thread
from aforesaid.errors import InvalidInput, NotFound
from aforesaid.memory import Memory, UserMemory

if TYPE_CHECKING:
    from aforesaid import _sync_types as types


T = TypeVar("T")
Target = TypeVar("Target", Memory, UserMemory)

AnyMemory: TypeAlias = "Memory | types.SyncMemory"
"""A memory from `aforesaid.open` or `aforesaid.connect`."""
AnyUser: TypeAlias = "UserMemory | types.SyncUserMemory"
"""The memory of one user: `memory.user(…)` of either."""


class MustBeAwaited(InvalidInput, asyncio.InvalidStateError):
    """A sync method was called for a memory from `aforesaid.connect`.

    It is an InvalidStateError too: LangGraph's async stores raise that for sync calls on their event loop.
    """


class Calls(Generic[Target]):
    """Calls methods of one memory. `target` is its async form."""

    def __init__(self, memory: object, kind: type[Target]) -> None:
        """Raise InvalidInput if it is neither the sync nor the async form of `kind`."""
        target, self._loop = unwrapped(memory)
        if not isinstance(target, kind):
            wanted = {"UserMemory": "memory.user(…)", "Memory": "the memory from aforesaid.open or aforesaid.connect"}
            raise InvalidInput(f"pass {wanted[kind.__name__]}, not {type(memory).__name__}", "memory")
        self.target: Target = target
        self._home: asyncio.AbstractEventLoop | None = None

    @property
    def blocks(self) -> bool:
        """Whether it can be called from sync code."""
        return self._loop is not None

    def run(self, call: Callable[[Target], Awaitable[T]]) -> T:
        """Call from sync code. Raises MustBeAwaited for a memory that was opened with `connect`."""
        if self._loop is None:
            raise MustBeAwaited(
                "this memory was opened with aforesaid.connect and can only be awaited; for sync calls, open it with "
                "aforesaid.open",
                "memory",
            )
        return self._loop.run(lambda: call(self.target))

    async def wait(self, call: Callable[[Target], Awaitable[T]]) -> T:
        """Call from async code. Raises InvalidInput if the memory lives on another event loop."""
        if self._loop is not None:
            return await self._loop.wait(lambda: call(self.target))
        here = asyncio.get_running_loop()
        self._home = self._home or here
        if self._home is not here:
            raise InvalidInput(
                "this memory was opened with aforesaid.connect on another event loop; to use it from several, open it "
                "with aforesaid.open",
                "memory",
            )
        return await call(self.target)


def packed(vector: Sequence[float]) -> str:
    """Return a vector as text: base64 of 32-bit floats."""
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


def unpacked(text: str) -> list[float]:
    """Return the vector in a text that `packed` made."""
    return [float(value) for value in np.frombuffer(base64.b64decode(text), dtype="<f4")]


def similarity(query: Sequence[float], vectors: Sequence[str]) -> float:
    """Return the cosine similarity of a query and the nearest of packed vectors."""
    asked = np.asarray(query, dtype=np.float64)
    rows = np.stack([np.frombuffer(base64.b64decode(each), dtype="<f4") for each in vectors]).astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(asked)
    return float(np.divide(rows @ asked, lengths, out=np.zeros(len(rows)), where=lengths > 0).max())


_PAGE: Final = 1_000
"""Number of messages read at once."""
_OF_THE_FRAMEWORK: Final = ("system", "persona", "habits", "recent", "date")
"""Sections of a context that a framework's own prompt is for."""
_NOTHING_REMEMBERED: Final = frozenset({"rules", "current"})
"""Sections that say nothing about anybody."""
_SHARED: Final = "aforesaid_text"
"""The key in the metadata of a message for what belongs to its text: see `_stored_once`."""
_LONG: Final = 1_000
"""Number of characters from which on a text is not stored a second time in the framework's form of the message."""


async def own_messages(user: UserMemory, limit: int | None = None) -> list[Message]:
    """Return the newest `limit` messages of the user in the thread, or all of them, oldest first.

    Other people's messages in the thread are left out: a framework's session belongs to one user.
    """
    found: list[Message] = []
    before: Message | None = None
    while limit is None or len(found) < limit:
        size = _PAGE if limit is None else min(_PAGE, limit)
        page = await user.history(size, before=before, within="thread")
        found[:0] = [whole_message(message) for message in page if message.user == user.scope.user]
        if len(page) < size:
            break
        before = page[0]
    return found if limit is None else found[max(0, len(found) - limit) :]


async def add_all(user: UserMemory, messages: Sequence[Mapping[str, Any]]) -> None:
    """Store messages, given as arguments of `add`, all of them or none.

    A text that is longer than a message may be is stored in the metadata, and its beginning as the text.
    """
    if messages:
        limit = text_limit(user)
        await user.add_many([_stored_once(each, limit) for each in messages])


async def replace_all(
    user: UserMemory,
    messages: Sequence[T],
    as_framework: Callable[[Message], T],
    as_arguments: Callable[[T], Mapping[str, Any]],
) -> None:
    """Make a framework's messages those of the user in the thread.

    Stored messages that they begin with stay, the others are taken back, and the rest of `messages` is stored.
    """
    stored = await own_messages(user)
    same = 0
    while same < min(len(stored), len(messages)) and as_framework(stored[same]) == messages[same]:
        same += 1
    for old in reversed(stored[same:]):
        await user.take_back(old)
    await add_all(user, [as_arguments(each) for each in messages[same:]])


async def take_back_last(user: UserMemory) -> Message | None:
    """Take back the user's newest message in the thread and return it, or None if there is none."""
    found = await own_messages(user, 1)
    if not found:
        return None
    await user.take_back(found[0])
    return found[0]


async def clear(user: UserMemory) -> None:
    """Take back all messages of the user in the thread."""
    await user.clear()


async def all_threads(user: UserMemory) -> list[Thread]:
    """Return the threads that contain messages of the user."""
    found: list[Thread] = []
    while page := await user.threads(_PAGE, before=found[-1] if found else None):
        found += page
        if len(page) < _PAGE:
            break
    return [thread for thread in found if thread.messages]


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call as a JSON object; other texts as its `input`."""
    found = checks.json_object(call.arguments)
    return {"input": call.arguments} if found is None else found


def labels(name: str) -> list[str]:
    """Return the labels that the name of a thread or of a chat consists of, as compact JSON; none for other names."""
    try:
        found = json.loads(name) if name.startswith('["') else []
    except ValueError:
        return []
    texts = [each for each in found if isinstance(each, str)]
    return texts if texts == found else []


def placeholder(kind: str) -> Part:
    """Return the part of a message that has nothing to read, such as encrypted reasoning: a message needs something."""
    return Part("file", name=kind, media_type="application/json")


def with_original(new: dict[str, Any], framework: str, kind: str, original: object) -> dict[str, Any]:
    """Add a framework's own form of a message, as JSON, to the arguments of `add`."""
    whole = {**new, "metadata": {framework: original}}
    if not any(new.get(name) for name in ("text", "parts", "tool_calls", "tool_call_id")):
        whole["parts"] = [placeholder(kind)]
    return whole


def original(message: Message, framework: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the framework's own form of a whole message, or None for a message from elsewhere."""
    metadata: Any = message.metadata
    for path in metadata.get(_SHARED, {}).get("at", ()):
        place = metadata
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = message.text
    return metadata.get(framework)


def whole_message(message: Message) -> Message:
    """Return a message with its whole text, also if only the beginning of it is the text of the stored message."""
    if message.details is None or _SHARED not in message.details:
        return message
    shared: Any = message.metadata.get(_SHARED, {})
    text = shared.get("text", "")
    return replace(message, text=text) if message.text == text[: shared.get("characters", 0)] != "" else message


def text_limit(user: UserMemory) -> int:
    """Return the maximum number of bytes of a message's text."""
    return user._services.profile.message_bytes  # noqa: SLF001 - no part of the public API needs it


def _stored_once(new: Mapping[str, Any], limit: int) -> Mapping[str, Any]:
    """Return the arguments of `add` with a long text in one place only.

    Where the framework's form has the same text, it gets None and the path is stored: `at`. If the text is too long for
    a message, the whole is stored as well (`text`) and the length of the beginning (`characters`), by which an edited
    message is recognised.
    """
    text, metadata = new.get("text") or "", new.get("metadata") or {}
    shared: dict[str, Any] = {}
    if len(text) >= _LONG and (paths := list(_paths(metadata, text))):
        shared["at"] = paths
        metadata = _without(metadata, text)
    short = checks.beginning(text, limit)
    if short != text:
        shared |= {"text": text, "characters": len(short)}
    return {**new, "text": short, "metadata": {**metadata, _SHARED: shared}} if shared else new


def _paths(value: object, text: str) -> Iterator[list[str | int]]:
    """Yield the path of every place in a JSON value that holds a text."""
    if value == text:
        yield []
    elif isinstance(value, Mapping | list | tuple):
        for step, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from ([step, *path] for path in _paths(item, text))


def _without(value: Any, text: str) -> Any:  # noqa: ANN401 - any JSON
    """Return a copy of a JSON value with None in place of a text."""
    if isinstance(value, Mapping):
        return {name: _without(item, text) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without(item, text) for item in value]
    return None if value == text else value


async def recalled(user: UserMemory, question: str, budget: int) -> str:
    """Return what is remembered for a question, as text for a system prompt of at most `budget` tokens.

    It is empty if nothing is remembered. The last messages are not in it, because a framework sends them itself.
    """
    if not question.strip():
        return ""
    context = await user.context(question, budget, without=_OF_THE_FRAMEWORK)
    if all(item.section in _NOTHING_REMEMBERED for item in context.items):
        return ""
    return "\n\n".join(str(each["content"]) for each in context.messages if each["role"] == "system")


_KEY: Final = "key"
_VALUE: Final = "value"
_KIND: Final = "document"
"""Number of threads, hits or messages read at once."""
_FEW: Final = 8
"""Collections that are read one by one. For more, all documents of the user are read at once."""
_ID_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Document:
    """A stored document."""

    collection: str
    key: str
    value: Any
    created_at: datetime
    updated_at: datetime
    seq: int
    """The sequence number of its newest version."""


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document to store. `text` is what searches find it by; without one they do not find it.

    Of a text that is longer than that of a message may be, the beginning is used.
    """

    key: str
    value: Any
    text: str = ""
    about: str | None = None
    """The user whom it is about, as `author` of its message: purging that user erases it, whoever owns it."""


class Collection:
    """The documents that a user has in one thread. Its methods must be called on the event loop of the memory."""

    def __init__(self, user: UserMemory) -> None:
        self._user = user

    async def get(self, key: str) -> Document | None:
        """Return a document, or None."""
        message = await self._message(key)
        return None if message is None else _document(message)

    async def put(self, documents: Sequence[NewDocument]) -> None:
        """Store documents with different keys, all of them or none."""
        if (await self._store(documents)).duplicates:
            # Another program has just stored a document of the same name: these become the next versions.
            await self._store(documents)

    async def delete(self, key: str) -> bool:
        """Take a document back. Returns whether it existed."""
        message = await self._message(key)
        if message is not None:
            await self._user.take_back(message)
        return message is not None

    async def clear(self) -> None:
        """Take back all documents, all of them or none."""
        await self._user.clear()

    async def all(self) -> list[Document]:
        """Return all documents, the first created first."""
        return list(_documents(await own_messages(self._user)))

    async def search(self, query: str) -> list[tuple[float, Document]]:
        """Return documents by words and meaning, with their scores, best first."""
        return await _search(self._user, query)

    async def _store(self, documents: Sequence[NewDocument]) -> BatchReceipt:
        new = [self._arguments(document, await self._message(document.key, versions=True)) for document in documents]
        return await self._user.add_many(new)

    def _arguments(self, document: NewDocument, earlier: Message | None) -> dict[str, Any]:
        return {
            "role": "system",
            "text": checks.beginning(document.text, text_limit(self._user)),
            "kind": _KIND,
            "metadata": {_KEY: document.key, _VALUE: document.value},
            "parts": () if document.text else (placeholder(_KIND),),
            "author": document.about,
            **({"id": self._id(document.key)} if earlier is None else {"replaces": earlier}),
        }

    def _id(self, key: str) -> str:
        """Return the message id of a document. Keys may be longer than ids, and contain what ids cannot."""
        name = f"{self._user.scope.user}\0{key}".encode(errors="surrogatepass")
        return f"document-{blake2b(name, digest_size=_ID_BYTES).hexdigest()}"

    async def _message(self, key: str, *, versions: bool = False) -> Message | None:
        """Return the message of a document; with `versions` its first one, also if it is replaced or taken back."""
        try:
            return await self._user.message(self._id(key), within="thread", versions=versions)
        except NotFound:
            return None


class Documents:
    """The collections of a user. Its methods must be called on the event loop of the memory.

    With `learn=False`, for a user who owns nothing else, no summaries and memories are made: nobody said the documents.
    """

    def __init__(self, memory: Memory, user: str, space: str, *, learn: bool) -> None:
        self._memory = memory
        self._names = user, space
        self._must_switch_off = not learn

    def collection(self, name: str) -> Collection:
        """Return a collection. It exists as soon as it contains a document."""
        return Collection(self._handle(name))

    async def put(self, collection: str, documents: Sequence[NewDocument]) -> None:
        """Store documents of one collection, all of them or none."""
        if self._must_switch_off:
            user = self._handle()
            if (await user.settings()).get(ENABLED) is not False:
                await user.set(ENABLED, False)
            self._must_switch_off = False
        await self.collection(collection).put(documents)

    async def collections(self) -> list[str]:
        """Return the names of the threads that contain documents, or other messages of the user."""
        return [thread.id for thread in await all_threads(self._handle())]

    async def all(self, collections: Sequence[str]) -> list[Document]:
        """Return the documents of several collections, the first created first."""
        if len(collections) <= _FEW:
            found = [each for name in collections for each in await self.collection(name).all()]
            return sorted(found, key=lambda each: (each.created_at, each.seq))
        wanted = set(collections)
        return [each for each in _documents(await self._everything()) if each.collection in wanted]

    async def search(self, collections: Sequence[str], query: str) -> list[tuple[float, Document]]:
        """Return documents of several collections by words and meaning, with their scores, best first."""
        if len(collections) == 1:
            return await self.collection(collections[0]).search(query)
        wanted = set(collections)
        found = await _search(self._handle(), query, within="user")
        return [(score, each) for score, each in found if each.collection in wanted]

    def _handle(self, thread: str | None = None) -> UserMemory:
        user, space = self._names
        return self._memory.user(user, space=space, thread=thread)

    async def _everything(self) -> list[Message]:
        user = self._handle()
        found: list[Message] = []
        before = None
        while page := await user.history(_PAGE, before=before):
            found[:0] = page
            before = page[0]
            if len(page) < _PAGE:
                break
        return found


def named_user(path: Sequence[str], key: str | None = None) -> str | None:
    """Return the user whom a path of labels names in one of the usual ways; None if it names none.

    These are `("users", "ann")`, `("memories", "ann")` and `("ann", "memories")`, each with further labels, and
    `("users",)` with the user as the `key`.
    """
    for place, label in enumerate(path):
        after = path[place + 1] if place + 1 < len(path) else None
        if label in {"user", "users"}:
            return _user(after or key)
        if label == "memories":
            return _user(path[place - 1] if place else after)
    return None


def _user(name: str | None) -> str | None:
    return name if name is not None and checks.are_identifiers([name]) else None


def readable(value: object) -> str:
    """Return the texts and numbers in a JSON value, one below the other: what searches should find it by."""
    return "\n".join(_leaves(value))


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from [value] if value.strip() else []
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(item)
    elif value is not None:
        yield json.dumps(value)


async def _search(user: UserMemory, query: str, *, within: Within = "thread") -> list[tuple[float, Document]]:
    hits = await user.search(query, _PAGE, within=within, kinds=("message",), min_score=0.0)
    return [(hit.score, each) for hit in hits if hit.message for each in _documents([hit.message])]


def _documents(messages: Iterable[Message]) -> Iterator[Document]:
    return (_document(message) for message in messages if message.kind == _KIND)


def _document(message: Message) -> Document:
    metadata = message.metadata
    return Document(message.thread, str(metadata[_KEY]), metadata[_VALUE], message.at, message.stored_at, message.seq)
