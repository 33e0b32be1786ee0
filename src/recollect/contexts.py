"""The part of the front door that is about what a model is sent, and about a user's settings."""

from __future__ import annotations

from datetime import datetime
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from recollect.domain import checks
from recollect.domain.change import PutSetting
from recollect.domain.message import Message
from recollect.domain.report import MemoryStatus
from recollect.domain.scope import Scope
from recollect.domain.setting import ENABLED, EVERY, wants_memory
from recollect.domain.words import SettingValue
from recollect.errors import InvalidInput
from recollect.profiles import Profile
from recollect.profiles.recipe import LEAST_BUDGET, MOST_TOKENS
from recollect.telemetry import Metrics, timed

if TYPE_CHECKING:
    from recollect.context import Builder, Context
    from recollect.context.builder import Portrait
    from recollect.recall import Recall
    from recollect.store import Store

_LONGEST: Final = 64 * 1024 * 1024
"""A message of more bytes is no message."""
STORAGE: Final = "storage_type"
TIME_ZONE: Final = "time_zone"
CLEARED: Final = "cleared_up_to"
_KNOWN: Final = (ENABLED, EVERY, STORAGE, TIME_ZONE)


def _check_zone(value: object) -> None:
    try:
        ZoneInfo(checks.storable(value, "the time zone"))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"there is no time zone {value!r}; name one like Europe/Berlin") from None


class Contexts:
    """What makes contexts, for all users of a store. It is loaded when it is needed."""

    def __init__(self, store: Store, recall: Recall, profile: Profile, portrait: Portrait) -> None:
        self.store = store
        self.profile = profile
        self._recall = recall
        self._portrait = portrait

    @cached_property
    def builder(self) -> Builder:
        """What reads, chooses and writes down."""
        from recollect.context import Builder  # noqa: PLC0415 - loaded when it is needed

        return Builder(self.store, self._recall, self._portrait)


class UserContexts:
    """The contexts and the settings of one user."""

    _metrics: Metrics

    def __init__(self, contexts: Contexts, scope: Scope) -> None:
        """Use `Memory.user`."""
        self._contexts = contexts
        self.scope = scope

    @timed("context")
    async def context(
        self,
        text: str,
        budget: int | None = None,
        *,
        system: str | None = None,
        persona: str | None = None,
        at: datetime | None = None,
        model: str | None = None,
        answers: Message | None = None,
    ) -> Context:
        """Return what to send to a model that is to answer `text`: never more than `budget` tokens. No model is asked.

        `context.messages` is for any OpenAI-style API, `context.text` the same as one text, `context.explain()` says
        what is in it, what is not, and why. `system` is your system prompt, `persona` the character of a bot, and
        `model` says how tokens are counted. `answers` is the stored message that `text` is, where others may have been
        stored after it. The profile decides what a context holds.
        """
        from recollect.context import Wanted  # noqa: PLC0415 - loaded when it is needed
        from recollect.models.tokens import counter_for  # noqa: PLC0415

        profile = self._contexts.profile
        tokens = profile.context.budget if budget is None else checks.at_least(budget, LEAST_BUDGET, "the budget")
        if at is not None:
            checks.microseconds(at, "at")
        wanted = Wanted(
            text=checks.message_text(text, _LONGEST),
            budget=checks.at_most(tokens, MOST_TOKENS, "the budget"),
            system=None if system is None else checks.storable(system, "the system prompt"),
            persona=checks.storable(persona, "the persona") if persona is not None else profile.persona or None,
            at=at,
            after=await self._cleared(),
            answers=None if answers is None else answers.seq,
        )
        await self._noted("context.read", "context")
        return await self._contexts.builder.build(self.scope, wanted, profile.context, counter_for(model))

    async def _noted(self, action: str, subject: str) -> None:
        """Write down who looked, where somebody is named."""

    async def _cleared(self) -> int:
        stored = await self._contexts.store.settings(self.scope)
        return next((each.value for each in stored if each.key == CLEARED and isinstance(each.value, int)), 0)

    @timed("settings")
    async def settings(self) -> dict[str, SettingValue]:
        """Return the user's settings."""
        return {setting.key: setting.value for setting in await self._contexts.store.settings(self.scope)}

    @timed("set")
    async def set(self, key: str, value: SettingValue) -> None:
        """Change a setting of the user; None takes it back to the default. Settings act at once.

        `memory_enabled`, `summary_every_n`, `storage_type` and `time_zone` are checked; other names are yours.
        """
        close = get_close_matches(checks.identifier(key, "the setting's name"), _KNOWN, n=1, cutoff=0.85)
        if close and key not in _KNOWN:
            raise InvalidInput(f"there is no setting {key!r}; did you mean {close[0]!r}?")
        if key == TIME_ZONE and value is not None:
            _check_zone(value)
        if key == EVERY and value is not None:
            least = checks.at_least(value, 1, "the threshold")
            value = checks.at_most(least, 500, "the threshold")
        if key == ENABLED and not isinstance(value, bool | None):
            raise InvalidInput(f"{key} is True or False, not {value!r}")
        await self._contexts.store.apply([PutSetting(self.scope, key, value)])

    @timed("clear")
    async def clear(self) -> None:
        """Begin anew: messages up to now leave the recent window of contexts. They are kept, and can still be found."""
        ledger = await self._contexts.store.ledger(self.scope)
        await self._contexts.store.apply([PutSetting(self.scope, CLEARED, ledger.last_seq)])

    @timed("status")
    async def status(self) -> MemoryStatus:
        """Return how the user's memory stands."""
        store = self._contexts.store
        stored = await store.settings(self.scope)
        settings = {setting.key: setting.value for setting in stored}
        ledger = await store.ledger(self.scope)
        every = settings.get(EVERY)
        return MemoryStatus(
            enabled=wants_memory(stored),
            storage=str(settings.get(STORAGE) or dict((await store.health()).facts).get("backend", "unknown")),
            threshold=every if isinstance(every, int) else self._contexts.profile.tree_turns,
            since_last=ledger.open_turns,
            messages=ledger.messages,
            archived=ledger.archived,
            active_summaries=sum(count for _, count in ledger.active_summaries),
            highest_level=ledger.highest_level,
        )
