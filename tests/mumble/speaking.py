"""Local speech services: pocketsphinx transcribes and flite speaks, both behind common APIs."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tempfile
import threading
import wave
from email import message_from_bytes
from email.policy import HTTP
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

FLITE: Final = shutil.which("flite")
needs_flite: Final = pytest.mark.skipif(
    FLITE is None, reason="Debian's flite is not installed, so nothing was spoken and nothing heard"
)
_DECODING: Final = threading.Lock()


@cache
def _decoder() -> Any:  # noqa: ANN401 - pocketsphinx has no types
    from pocketsphinx import Decoder  # noqa: PLC0415 - takes a second, and brings its model

    return Decoder(samprate=16_000, loglevel="FATAL")


def words_of(wav: bytes) -> str:
    """Return pocketsphinx's transcription of 16 kHz audio."""
    with wave.open(io.BytesIO(wav)) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) == (16_000, 1, 2)
        pcm = sound.readframes(sound.getnframes())
    with _DECODING:
        decoder = _decoder()
        decoder.start_utt()
        decoder.process_raw(pcm, full_utt=True)
        decoder.end_utt()
        found = decoder.hyp()
    return found.hypstr if found else ""


def sound_of(text: str, voice: str = "slt") -> bytes:
    """Return flite's speech for a text as a 16 kHz WAV file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spoken.wav"
        subprocess.run([str(FLITE), "-voice", voice, "-t", text, "-o", str(path)], check=True, capture_output=True)
        return path.read_bytes()


class _Handler(BaseHTTPRequestHandler):
    services: ClassVar[SpeechServices]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.services.asked.append(self.path)
        if self.services.down:
            self._answer(503, "application/json", b'{"error": {"message": "out of order"}}')
        elif self.path == "/v1/audio/transcriptions":
            said = words_of(_file(self.headers["content-type"], body))
            self.services.heard.append(said)
            self._answer(200, "application/json", json.dumps({"text": said}).encode())
        elif self.path in self.services.speaks_at:
            asked = json.loads(body)
            text = asked["input" if self.path.startswith("/v1/") else "text"]
            self.services.spoken.append(text)
            self._answer(200, "audio/wav", sound_of(text, asked["voice"]))
        else:
            self._answer(404, "text/html", b"<h1>Not Found</h1>")

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base has it
        pass


def _file(kind: str, body: bytes) -> bytes:
    form = message_from_bytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body, policy=HTTP)
    parts = {part.get_param("name", header="content-disposition"): part for part in form.iter_parts()}
    file = parts["file"].get_payload(decode=True)
    assert isinstance(file, bytes)
    return file


class SpeechServices:
    """Speech to text and text to speech. `down` makes both fail; `speaks_at` selects the speech API."""

    def __init__(self, *speaks_at: str) -> None:
        self.speaks_at = speaks_at or ("/v1/audio/speech",)
        self.down = False
        self.asked: list[str] = []
        self.heard: list[str] = []
        self.spoken: list[str] = []
        handler = type("Handler", (_Handler,), {"services": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
