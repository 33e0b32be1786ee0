"""Every public method declares in one way how it is timed, audited and checked, and does what it declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import aforesaid
from aforesaid.blocking import SyncUserMemory
from aforesaid.errors import InvalidInput
from aforesaid.front.handle import IN_METHOD, Handle, UserHandle, declaration_of, public
from aforesaid.memory import Memory, UserMemory
from aforesaid.telemetry import OWN, Key


def methods(kind: type) -> dict[str, Callable[..., Any]]:
    """Return the public methods of a class, those of its bases included."""
    return {name: each for name, each in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


def async_classes() -> list[type]:
    exported = [getattr(aforesaid, name) for name in aforesaid.__all__]
    return [each for each in exported if inspect.isclass(each) and issubclass(each, Handle)]


def undeclared(named: dict[str, Callable[..., Any]]) -> list[str]:
    return [name for name, method in named.items() if declaration_of(method) is None]


def test_every_public_method_has_a_declaration() -> None:
    assert async_classes() == [Memory, UserMemory]
    assert {kind.__name__: undeclared(methods(kind)) for kind in async_classes()} == {"Memory": [], "UserMemory": []}


def test_every_public_method_of_the_blocking_classes_has_the_declaration_of_the_async_one() -> None:
    def facade(blocking: Any, kind: type) -> Iterator[tuple[str, object, object]]:  # noqa: ANN401
        for name in dir(blocking):
            if inspect.isfunction(getattr(kind, name, None)) and name != "close":
                yield name, declaration_of(getattr(blocking, name)), declaration_of(getattr(kind, name))

    with aforesaid.open(":memory:", embedder="none", settings={"background": False}) as memory:
        found = [*facade(memory, Memory), *facade(memory.user("ann"), UserMemory)]
    assert len(found) == len(methods(Memory)) + len(methods(UserMemory)) - 1
    assert [name for name, blocking, declared in found if blocking is None or blocking != declared] == []
    own = {name for kind in (aforesaid.SyncMemory, SyncUserMemory) for name in vars(kind) if not name.startswith("_")}
    assert own == {"close"}, "everything else is forwarded to the async classes"


def test_a_method_without_a_declaration_is_found() -> None:
    class Careless(UserMemory):
        async def read_everything(self) -> None: ...

    assert undeclared(methods(Careless)) == ["read_everything"]


@pytest.mark.parametrize("declared", [{}, {"audit": IN_METHOD, "unaudited": "counts alone"}], ids=["neither", "both"])
def test_a_declaration_says_whether_the_method_is_audited(declared: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="either `audit` or the reason"):
        public(**declared)


class Probe(UserHandle):
    """A handle with one method of each kind."""

    @public(audit=("probe.read", "probe {number}"))
    async def viewed(self, number: int) -> int:
        return number

    @public(unaudited="counts alone", operation="other_name")
    async def counted(self, at: datetime) -> datetime:
        return at

    @public(unaudited="counts alone", untimed="reads nothing")
    async def silent(self) -> None: ...


async def test_a_declared_method_is_timed_audited_and_checked() -> None:
    async with aforesaid.connect(":memory:", embedder="none", settings={"background": False}) as memory:
        ann = memory.user("ann", actor="tester")
        await ann.add("user", "hello")
        probe = Probe(memory._services, ann.scope, "tester")
        assert await probe.viewed(7) == 7
        await probe.counted(datetime.now(UTC))
        await probe.silent()
        with pytest.raises(InvalidInput):
            await probe.viewed("seven")  # type: ignore[arg-type]
        rows = [(row.actor, row.action, row.subject) for row in await ann.audit()]
        assert rows == [("tester", "probe.read", "probe 7")], "a refused call leaves no row"
        counts = memory.metrics.snapshot()
        assert (counts[Key("viewed", OWN)].calls, counts[Key("viewed", OWN)].failures) == (2, {"invalid": 1})
        assert counts[Key("other_name", OWN)].calls == 1
        assert Key("silent", OWN) not in counts


async def test_a_view_without_an_actor_leaves_no_row() -> None:
    async with aforesaid.connect(":memory:", embedder="none", settings={"background": False}) as memory:
        ann = memory.user("ann")
        await ann.add("user", "hello")
        await Probe(memory._services, ann.scope).viewed(7)
        assert await ann.audit() == []
