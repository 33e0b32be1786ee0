"""Putting the commands together, and what happens when one fails."""

from __future__ import annotations

import io
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from recollect import __version__
from recollect.cli import (
    bot,
    care,
    chat,
    config,
    context,
    demo,
    evaluate,
    keys,
    knowledge,
    log,
    mcp,
    moving,
    serve,
    settings,
    status,
    summaries,
    worker,
)
from recollect.cli.show import complain
from recollect.errors import InvalidInput, RecollectError


class Commands(TyperGroup):
    """Commands whose expected failures are told in one line, without a traceback."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as typer has it
        """Run a command. Exit with 2 when what was typed cannot be accepted, with 1 when it could not be done."""
        try:
            return super().invoke(ctx)
        except RecollectError as error:
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
    name="recollect",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "Memory is kept in the file that --store or RECOLLECT_STORE names, otherwise in the platform's folder for "
        "application data. Exit codes: 0 done, 1 could not be done, 2 wrong input, 130 interrupted."
    ),
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"recollect {__version__}")
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


app.command()(log.add)
app.command()(log.history)
app.command()(log.search)
app.command()(knowledge.remember)
app.command()(knowledge.forget)
app.command()(knowledge.portrait)
app.command()(knowledge.memories)
app.command()(knowledge.note)
app.command()(knowledge.reminders)
app.command()(summaries.summarize)
app.command()(summaries.summaries)
app.command()(summaries.upkeep)
app.command()(care.users)
app.command()(status.status)
app.command()(care.cleanup)
app.command()(care.verify)
app.command()(care.backup)
app.command()(care.restore)
app.command()(moving.export)
app.command("import")(moving.load)
app.command("migrate")(moving.migrate_command)
app.command()(moving.purge)
app.command()(chat.chat)
app.command()(context.context)
app.command()(config.config)
app.command()(settings.settings)
app.command()(demo.demo)
app.command()(serve.serve)
app.command()(mcp.mcp)
app.command()(worker.worker)
app.add_typer(evaluate.commands, name="eval")
app.add_typer(bot.commands, name="bot")
app.add_typer(keys.commands, name="key")


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its number instead of an error.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app()
