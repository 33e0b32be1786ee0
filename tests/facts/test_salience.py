"""What is worth remembering, judged by the vectors of the built-in encoder, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from evaluation.memories import load_fact_transcripts, measure_facts

from aforesaid.domain.memory import KINDS
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.errors import ModelError
from aforesaid.facts import salience_extraction
from aforesaid.facts.candidate import Candidate, event_in
from aforesaid.facts.model_extraction import between_others
from aforesaid.facts.people import Person
from aforesaid.facts.timing import told_time
from aforesaid.models import salience
from aforesaid.models.embed import DeterministicEmbedder, LocalEmbedder, Vectors, built_in_encoder
from facts.plain_held_out import FLEETING, PLAIN
from facts.talking import THURSDAY, connect, paused, say, texts

TRANSCRIPTS = Path(__file__).parents[2] / "bench" / "conversations"
WORTH = [
    "My brother Levin got divorced in spring and moved back in with our parents in Aachen.",
    "Since the operation Dad can only walk with a stick, and he has physiotherapy twice a week.",
    "Seit Januar leitet Gesa die Abteilung in Bremen, vorher war sie nur Stellvertreterin.",
    "Mi hija es alérgica a los cacahuetes, siempre llevamos el inyector en la mochila.",
    "来月から大阪の支店に転勤することになりました。",
    "Мы продали квартиру в Туле и купили дом под Калугой.",
]
CHATTER = [
    "haha that is so true",
    "Good morning! How are you today?",
    "Danke dir, bis später!",
    "jajaja qué risa",
    "おはよう！",
    "Спасибо большое, ты лучший",
    "ok sounds good, thanks a lot",
]


@pytest.fixture
async def encoder() -> LocalEmbedder:
    return LocalEmbedder(ranker=False)


@pytest.mark.defect("F4")
@pytest.mark.req("D3")
async def test_statements_are_remembered_in_any_language_and_chatter_is_not(encoder: LocalEmbedder) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, *WORTH, *CHATTER)
        await memory.upkeep()
        known = await user.memories()
        sources = {seq for each in known for seq in each.sources}
        said = {message.seq: message.text for message in await user.history()}
    remembered = [said[seq] for seq in sorted(sources)]
    assert [text for text in CHATTER if text in remembered] == []
    assert len([text for text in WORTH if text in remembered]) >= 5, remembered


async def test_short_plain_statements_are_remembered_in_any_language_and_fleeting_ones_are_not(
    encoder: LocalEmbedder,
) -> None:
    remembered: set[str] = set()
    async with connect(embedder=encoder) as memory:
        for language in PLAIN:
            await say(memory.user(language), *PLAIN[language], *FLEETING[language])
        await memory.upkeep()
        for language in PLAIN:
            user = memory.user(language)
            sources = {seq for each in await user.memories() for seq in each.sources}
            remembered |= {message.text for message in await user.history() if message.seq in sources}
    plain = [text for own in PLAIN.values() for text in own]
    fleeting = [text for own in FLEETING.values() for text in own]
    assert len(remembered.intersection(plain)) >= 0.6 * len(plain)
    assert len(remembered.intersection(fleeting)) <= 0.06 * len(fleeting)


@pytest.mark.parametrize(
    ("before", "said", "remembered"),
    [
        ("Was machst du so beruflich?", "Ich bin Lehrerin.", "Ann: Beruf: Lehrerin"),
        (
            "You said that your sister Sinead plays the violin in Cork.",
            "And my dentist is Dr Okafor.",
            "Ann's dentist is Dr Okafor.",
        ),
    ],
    ids=["a plain statement that answers a question", "a short statement that answers none"],
)
async def test_a_statement_is_remembered_without_the_message_before_it(
    encoder: LocalEmbedder, before: str, said: str, remembered: str
) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await user.add("assistant", before)
        await user.add("user", said, name="Ann")
        await memory.upkeep()
        assert await texts(user) == [remembered]


@pytest.mark.defect("F4")
async def test_most_facts_of_conversations_that_nothing_was_trained_on_are_remembered() -> None:
    names = ("en-people-13", "en-assistant-05", "de-group-30")
    transcripts = [each for name in names for each in load_fact_transcripts(TRANSCRIPTS / f"{name}.txt")]
    report = await measure_facts(TRANSCRIPTS, transcripts, lambda *_: None, embedder="local")
    assert (report.overall.coverage or 0) >= 0.6
    assert (report.overall.precision or 0) >= 0.65


async def test_what_is_remembered_does_not_depend_on_what_was_embedded_before() -> None:
    found = []
    for embedded_first in (True, False):
        async with connect(embedder=LocalEmbedder(ranker=False)) as memory:
            user = memory.user("ann")
            async with paused(memory):
                await say(user, *WORTH, *CHATTER)
                parts = memory._services.upkeep.tasks
                for part in parts if embedded_first else parts[1:]:
                    await part.run()
            found.append(await texts(user))
    assert found[0] == found[1] != []


@pytest.mark.defect("S1")
@pytest.mark.req("G15")
async def test_an_answer_is_remembered_in_its_own_words_and_its_question_is_a_source(encoder: LocalEmbedder) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann", thread="chat", session="one")
        await user.add("assistant", "Where do you keep the spare keys?")
        await user.add("user", "They are with the old lady on the first floor since the burglary.", name="Ann")
        await memory.upkeep()
        known = await user.memories()
    assert len(known) == 1
    assert known[0].text == 'Ann: "They are with the old lady on the first floor since the burglary."'
    assert len(known[0].sources) == 2


async def test_another_embedder_is_joined_by_the_built_in_encoder() -> None:
    class Other:
        name = "other"

        async def embed(self, given: Sequence[str]) -> Vectors:
            return (await DeterministicEmbedder().embed(given))[:, :8]

        async def close(self) -> None:
            pass

    async with connect(embedder=Other()) as memory:
        user = memory.user("ann")
        await say(user, WORTH[-1], CHATTER[0])
        await memory.upkeep()
        assert await texts(user) == ["ann: В собственности: дом"]


def test_there_is_no_encoder_where_none_is_wanted() -> None:
    assert built_in_encoder(None) is None
    assert built_in_encoder(DeterministicEmbedder()) is None


def test_other_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(salience, "_WEIGHTS", "0" * 64)
    salience.load_salience.cache_clear()
    with pytest.raises(ModelError, match="not the ones expected"):
        salience.load_salience()


CHANGES = [
    ("Mein Name ist Jonas und ich wohne in Köln.", "Ich wohne jetzt in Bremen.", "Lives in Köln", "Lives in Bremen"),
    (
        "Je travaille comme infirmière.",
        "Je travaille maintenant comme institutrice.",
        "Work: infirmière",
        "Work: institutrice",
    ),
    ("We live in Tula.", "We sold the flat and live near Kaluga now.", "Lives in Tula", "Lives in Kaluga"),
]
BESIDE = ("My sister Clara plays the cello and teaches at a music school.", "I am allergic to hazelnuts.")


@pytest.mark.defect("F4")
@pytest.mark.parametrize(("before", "after", "was", "holds"), CHANGES)
async def test_a_change_supersedes_what_was_said_before(
    encoder: LocalEmbedder, before: str, after: str, was: str, holds: str
) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, before, *BESIDE)
        await memory.upkeep()
        known = len(await user.memories())
        await say(user, after, at=THURSDAY + timedelta(days=60))
        await memory.upkeep()
        assert await texts(user, state="superseded") == [f"ann: {was}"]
        assert len(await user.memories()) == known
        old = (await user.memories(state="superseded"))[0]
        new = next(each for each in await user.memories() if each.text == f"ann: {holds}")
        assert (old.superseded_by, old.valid_to) == (new.id, new.valid_from)
        # As of a date before the change, the older one holds.
        assert f"ann: {was}" in await texts(user, at=THURSDAY + timedelta(days=1))
        await user.undo(new.id)
        assert f"ann: {was}" in await texts(user)


async def test_a_memory_has_one_successor_also_if_several_statements_make_it_outdated(encoder: LocalEmbedder) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, CHANGES[2][0], *BESIDE)
        await memory.upkeep()
        for days, text in (
            (60, CHANGES[2][1]),
            (61, "The flat in Tula is sold, we live near Kaluga now."),
        ):
            await say(user, text, at=THURSDAY + timedelta(days=days))
        report = await memory.upkeep()
        assert report.error is None
        assert any("Kaluga" in text for text in await texts(user))


@pytest.mark.parametrize(
    ("said", "date"),
    [
        ("Levin defends his thesis about tides on 14 May.", " (2026-05-14)."),
        ("From now on the choir in our village rehearses from 4 to 11:30 for the big concert.", ""),
        ("The big crane of the marina lifts our boats out of the water on Saturday 14 November at 9.", None),
    ],
)
async def test_a_date_is_added_only_where_one_time_is_named(
    encoder: LocalEmbedder, said: str, date: str | None
) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, said)
        await memory.upkeep()
        known = [each.text for each in await user.memories(active=None) if each.matter is None]
    assert known
    if date is None:
        assert "(2026-03" not in known[0]
    else:
        assert known[0].endswith(f'"{date}') or known[0].endswith(date)


class CountingEncoder(LocalEmbedder):
    """The built-in encoder, which notes what it encodes."""

    def __init__(self) -> None:
        super().__init__(ranker=False)
        self.encoded: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.encoded += texts
        return await super().embed(texts)


@pytest.mark.defect("F4")
async def test_extracting_encodes_no_text_when_the_vectors_of_messages_are_stored() -> None:
    encoder = CountingEncoder()
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        async with paused(memory):
            await say(user, *WORTH, *CHATTER)
            embedding, extracting, *_ = memory._services.upkeep.tasks
            await embedding.run()
            before = len(encoder.encoded)
            await extracting.run()
            encoded = encoder.encoded[before:]
        known = await texts(user)
    assert known
    assert [text for text in encoded if text in known or text in WORTH] == []


async def test_what_is_said_again_in_nearly_the_same_words_is_counted(encoder: LocalEmbedder) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, "My brother Levin lives in Aachen since the divorce.")
        await memory.upkeep()
        again = "My brother Levin has lived in Aachen since the divorce."
        await say(user, again, at=THURSDAY + timedelta(days=9))
        await memory.upkeep()
        known = await user.memories(active=None)
    assert [each.times for each in known] == [2, 2]


async def test_the_same_answer_to_another_question_names_both_questions_as_sources(encoder: LocalEmbedder) -> None:
    answer = "They are with the old lady on the first floor since the burglary."
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann", thread="chat", session="one")
        for asked in ("Where do you keep the spare keys?", "And where are the papers of the house?"):
            await user.add("assistant", asked)
            await user.add("user", answer, name="Ann")
            await memory.upkeep()
        known = await user.memories(active=None)
    assert [(each.times, len(each.sources)) for each in known] == [(2, 4)]


def test_of_a_diary_only_what_stands_out_is_remembered() -> None:
    model = salience.load_salience()
    diary, chat = [model.usual + 3.0] * 40, [model.usual - 1.0] * 40
    assert model.relative_to(1.0, diary) < 0 < model.relative_to(1.0, chat)
    # Nothing is known about somebody's first message.
    assert model.relative_to(0.1, [0.1]) == pytest.approx(0.1, abs=0.2)


@pytest.mark.parametrize("said", ["Bei uns kommt im Januar das zweite Kind.", "The jetty was built twice in 30 years."])
def test_a_month_or_year_without_its_number_that_is_far_away_is_not_certain(said: str) -> None:
    june = datetime(2025, 7, 2, 12, tzinfo=UTC)
    assert told_time(said, june) is None
    near = told_time("Our second child is due in August.", june)
    assert near is not None
    assert near.start.month == 8


def test_a_month_without_its_number_is_certain_until_120_days_after_its_beginning() -> None:
    said, last = "We moved to Lisbon in January.", datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=120)
    found = told_time(said, last)
    assert found is not None
    assert (found.start.year, found.start.month) == (2026, 1)
    assert told_time(said, last + timedelta(minutes=1)) is None


@pytest.mark.parametrize(
    ("said", "year"),
    [
        ("My sister is getting married in September.", 2027),
        ("My sister gets married on 12 September.", 2027),
        ("Wir werden im September umziehen.", 2027),
        ("My sister got married in September.", 2026),
    ],
)
def test_what_is_still_to_come_gets_the_next_month_of_that_name(said: str, year: int) -> None:
    november = datetime(2026, 11, 17, 12, tzinfo=UTC)
    found = told_time(said, november)
    assert found is not None
    assert (found.start.year, found.start.month) == (year, 9)
    event = event_in(said, november, "fact")
    assert event is not None
    assert event.start.year == year


@pytest.mark.parametrize(
    "said", ["They gave her a date for the hip finally, 11th of March", "j'ai eu l'appart, les clés le 11 mars"]
)
def test_what_would_lie_nearly_a_year_behind_is_still_to_come(said: str) -> None:
    january = datetime(2025, 1, 20, 12, tzinfo=UTC)
    found = told_time(said, january)
    assert found is not None
    assert (found.start.year, found.start.month) == (2025, 3)
    before = told_time("My grandson was born on 11 March.", datetime(2025, 6, 1, tzinfo=UTC))
    assert before is not None
    assert before.start.year == 2025


async def test_what_cannot_be_understood_alone_is_left_out_where_no_question_is_known() -> None:
    alone = salience.Judgement(1.0, 5, (0.0,) * len(KINDS), clarity=0.1)
    unclear = alone._replace(clarity=-0.1)
    async with connect() as memory:
        user = memory.user("ann")
        await say(user, "Went there twice with the old boat and sold it afterwards to a farmer.")
        said = await user.history()
    people = {"ann": Person("ann", "Ann")}
    for judgement, number in ((alone, 1), (unclear, 0)):
        found = salience_extraction.by_salience(said, [], {said[0].seq: judgement}, people, people["ann"], UTC)
        assert len(found) == number


@pytest.mark.parametrize(
    ("embedder", "said"),
    [
        ("none", "I have a meeting with the auditors every Tuesday at 5 pm."),
        ("local", "I have physiotherapy every Tuesday since my knee operation in Leeds."),
    ],
)
async def test_what_happens_every_week_gets_no_single_date(embedder: str, said: str) -> None:
    async with connect(embedder=embedder) as memory:
        user = memory.user("ann")
        await say(user, said, at=THURSDAY)
        await memory.upkeep()
        known = await user.memories()
    assert known != []
    assert [each.event for each in known] == [None] * len(known)
    assert not any("2026" in each.text for each in known)


async def test_a_statement_about_somebody_mentioned_before_is_remembered_with_that_message() -> None:
    people = {"ann": Person("ann", "Ann")}
    async with connect() as memory:
        user = memory.user("ann", thread="chat", session="one")
        await user.add("user", "Thiago hears nothing on the left side, the school noticed it.", name="Ann")
        await user.add("user", "He has a test for his ears at the hospital in Telford next week.", name="Ann")
        said = await user.history()
    alone = salience.Judgement(1.0, 5, (0.0,) * len(KINDS), clarity=0.1)
    found = salience_extraction.by_salience(said[1:], said[:1], {said[1].seq: alone}, people, people["ann"], UTC)
    assert [each.text.split(" Ann: ")[0] for each in found] == [
        'Ann: "Thiago hears nothing on the left side, the school noticed it."'
    ]
    assert [message.seq for message in found[0].sources] == [message.seq for message in said]


CLEAR = salience.Judgement(1.0, 5, (0.0,) * len(KINDS), clarity=0.1)


async def in_a_channel(*said: tuple[str, str]) -> tuple[list[Message], list[Message]]:
    """Return the messages of Ann in a channel, and those of all others."""
    async with connect() as memory:
        for author, text in said:
            await memory.user(author, thread="club", session="one").add("user", text, name=author.title())
        heard = await memory.user("ann", thread="club").history(limit=50, within="thread")
    return [each for each in heard if each.user == "ann"], [each for each in heard if each.user != "ann"]


def remembered(own: Sequence[Message], others: Sequence[Message], judgement: salience.Judgement) -> list[Candidate]:
    people = {"ann": Person("ann", "Ann")}
    return salience_extraction.by_salience(
        own, [], {each.seq: judgement for each in own}, people, people["ann"], UTC, others
    )


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("At 8:15. In Caledon.", []),
        ("It died in the garden behind the old brewery last summer.", []),
        ("In the evening. Pushpa rents the flat beside the bowling green.", ["Pushpa rents the flat beside"]),
    ],
)
async def test_what_only_completes_another_users_question_is_left_out(answer: str, words: list[str]) -> None:
    own, others = await in_a_channel(("bob", "When does the match begin?"), ("ann", answer))
    found = remembered(own, others, CLEAR)
    assert [word for each, word in zip(found, words, strict=True) if word in each.text] == words
    assert not any("match" in each.text for each in found)


async def test_what_follows_another_user_must_be_clearer_than_what_begins_a_conversation() -> None:
    said = "Pushpa rents the flat beside the bowling green in Umhlanga."
    unclear = CLEAR._replace(clarity=0.01)
    alone = await in_a_channel(("ann", said))
    after = await in_a_channel(("bob", "Good morning everybody."), ("ann", said))
    assert [len(remembered(*alone, unclear)), len(remembered(*after, unclear))] == [1, 0]
    assert len(remembered(*after, CLEAR)) == 1


async def test_a_message_is_not_joined_with_an_own_one_that_another_user_answered_in_between() -> None:
    own, others = await in_a_channel(
        ("ann", "The spark plugs of the old van in Leeds are broken again."),
        ("bob", "How is Lindiwe?"),
        ("ann", "She wants to change from medicine to physiotherapy in Stellenbosch."),
    )
    found = remembered(own, others, CLEAR)
    assert [each.last for each in found] == [own[0].seq]


@pytest.mark.defect("F4")
async def test_words_that_replace_a_models_sentence_never_contain_another_users_message() -> None:
    own, others = await in_a_channel(
        ("bob", "Which doctor operates on your knee?"),
        ("ann", "They told me that Doctor Moodley operates the left knee in Durban."),
    )
    people = {"ann": Person("ann", "Ann"), "bob": Person("bob", "Bob")}
    found = salience_extraction.in_own_words(own[0], others, "fact", 5, people, people["ann"], UTC)
    assert [message.user for each in found for message in each.sources if message.user != "ann"] == []
    assert not any("Which doctor" in each.text for each in found)


async def test_messages_of_others_are_read_for_channels_alone_and_as_far_back_as_the_batch() -> None:
    async with connect() as memory:
        for number in range(40):
            author = "ann" if number % 10 == 0 else "bob"
            await memory.user(author, thread="club").add("user", f"message {number}", name=author)
        await memory.user("ann").add("user", "in private", name="Ann")
        ann = memory.user("ann")
        own = await ann.history(limit=50)
        found = await between_others(memory._services.store, Scope.of("ann"), own)
        private = await between_others(memory._services.store, Scope.of("ann"), own[-1:])
    # Nobody wrote before the first of Ann's messages, and what follows the last one is not needed.
    assert sorted(each.text for each in found) == sorted(f"message {each}" for each in range(30) if each % 10)
    assert private == []


@pytest.mark.parametrize(
    "wish",
    [
        "ok one wish before we start. from now on round everything to full euros",
        "Und bitte keine Emojis mehr in den Texten, das wirkt in unserer Kanzlei albern.",
    ],
)
async def test_wishes_become_instructions_for_the_assistant_alone(encoder: LocalEmbedder, wish: str) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann", thread="chat")
        await user.add("assistant", "Hello Ann, what can I do for you?")
        await user.add("user", wish, name="Ann")
        group = memory.user("ann", space="club", thread="group")
        await memory.user("bob", space="club", thread="group").add("user", "Who makes the list?", name="Bob")
        await group.add("user", wish, name="Ann")
        await memory.upkeep()
        assert [known.kind for known in await user.memories()] == ["instruction"]
        assert "instruction" not in [known.kind for known in await group.memories()]


APRIL = datetime(2026, 4, 15, 12, tzinfo=UTC)


@pytest.mark.req("G21")
@pytest.mark.defect("M2")
async def test_a_laboratory_value_is_no_appointment(encoder: LocalEmbedder) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, "My blood test: HbA1c 8.6. All fine.", at=APRIL)
        await memory.upkeep()
        assert [each.event for each in await user.memories(active=None)] == [None]


@pytest.mark.req("G21")
@pytest.mark.defect("M3")
@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("hab mich für den halbmarathon am 19. oktober angemeldet", datetime(2026, 10, 19, tzinfo=UTC)),
        (
            "Desde el lunes el coro del pueblo ensaya en la iglesia vieja para el concierto.",
            datetime(2026, 4, 13, tzinfo=UTC),
        ),
    ],
)
async def test_the_day_of_a_memory_follows_from_its_words(encoder: LocalEmbedder, said: str, day: datetime) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, said, at=APRIL)
        await memory.upkeep()
        known = await user.memories(active=None)
    assert {each.event.start for each in known if each.event is not None} == {day}


@pytest.mark.req("G21")
@pytest.mark.defect("M3")
@pytest.mark.parametrize("words", ["empecé el lunes en la flota", "il tetto ha ceduto domenica notte"])
async def test_what_began_does_not_expire_as_an_appointment(words: str) -> None:
    async with connect() as memory:
        user = memory.user("ann")
        await say(user, words, at=APRIL)
        (said,) = await user.history()
    people = {"ann": Person("ann", "Ann")}
    (found,) = salience_extraction.in_own_words(said, [], "schedule", 7, people, people["ann"], UTC)
    assert (found.category, found.kind) == ("fact", "event")


@pytest.mark.req("G21")
@pytest.mark.defect("M3")
async def test_what_he_is_going_to_do_is_not_an_appointment_of_the_speaker(encoder: LocalEmbedder) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, "My brother Tom called today.", "He starts his new job at Siemens in March.", at=APRIL)
        await memory.upkeep()
        (known,) = [each for each in await user.memories(active=None) if "Siemens" in each.text]
    assert (known.about, known.category) == ("Tom", "fact")
    assert known.event is not None
    assert known.event.start == datetime(2027, 3, 1, tzinfo=UTC)
