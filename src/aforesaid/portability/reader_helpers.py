"""Helpers that several readers share: stable ids, times, texts in parts, attachments, lists of objects."""

from __future__ import annotations

import mimetypes
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from hashlib import blake2b
from typing import IO, Any

from aforesaid.domain.checks import microseconds, moment
from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput, quoted
from aforesaid.portability.import_items import Item, Problem
from aforesaid.portability.json_fields import Fields, as_moment
from aforesaid.portability.json_lines import numbered_lines, parsed
from aforesaid.portability.json_stream import Damaged, JsonStream


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
