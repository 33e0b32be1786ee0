"""The tree: the document's own examples, and what holds whatever happens."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.digest.tree import FoldMessages, FoldSummaries, Open, TreeLedger, TreeRules, chunk, decide
from aforesaid.domain.checks import Role
from aforesaid.store.people import PutSetting
from digesting import Scribe, remembering, talk

RULES = TreeRules()
EXCHANGE = (Open("user", 10), Open("assistant", 10))


def ledger(open_: tuple[Open, ...] = (), /, **levels: int) -> TreeLedger:
    return TreeLedger(tuple((int(level[1:]), count) for level, count in levels.items()), open_)


@pytest.mark.req("A6")
@pytest.mark.defect("Q6")
@pytest.mark.parametrize(
    ("said", "taken"),
    [
        (EXCHANGE * 9, 0),
        ((*EXCHANGE * 9, Open("user", 10)), 0),
        (EXCHANGE * 10, 20),
        (EXCHANGE * 13, 26),
        ((*EXCHANGE * 10, Open("user", 10)), 20),
        ((Open("system", 10), *EXCHANGE * 10), 21),
        ((Open("assistant", 10),) * 30, 0),
        (EXCHANGE * 20, 20),
        ((Open("user", 10),) * 9, 0),
        ((Open("user", 10),) * 10, 10),
        ((*EXCHANGE * 3, *(Open("user", 10),) * 7), 0),
        ((*EXCHANGE * 3, *(Open("user", 10),) * 8), 13),
        ((Open("user", 10), Open("assistant", 10), Open("tool", 10), Open("assistant", 10)) * 25, 40),
    ],
    ids=[
        "too few",
        "not answered",
        "answered",
        "late",
        "the next has begun",
        "others do not count",
        "nobody asked",
        "many at a time",
        "too few, and nobody answers",
        "nobody answers",
        "the last may be answered",
        "the assistant answers no more",
        "several answers",
    ],
)
def test_messages_are_folded_when_enough_turns_were_answered(said: tuple[Open, ...], taken: int) -> None:
    assert chunk(said, RULES) == taken
    assert decide(ledger(said), RULES).plan == (FoldMessages(taken) if taken else None)


def test_on_request_everything_is_folded_at_once() -> None:
    assert decide(ledger(EXCHANGE[:1]), RULES, asked=True).plan == FoldMessages(1)
    assert decide(ledger(), RULES, asked=True).plan is None


def test_long_messages_are_folded_fewer_at_a_time_and_always_at_least_one() -> None:
    assert chunk((Open("user", 20_000), Open("assistant", 10)) * 10, RULES) == 4
    assert chunk((Open("user", 90_000), Open("assistant", 10)) * 10, RULES) == 1


@pytest.mark.req("A8")
def test_more_than_five_of_a_level_become_one_of_the_next() -> None:
    assert decide(ledger(L1=5), RULES).plan is None
    assert decide(ledger(L1=6), RULES).plan == FoldSummaries(1, 5)
    assert decide(ledger(L1=1, L2=6), RULES).plan == FoldSummaries(2, 5)
    assert decide(ledger(L7=6), RULES).plan == FoldSummaries(7, 5)
    assert decide(ledger(L1=5, L2=5, L3=1), RULES).plan == FoldSummaries(2, 5)
    assert decide(ledger(EXCHANGE * 10, L1=5, L2=5), RULES).plan == FoldSummaries(2, 5)
    single = {f"L{level}": 1 for level in range(1, 12)}
    assert decide(ledger(**single), RULES).plan == FoldSummaries(11, 2, mixed=True)


@pytest.mark.req("A3", "A8")
@given(st.lists(st.sampled_from(["user", "assistant", "exchange", "exchange"]), max_size=4000), st.integers(1, 12))
def test_whatever_is_said_there_are_never_too_many_summaries(said: list[str], turns: int) -> None:
    """The policy by itself, against a model of a store: nothing is covered twice, and the oldest go first."""
    rules, levels, waiting = TreeRules(turns=turns), dict[int, int](), list[Open]()
    for what in said:
        roles: tuple[Role, ...] = ("user", "assistant") if what == "exchange" else (what,)  # type: ignore[assignment]
        waiting += [Open(role, 10) for role in roles]
        while True:
            counts = tuple(sorted((level, count) for level, count in levels.items() if count))
            match decide(TreeLedger(counts, tuple(waiting)), rules).plan:
                case FoldMessages(count):
                    assert 0 < count <= len(waiting)
                    del waiting[:count]
                    levels[1] = levels.get(1, 0) + 1
                case FoldSummaries(level, count):
                    assert 1 < count <= levels[level]
                    levels[level] -= count
                    levels[level + 1] = levels.get(level + 1, 0) + 1
                case _:
                    break
            assert sum(levels.values()) <= rules.active
        assert max(levels.values(), default=0) <= rules.level


@pytest.mark.req("A7")
async def test_the_documents_example_of_four_messages(location: str) -> None:
    """Before: A, B, C, D active, no summaries. After, with a threshold of 2: all of them in chunk 1, one summary."""
    async with remembering(location, {"extends": "archive", "tree_turns": 2}) as memory:
        ann = memory.user("ann")
        for role, text in (("user", "A"), ("assistant", "B"), ("user", "C")):
            await ann.add(role, text)  # type: ignore[arg-type]
        assert (await memory.upkeep()).summarised == 0
        await ann.add("assistant", "D")
        before = await ann.history()
        assert [(message.text, message.active) for message in before] == [(text, True) for text in "ABCD"]
        assert (await memory.upkeep()).summarised == 1
        after = await ann.history()
        assert [(each.text, each.active, each.chunk) for each in after] == [(text, False, 1) for text in "ABCD"]
        (summary,) = await ann.summaries()
        assert (summary.level, summary.chunks, summary.active, summary.messages) == (1, (1,), True, 4)
        assert summary.began_at == before[0].at
        assert summary.ended_at == before[-1].at
        for role, text in (("user", "E"), ("assistant", "F"), ("user", "G"), ("assistant", "H")):
            await ann.add(role, text)  # type: ignore[arg-type]
        assert (await memory.upkeep()).summarised == 1
        chunks = [(each.text, each.active, each.chunk) for each in await ann.history()]
        assert chunks == [(text, False, 1) for text in "ABCD"] + [(text, False, 2) for text in "EFGH"]
        assert [each.chunks for each in await ann.summaries()] == [(1,), (2,)]
        assert (await memory.verify()).ok


@pytest.mark.req("A3", "A8")
async def test_the_documents_progression_to_a_second_level(location: str) -> None:
    """Five level 1 summaries stay; with the sixth, the five oldest become one of level 2."""
    scribe = Scribe()
    async with remembering(location, "archive", chat=scribe) as memory:
        ann = memory.user("ann")
        for part in range(5):
            await talk(ann, 10, first=10 * part + 1)
            await memory.upkeep()
        assert [summary.level for summary in await ann.summaries()] == [1] * 5
        await talk(ann, 10, first=51)
        await memory.upkeep()
        two, one = await ann.summaries()
        assert (two.level, one.level) == (2, 1)
        assert two.chunks == (1, 2, 3, 4, 5)
        assert (two.messages, one.messages, one.chunks) == (100, 20, (6,))
        below = await ann.summaries(active=False)
        assert [(each.level, each.text) for each in below] == [(1, f"S{n}") for n in range(1, 6)]
        assert two.sources == tuple(each.id for each in below)
        # The model was shown the five oldest summaries, with the time that each covers.
        assert [f">S{n}</summary>" in scribe.asked[-1][1] for n in range(1, 7)] == [True] * 5 + [False]
        assert scribe.asked[-1][1].count('<summary from="2') == 5


async def test_a_long_history_becomes_a_few_summaries_of_ever_higher_levels(location: str) -> None:
    async with remembering(location, {"extends": "archive", "tree_turns": 1}) as memory:
        ann = memory.user("ann")
        for number in range(160):
            await talk(ann, 1, first=number)
            if number % 3 == 0:
                await memory.upkeep()
                assert len(await ann.summaries()) <= 10
        await memory.upkeep()
        active = await ann.summaries()
        assert active[0].level >= 3
        ranges = sorted((summary.first, summary.last) for summary in active)
        assert all(before[1] < after[0] for before, after in pairwise(ranges)), "no message lies below two of them"
        assert sum(summary.messages for summary in active) == 320
        assert (await memory.verify()).ok


@pytest.mark.req("A6")
async def test_a_user_has_their_own_threshold_and_can_switch_it_off(location: str) -> None:
    async with remembering(location, "archive") as memory:
        ann, bob, cleo = (memory.user(name) for name in ("ann", "bob", "cleo"))
        await memory.store.apply([PutSetting(bob.scope, "summary_every_n", 3)])
        await memory.store.apply([PutSetting(cleo.scope, "summary_every_n", 1)])
        await memory.store.apply([PutSetting(cleo.scope, "memory_enabled", False)])
        for user in (ann, bob, cleo):
            await talk(user, 3)
        await memory.upkeep()
        assert [len(await user.summaries()) for user in (ann, bob, cleo)] == [0, 1, 0]
        await memory.store.apply([PutSetting(cleo.scope, "memory_enabled", True)])
        await talk(cleo, 1)
        await memory.upkeep()
        assert [summary.messages for summary in await cleo.summaries()] == [2, 2, 2, 2]


async def test_summarising_now_takes_whatever_there_is(location: str) -> None:
    async with remembering(location, "archive") as memory:
        ann = memory.user("ann")
        assert await ann.summarize() == []
        await ann.add("user", "I have a cat named Miso.")
        (made,) = await ann.summarize()
        assert (made.level, made.messages) == (1, 1)
        assert "Miso" in made.text
        assert await ann.summarize() == []
    async with remembering(location, "companion") as other:
        # A profile that never summarises by itself does it when it is asked.
        await other.user("bob").add("user", "My dog is called Rex.")
        assert [summary.kind for summary in await other.user("bob").summarize()] == ["tree"]
        assert (await other.upkeep()).summarised == 0


@pytest.mark.defect("M12")
async def test_a_level_above_tells_a_resolved_matter_as_resolved(location: str) -> None:
    profile = {"summaries": "tree", "tree_turns": 1, "tree_level": 2, "extract": False}
    async with remembering(location, profile) as memory:
        ann = memory.user("ann")
        lost = await ann.add("user", "The red bicycle from Utrecht was stolen at the station.", name="Ann")
        worry = await ann.note("fact", "Ann's red bicycle was stolen.", source=lost.message)
        await memory.upkeep()
        assert "stolen" in (await ann.summaries())[0].text
        await ann.add("user", "The police in Leiden returned my red bicycle on Monday.", name="Ann")
        await ann.end_memory(worry.id)
        await memory.upkeep()
        await ann.add("user", "My sister Carla opens a bakery in Gouda.", name="Ann")
        await memory.upkeep()
        above = (await ann.summaries())[0]
        assert above.level == 2
        assert "returned my red bicycle" in above.text
        assert "stolen" not in above.text
