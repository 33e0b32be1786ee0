"""Synthetic voices as client packets."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from aforesaid.bots.mumble import messages
from aforesaid.bots.mumble.messages import VoicePacket
from aforesaid.bots.mumble.speech import RATE, as_opus

Samples = NDArray[np.int16]


def wav(samples: Samples, rate: int = RATE, channels: int = 1) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(channels)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(samples.tobytes())
    return file.getvalue()


def tone(seconds: float, loudness: float = 8000, rate: int = RATE) -> Samples:
    """A tone with gaps like those between words; a steady tone would count as noise."""
    times = np.arange(round(seconds * rate)) / rate
    swelling = np.clip(np.abs(np.sin(2 * np.pi * 1.3 * times + 0.3)) - 0.1, 0, 1)
    return np.asarray(loudness * swelling * np.sin(2 * np.pi * 220 * times), dtype=np.int16)


def noise(seconds: float, loudness: float) -> Samples:
    made = np.random.default_rng(1).normal(0, loudness, round(seconds * RATE))
    return np.asarray(made, dtype=np.int16)


def heard(samples: Samples, *, target: int = messages.TALK, ended: bool = True) -> Iterator[VoicePacket]:
    sent = as_opus(wav(samples), 40_000)
    for number, opus in enumerate(sent, 1):
        yield VoicePacket(7, target, number * 2, opus, ended and number == len(sent))
