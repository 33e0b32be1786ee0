"""What gets in and what is left out, item by item, with numbers that can be followed by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aforesaid import Memory, connect
from aforesaid.context.assemble import Assembled, Assembler
from aforesaid.context.context import Context, Item, LeftOut, SectionReport
from aforesaid.context.sections import Offers, RenderCache
from aforesaid.domain.hit import Hit
from aforesaid.domain.scope import Scope
from aforesaid.models.tokens import counter_for
from aforesaid.profiles import load_profile
from aforesaid.profiles.recipe import SectionName
from aforesaid.store import open_store
from making import add

NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)
SHARES = {"system": 100, "summaries": 100, "snippets": 100, "recent": 100}

Offered = dict[SectionName, list[Item]]


def item(section: SectionName, key: str, tokens: int = 10, **more: Any) -> Item:  # noqa: ANN401 - fields of an item
    return Item(section=section, key=key, text=more.pop("text", key), tokens=tokens, **more)


def several(section: SectionName, count: int, tokens: int = 10) -> list[Item]:
    """Items of a section, the most wanted first."""
    return [item(section, f"{section} {number}", tokens, place=-number) for number in range(1, count + 1)]


def added_up(items: Sequence[Item]) -> int:
    return sum(each.tokens for each in items)


def assemble(
    offered: Offered,
    budget: int = 1_000,
    *,
    overhead: int = 0,
    count: Callable[[Sequence[Item]], int] = added_up,
    **changes: object,
) -> Assembled:
    profile = {"extends": "archive", "context": {"budget": 1_000, "tokens": SHARES, **changes}}
    recipe = load_profile(profile).context
    assembler = Assembler(recipe, budget, counter_for(), now=NOON, overhead=lambda _: overhead, count=count)
    return assembler.assemble({"current": [item("current", "now")], **offered})


def kept(made: Assembled, section: SectionName) -> list[str]:
    return [each.key for each in made.items if each.section == section]


def reasons(made: Assembled) -> dict[str, str]:
    return {left.item.key: left.reason for left in made.left_out}


@pytest.mark.req("A11")
def test_what_is_too_much_goes_snippets_first_then_recent_messages_then_the_oldest_summaries() -> None:
    offered: Offered = {
        "snippets": several("snippets", 3),
        "recent": several("recent", 3),
        "summaries": several("summaries", 3),
    }
    for gone in range(8):
        # The whole, as it is sent, is longer than its parts, by as much as this many of them.
        made = assemble(offered, count=lambda items, gone=gone: added_up(items) + 900 + 10 * gone)  # type: ignore[misc]
        trimmed = [left.item.key for left in made.left_out]
        # The last exchange, recent 1 and 2, always stays.
        order = ["snippets 3", "snippets 2", "snippets 1", "recent 3", "summaries 3", "summaries 2", "summaries 1"]
        assert trimmed == order[:gone]
        assert set(kept(made, "current")) == {"now"}
        assert made.tokens <= 1_000
        assert all(reason.endswith("was trimmed to keep the budget") for reason in reasons(made).values())
        assert sum(report.tokens for report in made.reports) == added_up(made.items)
        assert sum(report.left_out for report in made.reports) == gone


def test_recent_messages_that_are_also_hits_leave_no_holes_in_the_conversation() -> None:
    def message(section: SectionName, number: int) -> Item:
        return item(section, f"message {number}", 100, place=number, shows=frozenset((number,)))

    newest_first = [message("recent", number) for number in range(14, 0, -1)]
    hits = [message("snippets", number) for number in (10, 8, 6)]
    made = assemble({"recent": newest_first, "snippets": hits}, tokens={**SHARES, "recent": 200, "snippets": 300})
    assert kept(made, "recent") == [f"message {number}" for number in range(6, 15)]
    assert kept(made, "snippets") == []


def test_what_has_a_low_priority_goes_before_what_is_wanted_less() -> None:
    offered: Offered = {"snippets": [item("snippets", "best", priority=1), *several("snippets", 2)]}
    made = assemble(offered, count=lambda items: added_up(items) + 961)
    assert [left.item.key for left in made.left_out] == ["best"]


def test_a_section_keeps_to_its_share_and_gets_what_others_do_not_need() -> None:
    snippets = several("snippets", 15)
    made = assemble({"snippets": snippets})
    assert len(kept(made, "snippets")) == 15
    assert {report.name: (report.budget, report.tokens) for report in made.reports}["snippets"] == (100, 150)
    # Where all of them want more than their share, the one that is trimmed last is given more.
    greedy: Offered = {
        "snippets": several("snippets", 100),
        "recent": several("recent", 100),
        "summaries": several("summaries", 100),
    }
    made = assemble(greedy)
    assert (len(kept(made, "snippets")), len(kept(made, "recent")), len(kept(made, "summaries"))) == (10, 10, 79)
    assert made.tokens == 1_000
    assert reasons(made)["snippets 11"] == "no room left for snippets"
    assert sum(report.left_out for report in made.reports) == 300 - 99


def test_a_section_without_a_share_gets_nothing() -> None:
    made = assemble({"snippets": several("snippets", 1)}, tokens={**SHARES, "snippets": 0})
    assert kept(made, "snippets") == []


def test_an_item_that_fills_the_budget_to_the_last_token_gets_in() -> None:
    exact: Offered = {"snippets": [item("snippets", "exact", 990)]}
    assert kept(assemble(exact), "snippets") == ["exact"]
    over: Offered = {"snippets": [item("snippets", "over", 991)]}
    assert kept(assemble(over), "snippets") == []


def test_the_first_item_of_a_section_pays_for_what_is_around_it() -> None:
    made = assemble({"snippets": several("snippets", 2)}, overhead=7)
    spent = {report.name: report.tokens for report in made.reports}
    assert (spent["snippets"], spent["current"]) == (27, 17)
    made = assemble({"snippets": several("snippets", 2)}, overhead=7, count=lambda items: added_up(items) + 980)
    assert {report.name: report.tokens for report in made.reports}["snippets"] == 17


def test_a_conversation_has_no_holes() -> None:
    recent = [*several("recent", 2), item("recent", "long", 2_000), item("recent", "oldest")]
    assert kept(assemble({"recent": recent}), "recent") == ["recent 2", "recent 1"]
    snippets = [item("snippets", "best"), item("snippets", "long", 2_000), item("snippets", "worst")]
    assert set(kept(assemble({"snippets": snippets}), "snippets")) == {"best", "worst"}


WORDS = "so many words " * 800


def long(section: SectionName, key: str, **more: Any) -> Item:  # noqa: ANN401 - fields of an item
    return item(section, key, counter_for().count(WORDS) + 5, text=WORDS, **more)


@pytest.mark.defect("K2")
def test_both_messages_of_the_last_exchange_are_cut_rather_than_left_out() -> None:
    made = assemble({"recent": [long("recent", "reply", role="assistant", place=2), long("recent", "asked", place=1)]})
    assert kept(made, "recent") == ["asked", "reply"]
    for each in made.items:
        assert each.section != "recent" or (each.cut and each.text.endswith("[…]"))
    assert made.tokens <= 1_000


@pytest.mark.defect("K2")
def test_a_cut_message_takes_what_nobody_else_needs() -> None:
    made = assemble({"recent": [long("recent", "newest"), item("recent", "older", 5)]})
    assert made.tokens > 950
    assert set(kept(made, "recent")) == {"newest", "older"}


def test_a_long_exchange_keeps_to_the_share_of_recent_messages_where_others_want_the_rest() -> None:
    exchange = [long("recent", "reply", role="assistant", place=2), long("recent", "asked", place=1)]
    made = assemble({"recent": exchange, "summaries": several("summaries", 100)})
    assert kept(made, "recent") == ["asked", "reply"]
    assert sum(each.tokens for each in made.items if each.section == "recent") <= SHARES["recent"]


def test_an_exchange_for_which_nothing_is_left_is_reported() -> None:
    made = assemble({"current": [item("current", "long question", 995)], "recent": several("recent", 3)})
    assert kept(made, "recent") == []
    assert reasons(made) == {f"recent {number}": "no room left for recent" for number in (1, 2, 3)}
    assert made.tokens == 995


@pytest.mark.defect("K2")
def test_what_trimming_frees_is_filled_again() -> None:
    # Counted as a whole it is less than its parts were taken for.
    made = assemble({"snippets": several("snippets", 100)}, count=lambda items: added_up(items) // 2)
    assert len(kept(made, "snippets")) == 100
    assert made.tokens == 505, "with what was filled in at the end"


def test_the_best_hit_is_cut_rather_than_left_out_and_no_other() -> None:
    made = assemble({"snippets": [long("snippets", "best"), long("snippets", "second")]})
    assert kept(made, "snippets") == ["best"]
    assert made.items[0].cut


def test_what_stands_for_messages_that_get_in_later_makes_room() -> None:
    offered: Offered = {
        "summaries": [item("summaries", "of both", 60, covers=frozenset({1, 2}))],
        "snippets": [
            item("snippets", "found 1", 60, place=1, shows=frozenset({1})),
            item("snippets", "found 2", 60, place=2, shows=frozenset({2})),
            item("snippets", "long", 850, place=3, shows=frozenset({3})),
        ],
    }
    # The share of hits is 100 tokens, so that the second one comes after the summary.
    made = assemble(offered, trim=["summaries", "snippets"])
    assert kept(made, "summaries") == []
    assert kept(made, "snippets") == ["found 1", "found 2", "long"]
    assert reasons(made) == {"of both": "every message that it covers is shown in full"}


def test_a_message_that_is_found_and_then_shown_as_recent_is_there_once() -> None:
    shown = frozenset({7})
    recent = [*several("recent", 2), item("recent", "recent 3", shows=shown)]
    found = [item("snippets", "found 3", shows=shown), item("snippets", "other", shows=frozenset({1}))]
    made = assemble({"recent": recent, "snippets": found}, trim=["summaries", "recent", "snippets"])
    assert kept(made, "snippets") == ["other"]
    assert "recent 3" in kept(made, "recent")
    assert reasons(made) == {"found 3": "it is already included"}


def test_what_is_shown_expired_or_stood_for_is_left_out_with_its_reason() -> None:
    offered: Offered = {
        "recent": [
            item("recent", "message 1", shows=frozenset({1})),
            item("recent", "message 2", shows=frozenset({2})),
        ],
        "snippets": [
            item("snippets", "found 1", shows=frozenset({1})),
            item("snippets", "found 3", shows=frozenset({1, 3})),
            item("snippets", "over", expires=NOON),
            item("snippets", "not over", expires=NOON + timedelta(microseconds=1)),
            item("snippets", "not over", expires=None),
        ],
        "summaries": [
            item("summaries", "of both", covers=frozenset({1, 2})),
            item("summaries", "of more", covers=frozenset({1, 2, 9})),
        ],
    }
    made = assemble(offered, trim=["snippets", "summaries", "recent"])
    assert kept(made, "snippets") == ["found 3", "not over"]
    assert kept(made, "summaries") == ["of more"]
    assert reasons(made) == {
        "found 1": "it is already included",
        "over": "it has expired",
        "not over": "it is already included",
        "of both": "every message that it covers is shown in full",
    }


def test_the_system_prompt_gives_way_before_the_message_and_nothing_can_be_too_little() -> None:
    counter = counter_for()
    words = "be kind to everybody " * 20
    system = item("system", "system prompt", counter.count(words), text=words)
    made = assemble({"system": [system]}, count=lambda items: added_up(items) + 920)
    (shorter,) = [each for each in made.items if each.section == "system"]
    assert shorter.cut
    assert shorter.text.endswith("[…]")
    assert made.tokens <= 1_000
    made = assemble({"system": [system]}, count=lambda items: 1_001 if len(items) > 1 else 1_000)
    assert kept(made, "system") == []
    assert reasons(made)["system prompt"] == "there is no room for a system prompt"
    with pytest.raises(ValueError, match="too small for anything"):
        assemble({}, count=lambda _: 1_001)


def explained(*items: Item, left_out: Sequence[LeftOut] = ()) -> list[str]:
    sections = tuple(
        SectionReport(name, 100, added_up([each for each in items if each.section == name]), 1, 1)
        for name in ("recent", "snippets")
    )
    context = Context(
        [], str, 250, 1_000, (*sections, SectionReport("habits", 5, 0, 0, 0)), items, tuple(left_out), "x"
    )
    return context.explain().splitlines()


def test_an_explanation_says_what_is_in_and_what_is_not_and_why() -> None:
    found = item("snippets", "message #3", 12, score=0.5, priority=5, relevance=0.25, tags=("tea", "cake"), cut=True)
    lines = explained(
        item("recent", "message #9", 1_200),
        found,
        left_out=[LeftOut(item("recent", "message #1"), "no room left for recent")],
    )
    assert lines == [
        f"250 of 1,000 tokens (x)  {'█' * 10}{'░' * 30}",
        "",
        "recent: 1,200 tokens, 1 in, 1 left out (its share: 100)",
        "  + 1,200  message #9  message #9",
        "  -    10  message #1  message #1: no room left for recent",
        "",
        "snippets: 12 tokens, 1 in, 1 left out (its share: 100)",
        "  +    12  message #3 score 0.50 priority 5 relevance 0.25 about tea, cake (cut)  message #3",
    ]


@pytest.mark.parametrize(("text", "shown"), [("a" * 60, "a" * 60), ("a" * 61, "a" * 59 + "…"), ("a \n b", "a b")])
def test_long_texts_are_shortened_in_an_explanation(text: str, shown: str) -> None:
    lines = explained(item("recent", "m", text=text))
    assert lines[3] == f"  +    10  m  {shown}"


async def test_snippets_are_weighed_against_the_best_of_them() -> None:
    store = await open_store(":memory:")
    first, second = await add(store, Scope.of("ann"), "one", "two")

    def relevance(*scores: float) -> list[float]:
        pairs = zip((first, second), scores, strict=False)
        hits = [Hit("message", each.id, each.text, score, NOON, (), (), message=each) for each, score in pairs]
        return [each.relevance for each in Offers(counter_for(), RenderCache(100), NOON).snippets(hits)]

    assert relevance(4.0, 1.0) == [1.0, 0.25]
    assert relevance(4.0, -1.0) == [1.0, 0.0]
    assert relevance(0.0) == [0.0]


async def test_snippets_come_with_the_messages_around_them_in_the_order_of_their_worth_and_each_once() -> None:
    store = await open_store(":memory:")
    first, near, second = await add(store, Scope.of("ann"), "first", "near", "second")
    hits = [
        Hit("message", first.id, first.text, 1.0, NOON, (), (), message=first, around=(near,)),
        Hit("memory", "7", "of no single message", 0.9, NOON, (), ()),
        Hit("message", second.id, second.text, 0.5, NOON, (), (), message=second, around=(first, near)),
        Hit("message", near.id, near.text, 0.1, NOON, (), (), message=near),
    ]
    offered = Offers(counter_for(), RenderCache(100), NOON).snippets(hits)
    assert [(each.key, each.score, each.relevance) for each in offered] == [
        (f"message {first.id}", 1.0, 1.0),
        (f"message {near.id}", 0.1, 1.0),
        (f"message {second.id}", 0.5, 0.5),
    ]


CHAT = (
    "Did the children see the memorial in Verdun?",
    "They did.",
    "All of them went silent.",
    "And the weather?",
    "Grey.",
)


async def context(path: Path, profile: dict[str, Any]) -> Context:
    async with connect(path / "memory.db", profile=profile, embedder="none") as memory:
        await talk(memory)
        return await memory.user("ann").context("What was Verdun like?", 1_000, at=NOON + timedelta(days=1))


async def talk(memory: Memory) -> None:
    for number, text in enumerate((*CHAT, *(f"filler {number}" for number in range(5)))):
        await memory.user("ann").add("user", text, at=NOON + timedelta(minutes=number))


def found(context: Context) -> list[str]:
    return [item.text.partition(": ")[2] for item in context.items if item.section == "snippets"]


async def test_the_next_two_messages_after_a_hit_are_offered(tmp_path: Path) -> None:
    profile = {"extends": "default", "context": {"recent": 2, "snippets": 1}}
    assert found(await context(tmp_path, profile)) == list(CHAT[:3])


@pytest.mark.parametrize("profile", ["archive", "community", "account"])
async def test_profiles_that_name_how_many_hits_they_show_show_no_more(profile: str, tmp_path: Path) -> None:
    limited = {"extends": profile, "context": {"recent": 2, "snippets": 1, "similarity": 0, "window": 0}}
    assert found(await context(tmp_path, limited)) == [CHAT[0]]


async def test_the_message_to_be_answered_and_later_ones_do_not_follow_a_hit(tmp_path: Path) -> None:
    profile = {"extends": "default", "context": {"recent": 1, "snippets": 1}}
    async with connect(tmp_path / "memory.db", profile=profile, embedder="none") as memory:
        ann = memory.user("ann")
        for number, text in enumerate(CHAT):
            await ann.add("user", text, at=NOON + timedelta(minutes=number))
        asked = (await ann.history())[2]
        made = await ann.context(f"Verdun! {asked.text}", 1_000, at=NOON + timedelta(days=1), answers=asked)
        shown = [item.text for item in made.items if item.section in {"snippets", "recent"}]
        assert not any(text.endswith((CHAT[2], CHAT[3], CHAT[4])) for text in shown)
