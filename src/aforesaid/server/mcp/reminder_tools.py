"""The tools for reminders: set, list, move and cancel them."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Annotated, Any, Self

from mcp.server.mcpserver import Context
from pydantic import BaseModel, Field

from aforesaid.domain.checks import to_zone
from aforesaid.domain.memory import MemoryRecord
from aforesaid.errors import NotFound
from aforesaid.memory import UserMemory
from aforesaid.server.mcp.access import AgentAccess
from aforesaid.server.mcp.answers import CursorArgument, Item, NextCursor
from aforesaid.server.mcp.arguments import User

When = Annotated[
    str,
    Field(
        min_length=1,
        description="When to remind: words ('tomorrow at 9', 'in two hours', 'on 3 December at 17:00') in the user's "
        "language and time zone, or a time such as 2026-12-03T17:00:00+01:00. It must not be in the past.",
    ),
]
ReminderId = Annotated[int, Field(ge=1, description="The id of the reminder, as list_reminders returned it.")]


class Reminder(Item):
    """A reminder that has not been delivered."""

    id: int
    text: str
    when: datetime | None = Field(description="When it is due, in the user's time zone; null if it has no time yet.")
    day: str | None = Field(description="The day and time in words, to confirm to the user.")
    due: bool = Field(description="Whether its time has come.")

    @classmethod
    def of(cls, memory: MemoryRecord, zone: tzinfo) -> Self:
        """Show a reminder in a time zone."""
        if memory.remind_at is None:
            return cls(id=memory.id, text=memory.text, when=None, day=None, due=False)
        at = to_zone(memory.remind_at, zone)
        day = f"{at:%A}, {at.day} {at:%B %Y} at {at:%H:%M} ({zone})"
        return cls(id=memory.id, text=memory.text, when=at, day=day, due=memory.remind_at <= datetime.now(UTC))


class ReminderList(BaseModel):
    """Reminders that have not been delivered, soonest first."""

    reminders: list[Reminder]
    next: NextCursor


class ReminderTools(AgentAccess):
    """Reminders."""

    async def list_reminders(
        self,
        ctx: Context[Any, Any],
        due: Annotated[bool, Field(description="Only reminders whose time has come.")] = False,
        cursor: CursorArgument = None,
        user: User = None,
    ) -> ReminderList:
        """List the reminders that the user has set, soonest first, with the ids to move or cancel them.

        Use get_timeline for appointments and other events.
        """
        person = self._person(ctx, user)
        zone = await person.time_zone()
        found, after = self._limit.page(
            await person.reminders(due=due), cursor, lambda memory: Reminder.of(memory, zone)
        )
        return ReminderList(reminders=found, next=after)

    async def set_reminder(
        self,
        ctx: Context[Any, Any],
        text: Annotated[str, Field(min_length=1, description="What to remind the user of, such as: call mum.")],
        when: When,
        user: User = None,
    ) -> Reminder:
        """Remind the user of something once, at a time that they asked for. Confirm the returned day and time to them.

        A bot of the user delivers it. Use add_memory for appointments that need no reminder.
        """
        person = self._person(ctx, user)
        return Reminder.of(await person.note("reminder", text, when=when), await person.time_zone())

    async def move_reminder(
        self,
        ctx: Context[Any, Any],
        id: ReminderId,  # noqa: A002 - the name that agents know
        when: When,
    ) -> Reminder:
        """Move a reminder to another time. Confirm the returned day and time to the user."""
        person = await self._of_reminder(ctx, id)
        return Reminder.of(await person.edit_memory(id, when=when), await person.time_zone())

    async def cancel_reminder(self, ctx: Context[Any, Any], id: ReminderId) -> Reminder:  # noqa: A002
        """Cancel a reminder, so that the user is not reminded. Returns the reminder that was cancelled."""
        person = await self._of_reminder(ctx, id)
        return Reminder.of(await person.deactivate(id), await person.time_zone())

    async def _of_reminder(self, ctx: Context[Any, Any], number: int) -> UserMemory:
        """Return the memory of the user whose reminder has this id. Raises NotFound for other memories."""
        missing = NotFound(f"there is no reminder {number} that is still to come; list_reminders has those that are")
        try:
            person = await self._owner(ctx, number)
        except NotFound:
            raise missing from None
        if number not in {memory.id for memory in await person.reminders()}:
            raise missing
        return person
