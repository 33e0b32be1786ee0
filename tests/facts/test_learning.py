"""Learning from what is said: after each exchange, once, and nothing that was not said."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import aforesaid
from aforesaid.settings import Settings
from aforesaid.testing import Request, faults
from facts.talking import THURSDAY, asked, connect, extraction, model, numbered, paused, say, texts


@pytest.mark.req("D3")
async def test_an_exchange_is_looked_through_with_its_origin_kept(location: str) -> None:
    scripted = model(
        {
            "extract": [
                extraction(
                    {"kind": "preference", "text": "Ann prefers tea over coffee."},
                    {
                        "kind": "schedule",
                        "text": "Ann sees the dentist on 2026-03-09 at 9:00.",
                    },
                )
            ]
        }
    )
    async with scripted, connect(location, scripted=scripted) as memory:
        user = memory.user("ann")
        await say(user, "I prefer tea over coffee. I see the dentist on Monday at 9", reply="Noted!", name="Ann")
        report = await memory.upkeep()
        assert report.remembered == 2
        tea, dentist = sorted(await user.memories(active=None), key=lambda each: each.category)
        assert (tea.text, tea.importance, tea.sources, tea.speaker, tea.trust) == (
            "Ann prefers tea over coffee.",
            5,
            (1,),
            "ann",
            "said",
        )
        assert tea.extractor == "extract/4 scripted:scripted"
        assert tea.valid_from == THURSDAY < tea.created_at
        assert dentist.event is not None
        assert dentist.event.start == datetime(2026, 3, 9, 9, 0, tzinfo=UTC)
        (request,) = asked(scripted, "extract")
        assert request.body["temperature"] == 0.3
        assert "# Thu 2026-03-05 12:00\n[1] Ann: I prefer tea" in request.asked
        # The appointment is past, so it may have expired in the background by now.
        audited = [entry.action for entry in await user.audit() if entry.action != "memory.expire"]
        assert audited == ["memory.add", "memory.add"]
        assert (await memory.upkeep()).remembered == 0
        assert len(asked(scripted, "extract")) == 1


async def test_in_the_background_an_exchange_waits_for_its_reply() -> None:
    heard = asyncio.Event()
    loop = asyncio.get_running_loop()

    def answer(_: Request) -> object:
        loop.call_soon_threadsafe(heard.set)
        return extraction({"text": "Ann likes tea."})

    scripted = model({"extract": answer})
    async with scripted, connect(scripted=scripted) as memory:
        user = memory.user("ann")
        await user.add("user", "I like tea")
        await asyncio.sleep(0.5)
        assert asked(scripted, "extract") == []
        await user.add("assistant", "Good")
        await asyncio.wait_for(heard.wait(), 20)
        assert "I like tea" in asked(scripted, "extract")[0].asked


async def test_a_backlog_is_looked_through_in_batches_of_exchanges() -> None:
    scripted = model({})
    async with scripted, connect(scripted=scripted, extract_exchanges=5) as memory:
        user = memory.user("ann")
        async with paused(memory):
            for number in range(12):
                await say(user, f"number {number}", reply=f"reply {number}")
        await memory.upkeep()
        questions = [
            [text for number, text in numbered(request) if number is not None] for request in asked(scripted, "extract")
        ]
        assert [len(question) for question in questions] == [5, 5, 2]
        assert all(sum(f"number {number}" in question for question in questions) == 1 for number in range(12))


async def test_a_greeting_before_the_first_exchange_does_not_separate_messages_from_their_replies() -> None:
    scripted = model({})
    async with scripted, connect(scripted=scripted, extract_exchanges=2) as memory:
        user = memory.user("ann")
        async with paused(memory):
            await user.add("assistant", "Hello!")
            for text, reply in (("I bake.", "Nice."), ("I sew.", "Good.")):
                await user.add("user", text)
                await user.add("assistant", reply)
        await memory.upkeep()
        first, second = asked(scripted, "extract")
        assert numbered(first) == [(None, "Hello!"), ("1", "I bake."), (None, "Nice.")]
        assert numbered(second)[-2:] == [("1", "I sew."), (None, "Good.")]


async def test_where_nobody_replies_two_messages_count_as_an_exchange() -> None:
    scripted = model({})
    async with scripted, connect(scripted=scripted, extract_exchanges=2) as memory:
        user = memory.user("ann", thread="general")
        async with paused(memory):
            await say(user, *(f"number {number}" for number in range(5)))
        await memory.upkeep()
        batches = [[text for place, text in numbered(each) if place is not None] for each in asked(scripted, "extract")]
        assert batches == [["number 0", "number 1", "number 2", "number 3"], ["number 4"]]


@pytest.mark.parametrize("with_model", [True, False])
async def test_668_repetitions_leave_one_memory_with_a_count(location: str, *, with_model: bool) -> None:
    def answer(request: Request) -> object:
        turns = [int(number) for number, _ in numbered(request) if number is not None]
        return extraction(*({"kind": "preference", "text": "Ann likes tea.", "from": [number]} for number in turns))

    scripted = model({"extract": answer})
    async with scripted, connect(location, scripted=scripted if with_model else None, extract_exchanges=6) as memory:
        user = memory.user("ann")
        async with paused(memory):
            for number in range(668):
                await user.add("user", "I like tea.", id=f"m{number}", name="Ann")
        await memory.upkeep()
        (known,) = await user.memories(active=None)
        assert (known.text, known.times) == ("Ann likes tea.", 668)
        assert len(known.sources) == 20


async def test_said_one_by_one_it_is_the_same() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        for _ in range(30):
            await user.add("user", "I like tea.")
            await memory.upkeep()
        (known,) = await user.memories(active=None)
        assert (known.times, known.revision) == (30, 1)
        part = next(part for part in (await memory.health()).components if part.name == "memories")
        assert ("dropped: known", "29") in part.facts


@pytest.mark.parametrize("known", ["Ann loves tea.", "Ann really likes tea.", "ann likes tea"])
async def test_near_repetitions_are_recognised(known: str) -> None:
    scripted = model({"extract": [extraction({"text": "Ann likes tea."}), extraction({"text": known})]})
    async with scripted, connect(scripted=scripted) as memory:
        user = memory.user("ann")
        for day in range(2):
            at = THURSDAY + timedelta(days=day)
            await say(user, "I like and love tea a lot, really", reply="I see", name="Ann", at=at)
            await memory.upkeep()
        assert [(each.text, each.times) for each in await user.memories()] == [("Ann likes tea.", 2)]


async def test_two_appointments_that_differ_in_a_number_are_two() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        now = datetime.now(UTC)
        await say(
            user,
            "I have a dentist appointment tomorrow at 9am.",
            "I have a dentist appointment tomorrow at 11am.",
            at=now,
        )
        await memory.upkeep()
        assert len(await user.memories("schedule")) == 2


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ({"text": "Ann could try yoga and meditation.", "from": [1]}, "echo"),
        ({"text": "Ann could try yoga and meditation.", "from": [2]}, "unsupported"),
        ({"text": "Ann is stressed.", "from": [9]}, "unsupported"),
        ({"text": "You could try yoga.", "from": [1]}, "unclear"),
        ({"text": "ok", "from": [1]}, "unclear"),
        ({"text": "Ann!!", "from": [1]}, "junk"),
        ({"text": "Is Ann stressed?", "from": [1]}, "junk"),
    ],
)
async def test_what_nobody_said_is_dropped_and_counted(written: dict[str, object], reason: str) -> None:
    scripted = model({"extract": [extraction(written)]})
    async with scripted, connect(scripted=scripted) as memory:
        user = memory.user("ann")
        await say(user, "I am stressed.", reply="You could try yoga and meditation.", name="Ann")
        await memory.upkeep()
        assert await user.memories(active=None) == []
        part = next(part for part in (await memory.health()).components if part.name == "memories")
        assert (f"dropped: {reason}", "1") in part.facts


async def test_what_the_person_confirms_is_kept() -> None:
    scripted = model({"extract": [extraction({"text": "Ann does yoga.", "from": [1, 2]})]})
    async with scripted, connect(scripted=scripted) as memory:
        user = memory.user("ann")
        await say(user, "Hello", reply="Do you do yoga?", name="Ann")
        await say(user, "Yes, exactly.", reply="Good for you.", name="Ann")
        await memory.upkeep()
        assert await texts(user) == ["Ann does yoga."]


async def test_an_answer_that_does_not_fit_changes_nothing_and_the_batch_is_learned_without_a_model() -> None:
    scripted = model({"extract": ["no JSON", "still no JSON", extraction({"text": "Ann likes tea."})]})
    async with scripted, connect(scripted=scripted) as memory:
        user = memory.user("ann")
        await say(user, "I live in Berlin", reply="Good.", name="Ann")
        report = await memory.upkeep()
        assert report.error is None
        assert len(asked(scripted, "extract")) == 2, "it is told once what is wrong"
        await say(user, "I like tea", reply="Good.", name="Ann")
        await memory.upkeep()
        assert {each.extractor for each in await user.memories()} == {"extract/4 scripted:scripted", "rules/1"}


async def test_a_model_that_is_down_stops_it_and_nothing_is_skipped(location: str) -> None:
    scripted = model({"extract": lambda _: extraction({"text": "Ann likes tea."})})
    async with scripted, connect(location, scripted=scripted) as memory:
        user = memory.user("ann")
        async with paused(memory):
            await say(user, "I like tea", reply="Good", name="Ann")
        scripted.fail(faults.ServerError())
        report = await memory.upkeep()
        assert report.error is not None
        assert (await memory.health()).status == "failing"
        assert await user.memories(active=None) == []
        scripted.heal()
        reports = [await memory.upkeep() for _ in range(2)]
        assert [report.remembered for report in reports] == [1, 0]


async def test_a_profile_can_leave_learning_off() -> None:
    async with aforesaid.connect(":memory:", profile="archive", embedder="none", settings=Settings()) as memory:
        user = memory.user("ann")
        await user.add("user", "I like tea.")
        await memory.upkeep()
        assert await user.memories() == []
        await user.remember("I like tea")
        assert await texts(user) == ["ann likes tea."]


async def test_dates_are_resolved_against_when_it_was_said_also_on_import() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        await user.add("user", "I went to Rome yesterday.", at=datetime(2019, 8, 1, 15, 0, tzinfo=UTC))
        await memory.upkeep()
        (trip,) = await user.memories(active=None)
        assert trip.event is not None
        assert trip.event.start == datetime(2019, 7, 31, tzinfo=UTC)
        assert trip.valid_from == datetime(2019, 8, 1, 15, 0, tzinfo=UTC)
        assert trip.created_at - trip.valid_from > timedelta(days=365)


async def test_days_are_those_of_the_users_time_zone() -> None:
    async with connect(time_zone="Asia/Tokyo") as memory:
        user = memory.user("ann")
        await user.add(
            "user", "I have a dentist appointment tomorrow at 9am.", at=datetime(2126, 3, 5, 20, 0, tzinfo=UTC)
        )
        await memory.upkeep()
        (visit,) = await user.memories("schedule")
        assert visit.event is not None
        # In Tokyo it was the 6th already.
        assert visit.event.start == datetime(2126, 3, 7, 0, 0, tzinfo=UTC)


async def test_what_is_over_is_left_out_and_marked() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        gone = await user.note("fact", "Parking permit 12", priority=5, tags=["car"], expires=THURSDAY)
        kept = await user.note("fact", "Garage 7", priority=1, expires=datetime.now(UTC) + timedelta(days=1))
        assert (gone.priority, gone.tags, kept.priority) == (5, ("car",), 1)
        assert await texts(user) == ["Garage 7"]
        assert await texts(user, state="expired") == ["Parking permit 12"]
        assert [hit.text for hit in await user.search("parking permit", kinds=["memory"])] == []
        await memory.upkeep()
        assert [each.state for each in await user.memories(active=False)] == ["expired"]
        assert await user.portrait() == "Garage 7"


@pytest.mark.req("B15")
async def test_each_kind_of_memory_is_kept_as_long_as_the_profile_says() -> None:
    async with connect(keep_days={"preference": 10, "fact": 100}) as memory:
        user = memory.user("ann")
        old = datetime.now(UTC) - timedelta(days=50)
        await say(user, "I like tea.", "I live in Berlin.", at=old)
        await memory.upkeep()
        assert await texts(user) == ["ann lives in Berlin."]
        assert await texts(user, state="expired") == ["ann likes tea."]
        assert len(await user.history()) == 2


async def test_a_task_is_over_a_week_after_its_day_and_never_without_one() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        await say(user, "I have to call the dentist tomorrow.", at=datetime.now(UTC) - timedelta(days=50))
        await say(user, "I have to buy a lamp.", at=datetime.now(UTC) - timedelta(days=50))
        await say(user, "I have to fetch the parcel tomorrow.", at=datetime.now(UTC) - timedelta(days=3))
        await memory.upkeep()
        assert {text.split(" (")[0] for text in await texts(user)} == {
            "ann has to buy a lamp.",
            "ann has to fetch the parcel tomorrow",
        }
        (gone,) = await texts(user, state="expired")
        assert gone.startswith("ann has to call the dentist tomorrow")


@pytest.mark.defect("F3")
async def test_a_past_event_is_a_fact_and_does_not_expire() -> None:
    died = {"kind": "schedule", "text": "Ann's father died on 2026-03-03."}
    visit = {"kind": "schedule", "text": "Ann was in hospital on 2026-03-04."}
    ahead = {"kind": "schedule", "text": "Ann sees the dentist on 2026-03-09."}
    scripted = model({"extract": [extraction(died, visit, ahead)]})
    async with scripted, connect(scripted=scripted) as memory:
        user = memory.user("ann")
        said = "My father died on Tuesday, I was in hospital yesterday, and I see the dentist on Monday."
        await say(user, said, reply="I am sorry.", name="Ann")
        await memory.upkeep()
        found = {each.text: each for each in await user.memories(active=None)}
        assert [found[each["text"]].category for each in (died, visit, ahead)] == ["fact", "fact", "schedule"]
        assert [found[each["text"]].expires_at for each in (died, visit)] == [None, None]
        assert found[ahead["text"]].expires_at is not None


@pytest.mark.defect("F3")
async def test_a_model_that_only_writes_junk_is_asked_about_once_for_each_batch() -> None:
    scripted = model({"extract": lambda _: "{{{ not json ]]"})
    async with scripted, connect(scripted=scripted) as memory:
        user = memory.user("ann")
        async with paused(memory):
            for number in range(20):
                await say(user, f"I bought {number} apples.", reply="Good.", name="Ann")
        await memory.upkeep()
        # Each question is asked twice: the second time with what was wrong with the answer.
        assert len(asked(scripted, "extract")) == 2 * 3
        assert len({str(request.messages[1]["content"]) for request in asked(scripted, "extract")}) == 3
        assert len(await user.memories()) == 20, "rules take over"


@pytest.mark.defect("F3")
async def test_an_answer_is_learned_with_the_question_of_the_batch_before() -> None:
    vegetarian = {"text": "Ann is vegetarian.", "from": [1]}
    scripted = model({"extract": [extraction(), extraction(vegetarian)]})
    async with scripted, connect(scripted=scripted) as memory:
        ann = memory.user("ann")
        await say(ann, "Good morning!", reply="Hello! Are you vegetarian?", name="Ann")
        await memory.upkeep()
        await say(ann, "Yes.", reply="Noted.", name="Ann", at=datetime.now(UTC))
        await memory.upkeep()
        first, second = asked(scripted, "extract")
        assert numbered(first) == [("1", "Good morning!"), (None, "Hello! Are you vegetarian?")]
        assert numbered(second) == [
            (None, "Good morning!"),
            (None, "Hello! Are you vegetarian?"),
            ("1", "Yes."),
            (None, "Noted."),
        ]
        (learned,) = await ann.memories()
        assert (learned.text, learned.sources) == ("Ann is vegetarian.", ((await ann.history())[2].seq,))


@pytest.mark.defect("F3")
async def test_in_a_channel_the_questions_of_others_are_read_and_are_nobodys_source() -> None:
    rome = {"text": "Ann lives in Rome.", "from": [1]}
    scripted = model(
        {"extract": lambda request: extraction(rome) if "Rome" in numbered(request)[-1][1] else extraction()}
    )
    async with scripted, connect(scripted=scripted, extract_exchanges=10) as memory:
        ann, bob, cid = (memory.user(name, thread="general") for name in ("ann", "bob", "cid"))
        await cid.set("memory_enabled", value=False)
        async with paused(memory):
            await bob.add("user", "Where do you live now, Ann?", name="Bob")
            await cid.add("user", "I want to know that too.", name="Cid")
            await ann.add("user", "In Rome.", name="Ann")
        await memory.upkeep()
        (request,) = [each for each in asked(scripted, "extract") if numbered(each)[-1] == ("1", "In Rome.")]
        assert numbered(request) == [(None, "Where do you live now, Ann?"), ("1", "In Rome.")], "Cid switched it off"
        (learned,) = await ann.memories()
        assert learned.sources == ((await ann.history())[0].seq,)
        assert await bob.memories() == []


async def test_in_a_channel_what_others_say_between_two_messages_is_read() -> None:
    scripted = model({})
    async with scripted, connect(scripted=scripted) as memory:
        ann, bob = memory.user("ann", thread="general"), memory.user("bob", thread="general")
        async with paused(memory):
            await ann.add("user", "I moved last week.", name="Ann")
            await bob.add("user", "Where do you live now?", name="Bob")
            await ann.add("user", "In Rome.", name="Ann")
        await memory.upkeep()
        (request,) = [each for each in asked(scripted, "extract") if numbered(each)[-1][1] == "In Rome."]
        assert numbered(request) == [("1", "I moved last week."), (None, "Where do you live now?"), ("2", "In Rome.")]


async def test_what_only_the_assistant_or_somebody_else_said_is_not_learned() -> None:
    cycling = {"text": "Ann loves cycling in the mountains.", "from": [1]}
    unnumbered = {"text": "Ann has a brother in Oslo.", "from": []}
    scripted = model({"extract": lambda _: extraction(cycling, unnumbered)})
    async with scripted, connect(scripted=scripted) as memory:
        ann, bob = memory.user("ann", thread="general"), memory.user("bob", thread="general")
        async with paused(memory):
            await bob.add("user", "Ann loves cycling in the mountains, and has a brother in Oslo.", name="Bob")
            await ann.add("user", "What is for lunch?", name="Ann")
        await memory.upkeep()
        assert await ann.memories(active=None) == []


@pytest.mark.defect("X2")
async def test_what_is_remembered_is_stored_once_however_much_was_remembered_before(tmp_path: Path) -> None:
    async with connect(str(tmp_path / "memory.db")) as memory:
        for number in range(60):
            await memory.user("ann").remember(f"Ann has a cousin number {number} in the town of Sampletown {number}")
        (*_, newest) = await memory.user("ann").facts()
    assert len(newest.text.splitlines()) == 60
    with closing(sqlite3.connect(tmp_path / "memory.db")) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        sizes = [
            database.execute(f"SELECT coalesce(sum(length(text)), 0) FROM {name}").fetchone()[0]
            for name in tables
            if name in {"fact", "facts"}
        ]
    assert sum(sizes) <= len(newest.text)


@pytest.mark.defect("X2")
async def test_remembering_reads_no_more_memories_than_may_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        for number in range(8):
            await ann.remember(f"Ann has a cousin number {number} in the town of Sampletown {number}")

        def whole(*_: object, **__: object) -> None:
            raise AssertionError("all memories were read")

        monkeypatch.setattr("aforesaid.facts.fact_editor.Memories", whole)
        assert (await ann.remember("Ann plays the bassoon")).outcome == "stored"
        assert (await ann.remember("Ann plays the bassoon")).outcome == "known"
