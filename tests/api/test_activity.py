"""How much was said on each day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import recollect
from recollect import care
from recollect.errors import InvalidInput, TooLarge

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("few", [True, False], ids=["at once", "day by day"])
async def test_days_are_counted_by_space_and_person(
    location: str, monkeypatch: pytest.MonkeyPatch, *, few: bool
) -> None:
    monkeypatch.setattr(care, "MOST_COUNTED", 50_000 if few else 8)
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    async with recollect.connect(location) as memory:
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
    # Having read as much as it wants to, it stops, and says so by giving fewer days.
    assert len(everybody) == (10 if few else 4)
    assert sum(each.messages for each in everybody.values()) == (10 if few else 8)
