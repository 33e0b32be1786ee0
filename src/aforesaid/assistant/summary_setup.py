"""`/summary`: choose where memory is stored and after how many messages it is summarised, in two steps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from aforesaid.assistant import chat_texts
from aforesaid.assistant.answer import Answer, Button
from aforesaid.errors import InvalidInput

if TYPE_CHECKING:
    from aforesaid.memory import Memory, UserMemory

_STORAGE: Final = "storage"
_THRESHOLD: Final = "threshold"
_STORAGES: Final[Mapping[str, str]] = {"sqlite": "SQLite", "json": "JSON file"}
_FILES: Final[Mapping[str, str]] = {"sqlite": "memory.db", "json": "json:memory.json"}
_MOST_MESSAGES: Final = 500


class SummarySetup:
    """The dialogue of `/summary`.

    A store belongs to everybody who uses the bot, so a chat cannot replace it while the bot runs. Who chooses another
    kind than the store has gets an answer that names it, and how the operator changes it.
    """

    def __init__(self, memory: Memory | None, step_setting: str) -> None:
        self._memory = memory
        self._step_setting = step_setting

    async def begin(self, user: UserMemory, rest: str) -> Answer:  # noqa: ARG002 - every command has it
        """Ask for the storage format."""
        await user.set(self._step_setting, _STORAGE)
        buttons = (Button("SQLite (recommended)", "sqlite"), Button("JSON file", "json"))
        return Answer("Choose storage format:", buttons)

    async def step(self, user: UserMemory, step: str, text: str) -> Answer | None:
        """Handle the answer to the open question; return None if it does not fit."""
        if step == _STORAGE:
            chosen = next((word for word, label in _STORAGES.items() if text.lower() in {word, label.lower()}), None)
            return None if chosen is None else await self._choose(user, chosen)
        if not text.lstrip("+-").isdecimal():
            return None
        try:
            await user.set("summary_every_n", int(text))
        except InvalidInput:
            return Answer(f"{text} is not between 1 and {_MOST_MESSAGES}. Send a number 1-{_MOST_MESSAGES}.")
        await user.set("memory_enabled", True)
        await user.set(self._step_setting, None)
        storage = chat_texts.storage((await user.status()).storage)
        return Answer(f"External memory configured!\nStorage: {storage}\nThreshold: {int(text)} messages")

    async def _choose(self, user: UserMemory, chosen: str) -> Answer:
        status = await user.status()
        lines = []
        if _STORAGES[chosen] == chat_texts.storage(status.storage):
            await user.set("storage_type", chosen)
        else:
            lines.append(await self._cannot_switch(chosen, status.storage))
        if status.policy != "tree":
            await user.set("memory_enabled", True)
            await user.set(self._step_setting, None)
            lines += [f"Storage: {chat_texts.storage(status.storage)}", f"Summaries: {chat_texts.rhythm(status)}"]
            return Answer("\n".join(lines))
        await user.set(self._step_setting, _THRESHOLD)
        lines += ["After how many messages should I compress?", f"Send a number 1-{_MOST_MESSAGES}."]
        return Answer("\n".join(lines))

    async def _cannot_switch(self, chosen: str, storage: str) -> str:
        """Describe the store, and how the operator can migrate it to the chosen kind."""
        here = _FILES["sqlite" if storage.startswith("sqlite") else "json"]
        if self._memory is not None:
            location = dict((await self._memory.store.health()).facts).get("location")
            prefix = "json:" if storage == "json" else "files:" if storage == "files" else ""
            here = here if location is None else f"{prefix}{PurePath(location).name}"
        command = f"aforesaid migrate {here} {_FILES[chosen]}"
        return (
            f"Everything is stored in {chat_texts.storage(storage)} here, for everybody who uses this bot. A chat "
            f"cannot change that, so it stays there. Whoever runs the bot can: stop it, run `{command}`, and start it "
            f"with `--store {_FILES[chosen]}`. /export sends you your own data as a JSON file.\n"
        )
