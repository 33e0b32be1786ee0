"""A pytest plugin that replaces memories of frameworks by Aforesaid's in the frameworks' own tests.

Each class here has the constructor that the tests call, opens a memory, and is Aforesaid's adapter otherwise. The
variable FRAMEWORK_SUITE says which suite runs, and FRAMEWORK_LEFT_OUT which of its tests do not.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import pytest

import aforesaid

_SUITE: Final = os.environ["FRAMEWORK_SUITE"]
_LEFT_OUT: Final = frozenset(os.environ["FRAMEWORK_LEFT_OUT"].split("\n"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that the suite names."""
    left_out = [item for item in items if {item.name, item.name.partition("[")[0]} & _LEFT_OUT]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    for module in {item.module for item in items if isinstance(item, pytest.Function)}:
        if hasattr(module, "get_directory_snapshot"):
            module.get_directory_snapshot = _files_of_the_memory_tool


def pytest_sessionfinish() -> None:
    """Close the memories that tests left open."""
    _OPENED.close_all()


class _Opened:
    """Memories by their path, each opened once and closed by the last user."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Any, int]] = {}
        self._number = 0

    def open(self, name: object, location: str | None = None) -> tuple[Any, Callable[[], None]]:
        """Return the memory of a name, and what closes it. The name `:memory:` is a new one each time."""
        with self._lock:
            self._number += 1
            key = f"{name} {self._number}" if name == ":memory:" else str(name)
            memory, users = self._open.get(key) or (aforesaid.open(location or str(name)), 0)
            self._open[key] = memory, users + 1
        return memory, lambda: self._close(key)

    def close_all(self) -> None:
        """Close what tests left open."""
        for memory, _ in self._open.values():
            memory.close()

    def _close(self, name: str) -> None:
        with self._lock:
            memory, users = self._open.pop(name, (None, 0))
            if users > 1:
                self._open[name] = memory, users - 1
            elif memory is not None:
                memory.close()


_OPENED: Final = _Opened()


def _openai_agents() -> None:
    import agents  # noqa: PLC0415

    from aforesaid.integrations.openai_agents import AforesaidSession  # noqa: PLC0415

    class Session(AforesaidSession):
        def __init__(self, session_id: str, db_path: object = ":memory:", **options: Any) -> None:  # noqa: ANN401
            memory, self.close = _OPENED.open(db_path)
            super().__init__(memory.user("ann", thread=session_id), **options)

    agents.SQLiteSession = Session


def _langgraph() -> None:
    from langgraph.store import memory as module  # noqa: PLC0415

    from aforesaid.integrations.langgraph import AforesaidStore  # noqa: PLC0415

    class Store(AforesaidStore):
        def __init__(self, **options: Any) -> None:  # noqa: ANN401
            super().__init__(_OPENED.open(":memory:")[0], **options)

    module.InMemoryStore = Store


def _langgraph_sqlite() -> None:
    from langgraph.store import sqlite as module  # noqa: PLC0415

    from aforesaid.integrations.langgraph import AforesaidStore  # noqa: PLC0415

    class Store(AforesaidStore):
        @classmethod
        @contextmanager
        def from_conn_string(cls, path: str, *, index: Any = None) -> Iterator[Store]:  # noqa: ANN401
            memory, close = _OPENED.open(path if path == ":memory:" else f"{path}.memory")
            yield cls(memory, index=_renamed(index))
            close()

        def setup(self) -> None:
            pass

    class AsyncStore(AforesaidStore):
        @classmethod
        @asynccontextmanager
        async def from_conn_string(cls, path: str, *, index: Any = None) -> AsyncIterator[AsyncStore]:  # noqa: ANN401
            async with aforesaid.connect(path if path == ":memory:" else f"{path}.memory") as memory:
                yield cls(memory, index=_renamed(index))

        async def setup(self) -> None:
            pass

    module.SqliteStore = Store
    module.AsyncSqliteStore = AsyncStore


def _anthropic() -> None:
    from anthropic.lib.tools import _beta_builtin_memory_tool as module  # noqa: PLC0415

    from aforesaid.integrations import anthropic_memory  # noqa: PLC0415

    class Tool(anthropic_memory.AforesaidMemoryTool):
        def __init__(self, base_path: str) -> None:
            self.base_path = base_path
            super().__init__(_OPENED.open(base_path, ":memory:")[0], "ann")

    class AsyncTool(anthropic_memory.AsyncAforesaidMemoryTool):
        def __init__(self, base_path: str) -> None:
            self.base_path = base_path
            super().__init__(_OPENED.open(base_path, ":memory:")[0], "ann")

    vars(module).update(BetaLocalFilesystemMemoryTool=Tool, BetaAsyncLocalFilesystemMemoryTool=AsyncTool)


def _files_of_the_memory_tool(folder: str) -> dict[str, str]:
    """Return the files of the memory in a folder by their paths, as the tests expect them on disk."""
    memory, close = _OPENED.open(folder)
    messages = memory.user("ann").history(1_000)
    close()
    return {str(each.metadata["key"]).lstrip("/"): str(each.metadata["value"]) for each in messages}


def _renamed(index: Any) -> Any:  # noqa: ANN401
    """Return the index of these tests, which call the fields `text_fields`, as LangGraph's types have it."""
    return index and {**index, "fields": index.get("text_fields") or index.get("fields")}


{
    "openai-agents": _openai_agents,
    "langgraph": _langgraph,
    "langgraph-sqlite": _langgraph_sqlite,
    "anthropic": _anthropic,
}[_SUITE]()
