"""Speech: voices are cut where people pause, and real services hear and speak."""

from __future__ import annotations

import io
import wave
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from aforesaid.bots.mumble import messages, speech
from aforesaid.bots.mumble.messages import VoicePacket
from aforesaid.bots.mumble.speech import RATE, OpusReader, SpeechInput, Utterance, as_opus, as_wav
from aforesaid.errors import ModelGarbled
from aforesaid.models.speech import open_speech
from aforesaid.settings import Choice, Provider, Settings, Speech
from mumble.speaking import SpeechServices, needs_flite, sound_of, words_of
from mumble.voices import Samples, heard, noise, tone, wav


def listen(ear: SpeechInput, *voices: Iterator[VoicePacket], then: float | None = None) -> list[Utterance]:
    """Play voices one after the other, 20 ms at a time; then let some time pass."""
    now, found = 100.0, []
    for voice in voices:
        for packet in voice:
            found.append(ear.take(packet, now))
            now += 0.02
    found.append(ear.tick(now + (10 if then is None else then)))
    return [utterance for utterance in found if utterance is not None]


def seconds(utterance: Utterance) -> float:
    return len(utterance.samples) / RATE


def test_somebody_who_speaks_and_lets_go_of_the_button_said_one_thing() -> None:
    [said] = listen(SpeechInput(), heard(tone(1.5)))
    assert seconds(said) == pytest.approx(1.5, abs=0.1)
    assert said.target == messages.TALK


def test_it_is_over_a_while_after_the_last_packet_and_not_before() -> None:
    ear = SpeechInput()
    assert not listen(ear, heard(tone(1)), then=speech.PAUSE - 0.1)
    assert ear.ends_at is not None
    assert ear.tick(ear.ends_at) is not None
    assert ear.ends_at is None


def test_a_network_that_stalls_does_not_end_a_sentence() -> None:
    ear = SpeechInput()
    assert not listen(ear, heard(tone(1), ended=False), then=speech.PAUSE + 1)
    [said] = listen(ear, heard(tone(1)))
    assert seconds(said) == pytest.approx(2.0, abs=0.2)


def test_a_client_that_sends_all_the_time_is_cut_at_the_pauses() -> None:
    voice = np.concatenate([noise(1, 30), tone(1), noise(1.5, 30), tone(0.7), noise(1.5, 30)])
    first, second = listen(SpeechInput(), heard(voice, ended=False))
    assert seconds(first) == pytest.approx(1 + speech.PAUSE, abs=0.5)
    assert seconds(second) == pytest.approx(0.7 + speech.PAUSE, abs=0.5)


def test_a_short_pause_belongs_to_the_sentence() -> None:
    voice = np.concatenate([tone(0.6), noise(0.4, 20), tone(0.6)])
    assert len(listen(SpeechInput(), heard(voice))) == 1


@pytest.mark.parametrize(
    "voice",
    [noise(2, 25), noise(2, 0), tone(0.1), np.zeros(RATE, dtype=np.int16)],
    ids=["noise", "nothing", "a click", "silence"],
)
def test_what_is_no_voice_is_no_utterance(voice: Samples) -> None:
    assert not listen(SpeechInput(), heard(voice))


def test_steady_noise_is_not_taken_for_a_voice_for_long() -> None:
    """A fan beside the microphone is louder than a soft voice elsewhere."""
    ear = SpeechInput()
    found = listen(ear, heard(noise(15, 600), ended=False))
    assert sum(map(seconds, found)) < 10
    assert len(listen(ear, heard(tone(1) + noise(1, 600)))) == 1


def test_a_speech_without_an_end_is_cut() -> None:
    found = listen(SpeechInput(), heard(tone(speech.LONGEST_HEARD + 5)))
    assert [round(seconds(utterance)) for utterance in found] == [30, 5]


def test_a_whisper_is_kept_apart_from_what_everybody_heard() -> None:
    found = listen(SpeechInput(), heard(tone(1), ended=False), heard(tone(1), target=messages.WHISPER))
    assert [utterance.target for utterance in found] == [messages.TALK, messages.WHISPER]


def test_packets_that_are_no_sound_are_passed_over() -> None:
    ear, good = SpeechInput(), list(heard(tone(1)))
    nonsense = [VoicePacket(7, 0, 0, broken, False) for broken in (b"", b"\xff" * 40, b"\x01", bytes(range(256)) * 4)]
    mixed = [packet for pair in zip(good, nonsense * 20, strict=False) for packet in pair]
    assert len(listen(ear, iter(mixed))) == 1


@pytest.mark.parametrize(("rate", "channels"), [(8_000, 1), (16_000, 1), (22_050, 1), (24_000, 2), (48_000, 1)])
def test_sound_of_any_rate_comes_out_as_it_went_in(rate: int, channels: int) -> None:
    spoken = np.repeat(tone(1, rate=rate), channels)
    reader = OpusReader()
    back = np.concatenate([reader.read(packet) for packet in as_opus(wav(spoken, rate, channels), 40_000)])
    assert len(back) / RATE == pytest.approx(1, abs=0.05)
    again = as_wav(back)
    with wave.open(io.BytesIO(again)) as sound:
        assert (sound.getframerate(), sound.getnchannels()) == (16_000, 1)
        heard_again = np.frombuffer(sound.readframes(sound.getnframes()), dtype=np.int16)
    strongest = np.argmax(np.abs(np.fft.rfft(heard_again.astype(float)))) * 16_000 / len(heard_again)
    assert strongest == pytest.approx(220, abs=10)


@pytest.mark.parametrize("sound", [b"", b"RIFF", b"<html>It works!</html>", wav(np.zeros(0, dtype=np.int16))])
def test_what_is_no_sound_file_is_refused(sound: bytes) -> None:
    with pytest.raises(ModelGarbled, match="text to speech"):
        as_opus(sound, 40_000)


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


@needs_flite
@pytest.mark.parametrize("api", ["/v1/audio/speech", "/synthesize", "/"])
async def test_flite_speaks_and_pocketsphinx_hears(services: Callable[..., SpeechServices], api: str) -> None:
    both = services(api)
    speech = open_speech(settings(both, both, piper=not api.startswith("/v1")))
    assert await speech.hear(await speech.speak("I like green tea.")) == "i like green tea"
    if api == "/":
        await speech.speak("again")
        assert both.asked == ["/synthesize", "/", "/v1/audio/transcriptions", "/"], "it remembers which one it is"
    await speech.close()


@needs_flite
async def test_words_survive_the_way_through_opus_and_the_ear() -> None:
    ear, now, said = SpeechInput(), 0.0, []
    spoken = as_opus(sound_of("My brother plays the piano."), 32_000)
    for number, opus in enumerate(spoken, 1):
        said.append(ear.take(VoicePacket(1, 0, number, opus, number == len(spoken)), now))
        now += 0.02
    said.append(ear.tick(now + 10))
    [utterance] = [each for each in said if each is not None]
    assert words_of(as_wav(utterance.samples)) == "my brother plays the piano"
