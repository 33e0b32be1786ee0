from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("crewai.memory.storage.backend", reason="CrewAI is not installed (make test-integrations)")

from crewai.memory.storage.backend import StorageBackend
from crewai.memory.types import MemoryRecord
from crewai.memory.unified_memory import Memory

import aforesaid
from aforesaid.errors import InvalidInput, NotFound
from aforesaid.integrations.crewai import AforesaidStorage

NOW = datetime(2026, 1, 2, tzinfo=UTC)
RECORDS = [
    MemoryRecord(
        id="home", content="Ann lives in Bern", scope="/team/ann", categories=["place"], metadata={"by": "tool"},
        importance=0.9, created_at=NOW, embedding=[1.0, 0.0, 0.0], source="ann", private=True,
    ),
    MemoryRecord(
        id="pet", content="Bob has a tortoise", scope="/team/bob", categories=["pet", "bob"], embedding=[0.0, 1.0, 0.5]
    ),
    MemoryRecord(id="sky", content="It is sunny", scope="/weather", embedding=[0.5, 0.5, 0.5]),
]  # fmt: skip


@pytest.fixture
def storage(memory: aforesaid.SyncMemory) -> AforesaidStorage:
    filled = AforesaidStorage(memory)
    filled.save(RECORDS)
    return filled


def test_it_is_a_backend_of_crewai(storage: AforesaidStorage) -> None:
    assert isinstance(storage, StorageBackend)


def test_records_come_back_as_they_were_saved(storage: AforesaidStorage) -> None:
    assert [storage.get_record(each.id) for each in RECORDS] == RECORDS
    assert storage.get_record("nothing") is None
    assert {each.id for each in storage.list_records()} == {"home", "pet", "sky"}
    assert storage.list_records("/team", limit=1, offset=1) == [RECORDS[0]]


def test_a_conversation_with_tools_comes_back_as_it_was_saved(storage: AforesaidStorage) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}
    said = [
        {"role": "user", "content": "What is the weather in Bern?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Sunny"},
        {"role": "assistant", "content": "It is sunny in Bern."},
    ]
    record = MemoryRecord(id="talk", content="It is sunny in Bern.", metadata={"messages": said}, embedding=[1.0, 0, 0])
    storage.save([record])
    assert storage.get_record("talk") == record
    assert record in [found for found, _ in storage.search([1.0, 0.0, 0.0])]


def test_the_nearest_records_are_found_within_a_scope_and_filters(storage: AforesaidStorage) -> None:
    found = storage.search([0.0, 1.0, 0.5], limit=2)
    assert [(record.id, round(score, 3)) for record, score in found] == [("pet", 1.0), ("sky", 0.775)]
    assert [record.id for record, _ in storage.search([0.0, 1.0, 0.5], "/team", min_score=-1.0)] == ["pet", "home"]
    assert [record.id for record, _ in storage.search([1.0, 0.0, 0.0], categories=["pet"])] == ["pet"]
    assert [record.id for record, _ in storage.search([1.0, 0.0, 0.0], metadata_filter={"by": "tool"})] == ["home"]
    with pytest.raises(InvalidInput, match="3 numbers"):
        storage.search([1.0])


def test_scopes_and_categories_are_counted(storage: AforesaidStorage) -> None:
    assert storage.list_scopes() == ["/team", "/weather"]
    assert storage.list_scopes("/team") == ["/team/ann", "/team/bob"]
    assert storage.list_categories("/team") == {"place": 1, "pet": 1, "bob": 1}
    assert (storage.count(), storage.count("/team"), storage.count("/tea")) == (3, 2, 0)
    info = storage.get_scope_info("/team")
    assert (info.record_count, info.child_scopes) == (2, ["/team/ann", "/team/bob"])


def test_records_are_updated_and_deleted(storage: AforesaidStorage) -> None:
    storage.update(RECORDS[1].model_copy(update={"content": "Bob has two tortoises"}))
    (updated,) = storage.list_records("/team/bob")
    assert updated.content == "Bob has two tortoises"
    with pytest.raises(NotFound):
        storage.update(MemoryRecord(content="never saved"))
    assert storage.delete(older_than=NOW + timedelta(days=1)) == 1
    assert storage.delete(record_ids=["pet", "nothing"]) == 1
    storage.reset("/weather")
    assert storage.count() == 0
    storage.save(RECORDS)
    assert storage.count() == 3


def test_crewai_remembers_and_recalls(memory: aforesaid.SyncMemory) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]

    notes = Memory(storage=AforesaidStorage(memory), embedder=embed)
    notes.remember("Ann lives in Bern", scope="/ann", categories=["place"], importance=0.5)
    notes.remember("Zzz zzz", scope="/ann", categories=["noise"], importance=0.5)
    found = notes.recall("Where does Ann live?", depth="shallow", limit=1)
    assert [match.record.content for match in found] == ["Ann lives in Bern"]
    assert memory.user("crewai").search("Bern")[0].text == "Ann lives in Bern"


def test_a_person_can_own_records_and_is_not_muted(memory: aforesaid.SyncMemory) -> None:
    memory.user("ann").add("user", "I live in Bern.")
    storage = AforesaidStorage(memory, user="ann")
    storage.save([MemoryRecord(content="Ann has a tortoise", embedding=[1.0])])
    assert storage.count() == 1
    assert memory.user("ann").settings() == {}
