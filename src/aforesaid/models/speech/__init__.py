"""Hearing and speaking, by services over HTTP: OpenAI's `/v1/audio/…`, as Whisper servers have it, and Piper's own."""

from aforesaid.models.speech.health import speech_health
from aforesaid.models.speech.routed_speech import RoutedSpeech, open_speech

__all__ = ["RoutedSpeech", "open_speech", "speech_health"]
