"""The assistant behind every platform: routes commands, and answers other messages with a context."""

from aforesaid.assistant.brain import SYSTEM, Assistant, SentContext
from aforesaid.assistant.chat_texts import NOT_DURABLE, failure, notices
from aforesaid.assistant.commands import CALLED, Answer, Button, File, Turn
from aforesaid.assistant.phrases import Phrases
from aforesaid.assistant.router import Router, is_command

__all__ = [
    "CALLED",
    "NOT_DURABLE",
    "SYSTEM",
    "Answer",
    "Assistant",
    "Button",
    "File",
    "Phrases",
    "Router",
    "SentContext",
    "Turn",
    "failure",
    "is_command",
    "notices",
]
