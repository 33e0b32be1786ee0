"""What people and models read goes by when it was said, on every store and after imports that store newest first."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

import aforesaid
from aforesaid.digest.sources import shown
from aforesaid.domain.checks import LATEST, microseconds
from aforesaid.domain.message import Position
from aforesaid.domain.scope import Scope
from aforesaid.store import Store, open_store
from aforesaid.store.messages import Messages, MessagesAfter, MessagesBetween, Sessions
from aforesaid.store.summaries import CoveredMessages
from making import adding, archive, minutes

ANN = Scope.of("ann")
GENERAL = Scope.of("ann", thread="general")

pytestmark = [pytest.mark.req("G12"), pytest.mark.defect("N3")]


async def say(store: Store, *moments: int, scope: Scope = ANN) -> None:
    for moment in moments:
        await store.apply([adding(scope, f"at {moment}", at=minutes(moment))])


def moments(messages: list[aforesaid.Message]) -> list[int]:
    return [int(message.text.removeprefix("at ")) for message in messages]


async def test_messages_come_by_when_they_were_said(store: Store) -> None:
    await say(store, 50, 10, 30, 20, 40)
    assert moments(await store.read(Messages(ANN))) == [10, 20, 30, 40, 50]
    assert moments(await store.read(Messages(ANN, limit=2))) == [40, 50]


async def test_messages_of_one_moment_come_in_the_order_of_storing(store: Store) -> None:
    for text in ("first", "second", "third"):
        await store.apply([adding(ANN, text, at=minutes(0))])
    assert [message.text for message in await store.read(Messages(ANN))] == ["first", "second", "third"]
    assert [message.text for message in await store.read(Messages(ANN, before=3))] == ["first", "second"]


async def test_a_conversation_can_be_read_page_by_page_in_order_of_time(store: Store) -> None:
    await say(store, *range(30, 0, -1))
    await say(store, 15, scope=Scope.of("bob"))
    for within in ("user", "thread"):
        seen: list[int] = []
        page = await store.read(Messages(ANN, limit=7, within=within))
        while page:
            seen = moments(page) + seen
            by_number = await store.read(Messages(ANN, limit=7, within=within, before=page[0].seq))
            page = await store.read(Messages(ANN, limit=7, within=within, before=page[0].position))
            assert by_number == page
        assert seen == list(range(1, 31))


async def test_before_a_number_that_is_not_in_the_scope_means_up_to_what_was_stored_before_it(store: Store) -> None:
    await say(store, 5, 3)
    await say(store, 4, scope=Scope.of("bob"))
    await say(store, 1)
    assert moments(await store.read(Messages(ANN, before=3))) == [1, 3], (
        "3 is Bob's; the one stored before it is said at 3"
    )
    assert moments(await store.read(Messages(ANN, before=99))) == [1], "the one stored last"
    assert await store.read(Messages(Scope.of("bob"), before=2)) == []
    position = Position(microseconds(minutes(4), "at"), 0)
    assert moments(await store.read(Messages(ANN, before=position))) == [1, 3]


async def test_archived_messages_can_be_left_out_in_order_of_time(store: Store) -> None:
    await say(store, 4, 3, 2, 1)
    await archive(store, ANN, (await store.read(Messages(ANN)))[1:3])
    assert moments(await store.read(Messages(ANN, archived=False))) == [1, 4]
    assert moments(await store.read(Messages(ANN, archived=False, before=1))) == [1]


async def test_threads_and_sessions_are_read_in_order_of_time(store: Store) -> None:
    await say(store, 300, 10, scope=GENERAL)
    await say(store, 20, 290, scope=Scope.of("bob", thread="general"))
    assert moments(await store.read(Messages(GENERAL, within="thread"))) == [10, 20, 290, 300]
    first, last = await store.read(Sessions(GENERAL, within="thread"))
    assert (first.started_at, last.started_at) == (minutes(10), minutes(290))
    (newest,) = await store.read(Sessions(GENERAL, within="thread", limit=1))
    assert newest == last, "the newest session is the one in which something was said last"
    for session, expected in ((first, [10, 20]), (last, [290, 300])):
        scope = Scope.of("ann", thread="general", session=session.id)
        assert moments(await store.read(Messages(scope, within="session"))) == expected


async def test_what_a_summary_covers_and_a_day_are_read_in_order_of_time(store: Store) -> None:
    await say(store, 3, 1, 2)
    summary = await archive(store, ANN, await store.read(Messages(ANN)))
    assert (summary.first, summary.last) == (1, 3)
    assert moments(await store.read(CoveredMessages(ANN, summary.id))) == [1, 2, 3]
    assert moments(await store.read(MessagesBetween("default", 0, LATEST))) == [1, 2, 3]
    assert [line.text for line in shown(await store.read(MessagesAfter(ANN, 0, 10)), UTC)] == [
        "at 1",
        "at 2",
        "at 3",
    ]


async def test_windows_of_an_account_hold_what_was_said_last(tmp_path: Path) -> None:
    async with aforesaid.connect(f"files:{tmp_path / 'memory'}", profile="account") as memory:
        for minute in range(60, 0, -1):
            await memory.user("ann").add("user", f"at {minute}", at=minutes(minute))
        tiers = await memory.user("ann").tiers()
        assert moments(list(tiers.short_term)) == list(range(11, 61))
        assert moments(list(tiers.mid_term)) == list(range(1, 11))
    window = json.loads((tmp_path / "memory/account_ann/short_term.json").read_text())
    assert [record["content"] for record in window["messages"]] == [f"at {minute}" for minute in range(11, 61)]


async def test_history_and_contexts_after_an_import_of_a_newest_first_export(location: str, tmp_path: Path) -> None:
    export = tmp_path / "conversations.json"
    export.write_text(json.dumps([_conversation(year) for year in (2025, 2023, 2022)]))
    async with aforesaid.connect(location) as memory:
        await memory.load(export, format="chatgpt", user="ann")
        ann = memory.user("ann")
        assert [message.at.year for message in await ann.history()] == [2022, 2023, 2025]
        assert [message.at.year for message in await ann.history(1)] == [2025]
        newest = (await ann.history(1))[0]
        for before in (newest, newest.id, newest.seq):
            assert [message.at.year for message in await ann.history(before=before)] == [2022, 2023]
        context = await ann.context("What did I say?", budget=2000)
        recent = [item.text for item in context.items if item.section == "recent"]
        assert [text.removeprefix("said in ") for text in recent] == ["2022", "2023", "2025"]


def _conversation(year: int) -> dict[str, object]:
    """A conversation of one message, as ChatGPT exports it: the newest conversation comes first in the file."""
    said = datetime(year, 5, 1, tzinfo=UTC).timestamp()
    message = {
        "id": f"m-{year}",
        "author": {"role": "user"},
        "create_time": said,
        "content": {"content_type": "text", "parts": [f"said in {year}"]},
    }
    node: dict[str, object] = {"id": f"n-{year}", "message": message, "parent": None, "children": []}
    return {
        "id": f"c-{year}",
        "conversation_id": f"c-{year}",
        "title": str(year),
        "create_time": said,
        "update_time": said,
        "current_node": f"n-{year}",
        "mapping": {f"n-{year}": node},
    }


@pytest.mark.parametrize(
    ("condition", "index"),
    [("log.owner = 1", "log_by_owner_time"), ("log.shared = 1 AND log.thread = 1", "log_by_time")],
)
async def test_sqlite_reads_the_newest_by_an_index_without_sorting(path: Path, condition: str, index: str) -> None:
    store = await open_store(str(path))
    await say(store, 1, scope=GENERAL)
    await store.close()
    query = f"""
    EXPLAIN QUERY PLAN SELECT seq FROM log INDEXED BY {index} WHERE {condition} AND (at, seq) < (5, 6)
     ORDER BY at DESC, seq DESC LIMIT 10
    """
    steps = [row[3] for row in apsw.Connection(str(path)).execute(query)]
    assert len(steps) == 1
    assert index in steps[0]
