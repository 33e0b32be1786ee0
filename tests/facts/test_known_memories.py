"""New statements are compared with the memories that may say the same, and none of these is missed."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from aforesaid.domain.memory import MemoryRecord
from aforesaid.facts.reconcile import KnownMemories
from aforesaid.facts.statement import says_the_same

WORDS = ("Ann", "Bob", "likes", "hates", "not", "green", "black", "tea", "7", "8", "home", "lives", "in", "Rome")
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
NOON = datetime(2026, 5, 8, 12, tzinfo=UTC)


def memory(number: int, text: str, subject: str | None = None) -> MemoryRecord:
    return MemoryRecord(
        number, "", "ann", "fact", text, 5, (), (number,), NOON, True, "active", 3, "ann", subject, None, None, None,
        None, NOON, None, None, "rules", "said", "", 1, NOON, 1,
    )  # fmt: skip


@given(st.lists(SENTENCES, max_size=12), SENTENCES)
def test_every_memory_that_says_the_same_is_found_in_the_order_given(texts: list[str], text: str) -> None:
    known = [memory(number, each) for number, each in enumerate(texts, 1)]
    found = KnownMemories(known, ["Ann"]).maybe_same(text)
    same = [each for each in known if says_the_same(text, each.text, ["Ann"])]
    assert [each for each in found if each in same] == same
    assert found == sorted(found, key=lambda each: each.id)


def test_a_statement_is_not_compared_with_memories_about_something_else() -> None:
    known = [memory(1, "Ann plays the violin."), memory(2, "Ann drinks green tea every day.")]
    assert KnownMemories(known, ["Ann"]).maybe_same("Ann drinks green tea every morning.") == [known[1]]


def test_memories_that_mean_nearly_the_same_are_found_by_their_ids() -> None:
    known = [memory(1, "Ann is afraid of heights."), memory(2, "Ann likes tea.")]
    assert KnownMemories(known, ["Ann"]).maybe_same("Ann gets dizzy on ladders.", near=[1, 9]) == [known[0]]


def test_what_may_be_outdated_is_found_by_subject_message_and_id() -> None:
    known = [memory(1, "one", "home"), memory(2, "two"), memory(3, "three"), memory(4, "four")]
    index = KnownMemories(known, ["Ann"])
    assert index.maybe_outdated("home", 3, 2) == known[:3]
    assert index.maybe_outdated(None, None, None) == []
