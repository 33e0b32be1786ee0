"""Translates errors of discord.py to PlatformError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import aiohttp
import discord

from aforesaid.errors import PlatformError, PlatformRefused, PlatformUnavailable

REFUSED: Final = (
    "the token was refused by Discord; make a new one under Bot in the developer portal and put it into "
    "bots.discord.token (or AFORESAID_BOTS__DISCORD__TOKEN)"
)
INTENTS: Final = (
    "Discord does not let the bot read messages: switch on MESSAGE CONTENT INTENT under Bot in the developer portal"
)
_BAD_TOKEN: Final = 4004
_INTENTS: Final = (4013, 4014)
_TOO_MANY: Final = 429
_THEIR_FAULT: Final = 500


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise errors of discord.py as PlatformUnavailable if a retry may help, else as PlatformRefused."""
    try:
        yield
    except discord.LoginFailure:
        raise PlatformRefused(REFUSED) from None
    except discord.PrivilegedIntentsRequired:
        raise PlatformRefused(INTENTS) from None
    except discord.ConnectionClosed as error:
        raise _closed(error.code) from None
    except discord.RateLimited as error:
        raise PlatformUnavailable("Discord limits the rate of requests", retry_after=error.retry_after) from None
    except discord.HTTPException as error:
        raise _answered(error) from None
    except RuntimeError as error:
        if "closed" not in str(error):
            raise
        raise PlatformUnavailable("the connection to Discord is lost") from None
    except (discord.GatewayNotFound, aiohttp.ClientError, OSError) as error:
        raise PlatformUnavailable(f"Discord cannot be reached: {type(error).__name__} {error}") from None


def _closed(code: int) -> PlatformError:
    if code == _BAD_TOKEN:
        return PlatformRefused(REFUSED)
    return PlatformRefused(INTENTS) if code in _INTENTS else PlatformUnavailable(f"Discord hung up (code {code})")


def _answered(error: discord.HTTPException) -> PlatformError:
    if error.status == _TOO_MANY or error.status >= _THEIR_FAULT:
        return PlatformUnavailable(f"Discord has a problem: {error}")
    # A deleted channel, a person who accepts no direct messages, or a missing permission.
    return PlatformRefused(f"Discord refused: {error}")
