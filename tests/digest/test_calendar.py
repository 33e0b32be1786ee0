"""Days and weeks of a community, with a clock that moves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aforesaid
from aforesaid.digest.calendar import CalendarLedger, CalendarRules, bounds, day_of, decide, history_days
from aforesaid.digest.executor import Leases
from aforesaid.digest.tree import MakeDay
from aforesaid.domain.checks import microseconds
from aforesaid.domain.scope import Scope
from aforesaid.errors import SourcesChanged
from aforesaid.memory import Memory
from aforesaid.models.chat import Answer, Said
from aforesaid.settings import Operation, Settings
from aforesaid.store import Store
from aforesaid.store.people import Marks, PutMark
from aforesaid.telemetry import OWN, Key
from aforesaid.text.words import by_language
from digesting import MovingClock, Scribe, Shape, remembering

HOUR = 3_600_000_000
RULES = CalendarRules()


@pytest.mark.req("B6")
@pytest.mark.parametrize(
    ("now", "done_at", "done_seq", "plan", "again"),
    [
        (10, None, 0, MakeDay(), None),
        (10, 9.5, 3, None, 10.5),
        (10.4, 9.5, 3, None, 10.5),
        (10.5, 9.5, 3, MakeDay(), None),
        (23.8, 23.5, 3, None, 24),
        (10, 9, 5, None, 24),
        (24, 23.5, 3, MakeDay(), None),
        (24, 23.5, 5, None, None),
        (99, None, 0, MakeDay(), None),
    ],
    ids=[
        "not done yet",
        "done half an hour ago",
        "nearly an hour ago",
        "an hour ago",
        "the day ends first",
        "nothing new",
        "over, with something new",
        "over and done",
        "long over",
    ],
)
def test_today_is_refreshed_hourly_and_a_day_that_is_over_once(
    now: float, done_at: float | None, done_seq: int, plan: MakeDay | None, again: float | None
) -> None:
    done = None if done_at is None else round(done_at * HOUR)
    decision = decide(CalendarLedger(24 * HOUR, round(now * HOUR), 5, done_seq, done), RULES)
    assert decision.plan == plan
    assert decision.look_again_at == (None if again is None else round(again * HOUR))


@pytest.mark.req("B7")
def test_history_is_yesterday_and_the_five_days_before() -> None:
    days = history_days(date(2026, 3, 8))
    assert days == tuple(date(2026, 3, day) for day in range(2, 8))


@given(
    st.datetimes(timezones=st.just(UTC)), st.sampled_from(["UTC", "Europe/Berlin", "Asia/Tokyo", "America/St_Johns"])
)
def test_every_moment_is_in_the_day_that_it_is_said_to_be_in(at: datetime, zone: str) -> None:
    moment = microseconds(at, "at")
    begin, end = bounds(day_of(moment, ZoneInfo(zone)), ZoneInfo(zone))
    if date(2, 1, 1) < at.date() < date(9999, 1, 1):
        assert begin <= moment < end
        assert end - begin in {23 * HOUR, 24 * HOUR, 25 * HOUR} or at.year < 1971, "clocks were changed oddly long ago"


def days_of(scribe: Scribe) -> list[str]:
    """Return the days that the model was asked about."""
    return [shown.partition("The day: ")[2][:10] for operation, shown in scribe.asked if operation == "day"]


async def channel(memory: Memory, clock: MovingClock, *said: tuple[str, str]) -> None:
    """Let people talk in a channel, a minute apart."""
    for user, text in said:
        await memory.user(user, space="guild", thread="general").add(
            "user", text, at=clock.forward(minutes=1), name=user.title()
        )


def answer(**texts: str) -> dict[str, object]:
    """Answer for people by their number in the prompt."""
    return {"summaries": [{"id": number[1:], "summary": text} for number, text in texts.items()]}


@pytest.mark.req("B5", "B6", "B7", "B9")
async def test_days_1_to_8_with_a_moving_clock(location: str) -> None:
    """The document's example: stress and the gym for a week, then a new project."""
    clock, scribe = MovingClock(datetime(2026, 3, 1, 9, tzinfo=UTC)), Scribe()
    async with remembering(location, "community", chat=scribe, clock=clock) as memory:
        ann, bob = memory.user("ann", space="guild"), memory.user("bob", space="guild")
        for number in range(1, 8):
            clock.time = datetime(2026, 3, number, 9, tzinfo=UTC)
            scribe.answers.append(
                answer(p1=f"Ann was stressed on day {number}.", p2=f"Bob teased Ann on day {number}.")
            )
            await channel(memory, clock, ("ann", "I'm so stressed."), ("bob", "Ann is always stressed."))
            assert (await memory.upkeep()).error is None
        clock.time = datetime(2026, 3, 8, 9, tzinfo=UTC)
        calls = len(scribe.asked)
        week = await ann.week()
        # One call for each day and everybody; the week's for each of them when the day had changed.
        assert days_of(scribe) == [f"2026-03-0{number}" for number in range(1, 8)]
        assert week is not None
        assert (week.kind, week.day, week.text) == ("week", date(2026, 3, 7), f"S{calls + 1}")
        shown = scribe.asked[-1][1]
        assert [f'<day date="2026-03-0{number}">' in shown for number in range(1, 9)] == [False] + [True] * 6 + [False]
        assert "Write the summary of 2026-03-02 to 2026-03-07 in English." in shown
        assert (await ann.week()) == week, "made once, as long as the day does not change"
        # Day 8 is today.
        scribe.answers.append(answer(p1="Ann seems excited about a new project."))
        await channel(memory, clock, ("ann", "A new project starts!"))
        today = await ann.day()
        assert today is not None
        assert (today.text, today.day, today.messages) == (
            "Ann seems excited about a new project.",
            date(2026, 3, 8),
            1,
        )
        assert [each.text for each in await bob.summaries(kind="day", day=date(2026, 3, 3))] == [
            "Bob teased Ann on day 3."
        ]
        first_day = await ann.day(date(2026, 3, 1))
        assert first_day is not None
        assert first_day.text == "Ann was stressed on day 1."
        assert [message.text for message in await ann.summary_messages(week.id)] == ["I'm so stressed."] * 6
        assert (await memory.verify()).ok


