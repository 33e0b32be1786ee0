"""Import files into a store of their own, and read what became of them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.portability.formats.base import ReadOptions
from aforesaid.portability.importing import ImportOptions, Loader
from aforesaid.store import Store, open_store
from aforesaid.store.messages import Messages
from aforesaid.store.people import Users

BERLIN = ZoneInfo("Europe/Berlin")


async def load_into(store: Store, path: Path, **options: Any) -> Any:  # noqa: ANN401 - the result of an import
    """Import a file into a store, with times of Berlin."""
    options.setdefault("reading", ReadOptions(zone=BERLIN))
    return await Loader(store, ImportOptions(**options)).load(path)


async def load(path: Path, **options: Any) -> tuple[Any, Store]:  # noqa: ANN401
    """Import a file twice into a new store. The second time, nothing may be new."""
    store = await open_store(":memory:")
    report = await load_into(store, path, **options)
    again = await load_into(store, path, **options)
    assert not {kind: count for kind, count in again.new.items() if count}, "loading twice stored something twice"
    return report, store


async def history(store: Store, user: str, thread: str | None = None) -> list[Message]:
    """Return the messages of a user, or all messages of a thread, oldest first."""
    if thread is None:
        return list(await store.read(Messages(Scope.of(user), limit=1_000)))
    scope = Scope.of(user, thread=thread)
    return list(await store.read(Messages(scope, within="thread", limit=1_000)))


async def said(store: Store, user: str, thread: str | None = None) -> list[str]:
    """Return the texts of the messages of a user, or of a thread, oldest first."""
    return [message.text for message in await history(store, user, thread)]


async def users(store: Store) -> set[str]:
    """Return the ids of all users."""
    return {user.id for user in await store.read(Users())}


def written(path: Path, value: object) -> Path:
    """Write a text, or a value as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), "utf-8")
    return path


def lines(path: Path, *values: object) -> Path:
    """Write values as JSON lines."""
    return written(path, "".join(f"{json.dumps(value, ensure_ascii=False)}\n" for value in values))


def packed(path: Path, files: dict[str, object]) -> Path:
    """Write a zip archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files.items():
            archive.writestr(name, value if isinstance(value, str | bytes) else json.dumps(value))
    return path
