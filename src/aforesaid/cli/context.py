"""Commands for contexts and what was sent to models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from rich.bar import Bar
from rich.table import Column, Table
from rich.text import Text
from typer import Argument, Option

from aforesaid.cli.options import (
    Person,
    PersonInSession,
    Profile,
    command,
    harmless,
    local_time,
    moment,
    note_pending_work,
)
from aforesaid.context import Context
from aforesaid.domain.context_receipt import ContextReceipt, SentItem, SentSection

if TYPE_CHECKING:
    from aforesaid import SyncUserMemory


@command
def context(
    text: Annotated[str, Argument(help="The message to answer.")],
    *,
    budget: Annotated[
        int | None, Option("--budget", "-b", help="Maximum tokens. Default: the profile's budget. Example: -b 2000")
    ] = None,
    system: Annotated[str | None, Option(help="The system prompt. Default: none.")] = None,
    profile: Profile = None,
    model: Annotated[
        str | None,
        Option(help="Count tokens as this model does. Default: as the configured chat model. Example: gpt-4o"),
    ] = None,
    as_text: Annotated[bool, Option("--text", help="Print one text instead of a list of messages.")] = False,
    explain: Annotated[
        bool, Option("--explain", help="Print which items are in the context, which are not, and why.")
    ] = False,
    place: PersonInSession,
    at: Annotated[str | None, Option(help="The time of the question. Default: now. Example: 2026-03-01T09:30")] = None,
) -> None:
    """Print the context that a model would receive to answer a message. No chat model is called.

    Example:
        aforesaid context "Where do I live?" --user ann --budget 2000 --explain
    """
    with place.read(profile=profile) as memory:
        note_pending_work(memory)
        user = place.of(memory)
        made = user.context(text, budget, system=system, at=moment(at), model=model, tools=False)
    lines: list[str | Text | Table] = []
    if explain:
        lines += [budget_table(made), harmless(made.explain())]
    elif as_text:
        lines.append(harmless(made.text))
    else:
        for message in made.messages:
            name = f" {message['name']}" if "name" in message else ""
            lines += [Text(f"[{message['role']}{harmless(name)}]", style="cyan"), harmless(message["content"])]
        lines.append(Text(f"{made.tokens:,} of {made.budget:,} tokens", style="dim"))
    shown = {"messages": made.messages, "tokens": made.tokens, "budget": made.budget, "sections": made.sections}
    place.show(shown, lines)


def budget_table(made: Context) -> Table:
    numbers = [Column(title, justify="right") for title in ("tokens", "of", "in", "out")]
    table = Table("section", *numbers, "", box=None, padding=(0, 2, 0, 0))
    for report in made.sections:
        bar = Bar(size=max(made.budget, 1), begin=0, end=report.tokens, width=30)
        table.add_row(
            report.name, f"{report.tokens:,}", f"{report.budget:,}", str(report.items), str(report.left_out), bar
        )
    whole = Bar(size=max(made.budget, 1), begin=0, end=made.tokens, width=30, color="green")
    table.add_row("all", f"{made.tokens:,}", f"{made.budget:,}", str(len(made.items)), str(len(made.left_out)), whole)
    return table


_LONGEST = 90


@command
def receipts(
    *,
    since: Annotated[
        str | None, Option(help="Only receipts of this time or later. Default: all. Example: 2026-03-01")
    ] = None,
    limit: Annotated[int, Option("--limit", "-n", help="Maximum number of receipts. Example: -n 20")] = 50,
    place: Person,
) -> None:
    """List what was sent to models to answer a user, newest first.

    Example:
        aforesaid receipts --user ann --since 2026-03-01
    """
    with place.read() as memory:
        user = place.of(memory)
        found = user.receipts(limit, since=moment(since))
        replies = {} if place.as_json else _replies(user, found)
    lines = [
        Text.assemble((f"{local_time(each.at)}  ", "dim"), (each.id, "cyan"), f"  {harmless(_line(each, replies))}")
        for each in found
    ]
    place.show(found, lines or [f"there are no receipts for {harmless(place.user)}"])


@command
def receipt(
    number: Annotated[str, Argument(metavar="ID", help="The id of the receipt, as in X-Aforesaid-Receipt.")],
    place: Person,
) -> None:
    """Print what was sent to a model for one reply, section by section, with what its messages and memories say now.

    Example:
        aforesaid receipt 01a1e5412e10fb13d6fe30c94648df8b --user ann
    """
    with place.read() as memory:
        user = place.of(memory)
        found = user.receipt(number)
        sources = user.receipt_sources(found)
        replies = {} if place.as_json else _replies(user, [found])
    texts = {key: source.text for key, source in sources.items()}
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
    shown_texts = {f"{kind} {each}": text for (kind, each), text in texts.items()}
    head = f"{local_time(found.at)}  {harmless(_line(found, replies))}"
    place.show({"receipt": found, "texts": shown_texts}, [head, table])


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