@pytest.mark.req("B6")
async def test_today_is_made_again_at_most_once_an_hour_and_finally_when_it_is_over(location: str) -> None:
    clock, scribe = MovingClock(), Scribe()
    async with remembering(location, "community", chat=scribe, clock=clock) as memory:
        ann = memory.user("ann", space="guild")
        for number in range(6):
            scribe.answers.append(answer(p1=f"Version {number}."))
        texts = []
        for _ in range(4):
            await channel(memory, clock, ("ann", "Hello again."))
            await memory.upkeep()
            today = await ann.day()
            texts.append(today.text if today else None)
            clock.forward(minutes=24)
        assert texts == ["Version 0.", "Version 0.", "Version 0.", "Version 1."]
        assert memory.metrics.snapshot()[Key("day", OWN)].cache_hits == 4, "upkeep had made each of them"
        clock.time = datetime(2026, 3, 2, 0, 0, 1, tzinfo=UTC)
        await memory.upkeep()
        (day,) = await ann.summaries(kind="day")
        assert (day.text, day.version, day.messages) == ("Version 1.", 2, 4), "nothing was said after the last one"
        calls = len(days_of(scribe))
        for _ in range(3):
            clock.forward(days=1)
            await memory.upkeep()
        assert len(days_of(scribe)) == calls, "a day that is over is never made again"


@pytest.mark.req("B5")
async def test_everybody_gets_a_summary_also_whom_the_model_forgets(location: str) -> None:
    clock, scribe = MovingClock(), Scribe()
    async with remembering(location, "community", chat=scribe, clock=clock) as memory:
        scribe.answers.append({"summaries": [{"id": "1", "summary": "Ann moved."}, {"id": "99", "summary": "Nobody."}]})
        await channel(memory, clock, ("ann", "I moved to Berlin."), ("bob", "I adopted a cat named Miso."))
        await memory.upkeep()
        (ann,) = await memory.user("ann", space="guild").summaries()
        (bob,) = await memory.user("bob", space="guild").summaries()
        assert (ann.text, ann.model) == ("Ann moved.", "test:scribe")
        assert "Miso" in bob.text
        assert bob.model is None
        shown = scribe.asked[0][1]
        assert '<person id="1">Ann</person>' in shown
        assert "<author_id>2</author_id><author>Bob</author><content>I adopted a cat named Miso.</content>" in shown
        assert "guild" not in shown


