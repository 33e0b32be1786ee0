"""Recollect: long-term memory for chat bots and assistants.

    import recollect

    with recollect.open("memory.db") as memory:
        ann = memory.user("ann")
        ann.add("user", "I moved to Berlin last week.")
        print(ann.search("Berlin")[0].text)

The same for async code is `async with recollect.connect("memory.db")`; its methods have the same names.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as type checkers know it; importing `typing` would cost more than all the rest
if TYPE_CHECKING:
    from recollect.blocking import open  # noqa: A004 - reads as recollect.open
    from recollect.context import Context
    from recollect.domain.hit import Hit
    from recollect.domain.message import Message
    from recollect.domain.receipt import Receipt
    from recollect.domain.session import Session
    from recollect.domain.summary import Summary
    from recollect.errors import RecollectError
    from recollect.memory import Memory, UserMemory, connect

__version__ = "0.1.0"

__all__ = [
    "Context",
    "Hit",
    "Memory",
    "Message",
    "Receipt",
    "RecollectError",
    "Session",
    "Summary",
    "UserMemory",
    "connect",
    "open",
]

_HOME = {
    "Context": "context",
    "Hit": "domain.hit",
    "Memory": "memory",
    "Message": "domain.message",
    "Receipt": "domain.receipt",
    "RecollectError": "errors",
    "Session": "domain.session",
    "Summary": "domain.summary",
    "UserMemory": "memory",
    "connect": "memory",
    "open": "blocking",
}


def __getattr__(name: str) -> object:
    # Names are loaded when they are first used, so that importing the package costs next to nothing.
    if name not in _HOME:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    value = getattr(import_module(f"recollect.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
