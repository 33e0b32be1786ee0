"""ChatGPT's export format: `conversations.json`, alone or in its zip archive.

A conversation is a tree: edited questions and regenerated answers are branches. The branch shown last is imported.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final

from aforesaid.domain.checks import Role
from aforesaid.domain.details import Part, ToolCall
from aforesaid.errors import InvalidInput
from aforesaid.portability.formats.base import (
    Format,
    attachment,
    filled,
    from_seconds,
    lines,
    shown_branch,
    with_address,
)
from aforesaid.portability.import_items import HIDDEN, NO_WORDS, REPLACED, ImportedMessage, Item, Problem, ReadOptions
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
    """Reads conversations, and remembers the custom instructions, which are repeated in each of them."""

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
        kind = parts[0].type if parts and not text else None
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
        """Return the text of a message, its pictures, recordings and files, and the tool that it calls."""
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
