"""Exports of assistants: ChatGPT, Claude, and Gemini from Google Takeout."""

from __future__ import annotations

import codecs
import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from hashlib import blake2b
from html.parser import HTMLParser
from typing import IO, Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aforesaid.domain.checks import Role
from aforesaid.domain.details import Part, ToolCall
from aforesaid.errors import InvalidInput, quoted
from aforesaid.extras import re
from aforesaid.portability.formats.base import (
    HIDDEN,
    NO_WORDS,
    REPLACED,
    Entry,
    Format,
    ImportedMessage,
    Item,
    Problem,
    ReadOptions,
    Skipped,
    TextParser,
    attachment,
    each,
    filled,
    from_seconds,
    html_text,
    in_zone,
    lines,
    paragraphs,
    placed,
    shown_branch,
    with_address,
)
from aforesaid.portability.input_files import Source
from aforesaid.portability.json_stream import Fields

_ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant", "tool": "tool"}
_INSTRUCTIONS: Final = "user_editable_context"
_UNSEEN: Final = ("thoughts", "reasoning_recap", "model_editable_context", "system_error")
_SPOKEN: Final = "audio_transcription"
_WEB: Final = ("tether_browsing_display", "tether_quote", "sonic_webpage")
"""Contents of web pages that the model read."""
_CODE: Final = re.compile("\ue200([^\ue200\ue201]*)\ue201")
"""A code that the app shows as a source, a name or a picture: `\\ue200cite\\ue202turn0search1\\ue201`."""
_STRAY: Final = re.compile("[\ue200-\ue20f]")
_OLD_SOURCE: Final = re.compile(r"\s?【[^【】]{1,80}†[^【】]{0,80}】")
_FENCED: Final = re.compile(r"```(.*?)```", re.DOTALL)


