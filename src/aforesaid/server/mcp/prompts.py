"""Prompts that a person chooses in their app: a question together with what is remembered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import Field

from aforesaid.errors import AforesaidError
from aforesaid.memory import UserMemory
from aforesaid.server.mcp.access import AgentAccess
from aforesaid.server.mcp.server import words_of

_EVENTS: Final = 50

PromptUser = Annotated[str | None, Field(description="The user. Not needed if the connection is for one user.")]


class Prompts(AgentAccess):
    """Prompts with what is remembered."""

    async def with_memory(
        self,
        ctx: Context[Any, Any],
        message: Annotated[str, Field(description="The message to answer.")],
        user: PromptUser = None,
    ) -> list[UserMessage]:
        """Answer a message with what is remembered about it."""

        async def write(person: UserMemory) -> str:
            return (await person.context(message, self._limit.tokens)).text

        return await self._message(ctx, user, write)

    async def about_person(
        self,
        ctx: Context[Any, Any],
        name: Annotated[str, Field(description="A name or a relation, such as Tom or my sister.")],
        user: PromptUser = None,
    ) -> list[UserMessage]:
        """Tell me what I know about a person."""

        async def write(person: UserMemory) -> str:
            people = await person.people(name)
            known = [f"- {memory.text}" for each in people for memory in each.memories] or ["- nothing yet"]
            return f"Tell me about {name}. This is remembered:\n" + "\n".join(known)

        return await self._message(ctx, user, write)

    async def coming_up(self, ctx: Context[Any, Any], user: PromptUser = None) -> list[UserMessage]:
        """Tell me what is coming up: appointments and reminders."""

        async def write(person: UserMemory) -> str:
            zone = await person.time_zone()
            ahead = await person.timeline(since=datetime.now(UTC), limit=_EVENTS)
            dated = ((each.happened, each.text) for each in ahead)
            events = [f"- {when.start.astimezone(zone):%A %d %B %Y, %H:%M}: {text}" for when, text in dated if when]
            reminders = [
                f"- {each.remind_at.astimezone(zone):%A %d %B %Y, %H:%M}: reminder: {each.text}"
                for each in await person.reminders()
                if each.remind_at is not None
            ]
            known = list(dict.fromkeys(events + reminders)) or ["- nothing"]
            today = datetime.now(zone)
            return f"Today is {today:%A %d %B %Y}. What is coming up? This is remembered:\n" + "\n".join(known)

        return await self._message(ctx, user, write)

    async def _message(
        self, ctx: Context[Any, Any], user: str | None, write: Callable[[UserMemory], Awaitable[str]]
    ) -> list[UserMessage]:
        """Return a prompt of one message, as long as an answer may be. Errors say in words what is wrong."""
        try:
            text = await write(self._person(ctx, user))
        except AforesaidError as error:
            raise MCPError(INVALID_PARAMS, words_of(error)) from error
        return [UserMessage(self._limit.part(text, None)[0])]
