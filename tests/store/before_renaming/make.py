"""Make `stores.tar.xz`: one store of each kind, and an export, as commit dce1651 wrote them under the old name.

It was run once, with that commit's code and tests on the path:

    git worktree add ../old dce1651
    PYTHONPATH=../old/src:../old/tests .venv/bin/python tests/store/before_renaming/make.py
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import recollect  # type: ignore[import-not-found, unused-ignore]
from furnishing import furnish  # type: ignore[import-not-found, unused-ignore]
from recollect.store import open_store  # type: ignore[import-not-found, unused-ignore]
from recollect.upkeep.workers import prepare_queue  # type: ignore[import-not-found, unused-ignore]

from pg import Server

HERE = Path(__file__).parent


async def fill(location: str, copied: tuple[Path, Path] | None = None) -> None:
    """Put some of everything into a store, then one message more. Copy it while it is open, with its journal."""
    store = await open_store(location)
    await furnish(store)
    await store.close()
    async with recollect.connect(location, embedder="none", profile={"summaries": "none", "extract": False}) as memory:
        await memory.user("ann").add("user", "My sister visits on Friday.", id="last")
        if copied is not None:
            shutil.copytree(*copied, dirs_exist_ok=True)


async def main() -> None:
    """Fill the stores and pack them."""
    with tempfile.TemporaryDirectory() as packed:
        folder = Path(packed)
        await fill(str(folder / "memory.db"))
        for kind, place in (("json", "memory.json"), ("files", "memory")):
            with tempfile.TemporaryDirectory() as used:
                await fill(f"{kind}:{Path(used) / place}", (Path(used), folder))
        async with recollect.connect(folder / "memory.db", embedder="none") as memory:
            await memory.export(folder / "export.jsonl")
        server = Server()
        dsn = server.create("old")
        await fill(dsn)
        await prepare_queue(dsn)
        dump = [str(server._programs / "pg_dump"), "--no-owner", "--inserts", server.dsn("old", "postgres")]
        (folder / "postgres.sql").write_bytes(subprocess.run(dump, check=True, capture_output=True).stdout)
        with tarfile.open(HERE / "stores.tar.xz", "w:xz") as archive:
            for path in sorted(folder.iterdir()):
                archive.add(path, path.name)


if __name__ == "__main__":
    asyncio.run(main())
