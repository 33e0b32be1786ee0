# Made from memory.py by `make stubs`; a test fails when it is out of date.

import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, tzinfo
from typing import Any, Self

from aforesaid.background import BackgroundLoops
from aforesaid.context import AccountContext, Context
from aforesaid.digest import HistoryContext, Tiers
from aforesaid.domain.chat_message import ChatMessage
from aforesaid.domain.checks import (
    Category,
    CategoryOrKind,
    ExportFormat,
    HitKind,
    Kind,
    MemoryState,
    Role,
    SettingValue,
    Within,
)
from aforesaid.domain.context_receipt import ContextReceipt, SentKind, SentSource
from aforesaid.domain.details import KnownIds, Part, ToolCall
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import Facts, MemoryRecord, MemoryVersion
from aforesaid.domain.message import Message, NewMessage
from aforesaid.domain.receipt import BatchReceipt, Receipt
from aforesaid.domain.report import (
    Activity,
    AuditEntry,
    Cleanup,
    Component,
    Health,
    MemoryStatus,
    Stats,
    User,
    Verification,
)
from aforesaid.domain.scope import Scope, Session
from aforesaid.domain.summary import Summary, SummaryKind
from aforesaid.domain.thread import Thread
from aforesaid.domain.transfer import Purged
from aforesaid.facts import ForgetResult, Preferences, RememberResult
from aforesaid.facts.describing import KnownPerson
from aforesaid.front.handle import ReceiptKeeper
from aforesaid.models.chat import Chat
from aforesaid.models.reader import Intents
from aforesaid.portability.exporting import Exported
from aforesaid.portability.importing import Loaded
from aforesaid.portability.merging import Merged
from aforesaid.profiles import Profile
from aforesaid.recall import Arms, RecallQueue
from aforesaid.store import Progress, Store
from aforesaid.store.contract import Announcements
from aforesaid.telemetry import Metrics
from aforesaid.upkeep import UpkeepReport

