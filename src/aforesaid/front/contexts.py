"""The API for contexts, their receipts, and a user's settings."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from time import perf_counter
from typing import TYPE_CHECKING, Final

from aforesaid.domain import checks
from aforesaid.domain.checks import SettingValue, Within, now
from aforesaid.domain.context_receipt import ContextReceipt, SentKind, SentSource, new_receipt_id
from aforesaid.domain.message import Message
from aforesaid.domain.report import MemoryStatus
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.domain.setting import EVERY, cleared_up_to, wants_memory
from aforesaid.domain.summary import Summary
from aforesaid.errors import InvalidInput, NotFound, quoted
from aforesaid.front.handle import IN_METHOD, UserHandle, at_once, public
from aforesaid.profiles import load_profile
from aforesaid.profiles.effective import BUDGET, tuned, zone_from
from aforesaid.profiles.recipe import LEAST_BUDGET, MOST_TOKENS, POLICIES
from aforesaid.store.memories import MemoriesByNumber
from aforesaid.store.messages import MessagesAfter, MessagesByNumber, UserLedger, VersionsOf
from aforesaid.store.people import Receipts, Settings
from aforesaid.store.summaries import Summaries

if TYPE_CHECKING:
    from aforesaid.context import AccountContext, Context


_ON_REQUEST: Final = ("tree",)
"""The kinds of summaries that people ask for where none is made automatically."""
_MOST_COUNTED: Final = 1_000
"""Messages since a rolling summary are counted up to here."""
_LONGEST: Final = 64 * 1024 * 1024
"""Longest question of a context, in bytes."""


class UserContexts(UserHandle):
    """The contexts and the settings of one user."""

    @public(audit=IN_METHOD)
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
        most: int | None = None,
        without: Sequence[str] = (),
        tools: bool = True,
        parts: bool = False,
        sent: bool | None = None,
    ) -> Context:
        """Return what to send to a model that is to answer `text`: never more than `budget` tokens. No model is asked.

        `context.messages` is for any OpenAI-style API, `context.text` the same as one text, `context.explain()` says
        what is in it, what is not, and why. `system` is your system prompt, `persona` the character of a bot, and
        `model` says how tokens are counted. `answers` is the stored message that `text` is, where others may have been
        stored after it. The profile decides what a context holds; `without` names sections of it to leave out, such as
        those that your own prompt is for. Without a `budget` it is the one that is set, but no more than `most`.

        A tool call among the recent messages is sent as such, with its results, if all of them are there; with
        `tools=False` it is described in words. With `parts`, images and files of recent messages are content parts;
        otherwise words such as `[image: a cat]` stand for them.

        With `sent`, a receipt is stored: which messages and memories the model was told (`receipt`, `receipts`).
        Without it, the setting `receipts.contexts` decides. The method `sent` stores the reply and tokens with it.
        """
        from aforesaid.context import ContextRequest, Origin  # noqa: PLC0415 - loaded when it is needed
        from aforesaid.models.tokens import counter_for  # noqa: PLC0415

        began = perf_counter()
        asked, key = checks.message_text(text, _LONGEST), (self.scope.space, self.scope.user, *without)
        # Which reads are needed depends on settings, which hardly ever change.
        expected = self._services.recipes.get(key) or self._services.profile.context.without(without)
        async with self._services.recall_queue.turn() if expected.searches else nullcontext():
            prefetched = self._services.builder.prefetch(self.scope, checks.query_text(asked), at, expected)
            try:
                settings = await self._services.effective.of(self.scope)
                profile = tuned(self._services.profile, settings)
                recipe = self._services.recipes[key] = profile.context.without(without)
                usual = settings.get(BUDGET) or recipe.budget
                if most is not None:
                    usual = min(usual, checks.at_least(most, LEAST_BUDGET, "the most tokens"))
                tokens = checks.at_least(usual if budget is None else budget, LEAST_BUDGET, "the budget", "budget")
                request = ContextRequest(
                    text=asked,
                    budget=checks.at_most(tokens, MOST_TOKENS, "the budget", "budget"),
                    system=system,
                    persona=persona if persona is not None else profile.persona or None,
                    at=at,
                    zone=zone_from(settings, self._services.profile, self.scope.space),
                    after=cleared_up_to(settings),
                    answers=None if answers is None else answers.seq,
                    tools=tools,
                    parts=parts,
                )
                building = self._services.builder.build(self.scope, request, recipe, counter_for(model), prefetched)
                if self._actor is None:
                    made = await building
                else:
                    # At the same time; nobody sees the context before the audit log has who asked for it.
                    made, _ = await asyncio.gather(building, self._record_view("context.read", "context"))
            finally:
                prefetched.close()
        created, milliseconds = now(), round((perf_counter() - began) * 1_000)
        names = self.scope.thread, self._services.profile_name, model
        origin = Origin(new_receipt_id(created), *names, checks.moment(created), milliseconds)
        made = replace(made, origin=origin)
        keeper = self._services.receipts
        if keeper.every_context if sent is None else sent:
            keeper.keep_later(keeper.receipt_of(self.scope, self._who, made))
        return made

    @public(audit=("context.read", "context"))
    async def account_context(self, text: str, *, at: datetime | None = None) -> AccountContext:
        """Return the three parts of an account's context: `recent`, `history_summary` and `relevant_mid_term`.

        They are chosen as in the profile `account`, whatever the memory was opened with: the last ten messages, what is
        known of the history, and those of the 200 messages before that are near enough in meaning.
        """
        from aforesaid.context import ContextRequest  # noqa: PLC0415 - loaded when it is needed

        settings = await self._services.effective.of(self.scope)
        recipe = tuned(load_profile("account"), settings).context
        asked = checks.message_text(text, _LONGEST)
        request = ContextRequest(asked, recipe.budget, at=at, after=cleared_up_to(settings))
        return await self._services.builder.account(self.scope, request, recipe)

    @public(audit=("settings.read", "settings"))
    async def settings(self) -> dict[str, SettingValue]:
        """Return the user's settings. What was set for the whole space is in `memory.settings()`."""
        return {setting.key: setting.value for setting in await self._services.store.read(Settings(self.scope))}

    @public(audit=IN_METHOD)
    async def set(self, key: str, value: SettingValue) -> None:
        """Change a setting of the user; None takes it back to the default. Settings act at once.

        The names that Aforesaid looks at are checked; other names are yours. `memory.set` does the same for a space.
        """
        await self._services.effective.set(self.scope, key, value, self._who)

    @public(audit=IN_METHOD)
    async def clear_window(self) -> None:
        """Remove the messages up to now from the recent window of contexts. They are kept, and can still be found."""
        ledger = await self._services.store.read(UserLedger(self.scope))
        await self._services.effective.mark_cleared(self.scope, ledger.last_seq, self._who)

    @public(unaudited="counts alone")
    async def status(self, *, within: Within = "user") -> MemoryStatus:
        """Return the state of the user's memory, by the policy that makes its summaries.

        With `within="thread"`, counts are of this handle's chat alone.
        """
        store, profile, here = self._services.store, self._services.profile, within != "user"
        settings = await self._services.effective.of(self.scope)
        ledger = await store.read(UserLedger(self.scope, here=here))
        found = await store.read(Summaries(self.scope, here=here))
        active = [each for each in found if each.kind in (POLICIES[profile.summaries].kinds or _ON_REQUEST)]
        threshold, since_last = await self._progress(settings, ledger.open_turns, ledger.messages, active)
        return MemoryStatus(
            enabled=wants_memory(settings),
            storage=dict((await store.health()).facts).get("backend", "unknown"),
            threshold=threshold,
            since_last=since_last,
            messages=ledger.messages,
            archived=ledger.archived,
            active_summaries=len(active),
            highest_level=ledger.highest_level,
            policy=profile.summaries,
        )

    async def _progress(
        self, settings: Mapping[str, SettingValue], turns: int, messages: int, active: Sequence[Summary]
    ) -> tuple[int, int]:
        """Return after how many messages a summary is made, and how many there are since the last one."""
        profile = self._services.profile
        if profile.summaries == "tree":
            every = settings.get(EVERY)
            return (every if isinstance(every, int) else profile.tree_turns), turns
        if profile.summaries == "rolling":
            here = await self._services.store.read(Summaries(self.scope, kind="rolling", here=True))
            rest = await self._services.store.read(
                MessagesAfter(self.scope, here[0].last if here else 0, _MOST_COUNTED, here=True)
            )
            if not here:
                return profile.rolling_messages, len(rest)
            # The newest messages are kept as they are: no summary is made of them.
            return profile.rolling_step, max(len(rest) - profile.rolling_keep, 0)
        if profile.summaries == "tiers":
            return profile.short_term, messages - max((each.covered for each in active), default=0)
        return 0, 0


