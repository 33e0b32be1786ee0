"""Helpers that several readers share: stable ids, times, texts in parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, tzinfo
from hashlib import blake2b
from typing import IO, Any

from aforesaid.domain.checks import microseconds, moment
from aforesaid.errors import InvalidInput, quoted
from aforesaid.portability.import_items import ImportedMessage, Item, Problem
from aforesaid.portability.json_fields import Fields, as_moment
from aforesaid.portability.json_stream import Damaged, JsonStream


class Ids:
    """Generates stable ids for messages without one: importing a file again gives the same ids.

    Of messages that are equal in everything, the first, the second and so on differ. They stand near one another, as
    they have the same time, so only the last few are kept in mind.
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
        whole, _, part = (value if isinstance(value, str) else f"{value:.6f}").partition(".")
        return moment(int(whole) * 1_000_000 + int(part[:6].ljust(6, "0") or "0"))
    except (ValueError, OverflowError):
        raise InvalidInput(f"{name} is not a number of seconds: {quoted(value)}") from None


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


def conversation(stream: JsonStream, where: str, read: Callable[[Fields, str, str | None], Item]) -> Iterator[Item]:
    """Yield the items of a list of messages. `read` converts each, given its position and the last human speaker."""
    last: str | None = None
    for place, found in objects(stream, where):
        if isinstance(found, Problem):
            yield found
            continue
        try:
            item = read(found, place, last)
        except InvalidInput as error:
            yield Problem(place, str(error))
            continue
        if isinstance(item, ImportedMessage) and item.role == "user":
            last = item.author
        yield item


def opened(stream: IO[bytes]) -> JsonStream:
    """Return a JSON parser over a stream."""
    return JsonStream(stream)


def told(items: Iterator[Item]) -> Iterator[Item]:
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