class SyncMemory:
    """The memory of all users."""

    @property
    def location(self) -> str | None:
        """The location of the store; None for a store that was given as an object."""

    def user(
        self,
        user: str | int,
        *,
        space: str | int = ...,
        thread: str | int | None = None,
        chat: str | int | None = None,
        session: str | int | None = None,
        actor: str | None = None,
    ) -> SyncUserMemory:
        """Return the memory of one user.

        Without a thread or a chat, messages go to the user's direct chat. A `thread` is a channel that users share:
        `within="thread"` also includes other users' messages in it. A `chat` is one of the user's private chats, as in
        `user(…).chat(…)`. `session` is the session of messages added through this handle. With an `actor`, the audit
        log records who changed and who viewed the user's memory.
        """

    def ingest_message(
        self,
        space: str | int,
        user: str | int,
        text: str,
        *,
        thread: str | int | None = None,
        chat: str | int | None = None,
        role: Role = "user",
        at: datetime | None = None,
        id: str | int | None = None,
        name: str | None = None,
    ) -> Receipt:
        """Store a message. The same as `user(…).add(…)`."""

    def get_memories(self, space: str | int, user: str | int, *, actor: str | None = None) -> str | None:
        """Return what is known about a user as one text, or None. The same as `user(…).portrait()`."""

    @property
    def store(self) -> Store:
        """The underlying store. Changes made there bypass all checks but its own."""

    @property
    def changes(self) -> Announcements:
        """Announces every change of the store to listeners of this process."""

    @property
    def models(self) -> Chat | None:
        """The configured models, or None."""

    @property
    def intents(self) -> Callable[[Sequence[str]], Awaitable[list[Intents]]]:
        """Read what texts want, such as to tell, to ask or to be reminded."""

    @property
    def learn(self) -> Callable[[Scope], Awaitable[bool]]:
        """Extract memories from the pending messages of a user now, as a bot does that says what it noted."""

    @property
    def recall_queue(self) -> RecallQueue:
        """Limits how many searches and contexts run at a time."""

    @property
    def receipt_keeper(self) -> ReceiptKeeper:
        """Stores receipts of contexts in the background."""

    def settings(self, space: str | int = ..., *, actor: str | None = None) -> dict[str, SettingValue]:
        """Return the settings of a space. With an `actor`, the audit log names who looked."""

    def set(self, key: str, value: SettingValue, *, space: str | int = ..., actor: str | None = None) -> None:
        """Change a setting of a space; None removes it. It takes effect immediately, in other processes in a second.

        A user's own setting (`user(…).set`) overrides it. The audit log records the `actor`.
        """

    def close(self) -> None:
        """Finish pending writes and close the store. A second call does nothing."""

    def __enter__(self) -> Self:
        """Return the memory."""

    def __exit__(self, *error: object) -> None:
        """Close the memory."""

    def reminders(self, *, at: datetime | None = None) -> list[MemoryRecord]:
        """Return the due reminders of all users, oldest first. `user(…).claim(…)` claims one."""

    def memories(
        self,
        category: Category | None = None,
        *,
        space: str | int = ...,
        user: str | int | None = None,
        active: bool | None = True,
        state: MemoryState | None = None,
        kind: Kind | None = None,
        containing: str | None = None,
        before: int | None = None,
        limit: int = 50,
        actor: str | None = None,
    ) -> list[MemoryRecord]:
        """Return the newest memories of a space, of all users or one, newest first.

        To read on, pass the id of the last one as `before`. `containing` keeps those whose text has these words,
        whatever their case. With an `actor`, the audit log names who looked.
        """

    def memory(self, memory: int, *, space: str | int = ..., actor: str | None = None) -> MemoryRecord:
        """Return one memory of a space by its id, of any user. Raises NotFound, also for an id of another space.

        With an `actor`, the audit log names who looked.
        """

    def record_access(self, action: str, subject: str, *, actor: str | None, space: str | int | None = None) -> None:
        """Add a row to the audit log of a space, or of every space: who did what. Nothing without an `actor`."""

    @property
    def known_ids(self) -> KnownIds:
        """The spelling of ids."""

    def users(self, space: str | int | None = None, *, actor: str | None = None) -> list[User]:
        """Return all users, with counts and their last display name.

        With an `actor`, the audit log names who looked.
        """

    def names(self, space: str | int = ..., *, users: Iterable[str | int] | None = None) -> dict[str, str]:
        """Return the display names of a space by user id: of all authors who have one, or only of `users`.

        It is the name that each of them used last. Authors without a memory are included, and the assistant.
        """

    def stats(self) -> Stats:
        """Return the totals of the store."""

    def activity(self, days: int = 30, *, space: str | int = ..., user: str | int | None = None) -> list[Activity]:
        """Return the number of messages in a space on each of the last days (UTC), oldest first, of all users or one.

        A message counts for its owner.
        """

    def audit(self, limit: int = 100, *, space: str | int = ..., actor: str | None = None) -> list[AuditEntry]:
        """Return the newest rows about a space as a whole, oldest first: settings, exports, keys, sign-ins.

        A user's audit log is in `memory.user(…).audit()`. With an `actor`, looking leaves a row too.
        """

    def health(self) -> Health:
        """Return the status of each component, alerts, storage growth, and recent latencies."""

    @property
    def profile(self) -> Profile:
        """The profile that the memory was opened with. Stored settings override it."""

    @property
    def loops(self) -> BackgroundLoops:
        """The background loops of this memory. A loop that is added to them ends when the memory closes."""

    @property
    def components(self) -> dict[str, Callable[[], Component]]:
        """Further components of health, by name, such as the `upstream` of a server's proxy."""

    @property
    def metrics(self) -> Metrics:
        """Metrics of this process by operation: calls, failures, cache hits, latencies."""

    def upkeep(self, progress: Progress | None = None) -> UpkeepReport:
        """Do all pending background work now: embed, extract memories, summarise. Return a report."""

    def cleanup(self, progress: Progress | None = None, *, dry_run: bool = False) -> Cleanup:
        """Apply the retention rules now, instead of once a day.

        With `dry_run`, nothing is changed: the report says what would be archived or deleted.
        """

    def verify(self, progress: Progress | None = None) -> Verification:
        """Verify everything that is stored. Reads all of it; `progress` is called from another thread."""

    def attachment(self, hash: str) -> bytes:
        """Return the bytes of a part of a message by its hash (`part.hash`). Raises NotFound."""

    def backup(
        self, path: str | os.PathLike[str], progress: Progress | None = None, *, actor: str | None = None
    ) -> None:
        """Back up the store, also in use, to a new file and verify the copy. The audit log names the `actor`."""

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        user: str | int | None = None,
        space: str | int = ...,
        format: ExportFormat = "auto",
        vectors: bool = False,
        attachments: bool = True,
        progress: Progress | None = None,
        actor: str | None = None,
    ) -> Exported:
        """Export everything to a new JSON Lines file. The store can be in use; the export is a snapshot.

        With `user`, only the data of one user of `space` is exported: what the user owns, and the audit rows about it.
        For one user, the `format` can also be `markdown`: a copy to read, which `load` does not read. By default the
        name decides: `.md` is Markdown. A name that ends in `.gz` compresses the file, `-` is standard output.
        `vectors` includes the embedding vectors; otherwise they are computed again after an import. The bytes of
        attachments are copied to a folder beside the file, which has its name with `.attachments`; in Markdown under
        their own names. They are not copied to standard output, and not with `attachments=False`. The result names
        those that are missing. The audit log of every exported space names the `actor`. Raises NotFound for a user
        about whom nothing is stored.
        """

    def load(
        self,
        path: str | os.PathLike[str],
        format: str = "auto",
        *,
        user: str | int | None = None,
        space: str | int = ...,
        zone: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
        actor: str | None = None,
    ) -> Loaded:
        """Import a file: an Aforesaid export, or another application's.

        Entries that are stored already are skipped, so an interrupted import can be repeated. Damaged entries are
        listed in the result (`problems`, `examples`) and the rest is stored. `user` stores everything as one user's
        memory; default: each author's in chats among people, and the user `me` in chats with an assistant. `space` is
        the target space (an export has its own). `zone` is the time zone for timestamps without one, such as
        `Europe/Berlin` (default: this machine's). With `dry_run`, nothing is stored. The attachments of an export come
        back from the folder beside it; the result names those that are missing. The audit log of the space names the
        `actor`; for an export of Aforesaid, that of every space.
        """

    def purge(self, user: str | int, *, space: str | int = ..., actor: str = "aforesaid") -> Purged:
        """Delete a user permanently from every byte of the store: messages, summaries, memories, facts, settings.

        Other users' summaries and memories made from the user's messages are deleted too, and made again without them.
        One audit row stays, with counts only. This cannot be undone.
        """

    def merge(self, user: str | int, into: str | int, *, space: str | int = ..., actor: str = "aforesaid") -> Merged:
        """Merge two users who are one person: what is stored of `user` becomes the memory of `into`.

        Messages, memories with their versions, stated facts, receipts and the settings that `into` lacks move; the
        user is then purged, and summaries are made again. This cannot be undone: export the user first. An app that
        goes on writing under the id begins a new memory. Raises NotFound if nothing is stored of one of them.
        """

