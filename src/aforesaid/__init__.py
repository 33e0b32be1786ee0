"""Aforesaid: long-term memory for chat bots and assistants.

    import aforesaid

    with aforesaid.open("memory.db") as memory:
        ann = memory.user("ann")
        ann.add("user", "I moved to Berlin last week.")
        print(ann.search("Berlin")[0].text)

The same for async code is `async with aforesaid.connect("memory.db")`; its methods have the same names.
`aforesaid.wrap(OpenAI(), memory="memory.db")` is that client with a memory.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as type checkers know it; importing `typing` would cost more than all the rest
if TYPE_CHECKING:
    from aforesaid import errors
    from aforesaid._sync_types import SyncMemory, SyncUserMemory
    from aforesaid.blocking import open  # noqa: A004 - reads as aforesaid.open
    from aforesaid.context import Context
    from aforesaid.domain.chat_message import ChatMessage
    from aforesaid.domain.details import Part, ToolCall
    from aforesaid.domain.hit import Hit
    from aforesaid.domain.message import Message, NewMessage
    from aforesaid.domain.receipt import Receipt
    from aforesaid.domain.scope import Session
    from aforesaid.domain.summary import Summary
    from aforesaid.domain.thread import Thread
    from aforesaid.errors import AforesaidError
    from aforesaid.integrations.clients import wrap
    from aforesaid.memory import Memory, UserMemory, connect

__version__ = "0.1.0"

__all__ = [
    "AforesaidError",
    "ChatMessage",
    "Context",
    "Hit",
    "Memory",
    "Message",
    "NewMessage",
    "Part",
    "Receipt",
    "Session",
    "Summary",
    "SyncMemory",
    "SyncUserMemory",
    "Thread",
    "ToolCall",
    "UserMemory",
    "connect",
    "errors",
    "open",
    "wrap",
]

_HOME = {
    "ChatMessage": "domain.chat_message",
    "Context": "context",
    "Hit": "domain.hit",
    "Memory": "memory",
    "Message": "domain.message",
    "NewMessage": "domain.message",
    "Part": "domain.details",
    "Receipt": "domain.receipt",
    "AforesaidError": "errors",
    "Session": "domain.scope",
    "Summary": "domain.summary",
    "SyncMemory": "blocking",
    "SyncUserMemory": "blocking",
    "Thread": "domain.thread",
    "ToolCall": "domain.details",
    "UserMemory": "memory",
    "connect": "memory",
    "open": "blocking",
    "wrap": "integrations.clients",
}


def __getattr__(name: str) -> object:
    # Names are loaded when they are first used, so that importing the package costs next to nothing.
    if name == "errors":
        return import_module("aforesaid.errors")
    if name not in _HOME:
        raise AttributeError(f"module 'aforesaid' has no attribute {name!r}")
    value = getattr(import_module(f"aforesaid.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
