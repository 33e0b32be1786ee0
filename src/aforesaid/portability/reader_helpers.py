"""What readers of formats share: times in order, HTML, named files, long messages."""

from __future__ import annotations

import asyncio
import heapq
import mimetypes
import os
import pickle
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from hashlib import blake2b
from html.parser import HTMLParser
from itertools import islice
from mimetypes import guess_extension
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final
from unicodedata import category, normalize

from aforesaid.domain.checks import microseconds, moment
from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput, NotFound, StoreDamaged, quoted
from aforesaid.portability.import_items import ImportedMessage, Item, Problem
from aforesaid.portability.input_files import telling
from aforesaid.portability.json_stream import Damaged, JsonStream, numbered_lines, parsed
from aforesaid.portability.row_codec import Fields, as_moment
from aforesaid.store.attachments import Attachments
from aforesaid.store.unfinished import unfinished


class Ids:
    """Generates stable ids for messages without one: importing a file again gives the same ids.

    Messages that are equal in everything get different ids: the second ends in `-2`, and so on. Equal messages have
    the same time, so only those of the current time are remembered.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._at: datetime | None = None
        self._seen: Counter[bytes] = Counter()

    def of(self, at: datetime | None, *parts: str | None) -> str:
        """Return the id of a message."""
        if at != self._at and at is not None:
            self._at = at
            self._seen.clear()
        whole = "\0".join(["" if at is None else at.isoformat(), *(part or "" for part in parts)])
        key = blake2b(whole.encode(errors="surrogatepass"), digest_size=10).digest()
        self._seen[key] += 1
        times = self._seen[key]
        return f"{self._prefix}-{key.hex()}" + (f"-{times}" if times > 1 else "")


def from_seconds(value: object, name: str) -> datetime:
    """Return a time from seconds since 1970, given as a number or a string."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidInput(f"{name} must be seconds since 1970")
    try:
        if isinstance(value, int):
            return moment(value * 1_000_000)
        whole, _, part = (value if isinstance(value, str) else f"{value:.6f}").partition(".")
        return moment(int(whole) * 1_000_000 + int(part[:6].ljust(6, "0") or "0"))
    except (ValueError, OverflowError):
        raise InvalidInput(f"{name} is not a number of seconds: {quoted(value)}") from None


def from_milliseconds(value: object, name: str) -> datetime:
    """Return a time from milliseconds since 1970, given as a number or a string."""
    try:
        if not isinstance(value, bool) and isinstance(value, int | str):
            return moment(int(value) * 1_000)
    except (ValueError, OverflowError):
        pass
    raise InvalidInput(f"{name} must be milliseconds since 1970, not {quoted(value)}")


def in_zone(value: datetime, zone: tzinfo | None, name: str) -> datetime:
    """Return a local time in a zone; None is this machine's zone."""
    if value.utcoffset() is None:
        try:
            value = value.replace(tzinfo=zone) if zone is not None else value.astimezone()
        except (OverflowError, ValueError, OSError):
            value = value.replace(tzinfo=UTC)
    return moment(microseconds(value, name))


def any_moment(value: object, name: str, zone: tzinfo | None) -> datetime | None:
    """Return a time in any format: ISO 8601 with or without a zone, or seconds since 1970."""
    if value is None:
        return None
    if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
        try:
            return in_zone(datetime.fromisoformat(value), zone, name)
        except ValueError:
            return as_moment(value, name)
    return from_seconds(value, name)


def parts_text(content: object) -> str:
    """Return the text of a string, a list of parts, or an object with a text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(parts_text(part) for part in content)
    if isinstance(content, dict):
        text = content.get("text")
        return text if isinstance(text, str) else ""
    return ""


def attachment(
    name: object = None,
    media_type: object = None,
    *,
    url: object = None,
    size: object = None,
    text: object = None,
) -> Part:
    """Return the part of a message that names a file. Its type follows from the media type, or the file's name."""
    given = _filled(media_type)
    if given is None or "/" not in given:
        given = mimetypes.guess_type(str(name or url or ""))[0] or given
    family = (given or "").partition("/")[0]
    return Part(
        "image" if family == "image" else "audio" if family == "audio" else "file",
        text=_filled(text),
        url=_filled(url),
        media_type=given,
        name=_filled(name),
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
    )


def with_address(label: str, address: object) -> str:
    """Return the text of a link, with its address where the text does not show it."""
    if not isinstance(address, str) or not address or label.strip().rstrip("/") in (address, address.rstrip("/")):
        return label
    bare = address.removeprefix("mailto:").removeprefix("tel:").removeprefix("https://").removeprefix("http://")
    return label if label.strip().rstrip("/") == bare.rstrip("/") else f"{label} ({address})"


