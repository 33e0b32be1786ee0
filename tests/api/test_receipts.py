"""Receipts through the Python API and the command line: what was sent to a model, and what came of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import aforesaid
from aforesaid import Memory
from aforesaid.cli import app
from aforesaid.errors import InvalidInput, NotFound
from aforesaid.models.tokens import count_messages
from aforesaid.store.people import Receipts
from cli.typed import ok


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with aforesaid.connect(tmp_path / "memory.db", embedder="none") as opened:
        yield opened


async def test_a_context_that_was_sent_has_a_receipt_of_what_it_showed(memory: Memory) -> None:
    ann = memory.user("ann", actor="app")
    await ann.add("user", "I moved to Berlin last week.")
    await ann.remember("likes tea")
    context = await ann.context("Where do I live?", budget=2_000)
    reply = (await ann.add("assistant", "In Berlin.")).message
    sent = await ann.sent(context, reply=reply, model="gpt-4o", input_tokens=112, output_tokens=4)
    assert (sent.id, sent.reply, sent.caller, sent.profile) == (context.receipt, reply.seq, "app", "default")
    assert (sent.tokens, sent.budget, sent.model) == (context.tokens, 2_000, "gpt-4o")
    assert sent.knew == "1 message and 1 memory"
    assert [section.name for section in sent.sections] == [report.name for report in context.sections if report.items]
    assert await ann.receipts() == [sent]
    assert await ann.receipts(replies=[reply]) == [sent]
    assert await ann.receipt(sent.id) == sent
    texts = [source.text for source in (await ann.receipt_sources(sent)).values()]
    assert texts == ["I moved to Berlin last week.", "ann likes tea."]


@pytest.mark.defect("S6")
@pytest.mark.parametrize("budget", [300, 1_000, 8_000])
async def test_a_receipt_counts_what_was_sent_as_it_was_sent(memory: Memory, budget: int) -> None:
    ann = memory.user("ann")
    for number in range(40):
        await ann.add("user" if number % 2 else "assistant", f"Sausage number {number} was eaten by Bella, my dog.")
    await ann.remember("likes tea")
    context = await ann.context("Who ate the sausages?", budget=budget, system="Be brief.")
    sent = await ann.sent(context)
    assert sent.tokens == context.tokens == count_messages(context.messages)
    assert sent.tokens == sum(section.tokens for section in sent.sections)
    assert all(section.tokens for section in sent.sections)


async def test_a_receipt_holds_no_text(memory: Memory) -> None:
    ann = memory.user("ann")
    await ann.add("user", "My secret is xylophone.")
    sent = await ann.sent(await ann.context("What is my secret, quizzaciously?", system="Be zugzwang."))
    for word in ("xylophone", "quizzaciously", "zugzwang"):
        assert word not in repr(sent)


async def test_what_was_erased_or_taken_back_since_is_missing_among_the_sources(memory: Memory) -> None:
    ann = memory.user("ann")
    kept, erased, withdrawn = [(await ann.add("user", text)).message for text in ("one", "two", "three")]
    sent = await ann.sent(await ann.context("What did I say?"))
    assert sent.ids("message") == [kept.seq, erased.seq, withdrawn.seq]
    await ann.erase(erased)
    await ann.take_back(withdrawn)
    assert list(await ann.receipt_sources(sent)) == [("message", kept.seq)]
    assert await ann.receipt(sent.id) == sent


async def test_a_receipt_of_a_channel_names_what_others_said_there(memory: Memory) -> None:
    ann, bob = memory.user("ann", thread="general"), memory.user("bob", thread="general")
    await bob.add("user", "The meeting is at nine.")
    await ann.add("user", "Thanks.")
    sent = await ann.sent(await ann.context("When is the meeting?"))
    assert "The meeting is at nine." in {source.text for source in (await ann.receipt_sources(sent)).values()}


async def test_nobody_reads_the_receipt_of_another(memory: Memory) -> None:
    ann, bob = memory.user("ann"), memory.user("bob")
    await ann.add("user", "hello")
    reply = (await bob.add("assistant", "hello")).message
    context = await ann.context("hello")
    sent = await ann.sent(context)
    for stranger in (bob, memory.user("ann", space="elsewhere")):
        with pytest.raises(NotFound, match="has no receipt"):
            await stranger.receipt(sent.id)
    with pytest.raises(NotFound, match="is not a message of"):
        await ann.sent(context, reply=reply)
    with pytest.raises(InvalidInput, match="must be what `context` returned"):
        await ann.sent("hello")  # type: ignore[arg-type]


async def test_contexts_leave_receipts_if_the_caller_or_a_setting_says_so(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with aforesaid.connect(path, embedder="none") as memory:
        ann = memory.user("ann")
        await ann.add("user", "hello")
        await ann.context("asked, and not sent")
        sent = await ann.context("sent", sent=True)
    async with aforesaid.connect(path, embedder="none", settings={"receipts.contexts": True}) as memory:
        ann = memory.user("ann")
        assert [each.id for each in await ann.receipts()] == [sent.receipt]
        every = await ann.context("every one")
        await ann.context("but this", sent=False)
    async with aforesaid.connect(path, embedder="none") as memory:
        assert [each.id for each in await memory.user("ann").receipts()] == [every.receipt, sent.receipt]


async def test_no_receipt_is_stored_if_none_is_to_be_kept(tmp_path: Path) -> None:
    settings = {"receipts.days": 0, "receipts.contexts": True}
    async with aforesaid.connect(tmp_path / "memory.db", embedder="none", settings=settings) as memory:
        ann = memory.user("ann")
        await ann.add("user", "hello")
        context = await ann.context("hello", sent=True)
        assert (await ann.sent(context)).id == context.receipt
        assert await ann.receipts() == []


async def test_receipts_are_deleted_after_the_days_that_are_set(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with aforesaid.connect(path, embedder="none") as memory:
        ann = memory.user("ann")
        await ann.add("user", "hello")
        await ann.sent(await ann.context("hello"))
        assert [rule.count for rule in (await memory.cleanup()).rules if rule.kind == "receipts"] == []
    async with aforesaid.connect(path, embedder="none", settings={"receipts.days": 0}) as memory:
        assert [rule.count for rule in (await memory.cleanup()).rules if rule.kind == "receipts"] == [1]
        assert await memory.store.read(Receipts(memory.user("ann").scope)) == []


def test_receipts_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "memory.db"
    monkeypatch.setenv("AFORESAID_STORE", str(path))
    monkeypatch.setenv("COLUMNS", "200")
    with aforesaid.open(path, embedder="none") as memory:
        ann = memory.user("ann")
        ann.add("user", "I moved to Berlin.")
        erased = ann.add("user", "My pin is 1234.").message
        sent = ann.sent(ann.context("Where do I live?"), model="gpt-4o")
        ann.erase(erased)

    def run(*words: str) -> str:
        return ok(CliRunner().invoke(app, words))

    listed = run("receipts", "--user", "ann")
    assert sent.id in listed
    assert "2 messages" in listed
    assert "gpt-4o" in listed
    shown = run("receipt", sent.id, "--user", "ann")
    assert "I moved to Berlin." in shown
    assert "erased since" in shown
    assert json.loads(run("receipts", "--user", "ann", "--json"))[0]["id"] == sent.id
    assert "message 1" in json.loads(run("receipt", sent.id, "--user", "ann", "--json"))["texts"]
    assert "there are no receipts" in run("receipts", "--user", "bob")
    assert CliRunner().invoke(app, ["receipt", sent.id, "--user", "bob"]).exit_code != 0


def test_receipts_on_the_command_line_name_messages_as_the_history_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    monkeypatch.setenv("AFORESAID_STORE", str(path))
    monkeypatch.setenv("COLUMNS", "200")
    with aforesaid.open(path, embedder="none") as memory:
        ann = memory.user("ann")
        ann.add("user", "I moved to Berlin.", id="asked-1")
        replies = [
            ann.add("assistant", text, id=name).message for text, name in (("Yes.", "said-2"), ("No.", "said-3"))
        ]
        sent = [ann.sent(ann.context("Where do I live?"), reply=reply) for reply in replies]
        ann.erase(replies[1])

    def run(*words: str) -> str:
        return ok(CliRunner().invoke(app, [*words, "--user", "ann"]))

    newest, oldest = run("receipts").splitlines()
    assert "led to message said-2" in oldest
    assert "its reply was erased or taken back since" in newest
    shown = run("receipt", sent[0].id)
    assert "led to message said-2" in shown
    assert "message asked-1" in shown
    assert [each["reply"] for each in json.loads(run("receipts", "--json"))] == [3, 2], "scripts get numbers"
    run("take-back", "said-2")
    assert "led to" not in run("receipts")
