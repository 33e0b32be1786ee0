"""The protocols that the proxy speaks."""

from typing import Final

from aforesaid.server.proxy.protocols.messages import Messages
from aforesaid.server.proxy.protocols.ollama import OllamaChat, OllamaGenerate
from aforesaid.server.proxy.protocols.openai import ChatCompletions, Completions, Protocol, Responses

PROTOCOLS: Final[tuple[Protocol, ...]] = (
    ChatCompletions(),
    Responses(),
    Completions(),
    Messages(),
    OllamaChat(),
    OllamaGenerate(),
)
