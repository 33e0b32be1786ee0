"""Putting the commands together, and what happens when one fails."""

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
    knowledge,
    log,
    mcp,
    operations,
    serve,
    settings,
    status,
    summaries,
    transfer,
    worker,
)
from aforesaid.cli.show import complain
from aforesaid.errors import AforesaidError, InvalidInput

# What failed is told in one line at the end. Where nobody has set up logs, Python would print it a second time.
logging.getLogger("aforesaid.errors").addHandler(logging.NullHandler())


class Commands(TyperGroup):
    """Commands whose expected failures are told in one line, without a traceback."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as typer has it
        """Run a command. Exit with 2 when what was typed cannot be accepted, with 1 when it could not be done."""
        try:
            return super().invoke(ctx)
        except AforesaidError as error:
            complain(str(error))
            raise typer.Exit(2 if isinstance(error, InvalidInput) else 1) from None
        except KeyboardInterrupt:
            complain("interrupted; everything that was acknowledged is stored")
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # Whoever read the output has seen enough. Python would complain again at exit, when it flushes.
            sys.stdout = None
            raise typer.Exit(0) from None


app = typer.Typer(
    cls=Commands,
    name="aforesaid",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "Memory is kept in the file that --store or AFORESAID_STORE names, otherwise in the platform's folder for "
        "application data. Exit codes: 0 done, 1 could not be done, 2 wrong input, 130 interrupted."
    ),
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aforesaid {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_tell_version)
    ] = False,
) -> None:
    """Long-term memory for chat bots and assistants: every message is kept, the right ones come back."""
    del version  # told by its callback


_START, _SAID, _KNOWN = "Start", "What was said", "What is known"
_SUMMARIES, _OTHERS = "Summaries and upkeep", "For others to use"
_CARE, _MOVING = "Looking after it", "Moving and measuring"

app.command(rich_help_panel=_START)(demo.demo)
app.command(rich_help_panel=_START)(chat.chat)
app.command(rich_help_panel=_SAID)(log.add)
app.command(rich_help_panel=_SAID)(log.history)
app.command(rich_help_panel=_SAID)(log.search)
app.command(rich_help_panel=_SAID)(context.context)
app.command(rich_help_panel=_KNOWN)(knowledge.remember)
app.command(rich_help_panel=_KNOWN)(knowledge.forget)
app.command(rich_help_panel=_KNOWN)(knowledge.portrait)
app.command(rich_help_panel=_KNOWN)(knowledge.memories)
app.command(rich_help_panel=_KNOWN)(knowledge.note)
app.command(rich_help_panel=_KNOWN)(knowledge.reminders)
app.command(rich_help_panel=_SUMMARIES)(summaries.summarize)
app.command(rich_help_panel=_SUMMARIES)(summaries.summaries)
app.command(rich_help_panel=_SUMMARIES)(summaries.upkeep)
app.command(rich_help_panel=_SUMMARIES)(worker.worker)
app.command(rich_help_panel=_OTHERS)(serve.serve)
app.command(rich_help_panel=_OTHERS)(mcp.mcp)
app.add_typer(bot.commands, name="bot", rich_help_panel=_OTHERS)
app.add_typer(keys.commands, name="key", rich_help_panel=_OTHERS)
app.command(rich_help_panel=_CARE)(status.status)
app.command(rich_help_panel=_CARE)(operations.users)
app.command(rich_help_panel=_CARE)(config.config)
app.command(rich_help_panel=_CARE)(settings.settings)
app.command(rich_help_panel=_CARE)(operations.verify)
app.command(rich_help_panel=_CARE)(operations.backup)
app.command(rich_help_panel=_CARE)(operations.restore)
app.command(rich_help_panel=_CARE)(operations.cleanup)
app.command(rich_help_panel=_CARE)(transfer.purge)
app.command(rich_help_panel=_MOVING)(transfer.export)
app.command("import", rich_help_panel=_MOVING)(transfer.load)
app.command("migrate", rich_help_panel=_MOVING)(transfer.migrate_command)
app.add_typer(evaluate.commands, name="eval", rich_help_panel=_MOVING)
app.command(rich_help_panel=_MOVING)(bench.bench)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its number instead of an error.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app()
