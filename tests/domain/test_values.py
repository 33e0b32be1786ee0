from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.domain import checks
from aforesaid.domain.message import draft, message_id, sequence_number
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
