"""Imports conversations and memories of other apps: detects the format, reads, stores, and reports what was done."""

from __future__ import annotations

import asyncio
import io
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from aforesaid.domain.checks import MESSAGE_BYTES, beginning, moment
from aforesaid.domain.details import KnownIds
from aforesaid.domain.hit import MessageFilter
from aforesaid.domain.message import Message, draft
from aforesaid.domain.receipt import Repeated, Stored
from aforesaid.domain.scope import DEFAULT_SPACE, SESSION_SILENCE
from aforesaid.domain.transfer import MemoryRow, Row
from aforesaid.errors import AforesaidError, InvalidInput, quoted
from aforesaid.portability.exporting import AttachmentCopy, attachments_named_by
from aforesaid.portability.formats import signal, whatsapp
from aforesaid.portability.formats.assistants import ChatGPT, Claude, Gemini, is_gemini_activity
from aforesaid.portability.formats.base import Format, ImportedMessage, ImportedRow, Item, Problem, ReadOptions, Skipped
from aforesaid.portability.formats.frameworks import SQLITE, LangChain, Letta, Mem0, OpenAI
from aforesaid.portability.formats.messengers import FACEBOOK_FILE, SLACK_DAY, Discord, Facebook, Slack, Telegram
from aforesaid.portability.input_files import Source, TimeSort
from aforesaid.portability.json_stream import JsonStream
from aforesaid.portability.row_codec import Aforesaid, somebody
from aforesaid.store import Progress, Store, open_store, restore_store
from aforesaid.store.attachments import Attachments, folder_of
from aforesaid.store.dumping import NAMES, RowImporter
from aforesaid.store.messages import AddMessage, Messages
from aforesaid.store.people import Totals
from aforesaid.store.sqlite.connection import APPLICATION_ID

READERS: Final[dict[str, type[Format]]] = {
    "aforesaid": Aforesaid,
    "chatgpt": ChatGPT,
    "claude": Claude,
    "gemini": Gemini,
    "telegram": Telegram,
    "discord": Discord,
    "whatsapp": whatsapp.WhatsApp,
    "slack": Slack,
    "signal": signal.Signal,
    "facebook": Facebook,
    "instagram": Facebook,
    "openai": OpenAI,
    "langchain": LangChain,
    "mem0": Mem0,
    "letta": Letta,
}
"""The readers of all import formats, by name."""

# Keys that identify a format, in the order in which they are checked.
_OF_OBJECTS: Final = (
    ({"aforesaid", "version"}, "aforesaid"),
    ({"version", "made_at", "vectors"}, "aforesaid"),  # written under an earlier name of the project
    ({"guild", "channel"}, "discord"),
    ({"chats"}, "telegram"),
    ({"left_chats"}, "telegram"),
    ({"personal_information", "contacts"}, "telegram"),
    ({"mapping"}, "chatgpt"),
    ({"chat_messages"}, "claude"),
    ({"conversations_memory"}, "claude"),
    ({"backupTimeMs"}, "signal"),
    ({"chatItem"}, "signal"),
    ({"date", "sender", "body"}, "signal"),
    ({"participants", "threadName"}, "facebook"),
    ({"header", "title", "time"}, "gemini"),
    ({"agent_type"}, "letta"),
    ({"agents", "blocks"}, "letta"),
    ({"namespace", "key", "value"}, "langchain"),
    ({"lc", "kwargs"}, "langchain"),
    ({"type", "data"}, "langchain"),
    ({"results"}, "mem0"),
    ({"memories"}, "mem0"),
    ({"memory"}, "mem0"),
    ({"name", "type", "messages"}, "telegram"),
    ({"participants", "messages"}, "facebook"),
    ({"role", "content"}, "openai"),
    ({"type", "content"}, "langchain"),
    ({"values"}, "langchain"),
    ({"type", "call_id"}, "openai"),
)
# Keys of the first message in a file that begins with its messages, or has other keys than usual.
_OF_MESSAGES: Final = (
    ({"sender_name", "timestamp_ms"}, "facebook"),
    ({"senderName", "timestamp"}, "facebook"),
    ({"from_id", "date"}, "telegram"),
    ({"date_unixtime"}, "telegram"),
    ({"role"}, "openai"),
    ({"type", "content"}, "langchain"),
)
_LONG_LISTS: Final = ("chats", "results", "memories", "agents", "mapping", "chat_messages", "values")
"""Keys whose values are not read: they can be longer than the beginning of the file."""
_IN_ARCHIVES: Final = (
    ("result.json", "telegram"),
    ("_chat.txt", "whatsapp"),
    ("main.jsonl", "signal"),
    ("data.json", "signal"),
    ("chat.md", "signal"),
)
_ENDINGS: Final = (".json", ".jsonl", ".txt", ".md", ".af", ".html", ".db", ".sqlite", ".sqlite3")


