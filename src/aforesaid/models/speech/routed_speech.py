"""The configured services for speech to text and text to speech."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from aforesaid.errors import NoModel
from aforesaid.models.client import Client, load_library
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
from aforesaid.models.speech.services import PiperSpeaking, Speaking, SpokenAudio, Transcript, Transcription
from aforesaid.settings import Choice, Settings, SpeechOperation
from aforesaid.telemetry import Metrics

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
        """Return the state of each service's circuit breaker."""
        return {name: breaker.state() for (does, name), breaker in self._breakers.items() if does == operation}

    async def close(self) -> None:
        """Close all connections."""
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
