"""`aforesaid demo`: what the library does, shown in a minute, offline."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text
from rich.tree import Tree
from typer import Option

import aforesaid
from aforesaid.cli.context import budget_table
from aforesaid.cli.options import draw, harmless, hit_line, message_line, progress_bar, say
from aforesaid.cli.serve import serve
from aforesaid.domain.checks import counted
from aforesaid.errors import InvalidInput
from aforesaid.settings import Settings

_WRITER: Final = """
import itertools, sys, aforesaid
memory = aforesaid.open(sys.argv[1], embedder="none", profile={"summaries": "none", "extract": False})
user = memory.user("writer", space="power-cut")
for number in itertools.count(1):
    receipt = user.add("user", f"line {number} before the process was killed")
    print(receipt.message.seq, flush=True)
"""
_ACKNOWLEDGED: Final = 200


def kill_while_writing(path: Path, say: Callable[[str], None]) -> bool:
    """Kill a process that writes to the store; return whether every acknowledged message is there and intact."""
    with subprocess.Popen(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        if writer.stdout is None:
            raise RuntimeError("the writing process has no output")
        acknowledged = [int(line) for line, _ in zip(writer.stdout, range(_ACKNOWLEDGED), strict=False)]
        writer.kill()
        # Acknowledgements printed before the kill count too.
        acknowledged += [int(line) for line in writer.stdout if line.endswith("\n")]
    with aforesaid.open(path, embedder="none", settings=Settings(background=False)) as memory:
        found = {message.seq for message in memory.user("writer", space="power-cut").history(10_000)}
        report, stats = memory.verify(), memory.stats()
    lost = len(set(acknowledged) - found)
    wrong = [check.name for check in report.checks if not check.ok]
    say(f"kill -9 after {counted(len(acknowledged), 'acknowledged message')}: {lost} lost.")
    result = f"WRONG: {', '.join(wrong)}" if wrong else "everything is intact."
    say(f"Verified {counted(stats.messages, 'message')} in {stats.bytes / 1_000_000:.1f} MB: {result}")
    return not lost and not wrong


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
    keep: Annotated[
        Path | None,
        Option(help="Keep the demo's store in this new file. Default: a temporary file. Example: --keep demo.db"),
    ] = None,
    panel: Annotated[
        bool | None,
        Option("--panel/--no-panel", help="Serve the control panel at the end. Default: only in a terminal."),
    ] = None,
) -> None:
    """Run a demonstration on eight weeks of conversation: search, summaries, memories and a context. All offline.

    In a terminal it then serves the control panel until Ctrl+C. Exits with 1 if a message is lost. Example:

        aforesaid demo --no-panel
    """
    with _place(keep) as path:
        # The user's configuration is ignored, so that no model is called.
        with aforesaid.open(path, profile="default", embedder="local", settings=Settings()) as memory:
            ann = memory.user("ann")
            _title("1. Store eight weeks of conversation")
            start, said = time.perf_counter(), list(conversation())
            for role, text, at in said:
                ann.add(role, text, at=at, name="Ann" if role == "user" else None)  # type: ignore[arg-type]
            seconds = time.perf_counter() - start
            say(f"Stored {counted(len(said), 'message')} in {seconds:.2f} s, each one synced to disk. The last ones:\n")
            for message in ann.history(3):
                say("  ", message_line(message))
            say(f"\n{counted(len(ann.sessions(1_000)), 'session')} found, separated by pauses in the conversation.")
            _title("2. Background work: embed and summarise the messages, and extract memories")
            start = time.perf_counter()
            with progress_bar("upkeep", hidden=False) as progress:
                memory.upkeep(progress)
            seconds, made = time.perf_counter() - start, counted(len(ann.summaries(active=None)), "summary")
            say(
                f"{made} and {counted(len(ann.memories()), 'memory')} in {seconds:.1f} s, without a model and "
                "without a network. A model makes them better, but is not required."
            )
            _title("3. Search finds the right old message, by words and by meaning")
            for question in _QUESTIONS:
                say(Text(f"? {question}", style="bold"))
                for hit in ann.search(question, limit=1):
                    say(Text(f"  {hit.score:5.2f}  ", style="yellow"), hit_line(hit))
            _title("4. Summaries of summaries replace old messages in contexts; every message is still stored")
            active = ann.summaries()
            tree = Tree(Text("conversation", style="bold"))
            for number, summary in enumerate(active):
                head = Text(f"level {summary.level}, {counted(summary.messages, 'message')}  ", style="cyan")
                shown = Text(" ".join(harmless(summary.text).split()))
                shown.truncate(4 * _LINE, overflow="ellipsis")
                branch = tree.add(head + shown)
                if number == 0:
                    for message in ann.summary_messages(summary.id)[:3]:
                        line = message_line(message)
                        line.truncate(_LINE, overflow="ellipsis")
                        branch.add(line)
                    branch.add(Text(f"… and {counted(summary.messages - 3, 'message')} more", style="dim"))
            draw(tree)
            _title("5. Memories of Ann, and her portrait")
            for known in ann.memories()[:8]:
                importance = Text(f"  {known.importance:2}/10 ", style=_COLOURS[known.band.name])
                say(importance, f"[{known.category}] {known.text}")
            say()
            say(harmless(ann.portrait() or "nothing yet"))
            _title(f"6. The context a model would receive, within {_BUDGET:,} tokens, explained")
            say(Text(f"? {_ASKED}\n", style="bold"))
            context = ann.context(_ASKED, _BUDGET, system="You are a helpful assistant.")
            say(budget_table(context))
            for item in sorted(
                (item for item in context.items if item.section == "snippets"), key=lambda item: -(item.score or 0.0)
            )[:5]:
                say(Text(f"  + {item.score or 0:5.2f}  ", style="green"), harmless(item.text[:_LINE]))
            for left in context.left_out[:3]:
                say(Text("  - ", style="red"), harmless(left.item.text[:_LINE]), Text(f"  {left.reason}", style="dim"))
        _title("7. A process is killed while it writes")
        sound = kill_while_writing(path, say)
        if keep is not None:
            say(f"\nThe store is {path}. Try:")
            say(f'  aforesaid search "the red suitcase" --user ann --store {path}')
            say(f"  aforesaid chat --user ann --store {path}")
        if not sound:
            raise typer.Exit(1)
        if (sys.stdin.isatty() and sys.stdout.isatty()) if panel is None else panel:
            _title("8. The control panel, on the same store")
            say(
                "View Ann's portrait and memories, open the summary tree down to the messages, search with explained "
                "scores,\nand preview contexts. Delete a memory, then undo it.\n"
            )
            serve(str(path), host="127.0.0.1", port=0)


def conversation() -> Iterator[tuple[str, str, datetime]]:
    """Yield the demo's conversation as (role, text, time), ending yesterday."""
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


@contextmanager
def _place(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        if keep.exists():
            raise InvalidInput(f"{keep} exists; pass the path of a new file to --keep")
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="aforesaid-demo-") as folder:
        yield Path(folder) / "memory.db"


def _title(text: str) -> None:
    say(Text(f"\n{text}", style="bold blue"))
    sys.stdout.flush()
