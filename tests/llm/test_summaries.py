"""A model of 1.5 billion parameters summarises a chat between people, in their language, in bounded time."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

import aforesaid
from aforesaid.digest.quality import told_in_another_language
from aforesaid.text.sentences import split_sentences

NOON = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)
_SECONDS = 60
"""Seconds of processor time of a call, on average: 30 of two cores."""
ENGLISH = (
    ("Ann", "Guess what: we got the keys of the house in Leith today!"),
    ("Bob", "Congratulations! When do you move?"),
    ("Ann", "On 14 March. My brother Florent drives the van."),
    ("Bob", "I can help with the piano in the afternoon."),
    ("Ann", "The piano stays with my parents, but please help with the books."),
    ("Bob", "Fine. I start at the brewery on Monday, so only at the weekend."),
    ("Ann", "The brewery in Alloa? Wonderful, you waited so long for that job."),
    ("Bob", "Four months. The interview was with the owner herself."),
    ("Ann", "The roof needs repair before summer, the roofer wants 4,200 pounds."),
    ("Bob", "Ask my cousin Isla, she is a roofer in Dunbar."),
)
GERMAN = (
    ("Uwe", "Der Arzt hat heute gesagt, dass ich die Hüfte operieren lassen muss."),
    ("Ilse", "Ach Uwe. Wann denn?"),
    ("Uwe", "Am 9. April in der Klinik in Jena. Danach drei Wochen Reha."),
    ("Ilse", "Dann nehme ich solange deinen Hund Waldi."),
    ("Uwe", "Danke! Er verträgt kein Huhn, nur Lamm."),
    ("Ilse", "Gut zu wissen. Ich habe am Sonntag Geburtstag gefeiert, alle Enkel waren da."),
    ("Uwe", "Auch Paul aus Bremen?"),
    ("Ilse", "Ja, er hat seine Prüfung als Schreiner bestanden."),
    ("Uwe", "Großartig, gratuliere ihm von mir."),
    ("Ilse", "Mache ich. Den Garten in Apolda verkaufe ich übrigens im Herbst."),
)


@pytest.mark.defect("L1", "L2")
@pytest.mark.parametrize(
    ("chat", "event"), [(ENGLISH, ("Leith", "house", "keys")), (GERMAN, ("Hüfte", "Klinik", "Reha"))], ids=["en", "de"]
)
async def test_a_summary_names_its_event_in_its_language_and_says_nothing_twice(
    base_url: str, chat: tuple[tuple[str, str], ...], event: tuple[str, ...]
) -> None:
    settings = {
        "providers.llama.base_url": base_url,
        "providers.llama.size": "small",
        "models.summarize.chain": "llama:qwen",
        "models.summarize.timeout": 900,
        "resilience.stall_seconds": 600,
        "background": False,
    }
    async with aforesaid.connect(":memory:", profile="archive", settings=settings) as memory:
        for number, (name, text) in enumerate(chat):
            at = NOON + timedelta(minutes=number)
            await memory.user(name.lower(), thread="chat").add("user", text, name=name, at=at)
        began = time.process_time()
        (made,) = await memory.user(chat[0][0].lower(), thread="chat").summarize()
        used = time.process_time() - began
        calls = sum(counted.calls for key, counted in memory.metrics.snapshot().items() if key.model == "llama:qwen")
    print(f"{made.model}: {used:.0f} s of processor time, {calls} calls\n{made.text}")  # noqa: T201
    assert made.model == "llama:qwen", "rules wrote it"
    assert any(word in made.text for word in event)
    assert told_in_another_language(made.text, [text for _, text in chat]) is None
    assert made.quality is not None
    assert not made.quality.invented
    sentences = [sentence.casefold() for sentence in split_sentences(made.text)]
    assert len(sentences) == len(set(sentences))
    assert calls <= 1
    assert used <= _SECONDS
