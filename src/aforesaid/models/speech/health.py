"""How hearing and speaking are doing, for `health`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aforesaid.domain.report import Component
from aforesaid.models.provider_health import component
from aforesaid.settings import SpeechOperation

if TYPE_CHECKING:
    from aforesaid.models.speech.routed_speech import RoutedSpeech

_NAMES: dict[SpeechOperation, str] = {"hear": "speech-to-text", "speak": "text-to-speech"}


def speech_health(speech: RoutedSpeech) -> tuple[Component, ...]:
    """Say how each service is doing: one component for hearing, one for speaking."""
    return tuple(
        component(name, speech.states(operation), "none: it goes on in text") for operation, name in _NAMES.items()
    )
