"""Slack's export format: an archive or folder with one folder per channel and one file per day."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import IO, Any, Final

from aforesaid.domain.details import Part
from aforesaid.portability.formats.base import (
    Entry,
    Format,
    attachment,
    filled,
    from_seconds,
    lines,
    objects,
    with_address,
)
from aforesaid.portability.import_items import DELETED, NO_WORDS, NOTICE, ImportedMessage, Item, ReadOptions
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_stream import Fields, JsonStream

DAY: Final = re.compile(r"(?:^|/)([^/]+)/(\d{4}-\d{2}-\d{2})\.json$")
_MARKUP: Final = re.compile(r"<([^<>\s][^<>]*)>")
_BROADCASTS: Final = ("thread_broadcast", "reply_broadcast")
_WRITTEN: Final = (None, "", "bot_message", "me_message", "file_share", "file_comment", *_BROADCASTS)
"""The subtypes of messages that somebody wrote. All others are notices."""


class Slack(Format):
    app = "slack"
    _channel = ""

    def __init__(self, source: Source, reading: ReadOptions) -> None:
        super().__init__(source, reading)
        self._people: dict[str, str] = {}
        self._channels: dict[str, str] = {}
        """The names of members and channels by id."""

    def __iter__(self) -> Iterator[Item]:
        for found in self._listed("users.json", "org_users.json"):
            profile = Fields(found.raw("profile") or {}, "the profile")
            shown = profile.words("display_name", "real_name") or found.words("real_name", "name")
            self._people[found.text("id")] = shown or found.text("id")
        for found in self._listed("channels.json", "groups.json"):
            self._channels[found.text("id")] = found.words("name") or found.text("id")
        yield from super().__iter__()

    def files(self) -> list[str]:
        return [name for name in self.source.names if DAY.search(name)]

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:
        found = DAY.search(name)
        self._channel = f"slack:{found[1] if found else name}"
        return objects(JsonStream(stream), f"{name}, message")

    def _listed(self, *names: str) -> Iterator[Fields]:
        """Yield the objects with an id in the lists of an export."""
        for name in self.source.called(*names):
            with self.source.open(name) as stream:
                for _, found in objects(JsonStream(stream), "entry"):
                    if isinstance(found, dict) and isinstance(found.get("id"), str):
                        yield Fields(found)

    def record(self, found: Fields, where: str) -> Item:
        subtype = found.raw("subtype")
        if subtype == "tombstone":
            return DELETED
        if found.raw("type") != "message" or subtype not in _WRITTEN:
            return NOTICE
        text, parts = self._content(found)
        if not text and not parts:
            return NO_WORDS
        stamp, root = found.text("ts"), found.words("thread_ts")
        is_reply = root is not None and root != stamp
        # A reply that was also sent to the channel belongs there: people answer it there.
        in_channel = not is_reply or subtype in _BROADCASTS
        bot = found.words("bot_id")
        author = found.words("user") or bot or found.words("username") or "unknown"
        profile = Fields(found.inner("user_profile").values or found.inner("bot_profile").values)
        shown = profile.words("display_name", "real_name", "name") or found.words("username")
        reactions = [
            (f":{given.raw('name')}:" if isinstance(given.raw("name"), str) else None, given.raw("count"))
            for given in found.objects("reactions")
        ]
        return ImportedMessage(
            where,
            self._channel if in_channel else f"{self._channel}:{root}",
            "user" if bot is None else "assistant",
            text,
            from_seconds(stamp, "ts"),
            stamp,
            author,
            self._people.get(author) or shown,
            parts=parts,
            reply_to=root if is_reply else None,
            kind="me" if subtype == "me_message" else None,
            metadata=filled(edited=found.inner("edited").raw("ts"), reactions=reactions),
        )

    def _content(self, found: Fields) -> tuple[str, tuple[Part, ...]]:
        """Return the text of a message with its cards, and its files."""
        # `text` is the fallback of `blocks`. Where it is missing, the blocks have the words.
        text = self._readable(found.words("text")) or lines(*map(self._block, found.items("blocks")))
        cards = [self._card(card, text) for card in found.objects("attachments")]
        files = [
            attachment(
                file.words("name", "title"),
                file.words("mimetype"),
                url=file.words("permalink", "url_private"),
                size=file.raw("size"),
            )
            for file in found.objects("files")
            if file.raw("mode") != "tombstone"
        ]
        return lines(text, *cards), tuple(files)

    def _card(self, card: Fields, said: str) -> str:
        """Return the words of an attachment: a bot's card, a shared message, or the preview of a link in the text."""
        title, fallback = self._readable(card.words("title")), self._readable(card.words("fallback"))
        address = card.raw("title_link") or card.raw("from_url")
        if isinstance(address, str) and address not in said:
            title = with_address(title or fallback, address)
        body = self._readable(card.words("text")) or lines(*map(self._block, card.items("blocks")))
        if (card.raw("is_msg_unfurl") or card.raw("is_share")) and card.words("author_name"):
            body = f"{self._readable(card.words('author_name'))}: {body}"
        inner = [f"{field.words('title') or ''}: {field.words('value') or ''}" for field in card.objects("fields")]
        pretext = self._readable(card.words("pretext"))
        return lines(pretext, title, body, *map(self._readable, inner)) or fallback

    def _block(self, block: Any) -> str:  # noqa: ANN401 - whatever JSON holds
        """Return the words of a block or of an element in one."""
        if isinstance(block, list):
            return "".join(map(self._block, block))
        if not isinstance(block, dict):
            return ""
        fields = Fields(block)
        text = str(block.get("text") or "")
        match block.get("type"):
            case "text":
                return text
            case "mrkdwn" | "plain_text":
                return self._readable(text)
            case "link":
                return with_address(text or str(block.get("url") or ""), block.get("url"))
            case "user":
                person = str(block.get("user_id"))
                return f"@{self._people.get(person, person)}"
            case "channel":
                channel = str(block.get("channel_id"))
                return f"#{self._channels.get(channel, channel)}"
            case "emoji":
                return f":{block.get('name')}:"
            case "broadcast":
                return f"@{block.get('range')}"
            case "image":
                return str(block.get("alt_text") or "")
            case "section" | "header" | "markdown":
                given = block.get("text")
                head = given if isinstance(given, str) else self._block(given)
                return lines(head, *map(self._block, fields.items("fields")))
        inner = [self._block(item) for item in fields.items("elements")]
        match block.get("type"):
            case "rich_text":
                return lines(*inner)
            case "rich_text_list":
                return "\n".join(f"- {item}" for item in inner)
            case "context":
                return " ".join(filter(None, inner))
        return "".join(inner)

    def _readable(self, text: str | None) -> str:
        """Return a text without Slack's markup: names instead of ids, links with their addresses, plain characters."""
        return html.unescape(_MARKUP.sub(self._plain, text or ""))

    def _plain(self, match: re.Match[str]) -> str:
        target, bar, label = match[1].partition("|")
        if target.startswith("@"):
            return f"@{self._people.get(target[1:]) or label or target[1:]}"
        if target.startswith("#"):
            return f"#{label or self._channels.get(target[1:]) or target[1:]}"
        if target.startswith("!"):
            name = label or target[1:].partition("^")[0]
            return name if target.startswith("!date") or name.startswith("@") else f"@{name}"
        return with_address(label, target) if bar and label else target.removeprefix("mailto:").removeprefix("tel:")
