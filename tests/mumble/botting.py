"""A bot on a Mumble server, with a memory and a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import aforesaid
from aforesaid.bots import BotSession, run
from aforesaid.bots.mumble import Mumble
from aforesaid.bots.mumble.link import RateLimit
from aforesaid.memory import Connecting
from aforesaid.models.speech import RoutedSpeech, open_speech
from aforesaid.settings import Choice, MumbleSettings, Provider, Resilience, Settings, Speech
from aforesaid.testing import ScriptedModel
from mumble.mumbling import MumbleServer, Someone, someone
from mumble.speaking import SpeechServices

QUIET = {"summaries": "none", "extract": False}


def remembering(path: Path, model: ScriptedModel | None = None, **profile: object) -> Connecting:
    """Open a memory that asks a scripted model for answers, if there is one."""
    settings: dict[str, object] = {"resilience.attempts": 1, "resilience.probe_seconds": 0.2}
    if model is not None:
        settings |= {"providers.scripted.base_url": model.base_url, "models.chat.chain": "scripted:scripted"}
    return aforesaid.connect(path, profile={**QUIET, **profile}, embedder="none", settings=settings)


def speech(ears: SpeechServices, voice: SpeechServices, *, probe_seconds: float = 0.2) -> RoutedSpeech:
    """Return two speech services with a breaker that opens at the first failure and probes soon."""
    return open_speech(
        Settings(
            providers={
                "ears": Provider("ears", f"{ears.address}/v1"),
                "voice": Provider("voice", f"{voice.address}/v1"),
            },
            speech=Speech((Choice("ears", "sphinx"),), (Choice("voice", "flite"),), voice="slt"),
            resilience=Resilience(attempts=1, failures=1, probe_seconds=probe_seconds),
        )
    )


@dataclass(frozen=True, slots=True)
class Bot:
    platform: Mumble
    session: BotSession
    task: asyncio.Task[None]


@asynccontextmanager
async def bot(
    memory: aforesaid.Memory,
    server: MumbleServer,
    name: str = "Robbie",
    *,
    channel: str | None = None,
    answers_always: bool = False,
    speech: RoutedSpeech | None = None,
) -> AsyncIterator[Bot]:
    """Run a bot until the end of the block."""
    answer: Literal["called", "always"] = "always" if answers_always else "called"
    settings = MumbleSettings("127.0.0.1", server.port, name, channel=channel, answer=answer)
    platform = Mumble(settings, speech, rate_limit=RateLimit(1000, 1000))
    session = BotSession(memory, platform)
    ready = asyncio.Event()
    task = asyncio.create_task(run(memory, platform, session=session, ready=lambda _: ready.set(), first_pause=0.05))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    try:
        yield Bot(platform, session, task)
    finally:
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await platform.close()


def session_of(person: Someone, name: str) -> int | None:
    """Return the session number of another user, as a person sees it."""
    return next((each.session for each in person.link.people.persons.values() if each.name == name), None)


__all__ = ["QUIET", "Bot", "bot", "remembering", "session_of", "someone", "speech"]
