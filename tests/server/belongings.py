"""What belongs to somebody, for tests of walls: one of everything, and what can be seen of it afterwards."""

from __future__ import annotations

from aforesaid.memory import UserMemory


async def fill_with_everything(person: UserMemory, word: str) -> dict[str, int]:
    """Give somebody one of everything, with the word in it. Return the numbers of a memory and a summary."""
    await person.add("user", f"I was in {word} with Tom.", name=f"Bob {word}")
    await person.add("assistant", f"How was {word}?")
    await person.remember(f"visited {word}")
    memory = await person.note("reminder", f"go to {word} again", tags=[word])
    summary = (await person.summarize())[0]
    await person.set("bot_persona", word)
    return {"memories": memory.id, "summaries": summary.id}


async def state_of(person: UserMemory) -> object:
    """Return all that somebody has."""
    return (
        await person.history(),
        await person.memories(active=None),
        await person.facts(),
        await person.summaries(active=None),
        await person.settings(),
        await person.sessions(),
    )
