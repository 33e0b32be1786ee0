"""Speech services over HTTP: Whisper and Piper, with their fallbacks and health."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from aforesaid.domain.report import Component
from aforesaid.errors import ModelGarbled, NoModel
from aforesaid.models.client import Client, component, load_library
from aforesaid.models.resilience import (
    Ask,
    Breaker,
    BreakerState,
    Checked,
    ConcurrencyLimit,
    Deadline,
    Fallback,
    Guarded,
    Limited,
    Metered,
    Priced,
    Retry,
    Service,
    only,
)
from aforesaid.settings import Choice, Settings, SpeechOperation
from aforesaid.telemetry import Metrics

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["RoutedSpeech", "open_speech", "speech_health"]


_NAMES: dict[SpeechOperation, str] = {"hear": "speech-to-text", "speak": "text-to-speech"}


def speech_health(speech: RoutedSpeech) -> tuple[Component, ...]:
    """Return the health of speech to text and of text to speech, one component each."""
    return tuple(
        component(name, speech.states(operation), "none: bots use text only") for operation, name in _NAMES.items()
    )


_NOT_THERE: Final = (404, 405)


@dataclass(frozen=True, slots=True)
class Transcript:
    """A transcript. Empty: nothing was understood."""

    text: str
    prompt_tokens: int = 0
    reply_tokens: int = 0


@dataclass(frozen=True, slots=True)
class SpokenAudio:
    sound: bytes
    prompt_tokens: int = 0
    reply_tokens: int = 0


class Transcription:
    """Transcribes audio with OpenAI's `/v1/audio/transcriptions`."""

    def __init__(self, client: Client, choice: Choice, language: str | None) -> None:
        self._client = client
        self._choice = choice
        self._language = language

    async def call(self, ask: Ask[bytes]) -> AsyncGenerator[Transcript, None]:
        more: dict[str, Any] = {} if self._language is None else {"language": self._language}
        try:
            answer = await (await self._client.open()).audio.transcriptions.create(
                file=("speech.wav", ask.what, "audio/wav"), model=self._choice.model, response_format="json", **more
            )
        except Exception as error:
            # Whatever the library raises, callers know ModelError alone; and its own texts may repeat the key.
            raise self._client.failure(error, self._choice.model) from None
        text = getattr(answer, "text", None)
        if not isinstance(text, str):
            raise ModelGarbled(f"{self._choice} answered without a text in it. If this goes on, check the base_url")
        yield Transcript(text.strip())


class Speaking:
    """Synthesises speech with OpenAI's `/v1/audio/speech`."""

    def __init__(self, client: Client, choice: Choice, voice: str) -> None:
        self._client = client
        self._choice = choice
        self._voice = voice

    async def call(self, ask: Ask[str]) -> AsyncGenerator[SpokenAudio, None]:
        try:
            answer = await (await self._client.open()).audio.speech.create(
                input=ask.what, model=self._choice.model, voice=self._voice, response_format="wav"
            )
        except Exception as error:
            # As above.
            raise self._client.failure(error, self._choice.model) from None
        yield _checked(answer.content, self._choice)


class PiperSpeaking:
    """Synthesises speech with Piper's HTTP server: at `/synthesize`, or at the root in older versions."""

    def __init__(self, client: Client, choice: Choice) -> None:
        self._client = client
        self._choice = choice
        self._path = "/synthesize"

    async def call(self, ask: Ask[str]) -> AsyncGenerator[SpokenAudio, None]:
        try:
            sound = await self._synthesize(await self._client.open(), ask.what)
        except Exception as error:
            # As above.
            raise self._client.failure(error, self._choice.model) from None
        yield _checked(sound, self._choice)

    async def _synthesize(self, opened: AsyncOpenAI, text: str) -> bytes:
        from openai import APIStatusError, HttpxBinaryResponseContent  # noqa: PLC0415 - loaded by now

        body = {"text": text, "voice": self._choice.model}
        try:
            return (await opened.post(self._path, body=body, cast_to=HttpxBinaryResponseContent)).content
        except APIStatusError as error:
            if error.status_code not in _NOT_THERE or self._path == "/":
                raise
        made = await opened.post("/", body=body, cast_to=HttpxBinaryResponseContent)
        self._path = "/"
        return made.content


