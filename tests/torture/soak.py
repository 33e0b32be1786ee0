"""A bot on Telegram in a process of its own, whose hours are shorter than ours."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import aforesaid
from aforesaid.bots import BotSession, run
from aforesaid.bots import telegram as telegram_adapter
from aforesaid.bots.telegram import Telegram
from aforesaid.settings import Secret, TelegramSettings
from torture.zygote import Tell


def clock(options: dict[str, Any]) -> Callable[[], float]:
    """Return a clock that began at a moment and runs faster than ours, the same in every process."""
    at, began, speed, real = options["at"], options["began"], options["speed"], time.time
    return lambda: float(at + (real() - began) * speed)


def live(tell: Tell, options: dict[str, Any]) -> None:
    """Run the bot until it is stopped or killed."""
    asyncio.run(_live(tell, options))


async def _live(tell: Tell, options: dict[str, Any]) -> None:
    now = clock(options)
    time.time_ns = lambda: int(now() * 1e9)
    # The server on this machine has no limit.
    telegram_adapter._BETWEEN = 0.0  # type: ignore[misc]
    settings = {
        "providers.s.base_url": options["model"],
        "models.chat.chain": "s:scripted",
        "providers.s.concurrency": 16,
        "resilience.attempts": 1,
        "resilience.failures": 1_000_000,
    }
    async with aforesaid.connect(
        options["store"], profile={"extract": False}, embedder="none", settings=settings
    ) as memory:
        bot = Telegram(TelegramSettings(Secret(options["token"]), api=options["url"]), poll_seconds=1)
        session = BotSession(
            memory, bot, clock=lambda: datetime.fromtimestamp(now(), UTC), patience=options["patience"]
        )
        await run(memory, bot, session=session, ready=lambda name: tell(["ready", name]), first_pause=0.05)
