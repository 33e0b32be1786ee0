"""DiscordChatExporter's JSON format: one file per channel or thread, or a folder or archive of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Final

from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput
from aforesaid.portability.formats.base import Entry, Format, attachment, filled, lines, objects, with_address
from aforesaid.portability.import_items import NO_WORDS, NOTICE, ImportedMessage, Item
from aforesaid.portability.json_stream import Fields, JsonStream

_MESSAGES: Final = ("Default", "Reply", "ChatInputCommand", "ContextMenuCommand", "ThreadStarterMessage", "0", "19")
"""The types of messages that somebody wrote. All others are notices."""


class Discord(Format):
    app = "discord"
    _thread = ""

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:
        self._thread = "discord:channel"
        chat = JsonStream(stream)
        for key in chat.members():
            if key == "channel":
                channel = Fields(chat.value(), "the channel")
                self._thread = f"discord:{channel.raw('id') or channel.raw('name')}"
            elif key == "messages":
                yield from objects(chat, f"{name}, message" if len(self.files()) > 1 else "message")

    def record(self, found: Fields, where: str) -> Item:
        if str(found.raw("type")) not in _MESSAGES:
            return NOTICE
        text, parts = _content(found)
        kind = "sticker" if found.items("stickers") and not text else None
        forwarded = found.raw("forwardedMessage")
        if isinstance(forwarded, dict):
            inner, more = _content(Fields(forwarded))
            text, parts, kind = lines(text, f"Forwarded: {inner}" if inner else ""), (*parts, *more), "forward"
        if not text and not parts:
            return NO_WORDS
        author = Fields(found.needed("author"), "the author")
        answered = None if isinstance(forwarded, dict) else found.inner("reference").raw("messageId")
        if answered is not None and not isinstance(answered, str | int):
            raise InvalidInput("the id of the message replied to must be a text or a number")
        reactions = [(given.inner("emoji").raw("name"), given.raw("count")) for given in found.objects("reactions")]
        return ImportedMessage(
            where,
            self._thread,
            "assistant" if author.raw("isBot") is True else "user",
            text,
            self.moment(found.needed("timestamp"), "timestamp"),
            found.text("id"),
            author.text("id"),
            author.words("nickname", "name"),
            parts=parts,
            reply_to=None if answered in (None, "") else str(answered),
            kind=kind,
            metadata=filled(edited=found.raw("timestampEdited"), reactions=reactions),
        )


def _content(found: Fields) -> tuple[str, tuple[Part, ...]]:
    """Return the text of a message with its embeds, and its files and stickers."""
    content = found.words("content") or ""
    files = [
        attachment(file.words("fileName"), url=file.raw("url"), size=file.raw("fileSizeBytes"))
        for file in found.objects("attachments")
    ]
    stickers = [
        attachment(None, "image/png", url=sticker.raw("sourceUrl"), text=sticker.words("name"))
        for sticker in found.objects("stickers")
    ]
    return lines(content, *(_embed(embed, content) for embed in found.objects("embeds"))), (*files, *stickers)


def _embed(embed: Fields, content: str) -> str:
    """Return the words of an embed: a bot's card, or the preview of a link in the message."""
    title, address = embed.words("title") or "", embed.raw("url")
    if not (isinstance(address, str) and address in content):
        title = with_address(title, address)
    fields = [f"{field.words('name') or ''}: {field.words('value') or ''}" for field in embed.objects("fields")]
    author, footer = embed.inner("author").words("name"), embed.inner("footer").words("text")
    return lines(author, title, embed.words("description"), *fields, footer)