class ChatGPT(Format):
    """ChatGPT's export format: `conversations.json`, alone or in its zip archive.

    A conversation is a tree: edited questions and regenerated answers are branches. The branch shown last is imported.

    Reads conversations, and remembers the custom instructions, which are repeated in each of them.
    """

    app = "chatgpt"
    start = "conversations"
    record_name = "conversation"

    def __init__(self, source: Source, reading: ReadOptions) -> None:
        super().__init__(source, reading)
        self._files = sorted((name.rpartition("/")[2], name) for name in source.names)
        self._instructions: set[str] = set()

    def record(self, found: Fields, where: str) -> Iterator[Item]:
        mapping = found.needed("mapping")
        if not isinstance(mapping, dict):
            raise InvalidInput("mapping must be an object")
        nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
        shown = shown_branch({name: node.get("parent") for name, node in nodes.items()}, found.raw("current_node"))
        thread = f"chatgpt:{found.raw('conversation_id') or found.raw('id') or found.text('title')}"
        for name in shown:
            if nodes[name].get("message") is None:
                continue
            place = f"{where}, message {name}"
            try:
                yield from self._message(Fields(nodes[name]["message"], "the message"), place, thread, found)
            except InvalidInput as error:
                yield Problem(place, str(error))
        for name in nodes.keys() - set(shown):
            if nodes[name].get("message"):
                yield REPLACED

    def _message(self, found: Fields, where: str, thread: str, conversation: Fields) -> Iterator[Item]:
        content = Fields(found.raw("content") or {}, "the content")
        content_type = content.raw("content_type")
        if content_type == _INSTRUCTIONS:
            yield from self._custom_instructions(found, content, where, conversation)
            return
        metadata = found.inner("metadata")
        role = _ROLES.get(str(found.inner("author").raw("role")))
        is_hidden = metadata.raw("is_visually_hidden_from_conversation") is True
        if role is None or is_hidden or content_type in (*_UNSEEN, *_WEB):
            yield HIDDEN
            return
        text, parts, calls = self._content(found, content, metadata)
        if not text and not parts and not calls:
            yield NO_WORDS
            return
        kind: str | None = parts[0].type if parts and not text else None
        if any(isinstance(piece, dict) and piece.get("content_type") == _SPOKEN for piece in content.items("parts")):
            kind = "voice"
        elif content_type == "execution_output":
            kind = "output"
        yield ImportedMessage(
            where,
            thread,
            role,
            text,
            from_seconds(found.raw("create_time"), "create_time") if found.has("create_time") else None,
            found.text("id"),
            parts=parts,
            kind=kind,
            metadata=filled(title=conversation.words("title")),
            tool_calls=calls,
        )

    def _content(
        self, found: Fields, content: Fields, metadata: Fields
    ) -> tuple[str, tuple[Part, ...], tuple[ToolCall, ...]]:
        pieces = content.items("parts") or [content.raw("text")]
        texts = [piece.get("text") if isinstance(piece, dict) else piece for piece in pieces]
        said = lines(*(text for text in texts if isinstance(text, str)))
        recipient = found.words("recipient")
        if recipient not in (None, "all") and said:
            return "", (), (ToolCall(found.text("id"), str(recipient), said),)
        given = metadata.objects("attachments")
        names = {file.words("id"): file.words("name") for file in given}
        media = [self._media(piece, names) for piece in pieces if isinstance(piece, dict) and "asset_pointer" in piece]
        files = [
            attachment(file.raw("name"), file.words("mime_type", "mimeType"), size=file.raw("size"))
            for file in given
            if not (file.words("mime_type", "mimeType") or "").startswith("image/")
        ]
        if media and found.inner("author").raw("role") == "tool":
            said = ""  # instructions about the picture, for the model
        # Sources and names stand instead of the app's codes.
        known = {str(reference.raw("matched_text")): reference for reference in metadata.objects("content_references")}
        text = _CODE.sub(lambda match: _reference(match, known.get(match[0])), said)
        return _OLD_SOURCE.sub("", _STRAY.sub("", text)).strip(), (*media, *files), ()

    def _media(self, piece: dict[str, Any], given: Mapping[str | None, str | None]) -> Part:
        """Return a picture or recording. Its file has the id at the end of the pointer, where it is in the archive.

        `given` has the names of attached files by their ids, for those that are not in the archive.
        """
        pointer = str(piece["asset_pointer"])
        number = pointer.rpartition("/")[2]
        place = bisect_left(self._files, (number, ""))
        is_there = number and place < len(self._files) and self._files[place][0].startswith(number)
        name = self._files[place][1] if is_there else given.get(number)
        usual = "audio/wav" if "audio" in str(piece.get("content_type")) else "image/png"
        media_type = None if name is not None and "." in name else usual
        prompt = Fields(piece).inner("metadata").inner("dalle").raw("prompt")
        return attachment(name, media_type, url=pointer, size=piece.get("size_bytes"), text=prompt)

    def _custom_instructions(self, found: Fields, content: Fields, where: str, conversation: Fields) -> Iterator[Item]:
        """Yield what the user told the model about themselves, once for each wording."""
        given = Fields(found.inner("metadata").raw("user_context_message_data") or {})
        about_user = given.words("about_user_message") or _fenced(content.words("user_profile"))
        about_model = given.words("about_model_message") or _fenced(content.words("user_instructions"))
        for title, text in (("About me", about_user), ("How to respond", about_model)):
            if text is None or text in self._instructions:
                yield HIDDEN
                continue
            self._instructions.add(text)
            at = conversation.raw("create_time")
            yield ImportedMessage(
                where,
                "chatgpt:instructions",
                "user",
                text,
                None if at is None else from_seconds(at, "create_time"),
                f"instructions-{blake2b(text.encode(errors='surrogatepass'), digest_size=10).hexdigest()}",
                kind="instructions",
                metadata={"title": title},
            )


def _fenced(text: str | None) -> str | None:
    """Return the user's own words: the text between the code fences that the app put around them."""
    if text is None:
        return None
    inside = [part.strip() for part in _FENCED.findall(text) if part.strip()]
    return "\n".join(inside) or text


def _reference(match: re.Match[str], known: Fields | None) -> str:
    if known is not None:
        sources = [item for item in known.objects("items") if item.words("url")]
        if sources:
            links = (with_address(item.words("title") or "", item.raw("url")).strip() for item in sources)
            return f" ({', '.join(links)})"
        shown = known.words("alt", "name", "title")
        if shown is not None:
            return shown
    kind, _, rest = match[1].partition("\ue202")
    # The code of an entity has a list: the type, the name, and more about it.
    names = re.findall(r'"((?:[^"\\]|\\.)*)"', rest) if kind == "entity" else []
    return names[1] if len(names) > 1 else ""


