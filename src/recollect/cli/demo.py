"""`recollect demo`: the main job, seen at work in a minute, offline."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

import recollect
from recollect.cli.show import hit_line, message_line, say
from recollect.errors import InvalidInput

_SEARCHES: Final = (
    "Which food must I avoid?",
    "When can I reach the landlord?",
    "Where is the red suitcase?",
    "What does Tom's girlfriend do for a living?",
)
_WRITER: Final = """
import itertools, sys, recollect
memory = recollect.open(sys.argv[1])
user = memory.user("ann", thread="power-cut")
for number in itertools.count(1):
    receipt = user.add("user", f"line {number} before the plug was pulled")
    print(receipt.message.seq, flush=True)
"""
_ACKNOWLEDGED: Final = 200


def demo(
    keep: Annotated[Path | None, typer.Option("--keep", help="Keep the demo's memory in this file.")] = None,
) -> None:
    """See it work: store a conversation, find things again, and pull the plug in between. Needs no network."""
    with _place(keep) as path:
        _store_and_search(path)
        _pull_the_plug(path)
        _check(path)
        if keep is not None:
            say(f"\nThe memory is in {path}. Look around: recollect history --user ann --store {path}")


def _store_and_search(path: Path) -> None:
    _title("1. Three weeks of a conversation go into an empty memory")
    start = time.perf_counter()
    with recollect.open(path) as memory:
        ann = memory.user("ann")
        count = 0
        for role, text, at in conversation():
            ann.add(role, text, at=at)  # type: ignore[arg-type]
            count += 1
        seconds = time.perf_counter() - start
        say(f"{count} messages stored in {seconds:.2f} s, each one synced to the disk. The last ones:\n")
        for message in ann.history(3):
            say("  ", message_line(message))
        say(f"\n{len(ann.sessions())} sessions were recognised by the silences between them.")
        _title("2. Old moments come back, by their words and by their meaning")
        memory.upkeep()
        for words in _SEARCHES:
            say(Text(f"? {words}", style="bold"))
            for hit in ann.search(words, limit=2):
                say(Text(f"  {hit.score:5.2f}  ", style="yellow"), hit_line(hit))


def _pull_the_plug(path: Path) -> None:
    _title("3. Another process writes to the same memory, and is killed in the middle of it")
    with subprocess.Popen(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        if writer.stdout is None:
            raise RuntimeError("the writing process has no output")
        acknowledged = [int(writer.stdout.readline()) for _ in range(_ACKNOWLEDGED)]
        writer.kill()
        # What it had said before it died counts too.
        acknowledged += [int(line) for line in writer.stdout if line.endswith("\n")]
    with recollect.open(path) as memory:
        found = {message.seq for message in memory.user("ann").history(10_000)}
    lost = len(set(acknowledged) - found)
    say(f"kill -9 after {len(acknowledged)} acknowledged messages: {lost} lost.")
    if lost:
        raise typer.Exit(1)


def _check(path: Path) -> None:
    _title("4. Everything is checked against everything else")
    with recollect.open(path) as memory:
        report, stats = memory.verify(), memory.stats()
    for check in report.checks:
        say(Text("  ok  " if check.ok else "  WRONG  ", style="green" if check.ok else "bold red"), check.name)
    say(f"\n{stats.messages} messages of {stats.users} user in {stats.bytes / 1_000_000:.1f} MB.")
    if not report.ok:
        raise typer.Exit(1)


def conversation() -> Iterator[tuple[str, str, datetime]]:
    """Return the demo's conversation, ending yesterday: who, what, when."""
    text = (files("recollect.cli") / "demo_conversation.toml").read_text(encoding="utf-8")
    days = tomllib.loads(text)["day"]
    last = max(day["number"] for day in days)
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=last + 1)
    for day in days:
        hour, minute = map(int, day["time"].split(":"))
        at = start + timedelta(days=day["number"], hours=hour, minutes=minute)
        for turn, line in enumerate(day["lines"]):
            role = "user" if turn % 2 == 0 else "assistant"
            yield role, line, at + timedelta(minutes=turn)


@contextmanager
def _place(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        if keep.exists():
            raise InvalidInput(f"{keep} exists already; the demo writes only to a file of its own")
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="recollect-demo-") as folder:
        yield Path(folder) / "memory.db"


def _title(text: str) -> None:
    say(Text(f"\n{text}", style="bold blue"))
