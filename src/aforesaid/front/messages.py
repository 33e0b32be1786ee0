"""The API for messages and threads: store, read, search."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any, Final, cast

from aforesaid.background import gc_paused
from aforesaid.domain import checks
from aforesaid.domain.chat_message import said_in
from aforesaid.domain.checks import HitKind, Role, Within
from aforesaid.domain.details import Part, ToolCall, checked_parts
from aforesaid.domain.hit import EVERY_MESSAGE, Hit, message_filter
from aforesaid.domain.memory import BY_HAND
from aforesaid.domain.memory import TAKEN_BACK as WITHDRAWN
from aforesaid.domain.message import (
    BATCH_BYTES,
    MOST_IN_BATCH,
    Draft,
    Message,
    NewMessage,
    Position,
    brought_back,
    draft,
    draft_of_new,
    edited,
    plain_drafts,
    tombstone,
)
from aforesaid.domain.receipt import BatchReceipt, Receipt, Repeated, Stored
from aforesaid.domain.scope import Scope, Session
from aforesaid.domain.thread import Thread
from aforesaid.domain.transfer import Purged
from aforesaid.errors import InvalidInput, NotFound, TooLarge, WrongState, quoted
from aforesaid.front.handle import IN_METHOD, MOST_AT_ONCE, UserHandle, at_once, public
from aforesaid.models.tokens import count_tokens
from aforesaid.recall import DEFAULT_KINDS, Arms, SearchRequest
from aforesaid.store import Progress
from aforesaid.store.erasing import Withdraw
from aforesaid.store.memories import ChangeMemory, Memories
from aforesaid.store.messages import (
    AddMessage,
    AddMessages,
    MessageById,
    MessageCount,
    Messages,
    MessagesAfter,
    MessagesByNumber,
    Sessions,
    Threads,
    VersionsOf,
)
from aforesaid.store.operations import Change
from aforesaid.store.people import AuditAccess

MOST_AROUND = 100
"""Maximum number of neighbouring messages per hit."""
_DETAILS: Final = ("parts", "tool_calls", "tool_call_id", "metadata", "reply_to", "kind", "language")
_EDITABLE: Final = ("parts", "tool_calls", "metadata", "reply_to", "kind", "language")
_NO_DETAILS: Final = ((), (), None, None, None, None, None)
"""The values of these arguments of `add` for a message that is only a text."""


class UserMessages(UserHandle):
    """The messages of one user."""

    @public(unaudited="the log itself shows what was stored")
    async def add(
        self,
        role: Role,
        text: str = "",
        *,
        at: datetime | None = None,
        id: str | int | None = None,  # noqa: A002 - the platform's id of the message
        author: str | int | None = None,
        name: str | None = None,
        replaces: Message | str | int | None = None,
        parts: Sequence[Part | Mapping[str, Any]] = (),
        tool_calls: Sequence[ToolCall | Mapping[str, Any]] = (),
        tool_call_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        reply_to: Message | str | int | None = None,
        kind: str | None = None,
        language: str | None = None,
        content: str | Sequence[Mapping[str, Any]] | None = None,
    ) -> Receipt:
        """Store a message. When this returns, it is on disk (`receipt.durable`).

        `at` is when it was written (default: now). `id` is the platform's id. A message whose id exists in the thread,
        or with the same author, role, text and given `at`, is a duplicate and not stored again (`receipt.duplicate`).
        `author` is the author's id, if not the user's or the assistant's; `name` is the author's display name.

        `replaces` stores it as a new version of an earlier message of this thread: a message or its id. Only the newest
        version is shown and found; older ones stay in the log (`history(versions=True)`). Unless `at` is given, it
        keeps the earlier message's time. A message that has been replaced is replaced at its newest version.

        `parts` are texts, images, sounds and files (`Part`); `tool_calls` are what a model asked for (`ToolCall`), and
        `tool_call_id` makes this message the result of one. With any of these, `text` may be empty; it is what is
        searched, and by default the texts, captions and transcripts of the parts. `metadata` is any JSON object,
        `reply_to` the message that this one answers, `kind` the platform's kind of message and `language` its language.

        `content` is the text, or a list of its parts (`text`, `image_url`), as OpenAI-style programs have it:
        `add(**{"role": "user", "content": "hello"})`. Give either `text` or `content`.
        """
        if content is not None:
            text, parts = said_in(content, text, parts)
        if parts and (with_data := _with_data(parts)):
            given: dict[str, Any] = {
                "at": at,
                "id": id,
                "author": author,
                "name": name,
                "replaces": replaces,
                "tool_calls": tool_calls,
            }
            given |= {"tool_call_id": tool_call_id, "metadata": metadata, "reply_to": reply_to, "kind": kind}
            return await self._services.attachments.store_with(
                with_data, lambda stored: self.add(role, text, parts=stored, language=language, **given)
            )
        details = (parts, tool_calls, tool_call_id, metadata, reply_to, kind, language)
        new = draft(
            self.scope,
            role,
            text,
            at=at,
            id=id,
            author=author,
            name=name,
            replaces=replaces,
            limit=self._services.profile.message_bytes,
            **({} if details == _NO_DETAILS else dict(zip(_DETAILS, details, strict=True))),
        )
        silence = await self._services.effective.silence(self.scope.space)
        receipt = await self._services.store.apply([AddMessage(new, silence)])
        self._services.upkeep.nudge()
        self._services.watch.start()
        self._services.sessions.record(receipt)
        notices = self._services.upkeep.notices(self.scope)
        return replace(receipt, notices=(*receipt.notices, *notices)) if notices else receipt

    @public(unaudited="the log itself shows what was stored")
    async def edit(
        self,
        message: Message | str | int,
        text: str | None = None,
        *,
        name: str | None = None,
        parts: Sequence[Part | Mapping[str, Any]] | None = None,
        tool_calls: Sequence[ToolCall | Mapping[str, Any]] | None = None,
        metadata: Mapping[str, Any] | None = None,
        reply_to: Message | str | int | None = None,
        kind: str | None = None,
        language: str | None = None,
    ) -> Receipt:
        """Store a new version of a message: what is given here, and the rest as it was.

        Only the new version is shown and found; older ones stay in the log (`history(versions=True)`). It keeps the
        message's time, author and role. A new `text` without `parts` also replaces the parts of type text. Memories
        that rest on the old words alone are deactivated; a summary that covers them keeps its text. An edit that
        changes nothing stores nothing (`receipt.duplicate`). Raises NotFound for a message that the user does not have,
        WrongState for one that was taken back.
        """
        if parts and (with_data := _with_data(parts)):
            kept: dict[str, Any] = {"name": name, "tool_calls": tool_calls, "metadata": metadata, "reply_to": reply_to}
            return await self._services.attachments.store_with(
                with_data, lambda stored: self.edit(message, text, parts=stored, kind=kind, language=language, **kept)
            )
        before = await self._newest(message)
        if before.taken_back:
            raise WrongState(f"message {quoted(before.id)} was taken back; it cannot be edited")
        scope = Scope(before.space, before.user, before.thread)
        given = (parts, tool_calls, metadata, reply_to, kind, language)
        changes = {key: value for key, value in zip(_EDITABLE, given, strict=True) if value is not None}
        new = draft(
            scope,
            before.role,
            edited(before, text, changes),
            author=before.author,
            name=before.name if name is None else name,
            replaces=before,
            limit=self._services.profile.message_bytes,
            **changes,
        )
        if (new.text, new.name, new.details) == (before.text, before.name, before.details):
            return Receipt(durable=True, results=(Repeated(before),))
        return await self._store_version([AddMessage(new, await self._services.effective.silence(scope.space))])

    @public(audit=IN_METHOD)
    async def take_back(self, message: Message | str | int) -> Receipt:
        """Take a message back: it disappears from history, search and contexts.

        Memories that rest on it alone are deactivated. Summaries that cover it are deleted and made again without it. A
        tombstone and the earlier versions stay in the log (`history(versions=True)`); `erase` removes these too.
        Taking a message back twice changes nothing. Raises NotFound for a message that the user does not have.
        """
        newest = await self._newest(message)
        if newest.taken_back:
            return Receipt(durable=True, results=(Repeated(newest),))
        return await self._take_back([newest])

    @public(audit=IN_METHOD)
    async def bring_back(self, messages: Message | str | int | Sequence[Message | str | int]) -> int:
        """Bring back messages that were taken back, with the words that each had last; return how many these are.

        They are found and summarised again, and what they say is learned again; memories written by hand that rest on
        them are active again. Messages that were not taken back stay as they are. Raises NotFound, and changes nothing,
        if the user does not have one of them.
        """
        several = [messages] if isinstance(messages, Message | str | int) else messages
        store, silence = self._services.store, await self._services.effective.silence(self.scope.space)
        changes: list[Change] = []
        versions: set[int] = set()
        for each in several:
            known = await store.read(VersionsOf(self.scope, [(await self._newest(each)).seq]))
            before = next((message for message in reversed(known) if not message.taken_back), None)
            if known[-1].taken_back and before is not None and versions.isdisjoint(message.seq for message in known):
                changes.append(AddMessage(brought_back(known[-1], before), silence))
                versions.update(message.seq for message in known)
        count = len(changes)
        if not count:
            return 0
        for memory in await store.read(Memories(self.scope, active=None)):
            if memory.reason == WITHDRAWN and memory.extractor == BY_HAND and versions.issuperset(memory.sources):
                again = replace(memory, state="active", active=True, valid_to=None, reason="")
                changes.append(ChangeMemory(again, "reactivate", self._who))
        changes.append(AuditAccess(self.scope, self._who, "messages.bring_back", checks.counted(count, "message")))
        await self._store_version(changes)
        self._services.clear_caches()
        return count

    @public(audit=IN_METHOD, unbounded=True)
    async def erase(self, messages: Message | str | int | Sequence[Message | str | int]) -> Purged:
        """Erase messages in all their versions, so that no byte of them is left in the store, as `purge` does.

        Memories and summaries made from them are erased too; summaries are made again. This cannot be undone. Raises
        NotFound, and erases nothing, if the user does not have one of them, or it was erased before.
        """
        several = [messages] if isinstance(messages, Message | str | int) else messages
        seqs = [each.seq if isinstance(each, Message) else (await self._named(each)).seq for each in several]
        known = await self._services.store.read(MessagesByNumber(self.scope, seqs))
        if missing := len(set(seqs)) - len(known):
            raise NotFound(f"{quoted(self.scope.user)} does not have {missing} of the messages; nothing was erased")
        done = await self._services.store.erase(self.scope, seqs, self._who)
        self._services.clear_caches()
        self._services.upkeep.nudge()
        return done

    @public(audit=IN_METHOD, unbounded=True)
    async def clear(self, thread: str | int | None = None, *, erase: bool = False) -> int:
        """Take back all messages that the user has in a thread (default: the handle's); return how many these were.

        They are taken back together, all of them or none, as by `take_back`. With `erase`, no byte of them is left, nor
        of those that were taken back before; that cannot be undone. Other users' messages in the thread stay.
        """
        scope = self.scope if thread is None else Scope.of(self.scope.user, self.scope.space, thread)
        stored: list[Message] = []
        page = [*await self._services.store.read(MessagesAfter(scope, 0, MOST_AT_ONCE, here=True))]
        while page:
            stored += page
            wanted = MessagesAfter(scope, page[-1].seq, MOST_AT_ONCE, here=True)
            page = await self._services.store.read(wanted) if len(page) == MOST_AT_ONCE else []
        older = {message.replaces for message in stored}
        shown = [message for message in stored if message.seq not in older and not message.taken_back]
        if erase and stored:
            await self._services.store.erase(scope, [message.seq for message in stored], self._who)
            self._services.clear_caches()
            self._services.upkeep.nudge()
        elif shown:
            await self._take_back(shown)
        return len(shown)

    async def _take_back(self, newest: Sequence[Message]) -> Receipt:
        """Take back messages of the user, named by their newest versions."""
        silence = await self._services.effective.silence(self.scope.space)
        tombstones = [AddMessage(tombstone(message), silence) for message in newest]
        seqs = tuple(message.seq for message in newest)
        receipt = await self._store_version([*tombstones, Withdraw(self.scope, seqs, self._who)])
        self._services.clear_caches()
        return receipt

    async def _store_version(self, changes: Sequence[Change]) -> Receipt:
        receipt = await self._services.store.apply(changes)
        self._services.upkeep.nudge()
        self._services.sessions.record(receipt)
        return receipt

    async def _newest(self, message: Message | str | int) -> Message:
        """Return the newest version of one of the user's messages."""
        seq = message.seq if isinstance(message, Message) else (await self._named(message)).seq
        versions = await self._services.store.read(VersionsOf(self.scope, [seq]))
        if not versions:
            raise NotFound(f"{quoted(self.scope.user)} has no message #{seq}")
        return versions[-1]

    async def _named(self, message_id: str | int) -> Message:
        known = checks.identifier(message_id, "the message", "message")
        return await self._services.store.read(MessageById(self.scope, known))

    @public(audit=("messages.read", "history"))
    async def history(
        self,
        limit: int = 50,
        *,
        before: Message | str | int | None = None,
        archived: bool = True,
        within: Within = "user",
        versions: bool = False,
        role: Role | None = None,
        author: str | int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[Message]:
        """Return the newest `limit` messages in order of their time, oldest first.

        To page back, pass the first one as `before`: a message, its id or its sequence number. Messages with the same
        time are in the order of storing. `archived=False` leaves out messages that a summary covers.
        Of a message with several versions only the newest is returned; with `versions=True`, all of them.

        `role`, `author` (the author's id), `since` (from this time on), `until` (before this time) and `metadata` each
        limit the messages that are returned; given together, a message must fulfil all. `metadata` is a mapping: every
        key must be in the message's metadata with an equal value (a string, number, true, false or None).
        """
        place: Position | int | None = None
        if isinstance(before, Message):
            place = before.position
        elif isinstance(before, str):
            known = checks.identifier(before, "the message", "before")
            place = (await self._services.store.read(MessageById(self.scope, known, within=within))).position
        elif before is not None:
            place = checks.at_least(before, 1, "before", "before")
        where = message_filter(role=role, author=author, since=since, until=until, metadata=metadata)
        wanted = Messages(
            self.scope, within, at_once(limit), before=place, archived=archived, versions=versions, where=where
        )
        return await self._services.store.read(wanted)

    @public(audit=("memory.search", "search"), loose=("query",))
    async def search(
        self,
        query: str,
        limit: int = 10,
        *,
        within: Within = "user",
        at: datetime | None = None,
        arms: Arms = "all",
        kinds: Sequence[HitKind] = DEFAULT_KINDS,
        around: int = 0,
        similarity: float | None = None,
        min_score: float | None = None,
        without: Collection[str] = (),
        tokens: int | None = None,
        role: Role | None = None,
        author: str | int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[Hit]:
        """Search by words and meaning; return the hits, best first.

        The query is plain text without a syntax. `at` is the time of the question (default: now), to resolve "last
        May". `kinds` selects messages, summaries, memories and whole sessions. `around` is the number of neighbouring
        messages returned with each hit, a third before it and two thirds after. `without` excludes messages by id, and
        `tokens` limits the total length of the texts. `hit.explain()` shows why something was found.

        What has all words of the query, in any inflection, is a hit. The rest needs a score of 0.25 where words are
        searched for, and of 0.04 where a question is asked. `min_score`, 0 to 1, is another minimum, for every hit; 0
        returns everything that was ranked. `similarity` is the lowest similarity of meaning, 0 to 1, calibrated for the
        encoder; with it, or with `arms` (`keyword` or `dense` alone), there is no default minimum.

        `role`, `author`, `since`, `until` and `metadata` limit the messages that are searched, as in `history`.
        Summaries and memories have no author, so with any of these only messages and sessions are searched.
        """
        where = message_filter(role=role, author=author, since=since, until=until, metadata=metadata)
        if where != EVERY_MESSAGE and not {"message", "session"}.intersection(kinds):
            raise InvalidInput(
                "role, author, since, until and metadata limit messages; add `message` to the kinds", "kinds"
            )
        least = None if arms == "all" and similarity is None else 0.0
        request = SearchRequest(
            query=checks.query_text(query),
            limit=at_once(limit),
            within=within,
            at=at,
            arms=arms,
            kinds=tuple(kinds),
            around=min(checks.at_least(around, 0, "around", "around"), MOST_AROUND),
            similarity=similarity,
            # Searches by words or meaning alone, or with a `similarity`, have no default.
            min_score=least if min_score is None else checks.number(min_score, "min_score"),
            without=frozenset(without),
            where=where,
        )
        async with self._services.recall_queue.turn():
            hits = await self._services.recall.search(self.scope, request)
        if tokens is None:
            return hits
        kept, room = [], checks.at_least(tokens, 1, "tokens", "tokens")
        for hit in hits:
            # One that is too long does not exclude shorter ones.
            if (size := count_tokens(hit.text)) <= room:
                room -= size
                kept.append(hit)
        return kept

    @public(audit=("messages.read", "message"))
    async def message(self, id: str | int, *, within: Within = "user", versions: bool = False) -> Message:  # noqa: A002
        """Return the newest version of a message, by the id of any version.

        Raises NotFound if there is none, or it was taken back. With `versions=True`, the version with this id is
        returned as it was stored, also if it was replaced or taken back since.
        """
        named = checks.identifier(id, "the message", "id")
        found = await self._services.store.read(MessageById(self.scope, named, within=within))
        if versions or not found.replaced:
            return found
        owner = Scope(found.space, found.user, found.thread)
        every = await self._services.store.read(VersionsOf(owner, [found.seq]))
        if not every or every[-1].taken_back:
            raise NotFound(f"message {quoted(named)} was taken back")
        return every[-1]

    @public(audit=("sessions.read", "sessions"))
    async def sessions(self, limit: int = 50, *, within: Within = "user") -> list[Session]:
        """Return the newest sessions, oldest first."""
        return await self._services.store.read(Sessions(self.scope, within=within, limit=at_once(limit)))


def _with_data(parts: Sequence[Part | Mapping[str, Any]]) -> list[Part]:
    """Return the parts if one of them has bytes that must be stored; otherwise none."""
    found = checked_parts(parts)
    return found if any(part.data is not None for part in found) else []


_SLICE: Final = 1_000
"""Messages checked before other tasks of the event loop get a turn."""
_BULK: Final = 200
"""Batches of at least this many messages are imports and yield to searches."""


class UserConversations(UserHandle):
    """Batches of messages, and the threads of one user."""

    @public(unaudited="the log itself shows what was stored", unbounded=True, loose=("messages",))
    async def add_many(
        self, messages: Iterable[NewMessage | Mapping[str, Any]], *, progress: Progress | None = None
    ) -> BatchReceipt:
        """Store many messages at once: all of them, or none. When this returns, they are on disk and can be found.

        Each is a `NewMessage`, or a mapping with the arguments of `add`, such as `{"role": "user", "text": "hello"}`;
        `content` may stand for `text`, as in the messages of OpenAI-style programs.
        They are stored in their order, in the handle's thread, with one commit. In SQLite, a batch of 200 messages or
        more is indexed after that, in the background; a search of the user waits for it, some seconds after 100,000.
        A message that is not valid refuses the whole batch; the error has its index. Duplicates are recognised as by
        `add`, among the batch too.

        A batch has at most 100,000 messages and 256 MB of text, because all of it is in memory until it is stored;
        pass more in several batches. `progress` is called with `prepared` or `stored`, the number of messages so far,
        and the number of all; it may be called from another thread, and nothing is stored if it raises. Cancelling
        this call before the messages are handed to the store stores nothing; afterwards all of them are stored.
        """
        # An iterator of the caller may wait for something.
        with gc_paused() if isinstance(messages, list | tuple) else nullcontext():
            drafts = await self._drafts(messages)
        if not drafts:
            return BatchReceipt(durable=True, results=())
        silence = await self._services.effective.silence(self.scope.space)
        if len(drafts) >= _BULK:
            await self._services.recall_queue.give_way()
        receipt = await self._services.store.apply(AddMessages(drafts, silence), progress)
        self._services.upkeep.nudge()
        self._services.watch.start()
        self._services.sessions.record(receipt)
        notices = (*receipt.notices, *self._services.upkeep.notices(self.scope))
        return BatchReceipt(receipt.durable, cast("tuple[Stored | Repeated, ...]", receipt.results), notices)

    @public(audit=("messages.read", "threads"))
    async def threads(self, limit: int = 50, *, before: Thread | str | int | None = None) -> list[Thread]:
        """Return the threads that the user has messages in, the one with the newest message first.

        To page on, pass the last one as `before`: a thread or its id. A thread may have been cleared or continued
        since; an id raises NotFound if the user has no messages in that thread any more.
        """
        after = (
            before
            if before is None or isinstance(before, Thread)
            else self._services.ids.spelled(checks.identifier(before, "the thread id", "before"))
        )
        return await self._services.store.read(Threads(self.scope, limit=at_once(limit), before=after))

    @public(unaudited="counts alone")
    async def count(
        self,
        *,
        role: Role | None = None,
        author: str | int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        within: Within = "user",
        archived: bool = True,
    ) -> int:
        """Return the number of messages. The arguments are those of `history`."""
        where = message_filter(role=role, author=author, since=since, until=until, metadata=metadata)
        return await self._services.store.read(MessageCount(self.scope, within=within, archived=archived, where=where))

    async def _drafts(self, messages: Iterable[object]) -> list[Draft]:
        """Check the messages of a batch. Raises InvalidInput with the index of the first one that is not valid."""
        limit = self._services.profile.message_bytes
        drafts: list[Draft] = []
        characters = last_at = 0
        waiting = iter(messages)
        while some := [*islice(waiting, min(_SLICE, MOST_IN_BATCH + 1 - len(drafts)))]:
            if len(drafts) + len(some) > MOST_IN_BATCH:
                raise TooLarge(
                    f"a batch has at most {MOST_IN_BATCH:,} messages; pass more in several batches", "messages"
                )
            stored_at = max(checks.now(), last_at + 1)
            made = plain_drafts(self.scope, some, limit, stored_at) or self._one_by_one(some, len(drafts), stored_at)
            last_at = made[-1].stored_at
            characters += sum(len(draft.text) for draft in made)
            if characters > BATCH_BYTES:
                raise TooLarge(
                    f"the texts of a batch have at most {BATCH_BYTES:,} characters; pass more in several batches",
                    "messages",
                )
            drafts += made
            await asyncio.sleep(0)
        return drafts

    def _one_by_one(self, messages: Iterable[object], first: int, stored_at: int) -> list[Draft]:
        """Check messages of a batch, whose indexes begin with `first`."""
        limit, ids = self._services.profile.message_bytes, self._services.ids
        drafts = []
        for place, new in enumerate(messages):
            try:
                draft = draft_of_new(self.scope, new, ids, limit)
            except InvalidInput as error:
                index = first + place
                error.args = (f"message {index} of the batch, counted from 0: {error}",)
                error.field = f"messages.{index}" if error.field is None else f"messages.{index}.{error.field}"
                raise
            # As in `plain_drafts`: no two messages have the same moment.
            now = stored_at + place
            drafts.append(draft._replace(at=draft.at if draft.at_given else now, stored_at=now))
        return drafts
