"""Commands for contexts and what was sent to models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

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
    UserOption,
    harmless,
    local_time,
    moment,
    must_exist,
    note_pending_work,
    print_json,
    say,
)
from aforesaid.context import Context
from aforesaid.domain.context_receipt import ContextReceipt, SentItem, SentSection
from aforesaid.domain.scope import DEFAULT_SPACE

if TYPE_CHECKING:
    from aforesaid import SyncUserMemory


def context(
    text: Annotated[str, typer.Argument(help="The message to answer.")],
    store: Store = None,
    user: UserOption = ME,
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
        say(budget_table(made))
        say(harmless(made.explain()))
    elif as_text:
        say(harmless(made.text))
    else:
        for message in made.messages:
            name = f" {message['name']}" if "name" in message else ""
            say(Text(f"[{message['role']}{harmless(name)}]", style="cyan"))
            say(harmless(message["content"]))
        say(Text(f"{made.tokens:,} of {made.budget:,} tokens", style="dim"))


def budget_table(made: Context) -> Table:
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


_LONGEST = 90


def receipts(
    store: Store = None,
    user: UserOption = ME,
    since: Annotated[
        str | None,
        typer.Option("--since", help="Only receipts of this time or later. Default: all. Example: 2026-03-01"),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Maximum number of receipts. Example: -n 20")] = 50,
    space: Space = DEFAULT_SPACE,
    as_json: AsJson = False,
) -> None:
    """List what was sent to models to answer a user, newest first.

    Example:
        aforesaid receipts --user ann --since 2026-03-01
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        handle = memory.user(user, space=space)
        found = handle.receipts(limit, since=moment(since))
        replies = {} if as_json else _replies(handle, found)
    if as_json:
        print_json(found)
        return
    if not found:
        say(f"there are no receipts for {harmless(user)}")
    for each in found:
        say(
            Text(f"{local_time(each.at)}  ", style="dim"),
            Text(each.id, style="cyan"),
            f"  {harmless(_line(each, replies))}",
        )


def receipt(
    number: Annotated[str, typer.Argument(metavar="ID", help="The id of the receipt, as in X-Aforesaid-Receipt.")],
    store: Store = None,
    user: UserOption = ME,
    space: Space = DEFAULT_SPACE,
    as_json: AsJson = False,
) -> None:
    """Print what was sent to a model for one reply, section by section, with what its messages and memories say now.

    Example:
        aforesaid receipt 01a1e5412e10fb13d6fe30c94648df8b --user ann
    """
    must_exist(store)
    with aforesaid.open(store) as memory:
        handle = memory.user(user, space=space)
        found = handle.receipt(number)
        sources = handle.receipt_sources(found)
        replies = {} if as_json else _replies(handle, [found])
    texts = {key: source.text for key, source in sources.items()}
    if as_json:
        print_json({"receipt": found, "texts": {f"{kind} {each}": text for (kind, each), text in texts.items()}})
        return
    say(f"{local_time(found.at)}  {harmless(_line(found, replies))}")
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("section", "what", "tokens", "", "text"):
        table.add_column(title, justify="right" if title == "tokens" else "left")
    for section in found.sections:
        bar = Bar(size=max(found.tokens, 1), begin=0, end=section.tokens, width=20)
        table.add_row(Text(harmless(section.name), style="cyan"), "", f"{section.tokens:,}", bar, "")
        for kind, identity, tokens in section.items:
            text = "" if kind == "text" else texts.get((kind, identity or 0), "erased since")
            shown = " ".join(harmless(text).split())[:_LONGEST]
            name = sources[kind, identity].id if identity is not None and (kind, identity) in sources else identity
            what = kind if name is None else f"{kind} {name}"
            table.add_row("", Text(harmless(what)), f"{tokens:,}", "", Text(shown))
    say(table)


def _replies(handle: SyncUserMemory, receipts: Sequence[ContextReceipt]) -> dict[int, str]:
    """Return the ids of the replies that are still stored, by their numbers: commands take ids only."""
    items = tuple(SentItem("message", each.reply, 0) for each in receipts if each.reply is not None)
    if not items:
        return {}
    named = replace(receipts[0], sections=(SentSection("replies", 0, items),))
    return {number: str(message.id) for (_, number), message in handle.receipt_sources(named).items()}


def _line(each: ContextReceipt, replies: Mapping[int, str]) -> str:
    answer = "no reply stored"
    if each.reply is not None:
        stored = replies.get(each.reply)
        answer = "its reply was erased or taken back since" if stored is None else f"led to message {stored}"
    return f"{each.knew}, {each.tokens:,} tokens, {each.model or 'no model named'}, {answer}"
