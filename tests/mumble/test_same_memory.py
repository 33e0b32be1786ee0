"""The same conversation leaves the same memory, in the terminal and on Mumble."""

from __future__ import annotations

import html
from pathlib import Path

import pytest

import aforesaid
from aforesaid.testing import ScriptedModel
from bots import conversation
from mumble.botting import bot, session_of
from mumble.mumbling import MumbleServer, needs_server, someone, until


@needs_server
@pytest.mark.req("B11", "C13", "D15")
async def test_the_same_conversation_leaves_the_same_memory_as_in_the_terminal(
    mumble: MumbleServer, tmp_path: Path
) -> None:
    store = tmp_path / "mumble.db"
    with ScriptedModel(conversation.answer) as model:
        terminal = await conversation.in_the_terminal(tmp_path, model)
        settings, profile = conversation.settings(model), conversation.QUIET
        async with (
            aforesaid.connect(store, profile=profile, embedder="none", settings=settings) as memory,
            bot(memory, mumble),
            someone(mumble.address, "ann") as ann,
        ):
            await until(lambda: session_of(ann, "Robbie"))
            for text in conversation.SAID:
                await ann.link.write(html.escape(text), session=session_of(ann, "Robbie"))
                await ann.told()
    left = await conversation.left_behind(store, f"name-ann@127.0.0.1:{mumble.port}", "mumble")
    assert left == terminal
    assert len(left["log"]) == 16
    assert [text for _, text, state, _ in left["memories"] if "Berlin" in text and state == "superseded"]
    assert "Hamburg" in left["portrait"]
    assert "cello" not in left["portrait"]
