"""Real ears and a real voice, over the APIs that people use."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from aforesaid.bots.mumble.messages import VoicePacket
from aforesaid.bots.mumble.speech import SpeechInput, as_opus, as_wav
from aforesaid.models.speech import open_speech
from aforesaid.settings import Choice, Provider, Settings, Speech
from mumble.speaking import SpeechServices, needs_flite, sound_of, words_of

pytestmark = needs_flite


@pytest.fixture
def services() -> Iterator[Callable[..., SpeechServices]]:
    opened: list[SpeechServices] = []

    def start(*speaks_at: str) -> SpeechServices:
        opened.append(SpeechServices(*speaks_at))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def settings(ears: SpeechServices, voice: SpeechServices, *, piper: bool) -> Settings:
    speaking = Provider("voice", voice.address, api="piper") if piper else Provider("voice", f"{voice.address}/v1")
    return Settings(
        providers={"ears": Provider("ears", f"{ears.address}/v1"), "voice": speaking},
        speech=Speech((Choice("ears", "sphinx"),), (Choice("voice", "slt"),), language="en", voice="slt"),
    )


@pytest.mark.parametrize("api", ["/v1/audio/speech", "/synthesize", "/"])
async def test_flite_speaks_and_pocketsphinx_hears(services: Callable[..., SpeechServices], api: str) -> None:
    both = services(api)
    speech = open_speech(settings(both, both, piper=not api.startswith("/v1")))
    assert await speech.hear(await speech.speak("I like green tea.")) == "i like green tea"
    if api == "/":
        await speech.speak("again")
        assert both.asked == ["/synthesize", "/", "/v1/audio/transcriptions", "/"], "it remembers which one it is"
    await speech.close()


async def test_words_survive_the_way_through_opus_and_the_ear() -> None:
    ear, now, said = SpeechInput(), 0.0, []
    spoken = as_opus(sound_of("My brother plays the piano."), 32_000)
    for number, opus in enumerate(spoken, 1):
        said.append(ear.take(VoicePacket(1, 0, number, opus, number == len(spoken)), now))
        now += 0.02
    said.append(ear.tick(now + 10))
    [utterance] = [each for each in said if each is not None]
    assert words_of(as_wav(utterance.samples)) == "my brother plays the piano"
