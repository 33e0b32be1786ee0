"""Slack's export format: an archive or folder with one folder per channel and one file per day."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from aforesaid.portability.import_items import ImportedMessage, Item, Problem, ReadOptions, Skipped
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_fields import Fields
from aforesaid.portability.json_stream import JsonStream
from aforesaid.portability.reader_helpers import conversation, from_seconds, name_of, objects, opened, told

DAY: Final = re.compile(r"(?:^|/)([^/]+)/(\d{4}-\d{2}-\d{2})\.json$")
_MENTION: Final = re.compile(r"<@([A-Z0-9]+)(?:\|[^>]*)?>")
_TALK: Final = (None, "", "bot_message", "me_message", "thread_broadcast", "file_share")


def read(source: Source, _: ReadOptions) -> Iterator[Item]:
    """Yield the messages of all channels, in order of their days."""
    people = _people(source)
    for name in source.names:
        found = DAY.search(name)
        if found is not None:
            with source.open(name) as stream:
                yield from told(_day(opened(stream), f"{name}, message", f"slack:{found[1]}", people))


def _people(source: Source) -> dict[str, str]:
    """Return the names of the members by id."""
    names: dict[str, str] = {}
    for name in source.named("users.json"):
        with source.open(name) as stream:
            for _, found in objects(opened(stream), "user"):
                if isinstance(found, Problem) or not isinstance(found.raw("id"), str):
                    continue
                profile = Fields(found.raw("profile") or {}, "the profile")
                shown = name_of(profile, "display_name", "real_name") or name_of(found, "real_name", "name")
                names[found.text("id")] = shown or found.text("id")
    return names


def _day(stream: JsonStream, where: str, thread: str, people: dict[str, str]) -> Iterator[Item]:
    return conversation(stream, where, partial(_message, thread, people))


def _message(thread: str, people: dict[str, str], found: Fields, where: str, last: str | None) -> Item:
    if found.raw("type") != "message" or found.raw("subtype") not in _TALK:
        return Skipped("notes of the app: who joined, what was renamed")
    files = [Fields(each, "a file") for each in found.items("files")]
    names = [f"[{name}]" for each in files if (name := name_of(each, "name", "title"))]
    said = _MENTION.sub(lambda match: f"@{people.get(match[1], match[1])}", name_of(found, "text") or "")
    text = "\n".join(part for part in (said, *names) if part)
    if not text:
        return Skipped("messages without text")
    stamp = found.text("ts")
    at = from_seconds(stamp, "ts")
    bot = name_of(found, "bot_id")
    author = name_of(found, "user") or bot or name_of(found, "username") or "unknown"
    name = people.get(author) or name_of(found, "username")
    if bot is not None:
        return ImportedMessage(where, thread, "assistant", text, at, stamp, author, name, answers=last)
    return ImportedMessage(where, thread, "user", text, at, stamp, author, name)
