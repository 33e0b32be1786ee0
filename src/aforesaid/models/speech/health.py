"""The health of speech services."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aforesaid.domain.report import Component
from aforesaid.models.provider_health import component
from aforesaid.settings import SpeechOperation

if TYPE_CHECKING:
    from aforesaid.models.speech.routed_speech import RoutedSpeech

_NAMES: dict[SpeechOperation, str] = {"hear": "speech-to-text", "speak": "text-to-speech"}


def speech_health(speech: RoutedSpeech) -> tuple[Component, ...]:
    """Return the health of speech to text and of text to speech, one component each."""
    return tuple(
        component(name, speech.states(operation), "none: bots use text only") for operation, name in _NAMES.items()
    )
