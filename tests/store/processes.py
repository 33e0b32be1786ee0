"""Programs that run beside a test, with the file that they are given."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

KILLED = """
import asyncio, os, signal, sys
from aforesaid.memory import connect
async def main():
    memory = await connect(sys.argv[1])
    for number in range(5):
        await memory.user("ann").add("user", f"message {number}")
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


async def run_program(program: str, path: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a program that may use the tests' helpers."""
    folders = [str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, str(path)]
    return await asyncio.to_thread(
        subprocess.run, command, check=False, env=environment, capture_output=True, timeout=60
    )
