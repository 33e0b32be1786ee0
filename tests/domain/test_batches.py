"""What storing a batch quickly rests on: hashes of many messages, and a pause of the garbage collector."""

from __future__ import annotations

import gc
from datetime import UTC, datetime
from typing import Any

import pytest

from aforesaid.background import gc_paused
from aforesaid.domain.checks import Role
from aforesaid.domain.details import KnownIds
from aforesaid.domain.message import Draft, NewMessage, draft, draft_of_new, message_hashes, plain_drafts
from aforesaid.domain.scope import Scope

ANN = Scope.of("ann", thread="kitchen")
MORNING = datetime(2026, 3, 1, 9, tzinfo=UTC)


def test_the_hashes_of_a_batch_are_those_of_its_messages() -> None:
    drafts = [
        draft(ANN, "user", "tea"),
        draft(ANN, "assistant", "größer", at=MORNING, id="m1", name="Å"),
        draft(ANN, "user", "", author="bob", parts=[{"type": "text", "text": "茶"}]),
    ]
    for some in (drafts, drafts[:2], drafts[:1], []):
        assert message_hashes(some, ANN) == [each.hash for each in some]


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
@pytest.mark.parametrize("text", ["tea", "größer", "茶" * 1_000, "x" * 65_536])
def test_a_plain_message_of_a_batch_is_drafted_as_a_single_one(role: str, text: str) -> None:
    single = draft(ANN, role, text, at=MORNING, id=7)
    for new in (
        NewMessage(role, text, at=MORNING, id=7),  # type: ignore[arg-type]
        {"role": role, "text": text, "at": MORNING, "id": 7},
        {"role": role, "text": text, "at": MORNING, "id": 7, "name": None},
    ):
        made = draft_of_new(ANN, new, KnownIds(), 65_536)
        assert made == single._replace(stored_at=made.stored_at)


@pytest.mark.parametrize("given", [{}, {"at": MORNING}, {"id": "m1"}, {"at": MORNING, "id": "m1"}])
def test_plain_messages_are_drafted_together_as_each_alone(given: dict[str, Any]) -> None:
    said: list[tuple[Role, str]] = [
        ("user", "tea"),
        ("assistant", "größer 茶"),
        ("tool", "x" * 16_384),
        ("user", "tea"),
    ]
    for new in (
        [NewMessage(role, text, **given) for role, text in said],
        [{"role": role, "text": text, **given} for role, text in said],
    ):
        made = plain_drafts(ANN, new, 65_536, 1_000)
        assert made is not None
        single = [draft_of_new(ANN, each, KnownIds(), 65_536) for each in new]
        stored = [
            (each.at if "at" in given else moment, moment)
            for each, moment in zip(single, range(1_000, 1_004), strict=True)
        ]
        assert made == [each._replace(at=at, stored_at=now) for each, (at, now) in zip(single, stored, strict=True)]
        assert {type(each) for each in made} == {Draft}


@pytest.mark.parametrize(
    "other",
    [
        {"role": "user", "text": ""},
        {"role": "user", "text": "a\0b"},
        {"role": "user", "text": "\ud83d"},
        {"role": "user", "text": 7},
        {"role": "user", "text": "x" * 65_537},
        {"role": "nobody", "text": "tea"},
        {"role": ["user"], "text": "tea"},
        {"role": "user", "text": "tea", "id": "#7"},
        {"role": "user", "text": "tea", "id": ""},
        {"role": "user", "text": "tea", "id": 7},
        {"role": "user", "text": "tea", "id": "a\nb"},
        {"role": "user", "text": "tea", "id": "x" * 256},
        {"role": "user", "text": "tea", "at": MORNING},
        {"role": "user", "text": "tea", "at": datetime(2026, 3, 1)},  # noqa: DTZ001 - what is refused
        {"role": "user", "text": "tea", "name": "Ann"},
        {"role": "user", "colour": "red"},
        {"text": "tea"},
        "tea",
        None,
    ],
    ids=repr,
)
def test_messages_that_need_a_closer_look_are_not_drafted_together(other: object) -> None:
    assert plain_drafts(ANN, [{"role": "user", "text": "tea"}, other], 65_536, 1_000) is None


def test_the_collector_is_resumed_after_a_pause_and_after_an_error() -> None:
    with gc_paused():
        assert not gc.isenabled()
        with gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), gc_paused():
        raise KeyError
    assert gc.isenabled()


def test_a_collector_that_the_program_disabled_stays_disabled() -> None:
    gc.disable()
    try:
        with gc_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
