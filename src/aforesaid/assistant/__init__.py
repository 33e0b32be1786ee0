"""The assistant behind every platform: routes commands, and answers other messages with a context."""

from aforesaid.assistant.brain import NOT_DURABLE, SYSTEM, Assistant, SentContext
from aforesaid.assistant.chat_texts import failure
from aforesaid.assistant.commands import CALLED, Answer, Button, File, Turn
from aforesaid.assistant.router import Router, is_command

__all__ = [
    "CALLED",
    "NOT_DURABLE",
    "SYSTEM",
    "Answer",
    "Assistant",
    "Button",
    "File",
    "Router",
    "SentContext",
    "Turn",
    "failure",
    "is_command",
]
