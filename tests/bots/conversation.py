"""One conversation for every platform, and the memory that it leaves.

While it goes on, nothing is learned in the background: that would depend on how fast people write. It is done
at the end.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any, Final

import aforesaid
from aforesaid.testing import Request, ScriptedModel

SAID: Final = (
    "Hello! I live in Berlin.",
    "Bot, remember that I am allergic to peanuts",
    "/remember I play the cello",
    "I have a dentist appointment on 12 May 2031.",
    "/summary",
    "sqlite",
    "20",
    "Actually, I live in Hamburg now. \N{GRINNING FACE} مرحبا & <b>",
    "Bot forget that I play the cello",
    "/summary_now",
    "/summary_off",
    "/summary_on",
    "What do you know about me?",
    "Where do I live?",
    "/clear",
    "/nonsense",
    "Thank you, good night.",
)
QUIET: Final = {"extract": False}


def answer(request: Request) -> str:
    """Return a reply that depends only on the message."""
    return "In Hamburg." if "Where do I live" in request.asked else "I see."


def settings(model: ScriptedModel) -> dict[str, object]:
    """Return settings with a model for chat only, so that extraction and summaries are deterministic."""
    return {"providers.scripted.base_url": model.base_url, "models.chat.chain": "scripted:scripted"}


async def in_the_terminal(folder: Path, model: ScriptedModel) -> dict[str, Any]:
    """Hold the conversation with `aforesaid chat`, and return the resulting memory."""
    keys = {f"AFORESAID_{key.upper().replace('.', '__')}": str(value) for key, value in settings(model).items()}
    (folder / "quiet.toml").write_text("extract = false\n", encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("aforesaid"),
        "chat",
        *("--store", str(folder / "terminal.db"), "--user", "ann", "--profile", str(folder / "quiet.toml")),
        env={**os.environ, **keys, "AFORESAID_EMBEDDER": "none"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate("".join(f"{text}\n" for text in SAID).encode())
    assert process.returncode == 0, err.decode()
    return await left_behind(folder / "terminal.db", "ann", "default")


async def left_behind(store: Path, user: str, space: str) -> dict[str, Any]:
    """Run upkeep, and return the contents of a memory without times and ids."""
    async with aforesaid.connect(store, embedder="none") as memory:
        await memory.upkeep()
        person = memory.user(user, space=space)
        messages = await person.history(200)
        summaries = await person.summaries(active=None)
        return {
            "log": [(message.role, message.text, message.active, message.chunk) for message in messages],
            "memories": sorted(
                (each.category, each.text, each.state, each.importance) for each in await person.memories(active=None)
            ),
            # The terminal does not know what anybody is called.
            "summaries": [(each.kind, each.level, re.sub("User(?=[:( ])", "ann", each.text)) for each in summaries],
            "settings": dict(await person.settings()),
            "portrait": await person.portrait(),
        }
