"""The command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aforesaid.cli import command_line

if TYPE_CHECKING:
    import typer

    app: typer.Typer

__all__ = ["app", "main"]

main = command_line.main


def __getattr__(name: str) -> object:
    """Return `app`, the command line with all commands; their modules are loaded when it is first asked for."""
    if name == "app":
        return command_line.whole()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
