"""Every question and change works on every store, from one SQL text; a new one is a class in one file."""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from inspect import isabstract
from pathlib import Path
from typing import Any

import apsw
import pytest

from aforesaid.domain.memory import MOST_IMPORTANCE, MemoryDraft
from aforesaid.domain.scope import Scope
from aforesaid.errors import NotFound
from aforesaid.store import contract, dumping, open_store, placing, retention
from aforesaid.store.contract import Store
from aforesaid.store.memories import AddMemory, Memories, MemoryById, MemoryVersions
from aforesaid.store.messages import AddMessage, Messages
from aforesaid.store.operations import Change, OfScope, OfScopeShort, OfSpace, Question
from aforesaid.store.postgres import Options, PostgresStore
from aforesaid.store.searches import ChangeToken
from aforesaid.store.sql import for_postgres, for_sqlite
from aforesaid.store.sqlite.connection import Options as SqliteOptions
from aforesaid.store.sqlite.connection import answered, connect, migrate
from aforesaid.store.sqlite.search import CACHED, OWN
from making import add, adding

ANN = Scope.of("ann")
BASES = {Question, OfScope, OfScopeShort, OfSpace}
assert all((contract, dumping, placing, retention))  # every file with questions and changes is imported


def derived(base: type) -> Iterator[type[Any]]:
    subclasses: list[type[Any]] = base.__subclasses__()
    for each in subclasses:
        # `slots=True` makes a class anew: the first one is nowhere to be found.
        if vars(sys.modules[each.__module__]).get(each.__name__) is each and each.__module__.startswith("aforesaid."):
            yield each
            yield from derived(each)


def has_no_answer(question: type[Question[Any]]) -> bool:
    return question.answer is Question.answer and question not in BASES and not isabstract(question)


# The change token is read from the file system, without a connection.
async def test_what_has_no_answer_of_its_own_is_answered_by_each_database() -> None:
    without = set(filter(has_no_answer, derived(Question)))
    assert without
    assert without <= {*OWN, *CACHED, ChangeToken}
    assert without <= {*PostgresStore("postgresql://nowhere", Options())._own}


def test_every_change_says_what_it_does() -> None:
    assert {each for each in derived(Change) if each.carry_out is Change.carry_out} == {AddMessage}


def example(marked: str) -> Any:  # noqa: ANN401 - what CONTRIBUTING.md defines
    guide = Path(__file__).parents[2].joinpath("CONTRIBUTING.md").read_text("utf-8")
    (code,) = [each for each in re.findall(r"```python\n(.*?)```", guide, re.DOTALL) if f"class {marked}" in each]
    named: dict[str, Any] = {"__name__": __name__}
    exec(compile(code, "CONTRIBUTING.md", "exec"), named)  # noqa: S102
    return named[marked]


@pytest.fixture(scope="module")
def pin_memory() -> Callable[..., Change]:
    """The change that CONTRIBUTING.md adds as an example."""
    change: Callable[..., Change] = example("PinMemory")
    return change


async def test_a_new_kind_of_change_is_one_class_for_all_stores(
    store: Store, pin_memory: Callable[..., Change]
) -> None:
    memory = (await store.apply([AddMemory(MemoryDraft(ANN, "fact", "Ann sings."))])).memory
    receipt = await store.apply([pin_memory(ANN, memory.id)])
    assert receipt.memory.importance == MOST_IMPORTANCE
    assert await store.read(MemoryById(ANN, memory.id)) == receipt.memory
    assert [version.action for version in await store.read(MemoryVersions(ANN, memory.id))] == ["pin"]


async def test_a_change_set_that_a_change_refuses_is_not_stored(
    store: Store, pin_memory: Callable[..., Change]
) -> None:
    with pytest.raises(NotFound):
        await store.apply([AddMemory(MemoryDraft(ANN, "fact", "Ann sings.")), pin_memory(ANN, 99)])
    assert await store.read(Memories(ANN)) == []


async def test_a_new_question_is_one_class_for_all_stores(store: Store) -> None:
    longest = example("LongestMessage")
    assert await store.read(longest(ANN)) == 0
    await store.apply([adding(ANN, text) for text in ("Hi.", "I moved to Lisbon.", "Yes.")])
    assert await store.read(longest(ANN)) == len("I moved to Lisbon.")


TEXT = "SELECT [[y.chunks[1] ~ json_extract(y.chunks, '$[0]')]] FROM summary y WHERE [[y.space = $1 AND ]]y.id = $2"


def test_a_text_has_parts_for_each_database() -> None:
    assert for_postgres(TEXT) == "SELECT y.chunks[1] FROM summary y WHERE y.space = $1 AND y.id = $2"
    assert for_sqlite(TEXT) == "SELECT json_extract(y.chunks, '$[0]') FROM summary y WHERE y.id = ?2"


def test_parts_can_be_on_lines_of_their_own() -> None:
    text = "SELECT 1\n[[FROM space\n~ FROM person]]"
    assert for_postgres(text) == "SELECT 1\nFROM space"
    assert for_sqlite(text) == "SELECT 1\nFROM person"


def test_sqlite_compiles_a_statement_once_whatever_its_values(path: Path) -> None:
    connection = connect(path, SqliteOptions(), create=True)
    migrate(connection, path)
    compiled: list[int] = []

    def note(operation: int, *_: str | None) -> int:
        compiled.append(operation)  # SQLite asks for rights while it compiles, and not while it runs
        return apsw.SQLITE_OK

    connection.authorizer = note
    answered(connection, Messages(Scope.of("ann")).answer())
    assert compiled
    compiled.clear()
    answered(connection, Messages(Scope.of("bob")).answer())
    connection.close()
    assert not compiled


BOB = Scope.of("bob", space="other")
CHANGES: dict[str, Callable[[Store], Awaitable[object]]] = {
    "the same user": lambda store: add(store, ANN, "again"),
    "another user and space": lambda store: add(store, BOB, "hello"),
    "purging": lambda store: store.purge(ANN),
}


def is_shared(location: str) -> bool:
    """Tell whether several processes can open the store at once."""
    return location.startswith(("sqlite:", "postgresql:"))


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_by_another_connection_changes_the_token_of_a_shared_store(
    store: Store, location: str, change: str
) -> None:
    await add(store, ANN, "hello")
    before = await store.read(ChangeToken())
    if not is_shared(location):
        await CHANGES[change](store)
        assert await store.read(ChangeToken()) == before, "the only process that can write knows what it writes"
        return
    other = await open_store(location)
    try:
        await CHANGES[change](other)
    finally:
        await other.close()
    assert await store.read(ChangeToken()) != before
