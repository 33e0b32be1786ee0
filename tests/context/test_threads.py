"""Contexts where a user talks in several threads, or several people talk in one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import aforesaid

NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)


def text_of(context: aforesaid.Context) -> str:
    return "\n".join(message["content"] for message in context.messages)


def test_a_summary_of_one_thread_does_not_empty_another(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", profile="session", embedder="none") as memory:
        here, there = memory.user("ann", thread="A"), memory.user("ann", thread="B")
        here.add("user", "The wifi code is zebra42.", at=NOON)
        for number in range(60):
            at = NOON + timedelta(minutes=number)
            there.add("user" if number % 2 == 0 else "assistant", f"Message {number} about gardening.", at=at)
        memory.upkeep()
        said = text_of(here.context("hello again"))
    assert "zebra42" in said
    assert "gardening" not in said


def test_what_others_said_stays_when_ones_own_messages_are_summarised(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", profile="session", embedder="none") as memory:
        ann, bob = memory.user("ann", thread="t"), memory.user("bob", thread="t")
        for number in range(60):
            at = NOON + timedelta(minutes=number)
            if number % 20 == 0:
                bob.add("user", f"Bob says {number}: meet at noon", name="Bob", at=at)
            ann.add("user", f"chatter {number}", name="Ann", at=at)
        memory.upkeep()
        # The summary of the conversation tells it, too, but perhaps not all of it.
        said = text_of(ann.context("ok"))
        assert all(f"\nBob: Bob says {number}: meet at noon" in said for number in (0, 20, 40))
        newest = ann.messages_for_llm(5)[-1]
    assert newest == {"role": "user", "content": "chatter 59"}


def test_what_was_said_in_private_is_not_summarised_where_others_read(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", profile="archive", embedder="none") as memory:
        direct, room = memory.user("ann", space="g"), memory.user("ann", space="g", thread="room")
        for number in range(15):
            direct.add("user", f"Secret {number}: the affair with Kim continues.", at=NOON + timedelta(minutes=number))
            direct.add("assistant", "ok", at=NOON + timedelta(minutes=number))
        room.add("user", "hi")
        memory.upkeep()
        assert direct.summaries()
        assert "affair" not in text_of(room.context("hi there"))


def test_somebody_elses_equal_words_are_not_taken_for_the_current_message(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        ann, bob = memory.user("ann", thread="t"), memory.user("bob", thread="t")
        ann.add("user", "Who comes to the party?", name="Ann", at=NOON)
        bob.add("user", "I do", name="Bob", at=NOON + timedelta(minutes=1))
        context = ann.context("I do")
    assert "\nBob: I do\n" in context.messages[-1]["content"]


def test_equal_ids_in_two_threads_hide_nothing(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        memory.user("ann", thread="A").add("user", "The parrot is called Kiki.", id="1", at=NOON)
        direct = memory.user("ann")
        direct.add("user", "hello", id="1")
        assert "Kiki" in text_of(direct.context("parrot name?"))


def test_whoever_switches_memory_off_is_neither_summarised_nor_learned_from(tmp_path: Path) -> None:
    for profile in ("default", "session", "account"):
        with aforesaid.open(tmp_path / f"{profile}.db", profile=profile, embedder="none") as memory:
            ann = memory.user("ann")
            ann.set("memory_enabled", False)
            for number in range(60):
                at = NOON + timedelta(minutes=number)
                ann.add("user" if number % 2 == 0 else "assistant", f"I like thing number {number}.", at=at)
            memory.upkeep()
            assert ann.summaries(active=None) == []
            assert ann.memories() == []
            assert len(ann.history(100)) == 60


def test_what_is_said_while_an_answer_is_on_its_way_is_not_in_its_context(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        ann = memory.user("ann", thread="t")
        first = ann.add("user", "Who comes?", name="Ann", at=NOON).message
        ann.add("user", "Never mind.", name="Ann", at=NOON + timedelta(seconds=1))
        context = ann.context("Who comes?", answers=first)
        later = ann.context("Who comes?")
    assert text_of(context).count("Who comes?") == 1
    assert "Never mind." not in text_of(context)
    assert "Never mind." in text_of(later)


def test_the_person_who_is_answered_is_called_by_their_name_and_not_by_their_id(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", profile="community", embedder="none") as memory:
        ann, bob = memory.user("4711", thread="t"), memory.user("4712", thread="t")
        ann.remember("I like tea", name="Ann")
        bob.add("user", "hello", name="Bob")
        asked = ann.add("user", "What do I like?", name="Ann").message
        context = ann.context("What do I like?", answers=asked)
    assert context.messages[-1]["content"].endswith("\n\nAnn: What do I like?")
    assert "<person>Ann</person>" in text_of(context)
    assert "4711" not in text_of(context)


def test_a_chat_goes_on_with_its_own_turns_and_the_others_are_recalled(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db") as memory:
        ann = memory.user("ann")
        work, holiday = ann.chat("work"), ann.chat("holiday")
        work.add("user", "Draft a mail to my boss: I need Friday off.", at=NOON)
        holiday.add("user", "Which beach in Crete is quiet?", at=NOON + timedelta(minutes=1))
        work.add("assistant", "Dear boss, may I take Friday off?", at=NOON + timedelta(minutes=2))
        holiday.add("assistant", "Try Elafonisi.", at=NOON + timedelta(minutes=3))
        at = NOON + timedelta(minutes=4)
        for chat, shown in (
            (work, ["Draft a mail to my boss: I need Friday off.", "Dear boss, may I take Friday off?"]),
            (holiday, ["Which beach in Crete is quiet?", "Try Elafonisi."]),
            (ann.chat("new"), []),
        ):
            context = chat.context("Make it shorter.", at=at, without=["snippets", "memories", "portrait"])
            assert [item.text for item in context.items if item.section == "recent"] == shown
        found = ann.chat("new").context("Which beach in Crete did I ask about?", at=at)
        assert "Crete is quiet" in "".join(item.text for item in found.items if item.section == "snippets")
        everywhere = ann.context("Make it shorter.", at=at)
        assert len([item for item in everywhere.items if item.section == "recent"]) == 4, "the direct handle has all"
