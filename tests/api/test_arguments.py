"""Every public method refuses bad arguments with our own short error, on every store, and the store stays usable."""

from __future__ import annotations

import inspect
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import aforesaid
from aforesaid.domain.arguments import argument_check
from aforesaid.domain.details import KnownIds
from aforesaid.domain.message import Message
from aforesaid.errors import AforesaidError, InvalidInput, TooLarge, quoted
from aforesaid.memory import Memory, UserMemory

MOST_REPEATED: Final = 200
"""Maximum characters of the input that an error may repeat."""
MOST_SAID: Final = 1_000
"""Maximum characters of an error text."""
LEFT_OUT: Final = {"close", "user", "chat", "backup", "upkeep", "verify"}
"""Methods that end the memory, make a handle, or are called after the others here."""
WRITTEN: Final = "".join(chr(97 + number * 7 % 26) for number in range(300))
"""A text without a long period, to see how much of it an error repeats."""
LARGE: Final = ("é" * 600_000, ["x" * 10_000] * 120)
"""Eighteen times what a message may have. `--torture` makes them ten times larger."""


def public_methods(kind: type) -> dict[str, Callable[..., Awaitable[Any]]]:
    """Return the public methods of a class that take arguments."""
    found = inspect.getmembers(kind, inspect.isfunction)
    return {
        name: method
        for name, method in found
        if not name.startswith("_") and len(inspect.signature(method).parameters) > 1
    }


METHODS: Final = [
    (kind, name) for kind in (Memory, UserMemory) for name in public_methods(kind) if name not in LEFT_OUT
]

naive = st.datetimes()
far = st.sampled_from(
    [
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
        datetime.min,  # noqa: DTZ901
        datetime.max,  # noqa: DTZ901
    ]
)
numbers = st.sampled_from(
    [0, -1, 1, 2**31, 2**63 - 1, 2**63, -(2**63), 10**10_000, -(10**10_000), 0.5, math.nan, math.inf, -math.inf, 1e308]
)
texts = st.sampled_from(
    [
        "",
        " ",
        "a",
        "\0",
        "a\0b",
        "\ud800",
        "half \udfff pair",
        "👩‍👩‍👧",
        "é" * 300,
        WRITTEN,
        WRITTEN * 300,
        "#1",
        "*",
        "../x",
    ]
)
plain = st.one_of(st.none(), st.booleans(), numbers, texts, naive, far, st.just(date(2026, 1, 1)), st.just(b"bytes"))
hostile = st.one_of(
    plain,
    st.lists(plain, max_size=3),
    st.tuples(plain),
    st.dictionaries(st.sampled_from(["a", "b"]), plain, max_size=2),
    st.just({"a": [{"b": [10**10_000]}]}),
    st.just({1, 2}),
    st.builds(object),
    st.sampled_from(
        ["fact", "tree", "user", "thread", "default", "ann", "context_budget", "time_zone", "tomorrow at 9"]
    ),
)
"""Values of every kind that no caller should pass, and some that fit."""


def repeated(given: object, text: str) -> int:
    """Return how many characters of an input an error repeats in one piece."""
    if not isinstance(given, str) or len(given) < MOST_REPEATED:
        return 0
    longest = 0
    for start in range(min(len(given), len(WRITTEN))):
        while given[start : start + longest + 1] in text and longest <= MOST_REPEATED and start + longest < len(given):
            longest += 1
    return longest


async def attempt(method: Callable[..., Awaitable[Any]], arguments: dict[str, object]) -> bool:
    """Call a method. Tell whether it succeeded; any error but a short one of ours fails the test."""
    try:
        await method(**arguments)
    except AforesaidError as error:
        said = str(error)
    else:
        return True
    assert max((repeated(value, said) for value in arguments.values()), default=0) <= MOST_REPEATED, said[:2_000]
    assert len(said) <= MOST_SAID, said[:2_000]
    return False


async def filled(memory: Memory) -> UserMemory:
    """Store something of every kind, so that calls with a valid number reach it."""
    ann = memory.user("ann", actor="tester")
    for number in range(3):
        await ann.add("user", f"I like tea number {number}.")
    await ann.note("fact", "Ann likes tea.", tags=["tea"])
    await ann.note("reminder", "Call mum.", when=datetime(2040, 1, 1, tzinfo=UTC))
    await ann.update_summary("Ann likes tea.", 2)
    return ann


def arguments_of(draw: Callable[[st.SearchStrategy[Any]], Any], kind: type, name: str) -> dict[str, object]:
    """Choose arguments for a method: those that it needs, and some of the others."""
    parameters = list(inspect.signature(getattr(kind, name)).parameters.values())[1:]
    wanted = [each for each in parameters if each.default is inspect.Parameter.empty or draw(st.booleans())]
    usual = {"memory": 1, "summary": 1, "text": "tea", "key": "own", "role": "user", "category": "fact", "covers": 2}
    # One wrong argument among good ones goes further than many wrong ones.
    good = st.sampled_from([True, False])
    return {
        each.name: usual[each.name] if each.name in usual and draw(good) else draw(hostile)
        for each in wanted
        if each.name not in {"path", "progress"}
    }


