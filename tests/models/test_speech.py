"""Hearing and speaking through services that fail and recover."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import pytest
from typer.testing import CliRunner

from aforesaid.cli import app
from aforesaid.errors import InvalidInput, ModelGarbled, ModelRefused, ModelUnavailable, NoModel
from aforesaid.models.resilience import BreakerOpen
from aforesaid.models.speech import open_speech, speech_health
from aforesaid.settings import Resilience, Settings, SpeechOperation, load_settings
from aforesaid.telemetry import Key
from aforesaid.testing import ScriptedModel, faults
from aforesaid.testing.faults import HttpResponse

ONE_TRY = Resilience(attempts=1, failures=2, probe_seconds=0.2)


@dataclass(frozen=True, slots=True)
class Says(faults.Fault):
    """Answers with these bytes."""

    body: bytes

    def change(self, answer: HttpResponse) -> HttpResponse:
        return replace(answer, parts=(self.body,))


async def test_what_is_spoken_is_heard() -> None:
    with ScriptedModel() as model:
        speech = open_speech(model.settings())
        assert (speech.hears, speech.speaks) == (True, True)
        sound = await speech.speak("Grüße aus Köln \N{GRINNING FACE}")
        assert sound.startswith(b"RIFF")
        assert await speech.hear(sound) == "Grüße aus Köln \N{GRINNING FACE}"
        await speech.close()
        spoken, heard = (request.body for request in model.requests)
        assert (spoken["voice"], spoken["response_format"]) == ("alloy", "wav")
        assert heard["file"] == sound
        assert set(speech.metrics.snapshot()) == {Key("hear", "scripted:scripted"), Key("speak", "scripted:scripted")}


@pytest.mark.req("D11")
@pytest.mark.parametrize("operation", ["hear", "speak"])
async def test_a_service_that_is_down_is_left_alone_and_recovers(operation: SpeechOperation) -> None:
    with ScriptedModel() as model:
        speech = open_speech(model.settings(resilience=Resilience(attempts=1, failures=2, probe_seconds=3600)))
        sound = await speech.speak("good morning")
        model.fail(faults.ServerError(503, "out of order"))
        for _ in range(2):
            with pytest.raises(ModelUnavailable):
                await (speech.hear(sound) if operation == "hear" else speech.speak("hello"))
        asked = len(model.requests)
        with pytest.raises(BreakerOpen, match="left alone"):
            await (speech.hear(sound) if operation == "hear" else speech.speak("hello"))
        assert len(model.requests) == asked, "a service that is left alone is not asked"
        [state] = speech.states(operation).values()
        assert state.state == "open"
        names = {"hear": "speech-to-text", "speak": "text-to-speech"}
        health = {part.name: part for part in speech_health(speech)}
        assert health[names[operation]].status == "failing"
        assert "out of order" in health[names[operation]].issues[0]
        # The other one has a breaker of its own.
        assert [part.status for part in speech_health(speech)].count("active") == 1
        model.heal()
        speech._breakers[operation, "scripted:scripted"]._next_probe = 0.0
        await (speech.hear(sound) if operation == "hear" else speech.speak("hello"))
        [state] = speech.states(operation).values()
        assert state.state == "closed"
        assert {part.status for part in speech_health(speech)} == {"active"}
        await speech.close()


async def test_the_next_service_takes_over() -> None:
    with ScriptedModel() as model, ScriptedModel() as other:
        speech = open_speech(model.settings(resilience=ONE_TRY, fallback=other))
        model.fail(faults.ServerError())
        sound = await speech.speak("still here")
        assert await speech.hear(sound) == "still here"
        assert len(other.requests) == 2
        await speech.close()


async def test_answers_without_sense_are_garbled_and_keys_that_are_refused_are_told() -> None:
    with ScriptedModel(api_key="the-right-one") as model:
        speech = open_speech(model.settings(resilience=ONE_TRY))
        model.fail(Says(b""))
        with pytest.raises(ModelGarbled, match="without any sound"):
            await speech.speak("hello")
        model.fail(Says(b'{"words": 1}'))
        with pytest.raises(ModelGarbled, match="without a text"):
            await speech.hear(b"RIFF")
        assert all(state.state == "closed" for state in speech.states("hear").values())
        model.heal()
        model.api_key = "another-one"
        with pytest.raises(ModelRefused, match="rejects the key"):
            await speech.speak("hello")
        await speech.close()


async def test_without_services_it_says_what_to_set() -> None:
    speech = open_speech(Settings())
    assert (speech.hears, speech.speaks) == (False, False)
    with pytest.raises(NoModel, match=r"speech\.hear"):
        await speech.hear(b"")
    with pytest.raises(NoModel, match=r"speech\.speak"):
        await speech.speak("hello")
    assert [part.facts for part in speech_health(speech)] == [(("providers", "none: bots use text only"),)] * 2


def test_services_are_configured_like_models() -> None:
    given = {
        "providers.whisper.base_url": "http://localhost:8000/v1",
        "providers.piper.base_url": "http://localhost:5000",
        "providers.piper.api": "piper",
        "speech.hear": "whisper:base",
        "speech.speak": ["piper:en_US-lessac-medium", "openai:tts-1"],
        "speech.language": "en",
    }
    settings = load_settings(env={}, overrides=given)
    assert [str(choice) for choice in settings.speech.speak] == ["piper:en_US-lessac-medium", "openai:tts-1"]
    assert settings.providers["piper"].api == "piper"
    assert "openai needs a key" in " ".join(settings.warnings)
    with pytest.raises(InvalidInput, match="there is no provider 'wisper'; did you mean 'whisper'"):
        load_settings(env={}, overrides={**given, "speech.hear": "wisper:base"})
    for key in ("speech.hear", "models.default", "models.chat.chain"):
        with pytest.raises(InvalidInput, match="text to speech only"):
            load_settings(env={}, overrides={**given, key: "piper:en_US-lessac-medium"})


def test_a_check_asks_the_services_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedModel() as model:
        monkeypatch.setenv("AFORESAID_PROVIDERS__LOCAL__BASE_URL", model.base_url)
        monkeypatch.setenv("AFORESAID_SPEECH__HEAR", "local:ears")
        monkeypatch.setenv("AFORESAID_SPEECH__SPEAK", "local:voice")
        ran = CliRunner().invoke(app, ["config", "--check", "--json"])
        assert ran.exit_code == 0, ran.output
        tried = json.loads(ran.output)["models"]
        assert [(each["model"], each["operations"], each["ok"]) for each in tried] == [
            ("local:ears", ["hear"], True),
            ("local:voice", ["speak"], True),
        ]
        model.fail(faults.ServerError())
        ran = CliRunner().invoke(app, ["config", "--check"])
        assert ran.exit_code == 1
        assert ran.output.count("FAILED") == 2
