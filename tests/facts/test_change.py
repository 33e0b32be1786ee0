"""What is known changes over time, and every change can be looked at and taken back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from aforesaid.errors import InvalidInput, NotFound, WrongState
from aforesaid.memory import UserMemory
from facts.talking import THURSDAY, connect, extraction, model, say, texts


def days(number: float) -> datetime:
    return THURSDAY + timedelta(days=number)


async def test_what_was_believed_at_a_time_is_known(location: str) -> None:
    async with connect(location) as memory:
        user = memory.user("ann")
        await say(user, "I live in Paris.", at=days(0))
        await say(user, "I moved to Berlin.", at=days(10))
        await say(user, "I moved to Rome.", at=days(20))
        await memory.upkeep()
        assert await texts(user) == ["ann moved to Rome."]
        assert await texts(user, at=days(-1)) == []
        assert await texts(user, at=days(5)) == ["ann lives in Paris."]
        assert await texts(user, at=days(15)) == ["ann moved to Berlin."]
        assert await texts(user, at=days(25)) == ["ann moved to Rome."]
        rome, berlin, paris = sorted(await user.memories(active=None), key=lambda each: each.valid_from, reverse=True)
        assert (paris.superseded_by, berlin.superseded_by, rome.superseded_by) == (berlin.id, rome.id, None)
        assert (paris.valid_from, paris.valid_to) == (days(0), days(10))


async def test_what_is_old_and_comes_late_does_not_take_the_place_of_what_is_newer() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        await say(user, "I moved to Berlin.", at=days(10))
        await memory.upkeep()
        await say(user, "I live in Paris.", at=days(0))
        await memory.upkeep()
        assert await texts(user) == ["ann moved to Berlin."]
        assert await texts(user, at=days(5)) == ["ann lives in Paris."]


async def test_going_back_is_a_change_too() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        await say(user, "I live in Paris.", at=days(0))
        await say(user, "I live in Berlin.", at=days(1))
        await say(user, "I live in Paris.", at=days(2))
        await memory.upkeep()
        assert await texts(user) == ["ann lives in Paris."]
        assert [await texts(user, at=days(day)) for day in (0.5, 1.5, 2.5)] == [
            ["ann lives in Paris."],
            ["ann lives in Berlin."],
            ["ann lives in Paris."],
        ]


@pytest.mark.parametrize(
    ("said", "later", "known"),
    [
        (
            "Ich heiße Jonas und wohne in Köln.",
            "Ich bin jetzt nach Bremen gezogen.",
            ["Name: Jonas", "Wohnort: Bremen"],
        ),
        ("Me llamo Ana y vivo en Madrid.", "Me mudé a Sevilla.", ["Nombre: Ana", "Residencia: Sevilla"]),
        ("Je m'appelle Luc et habite à Lyon.", "J'ai déménagé à Paris.", ["Nom : Luc", "Lieu de vie : Paris"]),
        ("Mi chiamo Anna e vivo a Roma.", "Mi sono trasferita a Milano.", ["Nome: Anna", "Residenza: Milano"]),
        ("Mijn naam is Jan en ik woon in Utrecht.", "Ik ben verhuisd naar Gent.", ["Naam: Jan", "Woonplaats: Gent"]),
        ("Меня зовут Иван и я живу в Москве.", "Я переехал в Казань.", ["Имя: Иван", "Место жительства: Казань"]),
        ("我叫小明，住在北京。", "我搬到了上海。", ["姓名：小明", "居住地：上海"]),
    ],
)
async def test_of_two_facts_in_a_sentence_the_one_that_changed_is_replaced(
    said: str, later: str, known: list[str]
) -> None:
    async with connect(embedder="local") as memory:
        user = memory.user("ann")
        await say(user, said, at=days(0))
        await memory.upkeep()
        await say(user, later, at=days(1))
        await memory.upkeep()
        assert sorted(await texts(user)) == sorted(f"ann: {each}" for each in known)
        assert len(await texts(user, state="superseded")) == 1


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Ich mag Tee und Kaffee.", ["Mag: Tee und Kaffee"]),
        ("Ich wohne in Köln und Bonn.", ["Wohnort: Bonn", "Wohnort: Köln"]),
        ("Ma sœur s'appelle Eva et habite à Lyon.", ["Frère ou sœur : sœur Eva", "sœur Eva (Lieu de vie : Lyon)"]),
    ],
)
async def test_one_statement_with_an_and_is_remembered_as_a_whole(said: str, told: list[str]) -> None:
    async with connect(embedder="local") as memory:
        user = memory.user("ann")
        await say(user, said)
        await memory.upkeep()
        assert sorted(await texts(user)) == sorted(f"ann: {each}" for each in told)


@pytest.mark.defect("S7")
@pytest.mark.parametrize(
    "name",
    ["Ann", "Mei Lin", "Zoë", "Die", "Jan de Vries", "Sofía García de la Cruz", "Мария Константинова", "欧阳娜娜"],
)
async def test_a_name_does_not_decide_the_language_of_what_is_known(name: str) -> None:
    async with connect() as memory:
        user = memory.user("u1")
        await user.add("user", "Hello.", name=name)
        await user.remember("is vegetarian")
        await user.remember("I live in Paris")
        await user.remember("I live in Berlin")
        await user.remember("likes running")
        assert await user.portrait() == f"{name} is vegetarian.\n{name} lives in Berlin.\n{name} likes running."
        assert {each.language for each in await user.memories()} == {"english"}
        assert [(await user.forget(what)).found for what in ("is vegetarian", "lives in Berlin", "running")] == [
            True
        ] * 3
        assert await user.portrait() is None


async def test_tastes_change_only_where_they_are_about_the_same_thing() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        await say(user, "I love tea.", "I love jazz.", "I hate coffee.")
        await say(user, "I hate tea.", at=days(1))
        await memory.upkeep()
        assert sorted(await texts(user)) == ["ann hates coffee.", "ann hates tea.", "ann loves jazz."]


async def test_what_is_true_of_a_relative_does_not_touch_the_person() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        await say(user, "I live in Berlin.", "My sister lives in Rome.", "My brother lives in Oslo.")
        await memory.upkeep()
        assert len(await texts(user)) == 3
        await say(user, "My sister moved to Paris.", at=days(1))
        await memory.upkeep()
        assert sorted(await texts(user)) == [
            "ann lives in Berlin.",
            "ann's brother lives in Oslo.",
            "ann's sister moved to Paris.",
        ]


@pytest.mark.parametrize(
    ("own", "theirs", "kept"),
    [
        ("Ich wohne in Bonn.", "Meine Frau wohnt in Köln.", "Wohnort: Bonn"),
        ("Ich heiße Jonas.", "Meine Schwester heißt Eva.", "Name: Jonas"),
        ("Vivo en Madrid.", "Mi hermana vive en Sevilla.", "Residencia: Madrid"),
        ("J'habite à Lyon.", "Ma sœur habite à Paris.", "Lieu de vie : Lyon"),
        ("Я живу в Москве.", "Моя сестра живет в Казани.", "Место жительства: Москве"),
        ("我住在上海。", "我妹妹住在北京。", "居住地：上海"),
    ],
)
async def test_a_relative_does_not_replace_the_person_in_other_languages(own: str, theirs: str, kept: str) -> None:
    async with connect(embedder="local") as memory:
        user = memory.user("ann")
        await say(user, own, at=days(0))
        await say(user, theirs, at=days(1))
        await memory.upkeep()
        assert f"ann: {kept}" in await texts(user)


async def test_what_was_noted_about_somebody_else_does_not_change_with_the_person() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        await user.note("fact", "lives in Rome", about="Bob")
        await user.note("fact", "lives in Paris")
        await say(user, "I live in Berlin.", at=datetime.now(UTC))
        await memory.upkeep()
        assert sorted(await texts(user)) == ["ann lives in Berlin.", "lives in Rome"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Ann likes tea.", "Ann lives in Berlin.", "I live in Berlin, with tea"),
        ("Ann lives in Paris.", "Ann has a parrot.", "I have a parrot"),
    ],
)
async def test_a_model_cannot_replace_something_else(old: str, new: str, said: str) -> None:
    scripted = model({"extract": [extraction({"text": old}), extraction({"text": new, "replaces": 1})]})
    async with scripted, connect(scripted=scripted) as memory:
        user = memory.user("ann")
        await say(user, "I like tea and live in Paris", reply="ok", name="Ann")
        await memory.upkeep()
        await say(user, said, reply="ok", name="Ann", at=days(1))
        await memory.upkeep()
        assert sorted(await texts(user)) == sorted([old, new])


async def test_a_model_replaces_what_no_rule_knows() -> None:
    scripted = model(
        {
            "extract": [
                extraction({"text": "Ann drives a red Fiat."}),
                extraction({"text": "Ann sold the red Fiat.", "replaces": 1}),
            ]
        }
    )
    async with scripted, connect(scripted=scripted) as memory:
        user = memory.user("ann")
        await say(user, "I drive a red Fiat", reply="ok", name="Ann")
        await memory.upkeep()
        await say(user, "I sold the Fiat", reply="ok", name="Ann", at=days(1))
        await memory.upkeep()
        assert await texts(user) == ["Ann sold the red Fiat."]
        assert await texts(user, state="superseded") == ["Ann drives a red Fiat."]


async def test_a_model_replaces_the_memory_whose_number_it_names() -> None:
    known = extraction({"text": "Ann drives a red Fiat."}, {"text": "Ann rides a red Vespa."})
    scripted = model({"extract": [known, extraction({"text": "Ann sold the red Fiat.", "replaces": 1})]})
    async with scripted, connect(scripted=scripted) as memory:
        user = memory.user("ann")
        await say(user, "I drive a red Fiat and ride a red Vespa", reply="ok", name="Ann")
        await memory.upkeep()
        await say(user, "I sold the red Fiat", reply="ok", name="Ann", at=days(1))
        await memory.upkeep()
        assert sorted(await texts(user)) == ["Ann rides a red Vespa.", "Ann sold the red Fiat."]


async def moved(user: UserMemory) -> tuple[int, int]:
    await say(user, "I live in Paris.", at=days(0))
    await say(user, "I moved to Berlin.", at=days(10))
    return 1, 2


async def test_a_wrong_supersession_is_undone_from_either_end(location: str) -> None:
    async with connect(location) as memory:
        for name, undone, left in (
            ("one", 0, ["one lives in Paris.", "one moved to Berlin."]),
            ("two", 1, ["two lives in Paris."]),
        ):
            user = memory.user(name)
            await moved(user)
            await memory.upkeep()
            both = sorted(await user.memories(active=None), key=lambda each: each.id)
            await user.undo(both[undone].id)
            assert sorted(await texts(user)) == left
        assert (await memory.verify()).ok


async def test_every_change_by_hand_can_be_undone_and_is_in_the_audit_log(location: str) -> None:
    async with connect(location) as memory:
        user = memory.user("ann", actor="kim")
        first = await user.note("fact", "Ann lives in Berlin", importance=7, tags=["home"])
        edited = await user.edit_memory(first.id, text="Ann lives in Bern", importance=9)
        assert (edited.text, edited.importance, edited.tags) == ("Ann lives in Bern", 9, ("home",))
        assert [hit.text for hit in await user.search("Bern", kinds=["memory"])] == ["Ann lives in Bern"]
        assert await user.search("Berlin", kinds=["memory"]) == []
        assert (await user.undo(first.id)).text == "Ann lives in Berlin"
        assert not (await user.deactivate(first.id)).active
        assert await user.search("Berlin", kinds=["memory"]) == []
        assert (await user.reactivate(first.id)).active
        assert [hit.text for hit in await user.search("Berlin", kinds=["memory"])] == ["Ann lives in Berlin"]
        assert [(version.action, version.actor) for version in await user.memory_history(first.id)] == [
            ("edit", "kim"),
            ("undo", "kim"),
            ("deactivate", "kim"),
            ("reactivate", "kim"),
        ]
        looks = {"memory.search", "memory.read"}
        actions = [each.action for each in await user.audit() if each.actor == "kim" and each.action not in looks]
        assert actions == [
            "memory.add",
            "memory.edit",
            "memory.undo",
            "memory.deactivate",
            "memory.reactivate",
        ]


@pytest.mark.req("D14")
async def test_who_looks_is_in_the_audit_log_and_no_content_is(location: str) -> None:
    async with connect(location) as memory:
        await memory.user("ann").remember("I like tea")
        panel = memory.user("ann", actor="panel")
        await panel.memories()
        await panel.portrait()
        await panel.facts()
        await panel.preferences()
        await panel.schedule()
        await panel.reminders()
        seen = [(entry.actor, entry.action) for entry in await panel.audit()]
        assert seen == [
            ("aforesaid", "facts.put"),
            ("aforesaid", "memory.add"),
            ("panel", "memory.read"),
            ("panel", "portrait.read"),
            ("panel", "facts.read"),
            ("panel", "preferences.read"),
            ("panel", "memory.read"),
            ("panel", "memory.read"),
        ]
        assert not any("tea" in entry.subject for entry in await panel.audit())
        assert await memory.user("bob", actor="panel").memories() == []
        later = [(entry.actor, entry.action) for entry in await panel.audit()]
        assert later == [*seen, ("panel", "audit.read"), ("panel", "audit.read")], "reading the log is in it, too"


async def test_another_users_memory_cannot_be_reached() -> None:
    async with connect() as memory:
        theirs = await memory.user("ann").note("fact", "a secret of Ann")
        bob = memory.user("bob")
        for attempt in (
            bob.undo,
            bob.deactivate,
            bob.end_memory,
            bob.reactivate,
            bob.approve,
            bob.reject,
            bob.delivered,
        ):
            with pytest.raises(NotFound):
                await attempt(theirs.id)
        with pytest.raises(NotFound):
            await bob.edit_memory(theirs.id, text="mine")


async def test_an_edit_of_nothing_is_refused() -> None:
    async with connect() as memory:
        user = memory.user("ann")
        note = await user.note("fact", "Ann likes tea")
        with pytest.raises(InvalidInput, match="nothing to change"):
            await user.edit_memory(note.id)
        with pytest.raises(InvalidInput):
            await user.edit_memory(note.id, importance=11)
        with pytest.raises(InvalidInput, match="does not wait"):
            await user.approve(note.id)


async def test_a_memory_that_is_no_longer_true_was_true_before_and_comes_back_by_undo() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        note = await ann.note("fact", "Ann lives in Lisbon")
        ended = await ann.end_memory(note.id)
        assert (ended.state, ended.active, ended.reason) == ("expired", False, "no longer true")
        assert ended.valid_to is not None
        assert [each.id for each in await ann.memories(at=note.valid_from)] == [note.id]
        assert await ann.memories() == []
        with pytest.raises(WrongState, match="is not active: it is expired"):
            await ann.end_memory(note.id)
        assert (await ann.undo(note.id)).active


async def test_a_memory_ends_at_a_date_in_the_past_that_it_was_true_at() -> None:
    async with connect() as memory:
        ann = memory.user("ann")
        note = await ann.note("fact", "Ann lives in Lisbon")
        for wrong in (note.valid_from, datetime.now(UTC) + timedelta(hours=1), datetime(2026, 3, 1)):  # noqa: DTZ001
            with pytest.raises(InvalidInput, match=r"true since|in the future|no time zone") as refused:
                await ann.end_memory(note.id, at=wrong)
            assert refused.value.field == "at"
        last = note.valid_from + timedelta(microseconds=1)
        assert (await ann.end_memory(note.id, at=last)).valid_to == last
        assert await ann.memories(at=last) == []
        assert [each.id for each in await ann.memories(at=note.valid_from)] == [note.id]
