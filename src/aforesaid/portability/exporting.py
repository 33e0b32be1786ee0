"""Exports a memory: rows, attachments, and copies that people can read."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import blake2b
from itertools import islice
from mimetypes import guess_extension
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, cast
from unicodedata import category, normalize
from urllib.parse import quote

from aforesaid.background import to_the_end
from aforesaid.domain import transfer
from aforesaid.domain.checks import Kind, counted, moment, now, to_zone
from aforesaid.domain.details import Part, text_of_parts
from aforesaid.domain.memory import Facts
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope, chat_name, direct_thread
from aforesaid.errors import InvalidInput, NotFound, StoreDamaged
from aforesaid.extras import re
from aforesaid.portability.input_files import STREAM, TimeSort, telling, writing
from aforesaid.portability.row_codec import VERSION, encode
from aforesaid.store import Progress, Store
from aforesaid.store.attachments import Attachments, folder_of
from aforesaid.store.dumping import NAMES, list_counts
from aforesaid.store.people import Totals
from aforesaid.store.unfinished import unfinished


def attachments_named_by(rows: Iterable[transfer.Row]) -> Iterator[str]:
    """Yield the hashes of the attachments that messages among the rows name."""
    for row in rows:
        if isinstance(row, Message) and row.details is not None:
            yield from (part.hash for part in row.parts if part.hash is not None)


class AttachmentCopy:
    """Copies the bytes of attachments to a store, one by one, from the first of other stores that has them."""

    def __init__(self, sources: Sequence[Attachments], target: Attachments) -> None:
        self._sources = sources
        self._target = target

    def check(self, hashes: Iterable[str]) -> None:
        """Raise StoreRefused if there are bytes to copy and the target cannot store any."""
        if any(self._source(name) is not None for name in hashes):
            self._target.refuse()

    async def copy(self, hashes: Iterable[str]) -> tuple[int, tuple[str, ...]]:
        """Copy bytes by their hashes; return how many are new, and the hashes of those that could not be read."""
        new = 0
        lost: list[str] = []
        for name in sorted(hashes):
            source = self._source(name)
            try:
                if source is None:
                    lost.append(name)
                elif source.folder is None or source.folder != self._target.folder:
                    new += await self._target.put(name, await source.read(name))
            except (StoreDamaged, NotFound):
                lost.append(name)
        return new, tuple(lost)

    def missing(self, hashes: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in sorted(hashes) if self._source(name) is None)

    def _source(self, name: str) -> Attachments | None:
        return next((each for each in self._sources if each.has(name)), None)


_LONGEST: Final = 120
"""Maximum bytes of a file name in UTF-8, without a number that keeps it apart. File systems allow 255."""
_LONGEST_ENDING: Final = 16
_UNSAFE: Final = re.compile(r'[<>:"|?*\\/]')
"""Characters that no file name may have on some system."""
_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names that mean devices on Windows."""


