"""What is said is stored, whatever recall, the embedder or the model do; and an operator is told when they fail."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from aforesaid.domain.receipt import Receipt
from aforesaid.errors import ModelError, StoreError
from aforesaid.models.embed import DeterministicEmbedder, SubprocessEmbedder, Vectors
from aforesaid.recall import candidates
from aforesaid.server.proxy import proxy_memory
from aforesaid.server.proxy.proxy_memory import StoreOrder
from aforesaid.testing import faults
from aforesaid.testing.faults import HttpConnection, HttpResponse
from server.talking import Talk, ask, eventually, hang_up_after_two_words, log_of, talking


class FaultyEmbedder(DeterministicEmbedder):
    """An embedder that fails from when it is told to until it is told to stop."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.works = threading.Event()
        self.works.set()
        self._fault = fault

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if not self.works.is_set():
            if self._fault == "hangs":
                await asyncio.to_thread(self.works.wait)
            elif self._fault == "fails":
                raise ModelError("the embedder is broken")
            else:
                raise ValueError("a bug in the embedder")
        return await super().embed(texts)


KINDS = {"hangs": "timeout", "has a bug": "other", "fails": ""}


def give_up_after(seconds: float, patch: pytest.MonkeyPatch) -> None:
    """Limit the time for a context with a search."""
    patch.setattr(proxy_memory, "RECALL_SECONDS", seconds)


def alerts(talk: Talk) -> dict[str, str]:
    health = talk.server.run(talk.server.served.memory.health())
    return {alert.about: alert.text for alert in health.alerts}


def metrics(talk: Talk) -> str:
    answer = httpx2.get(f"{talk.server.address}/metrics", headers={"Authorization": f"Bearer {talk.server.link}"})
    return answer.text


@pytest.mark.defect("P1")
@pytest.mark.req("G14")
@pytest.mark.parametrize(
    ("fault", "reason"), [("hangs", "the search took over"), ("has a bug", "search failed"), ("fails", "words alone")]
)
def test_a_question_is_stored_before_its_answer_when_the_embedder(
    fault: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = FaultyEmbedder(fault)
    give_up_after(0.2 if fault == "hangs" else 60, monkeypatch)
    with talking(embedder=embedder) as talk, talk.client() as client:
        messages: list[dict[str, str]] = []
        embedder.works.clear()
        for text in ("I am vegetarian now.", "And I moved to Berlin.", "What may I eat?"):
            messages.append({"role": "user", "content": text})
            answer = client.chat.completions.with_raw_response.create(
                model="m",
                messages=messages,  # type: ignore[arg-type]
                user="ann",
            )
            assert answer.headers["x-aforesaid-memory"] == "partial"
            assert reason in answer.headers["x-aforesaid-reason"]
            messages.append({"role": "assistant", "content": str(answer.parse().choices[0].message.content)})
        assert talk.log() == [f"{each['role']}: {each['content']}" for each in messages], "nothing lost or doubled"
        told = alerts(talk).get("proxy_search")
        # An embedder that raises its own error is done without: recall goes by words.
        by_words = alerts(talk).get("search_vector")
        assert (by_words is not None) == (fault == "fails"), by_words
        assert ('kind="other",model="",operation="search_vector"} 3.0' in metrics(talk)) == (fault == "fails")
        # The alert counts since the last look at the metrics, which the background takes when it likes.
        without = r"([1-3]) of \1 requests of the proxy got memories and recent messages without a search"
        assert told is None if fault == "fails" else re.fullmatch(without, told or ""), told
        counted = f'_failures_total{{kind="{KINDS[fault]}",model="",operation="proxy_search"}} 3.0'
        assert (counted in metrics(talk)) == (fault != "fails")
        assert {"proxy_store", "proxy_recall"}.isdisjoint(alerts(talk))
        embedder.works.set()
        give_up_after(60, monkeypatch)
        answer = client.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": "Where do I live?"}], user="ann"
        )
        assert answer.headers["x-aforesaid-memory"] == "on"
        assert "Berlin" in str(talk.last)


@pytest.mark.req("G14")
def test_after_two_requests_recall_goes_by_words_while_the_embedder_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "LEAST_WAIT_SECONDS", 0.1)
    embedder = FaultyEmbedder("hangs")
    with talking(embedder=embedder) as talk, talk.client() as client:
        ask(client, "I moved to Berlin.")
        talk.log()
        embedder.works.clear()
        reasons = []
        for text, limit in {"How are you?": 0.2, "Is it late?": 0.2, "What of Berlin?": 60, "Berlin?": 60}.items():
            give_up_after(limit, monkeypatch)
            answer = client.chat.completions.with_raw_response.create(
                model="m", messages=[{"role": "user", "content": text}], user="ann"
            )
            reasons.append("words alone" in answer.headers["x-aforesaid-reason"])
        assert reasons == [False, False, True, True]
        assert "I moved to Berlin." in str(talk.last)
        assert "went by words alone" in alerts(talk)["search_vector"]
        assert 'kind="timeout",model="",operation="search_vector"} 2.0' in metrics(talk)
        embedder.works.set()


