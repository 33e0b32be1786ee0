"""Providers cache the beginning of prompts: from one request to the next it must stay the same."""

from __future__ import annotations

import json
from itertools import takewhile
from typing import Any

import pytest

from server.talking import Talk, ask, eventually, talking

SYSTEM = {"role": "system", "content": "You are a patient teacher. " + "Explain things step by step. " * 10}
SUBJECTS = ("garden", "violin", "train to Lisbon", "parrot", "dentist", "island", "soup", "marathon", "novel", "roof")


def common_prefix(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> int:
    pairs = zip(json.dumps(one), json.dumps(other), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def teach(talk: Talk, user: str = "ann") -> None:
    """Have something known of a person before the chat begins."""
    person = talk.server.served.memory.user(user)
    for subject in SUBJECTS:
        talk.server.run(person.add("user", f"I love my {subject} and I think of the {subject} every day."))
    talk.server.run(person.remember("prefers answers in metric units"))
    talk.server.run(talk.server.served.memory.upkeep())


@pytest.mark.defect("P9")
def test_at_least_80_percent_of_the_unchanged_history_stays_a_common_prefix() -> None:
    with talking(lambda asked: f"Let me explain the {asked.asked.split()[-1]} " * 20) as talk, talk.client() as client:
        teach(talk)
        messages: list[dict[str, Any]] = []
        shares = []
        for number in range(12):
            subject = SUBJECTS[number % len(SUBJECTS)]
            text = f"My name is Ann{number} and I live in street {number}. What about my {subject}?"
            messages.append({"role": "user", "content": text})
            messages.append({"role": "assistant", "content": ask(client, SYSTEM, *messages)})
            eventually(lambda: not talk.server.served._finishing)
            if number < 3:
                continue
            before, after = (request.messages for request in talk.model.requests[-2:])
            assert any(each["role"] == "system" for each in after[1:]), "something is remembered for the question"
            history = len(json.dumps([SYSTEM, *messages[:-4]]))
            shares.append(common_prefix(before, after) / history)
    assert min(shares) >= 0.8, shares
