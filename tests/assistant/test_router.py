"""Commands, as people type them on any platform."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

import aforesaid
from aforesaid.assistant import Answer, Assistant, Router
from aforesaid.models.offline.request_rules import only_polite
from aforesaid.testing import ScriptedModel


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[aforesaid.Memory]:
    async with aforesaid.connect(tmp_path / "memory.db", profile="archive", embedder="deterministic") as opened:
        yield opened


async def ask(user: aforesaid.UserMemory, text: str) -> Answer:
    answer = await Router().answer(user, text)
    assert answer is not None
    return answer


@pytest.mark.req("A12")
async def test_summaries_are_set_up_in_two_steps(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    first = await ask(ann, "/summary")
    assert first.text == "Choose storage format:"
    assert [button.label for button in first.buttons] == ["SQLite (recommended)", "JSON file"]
    assert "Send a number 1-500." in (await ask(ann, "sqlite")).text
    # A new router, as after a restart.
    done = await ask(ann, "15")
    assert done.text == "External memory configured!\nStorage: SQLite\nThreshold: 15 messages"
    assert await Router().answer(ann, "16") is None
    assert (await ann.status()).threshold == 15


@pytest.mark.parametrize("wrong", ["0", "501", "-3", "99999999999999999999"])
async def test_a_wrong_number_is_asked_for_again(memory: aforesaid.Memory, wrong: str) -> None:
    ann = memory.user("ann")
    await ask(ann, "/summary")
    await ask(ann, "JSON file")
    assert "is not between 1 and 500" in (await ask(ann, wrong)).text
    assert "Threshold: 500" in (await ask(ann, "500")).text


@pytest.mark.parametrize("otherwise", ["what a lovely day", "/summary_status"])
async def test_whoever_says_something_else_leaves_the_set_up(memory: aforesaid.Memory, otherwise: str) -> None:
    ann = memory.user("ann")
    await ask(ann, "/summary")
    await Router().answer(ann, otherwise)
    assert await Router().answer(ann, "sqlite") is None


async def test_the_set_up_of_one_user_is_not_that_of_another(memory: aforesaid.Memory) -> None:
    await ask(memory.user("ann"), "/summary")
    assert await Router().answer(memory.user("bob"), "sqlite") is None


@pytest.mark.req("A12")
async def test_the_status_has_its_seven_facts_and_follows_what_happens(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    for number in range(3):
        await ann.add("user", f"I planted tree number {number}.")
        await ann.add("assistant", "Well done.")
    lines = (await ask(ann, "/summary_status")).text.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "Memory",
        "Storage",
        "Threshold",
        "Messages since the last summary",
        "Messages",
        "Active summaries",
        "Highest level",
    ]
    assert "Messages since the last summary: 3" in lines
    assert (await ask(ann, "/summary_now")).text.startswith("Summarised:")
    after = (await ask(ann, "/summary_status")).text
    assert "Messages: 6 in all, 6 archived" in after
    assert "Active summaries: 1" in after
    assert "nothing new" in (await ask(ann, "/summary_now")).text


@pytest.mark.req("A12")
async def test_summaries_can_be_switched_off_and_on_and_nothing_is_lost(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    await ann.add("user", "hello")
    await ask(ann, "/summary_off")
    assert "Memory: disabled" in (await ask(ann, "/summary_status")).text
    assert len(await ann.history()) == 1
    await ask(ann, "/summary_on")
    assert "Memory: enabled" in (await ask(ann, "/summary_status")).text


async def test_facts_are_remembered_shown_and_forgotten(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    assert (await ask(ann, "/remember I like tea")).text == "I will remember that."
    assert (await ask(ann, "/remember I like tea")).text == "I knew that already."
    assert "tea" in (await ask(ann, "/portrait")).text
    assert "tea" in (await ask(ann, "/memories")).text
    assert "forgotten" in (await ask(ann, "/forget tea")).text
    assert "knew nothing" in (await ask(ann, "/forget tea")).text
    assert "tea" not in (await ask(ann, "/portrait")).text


async def test_searching_and_explaining(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    await ann.add("user", "The flat in Berlin has a balcony.")
    assert "balcony" in (await ask(ann, "/search berlin")).text
    assert "its words match (berlin)" in (await ask(ann, "/explain berlin")).text
    assert "tokens" in (await ask(ann, "/context where is the balcony?")).text


@pytest.mark.parametrize("command", ["/remember", "/forget", "/search", "/explain"])
async def test_a_command_without_its_words_says_how_it_is_used(memory: aforesaid.Memory, command: str) -> None:
    assert f"Like this: {command} " in (await ask(memory.user("ann"), command)).text


async def test_unknown_commands_and_commands_of_groups(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    assert "/help lists" in (await ask(ann, "/nonsense")).text
    assert (await ask(ann, "/HELP@my_bot")).text.count("\n/") > 10
    assert await Router().answer(ann, "hello") is None


@pytest.mark.req("C13")
async def test_the_commands_of_an_account(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", embedder="deterministic", profile="account") as memory:
        ann = memory.user("ann")
        for number in range(12):
            await ann.add("user", f"The safe number {number} opens with 47{number:02}.")
        before = await ask(ann, "/historycontext")
        assert "opens with" not in before.text
        assert "opens with" in (await ask(ann, "/analyze")).text
        assert (await ask(ann, "/historycontext")).text == (await ann.history_context()).text
        shown = (await ask(ann, "/context which safe?")).text
        assert "recent: " in shown
        assert "The safe number 11" in shown
        await ask(ann, "/clear")
        cleared = (await ask(ann, "/context which safe?")).text
        assert "recent:" not in cleared
        assert len(await ann.history()) == 12


async def test_a_cleared_window_keeps_everything(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    await ann.add("user", "The safe opens with 4711.")
    await ask(ann, "/clear")
    assert len(await ann.history()) == 1
    assert "4711" in (await ask(ann, "/search safe")).text


async def test_the_assistant_answers_with_a_context_and_stores_both_sides(tmp_path: Path) -> None:
    async with ScriptedModel(["You live in Berlin."]) as model:
        settings = {"providers.local.base_url": model.base_url, "models.default": "local:tiny"}
        async with aforesaid.connect(
            tmp_path / "memory.db",
            embedder="deterministic",
            settings=settings,
            profile={"summaries": "none", "extract": False},
        ) as memory:
            ann = memory.user("ann")
            await ann.add("user", "I moved to Berlin.")
            pieces = [piece async for piece in Assistant(memory).reply(ann, "Where do I live?")]
            assert "".join(pieces) == "You live in Berlin."
            assert [message.text for message in await ann.history()][-2:] == ["Where do I live?", "You live in Berlin."]
        sent = str(model.requests[-1].body["messages"])
        assert "I moved to Berlin." in sent
        assert sent.count("Where do I live?") == 1


async def test_when_the_model_fails_the_message_is_stored_and_the_user_is_told(tmp_path: Path) -> None:
    settings = {
        "providers.local.base_url": "http://127.0.0.1:9/v1",
        "models.default": "local:tiny",
        "resilience.attempts": 1,
    }
    profile = {"summaries": "none", "extract": False}
    async with aforesaid.connect(
        tmp_path / "memory.db", embedder="deterministic", settings=settings, profile=profile
    ) as memory:
        ann = memory.user("ann")
        said = "".join([piece async for piece in Assistant(memory).reply(ann, "hello?")])
        assert "could not answer" in said
        assert [message.text for message in await ann.history()] == ["hello?"]


async def test_without_a_model_everything_else_goes_on(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    said = "".join([piece async for piece in Assistant(memory).reply(ann, "My cat is called Miso.")])
    assert "No language model is connected" in said
    assert (await ann.search("Miso"))[0].text == "My cat is called Miso."


async def test_whoever_asks_gets_a_copy_of_their_data(memory: aforesaid.Memory) -> None:
    ann, bob = memory.user("ann"), memory.user("bob")
    await ann.add("user", "I like tea.")
    await ann.remember("I live in Bern")
    await bob.add("user", "Not Ann's business.")
    answer = await ask(ann, "/export")
    assert answer.private
    assert answer.file is not None
    copy = json.loads(answer.file.content)
    assert [message["text"] for message in copy["messages"]] == ["I like tea."]
    assert "Bern" in copy["facts"][-1]["text"]
    assert b"business" not in answer.file.content


@pytest.mark.req("G20")
@pytest.mark.defect("Q3")
@pytest.mark.parametrize("what", ["everything about me", "everything", "me", "alles", "all that you know about me"])
async def test_forgetting_everything_by_command_says_how_it_is_done(memory: aforesaid.Memory, what: str) -> None:
    ann, router = memory.user("ann"), Router(memory)
    await ann.remember("likes tea")
    answer = await router.answer(ann, f"/forget {what}")
    assert answer is not None
    assert answer.text == "To have everything erased that I know about you, use /forget_me."
    assert "tea" in (await ann.portrait() or "")


@pytest.mark.req("G20")
@pytest.mark.defect("Q3")
async def test_forgetting_says_what_was_removed(memory: aforesaid.Memory) -> None:
    ann, router = memory.user("ann"), Router(memory)
    await ann.remember("lives in Berlin and likes pizza")
    await ann.remember("likes tea")
    answer = await router.answer(ann, "/forget likes tea")
    assert answer is not None
    assert answer.text.startswith("I have forgotten: ann likes tea")
    assert "tea" not in (await ann.portrait() or "")
    partly = await router.answer(ann, "/forget likes pizza")
    assert partly is not None
    assert partly.text.startswith("I have forgotten: likes pizza")
    assert "Berlin" in (await ann.portrait() or "")


async def test_whoever_asks_is_erased_after_a_confirmation(memory: aforesaid.Memory) -> None:
    ann, bob, router = memory.user("ann"), memory.user("bob"), Router(memory)
    await ann.add("user", "The code is zebra42.")
    await bob.add("user", "Hello.")
    for otherwise in ("no, wait", "keep everything", "/help"):
        asked = await router.answer(ann, "/forget_me")
        assert asked is not None
        assert [button.word for button in asked.buttons] == ["erase everything", "keep everything"]
        await router.answer(ann, otherwise)
        assert await router.answer(ann, "erase everything") is None
    assert len(await ann.history()) == 1
    await router.answer(ann, "/forget_me")
    done = await router.answer(ann, "Erase everything")
    assert done is not None
    assert "1 message," in done.text
    assert await ann.history() == []
    assert await ann.settings() == {}
    assert len(await bob.history()) == 1


@pytest.mark.parametrize("said", ["erase everything", "ERASE EVERYTHING", '"erase everything".'])
async def test_the_words_that_were_asked_for_erase(memory: aforesaid.Memory, said: str) -> None:
    ann, router = memory.user("ann"), Router(memory)
    await ann.add("user", "The code is zebra42.")
    await router.answer(ann, "/forget_me")
    done = await router.answer(ann, said)
    assert done is not None
    assert done.text.startswith("Everything is erased: 1 message,")
    assert await ann.history() == []


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("nein", "Everything is kept."),
        ("keep everything", "Everything is kept."),
        ("yes but later", '/forget_me and then type "erase everything"'),
        ("yes", '/forget_me and then type "erase everything"'),
        ("Ja!", '/forget_me and then type "erase everything"'),
        ("I moved to Bern", "is not stored"),
    ],
)
@pytest.mark.req("G20")
@pytest.mark.defect("Q3")
async def test_any_other_answer_says_that_nothing_was_erased(memory: aforesaid.Memory, said: str, told: str) -> None:
    ann, router = memory.user("ann"), Router(memory)
    await ann.add("user", "The code is zebra42.")
    await router.answer(ann, "/forget_me")
    answer = await router.answer(ann, said)
    assert answer is not None
    assert answer.text.startswith("Nothing was erased.")
    assert told in answer.text
    assert await router.answer(ann, "yes") is None
    assert len(await ann.history()) == 1


async def test_in_a_group_a_plain_yes_may_be_said_to_somebody_else(memory: aforesaid.Memory) -> None:
    ann, router = memory.user("ann", thread="general"), Router(memory)
    await ann.add("user", "The code is zebra42.")
    await router.answer(ann, "/forget_me")
    answer = await router.answer(ann, "yes")
    assert answer is not None
    assert answer.text == 'Nothing was erased. To erase everything, send /forget_me and then type "erase everything".'
    await router.answer(ann, "/forget_me")
    assert await router.answer(ann, "see you at eight") is None, "it is a message like any other"
    assert not await router.is_open(ann)
    await router.answer(ann, "/forget_me")
    assert await router.step(ann, "sqlite", stay=True) is None
    assert await router.is_open(ann)
    assert await router.answer(ann, "erase everything") is not None
    assert await ann.history() == []


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.defect("B3")
@pytest.mark.req("G6")
async def test_reminders_are_set_listed_moved_and_cancelled_in_local_time(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    assert "Europe/Berlin" in (await ask(ann, "/timezone berlin")).text
    tomorrow = datetime.now(BERLIN).date() + timedelta(days=1)
    said = (await ask(ann, "/remind call mum tomorrow at 9")).text
    day = f"{tomorrow:%A}, {tomorrow.day} {tomorrow:%B %Y}"
    assert said == f"I will remind you on {day} at 09:00 (Europe/Berlin): call mum"
    (reminder,) = await ann.reminders()
    assert reminder.remind_at == datetime.combine(tomorrow, time(9), BERLIN)
    listed = (await ask(ann, "/reminders")).text
    assert f"{reminder.id}. {tomorrow:%a} {tomorrow.day} {tomorrow:%b %Y}, 09:00  call mum" in listed
    assert "Europe/Berlin" in listed
    assert "UTC" not in said + listed
    assert "at 17:30 (Europe/Berlin)" in (await ask(ann, f"/reminders move {reminder.id} tomorrow at 17:30")).text
    (moved,) = await ann.reminders()
    assert moved.remind_at == datetime.combine(tomorrow, time(17, 30), BERLIN)
    assert (await ask(ann, f"/reminders cancel {reminder.id}")).text == "Cancelled: call mum"
    assert await ann.reminders() == []
    assert "no reminder" in (await ask(ann, f"/reminders cancel {reminder.id}")).text
    assert "Like this: /remind " in (await ask(ann, "/remind")).text


@pytest.mark.defect("B3")
async def test_a_reminder_without_a_time_is_asked_back(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    assert "When should I remind you: be nice?" in (await ask(ann, "/remind be nice")).text
    assert "at 07:00" in (await ask(ann, "tomorrow at 7")).text
    (reminder,) = await ann.reminders()
    assert reminder.text == "be nice"
    await ask(ann, "/remind water the plants")
    assert await Router().answer(ann, "What a lovely day it was yesterday") is None
    assert await Router().answer(ann, "tomorrow at 7") is None, "the question is not open any more"
    assert "is in the past" in (await ask(ann, "/remind call dad on 3 May 2020 at 10am")).text
    due = {each.text: each.remind_at is not None for each in await ann.reminders()}
    assert due == {"be nice": True, "water the plants": False, "call dad": False}
    assert "no time yet  call dad" in (await ask(ann, "/reminders")).text


@pytest.mark.defect("B3")
async def test_a_request_that_is_asked_back_leads_to_one_reminder(memory: aforesaid.Memory) -> None:
    ann, assistant = memory.user("ann"), Assistant(memory)
    for said in ("Remind me to buy flowers", "tomorrow at 17:00"):
        assert await assistant.command(ann, said) is not None
        await memory.upkeep()
    (reminder,) = await ann.reminders()
    assert (reminder.text, reminder.remind_at is not None) == ("buy flowers", True)
    assert await ann.portrait() is None, "a reminder is not knowledge about a person"


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("/timezone", "Your time zone is UTC"),
        ("/timezone Mars/Olympus", "There is no time zone"),
        ("/timezone Europe/Berln", "Did you mean Europe/Berlin"),
        ("/timezone new york", "Your time zone is America/New_York now"),
    ],
)
async def test_a_time_zone_is_shown_and_set(memory: aforesaid.Memory, said: str, answer: str) -> None:
    assert answer in (await ask(memory.user("ann"), said)).text


@pytest.mark.defect("B10")
@pytest.mark.req("G8")
async def test_a_new_person_is_welcomed_with_three_things_to_try(memory: aforesaid.Memory) -> None:
    for command in ("/start", "/help"):
        welcome = (await ask(memory.user("ann"), command)).text
        assert welcome.startswith("Hello!")
        assert all(f"\n{number}. " in welcome for number in (1, 2, 3))
    assert "/timezone" in welcome


@pytest.mark.defect("B6")
@pytest.mark.req("G5")
async def test_a_storage_that_cannot_be_changed_in_a_chat_is_not_claimed(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", profile="archive", embedder="none") as memory:
        ann, router = memory.user("ann"), Router(memory)
        await router.answer(ann, "/summary")
        told = await router.answer(ann, "JSON file")
        assert told is not None
        assert "Everything is stored in SQLite" in told.text
        assert "aforesaid migrate memory.db json:memory.json" in told.text
        done = await router.answer(ann, "15")
        assert done is not None
        assert "Storage: SQLite" in done.text
        assert "Storage: SQLite" in (await ask(ann, "/summary_status")).text
    async with aforesaid.connect(f"json:{tmp_path / 'memory.json'}", profile="archive", embedder="none") as memory:
        ann = memory.user("ann")
        await ask(ann, "/summary")
        assert "compress" in (await ask(ann, "JSON file")).text
        assert "Storage: JSON file" in (await ask(ann, "15")).text


@pytest.mark.defect("B7")
@pytest.mark.req("G5")
@pytest.mark.parametrize("profile", ["default", "archive", "session", "community", "companion", "account"])
async def test_commands_tell_what_the_policy_of_the_profile_does(tmp_path: Path, profile: str) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", profile=profile, embedder="none") as memory:
        ann = memory.user("ann")
        for number in range(24):
            await ann.add("user", f"The safe number {number} opens with 47{number:02}.")
            await ann.add("assistant", "I see.")
        await ann.summarize()
        status, shown = await ann.status(), (await ask(ann, "/summary_status")).text
        on = (await ask(ann, "/summary_on")).text
        if profile in {"companion", "community"}:
            assert "Threshold: one for each day" in shown or "Threshold: none in this profile" in shown
        else:
            assert status.threshold == {"session": 10, "account": 50}.get(profile, 10)
            assert status.active_summaries >= 1
            assert f"Active summaries: {status.active_summaries}" in shown
        assert ("makes no summaries" in on) == (profile == "companion")
        assert "opens with" in (await ask(ann, "/analyze")).text
        assert "opens with" in (await ask(ann, "/historycontext")).text
        assert all(message.active for message in await ann.history()) or profile in {"default", "archive", "companion"}


@pytest.mark.defect("B12")
@pytest.mark.req("G8")
async def test_without_a_model_the_excuse_comes_once(memory: aforesaid.Memory) -> None:
    ann, assistant = memory.user("ann"), Assistant(memory)
    said = ["".join([piece async for piece in assistant.reply(ann, text)]) for text in ("My cat is Miso.", "Thanks!")]
    assert said[0].startswith("Noted: My cat is Miso.")
    assert "No language model is connected" in said[0]
    assert said[1] == "You are welcome."


@pytest.mark.defect("B10")
@pytest.mark.req("G8")
@pytest.mark.parametrize(
    "question", ["When is the wedding?", "when is the wedding", "tell me when the wedding is", "wann ist die Hochzeit?"]
)
async def test_questions_of_any_form_are_answered_by_meaning(tmp_path: Path, question: str) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", profile="companion", embedder="local") as memory:
        ann = memory.user("ann")
        for text in ("My sister gets married on 12 June.", "I bought a new bicycle.", "The soup was too salty."):
            await ann.add("user", text)
        await memory.upkeep()
        assistant = Assistant(memory)
        for _ in range(2):
            said = "".join([piece async for piece in assistant.reply(ann, question)])
            await memory.upkeep()
            assert "gets married on 12 June" in said.splitlines()[0]
            assert "soup" not in said
            assert question not in said


@pytest.mark.defect("B10")
@pytest.mark.req("G8", "G11")
async def test_a_search_for_something_never_said_shows_nothing(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", profile="companion", embedder="local") as memory:
        ann = memory.user("ann")
        for text in ("My sister gets married on 12 June.", "I bought a new bicycle.", "The soup was too salty."):
            await ann.add("user", text)
        await memory.upkeep()
        assert (await ask(ann, "/search zeppelin")).text == "Nothing found."
        # A question that nothing answers is not answered with what happens to be stored.
        said = "".join([piece async for piece in Assistant(memory).reply(ann, "What is the capital of France?")])
        assert said.startswith("I remember nothing about that.")


@pytest.mark.defect("B12")
@pytest.mark.req("G8")
async def test_a_question_is_answered_once_however_often_it_is_known(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", profile="companion", embedder="local") as memory:
        ann = memory.user("ann")
        await ann.add("user", "My cat is called Minka.")
        await ann.add("user", "My cat is called Minka.")
        await ann.add("user", "I bought a new bicycle.")
        await memory.upkeep()
        assert any("Minka" in each.text for each in await ann.memories())
        said = "".join([piece async for piece in Assistant(memory).reply(ann, "What is my cat called?")])
        assert said.count("Minka") == 1


@pytest.mark.req("G8")
@pytest.mark.parametrize(
    ("said", "question", "answer"),
    [
        ("Hi, I am Max", "What is my name?", "I know: Name: Max"),
        ("Ich bin Max", "Wie heiße ich?", "Ich weiß: Name: Max"),
        ("Soy Max", "¿Cómo me llamo?", "Esto lo sé: Nombre: Max"),
        ("Je suis Max", "Comment je m'appelle ?", "Je sais ceci : Nom : Max"),
    ],
)
async def test_whoever_introduces_themselves_is_known(tmp_path: Path, said: str, question: str, answer: str) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", profile="companion", embedder="local") as memory:
        ann, assistant = memory.user("ann"), Assistant(memory)
        [piece async for piece in assistant.reply(ann, said)]
        await memory.upkeep()
        assert "".join([piece async for piece in assistant.reply(ann, question)]) == answer


@pytest.mark.req("G8")
async def test_an_answer_keeps_what_stands_before_a_colon(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", profile="companion", embedder="local") as memory:
        ann = memory.user("ann")
        await ann.remember("Wifi at home: blue-heron-7")
        said = "".join([piece async for piece in Assistant(memory).reply(ann, "What is the wifi at home?")])
        assert said.startswith("I know: Wifi at home: blue-heron-7")


@pytest.mark.req("G8")
async def test_no_greeting_is_quoted_as_an_answer(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", profile="companion", embedder="local") as memory:
        ann = memory.user("ann")
        for text in ("Hallo!", "Vielen Dank!", "Guten Morgen! Ich wohne in Köln."):
            await ann.add("user", text)
        await memory.upkeep()
        said = "".join([piece async for piece in Assistant(memory).reply(ann, "Wo wohne ich?")])
        assert "Ich wohne in Köln." in said
        assert not any(polite in said for polite in ("Hallo", "Dank", "Guten Morgen"))


@pytest.mark.parametrize(
    "said", ["Hi Rex!", "Thank you so much!", "Muchas gracias", "谢谢你", "ありがとうございます", "안녕하세요"]
)
def test_greetings_and_thanks_say_nothing(said: str) -> None:
    assert only_polite(said)


@pytest.mark.parametrize("said", ["Hi, I am Max", "Danke, ich wohne in Köln.", "Highway 5 is closed."])
def test_a_greeting_that_says_more_is_no_mere_greeting(said: str) -> None:
    assert not only_polite(said)


@pytest.mark.defect("B12")
async def test_an_analysis_quotes_no_questions_that_nobody_answered(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", profile="account", embedder="deterministic") as memory:
        ann, assistant = memory.user("ann"), Assistant(memory)
        for text in ("My cat is called Minka.", "What is my cat called?", "I moved to Berlin. Where do I live now?"):
            [piece async for piece in assistant.reply(ann, text)]
        analysis = (await ask(ann, "/analyze")).text
        assert "My cat is called Minka." in analysis
        assert "I moved to Berlin" in analysis
        assert "What is my cat called" not in analysis
        assert "Where do I live" not in analysis


async def test_the_timeline_and_the_people_around_somebody_can_be_asked_for(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    assert "no dated events" in (await ask(ann, "/timeline")).text
    assert "not told me about anybody" in (await ask(ann, "/people")).text
    await ann.note("event", "Moved to Berlin", when="2020-05-01")
    await ann.note("event", "Finished school", when="2010-06-30")
    await ann.note("relationship", "My sister Sinéad lives in Cork")
    assert (await ask(ann, "/timeline")).text == "2010-06-30  Finished school\n2020-05-01  Moved to Berlin"
    assert (await ask(ann, "/timeline Berlin")).text == "2020-05-01  Moved to Berlin"
    assert (await ask(ann, "/people")).text == "Sinéad, your sister"
    assert "My sister Sinéad lives in Cork\nFirst mentioned on" in (await ask(ann, "/people my sister")).text
    assert (await ask(ann, "/people Zoe")).text == "I know nobody called Zoe."
