"""Everybody who is measured, by key. A module is loaded when its memory is measured, for imports cost memory."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from peers.contract import About, Peer

PEERS = {
    "recollect": "peers.ours:Recollect",
    "mem0": "peers.mem0_memory:Mem0",
    "langgraph-sqlite": "peers.langgraph_stores:Sqlite",
    "langgraph-memory": "peers.langgraph_stores:InMemory",
    "llama-index": "peers.chat_histories:LlamaIndex",
    "openai-agents": "peers.chat_histories:OpenAISession",
    "memori": "peers.chat_histories:Memori",
}


def peer(key: str) -> Peer:
    """Return a memory that is not open yet."""
    module, _, name = PEERS[key].partition(":")
    made: Peer = getattr(import_module(module), name)()
    return made


def installed(about: About) -> str | None:
    """Return its version, or None where it is not installed."""
    try:
        return version(about.package)
    except PackageNotFoundError:
        return None