def is_backup(path: Path) -> bool:
    """Return whether a file is a backup of an SQLite store of Aforesaid."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_HEADER)
    return head.startswith(SQLITE) and int.from_bytes(head[_MARK]) == APPLICATION_ID


_HEADER: Final = 100
_MARK: Final = slice(68, 72)
"""Where the header of an SQLite file says which application it belongs to."""


def choose(source: Source, wanted: str = "auto") -> tuple[str, type[Format]]:
    """Return the name and reader of the requested format, or of the detected one. Raises InvalidInput."""
    if not source.names or (len(source.names) == 1 and not source.head(source.names[0]).strip()):
        raise InvalidInput(f"{source.path} is empty: there is nothing to import")
    if wanted != "auto":
        if wanted not in READERS:
            raise InvalidInput(f"unknown format {quoted(wanted)}; use auto or one of {', '.join(READERS)}", "format")
        return wanted, READERS[wanted]
    name = _of_names(source) or _of_contents(source)
    if name is None:
        raise InvalidInput(f"{source.path} has an unrecognised format; name it (one of {', '.join(READERS)})", "format")
    return name, READERS[name]


def _of_names(source: Source) -> str | None:
    if source.named(".af"):
        return "letta"
    if len(source.names) == 1 and "/" not in source.names[0]:
        return None
    if any(SLACK_DAY.search(name) for name in source.names) and source.called("users.json", "channels.json"):
        return "slack"
    if any(is_gemini_activity(name) and "/" in name for name in source.names):
        return "gemini"
    messages = [name for name in source.names if FACEBOOK_FILE.search(name)]
    if messages:
        return "instagram" if any("instagram" in name.casefold() for name in messages) else "facebook"
    return next((format_ for name, format_ in _IN_ARCHIVES if source.called(name)), None)


def _of_contents(source: Source) -> str | None:
    texts = source.named(*_ENDINGS)
    for name in (source.named(*_ENDINGS, start="conversations") or texts or source.names)[:5]:
        head = source.head(name)
        if head.startswith(SQLITE):
            return "langchain"
        text = head.decode("utf-8", errors="ignore")
        # The lines of signal-export look like those of WhatsApp in some countries.
        is_signal = name.endswith(".md") and signal.looks_like(text)
        found = "signal" if is_signal else _of_text(text.lstrip())
        if found is not None:
            return found
    return None


def _of_text(text: str) -> str | None:
    if text.startswith("<") and "outer-cell" in text:
        return "gemini"
    first = _first_object(text)
    if first.get("type") == "message" and "role" in first:
        return "openai"  # an item of the Responses API
    for wanted, format_ in _OF_OBJECTS:
        if wanted <= first.keys():
            return format_
    message = first.get("messages")
    for wanted, format_ in _OF_MESSAGES:
        if isinstance(message, dict) and wanted <= message.keys():
            return format_
    if "messages" in first:
        return "openai"
    return "whatsapp" if whatsapp.looks_like(text) else None


def _first_object(text: str) -> dict[str, Any]:
    """Return the fields of the first object of a file, or of the first object in its list.

    Of its messages, only the first is there. Other values that are no texts are None.
    """
    text = text.removeprefix("[").lstrip()
    found: dict[str, Any] = {}
    stream = JsonStream(io.BytesIO(text.encode(errors="ignore")))
    with suppress(InvalidInput):  # the data is only the beginning of the file, or no object
        for key in stream.members():
            found[key] = None
            if key == "messages":
                # Nothing that follows them tells more.
                found[key] = next((stream.value() for _ in stream.elements()), None)
                break
            if key in _LONG_LISTS:
                stream.skip()
            elif stream.peek() == '"':
                found[key] = stream.value()
    return found


SHOWN: Final = 100
"""Maximum number of problems and of users listed one by one; the rest are only counted."""


@dataclass(frozen=True, slots=True)
class ImportedUser:
    id: str
    name: str | None
    """The display name, as the file has it last."""
    messages: int
    """Messages in the file that belong to this user, including those that were stored before."""
    memories: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of an import."""

    format: str
    found: dict[str, int]
    """Number of entries in the file, by kind."""
    new: dict[str, int]
    """Number of entries that were not stored before, by kind."""
    skipped: dict[str, int]
    """Number of entries skipped on purpose, such as "joined the group" notices, by kind."""
    problems: int
    """Number of entries that could not be imported."""
    examples: tuple[Problem, ...]
    """The first of these problems, each with its position and reason."""
    dry_run: bool
    users: tuple[ImportedUser, ...] = ()
    """The users whose memory the entries became, those with the most messages first: at most 100."""
    user_count: int = 0
    """Number of these users."""
    first_at: datetime | None = None
    """When the oldest of the messages was said; None without messages."""
    last_at: datetime | None = None
    """When the newest of them was said."""
    attachments: int = 0
    """Number of attachments of an export that were not stored before."""
    missing_attachments: tuple[str, ...] = ()
    """Hashes of attachments that messages of an export name, but whose bytes are neither beside it nor in the store."""

    @property
    def ok(self) -> bool:
        """Whether every entry could be read and stored."""
        return self.problems == 0