@pytest.fixture
async def memory(location: str) -> AsyncIterator[Memory]:
    quiet = {"background": False, "fallback": "none"}
    async with aforesaid.connect(location, embedder="none", settings=quiet) as opened:
        yield opened


@pytest.mark.every_store
@pytest.mark.defect("D1", "D8")
async def test_whatever_is_passed_to_a_public_method_gives_our_short_error_and_the_store_opens_and_moves(
    location: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    quiet = {"background": False, "fallback": "none"}
    full = pytestconfig.getoption("--torture")
    memory = await aforesaid.connect(location, embedder="none", settings=quiet)
    ann = await filled(memory)
    calls: list[tuple[type, str, dict[str, object]]] = []

    @settings(
        max_examples=round(20_000 * pytestconfig.getoption("--torture-scale")) if full else 120,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        kind, name = data.draw(st.sampled_from(METHODS))
        calls.append((kind, name, arguments_of(data.draw, kind, name)))

    collect()
    done, lately = 0, list[str]()
    for number, (kind, name, arguments) in enumerate(calls, 1):
        owner: object = memory if kind is Memory else ann
        if name in {"export", "load"}:
            arguments["path"] = str(tmp_path / "none" / "x")
        if await attempt(getattr(owner, name), arguments):
            done += 1
            lately.append(f"{name} { {key: quoted(value) for key, value in arguments.items()} }")
        if number % 250 == 0 and full:
            verified = await memory.verify()
            assert verified.ok, "\n".join([str(verified), *lately])
            lately.clear()
    usual: dict[str, object] = {"covers": 2, "key": "own", "role": "user", "category": "fact"}
    for large in [each * 10 for each in LARGE] if full else LARGE:
        for method in (ann.add, ann.search, ann.note, ann.set, ann.remember, ann.context, ann.update_summary):
            needed = [
                each.name
                for each in inspect.signature(method).parameters.values()
                if each.default is inspect.Parameter.empty
            ]
            await attempt(method, {name: usual.get(name, large) for name in needed})
    assert done > len(calls) / 50, "some of the calls are valid"
    if location != ":memory:":
        await memory.close()
        memory = await aforesaid.connect(location, embedder="none", settings=quiet)
    assert (await memory.verify()).ok
    await memory.export(tmp_path / "all.jsonl")
    async with aforesaid.connect(f"json:{tmp_path / 'other.json'}", embedder="none", settings=quiet) as other:
        loaded = await other.load(tmp_path / "all.jsonl")
        assert loaded.problems == 0, loaded.examples
        assert (await other.verify()).ok
    await memory.close()


Call = Callable[[UserMemory], Awaitable[object]]
WRONG: Final[dict[str, Call]] = {
    "a time without a zone": lambda ann: ann.edit_memory(1, expires=datetime(2030, 1, 1)),  # noqa: DTZ001
    "a number as a tag": lambda ann: ann.edit_memory(1, tags=[1]),  # type: ignore[list-item]
    "a mapping as a setting": lambda ann: ann.set("own", {"a": 1}),  # type: ignore[arg-type]
    "a date as a setting": lambda ann: ann.set("own", date(2026, 1, 1)),  # type: ignore[arg-type]
    "a list as a model": lambda ann: ann.update_summary("x", 2, model=["x"]),  # type: ignore[arg-type]
    "half a pair in a summary": lambda ann: ann.update_summary("x \ud800", 2),
    "half a pair in a model": lambda ann: ann.update_summary("x", 2, model="\ud800"),
    "a text as what is answered": lambda ann: ann.context("x", answers="x"),  # type: ignore[arg-type]
    "a list as a counted model": lambda ann: ann.context("x", model=["x"]),  # type: ignore[arg-type]
    "a text as a day": lambda ann: ann.summaries(day="today"),  # type: ignore[arg-type]
    "a number for what is left out": lambda ann: ann.search("x", without=5),  # type: ignore[arg-type]
    "a number of 10,000 digits": lambda ann: ann.history(10**10_000),
    "a negative number of 10,000 digits": lambda ann: ann.history(-(10**10_000)),
    "a setting of 10,000 digits": lambda ann: ann.set("own", 10**10_000),
    "a budget of 10,000 digits": lambda ann: ann.set("context_budget", -(10**10_000)),
    "a similarity of 10,000 digits": lambda ann: ann.search("x", similarity=10**10_000),
}


@pytest.mark.defect("D1", "D8")
@pytest.mark.parametrize("call", WRONG.values(), ids=list(WRONG))
async def test_an_argument_that_a_store_could_not_read_back_is_refused_and_the_memory_opens_again(
    call: Call, location: str
) -> None:
    quiet = {"background": False, "fallback": "none"}
    async with aforesaid.connect(location, embedder="none", settings=quiet) as memory:
        ann = await filled(memory)
        with pytest.raises(InvalidInput):
            await call(ann)
        assert (await memory.verify()).ok
    if location != ":memory:":
        async with aforesaid.connect(location, embedder="none", settings=quiet) as memory:
            assert len(await memory.user("ann").history()) == 3


@pytest.mark.defect("D8")
@pytest.mark.parametrize("method", ["history", "note", "set", "search", "load", "summaries"])
async def test_an_error_repeats_little_of_a_long_input(method: str, memory: Memory, tmp_path: Path) -> None:
    ann, long = memory.user("ann"), WRITTEN * 300
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "history": lambda: ann.history(before=long[:255]),
        "note": lambda: ann.note(long, "x"),  # type: ignore[arg-type]
        "set": lambda: ann.set("time_zone", long),
        "search": lambda: ann.search("x", arms=long),  # type: ignore[arg-type]
        "load": lambda: memory.load(tmp_path / "x", long),
        "summaries": lambda: ann.summaries(kind=long),  # type: ignore[arg-type]
    }
    with pytest.raises(AforesaidError) as raised:
        await calls[method]()
    assert repeated(long, str(raised.value)) <= MOST_REPEATED
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    "value",
    [10**10_000, [10**10_000], "x" * 10**6, b"x" * 10**6, ["x" * 10**6], {"a": None}, None, "\ud800", math.nan],
    ids=range(9),
)
def test_a_quoted_value_is_short_whatever_it_is(value: object) -> None:
    assert 1 <= len(quoted(value)) <= 80


