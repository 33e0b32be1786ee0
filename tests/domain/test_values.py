from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.context import Item
from aforesaid.domain import checks
from aforesaid.domain.caches import TwoGenerationCache, fast_constructor
from aforesaid.domain.hit import Hit
from aforesaid.domain.message import Message, draft, message_id, sequence_number
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import Purged
from aforesaid.errors import InvalidInput, NotFound

ANN = Scope.of("ann")
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@given(st.datetimes(timezones=st.timezones()))
def test_every_moment_survives_being_a_number(at: datetime) -> None:
    assert checks.moment(checks.microseconds(at, "at")) == at.astimezone(UTC)


FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
EAST, WEST = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))


@pytest.mark.parametrize("at", [FIRST, LAST, FIRST.replace(tzinfo=WEST), LAST.replace(tzinfo=EAST)])
def test_the_first_and_the_last_moment_are_moments_too(at: datetime) -> None:
    assert checks.moment(checks.microseconds(at, "at")) == at


@pytest.mark.parametrize("at", [FIRST.replace(tzinfo=EAST), LAST.replace(tzinfo=WEST)])
def test_moments_outside_the_calendar_are_refused(at: datetime) -> None:
    with pytest.raises(InvalidInput, match="outside the years 1 to 9999"):
        checks.microseconds(at, "at")


@given(texts, texts)
def test_drafts_that_differ_hash_differently(one: str, other: str) -> None:
    first, second = draft(ANN, "user", one, name=other[:50]), draft(ANN, "user", other, name=one[:50])
    same = first._replace(stored_at=0, at=0).hash == second._replace(stored_at=0, at=0).hash
    assert same is ((first.text, first.name) == (second.text, second.name))


def test_ids_of_the_log_can_be_read_back() -> None:
    assert message_id(17, None) == "#17"
    assert message_id(17, "tg-1") == "tg-1"
    assert sequence_number("#17") == 17
    for other in ("tg-1", "#", "#x", "#1 ", "17", "#١"):
        assert sequence_number(other) is None


def test_a_receipt_without_a_message_says_so() -> None:
    receipt = Receipt(durable=True, results=(None,))
    with pytest.raises(NotFound):
        _ = receipt.message
    with pytest.raises(NotFound):
        _ = receipt.summary


def test_the_author_is_whoever_has_the_role() -> None:
    assert draft(ANN, "user", "x").author == "ann"
    assert draft(ANN, "assistant", "x").author == "assistant"
    assert draft(ANN, "assistant", "x", author="bot").author == "bot"


def test_a_direct_chat_belongs_to_its_user() -> None:
    assert Scope.of("ann").thread == "direct:ann"
    assert Scope.of("ann", thread="direct:ann") == Scope.of("ann")
    with pytest.raises(InvalidInput, match="another user's direct chat"):
        Scope.of("bob", thread="direct:ann")


def test_the_counts_of_a_purge_read_like_english() -> None:
    assert Purged(1, 2, 0).counts == "1 message, 2 summaries, 0 memories"


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
VALUES = (
    7,
    "#7",
    "default",
    "ann",
    "t",
    "s",
    "user",
    "ann",
    None,
    "hello",
    NOON,
    NOON,
    True,
    None,
    b"hash",
    None,
    False,
    None,
)


def test_what_is_made_quickly_is_what_the_class_makes() -> None:
    usual, quick = Message(*VALUES), fast_constructor(Message)(*VALUES)  # type: ignore[arg-type]
    assert quick == usual
    assert type(quick) is Message
    assert (hash(quick), repr(quick)) == (hash(usual), repr(usual))
    assert replace(quick, text="other").text == "other"
    assert pickle.loads(pickle.dumps(quick)) == copy.copy(quick) == usual  # noqa: S301 - our own


@pytest.mark.parametrize("kind", [Message, Hit, Item])
def test_it_is_frozen_and_takes_all_fields(kind: type) -> None:
    names = [field.name for field in fields(kind)]
    made: Any = fast_constructor(kind)(*names)
    assert [getattr(made, name) for name in names] == names, "each value is in its field"
    with pytest.raises(FrozenInstanceError):
        setattr(made, names[0], 1)
    with pytest.raises(TypeError):
        fast_constructor(kind)(*names[:-1])


def test_recently_used_entries_are_kept_and_others_are_dropped() -> None:
    kept: TwoGenerationCache[int, str] = TwoGenerationCache(10)
    for number in range(100):
        kept.put(number, str(number))
        assert kept.get(0) == "0", "it is asked for all the time"
    assert [kept.get(number) for number in range(90, 100)] == [str(number) for number in range(90, 100)]
    assert kept.get(5) is None
    assert len(kept._new) + len(kept._old) <= 22
    kept.clear()
    assert kept.get(0) is None


@pytest.mark.parametrize("text", ["", "{", "[1]", "7", "null", "\ud800", '{"a": ' * 100_000], ids=range(7))
def test_what_is_no_json_object_is_none_however_deep_it_is(text: str) -> None:
    assert checks.json_object(text) is None


def test_a_json_object_is_read_from_a_text_and_from_bytes() -> None:
    assert checks.json_object('{"a": [1]}') == checks.json_object(b'{"a": [1]}') == {"a": [1]}
    assert checks.json_object(b"\xff") is None


def test_a_text_is_cut_to_bytes_between_characters() -> None:
    assert [checks.beginning("aéé", limit) for limit in range(6)] == ["", "a", "a", "aé", "aé", "aéé"]
    assert checks.beginning("\ud800", 3) == "\ud800", "what fits stays as it is"