class SyncUserMemory:
    """The memory of one user."""

    scope: Scope

    def chat(self, chat: str | int) -> SyncUserMemory:
        """Return the memory of the same user in one of several private chats, such as a session of an app.

        Like the direct chat, a chat belongs to the user alone: its contexts go on with its own messages, and recall
        what was said in the user's other chats. A thread that `Memory.user` names is a channel: its contexts include
        nothing that was said in private.
        """

    def add(
        self,
        role: Role,
        text: str = "",
        *,
        at: datetime | None = None,
        id: str | int | None = None,
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

    def edit(
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

    def take_back(self, message: Message | str | int) -> Receipt:
        """Take a message back: it disappears from history, search and contexts.

        Memories that rest on it alone are deactivated. Summaries that cover it are deleted and made again without it. A
        tombstone and the earlier versions stay in the log (`history(versions=True)`); `erase` removes these too.
        Taking a message back twice changes nothing. Raises NotFound for a message that the user does not have.
        """

    def bring_back(self, messages: Message | str | int | Sequence[Message | str | int]) -> int:
        """Bring back messages that were taken back, with the words that each had last; return how many these are.

        They are found and summarised again, and what they say is learned again; memories written by hand that rest on
        them are active again. Messages that were not taken back stay as they are. Raises NotFound, and changes nothing,
        if the user does not have one of them.
        """

    def erase(self, messages: Message | str | int | Sequence[Message | str | int]) -> Purged:
        """Erase messages in all their versions, so that no byte of them is left in the store, as `purge` does.

        Memories and summaries made from them are erased too; summaries are made again. This cannot be undone. Raises
        NotFound, and erases nothing, if the user does not have one of them, or it was erased before.
        """

    def clear(self, thread: str | int | None = None, *, erase: bool = False) -> int:
        """Take back all messages that the user has in a thread (default: the handle's); return how many these were.

        They are taken back together, all of them or none, as by `take_back`. With `erase`, no byte of them is left, nor
        of those that were taken back before; that cannot be undone. Other users' messages in the thread stay.
        """

    def history(
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

    def search(
        self,
        query: str,
        limit: int = 10,
        *,
        within: Within = "user",
        at: datetime | None = None,
        arms: Arms = "all",
        kinds: Sequence[HitKind] = ...,
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

    def message(self, id: str | int, *, within: Within = "user", versions: bool = False) -> Message:
        """Return the newest version of a message, by the id of any version.

        Raises NotFound if there is none, or it was taken back. With `versions=True`, the version with this id is
        returned as it was stored, also if it was replaced or taken back since.
        """

    def sessions(self, limit: int = 50, *, within: Within = "user") -> list[Session]:
        """Return the newest sessions, oldest first."""

    @property
    def actor(self) -> str:
        """Who acts through this handle; `aforesaid` if nobody was named."""

    def record_access(self, action: str, subject: str) -> None:
        """Add a row to the audit log: who viewed what. Does nothing if the handle has no actor."""

    @property
    def known_ids(self) -> KnownIds:
        """The spelling of ids."""

    def add_many(
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

    def threads(self, limit: int = 50, *, before: Thread | str | int | None = None) -> list[Thread]:
        """Return the threads that the user has messages in, the one with the newest message first.

        To page on, pass the last one as `before`: a thread or its id. A thread may have been cleared or continued
        since; an id raises NotFound if the user has no messages in that thread any more.
        """

    def count(
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

    def remember(
        self, fact: str, *, by: str | int | None = None, name: str | None = None, about: str | None = None
    ) -> RememberResult:
        """Store a fact: "prefers tea", "I moved to Berlin". A newer fact replaces one that it contradicts.

        `by` is who says so, if not the user; what others say that is sensitive waits for approval, and so does what
        reads like an instruction to a model. `name` is what the user is called. `outcome` says what became of it.
        With `about`, the fact is about somebody else whom the memory does not know, by their name ("Tom"): it becomes a
        memory with `about` set to that name, and no part of the user's facts and portrait.
        """

    def forget(self, fact: str, *, name: str | None = None) -> ForgetResult:
        """Forget a fact, in the facts text and in the memories. The result is true if it was known.

        It is not learned again from what had been said until now; saying it again later counts.
        """

    def portrait(self, *, name: str | None = None) -> str | None:
        """Return what is known about the user as one text: facts, today, the days before. None if nothing is known.

        A model that is configured merges them, once for each state of the three. Without one, or when it fails, there
        are the facts, else today, else the days before.
        """

    def facts(self) -> list[Facts]:
        """Return all versions of the facts text, oldest first, each with the request that caused it."""

    def preferences(self) -> Preferences:
        """Return the user's preferences, counted in their messages: topics, hours, languages, lengths, tone."""

    def memories(
        self,
        category: Category | None = None,
        *,
        active: bool | None = True,
        state: MemoryState | None = None,
        at: datetime | None = None,
        kind: Kind | None = None,
        about: str | None = None,
    ) -> list[MemoryRecord]:
        """Return memories, most important first.

        With `active=None` those in every state; with `state`, those that are `quarantined`, `superseded`, … With `at`,
        what was believed at that moment. `kind` is finer than the category; `about` names a person by id or name.
        """

    def note(
        self,
        category: CategoryOrKind,
        text: str,
        *,
        importance: int = ...,
        tags: Sequence[str] = (),
        priority: int = ...,
        when: datetime | str | None = None,
        expires: datetime | None = None,
        source: Message | None = None,
        about: str | None = None,
    ) -> MemoryRecord:
        """Store a memory of a category, or of a kind that no category names: event, relationship or instruction.

        `when` is when it happens or when to remind; default: the time in the text. It is a moment, or words such as
        "tomorrow at 9"; without a time zone it is in the user's. `source` is the user's message that asked for it.
        `about` is whom it is about, if not the user: the id of another user, or a name.
        """

    def edit_memory(
        self,
        memory: int,
        *,
        text: str | None = None,
        category: CategoryOrKind | None = None,
        importance: int | None = None,
        tags: Sequence[str] | None = None,
        priority: int | None = None,
        when: datetime | str | None = None,
        expires: datetime | None = None,
        about: str | None = None,
        revision: int | None = None,
    ) -> MemoryRecord:
        """Change a memory. Arguments that are not given keep their value; the old version is kept.

        `when` moves it, and is read as for `note`. A new text that names another time moves it as well.
        With `revision`, it must not have been changed since it had that one; otherwise SourcesChanged is raised.
        """

    def deactivate(self, memory: int, *, revision: int | None = None) -> MemoryRecord:
        """Deactivate a memory; it can be reactivated. `revision` works as in `edit_memory`."""

    def end_memory(self, memory: int, *, at: datetime | None = None, revision: int | None = None) -> MemoryRecord:
        """Record that an active memory is no longer true, since `at` (default: now).

        It stays true for earlier times (`memories(at=…)`), and can be reactivated. `at` cannot lie in the future: for
        that, edit `expires`. `revision` works as in `edit_memory`.
        """

    def reactivate(self, memory: int, *, revision: int | None = None) -> MemoryRecord:
        """Reactivate a memory that was deactivated, superseded or expired."""

    def approve(self, memory: int, *, revision: int | None = None) -> MemoryRecord:
        """Approve a quarantined memory (`memories(state="quarantined")`)."""

    def reject(self, memory: int, *, revision: int | None = None) -> MemoryRecord:
        """Reject a quarantined memory, also when it is stated again."""

    def undo(self, memory: int, *, revision: int | None = None) -> MemoryRecord:
        """Undo the last change of a memory. Undoing its creation deactivates it and restores what it replaced."""

    def memory_history(self, memory: int) -> list[MemoryVersion]:
        """Return the earlier versions of a memory, oldest first, and who changed it."""

    def schedule(self, when: str | None = None, *, at: datetime | None = None) -> list[MemoryRecord]:
        """Return scheduled events, soonest first: "what do I have Monday?", "next week". Default: all future ones.

        `at` is when it is asked (default: now).
        """

    def reminders(self, *, due: bool = False, at: datetime | None = None) -> list[MemoryRecord]:
        """Return undelivered reminders, soonest first; with `due`, only those that are due.

        Those without a time stand last, and are never due.
        """

    def time_zone(self) -> tzinfo:
        """Return the user's time zone: their setting `time_zone`, else the one of their space or of the profile."""

    def claim(self, memory: int, *, until: datetime, at: datetime | None = None) -> bool:
        """Claim a due reminder. True for one caller only, which sends it and then calls `delivered`.

        Until then it is put off: whoever is killed in between, or cannot send it, leaves it due again at `until`.
        `at` is when it is asked (default: now).
        """

    def delivered(self, memory: int) -> bool:
        """Mark a reminder as delivered. True for the first caller only."""

    def read_memory(self, memory: int) -> MemoryRecord:
        """Return one memory of the user, in any state."""

    def timeline(
        self,
        since: datetime | None = None,
        until: datetime | None = None,
        *,
        about: str | None = None,
        query: str | None = None,
        limit: int = 100,
        at: datetime | None = None,
    ) -> list[MemoryRecord]:
        """Return what happened and what is to come, in the order in which it happened: dated memories, with sources.

        `memory.happened` is when. `since` and `until` limit the time. `about` names a person by id or name. `query` is
        a topic or a question: "the kitchen", "what happened in May?"; periods in it are relative to `at` (default:
        now). Of more than `limit`, the first from `since` on are returned; without `since`, the last ones.
        """

    def people(self, name: str | None = None) -> list[KnownPerson]:
        """Return the people whom the memories of the user mention, those with most memories first.

        Each has a `name`, a `relation` to the user, `memories`, and when they were first and last mentioned. With
        `name`, only those who are called so: by name, first name, id or relation ("my sister").
        """

    def summarize(self) -> list[Summary]:
        """Summarise now, even if there is little to summarise; return the new summaries.

        Raises ModelError if a model is required and none answers; then nothing is changed.
        """

    def summarize_thread(self, *, days: int | None = None) -> str:
        """Return a summary of what everybody said in this handle's thread of late; empty if nobody said anything.

        With `days`, of so many days, of which today is the last. It is not stored. Messages of people who switched
        memory off are left out.
        """

    def summaries(
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

    def current_summary(self) -> Summary | None:
        """Return the rolling summary of this handle's chat; None where there is none."""

    def edit_summary(self, summary: int, text: str, *, editor: str | None = None) -> Summary:
        """Correct an active summary. The new text is its next version; the old one is kept.

        `editor` is who wrote it (default: the actor, or `person`).
        """

    def roll_back(self, summary: int) -> Summary:
        """Undo a summary: its previous version, or else the messages it covers, become active again."""

    def summary_messages(self, summary: int) -> list[Message]:
        """Return the messages that a summary of any level and kind covers, oldest first.

        Of a message with several versions only the newest one that the summary covers is returned, and none that was
        taken back.
        """

    def message_summaries(self, message: Message | str) -> list[Summary]:
        """Return the summaries of every level and kind that cover a message of the user."""

    def messages_for_llm(self, limit: int = ...) -> list[ChatMessage]:
        """Return the thread for a model: its rolling summary and all messages that it does not cover.

        Without a summary, the newest `limit` messages.
        """

    def update_summary(self, text: str, covers: int, *, model: str | None = None) -> Summary:
        """Store a rolling summary of your own, of the first `covers` messages of the thread."""

    def day(self, day: date | None = None) -> Summary | None:
        """Return the user's summary of a day (default: today); None if nothing was said on it.

        Only the policy `calendar` (profile `community`) makes such summaries; with another it is None, and a warning is
        logged. It is made on request: today's at most once an hour, others once.
        """

    def week(self) -> Summary | None:
        """Return the user's summary of the six days before today, or None. It is made once a day.

        Only the policy `calendar` (profile `community`) makes it, as for `day`.
        """

    def tiers(self, *, within: Within = "user") -> Tiers:
        """Return the user's memory in tiers: short-term, mid-term, the whole history, and its context.

        With `within="thread"`, the two windows are of this handle's chat alone, and the count is of what the user has
        there.
        """

    def analyze(self) -> HistoryContext:
        """Analyse the whole history now, in every profile, and return the history context.

        Raises ModelError when a model has to do it and none answers; then everything is as it was.
        """

    def history_context(self) -> HistoryContext:
        """Return the analysis of the whole history; a baseline if there is none yet."""

    def context(
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

    def account_context(self, text: str, *, at: datetime | None = None) -> AccountContext:
        """Return the three parts of an account's context: `recent`, `history_summary` and `relevant_mid_term`.

        They are chosen as in the profile `account`, whatever the memory was opened with: the last ten messages, what is
        known of the history, and those of the 200 messages before that are near enough in meaning.
        """

    def settings(self) -> dict[str, SettingValue]:
        """Return the user's settings. What was set for the whole space is in `memory.settings()`."""

    def set(self, key: str, value: SettingValue) -> None:
        """Change a setting of the user; None takes it back to the default. Settings act at once.

        The names that Aforesaid looks at are checked; other names are yours. `memory.set` does the same for a space.
        """

    def clear_window(self) -> None:
        """Remove the messages up to now from the recent window of contexts. They are kept, and can still be found."""

    def status(self, *, within: Within = "user") -> MemoryStatus:
        """Return the state of the user's memory, by the policy that makes its summaries.

        With `within="thread"`, counts are of this handle's chat alone.
        """

    def sent(
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

    def receipts(
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

    def receipt(self, receipt: str) -> ContextReceipt:
        """Return one receipt. Raises NotFound for an id that the user does not have."""

    def receipt_sources(self, receipt: ContextReceipt) -> dict[tuple[SentKind, int], SentSource]:
        """Return the messages, memories and summaries that a receipt names, as they are now, by kind and id.

        What was erased or taken back since is missing. An audit row says that they were read.
        """

    def health(self) -> Health:
        """Return the status of the components of this user's memory.

        With the profile `account` these are `short_term`, `mid_term`, `whole_history` and `history_context`.
        """

    def audit(self, limit: int = 100) -> list[AuditEntry]:
        """Return the newest audit rows of this user, oldest first."""
