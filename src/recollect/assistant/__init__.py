"""The chat brain, apart from any platform: commands are routed, everything else is answered with a context."""

from recollect.assistant.answer import Answer, Button
from recollect.assistant.brain import Assistant
from recollect.assistant.router import Router

__all__ = ["Answer", "Assistant", "Button", "Router"]
