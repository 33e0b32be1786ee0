"""Break the code on purpose, one promise at a time, and show that the tests marked with the promise fail.

    python tools/prove_requirements.py           all of them
    python tools/prove_requirements.py A6 C10    some

The code is broken in a copy; the working tree is left alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from requirements_page import ROOT, marked, promises


@dataclass(frozen=True)
class Break:
    """A change of the code that breaks one promise."""

    promise: str
    file: str
    """Path below src/aforesaid."""
    instead_of: str
    put: str
    so_that: str
    """The resulting fault, in a few words."""


BREAKS = (
    Break(
        "A2",
        "store/summaries.py",
        "        within.later(_RELEASE, *scope[:2], summary.chunks[0])\n",
        "",
        "messages stay archived when their archive is rolled back",
    ),
    Break(
        "A6",
        "digest/tree.py",
        'return sum(message.role == "user" for message in messages)',
        "return len(messages)",
        "replies count as turns",
    ),
    Break(
        "A7",
        "store/summaries.py",
        "    chunk = max((last + 1, *least))\n",
        "    chunk = 1\n",
        "every archive is the first",
    ),
    Break(
        "A8",
        "digest/tree.py",
        "if count > rules.level:",
        "if count > rules.level + 1:",
        "six summaries of a level stay",
    ),
    Break(
        "A9",
        "context/sections.py",
        "key=lambda summary: (-summary.level, summary.id)",
        "key=lambda summary: (summary.level, summary.id)",
        "summaries of the lowest level come first",
    ),
    Break(
        "A11",
        "profiles/archive.toml",
        'trim = ["snippets", "recent", "summaries"]',
        'trim = ["recent", "snippets", "summaries"]',
        "recent messages go before snippets",
    ),
    Break(
        "A16",
        "models/tokens.py",
        "_BYTES_PER_TOKEN: Final = 4",
        "_BYTES_PER_TOKEN: Final = 5",
        "a token counts as five characters",
    ),
    Break(
        "A17",
        "store/messages.py",
        'return Conditions(f"[[log.space = $1 AND ]]log.owner = {USER}"',
        'return Conditions(f"[[log.space = $1 AND ]](log.owner = {USER} OR 1 = 1)"',
        "everybody's messages are read",
    ),
    Break(
        "B2",
        "facts/fact_editor.py",
        "return self.found",
        "return True",
        "forget always reports that it found something",
    ),
    Break(
        "B6",
        "digest/calendar.py",
        "ledger.now >= ledger.done_at + rules.refresh",
        "ledger.now >= ledger.done_at",
        "today is summarised again immediately",
    ),
    Break(
        "B10",
        "facts/portrait.py",
        'return "\\n".join(filter(None, (facts, today, history)))',
        'return "\\n".join(filter(None, (history, today, facts)))',
        "without a model, the days before come before the facts",
    ),
    Break(
        "B14",
        "digest/writing.py",
        "prompt.operation, said, DaySummaries",
        '"merge", said, DaySummaries',
        "day summaries use the model for merges",
    ),
    Break(
        "C10",
        "domain/message.py",
        "        new.at_given\n        and (new.id is None",
        "        False\n        and (new.id is None",
        "repeated messages are stored again",
    ),
    Break("C11", "profiles/account.toml", "similarity = 0.7", "similarity = 0.0", "irrelevant hits are included"),
    Break(
        "C16",
        "domain/memory.py",
        "return self.expires_at is not None and self.expires_at <= moment",
        "return False",
        "expired memories are used",
    ),
    Break("D1", "profiles/companion.toml", "similarity = 0.7", "similarity = 0.0", "unlike conversations come too"),
    Break(
        "D4",
        "domain/scope.py",
        "SESSION_SILENCE: Final = 30 * 60 * 1_000_000",
        "SESSION_SILENCE: Final = 40 * 60 * 1_000_000",
        "sessions close after 40 minutes",
    ),
    Break(
        "D6",
        "models/prompts/texts/chat.md",
        "BACKGROUND CONTEXT (understanding only):",
        "BACKGROUND CONTEXT:",
        "hits are not marked as background",
    ),
    Break(
        "D11",
        "models/resilience.py",
        "self._next_probe is None and self._failures >= self._limit",
        "self._next_probe is None and self._failures > self._limit + 1000",
        "breakers never open",
    ),
    Break(
        "D14",
        "front/handle.py",
        "        if self._actor is not None:\n            await",
        "        if self._actor is None:\n            await",
        "the audit log does not record who viewed data",
    ),
    Break(
        "E4",
        "domain/summary.py",
        'return self.messages > 0 and self.text.strip() not in ("", NOTHING_SAID)',
        "return self.messages > 0",
        "an empty summary is valid",
    ),
    Break("E5", "digest/rolling.py", "messages: int = 20", "messages: int = 21", "the first summary comes too late"),
    Break(
        "E6",
        "digest/rolling.py",
        "beyond = ledger.total - ledger.covered - rules.keep",
        "beyond = ledger.total - ledger.covered - rules.keep - 1",
        "one message too few is summarised",
    ),
)
LEFT_OUT = (
    "tests/torture/",
    "tests/llm/",
    "tests/store/test_postgres",
    "tests/mumble/",
    "tests/bots/test_two_weeks.py",
)
"""Tests that are skipped here: they take long or need other programs."""


def run(tests: list[str], source: Path) -> tuple[bool, str]:
    """Run tests with the code in a folder. Return whether they pass, and the last line of output."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-k", "not postgres", *tests]
    done = subprocess.run(  # noqa: S603 - the project's own tests
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = [
        line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))
    ] or done.stdout.splitlines()
    return done.returncode == 0, said[-1] if said else done.stderr[-300:]


def prove(broken: Break, tests: list[str]) -> bool:
    """Return whether the promise's tests pass with the original code and fail with the broken code."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        passes, said = run(tests, source)
        if not passes:
            print(f"{broken.promise}: its tests fail already: {said}")
            return False
        file = source / "aforesaid" / broken.file
        text = file.read_text(encoding="utf-8")
        if text.count(broken.instead_of) != 1:
            print(f"{broken.promise}: {broken.file} has changed; update the list in {Path(__file__).name}")
            return False
        file.write_text(text.replace(broken.instead_of, broken.put), encoding="utf-8")
        passes, said = run(tests, source)
    print(f"{broken.promise}: {broken.so_that}: {'NO TEST FAILS' if passes else said[:200]}", flush=True)
    return not passes


def main() -> int:
    """Prove the selected promises."""
    known, tests = promises(), marked()
    wanted = sys.argv[1:] or [broken.promise for broken in BREAKS]
    unknown = [name for name in wanted if name not in {broken.promise for broken in BREAKS}]
    if unknown:
        print(f"there is no proof for {', '.join(unknown)}; add one to {Path(__file__).name}")
        return 2
    started, proven = time.monotonic(), 0
    for broken in BREAKS:
        if broken.promise in wanted:
            chosen = [test for test in tests[broken.promise] if not test.startswith(LEFT_OUT)]
            proven += prove(broken, chosen)
    print(f"{proven} of {len(wanted)} proven ({len(known)} promises in all), {time.monotonic() - started:.0f} s")
    return 0 if proven == len(wanted) else 1


if __name__ == "__main__":
    sys.exit(main())
