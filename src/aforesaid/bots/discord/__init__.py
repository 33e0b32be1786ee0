"""Discord: guild and direct messages, slash commands, free-form requests, and messages missed while offline."""

from aforesaid.bots.discord.adapter import Discord

__all__ = ["Discord"]
