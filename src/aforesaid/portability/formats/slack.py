"""Slack's export format: an archive or folder with one folder per channel and one file per day."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from aforesaid.domain.details import Part
from aforesaid.portability.import_items import DELETED, NO_WORDS, NOTICE, ImportedMessage, Item, Problem, ReadOptions
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_stream import JsonStream
from aforesaid.portability.reader_helpers import (
    attachment,
    each,
    filled,
    from_seconds,
    lines,
    mapping_of,
    name_of,
    objects,
    objects_of,
    reaction_counts,
    until_damaged,
    with_address,
)
from aforesaid.portability.row_codec import Fields

DAY: Final = re.compile(r"(?:^|/)([^/]+)/(\d{4}-\d{2}-\d{2})\.json$")
_MARKUP: Final = re.compile(r"<([^<>\s][^<>]*)>")
_WRITTEN: Final = (
    None,
    "",
    "bot_message",
    "me_message",
    "thread_broadcast",
    "file_share",
    "file_comment",
    "reply_broadcast",
)
"""The subtypes of messages that somebody wrote. All others are notices."""


class _Names(NamedTuple):
    """The names of members and channels by id."""

    people: dict[str, str]
    channels: dict[str, str]


def read(source: Source, _: ReadOptions) -> Iterator[Item]:
    """Yield the messages of all channels."""
    names = _Names(_people(source), _channels(source))
    for name in source.names:
        found = DAY.search(name)
        if found is not None:
            with source.open(name) as stream:
                entries = objects(JsonStream(stream), f"{name}, message")
                yield from until_damaged(each(entries, partial(_message, f"slack:{found[1]}", names)))


def _people(source: Source) -> dict[str, str]:
    people: dict[str, str] = {}
    for found in _listed(source, "users.json", "org_users.json"):
        profile = Fields(found.raw("profile") or {}, "the profile")
        shown = name_of(profile, "display_name", "real_name") or name_of(found, "real_name", "name")
        people[found.text("id")] = shown or found.text("id")
    return people


def _channels(source: Source) -> dict[str, str]:
    return {
        found.text("id"): name_of(found, "name") or found.text("id")
        for found in _listed(source, "channels.json", "groups.json")
    }


def _listed(source: Source, *names: str) -> Iterator[Fields]:
    """Yield the objects with an id in the lists of an export."""
    for name in source.called(*names):
        with source.open(name) as stream:
            for _, found in objects(JsonStream(stream), "entry"):
                if not isinstance(found, Problem) and isinstance(found.raw("id"), str):
                    yield found


def _message(channel: str, names: _Names, found: Fields, where: str) -> Item:
    subtype = found.raw("subtype")
    if subtype == "tombstone":
        return DELETED
    if found.raw("type") != "message" or subtype not in _WRITTEN:
        return NOTICE
    text, parts = _content(found, names)
    if not text and not parts:
        return NO_WORDS
    stamp = found.text("ts")
    root = name_of(found, "thread_ts")
    is_reply = root is not None and root != stamp
    # A reply that was also sent to the channel belongs there: people answer it there.
    in_channel = not is_reply or subtype in ("thread_broadcast", "reply_broadcast")
    bot = name_of(found, "bot_id")
    author = name_of(found, "user") or bot or name_of(found, "username") or "unknown"
    profile = Fields(mapping_of(found, "user_profile") or mapping_of(found, "bot_profile"))
    reactions = [(given.raw("name"), given.raw("count")) for given in objects_of(found, "reactions")]
    return ImportedMessage(
        where,
        channel if in_channel else f"{channel}:{root}",
        "user" if bot is None else "assistant",
        text,
        from_seconds(stamp, "ts"),
        stamp,
        author,
        names.people.get(author) or name_of(profile, "display_name", "real_name", "name") or name_of(found, "username"),
        parts=parts,
        reply_to=root if is_reply else None,
        kind="me" if subtype == "me_message" else None,
        metadata=filled(
            edited=mapping_of(found, "edited").get("ts"),
            reactions=reaction_counts(
                (f":{name}:" if isinstance(name, str) else None, count) for name, count in reactions
            ),
        ),
    )


def _content(found: Fields, names: _Names) -> tuple[str, tuple[Part, ...]]:
    """Return the text of a message with its cards, and its files."""
    text = readable(name_of(found, "text") or "", names.people, names.channels)
    if not text:
        # `text` is the fallback of `blocks`. Where it is missing, the blocks have the words.
        text = lines(*(_block_text(block, names) for block in found.items("blocks")))
    cards = [_card(card, names, text) for card in objects_of(found, "attachments")]
    files = [
        attachment(
            name_of(file, "name", "title"),
            name_of(file, "mimetype"),
            url=name_of(file, "permalink", "url_private"),
            size=file.raw("size"),
        )
        for file in objects_of(found, "files")
        if file.raw("mode") != "tombstone"
    ]
    return lines(text, *cards), tuple(files)


def _card(card: Fields, names: _Names, said: str) -> str:
    """Return the words of an attachment: a bot's card, a shared message, or the preview of a link in the text."""

    def field(name: str) -> str:
        return readable(name_of(card, name) or "", names.people, names.channels)

    title = field("title")
    address = card.raw("title_link") or card.raw("from_url")
    if isinstance(address, str) and address not in said:
        title = with_address(title or field("fallback"), address)
    body = field("text") or lines(*(_block_text(block, names) for block in card.items("blocks")))
    inner = [f"{name_of(each, 'title') or ''}: {name_of(each, 'value') or ''}" for each in objects_of(card, "fields")]
    author = field("author_name") if card.raw("is_msg_unfurl") or card.raw("is_share") else ""
    shared = f"{author}: {body}" if author else body
    words = lines(field("pretext"), title, shared, *(readable(each, names.people, names.channels) for each in inner))
    return words or field("fallback")


