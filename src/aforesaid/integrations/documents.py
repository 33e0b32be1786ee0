"""Named JSON documents, kept as messages: one thread per collection, one message per document.

A document that is put again becomes a new version of its message, and one that is deleted is taken back, so documents
have the durability, the search, the export and the backup of messages. See decision 42.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

from aforesaid.domain import checks
from aforesaid.domain.checks import Within
from aforesaid.domain.message import Message
from aforesaid.domain.receipt import BatchReceipt
from aforesaid.domain.setting import ENABLED
from aforesaid.errors import NotFound
from aforesaid.integrations.conversation import beginning, own_messages, placeholder, text_limit
from aforesaid.memory import Memory, UserMemory

_KEY: Final = "key"
_VALUE: Final = "value"
_KIND: Final = "document"
_PAGE: Final = 1_000
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
        message = await self._newest(key)
        return None if message is None else _document(message)

    async def put(self, documents: Sequence[NewDocument]) -> None:
        """Store documents with different keys, all of them or none."""
        if (await self._store(documents)).duplicates:
            # Another program has just stored a document of the same name: these become the next versions.
            await self._store(documents)

    async def delete(self, key: str) -> bool:
        """Take a document back. Returns whether it existed."""
        message = await self._newest(key)
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
        new = [self._arguments(document, await self._first(document.key)) for document in documents]
        return await self._user.add_many(new)

    def _arguments(self, document: NewDocument, earlier: Message | None) -> dict[str, Any]:
        return {
            "role": "system",
            "text": beginning(document.text, text_limit(self._user)),
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

    async def _first(self, key: str) -> Message | None:
        """Return the first version of a document's message, which may be replaced or taken back; None without one."""
        try:
            return await self._user.message(self._id(key), within="thread", versions=True)
        except NotFound:
            return None

    async def _newest(self, key: str) -> Message | None:
        try:
            return await self._user.message(self._id(key), within="thread")
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
        await self._switch_learning_off()
        await self.collection(collection).put(documents)

    async def collections(self) -> list[str]:
        """Return the names of the threads that contain documents, or other messages of the user."""
        user = self._handle()
        found: list[str] = []
        before = None
        while page := await user.threads(_PAGE, before=before):
            found += [thread.id for thread in page if thread.messages]
            before = page[-1]
            if len(page) < _PAGE:
                break
        return found

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

    async def _switch_learning_off(self) -> None:
        if self._must_switch_off:
            user = self._handle()
            if (await user.settings()).get(ENABLED) is not False:
                await user.set(ENABLED, False)
            self._must_switch_off = False

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
