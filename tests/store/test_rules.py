"""Every store can perform what rules ask and write, and rules need nothing else of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from aforesaid.domain.change import Change
from aforesaid.domain.memory import MOST_IMPORTANCE, AddMemory, MemoryDraft
from aforesaid.domain.scope import Scope
from aforesaid.errors import NotFound
from aforesaid.store.contract import Store
from aforesaid.store.postgres.answers import LOOKUPS as POSTGRES_LOOKUPS
from aforesaid.store.postgres.writer import WRITES as POSTGRES_WRITES
from aforesaid.store.questions import Memories, MemoryById, MemoryVersions, MessagesByNumber, Question
from aforesaid.store.rules import RULES, writes
from aforesaid.store.rules.writes import AddMemoryRow, KeepUser, Operation, RecordAudit, Write, run
from aforesaid.store.sqlite.answers import LOOKUPS as SQLITE_LOOKUPS
from aforesaid.store.sqlite.change_sets import WRITES as SQLITE_WRITES

ANN = Scope.of("ann")


def defined_in(module: ModuleType, base: type) -> set[type]:
    every = (each for each in vars(module).values() if isinstance(each, type) and issubclass(each, base))
    return {each for each in every if each.__module__ == module.__name__} - {base}


@pytest.mark.parametrize("table", [SQLITE_WRITES, POSTGRES_WRITES], ids=["sqlite", "postgres"])
def test_every_store_performs_every_write(table: dict[type, Any]) -> None:
    assert set(table) == defined_in(writes, Write)


@pytest.mark.parametrize("table", [SQLITE_LOOKUPS, POSTGRES_LOOKUPS], ids=["sqlite", "postgres"])
def test_every_store_answers_every_lookup(table: dict[type, Any]) -> None:
    assert set(table) == defined_in(writes, Question)


def test_a_rule_yields_questions_and_writes_and_returns_the_result() -> None:
    seen: list[Operation] = []

    def perform(operation: Operation) -> object:
        seen.append(operation)
        return 7 if isinstance(operation, AddMemoryRow) else None

    change: Change = AddMemory(MemoryDraft(ANN, "fact", "Ann sings."))
    memory = run(RULES[AddMemory](change), perform)
    assert memory.id == 7
    assert memory.text == "Ann sings."
    assert [type(each) for each in seen] == [KeepUser, AddMemoryRow, RecordAudit]


def test_a_rule_that_refuses_a_change_writes_nothing_after_it() -> None:
    seen: list[type] = []

    def perform(operation: Operation) -> object:
        seen.append(type(operation))
        return [] if isinstance(operation, MessagesByNumber) else None

    with pytest.raises(NotFound, match="is not one of this user's messages"):
        run(RULES[AddMemory](AddMemory(MemoryDraft(ANN, "fact", "Ann sings.", sources=(1,)))), perform)
    assert AddMemoryRow not in seen


@pytest.fixture
def pin_memory(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Change]:
    """The change that CONTRIBUTING.md adds as an example."""
    guide = Path(__file__).parents[2].joinpath("CONTRIBUTING.md").read_text("utf-8")
    (code,) = [each for each in re.findall(r"```python\n(.*?)```", guide, re.DOTALL) if "class PinMemory" in each]
    named: dict[str, Any] = {"__name__": __name__}
    exec(compile(code, "CONTRIBUTING.md", "exec"), named)  # noqa: S102
    monkeypatch.setitem(cast("dict[type, Any]", RULES), named["PinMemory"], named["pin"])
    change: Callable[..., Change] = named["PinMemory"]
    return change


async def test_a_new_kind_of_change_needs_one_function_for_all_stores(
    store: Store, pin_memory: Callable[..., Change]
) -> None:
    memory = (await store.apply([AddMemory(MemoryDraft(ANN, "fact", "Ann sings."))])).memory
    receipt = await store.apply([pin_memory(ANN, memory.id)])
    assert receipt.memory.importance == MOST_IMPORTANCE
    assert await store.read(MemoryById(ANN, memory.id)) == receipt.memory
    assert [version.action for version in await store.read(MemoryVersions(ANN, memory.id))] == ["pin"]


async def test_a_change_set_that_a_rule_refuses_is_not_stored(store: Store, pin_memory: Callable[..., Change]) -> None:
    with pytest.raises(NotFound):
        await store.apply([AddMemory(MemoryDraft(ANN, "fact", "Ann sings.")), pin_memory(ANN, 99)])
    assert await store.read(Memories(ANN)) == []
