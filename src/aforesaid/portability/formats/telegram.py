"""Telegram Desktop's JSON export: one chat, or all of them (`result.json`)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import IO, Final

from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput, quoted
from aforesaid.portability.formats.base import (
    Entry,
    Format,
    attachment,
    filled,
    from_seconds,
    in_zone,
    lines,
    objects,
    with_address,
)
from aforesaid.portability.import_items import NO_WORDS, NOTICE, ImportedMessage, Item
from aforesaid.portability.json_stream import Fields, JsonStream

_KINDS: Final = {
    "voice_message": ("voice", "audio/ogg"),
    "audio_file": ("audio", "audio/mpeg"),
    "video_message": ("video", "video/mp4"),
    "video_file": ("video", "video/mp4"),
    "animation": ("animation", "video/mp4"),
    "sticker": ("sticker", "image/webp"),
}
"""The kind and the usual media type of what `media_type` says."""
_NOT_EXPORTED: Final = "(File "
"""The path of a file that the export left out begins so: it says why instead."""


class Telegram(Format):
    app = "telegram"
    _thread = ""
    _bot: object = None
    """The name of the bot in a chat with one."""

    def files(self) -> list[str]:
        return [name for name in self.source.named(".json") if "result" in name] or self.source.names[:1]

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:  # noqa: ARG002
        return self._chat(JsonStream(stream), "message")

    def _chat(self, stream: JsonStream, where: str) -> Iterator[Entry]:
        """Yield the messages of a chat, whose fields come before them, or of the chats in a whole export."""
        head: dict[str, object] = {}
        for key in stream.members():
            if key in ("id", "name", "type"):
                head[key] = stream.value()
            elif key == "messages":
                self._thread = f"telegram:{head.get('id') or head.get('name') or 'chat'}"
                # In a chat with a bot, the bot is the assistant: the chat has its name.
                self._bot = head.get("name") if head.get("type") == "bot_chat" else None
                yield from objects(stream, where)
            elif key in ("chats", "left_chats") and where == "message":
                for inner in stream.members():
                    for number in stream.elements() if inner == "list" else ():
                        yield from self._chat(stream, f"chat {number}, message")

    def record(self, found: Fields, where: str) -> Item:
        if found.raw("type") != "message":
            return NOTICE
        parts, kind = _media(found)
        text = lines(_text(found.raw("text")), *_described(found))
        if not text and not parts:
            return NO_WORDS
        number = found.needed("id")
        if isinstance(number, bool) or not isinstance(number, int | str):
            raise InvalidInput("id must be a number")
        name = found.words("from")
        forwarded = found.words("forwarded_from")
        if forwarded is not None and forwarded != name:
            text = lines(f"Forwarded from {forwarded}:", text)
            kind = kind or "forward"
        answered = found.raw("reply_to_message_id")
        return ImportedMessage(
            where,
            self._thread,
            "assistant" if self._bot is not None and name == self._bot else "user",
            text,
            self._time(found),
            str(number),
            found.words("from_id") or name or forwarded or "unknown",
            name,
            parts=parts,
            reply_to=None if answered is None or found.has("reply_to_peer_id") else str(answered),
            kind=kind,
            metadata=filled(
                forwarded_from=forwarded,
                via_bot=found.raw("via_bot"),
                edited=found.raw("edited"),
                reactions=((given.raw("emoji"), given.raw("count")) for given in found.objects("reactions")),
            ),
        )

    def _time(self, found: Fields) -> datetime:
        if found.has("date_unixtime"):
            return from_seconds(found.raw("date_unixtime"), "date_unixtime")
        try:
            return in_zone(datetime.fromisoformat(found.text("date")), self.reading.zone, "date")
        except ValueError:
            raise InvalidInput(f"date is not a time: {quoted(found.raw('date'))}") from None


def _text(content: object) -> str:
    """Return a text that is a string, or a list of strings and formatted pieces. Links keep their addresses."""
    if isinstance(content, list):
        return "".join(map(_text, content))
    if isinstance(content, dict):
        return with_address(str(content.get("text", "")), content.get("href"))
    return content if isinstance(content, str) else ""


def _described(found: Fields) -> Iterator[str]:
    """Describe in words what is neither text nor a file: a contact, a place, a poll, a game, an invoice."""
    contact = found.inner("contact_information").values
    if contact:
        name = " ".join(str(contact[key]) for key in ("first_name", "last_name") if contact.get(key))
        yield f"Contact: {', '.join(filter(None, [name, str(contact.get('phone_number') or '')]))}"
    place = found.inner("location_information").values
    names = [str(found.raw(key)) for key in ("place_name", "address") if found.has(key)]
    if place or names:
        point = f"{place['latitude']}, {place['longitude']}" if "latitude" in place and "longitude" in place else ""
        yield f"Location: {', '.join(filter(None, [*names, point]))}"
    poll = found.inner("poll")
    if poll.values:
        answers = []
        for answer in poll.objects("answers"):
            votes = answer.raw("voters")
            answers.append(f"- {_text(answer.raw('text'))}" + (f" ({votes})" if isinstance(votes, int) else ""))
        yield lines(f"Poll: {_text(poll.raw('question'))}", *answers)
    for key, label in (("game_title", "Game"), ("todo_list", "List")):
        if found.has(key):
            title = found.raw(key)
            yield f"{label}: {_text(title.get('title')) if isinstance(title, dict) else title}"
    invoice = found.inner("invoice_information").values
    if invoice:
        yield f"Invoice: {invoice.get('title', '')}"


def _media(found: Fields) -> tuple[tuple[Part, ...], str | None]:
    """Return the photo or file of a message, and the message's kind."""
    for field, kind in (("contact_information", "contact"), ("location_information", "location"), ("poll", "poll")):
        if found.has(field):
            return (), kind
    if found.has("photo"):
        return (attachment(_exported(found.raw("photo")), "image/jpeg", size=found.raw("photo_file_size")),), "photo"
    if not found.has("file") and not found.has("media_type"):
        return (), None
    kind, usual = _KINDS.get(str(found.raw("media_type")), ("file", None))
    name = found.words("file_name") or _exported(found.raw("file"))
    song = " - ".join(filter(None, [found.words("performer"), found.words("title")]))
    caption = lines(found.words("sticker_emoji"), song)
    media_type = found.words("mime_type") or usual
    return (attachment(name, media_type, size=found.raw("file_size"), text=caption),), kind


def _exported(path: object) -> str | None:
    """Return the path of a file in the export's folder; None if it was left out."""
    return path if isinstance(path, str) and not path.startswith(_NOT_EXPORTED) else None
