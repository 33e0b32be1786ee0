"""Runs documented programs and commands in fresh processes, without importing everything again for each.

A process that has imported the package forks for every program (`torture.zygote`).
"""

from __future__ import annotations

import atexit
import os
import runpy
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import openai

import aforesaid
import aforesaid.cli
import aforesaid.memory
import aforesaid.server
import aforesaid.store.readable
import aforesaid.store.sqlite
import aforesaid.testing
from torture.zygote import Zygote

LOADED = (aforesaid.cli.app, aforesaid.memory, aforesaid.server.create_app, aforesaid.open, np, openai)
"""What most programs need, loaded before the first of them."""


@dataclass(frozen=True)
class Ran:
    """How a process ended, and what it wrote."""

    status: int
    out: str
    err: str


class Programs:
    """The test's side: runs programs, one after another."""

    def __init__(self, zygote: Zygote) -> None:
        self._zygote = zygote

    def code(self, code: str, folder: Path) -> Ran:
        """Run Python code as `python -W error -c` does."""
        return self._run("run_code", code, folder, "")

    def script(self, path: Path, folder: Path, given: str) -> Ran:
        """Run a file as `python file` does, with a text on its standard input."""
        return self._run("run_script", str(path), folder, given)

    def command(self, words: Sequence[str], folder: Path) -> Ran:
        """Run `aforesaid` with arguments."""
        return self._run("run_command", list(words), folder, "")

    def _run(self, function: str, what: str | list[str], folder: Path, given: str) -> Ran:
        with tempfile.TemporaryDirectory() as place:
            files = [Path(place) / name for name in ("in", "out", "err")]
            files[0].write_text(given, encoding="utf-8")
            child = self._zygote.start(
                function, what=what, folder=str(folder), files=[str(file) for file in files], variables=dict(os.environ)
            )
            status: int = self._zygote.expect(child, "ended")[2]
            return Ran(status, files[1].read_text(encoding="utf-8"), files[2].read_text(encoding="utf-8"))


@contextmanager
def programs() -> Iterator[Programs]:
    """Prepare to run programs."""
    with Zygote("project.programs", warnings="error") as zygote:
        yield Programs(zygote)


def run_code(_: object, options: dict[str, Any]) -> None:
    """Run code in this process, which was forked for it."""

    def run() -> None:
        module = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(options["what"], "<string>", "exec"), module.__dict__)  # noqa: S102 - code of our docs

    _become(options, ["-c"], run)


def run_script(_: object, options: dict[str, Any]) -> None:
    """Run a file in this process, which was forked for it."""
    warnings.resetwarnings()
    _become(options, [options["what"]], lambda: runpy.run_path(options["what"], run_name="__main__"))


def run_command(_: object, options: dict[str, Any]) -> None:
    """Run a command in this process, which was forked for it."""
    warnings.resetwarnings()
    _become(options, ["aforesaid", *options["what"]], aforesaid.cli.main)


def _become(options: dict[str, Any], arguments: list[str], run: Callable[[], object]) -> None:
    """Run something with its own folder, variables, arguments and streams, and end as an interpreter does."""
    os.chdir(options["folder"])
    os.environ.clear()
    os.environ.update(options["variables"])
    sys.argv = arguments
    for stream, file in enumerate(options["files"]):
        handle = os.open(file, os.O_RDONLY if stream == 0 else os.O_WRONLY | os.O_CREAT)
        os.dup2(handle, stream)
        os.close(handle)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for as long as the process lives
    status = 0
    try:
        run()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined] # waits for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