_UNSUPPORTED: Final = "This block is not supported on your current device yet."
"""What stands in `text` for something that is only in `content`."""
_HEADING: Final = re.compile(r"\*\*[^*]+\*\*:?")
"""A line of its own above paragraphs: `**Work context**`."""


class Claude(Format):
    """Claude's export: `conversations.json`, alone or in its zip archive, and `memories.json`: what it remembers."""

    app = "claude"
    _newest: datetime | None = None
    """The time of the newest message so far."""

    def files(self) -> list[str]:
        others = self.source.called("memories.json", "projects.json", "users.json")
        talks = self.source.named(".json", start="conversations")
        talks = talks or [name for name in self.source.names[:1] if name not in others]
        return [*talks, *self.source.called("memories.json"), *self.source.called("projects.json")]

    def items(self, name: str) -> Iterator[Item]:
        file = name.rpartition("/")[2].lower()
        self.record_name = {"memories.json": "memories", "projects.json": "project"}.get(file, "conversation")
        for item in super().items(name):
            if isinstance(item, ImportedMessage) and item.at is not None:
                self._newest = item.at if self._newest is None else max(self._newest, item.at)
            yield item

    def record(self, found: Fields, where: str) -> Item | Iterator[Item]:
        if self.record_name == "project":
            return Skipped("projects and their documents")
        return self._memories(found, where) if self.record_name == "memories" else self._conversation(found, where)

    def _memories(self, found: Fields, where: str) -> Iterator[Item]:
        """Yield a memory for each paragraph of what Claude remembers: from all chats, and from those of projects."""
        at = self.moment(found.raw("updated_at"), "updated_at") or self._newest
        if at is None:
            raise InvalidInput("only the conversations say when Claude remembered this; import the whole export")
        texts: list[tuple[object, str]] = [(found.words("conversations_memory"), "claude")]
        texts += [(text, "project") for text in found.inner("project_memories").values.values()]
        for text, tag in texts:
            for words in paragraphs(text):
                if not _HEADING.fullmatch(words):
                    yield self.memory(where, words, at, [tag])

    def _conversation(self, found: Fields, where: str) -> Iterator[Item]:
        thread = f"claude:{found.text('uuid')}"
        entries = found.items("chat_messages")
        messages = [entry for entry in entries if isinstance(entry, dict)]
        parents = {str(message.get("uuid")): message.get("parent_message_uuid") for message in messages}
        shown = set(parents)
        if all(isinstance(message.get("parent_message_uuid"), str) for message in messages):
            shown = set(shown_branch(parents, found.raw("current_leaf_message_uuid")))
        for _ in range(len(messages) - len(shown)):
            yield REPLACED
        kept = [entry for entry in entries if not isinstance(entry, dict) or str(entry.get("uuid")) in shown]
        yield from each(placed(kept, where), partial(self._message, thread, found.words("name")), "the message")

    def _message(self, thread: str, title: str | None, found: Fields, where: str) -> Item:
        blocks = found.objects("content")
        said = lines(*(block.words("text") for block in blocks if block.raw("type") == "text"))
        text = said or found.words("text") or ""
        text = text.replace(f"```\n{_UNSUPPORTED}\n```", "").replace(_UNSUPPORTED, "").strip()
        parts = tuple(_part(file) for file in (*found.objects("attachments"), *found.objects("files")))
        calls = tuple(
            ToolCall(
                block.words("id") or f"call-{number}",
                block.words("name") or "tool",
                json.dumps(block.raw("input"), ensure_ascii=False),
            )
            for number, block in enumerate(blocks)
            if block.raw("type") == "tool_use"
        )
        if not text and not parts and not calls:
            return NO_WORDS
        role = found.word("sender", ("human", "assistant"))
        return ImportedMessage(
            where,
            thread,
            "user" if role == "human" else "assistant",
            text,
            self.moment(found.raw("created_at"), "created_at"),
            found.text("uuid"),
            parts=parts,
            kind=None if text or not parts else parts[0].type,
            metadata=filled(title=title),
            tool_calls=calls,
        )


