"""The API for summaries: make, read, correct."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Final

from aforesaid.domain import checks
from aforesaid.domain.chat_message import ChatMessage
from aforesaid.domain.checks import Within, moment
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope, direct_thread
from aforesaid.domain.summary import Summary, SummaryKind, summary_text
from aforesaid.front.handle import IN_METHOD, UserHandle, public
from aforesaid.store.memories import Memories
from aforesaid.store.messages import MessageById, VersionsOf
from aforesaid.store.summaries import CoveredMessages, RollBack, Summaries, SummariesAbove

if TYPE_CHECKING:
    from aforesaid.digest import HistoryContext, Tiers

_PERSON: Final = "person"
MOST_FOR_LLM: Final = 100
"""Messages that `messages_for_llm` returns where there is no summary."""
MOST_COVERED: Final = 10_000
"""Maximum number of messages that a caller's summary may cover beyond the previous one."""
_MOST_DAYS: Final = 31
_MOST_LISTED: Final = 10
"""Maximum topics, and maximum preferences, of an analysis without a model. A model may write as many."""


class UserSummaries(UserHandle):
    """The summaries of one user."""

    @public(audit=("summary.ask", "summarise now"), unbounded=True)
    async def summarize(self) -> list[Summary]:
        """Summarise now, even if there is little to summarise; return the new summaries.

        Raises ModelError if a model is required and none answers; then nothing is changed.
        """
        return await self._services.digest.summarize(self.scope)

    @public(audit=("summary.ask", "summarise the thread"), unbounded=True)
    async def summarize_thread(self, *, days: int | None = None) -> str:
        """Return a summary of what everybody said in this handle's thread of late; empty if nobody said anything.

        With `days`, of so many days, of which today is the last. It is not stored. Messages of people who switched
        memory off are left out.
        """
        count = None if days is None else checks.at_most(checks.at_least(days, 1, "days"), _MOST_DAYS, "days")
        return await self._services.digest.summarize_thread(self.scope, count)

    @public(audit=("summaries.read", "summaries"))
    async def summaries(
        self,
        *,
        active: bool | None = True,
        kind: SummaryKind | None = None,
        day: date | None = None,
        thread: str | int | None = None,
        every_thread: bool = False,
    ) -> list[Summary]:
        """Return the summaries, highest level first; with `active=None` also inactive ones.

        With `thread`, only summaries of that chat. Without it, a handle of a thread or a chat leaves out those of other
        chats, unless `every_thread` is set; summaries of all that the user said (days, archives, the history) belong to
        no single chat.
        """
        scope, store = self.scope, self._services.store
        if thread is not None:
            scope = Scope.of(scope.user, scope.space, thread)
            return await store.read(Summaries(scope, active=active, kind=kind, day=day, here=True))
        found = await store.read(Summaries(scope, active=active, kind=kind, day=day))
        if every_thread or scope.thread == direct_thread(scope.user):
            return found
        return [summary for summary in found if summary.reach != "thread" or summary.thread == scope.thread]

    @public(audit=("summaries.read", "current summary"))
    async def current_summary(self) -> Summary | None:
        """Return the rolling summary of this handle's chat; None where there is none."""
        found = await self._services.store.read(Summaries(self.scope, kind="rolling", here=True))
        return found[0] if found else None

    @public(audit=IN_METHOD)
    async def edit_summary(self, summary: int, text: str, *, editor: str | None = None) -> Summary:
        """Correct an active summary. The new text is its next version; the old one is kept.

        `editor` is who wrote it (default: the actor, or `person`).
        """
        number = checks.at_least(summary, 1, "the summary", "summary")
        who = self._actor or _PERSON if editor is None else checks.identifier(editor, "the editor")
        return await self._services.digest.edit(self.scope, number, text, who)

    @public(audit=IN_METHOD)
    async def roll_back(self, summary: int) -> Summary:
        """Undo a summary: its previous version, or else the messages it covers, become active again."""
        change = RollBack(self.scope, checks.at_least(summary, 1, "the summary", "summary"), self._who)
        return (await self._services.store.apply([change])).summary

    @public(audit=("messages.read", "summary {summary}"))
    async def summary_messages(self, summary: int) -> list[Message]:
        """Return the messages that a summary of any level and kind covers, oldest first.

        Of a message with several versions only the newest one that the summary covers is returned, and none that was
        taken back.
        """
        store = self._services.store
        number = checks.at_least(summary, 1, "the summary", "summary")
        covered = await store.read(CoveredMessages(self.scope, number))
        replaced = [message.seq for message in covered if message.replaced]
        versions = await store.read(VersionsOf(self.scope, replaced)) if replaced else []
        newer = {message.replaces: message for message in versions}
        inside = {message.seq for message in covered}

        def shown(message: Message) -> bool:
            later = message
            while not later.taken_back and (later.seq == message.seq or later.seq not in inside):
                if later.seq not in newer:
                    return True
                later = newer[later.seq]
            return False

        return [message for message in covered if shown(message)]

    @public(audit=("summaries.read", "summaries of a message"))
    async def message_summaries(self, message: Message | str) -> list[Summary]:
        """Return the summaries of every level and kind that cover a message of the user."""
        store = self._services.store
        found = (
            message
            if isinstance(message, Message)
            else await store.read(MessageById(self.scope, checks.identifier(message, "the message")))
        )
        return await store.read(SummariesAbove(self.scope, found.seq))

    @public(audit=("context.read", "messages for a model"))
    async def messages_for_llm(self, limit: int = MOST_FOR_LLM) -> list[ChatMessage]:
        """Return the thread for a model: its rolling summary and all messages that it does not cover.

        Without a summary, the newest `limit` messages.
        """
        most = checks.at_most(checks.at_least(limit, 1, "the limit"), MOST_COVERED, "the limit")
        return await self._services.digest.messages_for_llm(self.scope, most)

    @public(audit=("summary.update", "rolling summary"))
    async def update_summary(self, text: str, covers: int, *, model: str | None = None) -> Summary:
        """Store a rolling summary of your own, of the first `covers` messages of the thread."""
        count = checks.at_most(checks.at_least(covers, 1, "covers"), checks.LARGEST, "covers")
        return await self._services.digest.update_summary(self.scope, summary_text(text), count, model)

    @public(audit=("summaries.read", "day"))
    async def day(self, day: date | None = None) -> Summary | None:
        """Return the user's summary of a day (default: today); None if nothing was said on it.

        Only the policy `calendar` (profile `community`) makes such summaries; with another it is None, and a warning is
        logged. It is made on request: today's at most once an hour, others once.
        """
        return await self._services.digest.day(self.scope, day)

    @public(audit=("summaries.read", "week"))
    async def week(self) -> Summary | None:
        """Return the user's summary of the six days before today, or None. It is made once a day.

        Only the policy `calendar` (profile `community`) makes it, as for `day`.
        """
        return await self._services.digest.week(self.scope)

    @public(audit=("messages.read", "tiers"))
    async def tiers(self, *, within: Within = "user") -> Tiers:
        """Return the user's memory in tiers: short-term, mid-term, the whole history, and its context.

        With `within="thread"`, the two windows are of this handle's chat alone, and the count is of what the user has
        there.
        """
        return await self._services.digest.read_tiers(self.scope, within)

    @public(audit=("summary.ask", "analyse now"))
    async def analyze(self) -> HistoryContext:
        """Analyse the whole history now, in every profile, and return the history context.

        Raises ModelError when a model has to do it and none answers; then everything is as it was.
        """
        return await self._completed(await self._services.digest.analyze(self.scope))

    async def _completed(self, found: HistoryContext) -> HistoryContext:
        """Return an analysis, completed from what is counted and remembered if no model wrote it."""
        if found.made_at is None or any((found.topics, found.preferences, found.style, found.items)):
            return found
        from aforesaid.digest.digest import history_items  # noqa: PLC0415 - loaded with the digest

        memories = await self._services.store.read(Memories(self.scope))
        liked = [each for each in memories if each.kind == "preference"]
        asked = [each.text for each in memories if each.kind == "instruction"]
        counted = await self._services.habit_counter.stored_preferences(self.scope, liked)
        today = moment(self._services.digest.clock()).date()
        return replace(
            found,
            topics=tuple(word for word, _ in counted.topics[:_MOST_LISTED]),
            preferences=counted.stated[:_MOST_LISTED],
            style=" ".join([*asked, replace(counted, topics=()).habits()]).strip(),
            items=history_items([each for each in memories if each.kind not in ("preference", "instruction")], today),
        )

    @public(audit=("summaries.read", "history context"))
    async def history_context(self) -> HistoryContext:
        """Return the analysis of the whole history; a baseline if there is none yet."""
        return await self._completed(await self._services.digest.history_context(self.scope))