@pytest.mark.defect("P1")
@pytest.mark.req("G14")
def test_a_question_is_stored_while_recall_still_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    give_up_after(600, monkeypatch)
    embedder = FaultyEmbedder("hangs")
    with talking(embedder=embedder) as talk, talk.client() as client:
        embedder.works.clear()
        asking = threading.Thread(target=ask, args=(client, "I am vegetarian now."))
        asking.start()
        ann = talk.server.served.memory.user("ann")
        eventually(lambda: len(talk.server.run(ann.history())) == 1)
        assert not talk.model.requests, "recall is not over"
        embedder.works.set()
        asking.join(60)
        assert talk.log() == ["user: I am vegetarian now.", "assistant: You said: I am vegetarian now."]


@pytest.mark.defect("P1")
@pytest.mark.req("G14")
def test_a_killed_embedder_process_loses_no_question(tmp_path: Path) -> None:
    embedder = SubprocessEmbedder()
    with talking(location=tmp_path / "memory.db", embedder=embedder) as talk, talk.client() as client:
        messages: list[dict[str, str]] = []
        for number in range(4):
            process = embedder._process
            if process is not None:
                os.kill(process.pid, signal.SIGKILL)
            messages.append({"role": "user", "content": f"I like the number {number}."})
            messages.append({"role": "assistant", "content": ask(client, *messages)})
        assert talk.log() == [f"{each['role']}: {each['content']}" for each in messages]


@pytest.mark.defect("P1")
@pytest.mark.req("G14")
def test_an_embedder_process_that_cannot_be_started_loses_no_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = SubprocessEmbedder()
    with talking(location=tmp_path / "memory.db", embedder=embedder) as talk, talk.client() as client:
        dead = [sys.executable, "-c", "raise SystemExit(7)"]
        started = subprocess.Popen
        monkeypatch.setattr(subprocess, "Popen", lambda _, **more: started(dead, **more))
        if (process := embedder._process) is not None:
            os.kill(process.pid, signal.SIGKILL)
        ask(client, "I am vegetarian now.")
        ask(client, "And I moved to Berlin.")
        assert talk.log()[::2] == ["user: I am vegetarian now.", "user: And I moved to Berlin."]


@pytest.mark.defect("P1")
def test_what_could_not_be_stored_is_stored_with_the_reply_or_the_next_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with talking() as talk, talk.client() as client:
        store = talk.server.served.memory.store
        works = store.apply

        async def full(*_: object) -> Receipt:
            raise StoreError("the disk is full")

        monkeypatch.setattr(store, "apply", full)
        answer = client.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": "I am vegetarian now."}], user="ann"
        )
        assert answer.headers["x-aforesaid-memory"] == "failed"
        assert "not stored" in answer.headers["x-aforesaid-reason"]
        eventually(lambda: not talk.server.served._finishing)
        assert "could not be stored" in alerts(talk)["proxy_store"]
        monkeypatch.setattr(store, "apply", works)
        ask(
            client,
            "I am vegetarian now.",
            {"role": "assistant", "content": "You said: I am vegetarian now."},
            "What may I eat?",
        )
        assert talk.log() == [
            "user: I am vegetarian now.",
            "assistant: You said: I am vegetarian now.",
            "user: What may I eat?",
            "assistant: You said: What may I eat?",
        ]
    assert "could not be stored" in caplog.text


@pytest.mark.defect("P1")
def test_a_reply_does_not_wait_for_ever_for_a_store_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_memory, "STORE_SECONDS", 0.2)
    with talking() as talk, talk.client() as client:
        store = talk.server.served.memory.store
        works, goes_on = store.apply, threading.Event()

        async def hangs(changes: Any) -> Receipt:  # noqa: ANN401
            await asyncio.to_thread(goes_on.wait, 60)
            return await works(changes)

        monkeypatch.setattr(store, "apply", hangs)
        answer = client.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": "I am vegetarian now."}], user="ann"
        )
        assert answer.headers["x-aforesaid-memory"] == "failed"
        goes_on.set()
        assert talk.log() == ["user: I am vegetarian now.", "assistant: You said: I am vegetarian now."]