BATCH: Final = 1_000
"""Entries read and stored at a time."""
_VERSIONS: Final = 1_000
"""Maximum messages of one moment that are searched for the versions of one."""
_SCOPES: Final = 1_024
"""Scopes of messages that are kept during an import, so that their names are checked once."""
_DETAILS: Final = ("parts", "reply_to", "kind", "metadata", "tool_calls", "tool_call_id")
_FIRST_DETAIL: Final = ImportedMessage._fields.index("parts")


@dataclass(frozen=True, slots=True)
class ImportOptions:
    format: str = "auto"
    space: str = DEFAULT_SPACE
    user: str | None = None
    """Store everything as this user's memory. None: each author's in chats among people, otherwise `me`."""
    reading: ReadOptions = field(default_factory=ReadOptions)
    dry_run: bool = False
    """Read the file without storing anything."""
    silence: int = SESSION_SILENCE
    message_bytes: int = MESSAGE_BYTES
    ids: KnownIds = field(default_factory=KnownIds)
    """The spelling of ids in the store."""


class Loader:
    def __init__(
        self,
        store: Store,
        options: ImportOptions,
        attachments: Attachments | None = None,
        give_way: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Import into a store. `attachments` has its attachments; without it, those of an export are not copied.

        `give_way` is called before each batch, and waits while people search.
        """
        self._store = store
        self._give_way = give_way
        self._attachments = attachments
        self._options = options
        self._rows = RowImporter(store, lambda _, where, error: self._problem(Problem(where, str(error))))
        # Of this import alone: what is kept for all would hold the names of people who were erased since.
        self._scope_of = lru_cache(_SCOPES)(somebody)
        self._last_at: dict[str, datetime] = {}
        """The time of the last message read of each thread that has one."""
        self._last_person: dict[str, str] = {}
        """The author of the last message stored of each thread: a bot's message belongs to this person."""
        self._found: Counter[str] = Counter()
        self._new: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._problems = 0
        self._examples: list[Problem] = []
        self._hashes: set[str] = set()
        """Hashes of the attachments that messages of a dump name."""
        self._messages: Counter[str] = Counter()
        self._memories: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._span: tuple[datetime, datetime] | None = None
        """The times of the oldest and the newest message."""

    async def load(self, path: Path, progress: Progress | None = None) -> Loaded:
        """Import the whole file: read it, then store its messages in the order of their times.

        `progress` counts messages: first those read, whose total is estimated from the bytes read so far, then those
        stored.
        """
        options, name = self._options, "backup"
        exported = Attachments(folder_of(path))
        if self._attachments is not None and await asyncio.to_thread(lambda: any(exported.names())):
            self._attachments.refuse()
        if options.format in {"auto", name} and await asyncio.to_thread(is_backup, path):
            await self._read_backup(path, progress)
        else:
            name = await self._read_file(path, progress)
        copied = 0
        missing: tuple[str, ...] = ()
        if self._attachments is not None and self._hashes:
            copying = AttachmentCopy([self._attachments, exported], self._attachments)
            if options.dry_run:
                missing = copying.missing(self._hashes)
            else:
                copied, missing = await copying.copy(self._hashes)
        self._new.update(self._rows.fresh)
        users = sorted({*self._messages, *self._memories}, key=lambda user: (-self._messages[user], user))
        return Loaded(
            format=name,
            found=dict(self._found),
            new=dict(+self._new),
            skipped=dict(self._skipped),
            problems=self._problems,
            examples=tuple(self._examples),
            dry_run=options.dry_run,
            users=tuple(
                ImportedUser(user, self._names.get(user), self._messages[user], self._memories[user])
                for user in users[:SHOWN]
            ),
            user_count=len(users),
            first_at=self._span[0] if self._span else None,
            last_at=self._span[1] if self._span else None,
            attachments=copied,
            missing_attachments=missing,
        )

    async def _read_file(self, path: Path, progress: Progress | None) -> str:
        """Read a file and store its messages in the order of their times. Return the name of its format."""
        source, messages = await asyncio.to_thread(Source, path), TimeSort()
        try:
            name, reader = await asyncio.to_thread(choose, source, self._options.format)
            reading = replace(self._options.reading, user=self._options.user or "me", space=self._options.space)
            await self._read(iter(reader(source, reading)), messages, source, name, progress)
            await self._rows.finish()
            await self._store_all(messages, progress)
        finally:
            source.close()
            messages.close()
        return name

    async def _read_backup(self, path: Path, progress: Progress | None) -> None:
        """Take what a backup has. It stays as it is: a copy of it is opened, which may be of an older version."""
        with tempfile.TemporaryDirectory(prefix="aforesaid-backup-") as folder:
            place = f"sqlite:{Path(folder) / 'memory.db'}"
            await asyncio.to_thread(restore_store, path, place, replace=False)
            backup = await open_store(place)
            try:
                total = (await backup.read(Totals())).messages
                async for page in backup.dump():
                    for row in page:
                        await self._take(row, "the backup", is_dump=True)
                    if progress is not None:
                        progress("reading messages", self._found["message"], max(total, self._found["message"]))
                await self._rows.finish()
            finally:
                await backup.close()

    async def _read(
        self, items: Iterator[Item], messages: TimeSort, source: Source, name: str, progress: Progress | None
    ) -> None:
        """Read all items, the next page while rows of a dump are stored. Messages are collected in `messages`."""
        ahead = asyncio.ensure_future(asyncio.to_thread(self._next_page, items, messages))
        try:
            while (page := await ahead) is not None:
                ahead = asyncio.ensure_future(asyncio.to_thread(self._next_page, items, messages))
                for item in page:
                    match item:
                        case ImportedRow(where, row):
                            await self._take(row, where, is_dump=name == "aforesaid")
                        case Problem():
                            self._problem(item)
                        case Skipped(what):
                            self._skipped[what] += 1
                if progress is not None:
                    found = total = messages.total + self._found["message"]
                    if 0 < source.done < source.size:
                        # Extrapolated from the share of the bytes that was read.
                        total = max(found, round(found * source.size / source.done))
                    progress("reading messages", found, total)
        finally:
            # The file must stay open until the reading thread ends; its errors no longer matter.
            await asyncio.wait([ahead])
            if not ahead.cancelled():
                ahead.exception()

    def _next_page(self, items: Iterator[Item], messages: TimeSort) -> list[Item] | None:
        """Read a page, collect its messages, and return the other items; None at the end of the file.

        Messages without a time get that of the next one in their thread, or of the one before. Otherwise they would
        come last, as if they were said now.
        """
        page = list(islice(items, BATCH))
        if not page:
            return None
        following: dict[str, datetime] = {}
        for place in range(len(page) - 1, -1, -1):
            item = page[place]
            if isinstance(item, ImportedMessage):
                if item.at is not None:
                    following[item.thread] = item.at
                else:
                    page[place] = item._replace(at=following.get(item.thread))
        others: list[Item] = []
        for item in page:
            if not isinstance(item, ImportedMessage):
                others.append(item)
                continue
            at = item.at or self._last_at.get(item.thread)
            if at is not None:
                self._last_at[item.thread] = at
            characters = len(item.text) + sum(len(part.text or "") for part in item.parts)
            messages.add(at, tuple(item if item.at is at else item._replace(at=at)), characters)
        return others

    async def _take(self, row: Row, where: str, *, is_dump: bool) -> None:
        self._found[NAMES[type(row)]] += 1
        if isinstance(row, Message):
            self._count(row.user, row.name if row.author == row.user else None, row.at)
            self._hashes.update(attachments_named_by([row]))
        elif isinstance(row, MemoryRow):
            if not is_dump:
                # A memory of another program is for the user who was asked for, or for the one that it names. Its id
                # there is no number.
                user = self._options.ids.spelled(self._options.user or row.memory.user)
                row = MemoryRow(replace(row.memory, id=self._found["memory"], user=user, speaker=user))
            self._memories[row.memory.user] += 1
        if not self._options.dry_run:
            await self._rows.take([row], where)

    def _count(self, user: str, name: str | None, at: datetime) -> None:
        """Count a message of a user, who has this name in the file, that was said at this time."""
        self._messages[user] += 1
        first, last = self._span or (at, at)
        self._span = min(first, at), max(last, at)
        if name is not None:
            self._names[user] = name

    def _problem(self, problem: Problem) -> None:
        self._problems += 1
        if len(self._examples) < SHOWN:
            self._examples.append(problem)

    async def _store_all(self, messages: TimeSort, progress: Progress | None) -> None:
        """Store messages. One that is stored with another text becomes a new version, if its author edited it."""
        items = map(ImportedMessage._make, messages)
        done = 0
        while page := await asyncio.to_thread(lambda: list(islice(items, BATCH))):
            done += len(page)
            pieces = chain.from_iterable(storable_pieces(item, self._options.message_bytes) for item in page)
            changes = [(item, change) for item in pieces if (change := self._change(item)) is not None]
            if changes and not self._options.dry_run:
                if self._give_way is not None:
                    await self._give_way()
                receipt = await self._store.apply([change for _, change in changes])
                edits: list[AddMessage] = []
                for (item, change), result in zip(changes, receipt.results, strict=True):
                    if isinstance(result, Stored):
                        self._new["message"] += 1
                    elif isinstance(result, Repeated) and result.message.text != change.draft.text:
                        if item.metadata.get("edited") and await self._is_shown(result.message, change):
                            # A new version, once for each text.
                            encoded = change.draft.text.encode(errors="surrogatepass")
                            text = blake2b(encoded, digest_size=6).hexdigest()
                            new_id, seq = f"{result.message.id[:240]}~{text}", result.message.seq
                            edits.append(replace(change, draft=change.draft._replace(id=new_id, replaces=seq)))
                        else:
                            self._skipped["messages whose id is stored with another text"] += 1
                if edits:
                    receipt = await self._store.apply(edits)
                    self._new["edited message"] += sum(isinstance(result, Stored) for result in receipt.results)
            if progress is not None:
                progress("messages", done, messages.total)

    async def _is_shown(self, stored: Message, change: AddMessage) -> bool:
        """Return whether a message can get a new version: it has the same owner and role, and was not taken back."""
        if stored.user != change.draft.scope.user or stored.role != change.draft.role:
            return False
        if not stored.replaced:
            return True
        at = stored.position.at
        same_time = MessageFilter(since=at, until=at + 1)
        question = Messages(change.draft.scope, "thread", limit=_VERSIONS, versions=True, where=same_time)
        versions = {stored.seq}
        for message in sorted(await self._store.read(question), key=lambda each: each.seq):
            if message.replaces in versions:
                versions.add(message.seq)
                if not message.replaced:
                    return True
        return False

    def _change(self, item: ImportedMessage) -> AddMessage | None:
        """Return the change that stores a message; None if it cannot be stored, which is reported."""
        options = self._options
        spelled = options.ids.spelled
        owner = options.user or item.owner
        if owner is None and item.author is not None:
            if item.role == "user":
                self._last_person[item.thread] = item.author
            owner = self._last_person.get(item.thread, item.author)
        owner = spelled("me" if owner is None else owner)
        said_by = spelled(item.author)
        details: dict[str, Any] = {}
        if any(item[_FIRST_DETAIL:]):
            # Most messages have nothing beside their text, which costs nothing then.
            details = {name: value for name in _DETAILS if (value := getattr(item, name))}
        try:
            scope = self._scope_of(owner, options.space, spelled(item.thread))
            new = draft(
                scope,
                item.role,
                item.text,
                at=item.at,
                id=item.id,
                author=None if said_by == owner else said_by,
                name=item.name,
                limit=options.message_bytes,
                **details,
            )
        except AforesaidError as error:
            self._problem(Problem(item.where, str(error)))
            return None
        self._found["message"] += 1
        self._count(owner, item.name if said_by == owner else None, item.at or moment(new.at))
        return AddMessage(new, options.silence)


_MOST_BYTES: Final = 6
"""Maximum bytes of a character in details: JSON writes a control character as `\\u0000`."""
_RESERVED: Final = 4_096
"""Bytes of details left for names, addresses, kinds and metadata."""
_CUT: Final = " […]"


def storable_pieces(item: ImportedMessage, limit: int) -> Iterator[ImportedMessage]:
    """Yield a message, in several pieces if its text has more than `limit` bytes.

    The text of attachments and the arguments of tool calls are cut where all of them together are too long.
    """
    room = max(limit - _RESERVED, limit // 2)
    long: list[str] = []
    if item.parts or item.tool_calls:
        long = [part.text for part in item.parts if part.text] + [call.arguments for call in item.tool_calls]
    if sum(map(len, long)) * _MOST_BYTES > room:
        share = room // len(long) // 2

        def cut(text: str) -> str:
            short = beginning(text, share)
            return text if short == text else short + _CUT

        parts = tuple(replace(part, text=cut(part.text)) if part.text else part for part in item.parts)
        calls = tuple(replace(call, arguments=cut(call.arguments)) for call in item.tool_calls)
        item = item._replace(parts=parts, tool_calls=calls)
    texts = split_text(item.text, limit)
    yield item if len(texts) == 1 else item._replace(text=texts[0])
    for number, text in enumerate(texts[1:], 2):
        plain = ImportedMessage(item.where, item.thread, item.role, text, item.at, f"{item.id[:240]}~{number}")
        yield plain._replace(author=item.author, name=item.name, owner=item.owner)


def split_text(text: str, limit: int) -> list[str]:
    """Return a text in pieces of at most `limit` bytes, which end at the end of a line or a word where they can."""
    if len(text) * 4 <= limit:
        return [text]
    pieces: list[str] = []
    while len(text.encode(errors="surrogatepass")) > limit:
        end = len(beginning(text, limit))
        place = next((found for mark in "\n ." if (found := text.rfind(mark, end // 2, end)) > 0), end - 1) + 1
        pieces.append(text[:place])
        text = text[place:]
    return [*pieces, text] if text.strip() or not pieces else pieces
