"""`aforesaid context`: the context that a model would receive."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.bar import Bar
from rich.table import Table
from rich.text import Text

import aforesaid
from aforesaid.cli.options import (
    ME,
    AsJson,
    Chat,
    Profile,
    Session,
    Space,
    Store,
    Thread,
    User,
    moment,
    must_exist,
    note_pending_work,
)
from aforesaid.cli.output import harmless, print_json, say
from aforesaid.context import Context
from aforesaid.domain.scope import DEFAULT_SPACE


def context(
    text: Annotated[str, typer.Argument(help="The message to answer.")],
    store: Store = None,
    user: User = ME,
    budget: Annotated[
        int | None,
        typer.Option("--budget", "-b", help="Maximum tokens. Default: the profile's budget. Example: -b 2000"),
    ] = None,
    system: Annotated[str | None, typer.Option("--system", help="The system prompt. Default: none.")] = None,
    profile: Profile = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", help="Count tokens as this model does. Default: as the configured chat model. Example: gpt-4o"
        ),
    ] = None,
    as_text: Annotated[bool, typer.Option("--text", help="Print one text instead of a list of messages.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print which items are in the context, which are not, and why.")
    ] = False,
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    chat: Chat = None,
    session: Session = None,
    at: Annotated[
        str | None, typer.Option("--at", help="The time of the question. Default: now. Example: 2026-03-01T09:30")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the context that a model would receive to answer a message. No chat model is called.

    Example:
        aforesaid context "Where do I live?" --user ann --budget 2000 --explain
    """
    must_exist(store)
    with aforesaid.open(store, profile=profile) as memory:
        note_pending_work(memory)
        handle = memory.user(user, space=space, thread=thread, chat=chat, session=session)
        made = handle.context(text, budget, system=system, at=moment(at), model=model, tools=False)
    if as_json:
        print_json({"messages": made.messages, "tokens": made.tokens, "budget": made.budget, "sections": made.sections})
    elif explain:
        _explain(made)
    elif as_text:
        say(harmless(made.text))
    else:
        for message in made.messages:
            name = f" {message['name']}" if "name" in message else ""
            say(Text(f"[{message['role']}{harmless(name)}]", style="cyan"))
            say(harmless(message["content"]))
        say(Text(f"{made.tokens:,} of {made.budget:,} tokens", style="dim"))


def _explain(made: Context) -> None:
    say(budget_table(made))
    say(harmless(made.explain()))


def budget_table(made: Context) -> Table:
    """Return a table of the tokens that each section uses."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("section")
    table.add_column("tokens", justify="right")
    table.add_column("of", justify="right")
    table.add_column("in", justify="right")
    table.add_column("out", justify="right")
    table.add_column("")
    for report in made.sections:
        bar = Bar(size=max(made.budget, 1), begin=0, end=report.tokens, width=30)
        table.add_row(
            report.name, f"{report.tokens:,}", f"{report.budget:,}", str(report.items), str(report.left_out), bar
        )
    whole = Bar(size=max(made.budget, 1), begin=0, end=made.tokens, width=30, color="green")
    table.add_row("all", f"{made.tokens:,}", f"{made.budget:,}", str(len(made.items)), str(len(made.left_out)), whole)
    return table
