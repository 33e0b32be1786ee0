"""The contract of a wire format: what the proxy has to know about a protocol to give its clients a memory.

The memory works with one form of conversation, the messages of Chat Completions. A protocol reads its requests into
that form, writes what is remembered into its requests, and reads what the assistant said out of its replies. Requests
go to a provider that speaks the same protocol: nothing is translated.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from aforesaid.server.proxy.caller import USER_FIELDS, NoMemory, value_at
from aforesaid.server.proxy.insertion import MemoryText
from aforesaid.server.proxy.proxy_memory import TokenLimits
from aforesaid.server.proxy.reply import Reply

Body: TypeAlias = Mapping[str, Any]
"""The JSON object of a request."""

BEARER: Final = "authorization"
X_API_KEY: Final = "x-api-key"


class Endpoint(NamedTuple):
    """Where a provider answers a kind of request."""

    path: str
    """The path below the provider's base URL; with `at_root`, below that URL without its `/v1`."""
    at_root: bool = False
    key_header: str = BEARER
    """The header that the provider expects its key in."""
    provider: str | None = None
    """The provider that is used, if it is configured, when neither the model nor a setting names another."""


class Protocol(ABC):
    """One wire format."""

    route: ClassVar[str]
    """The path on this server."""
    endpoint: ClassVar[Endpoint]
    user_fields: ClassVar[tuple[str, ...]] = USER_FIELDS
    """Fields of the request that name the user. A dot leads into an object."""
    chat_field: ClassVar[str | None] = None
    """The field of the request that names a chat which the provider stores."""
    reply_token_fields: ClassVar[tuple[str, ...]] = ("max_completion_tokens", "max_tokens")
    """Fields of the request that limit the length of the reply. A dot leads into an object."""
    window_field: ClassVar[str | None] = None
    """The field of the request that sets the context window of the model."""
    too_long: ClassVar[re.Pattern[bytes]] = re.compile(rb"context_length_exceeded")
    """What a provider's error says when a request is longer than the model's context window."""

    def limits(self, body: Body) -> TokenLimits:
        """Return the limits that a request sets."""
        values = (value_at(body, field) for field in self.reply_token_fields)
        reply = next((value for value in values if isinstance(value, int) and value >= 0), None)
        window = None if self.window_field is None else value_at(body, self.window_field)
        return TokenLimits(reply, window if isinstance(window, int) and window > 0 else None)

    @abstractmethod
    def messages(self, body: Body) -> Sequence[object] | NoMemory:
        """Return the conversation of a request as messages of Chat Completions, or why there is none."""

    @abstractmethod
    def insert(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        """Return the request with what is remembered."""

    @abstractmethod
    def insert_in_question(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        """Return the same for a model that refuses what `insert` returns: in the message of the question."""

    @abstractmethod
    def reply(self, body: Body, content_type: str) -> Reply:
        """Return a reader of the provider's reply to a request."""

    def previous(self, body: Body) -> str | None:
        """Return the id of the reply that a request goes on from, if it names one instead of sending the history."""
        del body
        return None
