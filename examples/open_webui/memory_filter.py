"""
title: Aforesaid memory
description: Adds what is remembered to every chat, and remembers what is said. Needs a running Aforesaid server.
version: 1.0.1
required_open_webui_version: 0.5.0
"""

# Paste this file into Open WebUI: Admin Panel > Functions > + (New Function). Then set its valves (address and key),
# and enable it for all models ("Global") or for some. It works with every model, also without Aforesaid's proxy; do not
# use both for the same model.

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from pydantic import BaseModel, Field

TEMPORARY = ("temporary", "local")
"""How the ids of temporary chats begin, before a colon: Open WebUI does not store those either."""
OWN_PROMPT = ["system", "rules", "persona", "habits", "recent"]
"""Sections of a context that the chat itself has."""


class Filter:
    """Runs before and after every answer."""

    class Valves(BaseModel):
        """Settings of the administrator."""

        address: str = Field(default="http://127.0.0.1:5002", description="The address of the Aforesaid server.")
        key: str = Field(default="", description="A key for many people: aforesaid key add open-webui --space default")
        budget: int = Field(default=3_000, ge=256, description="Maximum tokens that are added to a question.")
        timeout_seconds: float = Field(default=10.0, gt=0, description="A chat goes on without memory after this time.")
        priority: int = Field(default=0, description="The order among filters; lower ones run first.")

    class UserValves(BaseModel):
        """Settings of each user."""

        enabled: bool = Field(default=True, description="Remember my chats, and use what is remembered.")

    def __init__(self) -> None:
        self.valves = self.Valves()

    async def inlet(
        self,
        body: dict[str, Any],
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __event_emitter__: Callable[[dict[str, Any]], Awaitable[None]] | None = None,
    ) -> dict[str, Any]:
        """Add what is remembered before the question, and store the question."""
        question = _last(body, "user")
        if question is None or not self._is_on(__user__, __metadata__):
            return body
        user = _user(__user__)
        wanted = {"user": user["id"], "text": question, "budget": self.valves.budget, "without": OWN_PROMPT}
        try:
            context = await self._post("/api/context", wanted)
            await self._store("user", question, user, body, __metadata__)
        except (aiohttp.ClientError, TimeoutError) as error:
            await _tell(__event_emitter__, f"Without memory: {type(error).__name__} {error}")
            return body
        known = "\n\n".join(each["content"] for each in context["messages"][:-1])
        if known:
            messages = body["messages"]
            place = max(number for number, each in enumerate(messages) if each.get("role") == "user")
            added = {"role": "system", "content": known}
            body = {**body, "messages": [*messages[:place], added, *messages[place:]]}
        return body

    async def outlet(
        self,
        body: dict[str, Any],
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __event_emitter__: Callable[[dict[str, Any]], Awaitable[None]] | None = None,
    ) -> dict[str, Any]:
        """Store the answer."""
        answer = _last(body, "assistant")
        if answer is not None and self._is_on(__user__, __metadata__ or body):
            try:
                await self._store("assistant", answer, _user(__user__), body, __metadata__)
            except (aiohttp.ClientError, TimeoutError) as error:
                await _tell(__event_emitter__, f"Not remembered: {type(error).__name__} {error}")
        return body

    def _is_on(self, user: dict[str, Any] | None, metadata: dict[str, Any] | None) -> bool:
        """Return whether a chat is remembered: not if it is temporary, a background task, or the user said no."""
        chat = str((metadata or {}).get("chat_id") or "")
        valves = (user or {}).get("valves")
        wanted = True if valves is None else bool(getattr(valves, "enabled", True))
        task = (metadata or {}).get("task")
        return bool(user) and wanted and not task and chat.partition(":")[0] not in TEMPORARY

    async def _store(
        self, role: str, text: str, user: dict[str, str], body: dict[str, Any], metadata: dict[str, Any] | None
    ) -> None:
        chat = str((metadata or body).get("chat_id") or "")
        asked = sum(each.get("role") == "user" for each in body["messages"])
        # The same for a question whose answer is regenerated: it is stored once.
        place = hashlib.sha256(f"{chat}\n{asked}\n{role}\n{text}".encode()).hexdigest()[:32]
        message = {"user": user["id"], "role": role, "text": text, "id": f"open-webui:{place}"}
        if chat:
            message["session"] = chat
        if role == "user" and user["name"]:
            message["name"] = user["name"]
        await self._post("/api/messages", message)

    async def _post(self, path: str, content: dict[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.valves.key}"}
        timeout = aiohttp.ClientTimeout(total=self.valves.timeout_seconds)
        address = self.valves.address.rstrip("/") + path
        async with (
            aiohttp.ClientSession(timeout=timeout, headers=headers) as session,
            session.post(address, json=content) as answer,
        ):
            answer.raise_for_status()
            found: dict[str, Any] = await answer.json()
            return found


def _user(user: dict[str, Any] | None) -> dict[str, str]:
    given = user or {}
    return {"id": str(given.get("id")), "name": str(given.get("name") or "")}


def _last(body: dict[str, Any], role: str) -> str | None:
    """Return the text of the last message of a role."""
    for message in reversed(body.get("messages") or []):
        if message.get("role") == role:
            content = message.get("content")
            if isinstance(content, list):
                content = "\n".join(part["text"] for part in content if isinstance(part.get("text"), str))
            return content if isinstance(content, str) and content.strip() else None
    return None


async def _tell(emit: Callable[[dict[str, Any]], Awaitable[None]] | None, words: str) -> None:
    """Show a line above the answer."""
    if emit is not None:
        await emit({"type": "status", "data": {"description": words, "done": True}})
