"""The form in which chat APIs take messages."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class ChatMessage(TypedDict):
    """A message for an OpenAI-style chat API. The SDKs of OpenAI and Anthropic accept it as it is.

    Two values are `Any`, because the types of a dict's values must be exactly those that an SDK declares, and SDKs
    declare different ones for each role.
    """

    role: Any
    """`system`, `user`, `assistant` or `tool`."""
    content: Any
    """The text, or a list of content parts; None in a message that has only tool calls."""
    name: NotRequired[str]
    tool_calls: NotRequired[list[dict[str, Any]]]
    tool_call_id: NotRequired[str]
    """The tool call that this message is the result of."""
