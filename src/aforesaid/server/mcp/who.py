"""From a request of an agent to the memory that it may use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from aforesaid.errors import InvalidInput
from aforesaid.memory import Memory, UserMemory
from aforesaid.server.auth import Credential, Role

CredentialOf: TypeAlias = Callable[[object], Credential]
"""Returns the credential of a request as the transport received it; None over standard input and output."""


class AgentAccess:
    """Finds the memory that a request of an agent may use. The base of tools and resources."""

    def __init__(self, memory: Memory, credential_of: CredentialOf) -> None:
        self._memory = memory
        self._credential_of = credential_of

    def _who(self, ctx: Context[Any, Any], role: Role = "reader") -> Credential:
        who = self._credential_of(ctx.request_context.request)
        if not who.may(role):
            raise ToolError(f"this needs a key with the role {role}; this one has the role {who.role}")
        return who

    def _person(
        self, ctx: Context[Any, Any], user: str | None, role: Role = "reader", *, thread: str | None = None
    ) -> UserMemory:
        who = self._who(ctx, role)
        named = who.user_of(user)
        if named is None:
            raise InvalidInput("say whose memory it is: name the user")
        return who.person(self._memory, named, thread=thread)
