"""The command line: its commands in groups, and how a failure is reported."""

from __future__ import annotations

import io
import logging
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from aforesaid import __version__
from aforesaid.cli import (
    bench,
    bot,
    chat,
    config,
    context,
    demo,
    evaluate,
    keys,
    mcp,
    memories,
    messages,
    operations,
    serve,
    settings,
    status,
    summaries,
    transfer,
    worker,
)
from aforesaid.cli.output import complain
from aforesaid.errors import AforesaidError, InvalidInput

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130
"""Exit codes. 1: the command was valid but failed, or found a problem. 2: the command line or the configuration is
wrong, so running the same command again will not help. 130: stopped with Ctrl+C."""

# Each command prints its failure as one line. Without a handler, Python would print the same log record again.
logging.getLogger("aforesaid.errors").addHandler(logging.NullHandler())


class Commands(TyperGroup):
    """Commands that report expected failures in one line on standard error, without a traceback."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as typer has it
        """Run a command; exit with WRONG_USE after `InvalidInput` and with FAILED after every other expected error."""
        try:
            return super().invoke(ctx)
        except AforesaidError as error:
            complain(str(error))
            raise typer.Exit(WRONG_USE if isinstance(error, InvalidInput) else FAILED) from None
        except KeyboardInterrupt:
            complain("interrupted; every acknowledged message is stored")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # The reader closed the pipe, as `head` does. Python would fail again when it flushes at exit.
            sys.stdout = None
            raise typer.Exit(0) from None


app = typer.Typer(
    cls=Commands,
    name="aforesaid",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "The memory is stored where --store or AFORESAID_STORE says; by default in memory.db in the platform's data "
        "folder. Exit codes: 0 done, 1 failed, 2 wrong use, 130 interrupted."
    ),
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aforesaid {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Long-term memory for chat bots and assistants: every message is stored, the relevant ones come back."""
    del version  # its callback prints it


_START, _MESSAGES, _MEMORIES = "Get started", "Messages", "Memories and facts"
_SUMMARIES, _SERVERS = "Summaries and background work", "Servers, agents and bots"
_ADMINISTRATION, _TRANSFER = "Administration", "Import, export and benchmarks"

app.command(rich_help_panel=_START)(demo.demo)
app.command(rich_help_panel=_START)(chat.chat)
app.command(rich_help_panel=_MESSAGES)(messages.add)
app.command(rich_help_panel=_MESSAGES)(messages.history)
app.command(rich_help_panel=_MESSAGES)(messages.search)
app.command(rich_help_panel=_MESSAGES)(context.context)
app.command(rich_help_panel=_MEMORIES)(memories.remember)
app.command(rich_help_panel=_MEMORIES)(memories.forget)
app.command(rich_help_panel=_MEMORIES)(memories.portrait)
app.command(rich_help_panel=_MEMORIES)(memories.memories)
app.command(rich_help_panel=_MEMORIES)(memories.note)
app.command(rich_help_panel=_MEMORIES)(memories.reminders)
app.command(rich_help_panel=_SUMMARIES)(summaries.summarize)
app.command(rich_help_panel=_SUMMARIES)(summaries.summaries)
app.command(rich_help_panel=_SUMMARIES)(summaries.upkeep)
app.command(rich_help_panel=_SUMMARIES)(worker.worker)
app.command(rich_help_panel=_SERVERS)(serve.serve)
app.command(rich_help_panel=_SERVERS)(mcp.mcp)
app.add_typer(bot.commands, name="bot", rich_help_panel=_SERVERS)
app.add_typer(keys.commands, name="key", rich_help_panel=_SERVERS)
app.command(rich_help_panel=_ADMINISTRATION)(status.status)
app.command(rich_help_panel=_ADMINISTRATION)(operations.users)
app.command(rich_help_panel=_ADMINISTRATION)(config.config)
app.command(rich_help_panel=_ADMINISTRATION)(settings.settings)
app.command(rich_help_panel=_ADMINISTRATION)(operations.verify)
app.command(rich_help_panel=_ADMINISTRATION)(operations.backup)
app.command(rich_help_panel=_ADMINISTRATION)(operations.restore)
app.command(rich_help_panel=_ADMINISTRATION)(operations.cleanup)
app.command(rich_help_panel=_ADMINISTRATION)(transfer.purge)
app.command(rich_help_panel=_TRANSFER)(transfer.export)
app.command("import", rich_help_panel=_TRANSFER)(transfer.load)
app.command("migrate", rich_help_panel=_TRANSFER)(transfer.migrate_command)
app.add_typer(evaluate.commands, name="eval", rich_help_panel=_TRANSFER)
app.command(rich_help_panel=_TRANSFER)(bench.bench)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        # Escape characters that the terminal cannot show instead of failing.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app()
