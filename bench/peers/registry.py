"""All measured libraries by key. A module is imported only when it is measured, because imports cost memory."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

from peers.contract import About, Peer

PEERS = {
    "aforesaid": "peers.ours:Aforesaid",
    "mem0": "peers.mem0_memory:Mem0",
    "langgraph-sqlite": "peers.langgraph_stores:Sqlite",
    "langgraph-memory": "peers.langgraph_stores:InMemory",
    "llama-index": "peers.chat_histories:LlamaIndex",
    "openai-agents": "peers.chat_histories:OpenAISession",
    "mempalace": "peers.mempalace_drawers:MemPalace",
    "hindsight": "peers.hindsight_bank:Hindsight",
    "fts5": "peers.sqlite_search:Fts5",
    "sqlite-vec": "peers.sqlite_search:Hybrid",
    "tantivy": "peers.tantivy_index:Tantivy",
    "lancedb": "peers.lance_table:LanceDB",
    "chroma": "peers.vector_databases:Chroma",
    "qdrant": "peers.vector_databases:Qdrant",
}
NOT_RUN = {
    "memori": About(
        "memori",
        "Memori",
        "memori",
        "from memori import Memori",
        "not run",
        no_run="does not run offline: its first recall downloads an embedder, the facts that it recalls are made by "
        "its maker's service, and a message is stored only while a model is called through it",
        no_disk="not run",
        no_search="not run",
        no_context="not run",
    ),
}
"""Libraries that are only installed and imported."""
EVERYBODY = (*PEERS, *NOT_RUN)


def peer(key: str) -> Peer:
    """Return an adapter that is not open yet."""
    module, _, name = PEERS[key].partition(":")
    made: Peer = getattr(import_module(module), name)()
    return made


def about_peer(key: str) -> About:
    """Return the description of a library."""
    return NOT_RUN[key] if key in NOT_RUN else peer(key).about


def interpreter(key: str) -> str:
    """Return the Python that has the library: of an environment of its own inside this one, or this one."""
    own = Path(sys.prefix) / key / "bin" / "python"
    return str(own) if own.exists() else sys.executable


def installed(about: About) -> str | None:
    """Return the installed version, or None."""
    if about.version is not None:
        return about.version
    program = f"from importlib.metadata import version; print(version({about.package!r}))"
    found = subprocess.run(  # noqa: S603 - the name of a package
        [interpreter(about.key), "-c", program], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or None
