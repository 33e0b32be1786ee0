"""The command line."""

from __future__ import annotations

import atexit
import gc
import sys
from typing import TYPE_CHECKING, Final

from aforesaid import __version__

if TYPE_CHECKING:
    import typer

    app: typer.Typer

__all__ = ["app", "main"]

_COLLECT_AFTER: Final = 50_000
"""New objects after which Python looks for garbage, instead of 700."""


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"aforesaid {__version__}\n")  # typer would take ten times as long as Python's start
        return
    # What is imported stays: looking for garbage in it would take a quarter of the time of a short command.
    gc.set_threshold(_COLLECT_AFTER)
    atexit.register(gc.freeze)
    from aforesaid.cli import command_line  # noqa: PLC0415

    command_line.main()


def __getattr__(name: str) -> object:
    """Return `app`, the command line with all commands; their modules are loaded when it is first asked for."""
    if name == "app":
        from aforesaid.cli import command_line  # noqa: PLC0415

        return command_line.whole()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
