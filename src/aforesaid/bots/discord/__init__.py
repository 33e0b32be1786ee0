"""Discord: every message of a guild, slash commands, free-form requests, and what was missed while the bot was away."""

from aforesaid.bots.discord.adapter import Discord

__all__ = ["Discord"]
