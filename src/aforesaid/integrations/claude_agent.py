"""A session store for the Claude Agent SDK: transcripts of agents, kept in a memory.

    options = ClaudeAgentOptions(session_store=AforesaidSessionStore(memory, "ann"))

Each session, and each subagent of one, is a private chat of the user. What people and Claude said can be searched;
every entry of a transcript comes back as it was appended. For notes that Claude keeps itself, see `anthropic_memory`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from claude_agent_sdk import SessionKey, SessionStore, SessionStoreEntry, SessionStoreListEntry
from claude_agent_sdk.types import SessionListSubkeysKey

from aforesaid.domain.details import ToolCall
from aforesaid.domain.scope import DEFAULT_SPACE, chat_name
from aforesaid.domain.thread import Thread
from aforesaid.integrations import shared
from aforesaid.integrations.shared import AnyMemory, Calls
from aforesaid.memory import Memory, UserMemory

if TYPE_CHECKING:
    from claude_agent_sdk import SessionSummaryEntry

_FRAMEWORK: Final = "claude_agent"
"""The key in the metadata of a message under which the entry of the transcript is stored."""
_PATH_LENGTHS: Final = (2, 3)
"""Project and session; for a subagent also its path."""


class AforesaidSessionStore(SessionStore):
    """The transcripts of one user."""

    def __init__(self, memory: AnyMemory, user: str, *, space: str = DEFAULT_SPACE) -> None:
        self._calls = Calls(memory, Memory)
        self._names = user, space

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Store entries that are not stored yet, all of them or none. The uuid of an entry is the message's id."""
        new = [_as_message(entry) for entry in entries]
        await self._calls.wait(lambda memory: shared.add_all(self._of(memory).chat(_chat(key)), new))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return all entries of a transcript, or None if there are none."""
        found = await self._calls.wait(lambda memory: shared.own_messages(self._of(memory).chat(_chat(key))))
        entries = [(message, shared.original(message, _FRAMEWORK)) for message in found]
        return [_with_text(entry, message.text) for message, entry in entries if entry is not None] or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the sessions of a project with the time of their last entry."""
        return [
            {"session_id": path[1], "mtime": int(thread.last_at.timestamp() * 1_000)}
            for path, thread in await self._transcripts()
            if path[0] == project_key and not path[2:]
        ]

    if TYPE_CHECKING:
        # Optional: the SDK lists sessions and loads each where a store does not define it. Type checkers see it as
        # abstract without this.
        async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
            """For type checkers alone."""
            raise NotImplementedError

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the paths of the transcripts of subagents."""
        session = [key["project_key"], key["session_id"]]
        return sorted(path[2] for path, _ in await self._transcripts() if path[:2] == session and path[2:])

    async def delete(self, key: SessionKey) -> None:
        """Take back a transcript; that of a session with those of its subagents."""
        path = json.loads(_chat(key))
        found = [each for each, _ in await self._transcripts() if each[: len(path)] == path]

        async def take_back(memory: Memory) -> None:
            for each in found:
                await shared.clear(self._of(memory).chat(_written(each)))

        await self._calls.wait(take_back)

    async def _transcripts(self) -> list[tuple[list[str], Thread]]:
        """Return the paths of all transcripts that have entries."""
        threads = await self._calls.wait(lambda memory: shared.all_threads(self._of(memory)))
        named = [(shared.labels(chat_name(thread.id)), thread) for thread in threads]
        return [(path, thread) for path, thread in named if len(path) in _PATH_LENGTHS]

    def _of(self, memory: Memory) -> UserMemory:
        user, space = self._names
        return memory.user(user, space=space)


def _chat(key: SessionKey) -> str:
    """Return the name of the chat of a transcript: project, session, and the path of a subagent."""
    path = [key["project_key"], key["session_id"]]
    return _written([*path, key["subpath"]] if key.get("subpath") else path)


def _written(path: Sequence[str]) -> str:
    return json.dumps(path, separators=(",", ":"))


def _as_message(entry: Mapping[str, Any]) -> dict[str, Any]:
    said = entry.get("message")
    content = said.get("content", "") if isinstance(said, Mapping) else ""
    blocks = [each for each in content if isinstance(each, Mapping)] if isinstance(content, list) else []
    results = [each for each in blocks if each.get("type") == "tool_result"]
    role = {"user": "tool" if results else "user", "assistant": "assistant"}.get(str(entry.get("type")), "system")
    new: dict[str, Any] = {
        "role": role,
        "text": content if isinstance(content, str) else "\n".join(map(_text, blocks)).strip(),
        "id": entry.get("uuid"),
        "kind": entry["type"] if role == "system" else None,
        "tool_calls": [
            ToolCall(each["id"], each["name"], json.dumps(each.get("input"), ensure_ascii=False))
            for each in blocks
            if each.get("type") == "tool_use"
        ],
        "tool_call_id": results[0].get("tool_use_id") if len(results) == 1 else None,
    }
    return shared.with_original(new, _FRAMEWORK, str(entry["type"]), dict(entry))


def _with_text(entry: Any, text: str) -> Any:  # noqa: ANN401 - an entry
    """Return an entry as it was appended; if its message was edited, with the text that it has now."""
    said = entry.get("message")
    if _as_message(entry)["text"] == text or not isinstance(said, Mapping):
        return entry
    content: Any = text
    if isinstance(said.get("content"), list):
        content, new = [], {"type": "text", "text": text}
        for block in said["content"]:
            if block.get("type") == "tool_result":
                content.append({**block, "content": new.pop("text", "")})
            elif block.get("type") != "text":
                content.append(block)
            elif "text" in new:
                content.append({**block, "text": new.pop("text")})
        content += [new] if "text" in new else []
    rest = {name: value for name, value in entry.items() if name != "toolUseResult"}
    return {**rest, "message": {**said, "content": content}}


def _text(block: Mapping[str, Any]) -> str:
    """Return what people can read in a block: a text, or the texts in the result of a tool. Thoughts are left out."""
    if block.get("type") == "text":
        return str(block.get("text", ""))
    content = block.get("content") if block.get("type") == "tool_result" else None
    if isinstance(content, list):
        return "\n".join(_text(each) for each in content if isinstance(each, Mapping))
    return content if isinstance(content, str) else ""