def test_a_value_whose_own_description_fails_is_quoted_by_its_type() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    assert quoted(Broken()) == "a Broken"


def sample(
    text: str = "",
    *,
    anything: str = "",
    number: int = 0,
    share: float | None = None,
    at: datetime | None = None,
    day: date | None = None,
    message: Message | str | int | None = None,
) -> None:
    """Has an argument of each kind of annotation."""


check: Final = argument_check(sample, "anything")


def test_checked_arguments_reach_the_method_as_they_are() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    named = {"anything": "\0", "number": 5, "share": 1, "at": at, "day": at.date(), "message": "#1"}
    assert check(KnownIds(), ("a",), named) == ("a",)
    assert named == {"anything": "\0", "number": 5, "share": 1.0, "at": at, "day": at.date(), "message": "#1"}


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"text": None}, "text must be a string, not NoneType"),
        ({"text": "a\0"}, "the text has a NUL character at position 1"),
        ({"anything": 5}, "anything must be a string, not int"),
        ({"number": True}, "number must be a whole number, not bool"),
        ({"number": 2**63}, "the number must be at most"),
        ({"share": math.nan}, "the share must be a finite number, not nan"),
        ({"at": datetime(2026, 1, 1)}, "at has no time zone"),  # noqa: DTZ001
        ({"day": datetime(2026, 1, 1, tzinfo=UTC)}, "day must be a date, not datetime"),
        ({"message": 1.5}, "message must be a message or a string or a whole number, not float"),
    ],
)
def test_a_checked_method_says_which_argument_is_wrong_and_why(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        check(KnownIds(), (), wrong)


async def test_a_list_argument_has_a_maximum_length(memory: Memory) -> None:
    with pytest.raises(TooLarge, match="without has more than 10,000 items"):
        await memory.user("ann").search("x", without=(str(number) for number in range(10_001)))  # type: ignore[arg-type]


async def test_a_memory_of_blanks_is_refused() -> None:
    async with aforesaid.connect(":memory:", embedder="none") as memory:
        ann = memory.user("ann")
        sails = await ann.note("fact", "Sails")
        with pytest.raises(InvalidInput, match="the text is empty") as refused:
            await ann.note("fact", " \u3000\n")
        assert refused.value.field == "text"
        with pytest.raises(InvalidInput, match="the text is empty"):
            await ann.edit_memory(sails.id, text="\t")
        assert await ann.memories() == [sails]


@pytest.mark.defect("D1")
@pytest.mark.parametrize(
    ("zone", "edge"),
    [
        ("America/New_York", datetime.min.replace(tzinfo=UTC)),
        ("Asia/Tokyo", datetime.max.replace(tzinfo=UTC)),
    ],
)
async def test_a_message_of_the_first_or_the_last_day_of_the_calendar_breaks_nothing_in_any_time_zone(
    zone: str, edge: datetime
) -> None:
    async with aforesaid.connect(":memory:", embedder="none", settings={"background": False}) as memory:
        ann = memory.user("ann")
        await ann.set("time_zone", zone)
        await ann.add("user", "I moved to Galway, and I have a dentist appointment on Monday.", at=edge)
        await memory.upkeep()
        assert "Galway" in str((await ann.context("Where did I move?")).messages)
        assert (await ann.context("What is on Monday?", at=edge)).messages
        await ann.schedule("Monday", at=edge)
        await ann.reminders(at=edge)


@pytest.mark.defect("D1")
async def test_an_id_that_is_a_huge_negative_number_is_refused_in_words() -> None:
    async with aforesaid.connect(":memory:", embedder="none", settings={"background": False}) as memory:
        with pytest.raises(InvalidInput, match="must be at least"):
            await memory.user("ann").erase([-(10**10_000)])