def _checked(sound: bytes, choice: Choice) -> SpokenAudio:
    if not sound:
        raise ModelGarbled(f"{choice} answered without any sound. If this goes on, check the base_url")
    return SpokenAudio(sound)


What = TypeVar("What")
Cost = TypeVar("Cost", bound=Priced)


def open_speech(settings: Settings, *, metrics: Metrics | None = None) -> RoutedSpeech:
    """Return the services that are configured. Nothing is connected before the first call."""
    return RoutedSpeech(settings, metrics or Metrics())


class RoutedSpeech:
    """Speech services with fallbacks. Each has its own circuit breaker, so one that is down costs no time."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.metrics = metrics
        self._settings = settings
        self._clients: dict[str, Client] = {}
        self._breakers: dict[tuple[SpeechOperation, str], Breaker] = {}
        speech = settings.speech
        self._hearing: list[Service[bytes, Transcript]] = [
            self._wrapped("hear", choice, lambda client, choice: Transcription(client, choice, speech.language))
            for choice in speech.hear
        ]
        self._voices: list[Service[str, SpokenAudio]] = [
            self._wrapped("speak", choice, self._voice) for choice in speech.speak
        ]

    @property
    def hears(self) -> bool:
        """Whether a speech-to-text service is configured."""
        return bool(self._hearing)

    @property
    def speaks(self) -> bool:
        """Whether a text-to-speech service is configured."""
        return bool(self._voices)

    async def hear(self, wav: bytes) -> str:
        """Return the transcript of a WAV file; empty if nothing is said. Raises ModelError."""
        if not self._hearing:
            raise NoModel("no service for speech to text is configured: set speech.hear")
        await load_library()
        return (await only(Fallback(self._hearing), self._ask("hear", wav))).text

    async def speak(self, text: str) -> bytes:
        """Return a text as speech, in a WAV file. Raises ModelError."""
        if not self._voices:
            raise NoModel("no service for text to speech is configured: set speech.speak")
        await load_library()
        return (await only(Fallback(self._voices), self._ask("speak", text))).sound

    def states(self, operation: SpeechOperation) -> dict[str, BreakerState]:
        return {name: breaker.state() for (does, name), breaker in self._breakers.items() if does == operation}

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()

    def _ask(self, operation: SpeechOperation, what: What) -> Ask[What]:
        end = asyncio.get_running_loop().time() + self._settings.speech.timeout
        return Ask(operation, what, answer_by=end, over_by=end)

    def _voice(self, client: Client, choice: Choice) -> Service[str, SpokenAudio]:
        if client.provider.api == "piper":
            return PiperSpeaking(client, choice)
        return Speaking(client, choice, self._settings.speech.voice)

    def _wrapped(
        self, operation: SpeechOperation, choice: Choice, make: Callable[[Client, Choice], Service[What, Cost]]
    ) -> Service[What, Cost]:
        provider, resilience = self._settings.providers[choice.provider], self._settings.resilience
        client = self._clients.setdefault(provider.name, Client(provider))
        name = str(choice)
        breaker = self._breakers[operation, name] = Breaker(f"{name} ({operation})", resilience)
        service = make(client, choice)
        service = Deadline(service, name, stall=resilience.stall_seconds)
        service = Metered(service, name, self.metrics)
        service = Guarded(service, breaker)
        service = Limited(service, ConcurrencyLimit(provider.name, provider.concurrency))
        service = Checked(service, breaker)
        service = Retry(service, resilience.attempts)
        # Once more: somebody waits for an answer, and a service that is down should cost them nothing.
        return Checked(service, breaker)
