"""Settings of a user, checked before they act."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import aforesaid
from aforesaid.errors import InvalidInput

if TYPE_CHECKING:
    from aforesaid._sync_types import SyncUserMemory

NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("time_zone", "Nowhere/Land", "unknown time zone"),
        ("time_zone", 5, "time zone"),
        ("summry_every_n", 3, "did you mean 'summary_every_n'"),
        ("summary_every_n", 0, "at least 1"),
        ("summary_every_n", 501, "at most 500"),
        ("memory_enabled", "yes", "True or False"),
        ("", 1, "the setting's name"),
    ],
)
def test_what_cannot_be_set_is_refused(key: str, value: str | int, said: str) -> None:
    with aforesaid.open(":memory:", embedder="none") as memory, pytest.raises(InvalidInput, match=said):
        memory.user("ann").set(key, value)


@pytest.mark.defect("P12")
@pytest.mark.parametrize(
    ("key", "value"),
    [("cleared_up_to", "on"), ("cleared_up_to", 3), ("mine", {"a": 1}), ("mine", [1]), ("mine", float("nan")),
     ("mine", 2**80), ("mine", b"x"), ("mine", "a\0b"), ("mine", "x" * 100_001)],
    ids=repr,
)  # fmt: skip
def test_names_of_ours_and_values_that_no_setting_can_have_are_refused(key: str, value: object) -> None:
    with aforesaid.open(":memory:", embedder="none") as memory:
        for place in (memory, memory.user("ann")):
            with pytest.raises(InvalidInput):
                place.set(key, value)  # type: ignore[arg-type]


@pytest.mark.defect("P12")
def test_clearing_works_and_can_be_done_twice() -> None:
    with aforesaid.open(":memory:", embedder="none") as memory:
        ann = memory.user("ann", actor="Tom")
        ann.add("user", "the red boat left the harbour")
        ann.clear()
        ann.clear()
        assert ann.context("hello").tokens > 0


def test_settings_are_kept_and_taken_back() -> None:
    with aforesaid.open(":memory:", embedder="none") as memory:
        ann = memory.user("ann")
        ann.set("time_zone", "Europe/Berlin")
        ann.set("favourite_colour", "green")
        assert ann.settings() == {"time_zone": "Europe/Berlin", "favourite_colour": "green"}
        ann.set("time_zone", None)
        assert ann.settings() == {"favourite_colour": "green"}
        assert memory.user("bob").settings() == {}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("short_term_memory_limit", 0, "at least 1"),
        ("semantic_similarity_threshold", 1.5, "between 0 and 1"),
        ("session_timeout_minutes", "soon", "whole number"),
        ("context_profile", "archiv", "one of default"),
        ("bot_personna", "a pirate", "did you mean 'bot_persona'"),
    ],
)
def test_what_cannot_be_set_for_a_space_is_refused(key: str, value: str | float, said: str) -> None:
    with aforesaid.open(":memory:", embedder="none") as memory, pytest.raises(InvalidInput, match=said):
        memory.set(key, value)


@pytest.mark.req("D8")
def test_the_four_limits_and_the_persona_are_stored_and_act_at_once(tmp_path: Path) -> None:
    def talk(ann: SyncUserMemory) -> None:
        for number in range(8):
            ann.add("user", f"the red boat number {number} left the harbour", at=NOON + timedelta(minutes=number))

    with aforesaid.open(tmp_path / "memory.db", profile="companion", embedder="deterministic") as memory:
        ann = memory.user("ann")
        talk(ann)
        memory.upkeep()
        before = ann.context("where is the red boat?")
        memory.set("short_term_memory_limit", 1)
        memory.set("long_term_memory_limit", 0)
        memory.set("bot_persona", "an old sailor")
        after = ann.context("where is the red boat?")
        assert items(before, "recent") == 6
        assert (items(after, "recent"), items(after, "snippets")) == (2, 0)
        assert "an old sailor" in after.text
        assert "an old sailor" not in before.text
        memory.set("session_timeout_minutes", 5)
        later = ann.add("user", "still there?", at=NOON + timedelta(minutes=20))
        assert later.message.session != ann.history()[0].session
        assert items(memory.user("ann", space="other").context("hello"), "persona") == 0
    with aforesaid.open(tmp_path / "memory.db", profile="companion", embedder="deterministic") as memory:
        assert memory.settings()["short_term_memory_limit"] == 1
        assert items(memory.user("ann").context("where is the red boat?"), "recent") == 2
        memory.set("short_term_memory_limit", None)
        assert items(memory.user("ann").context("where is the red boat?"), "recent") == 6


@pytest.mark.req("D8")
def test_a_similarity_that_is_asked_for_keeps_the_rest_out() -> None:
    with aforesaid.open(":memory:", profile="companion", embedder="deterministic") as memory:
        ann = memory.user("ann")
        for number, text in enumerate(["the boat is red", *["nothing else matters"] * 7]):
            ann.add("user", text, at=NOON + timedelta(hours=number))
        memory.upkeep()
        memory.set("semantic_similarity_threshold", 0.0)
        assert items(ann.context("the boat is red"), "snippets") > 0
        memory.set("semantic_similarity_threshold", 1.0)
        assert items(ann.context("is there a red boat in the harbour?"), "snippets") == 0


def test_what_is_set_for_a_user_goes_before_what_is_set_for_the_space() -> None:
    with aforesaid.open(":memory:", embedder="none") as memory:
        ann, bob = memory.user("ann"), memory.user("bob")
        memory.set("bot_persona", "a butler")
        memory.set("memory_enabled", False)
        bob.set("bot_persona", "a pirate")
        bob.set("memory_enabled", True)
        assert "a butler" in ann.context("hello").text
        assert "a pirate" in bob.context("hello").text
        assert (ann.status().enabled, bob.status().enabled) == (False, True)
        assert [user.id for user in memory.users()] == ["bob"]


def test_the_status_names_where_memory_is_kept_whatever_the_user_would_like(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        ann, bob = memory.user("ann"), memory.user("bob")
        ann.set("storage_type", "json")
        ann.set("summary_every_n", 7)
        assert (ann.status().threshold, bob.status().threshold) == (7, 10)
        assert ann.status().storage.startswith("sqlite ")
        assert bob.status().storage.startswith("sqlite ")


def test_the_status_counts_towards_the_next_rolling_summary() -> None:
    rolling: dict[str, object] = {"extends": "default", "summaries": "rolling"}
    rolling |= {"rolling_messages": 4, "rolling_keep": 2, "rolling_step": 2}
    with aforesaid.open(":memory:", embedder="none", profile=rolling, settings={"background": False}) as memory:
        ann = memory.user("ann")
        for number in range(3):
            ann.add("user", f"I have been to town {number}.")
        assert (ann.status().threshold, ann.status().since_last) == (4, 3)
        for number in range(3, 8):
            ann.add("user", f"I have been to town {number}.")
        memory.upkeep()
        (summary,) = ann.summaries()
        assert (ann.status().threshold, ann.status().since_last) == (2, 8 - summary.messages - 2)


@pytest.mark.defect("Q9")
@pytest.mark.parametrize("replies", [True, False], ids=["answered", "alone"])
@pytest.mark.parametrize("profile", ["archive", "default", "session"])
def test_a_summary_is_made_when_the_status_has_reached_the_threshold(profile: str, *, replies: bool) -> None:
    with aforesaid.open(":memory:", embedder="none", profile=profile, settings={"background": False}) as memory:
        ann = memory.user("ann", thread="chat")
        ann.set("summary_every_n", 5)
        for number in range(40):
            ann.add("user", f"I have been to town {number} of the valley.")
            if replies:
                ann.add("assistant", "I see.")
            status = ann.status()
            made = bool(memory.upkeep().summarised)
            assert made == (status.since_last >= status.threshold), (number, status)


def test_what_another_process_sets_is_seen_within_a_second(tmp_path: Path) -> None:
    with (
        aforesaid.open(tmp_path / "memory.db", embedder="none") as one,
        aforesaid.open(tmp_path / "memory.db", embedder="none") as other,
    ):
        assert "a butler" not in other.user("ann").context("hello").text
        one.set("bot_persona", "a butler")
        time.sleep(1.1)
        assert "a butler" in other.user("ann").context("hello").text


def test_nobody_is_called_everybody() -> None:
    with (
        aforesaid.open(":memory:", embedder="none") as memory,
        pytest.raises(InvalidInput, match="all users of a space"),
    ):
        memory.user("*")


def test_the_time_of_a_session_is_not_a_single_users() -> None:
    with aforesaid.open(":memory:", embedder="none") as memory, pytest.raises(InvalidInput, match="whole space"):
        memory.user("ann").set("session_timeout_minutes", 5)


@pytest.mark.parametrize("profile", ["archive", "community", "account", "companion", "session", "default"])
def test_a_memory_can_be_opened_with_another_profile_and_nothing_is_lost(tmp_path: Path, profile: str) -> None:
    with aforesaid.open(tmp_path / "memory.db", profile="archive", embedder="deterministic") as memory:
        ann = memory.user("ann")
        for number in range(24):
            ann.add("user", f"the red boat number {number}", at=NOON + timedelta(minutes=2 * number))
            ann.add("assistant", f"aye, number {number}", at=NOON + timedelta(minutes=2 * number + 1))
        ann.remember("I like tea")
        memory.upkeep()
        before = ann.history(1_000)
        summaries = ann.summaries(active=None)
    with aforesaid.open(tmp_path / "memory.db", profile=profile, embedder="deterministic") as memory:
        ann = memory.user("ann")
        memory.upkeep()
        assert [message.text for message in ann.history(1_000)] == [message.text for message in before]
        assert {summary.id for summary in summaries} <= {summary.id for summary in ann.summaries(active=None)}
        context = ann.context("where is the red boat number 7?")
        assert context.tokens <= context.budget
        assert memory.verify().ok
    with aforesaid.open(tmp_path / "memory.db", profile="archive", embedder="deterministic") as memory:
        assert [message.text for message in memory.user("ann").history(1_000)] == [message.text for message in before]


def items(context: aforesaid.Context, section: str) -> int:
    return sum(item.section == section for item in context.items)
