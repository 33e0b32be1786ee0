"""Settings, read for all who ask at the same time with one statement.

Everybody who stores a message or makes a context wants the settings of their space, at most a second old. With many
spaces these are the most frequent reads: one by one, they would take longer than the messages.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from aforesaid.domain.checks import moment
from aforesaid.domain.report import Setting
from aforesaid.store import questions
from aforesaid.store.postgres.queries import Queries, over_rows

_SETTINGS: Final = over_rows(
    """
    SELECT setting.space, setting.owner, setting.key, setting.value::text, setting.updated_at
      FROM {rows} JOIN setting ON setting.space = {space} AND setting.owner = new.owner ORDER BY setting.key
    """,
    "owner text",
)
_MOST: Final = 1_000
"""Maximum people and spaces of one statement."""


class _Key(NamedTuple):
    space: str
    user: str


Reading = Callable[[Callable[[Queries], Awaitable[Any]]], Awaitable[Any]]
"""Carries something out in a transaction that sees all spaces."""


class GatheredSettings:
    """Answers questions for settings. Those that come while others are being answered wait for the next statement."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._waiting: dict[_Key, asyncio.Future[list[Setting]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def read(self, question: questions.Settings) -> list[Setting]:
        """Return the settings of a user, or of a space."""
        key = _Key(*question.scope[:2])
        answer = self._waiting.get(key)
        if answer is None:
            answer = self._waiting[key] = asyncio.get_running_loop().create_future()
        if self._task is None:
            self._task = asyncio.create_task(self._answer_all())
        # Others may wait for the same answer when this one no longer does.
        return await asyncio.shield(answer)

    async def _answer_all(self) -> None:
        try:
            while self._waiting:
                asked = {key: self._waiting.pop(key) for key in list(self._waiting)[:_MOST]}
                try:
                    found = await self._reading(lambda queries, asked=asked: _settings(queries, list(asked)))  # type: ignore[misc]
                except BaseException as error:
                    for answer in asked.values():
                        _refuse(answer, error)
                    if not isinstance(error, Exception):
                        raise
                else:
                    for key, answer in asked.items():
                        if not answer.done():
                            answer.set_result(found.get(key, []))
        finally:
            self._task = None


def _refuse(answer: asyncio.Future[list[Setting]], error: BaseException) -> None:
    if isinstance(error, asyncio.CancelledError):
        answer.cancel()
    elif not answer.done():
        answer.set_exception(error)
        answer.exception()  # whoever waited may have gone


async def _settings(queries: Queries, keys: list[_Key]) -> dict[_Key, list[Setting]]:
    found: dict[_Key, list[Setting]] = {}
    for space, user, key, value, at in await queries.rows_of(_SETTINGS, keys):
        found.setdefault(_Key(space, user), []).append(Setting(key, json.loads(value), moment(at)))
    return found
