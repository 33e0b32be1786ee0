"""The skeleton of a format, and what formats share: items, positions, times, ids, files, links, HTML."""

from __future__ import annotations

import mimetypes
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from hashlib import blake2b
from html.parser import HTMLParser
from typing import IO, Any, ClassVar, Final, NamedTuple, TypeAlias

from aforesaid.domain import checks
from aforesaid.domain.checks import Category, Role, microseconds, moment
from aforesaid.domain.details import Part, ToolCall
from aforesaid.domain.memory import CATEGORIES, USUAL_IMPORTANCE, USUAL_PRIORITY, MemoryRecord
from aforesaid.domain.transfer import MemoryRow, Row
from aforesaid.errors import InvalidInput, quoted
from aforesaid.extras import re
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_stream import Damaged, Fields, JsonStream, as_moment, numbered_lines, parsed

NO_METADATA: Final[Mapping[str, Any]] = {}


class ImportedMessage(NamedTuple):
    where: str
    """Its position in the file."""
    thread: str
    role: Role
    text: str
    """What was said. It may be empty if there are parts or tool calls."""
    at: datetime | None
    id: str
    """A stable id, so that a message is stored once however often it is imported."""
    author: str | None = None
    """The author; None for the user whose memory it is, or the assistant. A bot among people has an author too: its
    messages belong to the person who wrote before it."""
    name: str | None = None
    owner: str | None = None
    """The user whose memory it is, where the file names one; None: the author, or whoever the assistant replies to."""
    parts: tuple[Part, ...] = ()
    reply_to: str | None = None
    kind: str | None = None
    metadata: Mapping[str, Any] = NO_METADATA
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class ImportedRow(NamedTuple):
    """A row of a dump, with its position in the file."""

    where: str
    row: Row


class Problem(NamedTuple):
    """An entry that cannot be imported."""

    where: str
    why: str


class Skipped(NamedTuple):
    """An entry that is not a message and is skipped on purpose, such as a "joined" notice or a missed call."""

    what: str


Item: TypeAlias = ImportedMessage | ImportedRow | Problem | Skipped

NO_WORDS: Final = Skipped("messages without text or attachment")
NOTICE: Final = Skipped("notices of the app: who joined, what was pinned, calls")
DELETED: Final = Skipped("deleted messages")
MISSING_MEDIA: Final = Skipped("pictures, recordings and files that are not in the export")
REPLACED: Final = Skipped("questions and answers that were edited or regenerated")
HIDDEN: Final = Skipped("instructions and reasoning of the model")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    zone: tzinfo | None = None
    """The time zone of timestamps without one; None for this machine's."""
    user: str = "me"
    space: str = "default"


TAGS: Final = 20
"""Maximum number of tags of an imported memory."""
_TAG_CHARACTERS: Final = 100

_WORDS_OF_CATEGORIES: Final[dict[Category, str]] = {
    "preference": "user_preferences preferences food music entertainment hobbies fashion sports",
    "fact": "facts personal_details professional_details family health finance education milestones profile human",
    "schedule": "appointments travel plans",
    "task": "goals tasks todo",
    "reminder": "reminders",
}
"""The words that other programs use for categories."""
_CATEGORIES: Final[dict[str, Category]] = {category: category for category in CATEGORIES}
_CATEGORIES.update((word, category) for category, words in _WORDS_OF_CATEGORIES.items() for word in words.split())

Entry: TypeAlias = tuple[str, Any]
"""A position in a file, and the JSON value there, or the error with which it could not be read."""


class Format:
    """Reads the files of one app. A subclass says which they are, and what becomes of each record in them."""

    app: ClassVar[str]
    """The name of the app in threads and generated ids."""
    start: ClassVar[str] = ""
    endings: ClassVar[tuple[str, ...]] = (".json",)
    """How the names of the files with records begin and end."""
    record_name: str = "entry"
    """What a record is called in a report."""

    def __init__(self, source: Source, reading: ReadOptions) -> None:
        self.source = source
        self.reading = reading
        self.ids = Ids(self.app)

    def __iter__(self) -> Iterator[Item]:
        """Yield the items of all files, and a problem for what cannot be read, once."""
        for name in self.files():
            yield from self.items(name)

    def files(self) -> list[str]:
        return self.source.named(*self.endings, start=self.start) or self.source.names[:1]

    def items(self, name: str) -> Iterator[Item]:
        """Yield the items of a file; an error that ends it early becomes the last problem."""
        with self.source.open(name) as stream:
            try:
                yield from each(self.entries(stream, name), self.record)
            except InvalidInput as error:
                yield Problem("the rest", str(error))

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:  # noqa: ARG002 - subclasses need it
        return objects(JsonStream(stream), self.record_name)

    def record(self, found: Fields, where: str) -> Item | Iterator[Item]:
        """Return what becomes of a record. What it refuses with InvalidInput becomes a problem."""
        raise NotImplementedError

    def moment(self, value: object, name: str) -> datetime | None:
        """Return a time in any format: ISO 8601 with or without a zone, or seconds since 1970."""
        if value is None:
            return None
        if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
            try:
                return in_zone(datetime.fromisoformat(value), self.reading.zone, name)
            except ValueError:
                return as_moment(value, name)
        return from_seconds(value, name)

    def memory(
        self,
        where: str,
        text: str,
        at: datetime | None,
        tags: Iterable[object],
        *,
        user: str | None = None,
        seen_at: datetime | None = None,
        expires_at: datetime | None = None,
    ) -> ImportedRow:
        """Return a memory that another program made. Its category follows from its tags. Raises InvalidInput."""
        if at is None:
            raise InvalidInput("created_at is missing")
        filled = (tag[:_TAG_CHARACTERS] for tag in tags if isinstance(tag, str) and tag.strip())
        words = tuple(dict.fromkeys(filled))[:TAGS]
        owner = user or self.reading.user
        checks.message_text(text)
        checks.identifier(owner, "user_id")
        categories = (_CATEGORIES[word.casefold()] for word in words if word.casefold() in _CATEGORIES)
        memory = MemoryRecord(
            id=1,
            space=self.reading.space,
            user=owner,
            category=next(categories, "other"),
            text=text,
            importance=USUAL_IMPORTANCE,
            tags=words,
            sources=(),
            created_at=at,
            active=True,
            state="active",
            priority=USUAL_PRIORITY,
            speaker=owner,
            subject=None,
            event=None,
            remind_at=None,
            delivered_at=None,
            expires_at=expires_at,
            valid_from=at,
            valid_to=None,
            superseded_by=None,
            extractor=self.app,
            trust="said",
            reason="",
            times=1,
            seen_at=max(seen_at or at, at),
            revision=1,
        )
        return ImportedRow(where, MemoryRow(memory))


