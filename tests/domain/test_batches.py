"""What storing a batch quickly rests on: hashes of many messages, and a pause of the garbage collector."""

from __future__ import annotations

import gc
from datetime import UTC, datetime

import pytest

from aforesaid.collector import collector_paused
from aforesaid.domain.known_ids import KnownIds
from aforesaid.domain.message import draft, message_hashes
from aforesaid.domain.new_message import NewMessage, draft_of_new
from aforesaid.domain.scope import Scope

ANN = Scope.of("ann", thread="kitchen")
MORNING = datetime(2026, 3, 1, 9, tzinfo=UTC)


def test_the_hashes_of_a_batch_are_those_of_its_messages() -> None:
    drafts = [
        draft(ANN, "user", "tea"),
        draft(ANN, "assistant", "größer", at=MORNING, id="m1", name="Å"),
        draft(ANN, "user", "", author="bob", parts=[{"type": "text", "text": "茶"}]),
    ]
    assert [*message_hashes(drafts, ANN)] == [each.hash for each in drafts]


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


def test_the_collector_is_resumed_after_a_pause_and_after_an_error() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), collector_paused():
        raise KeyError
    assert gc.isenabled()


def test_a_collector_that_the_program_disabled_stays_disabled() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