def _part(file: Fields) -> Part:
    """Return an attached file. Pasted text has no name: only its words."""
    words = file.words("extracted_content")
    return attachment(
        file.words("file_name") or ("pasted text" if words else None),
        file.raw("file_type") if "/" in str(file.raw("file_type")) else None,
        size=file.raw("file_size"),
        text=words,
    )


_PRODUCTS: Final = re.compile(r"gemini|bard", re.IGNORECASE)
_PROMPTED: Final = re.compile(
    r"^(?:Prompted|Asked|Said|Eingegebener Prompt:?|Prompt eingegeben:|Gefragt:|Petición:|Preguntaste:?|Requête\s*:|"
    r"Vous avez demandé\s*:?|Prompt inviato:?|Hai chiesto:?|Comando:|Você perguntou:?|Prompt ingevoerd:|Запрос:|Запит:|"
    r"İstem:|Prompt:|الطلب:|प्रॉम्प्ट:|提示[：:]|プロンプト[：:]|프롬프트[：:])\s*",
    re.IGNORECASE,
)
"""What the app writes before a question, in the language of the account."""
_CONVERSATION: Final = re.compile(r"gemini\.google\.com/(?:app|gem/[^/]+)/([0-9a-f]{8,})")
_OTHER: Final = Skipped("activities that are no questions: feedback, settings, other products")
_CLOCK: Final = r"\d{1,2}:\d{2}:\d{2}"
_DATE_WORDS: Final = re.compile(
    rf"^(?P<month>[A-Z][a-z]{{2,8}})\.? (?P<day>\d{{1,2}}), (?P<year>\d{{4}}), (?P<time>{_CLOCK})\s?(?P<half>[AP]M)?"
    r"(?: (?P<zone>\S+))?$"
    rf"|^(?P<day2>\d{{1,2}})\.? (?P<month2>[A-Z][a-z]{{2,8}})\.? (?P<year2>\d{{4}}),? (?P<time2>{_CLOCK})"
    r"(?: (?P<zone2>\S+))?$"
)
_NUMBERED: Final = re.compile(
    rf"^(?P<day>\d{{1,2}})[./](?P<month>\d{{1,2}})[./](?P<year>\d{{4}}),? (?P<time>{_CLOCK})(?: (?P<zone>\S+))?$"
)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def is_gemini_activity(name: str) -> bool:
    folder, _, file = name.rpartition("/")
    return file.replace(" ", "").casefold().startswith("myactivity") and (not folder or bool(_PRODUCTS.search(folder)))


