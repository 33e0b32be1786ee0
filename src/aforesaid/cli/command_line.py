"""The command line: its commands in groups, and how a failure is reported."""

from __future__ import annotations

import importlib
import io
import logging
import os
import sys
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from types import CodeType
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer import Option
from typer.core import TyperGroup

from aforesaid import __version__
from aforesaid.errors import AforesaidError, InvalidInput
from aforesaid.extras import re

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130
"""Exit codes. 1: the command was valid but failed, or found a problem. 2: the command line or the configuration is
wrong, so running the same command again will not help. 130: stopped with Ctrl+C."""

# Each command prints its failure as one line. Without a handler, Python would print the same log record again.
logging.getLogger("aforesaid.errors").addHandler(logging.NullHandler())


_UsageError: Any = typer.BadParameter.__base__
"""The error for a wrong command line, which typer has no public name for."""
_EXTRA: Final = re.compile(r"unexpected extra argument(?:s|\(s\))? \((\S+).*\)")


class Commands(TyperGroup):
    """Commands that report expected failures in one line on standard error, without a traceback."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as typer has it
        """Run a command; exit with WRONG_USE after `InvalidInput` and with FAILED after every other expected error."""
        try:
            return super().invoke(ctx)
        except _UsageError as error:
            error.message = ". ".join(filter(None, (error.message, _advice(error))))
            raise
        except AforesaidError as error:
            _complain(str(error))
            raise typer.Exit(WRONG_USE if isinstance(error, InvalidInput) else FAILED) from None
        except KeyboardInterrupt:
            _complain("interrupted; every acknowledged message is stored")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # The reader closed the pipe, as `head` does. Python would fail again when it flushes at exit.
            sys.stdout = None
            raise typer.Exit(0) from None


def _complain(text: str) -> None:
    from aforesaid.cli.options import complain  # noqa: PLC0415 - the help of all commands needs none of their options

    complain(text)


def _advice(error: Any) -> str:  # noqa: ANN401 - as typer has it
    """Return what to type instead, for mistakes that are made often."""
    if error.ctx is None:
        return ""
    missing = getattr(error, "param", None)
    if missing is not None and missing.name in {"message", "messages"}:
        return "In a shell, # starts a comment: write '#2' in quotes, or 2."
    if not (extra := _EXTRA.search(error.message or "")):
        return ""
    parameters = error.ctx.command.params
    if any(each.param_type_name == "argument" for each in parameters):
        return "Put a text of several words in quotes."
    takes_user = any("--user" in each.opts for each in parameters)
    return f"For a user, use --user {extra[1]}." if takes_user else ""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aforesaid {__version__}")
        raise typer.Exit


def root(
    *,
    version: Annotated[
        bool, Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Long-term memory for chat bots and assistants: every message is stored, the relevant ones come back."""
    del version  # its callback prints it


class Listed(NamedTuple):
    """A command or a group of commands: where it is defined, and where the help lists it."""

    module: str
    attribute: str
    panel: str
    group: str = ""
    """The help of a group."""

    def load(self) -> Any:  # noqa: ANN401 - a function, or the app of a group
        return getattr(importlib.import_module(f"aforesaid.cli.{self.module}"), self.attribute)

    @property
    def help(self) -> str:
        """The docstring of the command, read from its compiled module: running that would import everything it uses."""
        if self.group:
            return self.group
        spec: Any = find_spec(f"aforesaid.cli.{self.module}")
        constants = spec.loader.get_code(spec.name).co_consts
        found: str = next(
            each.co_consts[0] for each in constants if isinstance(each, CodeType) and each.co_name == self.attribute
        )
        return found


_START, _MESSAGES, _MEMORIES = "Get started", "Messages", "Memories and facts"
_SUMMARIES, _SERVERS = "Summaries and background work", "Servers, agents and bots"
_ADMINISTRATION, _TRANSFER = "Administration", "Import and export"