if TYPE_CHECKING:
    from aforesaid.context import Context
else:
    Context = object  # checked in the method, which loads it


class UserReceipts(UserHandle):
    """The receipts of one user's contexts."""

    @public(unaudited="the receipt itself names the caller")
    async def sent(
        self,
        context: Context,
        *,
        reply: Message | None = None,
        model: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
    ) -> ContextReceipt:
        """Record that a context was sent to a model, and return its receipt: which messages and memories it showed.

        `reply` is the stored message that it led to. The tokens are those that the provider counted. A second call for
        the same context replaces its receipt. With the setting `receipts.days = 0` nothing is stored.
        """
        from aforesaid.context import Context as Made  # noqa: PLC0415 - loaded when it is needed

        if not isinstance(context, Made):
            raise InvalidInput(f"context must be what `context` returned, not {type(context).__name__[:80]}", "context")
        keeper = self._services.receipts
        receipt = keeper.receipt_of(self.scope, self._who, context)
        if reply is not None and (reply.space, reply.user) != self.scope[:2]:
            raise NotFound(f"the reply {quoted(reply.id)} is not a message of {quoted(self.scope.user)}")
        receipt = replace(
            receipt,
            reply=None if reply is None else reply.seq,
            model=receipt.model if model is None else checks.storable(model, "the model", "model"),
            input_tokens=_tokens(input_tokens, "input_tokens"),
            output_tokens=_tokens(output_tokens, "output_tokens"),
        )
        await keeper.keep(receipt)
        return receipt

    @public(audit=("receipts.read", "receipts"))
    async def receipts(
        self,
        limit: int = 50,
        *,
        since: datetime | None = None,
        before: str | None = None,
        replies: Sequence[Message] | None = None,
    ) -> list[ContextReceipt]:
        """Return receipts of contexts that were sent to models, newest first.

        With `before`, only those that are older than the receipt of this id; with `replies`, those that led to these
        messages.
        """
        question = Receipts(
            self.scope,
            at_once(limit),
            since=None if since is None else checks.microseconds(since, "since"),
            before=before,
            replies=None if replies is None else [message.seq for message in replies],
        )
        await self._services.receipts.settled()
        return await self._services.store.read(question)

    @public(audit=("receipts.read", "receipt {receipt}"))
    async def receipt(self, receipt: str) -> ContextReceipt:
        """Return one receipt. Raises NotFound for an id that the user does not have."""
        await self._services.receipts.settled()
        found = await self._services.store.read(Receipts(self.scope, 1, ids=[receipt]))
        if not found:
            raise NotFound(
                f"{quoted(self.scope.user)} has no receipt {quoted(receipt)}; it may have been deleted by age"
            )
        return found[0]

    @public(audit=IN_METHOD)
    async def receipt_sources(self, receipt: ContextReceipt) -> dict[tuple[SentKind, int], SentSource]:
        """Return the messages, memories and summaries that a receipt names, as they are now, by kind and id.

        What was erased or taken back since is missing. An audit row says that they were read.
        """
        store, scope = self._services.store, self.scope
        found: dict[tuple[SentKind, int], SentSource] = {}
        for message in await self._messages(receipt):
            found["message", message.seq] = message
        for memory in await store.read(MemoriesByNumber(scope, receipt.ids("memory"))):
            found["memory", memory.id] = memory
        if numbers := set(receipt.ids("summary")):
            for summary in await store.read(Summaries(scope, active=None)):
                if summary.id in numbers:
                    found["summary", summary.id] = summary
        await self._record_view("receipts.read", f"sources of receipt {receipt.id}")
        return found

    async def _messages(self, receipt: ContextReceipt) -> list[Message]:
        """Return the messages that a receipt names: the user's own, and those of others in the same shared thread."""
        store, scope = self._services.store, self.scope._replace(thread=receipt.thread)
        wanted = receipt.ids("message")
        if not wanted:
            return []
        found = await store.read(MessagesByNumber(scope, wanted))
        missing = set(wanted) - {message.seq for message in found}
        if missing and not is_direct(receipt.thread):
            found += await store.read(MessagesByNumber(scope, sorted(missing), within="thread"))
        replaced: dict[str, list[int]] = defaultdict(list)
        for message in found:
            if message.replaced:
                replaced[message.user].append(message.seq)
        gone: set[int] = set()
        for user, seqs in replaced.items():
            versions = await store.read(VersionsOf(Scope.of(user, scope.space), seqs))
            later = {version.replaces: version for version in versions}
            for seq in seqs:
                newest = later.get(seq)
                while newest is not None and newest.seq in later:
                    newest = later[newest.seq]
                if newest is not None and newest.taken_back:
                    gone.add(seq)
        return [message for message in found if message.seq not in gone]


def _tokens(value: int | None, name: str) -> int | None:
    return None if value is None else checks.at_least(value, 0, f"the {name.replace('_', ' ')}", name)
