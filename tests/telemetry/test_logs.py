"""What each log tells, and that none of them repeats what people said."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import aforesaid
from digesting import Scribe, remembering

ROOT = Path(__file__).parent.parent.parent
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.DEBUG, "aforesaid"):
        yield


def told(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == name]


@pytest.mark.req("D13")
async def test_the_log_of_sessions_tells_when_they_open_and_close(
    location: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with aforesaid.connect(location, profile="session") as memory:
        ann = memory.user("ann")
        for minutes in (0, 10, 60):
            await ann.add("user", "A secret.", at=NOON + timedelta(minutes=minutes))
        await ann.add("user", "An old secret.", at=NOON + timedelta(minutes=5))
    thread = ann.scope.thread
    assert told(caplog, "aforesaid.sessions") == [
        f"session s-1 of ann is open in thread {thread}",
        f"session s-1 in thread {thread} is closed",
        f"session s-3 of ann is open in thread {thread}",
        f"session s-1 of ann continues in thread {thread}",
    ]


@pytest.mark.req("D13")
async def test_the_log_of_extraction_tells_what_came_of_it(location: str, caplog: pytest.LogCaptureFixture) -> None:
    async with aforesaid.connect(location, profile="companion") as memory:
        await memory.user("ann").add("user", "I live in Berlin.")
        await memory.user("ann").add("assistant", "Nice.")
        await memory.upkeep()
    lines = told(caplog, "aforesaid.extraction")
    assert any(re.match(r"ann: \d messages, 1 remembered, 0 wait for approval", line) for line in lines), lines
    assert not [line for line in lines if "Berlin" in line]


@pytest.mark.req("D13")
async def test_the_log_of_performance_tells_how_long_operations_took(
    location: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with aforesaid.connect(location) as memory:
        await memory.user("ann").add("user", "hello")
        await memory.user("ann").search("hello")
    lines = told(caplog, "aforesaid.performance")
    assert [line.split(" took ")[0] for line in lines] == ["add", "search"]
    assert all(re.fullmatch(r"\w+ took \d+\.\d{4} s", line) for line in lines)


@pytest.mark.req("C6", "D13")
async def test_whose_summaries_fail_is_told_once_and_that_they_work_again(
    location: str, caplog: pytest.LogCaptureFixture
) -> None:
    scribe = Scribe()
    scribe.down = True
    async with remembering(location, {"extends": "archive", "tree_turns": 1}, chat=scribe) as memory:
        await memory.user("ann").add("user", "A secret.")
        await memory.user("ann").add("assistant", "I keep it.")
        for _ in range(3):
            await memory.upkeep()
        scribe.down = False
        await memory.upkeep()
    assert told(caplog, "aforesaid.health") == [
        "the summaries of default ann were active and are failing now: test:scribe does not answer",
        "the summaries of default ann were failing and are active now",
    ]


async def test_no_log_repeats_what_people_said(location: str, caplog: pytest.LogCaptureFixture) -> None:
    async with aforesaid.connect(location, profile="companion") as memory:
        ann = memory.user("ann")
        await ann.add("user", "My password is swordfish, and I live in Berlin.")
        await ann.add("assistant", "I will not repeat swordfish.")
        await ann.remember("likes swordfish")
        await memory.upkeep()
        await ann.search("swordfish")
        await ann.context("What about swordfish?")
        await ann.portrait()
        await memory.health()
    assert caplog.records
    assert not [record.getMessage() for record in caplog.records if "swordfish" in record.getMessage().lower()]


@pytest.mark.req("D13")
def test_every_log_is_documented() -> None:
    page = (ROOT / "docs/reference/logs.md").read_text(encoding="utf-8")
    names = set()
    for path in (ROOT / "src/aforesaid").rglob("*.py"):
        names |= set(re.findall(r'getLogger\("(aforesaid[\w.]*)"\)', path.read_text(encoding="utf-8")))
    assert {"aforesaid.extraction", "aforesaid.sessions", "aforesaid.errors", "aforesaid.performance"} <= names
    for name in names:
        # A log below one that is documented, such as `aforesaid.server.access`, is told about there.
        assert any(f"| `{name.rsplit('.', depth)[0]}` |" in page for depth in range(max(1, name.count(".")))), name