async def test_what_is_said_in_confidence_gets_into_nobody_elses_summary(location: str) -> None:
    clock, scribe = MovingClock(), Scribe()
    async with remembering(location, "community", chat=scribe, clock=clock) as memory:
        await channel(memory, clock, ("ann", "Hello everybody."), ("bob", "Hello Ann."))
        private = memory.user("ann", space="guild")
        await private.add("user", "Bob will be fired.", at=clock.forward(minutes=1), name="Ann")
        scribe.answers += [answer(p1="Ann greets.", p2="Bob greets."), answer(p1="Ann knows something.")]
        await memory.upkeep()
        among_all, alone = (shown for operation, shown in scribe.asked if operation == "day")
        assert "fired" not in among_all
        assert "<person" in alone
        assert "Bob</person>" not in alone
        (day,) = await private.summaries()
        assert (day.text, day.messages) == ("Ann greets.\nAnn knows something.", 2)


async def test_the_time_zone_of_the_space_decides_what_a_day_is(location: str) -> None:
    clock = MovingClock(datetime(2026, 3, 1, 23, 30, tzinfo=UTC))
    profile = {"extends": "community", "time_zone": "Asia/Tokyo", "time_zones": {"guild": "Europe/Berlin"}}
    async with remembering(location, profile, clock=clock) as memory:
        for space in ("guild", "elsewhere"):
            await memory.user("ann", space=space).add("user", "It is late in Berlin.", at=clock.time)
        clock.forward(minutes=1)
        await memory.upkeep()
        days = [(await memory.user("ann", space=space).summaries())[0].day for space in ("guild", "elsewhere")]
        assert days == [date(2026, 3, 2), date(2026, 3, 2)]
        clock.time = datetime(2026, 3, 3, 16, tzinfo=UTC)
        for space in ("guild", "elsewhere"):
            await memory.user("ann", space=space).add("user", "Good morning, Tokyo.", at=clock.time)
        await memory.upkeep()
        days = [
            (await memory.user("ann", space=space).summaries(kind="day"))[-1].day for space in ("guild", "elsewhere")
        ]
        assert days == [date(2026, 3, 3), date(2026, 3, 4)]


async def test_a_day_that_is_too_long_for_one_call_takes_several(location: str) -> None:
    clock, scribe = MovingClock(), Scribe()
    async with remembering(location, "community", chat=scribe, clock=clock) as memory:
        for _ in range(5):
            await channel(memory, clock, ("ann", "very long " * 2_000))
        scribe.answers += [answer(p1="Morning."), answer(p1="Evening.")]
        await memory.upkeep()
        (day,) = await memory.user("ann", space="guild").summaries()
        assert (day.text, day.messages) == ("Morning.\nEvening.", 5)


async def test_a_message_that_comes_in_late_gets_into_its_day(location: str) -> None:
    clock, scribe = MovingClock(), Scribe()
    async with remembering(location, "community", chat=scribe, clock=clock) as memory:
        ann = memory.user("ann", space="guild")
        await ann.add("user", "On time.", at=clock.time - timedelta(days=3))
        scribe.answers += [answer(p1="Before."), answer(p1="After.")]
        await memory.upkeep()
        await ann.add("user", "Late.", at=clock.time - timedelta(days=3, minutes=5))
        await memory.upkeep()
        (day,) = await ann.summaries()
        assert (day.text, day.messages, day.version) == ("After.", 2, 2)
        assert (await memory.verify()).ok


@pytest.mark.req("B9")
async def test_all_of_it_can_be_had_on_demand_without_any_work_in_the_background(location: str) -> None:
    clock = MovingClock()
    async with remembering(location, "community", clock=clock) as memory:
        ann = memory.user("ann", space="guild")
        assert await ann.day() is None
        assert await ann.week() is None
        await ann.add("user", "I adopted a cat named Miso.", at=clock.time - timedelta(days=1))
        await ann.add("user", "Miso caught a mouse.", at=clock.time)
        today, week = await ann.day(), await ann.week()
        assert today is not None
        assert week is not None
        assert "mouse" in today.text
        assert "adopted" in week.text
        assert "mouse" not in week.text


async def test_without_an_answer_there_is_what_is_stored(location: str) -> None:
    clock, scribe = MovingClock(), Scribe()
    async with remembering(location, "community", chat=scribe, clock=clock) as memory:
        ann = memory.user("ann", space="guild")
        scribe.answers.append(answer(p1="Good morning."))
        await ann.add("user", "Hello.", at=clock.time)
        await ann.day()
        scribe.down = True
        await ann.add("user", "Hello again.", at=clock.forward(hours=2))
        today = await ann.day()
        assert today is not None
        assert today.text == "Good morning."
        assert await ann.week() is None


