"""Packages of npm for tests, installed once and kept out of the repository."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

CACHE = Path(__file__).parent.parent.parent / ".cache"
_SECONDS = 60


def installed_packages(folder: str, *packages: str) -> Path:
    """Return a folder with npm packages. Skips the test, and says why, where they cannot be installed."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("left out: the JavaScript clients need Node.js and npm, which are not installed here")
    there = CACHE / folder
    if not all((there / "node_modules" / name.rpartition("@")[0]).is_dir() for name in packages):
        there.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(there), *packages]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            pytest.skip(f"left out: npm did not install the JavaScript clients within {_SECONDS} s")
        if ran.returncode != 0:
            pytest.skip(f"left out: npm could not install the JavaScript clients: {ran.stderr.strip()[-300:]}")
    return there


def run_program(folder: Path, program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a JavaScript program with the packages of a folder."""
    copy = folder / program.name
    copy.write_text(program.read_text(encoding="utf-8"), encoding="utf-8")
    return run_node(copy, *arguments)


def run_node(
    script: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script with Node.js."""
    command = ["node", str(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200, env=environment)
