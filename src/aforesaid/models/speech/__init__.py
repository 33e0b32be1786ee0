"""Speech to text and text to speech over HTTP: OpenAI's `/v1/audio/…`, and Piper's own API."""

from aforesaid.models.speech.health import speech_health
from aforesaid.models.speech.routed_speech import RoutedSpeech, open_speech

__all__ = ["RoutedSpeech", "open_speech", "speech_health"]
