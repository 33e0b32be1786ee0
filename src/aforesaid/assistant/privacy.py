"""Commands for one's own data: export a copy, delete everything."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from aforesaid.assistant.answer import Answer, Button, File
from aforesaid.domain.checks import counted

if TYPE_CHECKING:
    from aforesaid.memory import Memory, UserMemory

ERASE: Final = "erase everything"
KEEP: Final = "keep everything"
_YES: Final = frozenset({"yes", "y", "yes please", "ja", "ja bitte", "oui", "si", "sí", "sì", "sim", "erase", "delete"})
_NO: Final = frozenset({"no", "n", "nein", "non", "não", "keep", "cancel"})
_AROUND: Final = " \t.!\"'“”„«»"
"""Characters around an answer that do not change it."""
_PAGE: Final = 1000

Reply: TypeAlias = Literal["erase", "keep", "unclear"]


async def copy(user: UserMemory) -> Answer:
    """Return all data of a user as a file."""
    messages: list[dict[str, Any]] = []
    page = await user.history(_PAGE, versions=True)
    while page:
        messages[:0] = [asdict(message) for message in page]
        page = await user.history(_PAGE, before=page[0], versions=True)
    whole = {
        "user": user.scope.user,
        "space": user.scope.space,
        "written_at": datetime.now(UTC),
        "messages": messages,
        "memories": [asdict(memory) for memory in await user.memories(active=None)],
        "facts": [asdict(facts) for facts in await user.facts()],
        "summaries": [asdict(summary) for summary in await user.summaries(active=None, every_thread=True)],
        "settings": await user.settings(),
    }
    content = json.dumps(whole, ensure_ascii=False, indent=1, default=_plain).encode()
    told = f"This is all that I have stored about you here: {counted(len(messages), 'message')}, and what I know."
    return Answer(told, file=File("my-data.json", content), private=True)


def question() -> Answer:
    """Ask for confirmation."""
    return Answer(
        "This erases everything that you said here and all that I know about you, for good. There is no way back. "
        f'Type "{ERASE}" if you are sure; anything else keeps it.',
        (Button("Erase everything", ERASE), Button("Keep everything", KEEP)),
    )


def read_reply(text: str, *, direct: bool) -> Reply | None:
    """Return what a text says to the question; None if it is no answer to it.

    Only the words that the question asks for erase. A "yes" may be a slip, or said to somebody else.
    """
    said = text.casefold().strip(_AROUND)
    if said == ERASE:
        return "erase"
    if said == KEEP or said in _NO:
        return "keep"
    return "unclear" if direct or said in _YES else None


def not_erased(reply: Literal["keep", "unclear"], *, direct: bool) -> Answer:
    """Say that nothing was erased, and how it would be."""
    if reply == "keep":
        return Answer("Nothing was erased. Everything is kept.")
    lost = " What you wrote just now was taken as the answer, and is not stored." if direct else ""
    return Answer(f'Nothing was erased.{lost} To erase everything, send /forget_me and then type "{ERASE}".')


async def erase(memory: Memory | None, user: UserMemory) -> Answer:
    """Delete a user."""
    if memory is None:
        return Answer("That cannot be done here. Ask whoever runs this bot.")
    done = await memory.purge(user.scope.user, space=user.scope.space, actor=user.scope.user)
    return Answer(f"Everything is erased: {counted(done.messages, 'message')}, and all that I knew about you.")


def _plain(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