@pytest.mark.defect("P1")
def test_many_callers_at_once_lose_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    give_up_after(0.05, monkeypatch)
    embedder = FaultyEmbedder("hangs")
    with talking(embedder=embedder) as talk, talk.client() as client:
        embedder.works.clear()
        callers = [threading.Thread(target=ask, args=(client, f"Question {number}?")) for number in range(16)]
        for each in callers:
            each.start()
        for each in callers:
            each.join(60)
        stored = talk.log()
        assert sorted(line for line in stored if line.startswith("user")) == sorted(
            f"user: Question {number}?" for number in range(16)
        )
        assert len(stored) == 32
        embedder.works.set()


@dataclass(frozen=True, slots=True)
class Hangs(faults.Fault):
    """Sends a part of the response, or nothing, and says when the other side has hung up."""

    part: float = 0.0
    reached: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)

    async def send(self, answer: HttpResponse, wire: HttpConnection) -> None:
        if self.part:
            await wire.write(answer.head())
            whole = b"".join(map(answer.wrapped, answer.parts))
            await wire.write(whole[: int(self.part * len(whole))])
        self.reached.set()
        await wire.hung_up()
        self.left.set()


_HI = [{"role": "user", "content": "Hi."}]
_CHATS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": _HI, "user": "ann"},
    "/v1/completions": {"prompt": "Hi.", "user": "ann"},
    "/v1/responses": {"input": "Hi.", "user": "ann"},
    "/v1/messages": {"messages": _HI, "max_tokens": 9, "metadata": {"user_id": "ann"}},
    "/api/chat": {"messages": _HI},
    "/v1/embeddings": {"input": "Hi."},
}


@pytest.mark.defect("S11")
@pytest.mark.req("G14")
@pytest.mark.parametrize(("streams", "part"), [(False, 0.0), (False, 0.5), (True, 0.0)])
@pytest.mark.parametrize("path", list(_CHATS))
def test_a_client_that_hangs_up_before_its_answer_ends_the_call_and_its_question_alone_is_stored(
    talk: Talk, request: pytest.FixtureRequest, path: str, part: float, *, streams: bool
) -> None:
    hangs = Hangs(part)
    talk.model.fail(hangs, times=1)
    body = json.dumps({"model": "m", "stream": streams} | _CHATS[path]).encode()
    head = {"Host": "127.0.0.1", "Authorization": f"Bearer {talk.key}", "X-Aforesaid-User": "ann"}
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
    sent = "\r\n".join([*lines, "Content-Type: application/json", f"Content-Length: {len(body)}", "", ""])
    address = httpx2.URL(talk.server.address)
    with socket.create_connection((address.host, address.port or 80)) as client:
        client.sendall(sent.encode() + body)
        assert hangs.reached.wait(60)
    assert hangs.left.wait(60), "the provider works on for nobody"
    stored = log_of(talk, request)
    assert stored == ([] if path == "/v1/embeddings" else ["user: Hi."])
    calls = next(each for each in talk.server.served.upstream.states() if each.name == "scripted")
    if not part:
        assert calls.in_vain > 0, "health counts clients that did not wait"
    calls.answered()  # so that the next test counts anew


@pytest.mark.defect("S11")
def test_a_client_that_hangs_up_in_a_stream_ends_the_call_and_what_it_heard_is_stored(
    talk: Talk, request: pytest.FixtureRequest
) -> None:
    hangs = Hangs(0.5)
    talk.model.fail(hangs, times=1)
    with talk.client() as client:
        heard = hang_up_after_two_words(client, "Tell me.")
    assert hangs.left.wait(60)
    eventually(lambda: len(log_of(talk, request)) == 2)
    answer = talk.stored(space=request.node.name[:200])[1]
    assert answer.text.startswith(heard)
    assert answer.metadata["partial"] is True


ANN = ("default", "ann")


async def test_a_request_waits_for_every_reply_of_its_person_and_for_nobody_elses() -> None:
    order = StoreOrder()
    with order.reply(ANN):
        with order.reply(ANN):
            pass
        # One is stored, the other is not.
        waiting = asyncio.create_task(order.replies_before(ANN))
        await order.replies_before(("default", "bob"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
    await waiting
    await order.replies_before(ANN)


async def test_nothing_is_kept_of_people_whose_replies_are_stored() -> None:
    order = StoreOrder()
    for number in range(3):
        with order.reply(("default", f"user {number}")), order.reply(("default", f"user {number}")):
            pass
    assert order._replies == {}
