"""Kill a process while it writes, then count the messages: the demo's proof that nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import aforesaid
from aforesaid.domain.checks import counted
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
    say(f"Verified {counted(stats.messages, 'message')} in {stats.bytes / 1_000_000:.1f} MB: " + _result(wrong))
    return not lost and not wrong


def _result(wrong: list[str]) -> str:
    return f"WRONG: {', '.join(wrong)}" if wrong else "everything is intact."