class Gemini(Format):
    """Google Takeout's export of Gemini: `MyActivity.json` or `MyActivity.html`, alone or in the archive.

    An entry is one question with its answer. The address of its conversation is there in newer exports only: questions
    without one share a thread.
    """

    app = "gemini"

    def files(self) -> list[str]:
        names = [name for name in self.source.named(".json") if is_gemini_activity(name)]
        pages = [name for name in self.source.named(".html") if is_gemini_activity(name)]
        return names or pages or self.source.names[:1]

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:
        if not name.lower().endswith(".html"):
            yield from super().entries(stream, name)
            return
        page = _ActivityPage()
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        number = 0
        while block := stream.read(64 * 1024):
            page.feed(decoder.decode(block))
            cells, page.cells = page.cells, []
            for product, text in cells:
                number += 1
                yield f"entry {number}", {"header": product, "page": text}

    def record(self, found: Fields, where: str) -> Iterator[Item]:
        if not _PRODUCTS.search(f"{found.raw('header')} {found.raw('products')}"):
            yield _OTHER
            return
        page = found.words("page")
        if page is not None:
            yield from self._cell(page, where)
            return
        title = found.words("title") or ""
        answer = "\n".join(
            filter(None, (html_text(each.words("html") or "") for each in found.objects("safeHtmlItem")))
        )
        question = _PROMPTED.sub("", title)
        if question == title and not answer:
            yield _OTHER
            return
        at = self.moment(found.needed("time"), "time")
        links = [str(each.raw("url")) for each in found.objects("details")] + [str(found.raw("titleUrl"))]
        talk = next((match[1] for link in links if (match := _CONVERSATION.search(link))), "activity")
        files = [file.get("name") if isinstance(file, dict) else file for file in found.items("attachedFiles")]
        parts = tuple(attachment(file) for file in files if isinstance(file, str) and file)
        yield from self._exchange(where, f"gemini:{talk}", at, question, answer, parts)

    def _cell(self, text: str, where: str) -> Iterator[Item]:
        """Yield what an entry of a page says: the question, the time on a line of its own, the answer."""
        rows = text.split("\n")
        for place, row in enumerate(rows):
            at = self._page_time(row)
            if at is not None:
                asked, answer = "\n".join(rows[:place]).strip(), "\n".join(rows[place + 1 :]).strip()
                question = _PROMPTED.sub("", asked)
                if question == asked and not answer:
                    yield _OTHER
                else:
                    yield from self._exchange(where, "gemini:activity", at, question, answer)
                return
        raise InvalidInput(
            f"no time was found in {quoted(text[:60])}; choose JSON in Takeout, which is the same in every language"
        )

    def _exchange(
        self, where: str, thread: str, at: datetime | None, question: str, answer: str, parts: tuple[Part, ...] = ()
    ) -> Iterator[Item]:
        """Yield a question and its answer, which have one time: the answer follows as the later of two equal times."""
        number = self.ids.of(at, thread, question)
        if question.strip() or parts:
            yield ImportedMessage(where, thread, "user", question.strip(), at, number, parts=parts)
        if answer:
            yield ImportedMessage(where, thread, "assistant", answer, at, f"{number}-answer", reply_to=number)
        if not question.strip() and not parts and not answer:
            yield NO_WORDS

    def _page_time(self, row: str) -> datetime | None:
        row = row.replace("\u202f", " ").replace("\xa0", " ")
        found = _DATE_WORDS.match(row) or _NUMBERED.match(row)
        if found is None:
            return None
        parts = {name.rstrip("2"): value for name, value in found.groupdict().items() if value is not None}
        month = parts["month"][:3].casefold()
        if not month.isdigit() and month not in _MONTHS:
            return None
        hour, minute, second = map(int, parts["time"].split(":"))
        if "half" in parts:
            hour = hour % 12 + (12 if parts["half"] == "PM" else 0)
        number = int(month) if month.isdigit() else _MONTHS.index(month) + 1
        year, day = int(parts["year"]), int(parts["day"])
        try:
            at = datetime(year, number, day, hour, minute, second)  # noqa: DTZ001 - a wall clock
            zone = self.reading.zone or (ZoneInfo(parts["zone"]) if "zone" in parts else None)
            return in_zone(at, zone, "the time")
        except ZoneInfoNotFoundError:
            return in_zone(at, None, "the time")
        except ValueError as error:
            raise InvalidInput(f"the time does not exist: {error}") from None


class _ActivityPage(HTMLParser):
    """Collects the entries of a page: each is a cell with the class `outer-cell`."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.cells: list[tuple[str, str]] = []
        """The product and the text of each complete entry."""
        self._depth = 0
        self._inner: TextParser | None = None
        self._product = ""
        self._text = ""
        self._class = ""
        self._start = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kind = dict(attrs).get("class") or ""
        if tag == "div":
            if "outer-cell" in kind:
                self._depth, self._product, self._text = 0, "", ""
            self._depth += 1
            if "header-cell" in kind or ("content-cell" in kind and "body-1" in kind and "text-right" not in kind):
                self._inner, self._class, self._start = TextParser(), kind, self._depth
                return
        if self._inner is not None:
            self._inner.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag == "div":
            if self._inner is not None and self._depth == self._start:
                text, self._inner = self._inner.take(), None
                if "header-cell" in self._class:
                    self._product = text
                else:
                    self._text = text
            self._depth -= 1
            if self._depth == 0 and self._text:
                self.cells.append((self._product, self._text))
                self._text = ""
        if self._inner is not None:
            self._inner.handle_endtag(tag)

    def handle_data(self, data: str) -> None:
        if self._inner is not None:
            self._inner.handle_data(data)
