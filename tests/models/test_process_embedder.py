"""The local embedder in a process of its own."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aforesaid.errors import ModelError
from aforesaid.models.embed import (
    CachingEmbedder,
    LocalEmbedder,
    SubprocessEmbedder,
    choose_embedder,
    embedder_of_a_server,
    local,
    remote,
)
from aforesaid.models.embed.local import Encoder
from aforesaid.models.embed.remote import FAILED, LENGTH, SHAPE
from aforesaid.settings import Choice, Route, Settings
from aforesaid.telemetry import Metrics

TEXTS = ["My dog is afraid of thunder.", "Der Hund hat Angst.", "", "🐈 \0 " + "long " * 500]


@pytest.fixture
async def apart() -> AsyncIterator[SubprocessEmbedder]:
    embedder = SubprocessEmbedder()
    yield embedder
    await embedder.close()


async def test_its_vectors_are_those_of_the_one_in_this_process(apart: SubprocessEmbedder) -> None:
    here = LocalEmbedder()
    assert apart.name == here.name
    many = [f"text number {number}" for number in range(70)]
    assert np.array_equal(await apart.embed(TEXTS[:3]), await here.embed(TEXTS[:3]))
    assert np.array_equal(await apart.embed(many), await here.embed(many))
    assert (await apart.embed([])).shape == (0, 512)
    assert np.array_equal(await apart.begin(TEXTS[0]), await here.begin(TEXTS[0]))
    assert (await apart.embed(TEXTS[3:])).shape == (1, 512), "whatever a text holds, it comes across"
    await here.close()


async def test_its_token_vectors_are_those_of_the_one_in_this_process(apart: SubprocessEmbedder) -> None:
    here = LocalEmbedder()
    assert apart.token_name == here.token_name
    for theirs, ours in zip(await apart.tokens(TEXTS), await here.tokens(TEXTS), strict=True):
        assert np.array_equal(theirs.vectors, ours.vectors)
        assert np.array_equal(theirs.weights, ours.weights)
    await here.close()


async def test_without_the_ranker_no_token_vectors_are_made() -> None:
    apart = SubprocessEmbedder(ranker=False)
    assert apart.token_name is None
    assert (await apart.embed(TEXTS[:1])).shape == (1, 512)
    with pytest.raises(ModelError, match="switched off"):
        await apart.tokens(TEXTS[:1])
    await apart.close()


async def test_who_asks_at_once_is_answered_in_turn(apart: SubprocessEmbedder) -> None:
    texts = [f"question {number}" for number in range(20)]
    found = await asyncio.gather(*(apart.embed([text]) for text in texts))
    assert np.allclose(np.concatenate(found), await apart.embed(texts), atol=1e-5)


async def test_a_process_that_was_killed_is_started_again(apart: SubprocessEmbedder) -> None:
    before = await apart.embed(TEXTS[:1])
    for _ in range(2):
        assert apart._process is not None
        os.kill(apart._process.pid, signal.SIGKILL)
        assert np.array_equal(await apart.embed(TEXTS[:1]), before)


async def test_one_that_cannot_live_is_told_of(apart: SubprocessEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ModelError, match="ended twice"):
        await apart.embed(["hello"])
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ModelError, match="no process for the local embedder can be started"):
        await apart.embed(["hello"])


async def test_closing_ends_the_process() -> None:
    embedder = SubprocessEmbedder()
    await embedder.close()  # nothing was begun
    embedder = SubprocessEmbedder()
    await embedder.embed(["hello"])
    process = embedder._process
    assert process is not None
    await embedder.close()
    assert process.returncode == 0


def test_it_ends_when_whoever_started_it_is_killed(tmp_path: Path) -> None:
    program = (
        "import asyncio, time\n"
        "from aforesaid.models.embed import SubprocessEmbedder\n"
        "embedder = SubprocessEmbedder()\n"
        "asyncio.run(embedder.embed(['hello']))\n"
        "print(embedder._process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=tmp_path) as owner:
        assert owner.stdout is not None
        child = int(owner.stdout.readline())
        owner.kill()
    until = time.monotonic() + 60
    while _runs(child):
        assert time.monotonic() < until, "it is left over"
        time.sleep(0.05)


def _runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_what_goes_wrong_there_is_told_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:  # noqa: ANN401 - an encoder
        raise ModelError("the weights are gone")

    monkeypatch.setattr(local, "load_encoder", broken)
    asked, answers = b'[["hello"], false]', io.BytesIO()
    remote.serve(io.BytesIO(LENGTH.pack(len(asked)) + asked), answers, ranker=True)
    rows, length = SHAPE.unpack(answers.getvalue()[: SHAPE.size])
    assert (rows, answers.getvalue()[SHAPE.size :]) == (FAILED, b"the weights are gone")
    assert length == len(b"the weights are gone")


def test_the_process_forgets_words_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[Encoder] = []

    def forget(this: Encoder) -> None:
        forgotten.append(this)

    monkeypatch.setattr(Encoder, "forget_all", forget)
    frames = [LENGTH.pack(len(data)) + data for data in (b"[null, false]", b'[["hello"], false]', b"[null, false]")]
    answers = io.BytesIO()
    remote.serve(io.BytesIO(b"".join(frames)), answers, ranker=False)
    assert len(forgotten) == 1, "before the first text there is nothing to forget"
    assert SHAPE.unpack(answers.getvalue()[: SHAPE.size]) == (1, 512), "nothing was answered to it"


@pytest.mark.parametrize("inside", [LocalEmbedder, SubprocessEmbedder])
async def test_a_question_begins_before_anything_else_is_done(
    inside: type[LocalEmbedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics, begun = Metrics(), threading.Event()
    embedder = inside()
    original = embedder._encode

    def encode(texts: list[str], *, read: bool = False) -> Any:  # noqa: ANN401 - an array
        begun.set()
        return original(texts, read=read)

    monkeypatch.setattr(embedder, "_encode", encode)
    caching = CachingEmbedder(embedder, metrics)
    caching.expect("tea")
    assert begun.wait(60), "no task had a turn since"
    assert np.array_equal(await caching.embed(["tea"]), await embedder.embed(["tea"]))
    await caching.close()


def test_a_server_has_it_unless_somebody_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AFORESAID_EMBEDDER", raising=False)
    assert embedder_of_a_server(Settings()) == "process"
    assert isinstance(choose_embedder("process"), SubprocessEmbedder)
    assert embedder_of_a_server(Settings(embedder="local")) is None
    assert embedder_of_a_server(Settings(routes={"embed": Route((Choice("a", "b"),))})) is None
    monkeypatch.setenv("AFORESAID_EMBEDDER", "deterministic")
    assert embedder_of_a_server(Settings()) is None
