"""The API for facts, portraits and preferences of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aforesaid.domain import checks
from aforesaid.domain.memory import Facts
from aforesaid.front.handle import IN_METHOD, UserHandle, public
from aforesaid.store import questions

if TYPE_CHECKING:
    from aforesaid.facts import ForgetResult, Preferences, RememberResult


class UserKnowledge(UserHandle):
    """Facts, portrait and preferences of one user."""

    @public(audit=IN_METHOD)
    async def remember(
        self, fact: str, *, by: str | int | None = None, name: str | None = None, about: str | None = None
    ) -> RememberResult:
        """Store a fact: "prefers tea", "I moved to Berlin". A newer fact replaces one that it contradicts.

        `by` is who says so, if not the user; what others say that is sensitive waits for approval, and so does what
        reads like an instruction to a model. `name` is what the user is called. `outcome` says what became of it.
        With `about`, the fact is about somebody else whom the memory does not know, by their name ("Tom"): it becomes a
        memory with `about` set to that name, and no part of the user's facts and portrait.
        """
        speaker = None if by is None else checks.identifier(by, "by", "by")
        words = checks.filled_text(fact, "the fact", "fact")
        whom = None if about is None else checks.display_name(about)
        return await self._services.fact_editor.remember(
            self.scope, words, by=speaker, name=_name(name), actor=self._who, about=whom
        )

    @public(audit=IN_METHOD)
    async def forget(self, fact: str, *, name: str | None = None) -> ForgetResult:
        """Forget a fact, in the facts text and in the memories. The result is true if it was known.

        It is not learned again from what had been said until now; saying it again later counts.
        """
        words = checks.filled_text(fact, "what to forget", "fact")
        return await self._services.fact_editor.forget(self.scope, words, name=_name(name), actor=self._who)

    @public(audit=("portrait.read", "portrait"))
    async def portrait(self, *, name: str | None = None) -> str | None:
        """Return what is known about the user as one text: facts, today, the days before. None if nothing is known.

        A model that is configured merges them, once for each state of the three. Without one, or when it fails, there
        are the facts, else today, else the days before.
        """
        if self._services.profile.summaries == "calendar":
            from aforesaid.digest import digest  # noqa: PLC0415 - loaded when it is needed

            # The portrait reads the summaries of the day and of the week, which this policy makes on request.
            await digest.day(self._services.digest, self.scope, None)
            await digest.week(self._services.digest, self.scope)
        return await self._services.portraitist.portrait(self.scope, name=_name(name))

    @public(audit=("facts.read", "facts"))
    async def facts(self) -> list[Facts]:
        """Return all versions of the facts text, oldest first, each with the request that caused it."""
        return await self._services.store.read(questions.FactsVersions(self.scope))

    @public(audit=("preferences.read", "preferences"))
    async def preferences(self) -> Preferences:
        """Return the user's preferences, counted in their messages: topics, hours, languages, lengths, tone."""
        return await self._services.habit_counter.preferences(self.scope)


def _name(value: object) -> str | None:
    return None if value is None else checks.display_name(value)
