"""Erasing a person, from their own page or from the page about all data."""

from __future__ import annotations

from starlette.responses import Response

from aforesaid.errors import InvalidInput
from aforesaid.server.languages import plural, translate
from aforesaid.server.panel.view import View


async def erase_person(view: View, user: str, confirm: str, field: str) -> Response:
    """Erase a person whose name or id was typed as a confirmation. Raises InvalidInput for the field."""
    await view.look_up([user])
    name = view.names.get(user, user)
    if view.memory.known_ids.spelled(confirm).casefold() not in {user.casefold(), name.strip().casefold()}:
        raise InvalidInput(translate("type “{name}” to confirm; nothing was erased", name=name), field)
    done = await view.memory.purge(user, space=view.space, actor=view.who.actor)
    said = translate(
        "Erased for good: {messages}, {summaries}, {memories} of {name}.",
        messages=plural("{count} message", "{count} messages", done.messages),
        summaries=plural("{count} summary", "{count} summaries", done.summaries),
        memories=plural("{count} memory", "{count} memories", done.memories),
        name=name,
    )
    return view.done(said, view.address("/audit", user=user), leave=True)
