"""Make `stores.tar.xz`: `json:` and `files:` stores as commits 43d6b203 and dce1651 wrote them, without a database.

Of each there is one that was closed, and one that was killed: with its journal. It was run once per commit, with that
commit's code and tests on the path:

    git worktree add ../old 43d6b203
    PYTHONPATH=../old/src:../old/tests .venv/bin/python tests/store/before_databases/make.py 43d6b203
"""

from __future__ import annotations

import asyncio
import importlib
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PACKED = HERE / "stores.tar.xz"


async def fill(package: str, folder: Path) -> None:
    """Put some of everything into a store, then one message more. Copy it while it is open, with its journal."""
    memories = importlib.import_module(package)
    stores = importlib.import_module(f"{package}.store")
    fill_with_everything = (
        importlib.import_module("furnishing").furnish
        if package == "recollect"
        else importlib.import_module("filling").fill_with_everything
    )
    for kind, place in (("json", "memory.json"), ("files", "memory")):
        closed = folder / "closed" / kind
        location = f"{kind}:{closed / place}"
        store = await stores.open_store(location)
        await fill_with_everything(store)
        await store.close()
        quiet = {"summaries": "none", "extract": False}
        async with memories.connect(location, embedder="none", profile=quiet) as memory:
            await memory.user("ann").add("user", "My sister visits on Friday.", id="last")
            shutil.copytree(closed, folder / "killed" / kind)


def main(commit: str) -> None:
    """Fill the stores of one commit, and pack them beside those that are packed already."""
    package = "recollect" if commit == "dce1651" else "aforesaid"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if PACKED.exists():
            with tarfile.open(PACKED) as archive:
                archive.extractall(folder, filter="data")
        asyncio.run(fill(package, folder / commit))
        with tarfile.open(PACKED, "w:xz") as archive:
            for path in sorted(folder.iterdir()):
                archive.add(path, path.name)


if __name__ == "__main__":
    main(sys.argv[1])
