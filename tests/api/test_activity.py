"""How much was said on each day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import aforesaid
from aforesaid.errors import InvalidInput, TooLarge

pytestmark = pytest.mark.anyio


async def test_days_are_counted_by_space_and_person(location: str) -> None:
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    async with aforesaid.connect(location) as memory:
        for user, days in (("ann", (1, 1, 3, 9)), ("bob", (1, 40))):
            person = memory.user(user)
            for turn, day in enumerate(days):
                at = noon - timedelta(days=day) + timedelta(minutes=turn)
                await person.add("user", f"{user} {turn}", at=at)
                await person.add("assistant", f"to {user} {turn}", at=at)
        await memory.user("eve", space="other").add("user", "elsewhere", at=noon - timedelta(days=1))
        everybody = {each.day: each for each in await memory.activity(10)}
        ann = {each.day: each for each in await memory.activity(10, user="ann")}
        assert [each.messages for each in await memory.activity(3, space="nowhere")] == [0, 0, 0]
        for wrong, kind in ((0, InvalidInput), (10**6, TooLarge)):
            with pytest.raises(kind):
                await memory.activity(wrong)
    yesterday = noon.date() - timedelta(days=1)
    assert (everybody[yesterday].messages, everybody[yesterday].turns) == (6, 3)
    assert (ann[yesterday].messages, ann[yesterday].turns) == (4, 2)
    assert list(everybody) == sorted(everybody)
    assert len(everybody) == 10, "days without a word count too"
    assert sum(each.messages for each in everybody.values()) == 10, "what is older, or of another space, does not"
