"""`aforesaid demo`: the main job, seen at work in a minute, offline."""

from __future__ import annotations

import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text
from rich.tree import Tree

import aforesaid
from aforesaid.cli.context import budget_table
from aforesaid.cli.plug import pull_the_plug
from aforesaid.cli.serve import serve
from aforesaid.cli.show import draw, harmless, hit_line, message_line, progress_bar, say
from aforesaid.domain.summary import Summary
from aforesaid.errors import InvalidInput
from aforesaid.settings import Settings

if TYPE_CHECKING:
    from aforesaid._sync_types import SyncMemory, SyncUserMemory

_QUESTIONS: Final = (
    "Which nuts can't I eat?",
    "Who has the spare key of my old place?",
    "What is the cat of my neighbour called?",
    "Where did Tom lock himself out?",
    "¿Cuál es el código de la consigna?",
)
_ASKED: Final = "What should I cook when Inês and her son come?"
_BUDGET: Final = 2_000
_LINE: Final = 100


def demo(
    keep: Annotated[Path | None, typer.Option("--keep", help="Keep the demo's memory in this file.")] = None,
    panel: Annotated[
        bool | None,
        typer.Option("--panel/--no-panel", help="Open the control panel on it at the end. [only in a terminal]"),
    ] = None,
) -> None:
    """See it work: eight weeks of conversation, what becomes of them, and what a model would be sent. All offline.

    In a terminal it ends with the control panel, until Ctrl+C. Example:

        aforesaid demo --no-panel
    """
    with _place(keep) as path:
        # Nothing of what is configured counts: no model is asked, whatever the demo is run beside.
        with aforesaid.open(path, profile="default", embedder="local", settings=Settings()) as memory:
            ann = memory.user("ann")
            _store(ann)
            _upkeep(memory, ann)
            _ask(ann)
            _summaries(ann)
            _portrait(ann)
            _context(ann)
        _title("7. The plug is pulled while another process writes")
        sound = pull_the_plug(path, say)
        if keep is not None:
            say(f"\nThe memory is in {path}. Look around:")
            say(f'  aforesaid search "the red suitcase" --user ann --store {path}')
            say(f"  aforesaid chat --user ann --store {path}")
        if not sound:
            raise typer.Exit(1)
        if (sys.stdin.isatty() and sys.stdout.isatty()) if panel is None else panel:
            _panel(path)


def _store(ann: SyncUserMemory) -> None:
    _title("1. Eight weeks of a conversation go into an empty memory")
    start, said = time.perf_counter(), list(conversation())
    for role, text, at in said:
        ann.add(role, text, at=at, name="Ann" if role == "user" else None)  # type: ignore[arg-type]
    seconds = time.perf_counter() - start
    say(f"{len(said)} messages stored in {seconds:.2f} s, each one synced to the disk. The last ones:\n")
    for message in ann.history(3):
        say("  ", message_line(message))
    say(f"\n{len(ann.sessions(1_000))} sessions were recognised by the silences between them.")


def _upkeep(memory: SyncMemory, ann: SyncUserMemory) -> None:
    _title("2. Upkeep: everything is embedded, summarised and looked through for what to remember")
    start = time.perf_counter()
    with progress_bar("upkeep", hidden=False) as progress:
        memory.upkeep(progress)
    seconds, made, known = time.perf_counter() - start, ann.summaries(active=None), ann.memories()
    say(
        f"{len(made)} summaries and {len(known)} memories in {seconds:.1f} s, without a model and without a network. "
        "A model makes them better; nothing needs one."
    )


def _ask(ann: SyncUserMemory) -> None:
    _title("3. Questions are answered from the right old message, by its words and by its meaning")
    for question in _QUESTIONS:
        say(Text(f"? {question}", style="bold"))
        for hit in ann.search(question, limit=1):
            say(Text(f"  {hit.score:5.2f}  ", style="yellow"), hit_line(hit))


def _summaries(ann: SyncUserMemory) -> None:
    _title("4. Summaries of summaries stand for what is long ago; every message stays below them")
    active = ann.summaries()
    tree = Tree(Text("what was said", style="bold"))
    for number, summary in enumerate(active):
        branch = tree.add(_summary_line(summary))
        if number == 0:
            for message in ann.summary_messages(summary.id)[:3]:
                branch.add(_cut(message_line(message)))
            branch.add(Text(f"… {summary.messages - 3} more messages", style="dim"))
    draw(tree)


def _portrait(ann: SyncUserMemory) -> None:
    _title("5. What is known about Ann")
    for memory in ann.memories()[:8]:
        say(
            Text(f"  {memory.importance:2}/10 ", style=_COLOURS[memory.band.name]), f"[{memory.category}] {memory.text}"
        )
    say()
    say(harmless(ann.portrait() or "nothing yet"))


def _context(ann: SyncUserMemory) -> None:
    _title(f"6. What a model would be sent, in {_BUDGET:,} tokens, and why")
    say(Text(f"? {_ASKED}\n", style="bold"))
    context = ann.context(_ASKED, _BUDGET, system="You are a helpful assistant.")
    say(budget_table(context))
    for item in sorted(
        (item for item in context.items if item.section == "snippets"), key=lambda item: -(item.score or 0.0)
    )[:5]:
        say(Text(f"  + {item.score or 0:5.2f}  ", style="green"), harmless(item.text[:_LINE]))
    for left in context.left_out[:3]:
        say(Text("  - ", style="red"), harmless(left.item.text[:_LINE]), Text(f"  {left.reason}", style="dim"))


def _panel(path: Path) -> None:
    _title("8. The control panel, on the same memory")
    say(
        "Look at Ann's portrait and memories, open the summary tree down to the messages, search with explained scores,"
    )
    say("and see what a model would be sent. Delete something, and undo it.\n")
    serve(str(path), host="127.0.0.1", port=0)


def conversation() -> Iterator[tuple[str, str, datetime]]:
    """Return the demo's conversation, ending yesterday: who, what, when."""
    text = (files("aforesaid.cli") / "demo_conversation.toml").read_text(encoding="utf-8")
    days = tomllib.loads(text)["day"]
    last = max(day["number"] for day in days)
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=last + 1)
    for day in days:
        hour, minute = map(int, day["time"].split(":"))
        at = start + timedelta(days=day["number"], hours=hour, minutes=minute)
        for turn, line in enumerate(day["lines"]):
            role = "user" if turn % 2 == 0 else "assistant"
            yield role, line, at + timedelta(minutes=turn)


_COLOURS: Final = {"low": "dim", "medium": "blue", "high": "yellow", "critical": "bold red"}


def _summary_line(summary: Summary) -> Text:
    head = Text(f"level {summary.level}, {summary.messages} messages  ", style="cyan")
    text = Text(" ".join(harmless(summary.text).split()))
    text.truncate(4 * _LINE, overflow="ellipsis")
    return head + text


def _cut(line: Text) -> Text:
    line.truncate(_LINE, overflow="ellipsis")
    return line


@contextmanager
def _place(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        if keep.exists():
            raise InvalidInput(f"{keep} exists already; the demo writes only to a file of its own")
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="aforesaid-demo-") as folder:
        yield Path(folder) / "memory.db"


def _title(text: str) -> None:
    say(Text(f"\n{text}", style="bold blue"))
    sys.stdout.flush()
