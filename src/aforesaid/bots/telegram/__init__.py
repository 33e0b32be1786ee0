"""Telegram: long polling or a webhook, commands, keyboards, groups and direct chats."""

from aforesaid.bots.telegram.adapter import Telegram

__all__ = ["Telegram"]
