"""A memory service for Google's Agent Development Kit.

    runner = Runner(agent=agent, app_name="app", session_service=…, memory_service=AforesaidMemoryService(memory))

An app is a space, a session is a private chat of its user, and each event with content is a message with the event's
id: a session that is added again stores its new events only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from aforesaid.domain.details import Part, ToolCall
from aforesaid.domain.hit import Hit
from aforesaid.errors import InvalidInput, NotFound
from aforesaid.integrations import shared
from aforesaid.integrations.shared import AnyMemory, Calls
from aforesaid.memory import Memory, UserMemory

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

_FRAMEWORK: Final = "google_adk"
"""The key in the metadata of a message under which the content of the event is stored."""
_RESULTS: Final = 10


class AforesaidMemoryService(BaseMemoryService):
    """The memory of all users of all apps. A search returns at most `limit` entries."""

    def __init__(self, memory: AnyMemory, *, limit: int = _RESULTS) -> None:
        self._calls = Calls(memory, Memory)
        self._limit = limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the events of a session that are not stored yet."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store events that are not stored yet. `custom_metadata` becomes metadata of each message."""
        new = [
            _as_message(event, event.content, custom_metadata or {})
            for event in events
            if event.content is not None and event.content.parts and not event.partial
        ]
        await self._calls.wait(lambda memory: shared.add_all(_user(memory, app_name, user_id, session_id), new))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories of a user, as `note` does."""
        del custom_metadata
        texts = [_text(entry.content) for entry in memories]
        if not all(texts):
            raise InvalidInput("a memory needs a text", "memories")

        async def note(memory: Memory) -> None:
            for text in texts:
                await _user(memory, app_name, user_id).note("other", text)

        await self._calls.wait(note)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Search messages, memories and summaries of a user by words and meaning."""
        hits = await self._calls.wait(lambda memory: _user(memory, app_name, user_id).search(query, self._limit))
        return SearchMemoryResponse(memories=[_as_entry(hit) for hit in hits])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Take back a message, or deactivate a memory, that a search returned. Raises NotFound."""
        kind, _, name = (memory_id or "").partition(":")

        async def delete(memory: Memory) -> None:
            user = _user(memory, app_name, user_id)
            if kind == "message":
                found = await user.message(name)
                await user.take_back(found)
            elif kind == "memory" and name.isdecimal():
                await user.deactivate(int(name))
            else:
                raise NotFound(f"{user_id!r} has no memory entry {memory_id!r}")

        await self._calls.wait(delete)


def _user(memory: Memory, app: str, user: str, session: str | None = None) -> UserMemory:
    direct = memory.user(user, space=app)
    return direct if session is None else direct.chat(session)


def _as_message(event: Event, content: types.Content, extra: Mapping[str, object]) -> dict[str, Any]:
    calls = [part.function_call for part in content.parts or () if part.function_call]
    results = [part.function_response for part in content.parts or () if part.function_response]
    said = event.author == "user" and not results
    new: dict[str, Any] = {
        "role": "user" if said else "tool" if results else "assistant",
        "text": _text(content),
        "id": event.id,
        "at": datetime.fromtimestamp(event.timestamp, UTC),
        "name": None if said else event.author,
        "tool_calls": [ToolCall(call.id or call.name or "call", call.name or "", _json(call.args)) for call in calls],
        "tool_call_id": results[0].id if len(results) == 1 else None,
        "parts": [
            Part(
                "file",
                name=part.file_data.display_name,
                url=part.file_data.file_uri,
                media_type=part.file_data.mime_type,
            )
            for part in content.parts or ()
            if part.file_data
        ],
    }
    new = shared.with_original(new, _FRAMEWORK, "event", content.model_dump(mode="json", exclude_none=True))
    return {**new, "metadata": {**dict(extra), **new["metadata"]}}


def _text(content: types.Content) -> str:
    """Return what people can read: texts, and the results of tools as JSON. Thoughts are left out."""
    found = []
    for part in content.parts or ():
        if part.text and not part.thought:
            found.append(part.text)
        if part.function_response:
            found.append(_json(part.function_response.response))
    return "\n".join(found)


def _json(value: object) -> str:
    # Sorted, as metadata is stored: the text of what was stored must be the text of what was added.
    return json.dumps(value or {}, ensure_ascii=False, default=str, sort_keys=True)


def _as_entry(hit: Hit) -> MemoryEntry:
    """Return the event that was added; for other hits, and edited messages, their text."""
    said = hit.message is None or hit.message.role == "user"
    content = types.Content(role="user" if said else "model", parts=[types.Part(text=hit.text)])
    if hit.message is not None:
        message = shared.whole_message(hit.message)
        stored = shared.original(message, _FRAMEWORK)
        if stored and _text(added := types.Content.model_validate(stored)) == message.text:
            content = added
    author = None if hit.message is None else hit.message.name or hit.message.author
    return MemoryEntry(content=content, id=f"{hit.kind}:{hit.id}", author=author, timestamp=hit.at.isoformat())