def _block_text(block: Any, names: _Names) -> str:  # noqa: ANN401 - whatever JSON holds
    """Return the words of a block or of an element in one."""
    if isinstance(block, list):
        return "".join(_block_text(item, names) for item in block)
    if not isinstance(block, dict):
        return ""
    leaf = _leaf_text(block, names)
    if leaf is not None:
        return leaf
    fields = Fields(block)
    inner = [_block_text(item, names) for item in fields.items("elements")]
    match block.get("type"):
        case "rich_text":
            return lines(*inner)
        case "rich_text_list":
            return "\n".join(f"- {item}" for item in inner)
        case "context":
            return " ".join(filter(None, inner))
        case "section" | "header" | "markdown":
            text = block.get("text")
            head = text if isinstance(text, str) else _block_text(text, names)
            return lines(head, *(_block_text(item, names) for item in fields.items("fields")))
        case _:
            return "".join(inner)


def _leaf_text(element: dict[str, Any], names: _Names) -> str | None:
    """Return the words of an element that has no others in it; None for one that has."""
    text = str(element.get("text") or "")
    person, channel = str(element.get("user_id")), str(element.get("channel_id"))
    match element.get("type"):
        case "text":
            return text
        case "mrkdwn" | "plain_text":
            return readable(text, names.people, names.channels)
        case "link":
            return with_address(text or str(element.get("url") or ""), element.get("url"))
        case "user":
            return f"@{names.people.get(person, person)}"
        case "channel":
            return f"#{names.channels.get(channel, channel)}"
        case "emoji":
            return f":{element.get('name')}:"
        case "broadcast":
            return f"@{element.get('range')}"
        case "image":
            return str(element.get("alt_text") or "")
        case _:
            return None


def readable(text: str, people: dict[str, str], channels: dict[str, str]) -> str:
    """Return a text without Slack's markup: names instead of ids, links with their addresses, plain characters."""

    def plain(match: re.Match[str]) -> str:
        target, bar, label = match[1].partition("|")
        if target.startswith("@"):
            return f"@{people.get(target[1:]) or label or target[1:]}"
        if target.startswith("#"):
            return f"#{label or channels.get(target[1:]) or target[1:]}"
        if target.startswith("!"):
            name = label or target[1:].partition("^")[0]
            return name if target.startswith("!date") or name.startswith("@") else f"@{name}"
        return with_address(label, target) if bar and label else target.removeprefix("mailto:").removeprefix("tel:")

    return html.unescape(_MARKUP.sub(plain, text))
