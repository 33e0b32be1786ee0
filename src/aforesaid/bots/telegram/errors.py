"""Translates errors of aiogram to PlatformError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aiogram import exceptions

from aforesaid.errors import PlatformRefused, PlatformUnavailable

REFUSED: Final = (
    "the token was refused by Telegram; look it up with /mybots at @BotFather and put it into bots.telegram.token "
    "(or AFORESAID_BOTS__TELEGRAM__TOKEN)"
)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise errors of aiogram as PlatformUnavailable if a retry may help, else as PlatformRefused."""
    try:
        yield
    except exceptions.TelegramRetryAfter as error:
        raise PlatformUnavailable("Telegram limits the rate of requests", retry_after=error.retry_after) from None
    except exceptions.TelegramUnauthorizedError:
        raise PlatformRefused(REFUSED) from None
    except exceptions.TelegramConflictError as error:
        raise PlatformUnavailable(
            f"another program uses the same token at the same time, or a webhook is set: {error.message}"
        ) from None
    except (exceptions.TelegramServerError, exceptions.ClientDecodeError) as error:
        raise PlatformUnavailable(f"Telegram has a problem: {error.message}") from None
    except exceptions.TelegramNetworkError as error:
        raise PlatformUnavailable(f"Telegram cannot be reached: {error.message}") from None
    except exceptions.TelegramAPIError as error:
        # An unknown chat, a person who blocked the bot, or a missing permission.
        raise PlatformRefused(f"Telegram refused: {error.message}") from None
    except OSError as error:
        # Timeouts are OSErrors without a text, so the type is named.
        raise PlatformUnavailable(f"Telegram cannot be reached: {type(error).__name__} {error}") from None
