"""The connection to Discord: its events, handed on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import discord
from discord import app_commands

from aforesaid.assistant import Router

if TYPE_CHECKING:
    from aforesaid.bots.discord.adapter import Discord


class Client(discord.Client):
    """A client that hands its events to an adapter."""

    def __init__(self, adapter: Discord) -> None:
        intents = discord.Intents(
            guilds=True, guild_messages=True, dm_messages=True, message_content=True, guild_reactions=False
        )
        # Whatever a model writes, nobody is pinged by it.
        super().__init__(intents=intents, allowed_mentions=discord.AllowedMentions.none())
        self._adapter = adapter
        self.tree = app_commands.CommandTree(self)
        self._add_commands()

    async def setup_hook(self) -> None:
        """Tell Discord which commands there are."""
        await self.tree.sync()

    async def on_ready(self) -> None:
        """Look for what was missed."""
        await self._adapter.ready()

    async def on_disconnect(self) -> None:
        """Hold back what comes in until it is clear what was missed."""
        self._adapter.away()

    async def on_resumed(self) -> None:
        """Go on: Discord has handed in by itself what was missed."""
        self._adapter.back()

    async def on_message(self, message: discord.Message) -> None:
        """Take in what somebody wrote."""
        await self._adapter.take(message)

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        """Take in what somebody changed."""
        await self._adapter.take_edit(payload)

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        """Take in that something was deleted."""
        await self._adapter.take_deletion(payload.guild_id, payload.channel_id, payload.message_id)

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        """Take in that much was deleted."""
        for message in sorted(payload.message_ids):
            await self._adapter.take_deletion(payload.guild_id, payload.channel_id, message)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """Take in that a button was pressed; commands have their own way."""
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
