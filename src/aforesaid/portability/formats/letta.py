"""Letta's agent files (`.af`): the messages of agents, and the blocks of their memory."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import IO, Final

from aforesaid.errors import InvalidInput
from aforesaid.portability.formats import openai
from aforesaid.portability.formats.base import Entry, Format, Ids, each, filled, lines, paragraphs, parts_text, placed
from aforesaid.portability.import_items import HIDDEN, NO_WORDS, NOTICE, ImportedMessage, Item, Skipped
from aforesaid.portability.json_stream import Fields, JsonStream

_SEND: Final = "send_message"
"""The tool with which agents of the older kind speak to the user. Their other text is their inner monologue."""
_ABOUT_THE_USER: Final = re.compile(
    r"(?:^|[^a-z])(?:human|users?|customer|preferences?|profile|facts|custom_instructions|archival)(?:[^a-z]|$)",
    re.IGNORECASE,
)
"""Labels of blocks about the user. Others have the agent's persona, rules and notes."""
_KEYS: Final = ("agents", "blocks", "core_memory", "messages", "name", "id", "created_at", "archival_memory")


class Letta(Format):
    app = "letta"
    endings = (".af", ".json")

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:  # noqa: ARG002
        file = JsonStream(stream)
        if file.peek() == '"':
            # Some versions write the file as JSON in a JSON text.
            file = JsonStream(io.BytesIO(str(file.value()).encode(errors="surrogatepass")))
        whole = Fields({key: file.value() for key in file.members() if key in _KEYS})
        self._blocks = {str(block.raw("id")): block for block in whole.objects("blocks")}
        self._written = whole.raw("created_at")
        for number, agent in enumerate(whole.objects("agents") or [whole], 1):
            yield f"agent {number}", agent.values

    def record(self, found: Fields, where: str) -> Iterator[Item]:
        """Yield the messages and memories of an agent."""
        thread = f"letta:{found.words('name') or found.raw('id') or 'agent'}"[:255]
        blocks = [self._blocks[key] for key in map(str, found.items("block_ids")) if key in self._blocks]
        entries = [Fields(entry) for entry in found.items("messages") if isinstance(entry, dict)]
        spoken: set[str] = set()
        for entry in entries:
            with suppress(InvalidInput):  # reported with its message
                spoken.update(call.id for call in openai.tool_calls(entry) if call.name == _SEND)
        self.ids = Ids("letta")
        read_message = partial(self._message, thread, spoken)
        yield from each(placed(found.items("messages"), where), read_message, "the message")
        times = [str(entry.raw("created_at")) for entry in entries if entry.raw("created_at")]
        made = found.raw("created_at") or min(times, default=None) or self._written
        start = self.moment(made, "created_at")
        for block in (*blocks, *found.objects("core_memory"), *found.objects("archival_memory")):
            yield from self._block(block, start, f"{where}, block {block.raw('label') or ''}".rstrip())

    def _message(self, thread: str, spoken: set[str], found: Fields, where: str) -> Item:
        """Return a message. `spoken` has the ids of the calls with which the agent spoke to the user."""
        role = str(found.raw("role"))
        if role in ("system", "approval"):
            return HIDDEN
        at = self.moment(found.raw("created_at"), "created_at")
        content = found.raw("content")
        if isinstance(content, list):
            content = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
        text = parts_text(content) or found.words("text") or ""
        calls = openai.tool_calls(found)
        if role == "user":
            # Older agents wrap what a user said in JSON with its time, and events such as a heartbeat.
            said = _object(text)
            if said is not None and "type" in said.values:
                if said.raw("type") != "user_message" or not isinstance(said.raw("message"), str):
                    return NOTICE
                text = said.raw("message")
        elif role == "tool":
            if found.words("name") == _SEND or found.words("tool_call_id") in spoken:
                return NOTICE
            result = _object(text)
            if result is not None and "status" in result.values and isinstance(result.raw("message"), str):
                text = result.raw("message")
        elif role == "assistant" and spoken:
            if not calls:
                return HIDDEN
            sent = [_object(call.arguments) for call in calls if call.name == _SEND]
            text = lines(*(each.words("message") for each in sent if each is not None))
            calls = tuple(call for call in calls if call.name != _SEND)
        if role not in ("user", "assistant", "tool"):
            raise InvalidInput(f"the role {role!r} is unknown")
        if not text.strip() and not calls:
            return NO_WORDS
        return ImportedMessage(
            where,
            thread,
            "user" if role == "user" else "tool" if role == "tool" else "assistant",
            text,
            at,
            # The ids in a file are numbers within it, so another export can give them to other messages.
            self.ids.of(at, thread, role, text, *(call.id for call in calls)),
            name=found.words("name") if role == "user" else None,
            parts=openai.media_parts(found.raw("content")),
            tool_calls=calls,
            tool_call_id=found.words("tool_call_id") if role == "tool" else None,
            metadata=filled(model=found.words("model")),
        )

    def _block(self, block: Fields, start: datetime | None, where: str) -> Iterator[Item]:
        """Yield a memory for each line of a block."""
        label = block.words("label") or "archival"
        if not _ABOUT_THE_USER.search(label):
            yield Skipped("memory blocks that are not about the user")
            return
        at = self.moment(block.raw("created_at"), "created_at") or start
        if at is None:
            raise InvalidInput(f"nothing in the file says when {where} was made")
        for words in paragraphs(block.words("value", "text")):
            yield self.memory(where, words, at, [label])


def _object(text: str) -> Fields | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return Fields(value) if isinstance(value, dict) else None
