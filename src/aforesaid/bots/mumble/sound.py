"""Converts between the Opus packets of Mumble and the audio files of speech services.

Samples are 16-bit integers, 48,000 per second, mono, as in Opus.
"""

from __future__ import annotations

import io
import wave
from itertools import chain
from typing import TYPE_CHECKING, Final

from aforesaid.errors import InvalidInput, ModelGarbled
from aforesaid.extras import how_to_install

if TYPE_CHECKING:
    import numpy as np
    from av import AudioCodecContext
    from numpy.typing import NDArray

    Samples = NDArray[np.int16]

RATE: Final = 48_000
FRAME: Final = 960
"""Samples per sent packet: 20 ms."""
_HEARD_RATE: Final = 16_000
"""Samples per second for speech to text: services resample to this rate anyway."""
_LONGEST_SECONDS: Final = 600


def check_library() -> None:
    """Raise InvalidInput, which says how to install it, if the audio library is missing."""
    try:
        import av  # noqa: F401, PLC0415 - only a bot that hears or speaks needs it
    except ImportError as error:
        raise InvalidInput(f"voice on Mumble needs PyAV; {how_to_install('mumble')}") from error


class OpusReader:
    def __init__(self) -> None:
        from av import CodecContext  # noqa: PLC0415 - as above

        decoder: AudioCodecContext = CodecContext.create("libopus", "r")
        decoder.sample_rate = RATE
        decoder.layout = "mono"
        self._decoder = decoder

    def read(self, opus: bytes) -> Samples:
        """Return the samples of a packet; none if another client sent a packet that cannot be decoded."""
        import numpy as np  # noqa: PLC0415
        from av import FFmpegError, Packet  # noqa: PLC0415

        try:
            frames = self._decoder.decode(Packet(opus)) if opus else []
        except FFmpegError:
            frames = []
        parts = [frame.to_ndarray().reshape(-1).astype(np.int16, copy=False) for frame in frames]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int16)


def as_wav(samples: Samples) -> bytes:
    from av import AudioFrame, AudioResampler  # noqa: PLC0415

    frame = AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="mono")
    frame.sample_rate = RATE
    resampler = AudioResampler(format="s16", layout="mono", rate=_HEARD_RATE)
    pcm = b"".join(part.to_ndarray().tobytes() for part in [*resampler.resample(frame), *resampler.resample(None)])
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(_HEARD_RATE)
        sound.writeframes(pcm)
    return file.getvalue()


def as_opus(sound: bytes, bits_per_second: int) -> list[bytes]:
    """Return an audio file of any common format as packets of 20 ms. Raises ModelGarbled if it cannot be read."""
    from av import AudioFrame, CodecContext  # noqa: PLC0415

    samples = _samples(sound)
    encoder: AudioCodecContext = CodecContext.create("libopus", "w")
    encoder.sample_rate = RATE
    encoder.layout = "mono"
    encoder.format = "s16"
    encoder.bit_rate = bits_per_second
    encoder.options = {"application": "voip"}
    packets = []
    for start in range(0, len(samples), FRAME):
        frame = AudioFrame.from_ndarray(samples[start : start + FRAME].reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = RATE
        frame.pts = start
        packets += [bytes(packet) for packet in encoder.encode(frame)]
    # The last milliseconds stay in the encoder; they are silence.
    return packets


def _samples(sound: bytes) -> Samples:
    """Return the samples of an audio file, padded with silence to whole packets."""
    import av  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415

    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    parts: list[Samples] = []
    length = 0
    try:
        with av.open(io.BytesIO(sound), "r") as file:
            for frame in chain(file.decode(audio=0), [None]):  # None flushes the resampler
                for part in resampler.resample(frame):
                    parts.append(part.to_ndarray().reshape(-1).astype(np.int16, copy=False))
                    length += len(parts[-1])
                if length > _LONGEST_SECONDS * RATE:
                    raise ModelGarbled(f"the text to speech service returned more than {_LONGEST_SECONDS} s of audio")
    except (av.FFmpegError, IndexError, ValueError) as error:
        raise ModelGarbled(f"the text to speech service returned data that is not audio: {error}") from error
    if not length:
        raise ModelGarbled("the text to speech service returned an empty audio file")
    # One more packet of silence, because the encoder holds back a few milliseconds.
    missing = -length % FRAME + FRAME
    return np.concatenate([*parts, np.zeros(missing, dtype=np.int16)])