def paragraphs(text: object) -> Iterator[str]:
    """Yield the lines of a text and the items of its lists. Headings are left out."""
    for line in text.splitlines() if isinstance(text, str) else ():
        words = line.strip().removeprefix("- ").removeprefix("* ").strip()
        if words and not words.startswith("#"):
            yield words


def each(
    entries: Iterable[Entry], read: Callable[[Fields, str], Item | Iterator[Item]], what: str = "the entry"
) -> Iterator[Item]:
    """Yield what `read` makes of each entry. What it refuses becomes a problem, and the next entry is read."""
    for place, found in entries:
        try:
            if isinstance(found, InvalidInput):
                raise found
            made = read(Fields(found, what), place)
            if isinstance(made, tuple):
                yield made
            else:
                yield from made
        except InvalidInput as error:
            yield Problem(place, str(error))


def objects(stream: JsonStream, where: str) -> Iterator[Entry]:
    """Yield each value of a list with its position."""
    for number in stream.elements():
        place = f"{where} {number}"
        try:
            yield place, stream.value()
        except Damaged as error:
            yield place, error


def placed(values: Iterable[object], where: str) -> Iterator[Entry]:
    """Yield the messages of a list that is in memory, as `objects` does."""
    return ((f"{where}, message {number}", value) for number, value in enumerate(values, 1))


def entry_of(where: str, line: bytes | str | None) -> Entry:
    """Return the value of a JSON text, or why there is none, with its position."""
    try:
        return where, parsed(line)
    except Damaged as error:
        return where, error


def line_objects(stream: IO[bytes]) -> Iterator[Entry]:
    """Yield the value of each line of a JSON Lines file with its position."""
    for number, line in numbered_lines(stream):
        if line is None or line.strip():
            yield entry_of(f"line {number}", line)


def file_objects(stream: IO[bytes], head: bytes) -> Iterator[Entry]:
    """Yield the values of a JSON list, of JSON lines, or the single object of a file that begins with `head`."""
    start = head.lstrip()
    if start.startswith(b"["):
        yield from objects(JsonStream(stream), "entry")
    elif start.startswith(b"{") and not start.partition(b"\n")[0].rstrip().endswith(b"}"):
        yield "entry 1", JsonStream(stream).value()
    else:
        yield from line_objects(stream)


def text_lines(stream: IO[bytes]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text with their numbers. A line that is too long is empty."""
    for number, line in numbered_lines(stream):
        yield number, "" if line is None else line.decode(errors="surrogateescape").rstrip("\r\n")


def metadata_tags(metadata: object) -> Iterator[str]:
    """Yield the metadata of a memory as tags such as `place=Berlin`. Nested values are left out."""
    if not isinstance(metadata, dict):
        return
    for name, value in metadata.items():
        if name in ("category", "categories", "type"):
            yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str))
        elif isinstance(value, list):
            yield from (f"{name}={each}" for each in value if isinstance(each, str | int | float))
        elif isinstance(value, str | int | float) and value != "":
            yield f"{name}={value}"


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


def _filled(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


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


def filled(*, reactions: Iterable[tuple[object, object]] = (), **values: object) -> dict[str, Any]:
    """Return the metadata that has a value. Reactions are pairs of emoji and count."""
    counts: Counter[str] = Counter()
    for emoji, count in reactions:
        if isinstance(emoji, str) and emoji and isinstance(count, int):
            counts[emoji] += count
    found = {name: value for name, value in values.items() if value not in (None, "", [], {})}
    return {**found, "reactions": dict(counts)} if counts else found


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
        if not self._unseen:
            self._pieces.append(data if self._preformatted else re.sub(r"\s+", " ", data))

    def take(self) -> str:
        lines = (_SPACES.sub(" ", line).strip() for line in "".join(self._pieces).split("\n"))
        self._pieces.clear()
        self._link = None
        return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def html_text(html: str) -> str:
    parser = TextParser()
    parser.feed(html)
    parser.close()
    return parser.take()
