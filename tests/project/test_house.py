"""The size of the house: files, imports, and the files on the way of one call."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
IMPORT = re.compile(r"^ *(?:from \S+ import (?:\([^)]*\)|[^(\n]*)|import .*)$", re.MULTILINE)
LONGEST_WAYS = {"add": 34, "search": 58, "context": 75, "proxied request": 115}


def test_one_call_enters_few_files() -> None:
    shown = subprocess.run(
        [sys.executable, str(ROOT / "tools/ways.py")], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout
    ways = {name: int(files) for name, files in re.findall(r"^(\S.*?) +(\d+) files$", shown, re.MULTILINE)}
    assert {name for name, most in LONGEST_WAYS.items() if not 0 < ways[name] <= most} == set(), ways


def test_files_are_few_and_not_made_of_imports() -> None:
    assert len(SOURCES) <= 420
    lines = imports = 0
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        lines += text.count("\n")
        imports += sum(each.count("\n") + 1 for each in IMPORT.findall(text))
    assert imports / lines <= 0.08
