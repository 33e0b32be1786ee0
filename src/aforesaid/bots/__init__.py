"""Bots: a session that works the same on every platform, and a thin adapter per platform."""

from aforesaid.bots.bot_session import BotSession
from aforesaid.bots.contract import Address, Deleted, Edited, IncomingMessage, Platform, Pressed
from aforesaid.bots.running import run

__all__ = ["Address", "BotSession", "Deleted", "Edited", "IncomingMessage", "Platform", "Pressed", "run"]
