"""Exports of messengers in JSON: Telegram, Discord, Slack, Facebook and Instagram."""

from __future__ import annotations

import html
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import groupby
from typing import IO, Any, Final

from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput, quoted
from aforesaid.extras import re
from aforesaid.portability.formats.base import (
    DELETED,
    NO_WORDS,
    NOTICE,
    Entry,
    Format,
    Ids,
    ImportedMessage,
    Item,
    ReadOptions,
    attachment,
    filled,
    from_milliseconds,
    from_seconds,
    in_zone,
    lines,
    objects,
    with_address,
)
from aforesaid.portability.input_files import Source
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
    """Telegram Desktop's JSON export: one chat, or all of them (`result.json`)."""

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
        if found.has("date_unixtime"):
            at = from_seconds(found.raw("date_unixtime"), "date_unixtime")
        else:
            try:
                at = in_zone(datetime.fromisoformat(found.text("date")), self.reading.zone, "date")
            except ValueError:
                raise InvalidInput(f"date is not a time: {quoted(found.raw('date'))}") from None
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
            at,
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


_MESSAGES: Final = ("Default", "Reply", "ChatInputCommand", "ContextMenuCommand", "ThreadStarterMessage", "0", "19")
"""The types of messages that somebody wrote. All others are notices."""


class Discord(Format):
    """DiscordChatExporter's JSON format: one file per channel or thread, or a folder or archive of them."""

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


SLACK_DAY: Final = re.compile(r"(?:^|/)([^/]+)/(\d{4}-\d{2}-\d{2})\.json$")
_MARKUP: Final = re.compile(r"<([^<>\s][^<>]*)>")
_BROADCASTS: Final = ("thread_broadcast", "reply_broadcast")
_WRITTEN: Final = (None, "", "bot_message", "me_message", "file_share", "file_comment", *_BROADCASTS)
"""The subtypes of messages that somebody wrote. All others are notices."""


class Slack(Format):
    """Slack's export format: an archive or folder with one folder per channel and one file per day."""

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
        return [name for name in self.source.names if SLACK_DAY.search(name)]

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:
        found = SLACK_DAY.search(name)
        self._channel = f"slack:{found[1] if found else name}"
        return objects(JsonStream(stream), f"{name}, message")

    def _listed(self, *names: str) -> Iterator[Fields]:
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


FACEBOOK_FILE: Final = re.compile(r"(?:^|/)message_\d+\.json$")
_MEDIA: Final = (
    ("photos", "image/jpeg", "photo"),
    ("videos", "video/mp4", "video"),
    ("audio_files", "audio/mp4", "voice"),
    ("gifs", "image/gif", "animation"),
    ("files", None, "file"),
    ("media", None, "media"),
)
_NOTICES: Final = re.compile(
    r"^(?:reacted .{1,12} to your message|liked a message|.{1,80} (?:"
    r"sent an attachment|changed the (?:theme|quick reaction|chat theme)\b.*|named the group\b.*|pinned a message"
    r"|(?:started|joined) (?:a|the) (?:video chat|call|audio call)|missed (?:a|your) (?:video |audio )?call.*"
    r"|set the (?:quick reaction|emoji) to .*|voted for .*|created (?:a|this) (?:poll|group)\b.*))\.?$",
    re.IGNORECASE,
)
"""What the apps write in the name of a person, in English."""


class Facebook(Format):
    """Facebook's and Instagram's exports in JSON: folders of `message_1.json`, or one file per encrypted chat.

    Their text is UTF-8 that was read as Latin-1 once too often. A file has the newest message first.
    """

    app = "facebook"
    _thread = ""

    def files(self) -> list[str]:
        chats = [name for name in self.source.names if FACEBOOK_FILE.search(name)]
        return chats or super().files()

    def items(self, name: str) -> Iterator[Item]:
        # The fields of a chat stand after its messages.
        head: dict[str, Any] = {}
        with self.source.scan(name) as stream, suppress(InvalidInput):  # reported when the messages are read
            chat = JsonStream(stream)
            for key in chat.members():
                if key in ("title", "thread_path", "threadName"):
                    head[key] = chat.value()
        path = head.get("thread_path")
        title = repaired(head.get("threadName") or head.get("title")) or "chat"
        app = "instagram" if "instagram" in name.casefold() else "facebook"
        self._thread = f"{app}:{path.rpartition('/')[2] if isinstance(path, str) and path else title}"[:255]
        self.ids = Ids("facebook")
        yield from super().items(name)

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:
        where = f"{name}, message" if len(self.source.names) > 1 else "message"
        chat = JsonStream(stream)
        for key in chat.members():
            if key == "messages":
                # The newest message is the first: of messages with the same time, too.
                for _, same_time in groupby(objects(chat, where), _stamp):
                    yield from list(same_time)[::-1]

    def record(self, found: Fields, where: str) -> Item:
        sender = repaired(found.raw("sender_name") or found.raw("senderName")) or "unknown"
        text = repaired(found.raw("content") or found.raw("text")).strip()
        if found.raw("is_unsent") is True or found.raw("isUnsent") is True:
            return DELETED
        if found.has("call_duration") or found.raw("type") in ("Call", "Subscribe", "Unsubscribe", "call"):
            return NOTICE
        files = [(file, media_type, kind) for field, media_type, kind in _MEDIA for file in found.objects(field)]
        if found.inner("sticker").values:
            files.append((found.inner("sticker"), "image/png", "sticker"))
        parts: list[Part] = []
        for file, media_type, _ in files:
            path = repaired(file.raw("uri"))
            name = path.rpartition("/")[2]
            parts.append(attachment(name, attachment(name).media_type or media_type, url=path))
        share = found.inner("share")
        text = lines(
            "" if _NOTICES.match(text) else text,
            *(words for key in ("share_text", "link") if (words := repaired(share.raw(key))) not in text),
        )
        if not text and not parts:
            return NOTICE if found.has("content") else NO_WORDS
        stamp = found.raw("timestamp_ms") if found.has("timestamp_ms") else found.raw("timestamp")
        at = from_milliseconds(stamp, "timestamp_ms")
        return ImportedMessage(
            where,
            self._thread,
            "user",
            text,
            at,
            self.ids.of(at, self._thread, sender, text, *(part.url for part in parts)),
            sender,
            sender,
            parts=tuple(parts),
            kind=files[0][2] if files and not text else None,
            metadata=filled(reactions=((repaired(given.raw("reaction")), 1) for given in found.objects("reactions"))),
        )


def _stamp(entry: Entry) -> object:
    return entry[1].get("timestamp_ms") if isinstance(entry[1], dict) else None


def repaired(value: object) -> str:
    """Return a text whose UTF-8 bytes were written as separate characters; other texts are returned as they are."""
    if not isinstance(value, str):
        return ""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value
