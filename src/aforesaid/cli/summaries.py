"""Commands for summaries and background work."""

from __future__ import annotations

from typing import Annotated, cast

import typer
from rich.text import Text
from rich.tree import Tree

import aforesaid
from aforesaid.cli.options import ME, AsJson, Chat, Session, Space, Store, Thread, User, must_exist
from aforesaid.cli.output import console, harmless, local_time, print_json, progress_bar, say
from aforesaid.domain.checks import counted
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.domain.summary import Summary, SummaryKind


def summarize(
    store: Store = None,
    user: User = ME,
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    chat: Chat = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Summarise now, even if there is little to summarise.

    Example:
        aforesaid summarize --user ann
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        made = memory.user(user, space=space, thread=thread, chat=chat, session=session).summarize()
    if as_json:
        print_json(made)
    elif not made:
        say(f"there is nothing to summarise for {harmless(user)}")
    for summary in () if as_json else made:
        say(summary_line(summary))


def summaries(
    store: Store = None,
    user: User = ME,
    every: Annotated[bool, typer.Option("--all", help="Include summaries that newer ones replaced or cover.")] = False,
    kind: Annotated[
        str | None, typer.Option("--kind", help="Only this kind: tree, rolling, day, week or history. Default: all.")
    ] = None,
    tree: Annotated[bool, typer.Option("--tree", help="Show each summary's sources, down to the messages.")] = False,
    space: Space = DEFAULT_SPACE,
    thread: Thread = None,
    chat: Chat = None,
    as_json: AsJson = False,
) -> None:
    """Print a user's summaries, highest level first; with --tree also their sources.

    Example:
        aforesaid summaries --user ann --tree
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        handle = memory.user(user, space=space, thread=thread, chat=chat)
        found = handle.summaries(active=None if every else True, kind=cast("SummaryKind | None", kind))
        if as_json:
            print_json(found)
            return
        if not found:
            say(f"there are no summaries for {harmless(user)} yet")
        known = {summary.id: summary for summary in handle.summaries(active=None)} if tree else {}
        for summary in found:
            if not tree:
                say(summary_line(summary))
                continue
            branch = Tree(summary_line(summary))
            _grow(branch, summary, known)
            console().print(branch)


def upkeep(store: Store = None, as_json: AsJson = False) -> None:
    """Do all pending background work now: embed, summarise, extract memories. Running programs do this by themselves.

    Exits with 1 if a step failed; the next run tries it again. Example:

        aforesaid upkeep
    """
    must_exist(store)
    with aforesaid.open(store) as memory, progress_bar("upkeep", hidden=as_json) as progress:
        report = memory.upkeep(progress)
    if as_json:
        print_json(report)
    else:
        say(
            f"{counted(report.embedded, 'text')} embedded, {counted(report.summarised, 'summary')} made, "
            f"{counted(report.remembered, 'memory')} extracted"
        )
        if report.error is not None:
            say(Text(f"could not finish: {harmless(report.error)}", style="red"))
    if report.error is not None:
        raise typer.Exit(1)


def summary_line(summary: Summary) -> Text:
    """Format a summary: id, kind, period, number of messages, text."""
    kind = f"{summary.kind} level {summary.level}" if summary.kind == "tree" else summary.kind
    state = "" if summary.active else " rolled back" if summary.rolled_back else " replaced" if summary.replaced else ""
    parts = [(f"summary {summary.id}, ", "magenta"), (f"{kind}{state}, ", "cyan"), (f"{summary.period}, ", "dim")]
    parts.append((counted(summary.messages, "message"), "dim"))
    if summary.edited_by is not None:
        parts.append((f", edited by {harmless(summary.edited_by)}", "dim"))
    if summary.quality is not None and summary.quality.invented:
        parts.append((f", not in the sources: {harmless(', '.join(summary.quality.invented))}", "yellow"))
    return Text.assemble(*parts, "\n", harmless(summary.text))


def _grow(branch: Tree, summary: Summary, known: dict[int, Summary]) -> None:
    """Add a summary's sources to a tree: other summaries, and the messages that no older summary covers."""
    below = [known[source] for source in summary.sources if source in known]
    for source in below:
        _grow(branch.add(summary_line(source)), source, known)
    if summary.level == 1 and summary.reach != "sources":
        count = summary.messages - sum(source.messages for source in below)
        numbers = f"#{summary.last}" if summary.fresh == summary.last else f"#{summary.fresh} to #{summary.last}"
        branch.add(Text(f"{counted(count, 'message')}, {numbers}, until {local_time(summary.ended_at)}", style="dim"))
