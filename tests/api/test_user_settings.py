"""Settings of a user, checked before they act."""

from __future__ import annotations

import pytest

import recollect
from recollect.errors import InvalidInput


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("time_zone", "Nowhere/Land", "no time zone"),
        ("time_zone", 5, "time zone"),
        ("summry_every_n", 3, "did you mean 'summary_every_n'"),
        ("summary_every_n", 0, "the threshold"),
        ("summary_every_n", 501, "the threshold"),
        ("memory_enabled", "yes", "True or False"),
        ("", 1, "the setting's name"),
    ],
)
def test_what_cannot_be_set_is_refused(key: str, value: str | int, said: str) -> None:
    with recollect.open(":memory:", embedder="none") as memory, pytest.raises(InvalidInput, match=said):
        memory.user("ann").set(key, value)


def test_settings_are_kept_and_taken_back() -> None:
    with recollect.open(":memory:", embedder="none") as memory:
        ann = memory.user("ann")
        ann.set("time_zone", "Europe/Berlin")
        ann.set("favourite_colour", "green")
        assert ann.settings() == {"time_zone": "Europe/Berlin", "favourite_colour": "green"}
        ann.set("time_zone", None)
        assert ann.settings() == {"favourite_colour": "green"}
        assert memory.user("bob").settings() == {}
