"""A bot that kills itself (SIGKILL) right after a given step."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import discord
import yarl

import aforesaid
from aforesaid.bots import BotSession, Platform, run
from aforesaid.bots.discord import Discord
from aforesaid.bots.sending import PendingReplies
from aforesaid.bots.telegram import Telegram
from aforesaid.memory import UserMemory
from aforesaid.settings import DiscordSettings, Secret, TelegramSettings
from bots.remembering import QUIET


def die_after(owner: type, name: str, when: str | None = None) -> None:
    """Kill the process after a method; with `when`, only if that is its first argument."""
    original = getattr(owner, name)

    async def dying(self: object, *given: Any, **more: Any) -> Any:  # noqa: ANN401
        result = await original(self, *given, **more)
        if when is None or when == given[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, dying)


STEPS = {
    "claimed": (UserMemory, "claim", None),
    "delivered": (UserMemory, "delivered", None),
    "noted": (PendingReplies, "note", None),
    "stored": (UserMemory, "add", "user"),
    "received": (BotSession, "hear", None),
    "reply stored": (UserMemory, "add", "assistant"),
    "settled": (PendingReplies, "settle", None),
}


def platform(name: str, url: str, token: str) -> Platform:
    """Return a bot's side of a platform that is on this machine."""
    if name == "telegram":
        return Telegram(TelegramSettings(Secret(token), api=url), poll_seconds=1)
    discord.http.Route.BASE = f"http://{url}/api"
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(f"ws://{url}/gateway/")
    return Discord(DiscordSettings(Secret(token)))


def model_settings(url: str) -> dict[str, object]:
    """Have a model answer, if there is one."""
    return {"providers.s.base_url": url, "models.chat.chain": "s:scripted"} if url else {}


async def _run(options: dict[str, Any]) -> None:
    bot = platform(options["platform"], options["url"], options["token"])
    if options["step"] == "accepted":
        die_after(type(bot), "send")
    else:
        die_after(*STEPS[options["step"]])
    settings = model_settings(options["model"])
    async with aforesaid.connect(options["store"], profile=QUIET, embedder="none", settings=settings) as memory:
        await run(memory, bot)


def live(tell: Any, options: dict[str, Any]) -> None:  # noqa: ANN401
    """Run a bot until it is killed. A zygote calls this in a fresh process."""
    del tell
    asyncio.run(_run(options))
