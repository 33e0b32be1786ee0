"""From a request of an agent to the memory that it may use."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

from mcp.server.mcpserver import Context

from aforesaid.errors import InvalidInput, NotFound
from aforesaid.memory import Memory, UserMemory
from aforesaid.server.auth import Credential
from aforesaid.server.mcp.answers import AnswerLimit

CredentialOf: TypeAlias = Callable[[object], Credential]
"""Returns the credential of a request as the transport received it; None over standard input and output."""

CALLER: Final[ContextVar[Credential]] = ContextVar("aforesaid_mcp_caller")
"""The credential of the request that is handled, for handlers that get no context of the request."""


class AgentAccess:
    """Finds the memory that a request of an agent may use. The base of tools, resources and prompts.

    That a key may write is checked for all tools in one place, `AgentServer.call_tool`.
    """

    def __init__(self, memory: Memory, credential_of: CredentialOf, limit: AnswerLimit) -> None:
        self._memory = memory
        self._credential_of = credential_of
        self._limit = limit

    def _who(self, ctx: Context[Any, Any]) -> Credential:
        return self._credential_of(ctx.request_context.request)

    def _person(
        self, ctx: Context[Any, Any], user: str | None, *, thread: str | None = None, chat: str | None = None
    ) -> UserMemory:
        """Return the memory of the user that a call is about. Raises InvalidInput if it names none."""
        who = self._who(ctx)
        named = who.user_of(user)
        if named is None:
            raise InvalidInput("this connection is for several users; pass the argument `user` to say whose memory")
        return who.person(self._memory, named, thread=thread, chat=chat)

    async def _owner(self, ctx: Context[Any, Any], number: int) -> UserMemory:
        """Return the memory of the user to whom a memory with this id belongs. Raises NotFound, also for others'."""
        who = self._who(ctx)
        found = await self._memory.memory(number, space=who.space_of(None))
        if who.user not in (None, found.user):
            raise NotFound(f"there is no memory {number}")
        return who.person(self._memory, found.user)
