"""Compile all modules before the tests begin: each worker imports all of them at the same time, and would compile them.

Usage: python tools/compile_ahead.py. It writes what Python and pytest would write, and nothing for what is compiled.
"""

from __future__ import annotations

import compileall
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from _pytest.assertion import rewrite
from _pytest.config import Config, _prepareconfig

ROOT = Path(__file__).parent.parent
FOLDERS = ("src", "bench", "tests")


def compiled(paths: list[Path]) -> None:
    """Compile some modules, tests with the assertions that pytest explains."""
    config = _prepareconfig(["--noconftest", "-p", "no:cacheprovider"])
    for path in paths:
        if path.name.startswith("test_") or path.name == "conftest.py":
            _compile_test(path, config)
        else:
            compileall.compile_file(path, quiet=2)


def _compile_test(path: Path, config: Config) -> None:
    folder = rewrite.get_cache_dir(path)
    kept = folder / f"{path.stem}{rewrite.PYC_TAIL}"
    if rewrite._read_pyc(path, kept) is None:  # noqa: SLF001 - pytest offers no other way
        stat, code = rewrite._rewrite_test(path, config)  # noqa: SLF001
        rewrite.try_makedirs(folder)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, stat, kept)  # noqa: SLF001


def main() -> None:
    """Share the modules among the cores, the longest first."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    paths.sort(key=lambda path: -path.stat().st_size)
    cores = os.cpu_count() or 1
    with ProcessPoolExecutor(cores) as pool:
        list(pool.map(compiled, [paths[core::cores] for core in range(cores)]))


if __name__ == "__main__":
    main()
