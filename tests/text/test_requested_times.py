"""Times in requests ("remind me tomorrow at 7"): on an afternoon, late in the evening, and when clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.text.times.find import find_times, read_requested_time

BERLIN = ZoneInfo("Europe/Berlin")
AFTERNOON = datetime(2026, 5, 6, 15, 0, tzinfo=BERLIN)
LATE = datetime(2026, 5, 6, 22, 12, tzinfo=BERLIN)


def read(text: str, said: datetime = AFTERNOON) -> str | None:
    """Return the moment as `05-07 07:00`, or a day as `05-07`."""
    found = read_requested_time(text, said)
    if found is None:
        return None
    return found.when.start.strftime("%m-%d %H:%M" if found.when.timed else "%m-%d")


@pytest.mark.defect("B3")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tomorrow at 7", "05-07 07:00"),
        ("at 17", "05-06 17:00"),
        ("tomorrow evening", "05-07 19:00"),
        ("tonight", "05-06 21:00"),
        ("in two hours", "05-06 17:00"),
        ("next Friday", "05-15"),
        ("at 7", "05-06 19:00"),
        ("at 7:30", "05-06 19:30"),
        ("tomorrow at 5", "05-07 17:00"),
        ("today at 4", "05-06 16:00"),
        ("tomorrow at half past seven", "05-07 07:30"),
        ("quarter to 8 tonight", "05-06 19:45"),
        ("at noon", "05-07 12:00"),
        ("at 3 in the morning", "05-07 03:00"),
        ("tomorrow night at 2", "05-08 02:00"),
        ("on the 12th at 9", "05-12 09:00"),
        ("in two weeks", "05-20"),
        ("in a month at 8", "06-06 08:00"),
        ("25/12 at 10", "12-25 10:00"),
        ("2026-12-03 10:00", "12-03 10:00"),
        ("2026-12-03T10:00:00Z", "12-03 11:00"),
        ("morgen um 7", "05-07 07:00"),
        ("morgen früh", "05-07 09:00"),
        ("heute Abend um 8", "05-06 20:00"),
        ("morgen um halb acht", "05-07 07:30"),
        ("mañana a las 9", "05-07 09:00"),
        ("esta noche", "05-06 21:00"),
        ("demain soir", "05-07 19:00"),
        ("ce soir à 8", "05-06 20:00"),
        ("domani alle 7", "05-07 07:00"),
        ("amanhã às 7", "05-07 07:00"),
        ("morgenavond", "05-07 19:00"),
        ("om half acht", "05-06 19:30"),
        ("завтра в 7", "05-07 07:00"),
        ("завтра вечером", "05-07 19:00"),
        ("明天早上7点", "05-07 07:00"),
        ("明日の朝7時", "05-07 07:00"),
    ],
)
def test_a_request_is_read_as_people_mean_it(text: str, expected: str) -> None:
    assert read(text) == expected


@pytest.mark.defect("B3")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Pazartesi 19.00'da Sibel'i ara", "05-11 19:00"),
        ("yarın 19.30'da ara", "05-07 19:30"),
        ("vrijdag 19.00 bellen", "05-08 19:00"),
        ("piątek 19.00 zadzwonić", "05-08 19:00"),
        ("morgen 12.50 € bezahlen", "05-07"),
        ("tomorrow pay 12.50", "05-07"),
        ("am 12.05. um 8 zum Zahnarzt", "05-12 08:00"),
    ],
)
def test_an_hour_may_be_written_with_a_point_and_a_price_is_none(text: str, expected: str) -> None:
    assert read(text) == expected


@pytest.mark.defect("B3")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tonight", "05-06 23:15"),
        ("this evening", "05-06 23:15"),
        ("stasera", "05-06 23:15"),
        ("at 7", "05-07 07:00"),
        ("at 2", "05-07 14:00"),
        ("at 17", "05-07 17:00"),
        ("um 7 Uhr", "05-07 07:00"),
        ("tonight at 11", "05-06 23:00"),
        ("in the morning", "05-07 09:00"),
    ],
)
def test_late_in_the_evening_nothing_lands_in_the_past(text: str, expected: str) -> None:
    assert read(text, LATE) == expected


@pytest.mark.parametrize("text", ["be nice", "on 05/08 at 9", "on 30 February at 9", "call me at 25", "buy 3 apples"])
def test_what_cannot_be_read_or_in_two_ways_is_asked_back(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("call mum tomorrow at 9", "call mum"),
        ("dinner with Tom at 8 on saturday evening", "dinner with Tom"),
        ("übermorgen Nachmittag Zahnarzt anrufen", "Zahnarzt anrufen"),
        ("mañana a las 9 llamar a mamá", "llamar a mamá"),
        ("2026-12-03 10:00 pay rent", "pay rent"),
        ("pay 7 euros tomorrow", "pay 7 euros"),
    ],
)
def test_the_words_of_the_time_are_told_from_the_others(text: str, rest: str) -> None:
    found = read_requested_time(text, AFTERNOON)
    assert found is not None
    assert found.rest == rest


@pytest.mark.defect("B3")
def test_hours_are_counted_and_named_rightly_when_clocks_change() -> None:
    spring, autumn = (datetime(2026, month, day, 23, 30, tzinfo=BERLIN) for month, day in ((3, 28), (10, 24)))
    for said in (spring, autumn):
        found = read_requested_time("in 4 hours", said)
        assert found is not None
        assert found.when.start.astimezone(UTC) - said.astimezone(UTC) == timedelta(hours=4)
    assert read("tomorrow at 9", spring) == "03-29 09:00"
    # 2:30 does not exist on that day.
    assert read("tomorrow at 2:30am", spring) == "03-29 03:30"


def test_which_half_of_the_day_was_assumed_is_known() -> None:
    assumed = {text: read_requested_time(text, AFTERNOON) for text in ("tomorrow at 7", "tomorrow at 7pm", "at 17")}
    assert [found is not None and found.assumed for found in assumed.values()] == [True, False, False]


def test_a_statement_reads_a_bare_hour_only_with_a_day_ahead() -> None:
    (when,) = find_times("dentist tomorrow at 9", AFTERNOON, "future")
    assert (when.start.hour, when.timed) == (9, True)
    assert find_times("at 9", AFTERNOON, "future") == []


@pytest.mark.parametrize(
    "text",
    [
        "tomorrow at six pm", "morgen um achtzehn uhr", "mañana a las dieciocho", "demain à dix-huit heures",
        "domani alle diciotto", "amanhã às dezoito", "morgen om achttien uur", "jutro o osiemnastej",
        "завтра в восемнадцать", "yarın saat on sekizde",
    ],
)  # fmt: skip
def test_a_spoken_hour_is_read_in_words(text: str) -> None:
    found = read_requested_time(text, AFTERNOON)
    assert found is not None
    assert (found.when.start.hour, found.when.timed, found.rest) == (18, True, "")


@given(st.text(max_size=60), st.datetimes(timezones=st.just(BERLIN)))
def test_no_request_is_too_strange(text: str, said: datetime) -> None:
    found = read_requested_time(text, said)
    assert found is None or found.when.start <= found.when.end
