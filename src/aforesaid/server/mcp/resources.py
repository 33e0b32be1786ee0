"""Resources that an agent can be given, and the prompt that loads a context."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.mcpserver.prompts.base import UserMessage

from aforesaid.errors import AforesaidError, InvalidInput, NotFound
from aforesaid.memory import UserMemory
from aforesaid.server.mcp.who import AgentAccess


class Resources(AgentAccess):
    """What an agent can be shown."""

    async def portrait(self, user: str, ctx: Context[Any, Any]) -> str:
        """Return what is known about a user, in one text."""
        text = await self._read(ctx, user).portrait()
        return text or f"Nothing is known about {user}."

    async def summaries(self, user: str, ctx: Context[Any, Any]) -> str:
        """Return a user's summaries, highest level first."""
        found = await self._read(ctx, user).summaries()
        return "\n\n".join(f"{each.period} (level {each.level})\n{each.text}" for each in found) or "No summaries yet."

    async def with_memory(self, ctx: Context[Any, Any], message: str, user: str | None = None) -> list[UserMessage]:
        """Return a message together with what should be known to answer it."""
        try:
            context = await self._person(ctx, user).context(message)
        except AforesaidError as error:
            raise ValueError(str(error)) from error
        return [UserMessage(context.text)]

    def _read(self, ctx: Context[Any, Any], user: str) -> UserMemory:
        try:
            return self._person(ctx, user)
        except NotFound as error:
            raise ResourceNotFoundError(str(error)) from error
        except InvalidInput as error:
            raise ResourceError(str(error)) from error
