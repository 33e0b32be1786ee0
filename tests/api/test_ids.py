"""Ids that look the same are the same; ids that a store already has in another spelling stay reachable."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import aforesaid
from aforesaid.domain.checks import Within
from aforesaid.domain.details import is_regular, regular
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput
from aforesaid.store import open_store
from aforesaid.store.people import IrregularIds
from making import adding

COMPOSED, DECOMPOSED = "Zo\u00eb", "Zoe\u0308"

pytestmark = pytest.mark.defect("P11")


@pytest.mark.parametrize("spelling", [DECOMPOSED, f" {COMPOSED}", f"{DECOMPOSED}\u00a0", f"\u3000{COMPOSED} "])
def test_two_spellings_of_a_name_are_one_person(spelling: str) -> None:
    with aforesaid.open(":memory:") as memory:
        memory.user(COMPOSED).add("user", "I play the viola")
        memory.user(spelling).add("user", "and the oboe")
        memory.user(spelling).note("fact", "Plays in an orchestra")
        assert [(user.id, user.messages) for user in memory.users()] == [(COMPOSED, 2)]
        assert [each.text for each in memory.user(COMPOSED).history()] == ["I play the viola", "and the oboe"]
        assert [each.user for each in memory.memories(user=spelling)] == [COMPOSED]
        assert memory.purge(spelling).messages == 2


def test_spaces_threads_sessions_and_authors_have_one_spelling() -> None:
    with aforesaid.open(":memory:") as memory:
        for space, thread, session in (
            ("caf\u00e9", "g\u00e9n", "\u00e9t\u00e9"),
            ("cafe\u0301 ", " ge\u0301n", "e\u0301te\u0301"),
        ):
            memory.user("ann", space=space, thread=thread, session=session).add("user", "hello", author=DECOMPOSED)
        (user,) = memory.users()
        assert (user.space, user.messages) == ("caf\u00e9", 2)
        stored = memory.user("ann", space="cafe\u0301", thread="ge\u0301n").history(within="thread")
        assert {(each.thread, each.session, each.author) for each in stored} == {
            ("g\u00e9n", "\u00e9t\u00e9", COMPOSED)
        }
        memory.set("bot_persona", "a waiter", space="cafe\u0301")
        assert memory.settings("caf\u00e9") == {"bot_persona": "a waiter"}


@pytest.mark.parametrize("kind", ["memory.db", "json:memory.json", "files:memory"])
def test_irregular_ids_of_an_older_version_stay_reachable(kind: str, tmp_path: Path) -> None:
    scheme, colon, name = kind.rpartition(":")
    location = f"{scheme}{colon}{tmp_path / name}"
    old = [
        Scope.of(DECOMPOSED),
        Scope.of(" ann"),
        Scope.of("ann"),
        Scope.of("tom", " lab", thread="e\u0301t", session="s "),
    ]

    async def as_before() -> None:
        store = await open_store(location)
        for scope in old:
            await store.apply([adding(scope, f"said by {scope.user!r}")])
        assert await store.read(IrregularIds()) == {
            DECOMPOSED,
            f"direct:{DECOMPOSED}",
            " ann",
            " lab",
            "e\u0301t",
            "s ",
        }
        await store.close()

    asyncio.run(as_before())
    with aforesaid.open(location) as memory:
        for scope in old:
            there = memory.user(scope.user, space=scope.space, thread=scope.thread, session=scope.session)
            within: Within = "user" if scope.session is None else "session"
            assert [each.text for each in there.history(within=within)] == [f"said by {scope.user!r}"]
        memory.user("  ann").add("user", "a spelling that nobody had before")
        assert memory.user("ann").status().messages == 2
        memory.user(f" {COMPOSED}").add("user", "and the composed one is new")
        assert [user.id for user in memory.users("default")] == sorted([" ann", "ann", DECOMPOSED, COMPOSED])


def test_an_export_of_an_older_version_brings_its_spellings_along(tmp_path: Path) -> None:
    async def as_before() -> None:
        store = await open_store(tmp_path / "old.db")
        await store.apply([adding(Scope.of(DECOMPOSED), "I play the viola")])
        await store.close()

    asyncio.run(as_before())
    with aforesaid.open(tmp_path / "old.db") as memory:
        memory.export(tmp_path / "old.jsonl")
    with aforesaid.open(tmp_path / "new.db") as memory:
        memory.load(tmp_path / "old.jsonl")
        assert [each.text for each in memory.user(DECOMPOSED).history()] == ["I play the viola"]


def test_the_authors_of_an_imported_chat_have_one_spelling(tmp_path: Path) -> None:
    chat = tmp_path / "chat.txt"
    lines = [f"01/02/2026, 10:0{minute} - {who}: hello {minute}" for minute, who in enumerate((COMPOSED, DECOMPOSED))]
    chat.write_text("\n".join(lines), encoding="utf-8")
    with aforesaid.open(":memory:") as memory:
        memory.load(chat, format="whatsapp")
        assert [(user.id, user.messages) for user in memory.users()] == [(COMPOSED, 2)]


def test_an_id_of_spaces_alone_is_refused() -> None:
    with aforesaid.open(":memory:") as memory, pytest.raises(InvalidInput, match="the user id is empty"):
        memory.user(" \u3000")


def test_numbers_and_other_scripts_keep_their_spelling() -> None:
    for name in ("12345", "\u30e6\u30ad", "\u0645\u0631\u064a\u0645", "\U0001f60a", "a b"):
        assert is_regular(name)
        assert regular(name) == name
    with aforesaid.open(":memory:") as memory:
        assert memory.user(12345).scope.user == "12345"
