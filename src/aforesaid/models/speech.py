"""Speech services over HTTP: Whisper and Piper, with their fallbacks and health."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from aforesaid.domain.report import Component
from aforesaid.errors import ModelGarbled, NoModel
from aforesaid.models.client import Client, Sent, component, load_library
from aforesaid.models.resilience import (
    Ask,
    Breaker,
    BreakerState,
    Checked,
    ConcurrencyLimit,
    Fallback,
    Got,
    Result,
    Retry,
    Service,
    What,
    only,
    wrapped,
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
        self._piper_paths: dict[Choice, str] = {}
        """Where Piper servers of older versions synthesise."""
        self._hearing = [self._wrapped("hear", choice, self._transcribe) for choice in settings.speech.hear]
        self._voices = [self._wrapped("speak", choice, self._synthesize) for choice in settings.speech.speak]

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
        return (await only(Fallback(self._hearing), self._ask("hear", wav))).value

    async def speak(self, text: str) -> bytes:
        """Return a text as speech, in a WAV file. Raises ModelError."""
        if not self._voices:
            raise NoModel("no service for text to speech is configured: set speech.speak")
        await load_library()
        return (await only(Fallback(self._voices), self._ask("speak", text))).value

    def states(self, operation: SpeechOperation) -> dict[str, BreakerState]:
        return {name: breaker.state() for (does, name), breaker in self._breakers.items() if does == operation}

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()

    def _ask(self, operation: SpeechOperation, what: What) -> Ask[What]:
        end = asyncio.get_running_loop().time() + self._settings.speech.timeout
        return Ask(operation, what, answer_by=end, over_by=end)

    async def _transcribe(self, choice: Choice, opened: AsyncOpenAI, wav: bytes) -> Result[str]:
        language = self._settings.speech.language
        more: dict[str, Any] = {} if language is None else {"language": language}
        answer = await opened.audio.transcriptions.create(
            file=("speech.wav", wav, "audio/wav"), model=choice.model, response_format="json", **more
        )
        text = getattr(answer, "text", None)
        if not isinstance(text, str):
            raise ModelGarbled(f"{choice} answered without a text in it. If this goes on, check the base_url")
        return Result(text.strip())

    async def _synthesize(self, choice: Choice, opened: AsyncOpenAI, text: str) -> Result[bytes]:
        if self._settings.providers[choice.provider].api == "piper":
            sound = await self._ask_piper(choice, opened, text)
        else:
            answer = await opened.audio.speech.create(
                input=text, model=choice.model, voice=self._settings.speech.voice, response_format="wav"
            )
            sound = answer.content
        if not sound:
            raise ModelGarbled(f"{choice} answered without any sound. If this goes on, check the base_url")
        return Result(sound)

    async def _ask_piper(self, choice: Choice, opened: AsyncOpenAI, text: str) -> bytes:
        """Synthesise speech with Piper's HTTP server: at `/synthesize`, or at the root in older versions."""
        from openai import APIStatusError, HttpxBinaryResponseContent  # noqa: PLC0415 - loaded by now

        body, path = {"text": text, "voice": choice.model}, self._piper_paths.get(choice, "/synthesize")
        try:
            return (await opened.post(path, body=body, cast_to=HttpxBinaryResponseContent)).content
        except APIStatusError as error:
            if error.status_code not in _NOT_THERE or path == "/":
                raise
        made = await opened.post("/", body=body, cast_to=HttpxBinaryResponseContent)
        self._piper_paths[choice] = "/"
        return made.content

    def _wrapped(
        self,
        operation: SpeechOperation,
        choice: Choice,
        send: Callable[[Choice, AsyncOpenAI, What], Awaitable[Result[Got]]],
    ) -> Service[What, Result[Got]]:
        provider, resilience = self._settings.providers[choice.provider], self._settings.resilience
        client = self._clients.setdefault(provider.name, Client(provider))
        breaker = self._breakers[operation, str(choice)] = Breaker(f"{choice} ({operation})", resilience)
        limit = ConcurrencyLimit(provider.name, provider.concurrency)
        service: Service[What, Result[Got]] = Sent(client, choice.model, partial(send, choice))
        service = Retry(wrapped(service, str(choice), breaker, limit, resilience, self.metrics), resilience.attempts)
        # Once more: somebody waits for an answer, and a service that is down should cost them nothing.
        return Checked(service, breaker)
