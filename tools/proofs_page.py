"""Write docs/reference/proofs.md from a run of the torture tests: artifacts/torture.xml and artifacts/torture.txt."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).parent.parent
ARTIFACTS = ROOT / "artifacts"
TARGET = ROOT / "docs/reference/proofs.md"
HEADER = """# Counts of the torture tests

`make torture` kills processes, cuts the power of simulated disks, fills disks, fails system calls, flips bytes and
sends hostile requests, at full size. It writes this page. A loss is an acknowledged message that was not there
afterwards. In the rows with `synchronous=` and with a lying disk, a protection is switched off on purpose: the losses
there show that the tests find some.

{outcome}

| Test | Counts |
|---|---|
"""
_FIGURES = re.compile(r"\[torture\] (?P<name>.*?): (?P<counts>.*), [\d.]+ s$")


def outcome(report: Path) -> str:
    """Return how many tests ran, and the names of those that failed."""
    suites = list(ET.parse(report).getroot().iter("testsuite"))  # noqa: S314 - our own file
    tests, skipped = (sum(int(suite.get(key, 0)) for suite in suites) for key in ("tests", "skipped"))
    failed = [
        f"`{case.get('name')}`"
        for suite in suites
        for case in suite.iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    ]
    day = suites[0].get("timestamp", "")[:10]
    passed = f"Run of {day}: {tests - skipped - len(failed)} of {tests - skipped} tests passed."
    return f"{passed} Failed: {', '.join(failed)}." if failed else passed


def rows(figures: Path) -> list[str]:
    """Return a row of the table for each line of figures, by name."""
    found = [_FIGURES.match(line) for line in figures.read_text(encoding="utf-8").splitlines()]
    return sorted(f"| {each['name']} | {each['counts']} |" for each in found if each)


def main() -> int:
    """Write the page."""
    text = HEADER.format(outcome=outcome(ARTIFACTS / "torture.xml")) + "\n".join(rows(ARTIFACTS / "torture.txt")) + "\n"
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