COMMANDS: Final = {
    "demo": Listed("demo", "demo", _START),
    "chat": Listed("serve", "chat", _START),
    "add": Listed("messages", "add", _MESSAGES),
    "add-many": Listed("messages", "add_many", _MESSAGES),
    "history": Listed("messages", "history", _MESSAGES),
    "attachment": Listed("messages", "attachment", _MESSAGES),
    "edit": Listed("messages", "edit", _MESSAGES),
    "take-back": Listed("messages", "take_back", _MESSAGES),
    "erase": Listed("messages", "erase", _MESSAGES),
    "clear": Listed("messages", "clear", _MESSAGES),
    "threads": Listed("messages", "threads", _MESSAGES),
    "count": Listed("messages", "count", _MESSAGES),
    "search": Listed("messages", "search", _MESSAGES),
    "context": Listed("context", "context", _MESSAGES),
    "receipts": Listed("context", "receipts", _MESSAGES),
    "receipt": Listed("context", "receipt", _MESSAGES),
    "remember": Listed("memories", "remember", _MEMORIES),
    "forget": Listed("memories", "forget", _MEMORIES),
    "portrait": Listed("memories", "portrait", _MEMORIES),
    "memories": Listed("memories", "memories", _MEMORIES),
    "timeline": Listed("memories", "timeline", _MEMORIES),
    "people": Listed("memories", "people", _MEMORIES),
    "note": Listed("memories", "note", _MEMORIES),
    "reminders": Listed("memories", "reminders", _MEMORIES),
    "summarize": Listed("operations", "summarize", _SUMMARIES),
    "summaries": Listed("operations", "summaries", _SUMMARIES),
    "upkeep": Listed("operations", "upkeep", _SUMMARIES),
    "worker": Listed("operations", "worker", _SUMMARIES),
    "serve": Listed("serve", "serve", _SERVERS),
    "mcp": Listed("serve", "mcp", _SERVERS),
    "bot": Listed("serve", "commands", _SERVERS, "Run a bot with memory on a chat platform. Stop it with Ctrl+C."),
    "key": Listed("config", "commands", _SERVERS, "Create, list and revoke a server's API keys."),
    "status": Listed("operations", "status", _ADMINISTRATION),
    "users": Listed("operations", "users", _ADMINISTRATION),
    "config": Listed("config", "config", _ADMINISTRATION),
    "settings": Listed("config", "settings", _ADMINISTRATION),
    "verify": Listed("operations", "verify", _ADMINISTRATION),
    "backup": Listed("operations", "backup", _ADMINISTRATION),
    "restore": Listed("operations", "restore", _ADMINISTRATION),
    "cleanup": Listed("operations", "cleanup", _ADMINISTRATION),
    "purge": Listed("transfer", "purge", _ADMINISTRATION),
    "export": Listed("transfer", "export", _TRANSFER),
    "import": Listed("transfer", "load", _TRANSFER),
    "migrate": Listed("transfer", "migrate_command", _TRANSFER),
}
"""All commands, in the order of the help."""


def command_line(names: Iterable[str], *, only_listed: bool = False) -> typer.Typer:
    """Return the command line with some of its commands, whose modules are loaded; or that lists them in its help."""
    built = typer.Typer(
        cls=Commands,
        name="aforesaid",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=(
            "The memory is stored where --store or AFORESAID_STORE says; by default in memory.db in the platform's "
            "data folder. Exit codes: 0 done, 1 failed, 2 wrong use, 130 interrupted."
        ),
    )
    built.callback()(root)
    for name in names:
        listed = COMMANDS[name]
        if only_listed:
            built.command(name, help=listed.help, rich_help_panel=listed.panel)(_never_run)
        elif listed.group:
            built.add_typer(listed.load(), name=name, help=listed.group, rich_help_panel=listed.panel)
        else:
            built.command(name, rich_help_panel=listed.panel)(listed.load())
    return built


def _never_run() -> None:
    raise NotImplementedError


@cache
def whole() -> typer.Typer:
    return command_line(COMMANDS)


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        # Escape characters that the terminal cannot show instead of failing.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    given = sys.argv[1:]
    if given and given[0] in COMMANDS:
        run = command_line(given[:1])
    elif "_AFORESAID_COMPLETE" in os.environ or not COMMANDS.keys().isdisjoint(given):
        run = whole()
    else:
        run = command_line(COMMANDS, only_listed=True)
    run()
