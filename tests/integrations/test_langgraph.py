from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="LangGraph is not installed (make test-integrations)")

import aforesaid
from aforesaid.errors import InvalidInput
from aforesaid.integrations.langgraph import AforesaidStore

VALUES: dict[str, Any] = {
    "plain": {"text": "Ann lives in Bern"},
    "nested": {"a": [1, 2.5, None, True, {"b": "ü"}], "empty": {}, "none": None},
    "long key " + "x" * 400: {"n": -1},
    "": {"text": "a key may be empty"},
    "#12": {"text": "a key that looks like the id of a message"},
    "tab\tand\nline": {"text": "control characters"},
}


TOOL_CONVERSATION: list[dict[str, Any]] = [
    {"role": "user", "content": "What is the weather in Bern?", "name": "Ann"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "weather", "arguments": '{"city": "Bern", "days": 2}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "Sunny"}]},
    {"role": "assistant", "content": "It is sunny in Bern.", "refusal": None},
]


def test_a_conversation_with_tools_comes_back_as_it_was_put(memory: aforesaid.SyncMemory) -> None:
    store = AforesaidStore(memory)
    for number, message in enumerate(TOOL_CONVERSATION):
        store.put(("chats", "ann", "1"), f"{number:04}", message)
    found = sorted(store.search(("chats", "ann")), key=lambda item: item.key)
    assert [item.value for item in found] == TOOL_CONVERSATION
    assert store.search(("chats",), query="sunny", limit=1)[0].value in TOOL_CONVERSATION[2:]


def test_any_value_comes_back_under_any_key(memory: aforesaid.SyncMemory) -> None:
    store = AforesaidStore(memory)
    for key, value in VALUES.items():
        store.put(("things",), key, value)
    assert {key: store.get(("things",), key).value for key in VALUES} == VALUES
    assert {item.key: item.value for item in store.search(("things",))} == VALUES


def test_a_value_that_is_put_again_is_the_only_one(memory: aforesaid.SyncMemory) -> None:
    store = AforesaidStore(memory)
    for number in range(5):
        store.put(("things",), "key", {"number": number})
    item = store.get(("things",), "key")
    assert item.value == {"number": 4}
    assert item.updated_at > item.created_at
    assert [found.value for found in store.search(("things",))] == [{"number": 4}]


def test_a_deleted_value_is_gone_and_can_be_put_again(memory: aforesaid.SyncMemory) -> None:
    store = AforesaidStore(memory)
    for text in ("first", "second", "third"):
        store.put(("things",), "key", {"text": text})
        assert store.get(("things",), "key").value == {"text": text}
        store.delete(("things",), "key")
        assert store.get(("things",), "key") is None
        assert store.search((), query=text) == []
        assert store.list_namespaces() == []


def test_values_are_found_by_what_they_say(memory: aforesaid.SyncMemory) -> None:
    store = AforesaidStore(memory)
    store.put(("users", "ann"), "home", {"text": "Ann lives in Bern", "year": 2024})
    store.put(("users", "bob"), "pet", {"text": "Bob has a tortoise", "year": 2020})
    found = store.search(("users",), query="tortoise")
    assert found[0].key == "pet"
    assert found[0].score > 0
    assert [item.key for item in store.search(("users",), query="tortoise", filter={"year": {"$gt": 2021}})] == ["home"]


def test_only_the_indexed_fields_are_found(memory: aforesaid.SyncMemory) -> None:
    store = AforesaidStore(memory, index={"fields": ["title"]})
    store.put(("books",), "one", {"title": "Tortoises", "note": "borrowed from the library"})
    store.put(("books",), "two", {"title": "Bern", "note": "about a tortoise"}, index=False)
    found = store.search(("books",), query="tortoises library")
    assert [(item.key, item.score is None) for item in found] == [("one", False), ("two", True)]


def test_what_was_put_is_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with aforesaid.open(path) as opened:
        AforesaidStore(opened).put(("a", "b"), "key", {"text": "kept"})
    with aforesaid.open(path) as opened:
        store = AforesaidStore(opened)
        assert store.get(("a", "b"), "key").value == {"text": "kept"}
        assert store.list_namespaces() == [("a", "b")]


def test_two_programs_that_put_the_same_new_key_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with aforesaid.open(path) as one, aforesaid.open(path) as other:
        stores = [AforesaidStore(one), AforesaidStore(other)]
        for number in range(4):
            stores[number % 2].put(("things",), "key", {"number": number})
            assert [store.get(("things",), "key").value for store in stores] == [{"number": number}] * 2


def test_documents_are_no_reason_to_learn(memory: aforesaid.SyncMemory) -> None:
    AforesaidStore(memory).put(("things",), "key", {"text": "My name is Ann and I live in Bern."})
    memory.upkeep()
    assert memory.user("langgraph").portrait() is None
    assert memory.user("langgraph").memories() == []


@pytest.mark.anyio
async def test_a_memory_from_connect_is_awaited() -> None:
    async with aforesaid.connect(":memory:") as opened:
        store = AforesaidStore(opened)
        await store.aput(("things",), "key", {"text": "kept"})
        assert (await store.aget(("things",), "key")).value == {"text": "kept"}
        with pytest.raises(InvalidInput, match=r"aforesaid\.open") as caught:
            store.get(("things",), "key")
        assert isinstance(caught.value, asyncio.InvalidStateError), "as LangGraph's async stores raise it"


def test_a_filter_with_an_unknown_operator_is_refused(memory: aforesaid.SyncMemory) -> None:
    store = AforesaidStore(memory)
    store.put(("things",), "key", {"n": 1})
    with pytest.raises(InvalidInput, match=r"\$near"):
        store.search(("things",), filter={"n": {"$near": 1}})
    assert store.search(("things",), filter={"n": {"$gt": "text"}}) == []


def test_a_filter_with_a_quotation_mark_in_a_key_is_refused(memory: aforesaid.SyncMemory) -> None:
    store = AforesaidStore(memory)
    store.put(("things",), "key", {"access": "private"})
    for refused in ({"access') = '' OR '1'='1": "x"}, {"nested": {'a"b': 1}}):
        with pytest.raises(ValueError, match="Invalid filter key"):
            store.search(("things",), filter=refused)


def test_a_person_can_own_items_and_is_not_muted(memory: aforesaid.SyncMemory) -> None:
    ann = memory.user("ann")
    ann.add("user", "I live in Bern.")
    ann.chat("[not json").add("user", "Hello.")
    store = AforesaidStore(memory, user="ann")
    store.put(("things",), "key", {"text": "a tortoise"})
    assert [item.key for item in store.search((), query="tortoise")] == ["key"]
    assert store.list_namespaces() == [("things",)]
    assert ann.settings() == {}
    assert [each.text for each in ann.history()] == ["I live in Bern.", "Hello.", "a tortoise"]


def test_a_long_value_is_stored_whole_and_found_by_its_beginning(memory: aforesaid.SyncMemory) -> None:
    store = AforesaidStore(memory)
    value = {"text": "tortoise " + "x" * 200_000}
    store.put(("things",), "key", value)
    (found,) = store.search(("things",), query="tortoise")
    assert found.value == value


@pytest.mark.defect("I2")
def test_a_purge_erases_the_items_of_namespaces_that_name_the_user(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with aforesaid.open(path) as memory:
        store = AforesaidStore(memory)
        of_ann = [(("users", "ann"), "home"), (("memories", "ann", "pets"), "a"), (("ann", "memories"), "b")]
        others = [(("users", "bob"), "home"), (("projects", "ann"), "plan"), (("users",), "bob")]
        for namespace, key in (*of_ann, (("users",), "ann"), *others):
            store.put(namespace, key, {"text": f"a tortoise in {'/'.join(namespace)}"})
        store.put(("users", "ann"), "home", {"text": "secretword"})
        store.put(("users", "ann"), "gone", {"text": "secretword"})
        store.delete(("users", "ann"), "gone")
        memory.export(tmp_path / "ann.jsonl", user="ann")
        exported = (tmp_path / "ann.jsonl").read_text("utf-8")
        assert all(f"a tortoise in {'/'.join(namespace)}" in exported for namespace, _ in of_ann)
        assert "projects/ann" not in exported
        memory.purge("ann")
        assert {(item.namespace, item.key) for item in store.search((), limit=100)} == {*others}
        assert store.get(("users", "ann"), "home") is None
        store.put(("users", "ann"), "home", {"text": "new"})
        assert store.get(("users", "ann"), "home").value == {"text": "new"}
    assert b"secretword" not in path.read_bytes()


@pytest.mark.defect("I2")
def test_an_app_says_whom_its_namespaces_name(memory: aforesaid.SyncMemory) -> None:
    store = AforesaidStore(memory, user_of=lambda namespace, _: namespace[0])
    store.put(("ann", "notes"), "key", {"text": "hers"})
    store.put(("bob", "notes"), "key", {"text": "his"})
    memory.purge("ann")
    assert [item.namespace for item in store.search(())] == [("bob", "notes")]
