"""Ordinary questions about real-looking chats bring back what was said, with the encoder that is shipped."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import aforesaid
from aforesaid.models.embed import LocalEmbedder

FIRST_DAY = datetime(2026, 2, 2, 18, 0, tzinfo=UTC)

ENGLISH: Sequence[tuple[str, str]] = (
    (
        "Long day. The vet called about Biscuit, his kidneys are not well and he gets special food from now on.",
        "What did the vet say about Biscuit?",
    ),
    (
        "We signed the lease for the flat in Leith today! Third floor, no lift, but we see the water from the kitchen.",
        "Which floor is our flat in Leith on?",
    ),
    (
        "Could you help me with a packing list? I fly to Lisbon on the 14th for my cousin's wedding.",
        "Why am I flying to Lisbon?",
    ),
    (
        "By the way, I stopped eating meat in January, so please leave the chicken out of the recipes.",
        "Do I eat meat?",
    ),
    (
        "My new manager is called Priya. She comes from the Mumbai office and seems to like short meetings.",
        "Who is my new manager?",
    ),
    (
        "The car failed its inspection because of the rear brakes. The garage wants 480 pounds for the repair.",
        "How much does the garage want for the car repair?",
    ),
    (
        "Tom has started swimming lessons on Thursdays, he was the only one in his group who jumped in right away.",
        "When does Tom have swimming lessons?",
    ),
    (
        "I finished the book you suggested, the one about the lighthouse keeper. The end made me cry on the train.",
        "How did I like the book about the lighthouse keeper?",
    ),
    (
        "Mum has her hip operation in the Royal Infirmary next month and stays with us for two weeks afterwards.",
        "In which hospital is my mum's hip operation?",
    ),
    (
        "I am learning the cello again after twenty years, my teacher lives around the corner and is very patient.",
        "Which instrument am I learning?",
    ),
)
GERMAN: Sequence[tuple[str, str]] = (
    (
        "Heute war ich beim Augenarzt, ich brauche jetzt eine Gleitsichtbrille. Man wird nicht jünger.",
        "Was hat der Augenarzt gesagt?",
    ),
    (
        "Unsere Tochter Marie zieht im Oktober nach Leipzig und fängt dort mit dem Studium der Biologie an.",
        "Was studiert Marie in Leipzig?",
    ),
    (
        "Ich vertrage übrigens keine Laktose, also bitte keine Rezepte mit Sahne vorschlagen.",
        "Welche Lebensmittel vertrage ich nicht?",
    ),
    (
        "Der Heizungsbauer kommt am Freitag um acht, die neue Wärmepumpe wird endlich eingebaut.",
        "Wann kommt der Heizungsbauer?",
    ),
    (
        "Mein Chef hat mich gefragt, ob ich ab Sommer das Team in Graz leiten will. Ich überlege noch.",
        "Welches Team soll ich ab Sommer leiten?",
    ),
    (
        "Wir haben im Tierheim einen alten Dackel gefunden, er heißt Emil und schnarcht lauter als mein Mann.",
        "Wie heißt unser Dackel?",
    ),
    (
        "Im Urlaub fahren wir diesmal mit dem Nachtzug nach Venedig, die Karten habe ich schon gekauft.",
        "Wie kommen wir im Urlaub nach Venedig?",
    ),
    (
        "Meine Schwiegermutter wird achtzig, wir feiern am 9. Mai im Gasthof zur Linde mit vierzig Gästen.",
        "Wo feiern wir den Geburtstag meiner Schwiegermutter?",
    ),
    (
        "Seit dem Sturz mit dem Fahrrad tut mir die linke Schulter weh, der Orthopäde meint, es ist die Sehne.",
        "Was ist mit meiner Schulter?",
    ),
    (
        "Ich habe mich für den Töpferkurs an der Volkshochschule angemeldet, immer dienstags am Abend.",
        "An welchem Tag ist mein Töpferkurs?",
    ),
)
TALK: dict[str, Sequence[str]] = {
    "english": (
        "Morning! Did it rain at your place as well?",
        "The meeting took forever again.",
        "I made tomato soup and burned the toast.",
        "Can you say that in a friendlier way?",
        "The neighbours are drilling since eight.",
        "I could not sleep last night.",
        "What a match yesterday, unbelievable.",
        "Thanks, that helped a lot.",
        "I have to run, the bus is coming.",
        "Nothing special, just tired.",
    ),
    "german": (
        "Guten Morgen! Bei uns regnet es schon wieder.",
        "Die Besprechung hat ewig gedauert.",
        "Heute gab es Nudeln, etwas anderes war nicht im Haus.",
        "Kannst du das freundlicher formulieren?",
        "Die Nachbarn bohren seit acht Uhr.",
        "Ich habe schlecht geschlafen.",
        "Was für ein Spiel gestern, unglaublich.",
        "Danke, das hat mir sehr geholfen.",
        "Ich muss los, der Bus kommt.",
        "Nichts Besonderes, ich bin nur müde.",
    ),
}
CHATS = {"english": ENGLISH, "german": GERMAN}


class Shared(LocalEmbedder):
    """The real embedder, loaded once for all tests."""

    async def close(self) -> None:
        """Stay loaded."""


ENCODER = Shared()


@pytest.fixture(params=["community", "companion", "account"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[aforesaid.Memory]:
    async with aforesaid.connect(tmp_path / "memory.db", embedder=ENCODER, profile=request.param) as opened:
        yield opened


@pytest.mark.defect("K1", "B1")
@pytest.mark.req("G2")
@pytest.mark.parametrize("language", CHATS)
async def test_nine_of_ten_ordinary_questions_bring_back_the_right_message(
    memory: aforesaid.Memory, language: str
) -> None:
    ann = memory.user("ann", thread="chat")
    at = FIRST_DAY
    for number, (said, _) in enumerate(CHATS[language]):
        for text in (said, *TALK[language][number:], *TALK[language][:number]):
            at += timedelta(minutes=2)
            await ann.add("user", f"{text} :)" if number % 2 and text != said else text, at=at)
            await ann.add("assistant", "I see." if language == "english" else "Ich verstehe.", at=at)
        at += timedelta(days=1)
    await memory.upkeep()
    missing = []
    for said, question in CHATS[language]:
        context = await ann.context(question, 1_500, at=at)
        if not any(said in item.text for item in context.items if item.section in {"recent", "snippets"}):
            missing.append(question)
    assert len(missing) <= 1, missing
