"""Stores of other packages: checked against the contract, and opened by their names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import aforesaid
from aforesaid.bots.running import folder_and_name
from aforesaid.domain.details import Part
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import Purged
from aforesaid.errors import InvalidInput, StoreClosed, StoreRefused
from aforesaid.server.auth import keys_path
from aforesaid.settings import Settings
from aforesaid.store import Store, locate, open_store, restore_store
from aforesaid.store.conformance import PromiseBroken, check_store
from aforesaid.store.contract import Progress
from aforesaid.store.operations import Change
from aforesaid.store.sqlite import SqliteStore

PAGE = Path(__file__).parents[2] / "docs/how-to/add-a-store.md"


def documented_code() -> str:
    """The class of docs/how-to/add-a-store.md."""
    (code,) = re.findall(r"```python\n(.*?)\n\nasync def main", PAGE.read_text("utf-8"), re.DOTALL)
    return str(code)


@pytest.mark.parametrize("kind", ["sqlite", "json", "files"])
async def test_built_in_stores_keep_their_promises(tmp_path: Path, kind: str) -> None:
    await check_store(lambda name: open_store(f"{kind}:{tmp_path / name}"))


async def test_the_store_of_the_documentation_keeps_its_promises(tmp_path: Path) -> None:
    named: dict[str, Any] = {"__name__": __name__}
    exec(compile(documented_code(), "add-a-store.md", "exec"), named)  # noqa: S102
    made = named["CopiedStore"]
    made.copies = tmp_path / "copies"
    await check_store(lambda name: made.open(tmp_path / name))
    assert list(made.copies.iterdir())


async def test_a_store_that_is_handed_over_works_and_refuses_once_it_is_closed(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "memory.db")
    async with aforesaid.connect(store, embedder="none") as memory:
        await memory.user("ann").add("user", "a pear")
        with pytest.raises(StoreRefused, match="name one with the setting `attachments`"):
            await memory.user("ann").add("user", "a picture", parts=[Part.of(b"\x89PNG", "image/png")])
    with pytest.raises(StoreClosed):
        await store.apply([])


def test_a_location_that_is_neither_a_path_nor_a_store_is_refused() -> None:
    with pytest.raises(InvalidInput, match="must be a path, a string or a store, not int"):
        aforesaid.open(42)  # type: ignore[arg-type]


class Forgetful(SqliteStore):
    """Loses everything at closing."""

    async def close(self) -> None:
        await super().close()
        self.path.unlink(missing_ok=True)


class Nothing(SqliteStore):
    """Erases nothing."""

    async def erase(self, scope: Scope, seqs: Sequence[int], actor: str = "aforesaid") -> Purged:  # noqa: ARG002
        return Purged(len(seqs), 0, 0)


class Halves(SqliteStore):
    """Stores each change by itself."""

    async def apply(self, changes: Sequence[Change], progress: Progress | None = None) -> Receipt:
        results = [each for change in changes for each in (await super(Halves, self).apply([change], progress)).results]
        return Receipt(durable=True, results=tuple(results))


class Greedy(SqliteStore):
    """Erases all of a user where messages are to be erased."""

    async def erase(self, scope: Scope, seqs: Sequence[int], actor: str = "aforesaid") -> Purged:  # noqa: ARG002
        return await self.purge(scope, actor)


class Open(SqliteStore):
    """Cannot be closed."""

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (Forgetful, "is not the same after closing and opening"),
        (Nothing, "`erase` erases too much or too little"),
        (Halves, "a part of a change set that failed is visible"),
        (Greedy, "`erase` erases too much or too little"),
        (Open, "does not raise StoreClosed"),
    ],
)
async def test_what_a_store_does_not_keep_is_named(broken: type[SqliteStore], said: str, tmp_path: Path) -> None:
    with pytest.raises(PromiseBroken, match=said):
        await check_store(lambda name: broken.open(tmp_path / name))


async def test_an_object_that_is_no_store_is_named() -> None:
    with pytest.raises(PromiseBroken, match="dict lacks methods of the contract"):
        await check_store(lambda _: {})  # type: ignore[arg-type, return-value]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package with stores."""
    folder = tmp_path / "site"
    about = folder / "copied-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: copied\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[aforesaid.stores]\ncopied = copied_store:opened\nlater = copied_store:opened_later\n"
        "nothing = copied_store:nothing\nlost = copied_store:missing\n"
    )
    (folder / "copied_store.py").write_text(
        documented_code() + f"\n\n\nCopiedStore.copies = Path({str(tmp_path / 'copies')!r})\n"
        "\n\ndef opened(rest):\n    return CopiedStore.open(Path(rest))\n"
        "\n\nasync def opened_later(rest):\n    return await opened(rest)\n"
        "\n\ndef nothing(rest):\n    return rest\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.modules.pop("copied_store", None)


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("name", ["copied", "later"])
async def test_a_location_names_the_store_of_a_package(tmp_path: Path, name: str) -> None:
    where = f"{name}:{tmp_path / 'memory.db'}"
    for expected in (["one"], ["one", "two"]):
        async with aforesaid.connect(where, embedder="none") as memory:
            await memory.user("ann").add("user", expected[-1])
            assert [message.text for message in await memory.user("ann").history()] == expected
            assert (await memory.user("ann").status()).storage == "copied"
    store = await open_store(where)
    assert isinstance(store, Store)
    await store.close()
    assert locate(where).path is None
    with pytest.raises(InvalidInput, match="only a store in files can be restored"):
        restore_store(tmp_path / "copy", where, replace=False)


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("name", "said"), [("nothing", "gave str for 'nothing', which is not a store"), ("lost", "cannot be loaded")]
)
async def test_a_package_that_gives_no_store_is_named(name: str, said: str) -> None:
    with pytest.raises(StoreRefused, match=said):
        await open_store(f"{name}:x")


@pytest.mark.usefixtures("package")
async def test_an_unknown_kind_of_location_names_those_that_are_there() -> None:
    with pytest.raises(InvalidInput, match=r"unknown kind of location 'mysql:'.*files:PATH, copied:…, later:…"):
        await open_store("mysql://x")


@pytest.mark.usefixtures("package")
def test_keys_and_heartbeats_of_such_a_store_have_files_of_their_own() -> None:
    first, second = (keys_path(Settings(), f"copied:{name}") for name in "ab")
    assert first is not None
    assert second is not None
    assert first != second
    assert first.name.startswith("store-")
    assert first.name.endswith(".keys.json")
    assert folder_and_name("copied:a") == (first.parent, first.name.removesuffix(".keys.json"))


def test_the_command_line_opens_the_store_of_a_package(package: Path, tmp_path: Path) -> None:
    where = f"copied:{tmp_path / 'memory.db'}"
    environment = {**os.environ, "PYTHONPATH": str(package)}

    def aforesaid_command(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "aforesaid", *arguments, "--store", where]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert aforesaid_command("add", "I moved to Berlin", "--user", "ann").returncode == 0
    assert "Berlin" in aforesaid_command("search", "Berlin", "--user", "ann").stdout
    repaired = aforesaid_command("verify", "--repair")
    assert repaired.returncode == 2
    assert "only a store in files can be repaired" in repaired.stderr