async def test_whoever_switched_memory_off_is_in_nobodys_day(location: str) -> None:
    clock, scribe = MovingClock(), Scribe()
    async with remembering(location, "community", chat=scribe, clock=clock) as memory:
        await memory.user("bob", space="guild").set("memory_enabled", value=False)
        await channel(memory, clock, ("ann", "Hello."), ("bob", "A secret of Bob."))
        scribe.answers.append(answer(p1="Ann greets."))
        await memory.upkeep()
        assert "A secret of Bob." not in scribe.asked[-1][1]
        assert [each.text for each in await memory.user("ann", space="guild").summaries()] == ["Ann greets."]
        assert await memory.user("bob", space="guild").summaries() == []
        clock.forward(days=1)
        await memory.upkeep()
        assert await memory.user("bob", space="guild").summaries(active=None) == []
        assert (await memory.verify()).ok


class SlowScribe(Scribe):
    """A model that is still writing when the next one asks."""

    def __init__(self) -> None:
        super().__init__()
        self.going_on = asyncio.Event()
        self.begun = asyncio.Event()

    async def structure(
        self, operation: Operation, messages: Sequence[Said], shape: type[Shape], *, scope: Scope | None = None
    ) -> Answer[Shape]:
        self.answers.append(answer(p1="Somebody was stressed."))
        self.begun.set()
        made = await super().structure(operation, messages, shape, scope=scope)
        await self.going_on.wait()
        return made


async def a_week_of_three(memory: Memory, clock: MovingClock) -> None:
    for number in range(1, 8):
        clock.time = datetime(2026, 3, number, 9, tzinfo=UTC)
        await channel(memory, clock, *((user, "I am so stressed.") for user in ("ann", "bob", "cid")))
    clock.time = datetime(2026, 3, 7, 20, tzinfo=UTC)


@pytest.mark.defect("B8")
@pytest.mark.req("G7")
@pytest.mark.parametrize("beside_upkeep", [False, True])
async def test_each_day_is_summarised_once_however_many_ask_at_the_same_time(
    location: str, *, beside_upkeep: bool
) -> None:
    clock, scribe = MovingClock(), SlowScribe()
    settings = Settings(background=False)
    async with remembering(location, "community", chat=scribe, clock=clock, settings=settings) as memory:
        await a_week_of_three(memory, clock)
        asking = [asyncio.create_task(memory.user(user, space="guild").portrait()) for user in ("ann", "bob", "cid")]
        if beside_upkeep:
            asking.append(asyncio.create_task(memory.upkeep()))  # type: ignore[arg-type]
        await scribe.begun.wait()
        for _ in range(50):
            await asyncio.sleep(0)  # everybody gets as far as they can while the first day is being written
        scribe.going_on.set()
        await asyncio.gather(*asking)
        assert sorted(days_of(scribe)) == [f"2026-03-0{number}" for number in range(1, 8)]


@pytest.mark.defect("B8")
@pytest.mark.req("G7")
async def test_two_processes_on_one_store_summarise_a_day_once(tmp_path: Path) -> None:
    location, clock = str(tmp_path / "memory.db"), MovingClock()
    one, two = SlowScribe(), SlowScribe()
    settings = Settings(background=False)
    async with (
        remembering(location, "community", chat=one, clock=clock, settings=settings) as first,
        remembering(location, "community", chat=two, clock=clock, settings=settings) as second,
    ):
        await channel(first, clock, ("ann", "I am so stressed."), ("bob", "Me too."))
        making = asyncio.create_task(first.user("ann", space="guild").day())
        await one.begun.wait()
        waiting = asyncio.create_task(second.user("bob", space="guild").day())
        two.going_on.set()
        while not (await second.store.read(Marks())):
            await asyncio.sleep(0)
        one.going_on.set()
        assert await making is not None
        assert await waiting is not None, "the first summary of a day is waited for"
        assert (days_of(one), days_of(two)) == (["2026-03-01"], [])
        # An hour later the older one is used while another process makes the newer one.
        clock.forward(hours=2)
        await channel(first, clock, ("ann", "It is over."))
        one.going_on.clear()
        one.begun.clear()
        making = asyncio.create_task(first.user("ann", space="guild").day())
        await one.begun.wait()
        older = await second.user("bob", space="guild").day()
        one.going_on.set()
        await making
        assert older is not None
        assert days_of(two) == []


@pytest.mark.req("G7")
async def test_a_lease_that_a_dead_process_left_behind_ends_by_itself(store: Store) -> None:
    dead, living = Leases(store), Leases(store)
    async with dead.hold("day", "guild", "2026-03-01") as taken:
        assert taken
        async with living.hold("day", "guild", "2026-03-01") as also:
            assert not also
        (name,) = await store.read(Marks())
        await store.apply([PutMark(name, '{"owner": "dead", "until": 1}')])
        async with living.hold("day", "guild", "2026-03-01") as after_its_end:
            assert after_its_end
    assert await store.read(Marks()) == {}


