"""The chat brain, apart from any platform: commands are routed, everything else is answered with a context."""

from recollect.assistant.answer import Answer, Button, File
from recollect.assistant.brain import NOT_DURABLE, SYSTEM, Assistant
from recollect.assistant.router import Router, is_command
from recollect.assistant.turn import CALLED, Turn

__all__ = ["CALLED", "NOT_DURABLE", "SYSTEM", "Answer", "Assistant", "Button", "File", "Router", "Turn", "is_command"]
