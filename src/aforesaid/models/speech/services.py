"""Calls to one speech service."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from aforesaid.errors import ModelGarbled
from aforesaid.models.client import Client
from aforesaid.models.resilience import Ask
from aforesaid.settings import Choice

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_NOT_THERE: Final = (404, 405)


@dataclass(frozen=True, slots=True)
class Transcript:
    """A transcript. Empty: nothing was understood."""

    text: str
    prompt_tokens: int = 0
    reply_tokens: int = 0


@dataclass(frozen=True, slots=True)
class SpokenAudio:
    """A sound file."""

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
        """Yield the transcript of a WAV file."""
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
        """Yield a WAV file."""
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
        """Yield a WAV file."""
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