class NamedFiles:
    """Writes the bytes of attachments to a new folder, the same bytes once.

    The folder gets its name when everything is in it; it is not made for nothing.
    """

    def __init__(self, source: Attachments | None, folder: Path | None) -> None:
        """Copy from a source; without one, nothing is copied. Without a folder, everything counts as missing."""
        self._source = source
        self._folder = folder
        self._open = ExitStack()
        self._unfinished: Path | None = None
        self._finished = False
        self._names: dict[str, str | None] = {}
        """File names by hash; None for bytes that are not there."""
        self._numbers: dict[str, int] = {}
        """How often each name was used, in small letters."""
        self._unnamed = 0
        if source is not None and folder is not None and folder.exists():
            raise InvalidInput(f"{folder} exists already; nothing was overwritten. Choose another name")

    @property
    def written(self) -> int:
        return sum(name is not None for name in self._names.values())

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(sorted(hash_ for hash_, name in self._names.items() if name is None))

    async def add(self, part: Part) -> str | None:
        """Write the bytes of a part; return the name of the file, or None if its bytes are not there."""
        if part.hash is None or self._source is None:
            return None
        if part.hash in self._names:
            return self._names[part.hash]
        self._names[part.hash] = None
        if self._folder is None:
            return None
        try:
            data = await self._source.read(part.hash)
        except (NotFound, StoreDamaged):
            return None
        wanted = safe_file_name(part.name or "")
        if not wanted:
            self._unnamed += 1
            wanted = f"attachment-{self._unnamed}{guess_extension(part.media_type or '') or ''}"
        path, name = PurePosixPath(wanted), wanted
        while (seen := name.casefold()) in self._numbers:
            # Some file systems do not tell capital letters from small ones.
            self._numbers[wanted.casefold()] += 1
            name = f"{path.stem}-{self._numbers[wanted.casefold()]}{path.suffix}"
        self._numbers[seen] = 1
        if self._unfinished is None:
            with telling(self._folder):
                self._folder.parent.mkdir(parents=True, exist_ok=True)
                self._unfinished = self._open.enter_context(unfinished(self._folder, folder=True))
        await asyncio.to_thread(_put, self._unfinished / name, data)
        self._names[part.hash] = name
        return name

    def finish(self) -> None:
        if self._unfinished is not None and self._folder is not None:
            with telling(self._folder):
                self._unfinished.rename(self._folder)
            self._finished = True
            self._open.close()

    def discard(self) -> None:
        self._open.close()
        if self._finished and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def safe_file_name(name: str) -> str:
    """Return a name that every file system takes and that stays in its folder; an empty text if nothing is left."""
    last = re.split(r"[\\/]", normalize("NFC", name))[-1]
    shown = "".join(each for each in last if category(each) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
    safe = _UNSAFE.sub("_", shown).strip(". \u00a0")
    if _DEVICES.fullmatch(safe):
        safe = f"_{safe}"
    path = PurePosixPath(safe or "_")
    ending = path.suffix if len(path.suffix.encode()) <= _LONGEST_ENDING else ""
    stem = safe.removesuffix(ending).encode()[: _LONGEST - len(ending.encode())].decode(errors="ignore")
    return f"{stem.rstrip('. ')}{ending}" if stem.strip(". ") else ""


def _put(path: Path, data: bytes) -> None:
    with telling(path):
        # Readable by its owner only, because it belongs to messages.
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


_as_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export."""

    path: Path
    rows: dict[str, int]
    """Number of rows by kind."""
    bytes: int
    """Size before compression, without attachments."""
    attachments: int = 0
    """Number of attachments in the folder beside the file."""
    missing_attachments: tuple[str, ...] = ()
    """Hashes of attachments that messages name, but that are not in the folder: the store does not have their bytes or
    has them damaged, or the export went to standard output."""


def is_markdown(path: Path) -> bool:
    """Return whether a file's name asks for Markdown: `ann.md`, `ann.md.gz`."""
    return path.name.lower().removesuffix(".gz").endswith(".md")


class RowsOfUser:
    """Recognises the rows of one user in a dump, which has the messages first.

    What they said in another's memory belongs to them too, such as the items of a program about them: what `purge`
    erases is what an export shows.
    """

    def __init__(self, scope: Scope, *, vectors: bool = False) -> None:
        """With `vectors`, the numbers of the messages are kept, to recognise the vectors of them."""
        self._whose = scope.space, scope.user
        self._messages: set[int] | None = set() if vectors else None
        self._sessions: set[str] = set()
        """The sessions of what they said in another's memory."""

    def __call__(self, row: transfer.Row) -> bool:
        match row:
            case transfer.VectorOf():
                return row.space == self._whose[0] and row.seq in (self._messages or ())
            case transfer.SessionRow():
                own = (row.session.space, row.session.user) == self._whose
                return own or (row.session.space == self._whose[0] and row.session.id in self._sessions)
            case transfer.SummaryRow():
                return (row.summary.space, row.summary.user) == self._whose
            case transfer.MemoryRow():
                return (row.memory.space, row.memory.user) == self._whose
            case transfer.DayRow() | transfer.SuccessorRow():
                return False
            case _:
                own = (row.space, row.user) == self._whose
                if not isinstance(row, Message):
                    return own
                if not own and (row.space, row.author) == self._whose and row.role != row.author:
                    self._sessions.add(row.session)
                    own = True
                if own and self._messages is not None:
                    self._messages.add(row.seq)
                return own


class LineWriter:
    """Writes JSON Lines with a count and a checksum, so that truncated or changed files are detected."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._sum = blake2b(digest_size=16)
        self.rows: Counter[str] = Counter()
        self.bytes = 0
        self.attachments: set[str] = set()
        """Hashes of the attachments that messages name."""

    def begin(self, *, vectors: bool) -> None:
        made_at = moment(now()).isoformat()
        self._lines([{"aforesaid": "export", "version": VERSION, "made_at": made_at, "vectors": vectors}])

    def write(self, page: Sequence[transfer.Row]) -> None:
        self._lines([encode(row) for row in page])
        self.rows.update(NAMES[type(row)] for row in page)
        self.attachments.update(attachments_named_by(page))

    def end(self) -> None:
        """Write the last line: the number of rows, and the checksum of all lines before it."""
        self._lines([{"kind": "end", "rows": dict(self.rows), "sum": self._sum.hexdigest()}])

    def _lines(self, entries: Sequence[dict[str, Any]]) -> None:
        text = "".join(f"{_as_json(entry)}\n" for entry in entries)
        block = text.encode()
        self._sum.update(block)
        self._out.write(block)
        self.bytes += len(block)


async def export(
    store: Store,
    path: Path,
    attachments: Attachments | None = None,
    *,
    scope: Scope | None = None,
    vectors: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write a snapshot of a store to a new file; with `scope`, of its user alone. The store can be in use.

    The attachments that its messages name are copied to a folder beside the file, which has its name with
    `.attachments`; standard output has none.
    """
    chosen = None if scope is None else RowsOfUser(scope, vectors=vectors)
    total = (await store.read(Totals())).messages
    folder = folder_of(path)
    is_new = not folder.exists()
    copied, is_copying = 0, False
    missing: tuple[str, ...] = ()
    stack = ExitStack()
    try:
        lines = LineWriter(await to_the_end(stack.enter_context, writing(path)))
        lines.begin(vectors=vectors)
        async for page in store.dump(vectors=vectors):
            await to_the_end(lines.write, page if chosen is None else [row for row in page if chosen(row)])
            if progress is not None:
                done = lines.rows["message"]
                progress("messages", done, max(total, done))
        lines.end()
        if attachments is not None and path == STREAM:
            missing = tuple(sorted(lines.attachments))
        elif attachments is not None:
            is_copying = True
            _, missing = await AttachmentCopy([attachments], Attachments(folder)).copy(lines.attachments)
            copied = len(lines.attachments) - len(missing)
    except BaseException:
        try:
            stack.__exit__(*sys.exc_info())
        finally:
            if is_copying and is_new:
                await to_the_end(shutil.rmtree, folder, ignore_errors=True)
        raise
    await to_the_end(stack.close)
    return Exported(path, dict(lines.rows), lines.bytes, copied, missing)


_INLINE: Final = re.compile(
    r"""
    \\(?=[!-/:-@\[-`{-~]|$)         # a backslash that would escape something, or break the line
    | [`*\[\]~]                     # code, emphasis, links and images, struck-out text
    | (?<![^\W_])_ | _(?![^\W_])    # emphasis, but not the underscore of snake_case
    | <(?=[A-Za-z/!?])              # HTML
    | &(?=\#?\w+;)                  # entities
    """,
    re.VERBOSE,
)
_BLOCK_START: Final = frozenset("#>+=|:-")
"""Characters that make the line which they start a heading, a quote, a list, a rule or a table."""
_NUMBER: Final = re.compile(r"(\d{1,9})(?=[.)])")
"""The start of a numbered list."""
_HIDDEN: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that change the direction in which the rest of a line is shown."""
_NO_BREAK_SPACE: Final = "\u00a0"
_LINE_BREAK: Final = "  \n"


def inline(text: str) -> str:
    return _escaped(" ".join(text.split()))


def lines(text: str, indent: str) -> str:
    """Return a text of any number of lines, each after the first with an indent, each with its line break."""
    shown: list[str] = []
    for line in text.rstrip().splitlines():
        words = line.strip()
        width = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        escaped = f"\\{_escaped(words)}" if words[:1] in _BLOCK_START else _escaped(words)
        if found := _NUMBER.match(words):
            escaped = f"{found[1]}\\{escaped[found.end() :]}"
        # Spaces at the start of a line would make it code, which shows backslashes.
        shown.append(f"{_NO_BREAK_SPACE * width}{escaped}" if words else "")
    joined = ""
    for number, line in enumerate(shown):
        if number:
            # An empty line ends a paragraph already; a break would be shown as one line more.
            joined += f"{_LINE_BREAK if line and shown[number - 1] else chr(10)}{indent if line else ''}"
        joined += line
    return joined


def _escaped(text: str) -> str:
    return _HIDDEN.sub(lambda found: f"\\<U+{ord(found[0]):04X}>", _INLINE.sub(r"\\\g<0>", text))


_KINDS: Final[Mapping[Kind, str]] = {
    "fact": "Facts",
    "preference": "Preferences",
    "relationship": "People",
    "event": "Events",
    "schedule": "Appointments",
    "task": "Tasks",
    "reminder": "Reminders",
    "instruction": "Standing requests",
}
_NOT_IN_USE: Final = "Not in use"
_FORGOTTEN: Final = "Requests to forget"
_KNOWN: Final = (*_KINDS.values(), _NOT_IN_USE, _FORGOTTEN)
"""The sections of what is known, in order."""
_SUMMARIES: Final = "Summaries"
_SETTINGS: Final = "Settings"
_WRITTEN: Final = frozenset({"message", "memory", "facts", "forgotten", "summary", "setting"})
"""The kinds of rows that the file has; the others are counted."""
_PAGE: Final = 200
"""Messages written at a time."""
_IN_MEMORY: Final = 1_000_000
"""Bytes of a section that are kept in memory; more go to a temporary file."""
_INDENT: Final = "  "
_BREAK: Final = f"  \n{_INDENT}"
"""A line break within an item of a list."""


async def export_readable(
    store: Store,
    path: Path,
    attachments: Attachments | None,
    scope: Scope,
    zone: tzinfo,
    progress: Progress | None = None,
) -> Exported:
    """Write what is stored about a user to a new Markdown file, with times in a time zone. The store can be in use.

    Attachments are written to a folder beside the file, which has its name with `.attachments`, under their own names;
    standard output has none. Messages are sorted by time in bounded memory.
    """
    files = NamedFiles(attachments, None if path == STREAM else folder_of(path))
    collected = _Collected(scope, zone)
    total = (await store.read(Totals())).messages
    stack = ExitStack()
    try:
        out = await to_the_end(stack.enter_context, writing(path))
        async for page in store.dump():
            await to_the_end(collected.add, page)
            if progress is not None:
                done = collected.rows["message"]
                progress("reading messages", done, max(total, done))
        await to_the_end(collected.write_head, out)
        messages = iter(collected.sorted)
        done = 0
        while part := await to_the_end(lambda: [message for (message,) in islice(messages, _PAGE)]):
            attached = [
                [await _attached(each, files, folder_of(path).name) for each in message.parts if each.type != "text"]
                for message in part
            ]
            await to_the_end(collected.write_messages, out, part, attached)
            done += len(part)
            if progress is not None:
                progress("messages", done, collected.rows["message"])
        await to_the_end(files.finish)
        await to_the_end(stack.close)
    except BaseException:
        try:
            stack.__exit__(*sys.exc_info())
        finally:
            await to_the_end(files.discard)
        raise
    finally:
        collected.close()
    rows = {kind: count for kind, count in collected.rows.items() if kind in _WRITTEN}
    return Exported(path, rows, collected.bytes, files.written, files.missing)


async def _attached(part: Part, files: NamedFiles, folder: str) -> str:
    """Write the bytes of a part to a file; return the line that names it, as Markdown."""
    written = await files.add(part)
    called = inline(part.name or written or part.type)
    caption = f": {inline(part.text)}" if part.text else ""
    if written is not None:
        return f"attached: [{called}]({quote(f'{folder}/{written}')}){caption}"
    where = inline(part.url) if part.url is not None else "" if part.hash is None else "not in this copy"
    return f"attached: {called}{f' ({where})' if where else ''}{caption}"


class _Collected:
    """The rows of a user as Markdown: messages sorted by time, all others by section."""

    def __init__(self, scope: Scope, zone: tzinfo) -> None:
        self.rows: Counter[str] = Counter()
        """Number of rows by kind."""
        self.bytes = 0
        """Number of bytes written."""
        self._scope = scope
        self._is_theirs = RowsOfUser(scope)
        self._zone = zone
        self._now = datetime.now(UTC)
        self.sorted = TimeSort()
        self._facts: Facts | None = None
        """The newest version."""
        self._written_day = ""
        """The day of the last message that was written."""
        self._sections: dict[str, IO[bytes]] = {}

    def close(self) -> None:
        self.sorted.close()
        for section in self._sections.values():
            section.close()

    def add(self, page: Sequence[transfer.Row]) -> None:
        """Collect the rows of the user among those of a dump, which come in its order."""
        for row in filter(self._is_theirs, page):
            self.rows[NAMES[type(row)]] += 1
            match row:
                case Message():
                    self.sorted.add(row.at, (row,), len(row.text) + len(row.details or ""))
                case transfer.MemoryRow():
                    self._add_memory(row)
                case transfer.SummaryRow(summary=summary):
                    days = f"{self._day(summary.began_at)} to {self._day(summary.ended_at)}"
                    self._put(_SUMMARIES, summary.text, days, "" if summary.active else "replaced")
                case Facts():
                    self._facts = row
                case transfer.ForgottenRow():
                    self._put(_FORGOTTEN, row.words)
                case transfer.SettingRow(setting=setting):
                    self._put(_SETTINGS, f"{setting.key}: {setting.value}", f"since {self._day(setting.updated_at)}")
                case _:
                    pass  # rows without text: they are counted

    def write_head(self, out: IO[bytes]) -> None:
        user, space = inline(self._scope.user), inline(self._scope.space)
        text = f"# What is stored about {user}\n\n"
        text += f"User {user} in the space {space}, {self._minute(self._now)}. Times are in {self._zone}.\n"
        others = {kind: count for kind, count in self.rows.items() if kind not in _WRITTEN}
        if others:
            text += f"\nThe export as JSON Lines also has: {list_counts(others)}.\n"
        text += "\n## What is known\n"
        if self._facts is not None:
            text += f"\n{lines(self._facts.text, '')} *(since {self._day(self._facts.updated_at)})*\n"
        if self._facts is None and not self._sections.keys() & set(_KNOWN):
            text += "\nNothing.\n"
        self.bytes += out.write(text.encode())
        for section in (*_KNOWN, _SUMMARIES, _SETTINGS):
            if section in self._sections:
                heading = f"\n{'###' if section in _KNOWN else '##'} {section}\n\n"
                self.bytes += out.write(heading.encode()) + self._sections[section].tell()
                self._sections[section].seek(0)
                shutil.copyfileobj(self._sections[section], out)
        self.bytes += out.write(f"\n## Messages\n\n{counted(self.rows['message'], 'message')}.\n".encode())

    def write_messages(self, out: IO[bytes], page: Sequence[Message], attached: Sequence[Sequence[str]]) -> None:
        """Write messages below the headings of their days, each with lines that name its attachments."""
        for message, links in zip(page, attached, strict=True):
            text = self._entry(message, links)
            if (day := self._day(message.at)) != self._written_day:
                self._written_day = day
                text = f"\n### {day}\n\n{text}"
            self.bytes += out.write(text.encode())

    def _entry(self, message: Message, attached: Sequence[str]) -> str:
        at = to_zone(message.at, self._zone)
        who = f"{at:%H:%M} **{inline(message.name or message.author)}**"
        if message.thread != direct_thread(message.user):
            who = f"{who} in {inline(chat_name(message.thread))}"
        if message.taken_back:
            return f"- {who}: *taken back on {self._minute(message.stored_at)}*\n"
        if message.replaced:
            who = f"{who} *(edited or taken back later)*"
        details = message.all_details
        written = [part.text or "" for part in details.parts if part.type == "text"]
        # A message without a text of its own has that of its parts, captions included.
        texts = written if message.text == text_of_parts(details.parts) else [message.text, *written]
        texts += [f"called {call.name}: {call.arguments}" for call in details.tool_calls]
        if details.metadata:
            texts.append(f"metadata: {json.dumps(details.metadata, ensure_ascii=False)}")
        shown = [lines(text, _INDENT) for text in texts if text]
        return f"- {who}: {_BREAK.join([*shown, *attached])}\n"

    def _day(self, at: datetime) -> str:
        return f"{to_zone(at, self._zone):%Y-%m-%d}"

    def _minute(self, at: datetime) -> str:
        return f"{to_zone(at, self._zone):%Y-%m-%d %H:%M}"

    def _add_memory(self, row: transfer.MemoryRow) -> None:
        memory, event = row.memory, row.memory.event
        in_use = memory.active and not memory.over_at(self._now)
        unused = "waits for approval"
        if memory.state != "quarantined":
            unused = "expired" if memory.state == "active" else memory.state
            unused = f"{unused}: {memory.reason}" if memory.reason else unused
        when = ""
        if event is not None and event.timed:
            when = f"on {self._minute(event.start)}"
        elif event is not None:
            first, last = self._day(event.start), self._day(event.end - timedelta(microseconds=1))
            when = f"on {first}" if last <= first else f"from {first} to {last}"
        earlier = dict.fromkeys(version.before.text for version in row.versions)
        self._put(
            _KINDS[memory.kind] if in_use else _NOT_IN_USE,
            memory.text,
            "" if in_use else f"{memory.kind}, {unused}",
            when,
            f"since {self._day(memory.valid_from)}",
            "" if memory.valid_to is None else f"until {self._day(memory.valid_to)}",
            "" if memory.expires_at is None else f"expires on {self._day(memory.expires_at)}",
            "" if memory.remind_at is None else f"reminder for {self._minute(memory.remind_at)}",
            "" if memory.about is None else f"about {memory.about}",
            "" if memory.speaker == memory.user else f"said by {memory.speaker}",
            *(f"earlier: {text}" for text in earlier if text != memory.text),
        )

    def _put(self, section: str, text: str, *notes: str) -> None:
        if section not in self._sections:
            spooled = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed by `close`
            self._sections[section] = cast("IO[bytes]", spooled)
        noted = "; ".join(inline(note) for note in notes if note)
        self._sections[section].write(f"- {lines(text, _INDENT)}{f' *({noted})*' if noted else ''}\n".encode())
