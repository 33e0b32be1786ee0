"""On an overloaded server, a request gets its memory a little later, or a part of it, instead of none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import httpx2
import pytest

from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.receipt import Receipt
from aforesaid.recall.queue import AT_ONCE
from aforesaid.server.proxy import proxy_memory
from server.talking import Talk, ask, eventually, talking


def post(talk: Talk, question: str) -> httpx2.Response:
    return httpx2.post(
        f"{talk.server.address}/v1/chat/completions",
        json={"model": "m", "messages": [{"role": "user", "content": question}], "user": "ann"},
        headers={"Authorization": f"Bearer {talk.key}"},
        timeout=60,
    )


def receipt_of(talk: Talk, answer: httpx2.Response) -> ContextReceipt:
    eventually(lambda: not talk.server.served._finishing)
    ann, keeper = talk.server.served.memory.user("ann"), talk.server.served.memory.receipt_keeper
    talk.server.run(keeper.settled())
    return talk.server.run(ann.receipt(answer.headers["x-aforesaid-receipt"]))


@asynccontextmanager
async def _all_turns(talk: Talk) -> AsyncIterator[None]:
    """Hold all turns, each in a task of its own."""
    queue, over = talk.server.served.memory.recall_queue, asyncio.Event()
    held = [asyncio.Event() for _ in range(AT_ONCE)]

    async def hold(begun: asyncio.Event) -> None:
        async with queue.turn():
            begun.set()
            await over.wait()

    tasks = [asyncio.create_task(hold(begun)) for begun in held]
    await asyncio.gather(*(begun.wait() for begun in held))
    try:
        yield
    finally:
        over.set()
        await asyncio.gather(*tasks)


@contextmanager
def other_searches(talk: Talk) -> Iterator[None]:
    """Take all turns with other searches during the block."""
    stack = AsyncExitStack()
    talk.server.run(stack.enter_async_context(_all_turns(talk)))
    try:
        yield
    finally:
        talk.server.run(stack.aclose())


def in_thread(talk: Talk, question: str) -> tuple[threading.Thread, list[httpx2.Response]]:
    answers: list[httpx2.Response] = []
    asking = threading.Thread(target=lambda: answers.append(post(talk, question)))
    asking.start()
    return asking, answers


def test_the_time_limit_of_a_search_counts_from_its_turn_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with talking() as talk, talk.client() as client:
        ask(client, "I moved to Berlin.")
        talk.log()
        with other_searches(talk):
            monkeypatch.setattr(proxy_memory, "RECALL_SECONDS", 0.0)
            asking, answers = in_thread(talk, "What of Berlin?")
            eventually(lambda: talk.server.served.memory.recall_queue.waiting == 1)
            monkeypatch.setattr(proxy_memory, "RECALL_SECONDS", 60.0)
        asking.join(60)
        assert answers[0].headers["x-aforesaid-memory"] == "on"
        assert "I moved to Berlin." in str(talk.last)
        assert receipt_of(talk, answers[0]).limited is None


def test_a_request_that_gets_no_turn_has_memories_and_recent_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_memory, "QUEUE_SECONDS", 0.01)
    with talking() as talk, talk.client() as client:
        ask(client, "I moved to Berlin.")
        talk.log()
        talk.server.run(talk.server.served.memory.user("ann").remember("Ann is vegetarian."))
        with other_searches(talk):
            answer = post(talk, "What may I eat?")
        assert answer.headers["x-aforesaid-memory"] == "partial"
        assert "no search began" in answer.headers["x-aforesaid-reason"]
        assert "I moved to Berlin." in str(talk.last)
        assert "vegetarian" in str(talk.last)
        receipt = receipt_of(talk, answer)
        assert "no search began" in str(receipt.limited)
        assert receipt.ids("message")
        (alert,) = talk.server.run(talk.server.served.memory.health()).alerts
        assert alert.about == "proxy_search"


def test_chats_of_one_person_are_stored_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    with talking() as talk:
        store = talk.server.served.memory.store
        works, goes_on, storing = store.apply, threading.Event(), set[str]()

        async def slow(changes: Any) -> Receipt:  # noqa: ANN401
            storing.update(each.draft.text for each in changes if hasattr(each, "draft"))
            await asyncio.to_thread(goes_on.wait, 60)
            return await works(changes)

        monkeypatch.setattr(store, "apply", slow)
        questions = {f"Question {number}?" for number in range(5)}
        asked = [in_thread(talk, question) for question in sorted(questions)]
        eventually(lambda: storing == questions)
        goes_on.set()
        for asking, answers in asked:
            asking.join(60)
            assert answers[0].headers["x-aforesaid-memory"] == "on"
        assert {line for line in talk.log() if line.startswith("user")} == {f"user: {each}" for each in questions}


def test_a_question_waits_until_the_reply_before_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    with talking() as talk:
        store = talk.server.served.memory.store
        works, goes_on, held = store.apply, threading.Event(), threading.Event()

        async def slow(changes: Any) -> Receipt:  # noqa: ANN401
            if any(hasattr(each, "draft") and each.draft.role == "assistant" for each in changes):
                held.set()
                await asyncio.to_thread(goes_on.wait, 60)
            return await works(changes)

        monkeypatch.setattr(store, "apply", slow)
        post(talk, "I moved to Berlin.")
        assert held.wait(60)
        asking, answers = in_thread(talk, "Another chat, about tea.")
        eventually(lambda: len(talk.model.requests) == 2)
        assert not answers, "the reply to the second question waits until the first reply is stored"
        goes_on.set()
        asking.join(60)
        assert talk.log() == [
            "user: I moved to Berlin.",
            "assistant: You said: I moved to Berlin.",
            "user: Another chat, about tea.",
            "assistant: You said: Another chat, about tea.",
        ]
