"""The Discord client: registers the commands and passes events to the adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import discord
from discord import app_commands

from aforesaid.assistant import Router

if TYPE_CHECKING:
    from aforesaid.bots.discord.adapter import Discord


class Client(discord.Client):
    """A client that passes its events to an adapter."""

    def __init__(self, adapter: Discord) -> None:
        intents = discord.Intents(
            guilds=True, guild_messages=True, dm_messages=True, message_content=True, guild_reactions=False
        )
        # No text of a model can ping anybody.
        super().__init__(intents=intents, allowed_mentions=discord.AllowedMentions.none())
        self._adapter = adapter
        self.tree = app_commands.CommandTree(self)
        self._add_commands()

    async def setup_hook(self) -> None:
        """Register the slash commands."""
        await self.tree.sync()

    async def on_ready(self) -> None:
        """Read missed messages."""
        await self._adapter.ready()

    async def on_disconnect(self) -> None:
        """Hold back events until missed messages were read."""
        self._adapter.away()

    async def on_resumed(self) -> None:
        """Accept events: after a resume Discord sends the missed ones itself."""
        self._adapter.back()

    async def on_message(self, message: discord.Message) -> None:
        """Handle a new message."""
        await self._adapter.take(message)

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        """Handle an edited message."""
        await self._adapter.take_edit(payload)

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        """Handle a deleted message."""
        await self._adapter.take_deletion(payload.guild_id, payload.channel_id, payload.message_id)

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        """Handle messages that were deleted together."""
        for message in sorted(payload.message_ids):
            await self._adapter.take_deletion(payload.guild_id, payload.channel_id, message)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """Handle a pressed button; the command tree handles commands."""
        if interaction.type is discord.InteractionType.component:
            await self._adapter.take_press(interaction)

    def _add_commands(self) -> None:
        router = Router()
        for name, what in router.commands().items():
            callback: Any = self._with_words(name) if router.takes_words(name) else self._alone(name)
            self.tree.add_command(app_commands.Command(name=name, description=what[:100], callback=callback))

    def _alone(self, name: str) -> Any:  # noqa: ANN401 - a callback of a command has no narrower type
        async def callback(interaction: discord.Interaction) -> None:
            await self._adapter.take_command(interaction, f"/{name}")

        return callback

    def _with_words(self, name: str) -> Any:  # noqa: ANN401
        async def callback(interaction: discord.Interaction, words: str = "") -> None:
            await self._adapter.take_command(interaction, f"/{name} {words}")

        return callback
