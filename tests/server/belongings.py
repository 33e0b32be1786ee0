"""Data of a user for isolation tests: one of each kind, and how to read it back."""

from __future__ import annotations

from aforesaid.memory import UserMemory


async def fill_with_everything(person: UserMemory, word: str) -> dict[str, int]:
    """Store one of each kind of data, containing the word. Return the ids of a memory and a summary."""
    await person.add("user", f"I was in {word} with Tom.", name=f"Bob {word}")
    await person.add("assistant", f"How was {word}?")
    await person.remember(f"visited {word}")
    memory = await person.note("reminder", f"go to {word} again", tags=[word])
    summary = (await person.summarize())[0]
    await person.set("bot_persona", word)
    return {"memories": memory.id, "summaries": summary.id}


async def state_of(person: UserMemory) -> object:
    """Return all data of a user."""
    return (
        await person.history(),
        await person.memories(active=None),
        await person.facts(),
        await person.summaries(active=None),
        await person.settings(),
        await person.sessions(),
    )
