"""Several private chats of one user."""

from __future__ import annotations

import aforesaid
from aforesaid.domain.scope import chat_name


def test_what_was_said_in_one_chat_is_recalled_in_another_and_not_in_a_channel() -> None:
    with aforesaid.open(":memory:") as memory:
        ann = memory.user("ann")
        ann.chat("one").add("user", "My tortoise is called Rex.")
        question = "What is my tortoise called?"
        assert "Rex" in ann.chat("two").context(question).text
        assert "Rex" in ann.context(question).text
        assert "Rex" not in memory.user("ann", thread="general").context(question).text


def test_chats_of_two_users_with_the_same_name_are_two() -> None:
    with aforesaid.open(":memory:") as memory:
        memory.user("ann").chat("one").add("user", "I am Ann")
        memory.user("bob").chat("one").add("user", "I am Bob")
        assert [each.text for each in memory.user("ann").chat("one").history(within="thread")] == ["I am Ann"]


def test_a_chat_is_listed_among_the_threads_and_keeps_its_name() -> None:
    with aforesaid.open(":memory:") as memory:
        ann = memory.user("ann", space="home", session="evening")
        ann.chat(7).add("user", "Hello")
        (thread,) = ann.threads()
        assert chat_name(thread.id) == "7"
        assert ann.chat(7).scope == ann.scope._replace(thread=thread.id)