def lines(*texts: str | None) -> str:
    """Join the texts that are not empty, each on a line of its own."""
    return "\n".join(text for text in texts if text)


def filled(**values: object) -> dict[str, Any]:
    """Return the metadata that has a value."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def reaction_counts(reactions: Iterable[tuple[object, object]]) -> dict[str, int]:
    """Return how often each reaction was given, from pairs of emoji and count."""
    counts: Counter[str] = Counter()
    for emoji, count in reactions:
        if isinstance(emoji, str) and emoji and isinstance(count, int):
            counts[emoji] += count
    return dict(counts)


def objects(stream: JsonStream, where: str) -> Iterator[tuple[str, Fields | Problem]]:
    """Yield each object of a list with its position, or a problem."""
    for number in stream.elements():
        place = f"{where} {number}"
        try:
            yield place, Fields(stream.value(), "the entry")
        except Damaged as error:
            yield place, Problem(place, str(error))
        except InvalidInput as error:
            if stream.peek() not in (",", "]"):
                raise
            yield place, Problem(place, str(error))


def line_objects(stream: IO[bytes]) -> Iterator[tuple[str, Fields | Problem]]:
    """Yield the object of each line of a JSON Lines file with its position, or a problem."""
    for number, line in numbered_lines(stream):
        if line is not None and not line.strip():
            continue
        where = f"line {number}"
        try:
            yield where, Fields(parsed(line))
        except InvalidInput as error:
            yield where, Problem(where, str(error))


def file_objects(stream: IO[bytes], head: bytes) -> Iterator[tuple[str, Fields | Problem]]:
    """Yield the objects of a JSON list, of JSON lines, or the single object of a file that begins with `head`."""
    start = head.lstrip()
    if start.startswith(b"["):
        yield from objects(JsonStream(stream), "entry")
    elif start.startswith(b"{") and not start.partition(b"\n")[0].rstrip().endswith(b"}"):
        yield "entry 1", Fields(JsonStream(stream).value())
    else:
        yield from line_objects(stream)


def each(
    entries: Iterable[tuple[str, Fields | Problem]], read: Callable[[Fields, str], Item | Iterator[Item]]
) -> Iterator[Item]:
    """Yield what `read` makes of each entry. What it refuses becomes a problem, and the next entry is read."""
    for place, found in entries:
        if isinstance(found, Problem):
            yield found
            continue
        try:
            made = read(found, place)
            if isinstance(made, tuple):
                yield made
            else:
                yield from made
        except InvalidInput as error:
            yield Problem(place, str(error))


def placed(values: Iterable[object], where: str, what: str = "message") -> Iterator[tuple[str, Fields | Problem]]:
    """Yield the objects of a list that is in memory, as `objects` does."""
    for number, value in enumerate(values, 1):
        place = f"{where}, {what} {number}"
        try:
            yield place, Fields(value, f"the {what}")
        except InvalidInput as error:
            yield place, Problem(place, str(error))


def until_damaged(items: Iterator[Item]) -> Iterator[Item]:
    """Yield items to the end; an error that ends them early becomes the last problem."""
    try:
        yield from items
    except InvalidInput as error:
        yield Problem("the rest", str(error))


def name_of(fields: Fields, *names: str) -> str | None:
    """Return the first of several fields that is a non-empty string."""
    for name in names:
        value: Any = fields.raw(name)
        if isinstance(value, str) and value.strip():
            return value
    return None


def mapping_of(fields: Fields, name: str) -> Mapping[str, Any]:
    """Return a field that is an object; an empty one where it is missing or something else."""
    value = fields.raw(name)
    return value if isinstance(value, dict) else {}


def objects_of(fields: Fields, name: str) -> list[Fields]:
    """Return the objects of a list; other values in it are left out."""
    return [Fields(value) for value in fields.items(name) if isinstance(value, dict)]


def _filled(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def shown_branch(parents: Mapping[str, object], current: object) -> list[str]:
    """Return the ids from the root of a conversation tree to the message shown last.

    `parents` maps each message's id to its parent's, in the order of the file. Edited questions and regenerated answers
    are branches of the tree.
    """
    if not isinstance(current, str) or current not in parents:
        inner = {parent for parent in parents.values() if isinstance(parent, str)}
        current = next((name for name in reversed(list(parents)) if name not in inner), None)
    path: dict[str, None] = {}
    while isinstance(current, str) and current in parents and current not in path:
        path[current] = None
        current = parents[current]
    return list(path)[::-1]


_BLOCKS: Final = frozenset(
    {"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote", "ul", "ol", "table", "hr"}
)
_UNSEEN: Final = frozenset({"script", "style", "head", "title"})
_SPACES: Final = re.compile(r"[ \t\r\f\xa0]+")
_BLANK_LINES: Final = re.compile(r"\n\s*\n\s*\n+")


class TextParser(HTMLParser):
    """Collects the text of HTML: a line for each block, and the addresses of links."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._pieces: list[str] = []
        self._link: tuple[str, int] | None = None
        self._unseen = 0
        self._preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a block, a link, or text that is not shown."""
        self._unseen += tag in _UNSEEN
        self._preformatted += tag == "pre"
        if tag in _BLOCKS:
            self._pieces.append("\n")
        if tag == "li":
            self._pieces.append("- ")
        if tag in ("td", "th"):
            self._pieces.append(" ")
        address = dict(attrs).get("href")
        if tag == "a" and address and address.startswith(("http:", "https:")):
            self._link = address, len(self._pieces)

    def handle_endtag(self, tag: str) -> None:
        """End a block, a link, or text that is not shown."""
        self._unseen -= tag in _UNSEEN and self._unseen > 0
        self._preformatted -= tag == "pre" and self._preformatted > 0
        if tag in _BLOCKS and tag != "li":
            self._pieces.append("\n")
        if tag == "a" and self._link is not None:
            address, start = self._link
            self._link = None
            label = "".join(self._pieces[start:]).strip()
            if address not in (label, f"{label}/"):
                self._pieces.append(f" ({address})")

    def handle_data(self, data: str) -> None:
        """Collect text."""
        if not self._unseen:
            self._pieces.append(data if self._preformatted else re.sub(r"\s+", " ", data))

    def take(self) -> str:
        """Return the text collected so far, and begin anew."""
        lines = (_SPACES.sub(" ", line).strip() for line in "".join(self._pieces).split("\n"))
        self._pieces.clear()
        self._link = None
        return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def html_text(html: str) -> str:
    """Return the text of a piece of HTML."""
    parser = TextParser()
    parser.feed(html)
    parser.close()
    return parser.take()


_MOST_BYTES: Final = 6
"""Maximum bytes of a character in details: JSON writes a control character as `\\u0000`."""
_RESERVED: Final = 4_096
"""Bytes of details left for names, addresses, kinds and metadata."""
_CUT: Final = " […]"


def storable_pieces(item: ImportedMessage, limit: int) -> Iterator[ImportedMessage]:
    """Yield a message, in several pieces if its text has more than `limit` bytes.

    The text of attachments and the arguments of tool calls are cut where all of them together are too long.
    """
    texts = split_text(item.text, limit)
    if item.parts or item.tool_calls:
        item = _with_short_details(item, limit)
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
        end = len(_beginning(text, limit))
        place = next((found for mark in "\n ." if (found := text.rfind(mark, end // 2, end)) > 0), end - 1) + 1
        pieces.append(text[:place])
        text = text[place:]
    return [*pieces, text] if text.strip() or not pieces else pieces


def _with_short_details(item: ImportedMessage, limit: int) -> ImportedMessage:
    texts = [part.text for part in item.parts if part.text] + [call.arguments for call in item.tool_calls]
    room = max(limit - _RESERVED, limit // 2)
    if sum(map(len, texts)) * _MOST_BYTES <= room:
        return item
    share = room // len(texts) // 2
    parts = tuple(replace(part, text=_cut(part.text, share)) if part.text else part for part in item.parts)
    calls = tuple(replace(call, arguments=_cut(call.arguments, share)) for call in item.tool_calls)
    return item._replace(parts=parts, tool_calls=calls)


def _cut(text: str, limit: int) -> str:
    return text if len(text.encode(errors="surrogatepass")) <= limit else _beginning(text, limit) + _CUT


def _beginning(text: str, limit: int) -> str:
    """Return as many characters from the beginning of a text as have at most `limit` bytes."""
    return text.encode(errors="surrogatepass")[:limit].decode(errors="ignore")


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
        """Number of files."""
        return sum(name is not None for name in self._names.values())

    @property
    def missing(self) -> tuple[str, ...]:
        """Hashes of the attachments that could not be copied."""
        return tuple(sorted(hash_ for hash_, name in self._names.items() if name is None))

    async def add(self, part: Part) -> str | None:
        """Write the bytes of a part; return the name of the file, or None if its bytes are not there."""
        if part.hash is None or self._source is None:
            return None
        if part.hash not in self._names:
            self._names[part.hash] = await self._write(part, part.hash, self._source)
        return self._names[part.hash]

    async def _write(self, part: Part, name: str, source: Attachments) -> str | None:
        if self._folder is None:
            return None
        try:
            data = await source.read(name)
        except (NotFound, StoreDamaged):
            return None
        chosen = self._choose(part)
        if self._unfinished is None:
            with telling(self._folder):
                self._folder.parent.mkdir(parents=True, exist_ok=True)
                self._unfinished = self._open.enter_context(unfinished(self._folder, folder=True))
        await asyncio.to_thread(_put, self._unfinished / chosen, data)
        return chosen

    def finish(self) -> None:
        """Give the folder its name."""
        if self._unfinished is not None and self._folder is not None:
            with telling(self._folder):
                self._unfinished.rename(self._folder)
            self._finished = True
            self._open.close()

    def discard(self) -> None:
        """Remove all that was written, after a failure."""
        self._open.close()
        if self._finished and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _choose(self, part: Part) -> str:
        wanted = safe_file_name(part.name or "")
        if not wanted:
            self._unnamed += 1
            wanted = f"attachment-{self._unnamed}{guess_extension(part.media_type or '') or ''}"
        path = PurePosixPath(wanted)
        chosen = wanted
        while (seen := chosen.casefold()) in self._numbers:
            # Some file systems do not tell capital letters from small ones.
            self._numbers[wanted.casefold()] += 1
            chosen = f"{path.stem}-{self._numbers[wanted.casefold()]}{path.suffix}"
        self._numbers[seen] = 1
        return chosen


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


RUN_MESSAGES: Final = 50_000
"""Maximum messages of a run, which is sorted in memory: about 50 MB of chat messages."""
RUN_CHARACTERS: Final = 32_000_000
"""Maximum characters of text in a run, for very long messages."""
BLOCK: Final = 100
"""Messages read back at a time from each run while they are merged."""

_LAST: Final = datetime.max.replace(tzinfo=UTC)


_Placed = tuple[datetime, int, tuple[Any, ...]]
"""A message after its sort key: its time and its position. No two have the same position, so messages themselves are
never compared. It is a plain tuple, because named ones take three times as long to write."""


class TimeSort:
    """Collects tuples and returns them by time; of the same time, in the order in which they came."""

    def __init__(self, run_messages: int = RUN_MESSAGES) -> None:
        """Sort up to `run_messages` tuples in memory."""
        self.total = 0
        """Number of tuples collected."""
        self._run_messages = run_messages
        self._run: list[_Placed] = []
        self._characters = 0
        self._file: IO[bytes] | None = None
        self._runs: list[list[int]] = []
        """The positions of the blocks of each run in the file."""

    def add(self, at: datetime, fields: tuple[Any, ...], characters: int) -> None:
        """Collect a tuple with its time and the length of its texts."""
        self.total += 1
        self._run.append((at, self.total, fields))
        self._characters += characters
        if len(self._run) >= self._run_messages or self._characters >= RUN_CHARACTERS:
            self._write_run()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Yield the collected tuples in order, once."""
        self._run.sort()
        for _, _, fields in heapq.merge(*map(self._read_run, self._runs), self._run):
            yield fields

    def close(self) -> None:
        """Delete the temporary file."""
        if self._file is not None:
            self._file.close()

    def _write_run(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="aforesaid-sort-")  # noqa: SIM115 - closed by `close`
        self._run.sort()
        entries = iter(self._run)
        blocks: list[int] = []
        while block := list(islice(entries, BLOCK)):
            blocks.append(self._file.tell())
            pickle.dump(block, self._file, pickle.HIGHEST_PROTOCOL)
        self._runs.append(blocks)
        self._run = []
        self._characters = 0

    def _read_run(self, blocks: list[int]) -> Iterator[_Placed]:
        for position in blocks:
            yield from self._read_block(position)

    def _read_block(self, position: int) -> list[_Placed]:
        if self._file is None:
            raise RuntimeError("a block was written without a file")
        self._file.seek(position)
        block: list[_Placed] = pickle.load(self._file)  # noqa: S301 - written above, to a file without a name
        return block


class TimeOrder:
    """Collects messages of a file and returns them by time; of the same time, in the order of the file.

    Messages without a time come last.
    """

    def __init__(self, run_messages: int = RUN_MESSAGES) -> None:
        """Sort up to `run_messages` messages in memory."""
        self._sort = TimeSort(run_messages)

    @property
    def total(self) -> int:
        """Number of messages collected."""
        return self._sort.total

    def add(self, message: ImportedMessage) -> None:
        """Collect a message."""
        characters = len(message.text) + sum(len(part.text or "") for part in message.parts)
        self._sort.add(_LAST if message.at is None else message.at, tuple(message), characters)

    def __iter__(self) -> Iterator[ImportedMessage]:
        """Yield the collected messages in order, once."""
        return map(ImportedMessage._make, self._sort)

    def close(self) -> None:
        """Delete the temporary file."""
        self._sort.close()
