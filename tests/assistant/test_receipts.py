"""Receipts of the built-in assistant: what its model was sent, beside the reply."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

import aforesaid
from aforesaid.assistant import Assistant
from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.testing import ScriptedModel, faults


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(["You live in Bern.", "Nothing else."]) as scripted:
        yield scripted


@pytest.fixture
async def memory(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[aforesaid.Memory]:
    settings = {"providers.s.base_url": model.base_url, "models.chat.chain": "s:scripted", "resilience.attempts": 1}
    profile = {"summaries": "none", "extract": False}
    async with aforesaid.connect(tmp_path / "memory.db", profile=profile, embedder="none", settings=settings) as opened:
        yield opened


async def receipts(memory: aforesaid.Memory) -> list[ContextReceipt]:
    await memory.receipt_keeper.settled()
    return await memory.user("ann").receipts()


async def ask(memory: aforesaid.Memory, text: str) -> str:
    return "".join([piece async for piece in Assistant(memory).reply(memory.user("ann"), text)])


async def test_a_reply_has_a_receipt_of_what_the_model_was_sent(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    told = (await ann.add("user", "I live in Bern.")).message
    assert await ask(memory, "Where do I live?") == "You live in Bern."
    (receipt,) = await receipts(memory)
    reply = (await ann.history())[-1]
    assert (receipt.reply, receipt.model, reply.text) == (reply.seq, "s:scripted", "You live in Bern.")
    assert await ann.receipts(replies=[reply]) == [receipt]
    assert ("message", told.seq) in await ann.receipt_sources(receipt)
    assert {"context", "first_byte", "reply"} <= set(receipt.milliseconds)


async def test_a_model_that_fails_was_sent_a_context_all_the_same(
    memory: aforesaid.Memory, model: ScriptedModel
) -> None:
    model.fail(faults.ServerError())
    assert "could not answer" in await ask(memory, "Where do I live?")
    (receipt,) = await receipts(memory)
    assert receipt.reply is None
    assert receipt.tokens > 0


async def test_an_answer_that_is_broken_off_has_a_receipt(memory: aforesaid.Memory) -> None:
    async with aclosing(Assistant(memory).reply(memory.user("ann"), "Where do I live?")) as pieces:
        async for _ in pieces:
            break
    assert [receipt.reply for receipt in await receipts(memory)] == [None]


async def test_what_no_model_was_asked_leaves_no_receipt(memory: aforesaid.Memory) -> None:
    assert await Assistant(memory).command(memory.user("ann"), "/help") is not None
    assert await receipts(memory) == []
