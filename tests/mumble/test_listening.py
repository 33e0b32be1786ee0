"""From voices to words, without a server: who is understood, who is not, and what is told."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, replace

import numpy as np
import pytest

from aforesaid.assistant import Phrases
from aforesaid.bots.mumble import messages
from aforesaid.bots.mumble.link import Person, VoiceReceived
from aforesaid.bots.mumble.speech import _MOST_WAITING, Audience, Voice
from aforesaid.models.speech import open_speech
from aforesaid.settings import Resilience
from aforesaid.testing import ScriptedModel, faults
from aforesaid.testing.faults import HttpResponse
from mumble.mumbling import until
from mumble.voices import heard, tone

ANN, BOB = Person(7, "ann"), Person(8, "bob")


@dataclass(frozen=True, slots=True)
class Hears(faults.Fault):
    """Understands the same whatever is said."""

    text: str

    def change(self, answer: HttpResponse) -> HttpResponse:
        return replace(answer, parts=(json.dumps({"text": self.text}).encode(),))


class Listening:
    """A bot's ears, and what comes of them."""

    def __init__(self, model: ScriptedModel) -> None:
        self.understood: list[tuple[str, bool, str]] = []
        self.told: list[tuple[Audience, str]] = []
        self.speech = open_speech(model.settings(resilience=Resilience(attempts=1, failures=1, probe_seconds=0.01)))
        self.voice = Voice(self.speech, self._understood, self._tell)

    async def _understood(self, person: Person, whispered: bool, text: str) -> None:  # noqa: FBT001
        self.understood.append((person.name, whispered, text))

    async def _tell(self, audience: Audience, text: str) -> None:
        self.told.append((audience, Phrases.of("en")(text)))

    def speak(self, person: Person, *, target: int = messages.TALK, times: int = 1) -> None:
        """Let somebody speak, with a pause after each utterance."""
        said = np.concatenate([tone(0.5), np.zeros(48_000, dtype=np.int16)])
        for _ in range(times):
            for packet in heard(said, target=target):
                self.voice.hear(VoiceReceived(person, replace(packet, session=person.session)))


async def test_each_is_understood_and_whispers_are_kept_apart() -> None:
    with ScriptedModel() as model:
        model.fail(Hears("good morning"))
        listening = Listening(model)
        listening.speak(ANN)
        listening.speak(BOB, target=messages.WHISPER)
        await listening.voice.idle()
        assert sorted(listening.understood) == [("ann", False, "good morning"), ("bob", True, "good morning")]
        await listening.speech.close()


@pytest.mark.parametrize("nothing", ["", "[BLANK_AUDIO]", "(silence)", "...", " [ Silence ]. "])
async def test_what_has_no_words_is_not_handed_in(nothing: str) -> None:
    with ScriptedModel() as model:
        model.fail(Hears(nothing))
        listening = Listening(model)
        listening.speak(ANN)
        await listening.voice.idle()
        assert len(model.requests) == 1
        assert (listening.understood, listening.told) == ([], [])
        await listening.speech.close()


async def test_somebody_who_leaves_in_the_middle_of_a_sentence_is_still_understood() -> None:
    with ScriptedModel() as model:
        model.fail(Hears("good b"))
        listening = Listening(model)
        for packet in heard(tone(1), ended=False):
            listening.voice.hear(VoiceReceived(ANN, packet))
        listening.voice.forget(ANN)
        listening.voice.forget(BOB)
        await listening.voice.idle()
        assert listening.understood == [("ann", False, "good b")]
        await listening.speech.close()


async def test_an_end_without_any_packet_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aforesaid.bots.mumble.speech.PAUSE", 0.05)
    with ScriptedModel() as model:
        model.fail(Hears("good morning"))
        listening = Listening(model)
        noticing = asyncio.create_task(listening.voice.notice_ends())
        for packet in heard(tone(0.5)):
            listening.voice.hear(VoiceReceived(ANN, packet))
        await until(lambda: listening.understood)
        noticing.cancel()
        await listening.speech.close()


async def test_a_delay_of_the_bot_itself_cuts_no_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aforesaid.bots.mumble.speech.STALLED", 0.2)
    monkeypatch.setattr("aforesaid.bots.mumble.speech.PAUSE", 0.2)
    with ScriptedModel() as model:
        model.fail(Hears("good morning"))
        listening = Listening(model)
        noticing = asyncio.create_task(listening.voice.notice_ends())
        await asyncio.sleep(0)
        said = [VoiceReceived(ANN, packet) for packet in heard(tone(1))]
        for event in said[:25]:
            listening.voice.hear(event)
        # Nothing runs for a second, as on a machine that was paused: the rest has come, but is read after the tick.
        time.sleep(1)
        await asyncio.sleep(0.01)
        for event in said[25:]:
            listening.voice.hear(event)
        await until(lambda: listening.understood)
        await asyncio.sleep(0.5)
        assert len(listening.understood) == 1
        noticing.cancel()
        await listening.speech.close()


async def test_whoever_is_not_understood_is_told_once_and_when_it_is_over() -> None:
    with ScriptedModel() as model:
        model.fail(faults.ServerError(503, "out of order"))
        listening = Listening(model)
        listening.speak(ANN, times=2)
        await listening.voice.idle()
        listening.speak(BOB, target=messages.WHISPER)
        await listening.voice.idle()
        assert [audience for audience, _ in listening.told] == [None, BOB.session]
        assert all("please write to me" in text for _, text in listening.told)
        listening.told.clear()
        model.fail(Hears("good morning"))
        await until(lambda: all((state.retry_in or 0) <= 0 for state in listening.speech.states("hear").values()))
        listening.speak(ANN)
        await listening.voice.idle()
        assert {audience for audience, _ in listening.told} == {None, BOB.session}
        assert all("again" in text for _, text in listening.told)
        assert len(listening.understood) == 1
        await listening.speech.close()


async def test_somebody_who_never_stops_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aforesaid.bots.mumble.speech._PATIENCE", 0.05)
    with ScriptedModel() as model:
        model.fail(faults.NeverAnswers())
        listening = Listening(model)
        listening.speak(ANN, times=8)
        await until(lambda: listening.told)
        assert listening.voice._queue.waiting(ANN.session) == _MOST_WAITING
        assert [text for _, text in listening.told if "more is said than I can listen to" in text]
        await listening.voice.finish()
        assert listening.voice._queue.waiting() == 0
        await listening.speech.close()