async def test_of_two_who_change_a_mark_at_once_one_is_told(store: Store) -> None:
    await store.apply([PutMark("place", "one", only_if=None)])
    with pytest.raises(SourcesChanged):
        await store.apply([PutMark("place", "two", only_if=None)])
    with pytest.raises(SourcesChanged):
        await store.apply([PutMark("place", None, only_if="two")])
    await store.apply([PutMark("place", "two", only_if="one")])
    assert await store.read(Marks()) == {"place": "two"}


@pytest.mark.defect("I5")
async def test_a_profile_that_summarises_no_days_says_so_when_asked_for_one(caplog: pytest.LogCaptureFixture) -> None:
    async with aforesaid.connect(":memory:") as memory:
        ann = memory.user("ann")
        await ann.add("user", "I moved to Bern.")
        assert (await ann.day(), await ann.week()) == (None, None)
    said = [record.message for record in caplog.records if record.name == "aforesaid.digest"]
    assert len(said) == 2
    assert all("policy is 'tree'" in each and "'community'" in each for each in said)


@pytest.mark.defect("M12")
async def test_a_day_tells_what_happened_in_the_threads_of_a_person_and_no_others(location: str) -> None:
    clock = MovingClock(datetime(2026, 3, 1, 9, tzinfo=UTC))
    async with remembering(location, "community", clock=clock) as memory:

        async def say(user: str, thread: str, text: str) -> None:
            await memory.user(user, space="guild", thread=thread).add(
                "user", text, at=clock.forward(minutes=1), name=user.title()
            )

        await say("ann", "family", "Our daughter Lola was born in the hospital of Sevilla at 3.40.")
        await say("bob", "family", "jajajaja")
        await say("cleo", "office", "The tax office wants the papers of 2024 until Friday.")
        await say("dan", "office", "lol")
        await say("dan", "lobby", "/summary_now")
        await say("eve", "lobby", "hahaha 😂")
        days = {name: await memory.user(name, space="guild").day() for name in ("ann", "bob", "cleo", "dan", "eve")}
        born = "Ann (2026-03-01): Our daughter Lola was born in the hospital of Sevilla at 3.40."
        assert {name: summary.text for name, summary in days.items() if summary is not None} == {
            "ann": born,
            "bob": born,
            "cleo": "Cleo (2026-03-01): The tax office wants the papers of 2024 until Friday.",
            "dan": "Cleo (2026-03-01): The tax office wants the papers of 2024 until Friday.",
            "eve": "A quiet day (messages: 2)",
        }


@pytest.mark.defect("M12")
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Guten Morgen! Wie geht es dir?", "Ein ruhiger Tag (Nachrichten: 1)"),
        ("おはよう！", "穏やかな一日（メッセージ数：1）"),
        ("Доброе утро! Как дела?", "Спокойный день (сообщений: 1)"),
    ],
)
async def test_a_quiet_day_says_so_in_the_language_of_the_chat(location: str, said: str, told: str) -> None:
    clock = MovingClock(datetime(2026, 3, 1, 9, tzinfo=UTC))
    async with remembering(location, "community", clock=clock) as memory:
        ann = memory.user("ann", space="guild", thread="general")
        await ann.add("user", said, at=clock.time, name="Ann")
        day = await ann.day()
        assert day is not None
        assert day.text == told


@pytest.mark.defect("M12")
async def test_a_quiet_day_is_named_in_the_language_of_the_person_and_is_no_part_of_the_week() -> None:
    clock = MovingClock()
    async with remembering(":memory:", "community", clock=clock) as memory:
        ann = memory.user("ann", thread="lobby")
        await ann.add("user", "Bugün Antakya'da yeni bir iş buldum, pazartesi başlıyorum.", at=clock.time, name="Ann")
        quiet = clock.forward(days=1)
        await memory.upkeep()
        await ann.add("user", "haha 😂", at=quiet, name="Ann")
        clock.forward(days=1)
        await memory.upkeep()
        day, week = await ann.day(quiet.date()), await ann.week()
        assert day is not None
        assert week is not None
        assert day.text == by_language()["turkish"]["quiet_day"].format(count=1)
        assert "Antakya" in week.text
        assert len(week.text.splitlines()) == 1
