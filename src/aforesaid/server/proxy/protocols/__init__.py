"""The protocols that the proxy speaks."""

from typing import Final

from aforesaid.server.proxy.protocols.chat_completions import ChatCompletions
from aforesaid.server.proxy.protocols.completions import Completions
from aforesaid.server.proxy.protocols.messages import Messages
from aforesaid.server.proxy.protocols.ollama import OllamaChat, OllamaGenerate
from aforesaid.server.proxy.protocols.protocol import Protocol
from aforesaid.server.proxy.protocols.responses import Responses

PROTOCOLS: Final[tuple[Protocol, ...]] = (
    ChatCompletions(),
    Responses(),
    Completions(),
    Messages(),
    OllamaChat(),
    OllamaGenerate(),
)
