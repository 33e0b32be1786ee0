# Made from memory.py by `make stubs`; a test fails when it is out of date.

import os
from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime, tzinfo
from types import TracebackType
from typing import Self

from aforesaid.background import BackgroundLoops
from aforesaid.context import AccountContext, Context
from aforesaid.digest import HistoryContext, Tiers
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import Facts, MemoryRecord, MemoryVersion
from aforesaid.domain.message import Message
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Activity, AuditEntry, Health, MemoryStatus, Stats, User, Verification
from aforesaid.domain.retention import Cleanup
from aforesaid.domain.scope import Scope
from aforesaid.domain.session import Session
from aforesaid.domain.summary import Summary, SummaryKind
from aforesaid.domain.transfer import Purged
from aforesaid.domain.words import Category, HitKind, MemoryState, Role, SettingValue, Within
from aforesaid.facts import Forgotten, Preferences, Remembered
from aforesaid.models.chat import Chat
from aforesaid.portability.exporting import Exported
from aforesaid.portability.loading import Loaded
from aforesaid.profiles import Profile
from aforesaid.recall import Arms
from aforesaid.store import Progress, Store
from aforesaid.telemetry import Metrics
from aforesaid.upkeep import UpkeepReport

class SyncMemory:
    """All that is remembered, of all users."""

    def user(
        self,
        user: str | int,
        *,
        space: str | int = ...,
        thread: str | int | None = None,
        session: str | int | None = None,
        actor: str | None = None,
    ) -> SyncUserMemory:
        """Return the memory of one user.

        Without a thread, messages go to the user's own direct chat. With one, `within="thread"` also reaches what
        others said there. A session, if named, holds the messages that are added through this handle. With an `actor`,
        the audit log names who changed what is known about the user, and who looked at it.
        """

    def ingest_message(
        self,
        space: str | int,
        user: str | int,
        text: str,
        *,
        thread: str | int | None = None,
        role: Role = "user",
        at: datetime | None = None,
        id: str | int | None = None,
        name: str | None = None,
    ) -> Receipt:
        """Store a message of a space, such as one of a community's channels. The same as `user(…).add(…)`."""

    def get_memories(self, space: str | int, user: str | int) -> str | None:
        """Return what is known about a user as one text, or None. The same as `user(…).portrait()`."""

    @property
    def store(self) -> Store:
        """The store below, for whoever builds on it. What is changed there passes by all rules but its own."""

    @property
    def models(self) -> Chat | None:
        """The models that are configured; None where there are none."""

    def settings(self, space: str | int = ...) -> dict[str, SettingValue]:
        """Return what was set for everybody in a space."""

    def set(self, key: str, value: SettingValue, *, space: str | int = ..., actor: str | None = None) -> None:
        """Change a setting for everybody in a space; None takes it back. It acts at once, in other processes soon.

        What is set for a single user (`user(…).set`) goes before it. The audit log names the `actor`.
        """

    def close(self) -> None:
        """Finish what was handed in and let go of the file. Closing twice is fine."""

    def __enter__(self) -> Self:
        """Return itself."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""

    def reminders(self, *, at: datetime | None = None) -> list[MemoryRecord]:
        """Return the reminders of all users whose time has come, oldest first. `user(…).claim(…)` takes one."""

    def memories(
        self,
        category: Category | None = None,
        *,
        space: str | int = ...,
        user: str | int | None = None,
        active: bool | None = True,
        state: MemoryState | None = None,
        containing: str | None = None,
        before: int | None = None,
        limit: int = 50,
        actor: str | None = None,
    ) -> list[MemoryRecord]:
        """Return the newest memories of a space, of all users or one, newest first.

        To read on, pass the id of the last one as `before`. `containing` keeps those whose text has these words,
        whatever their case. With an `actor`, the audit log names who looked.
        """

    def memory(self, memory: int, *, space: str | int = ...) -> MemoryRecord:
        """Return one memory of a space by its id, whoever it is about. Raises NotFound, also for one of another."""

    def users(self, space: str | int | None = None) -> list[User]:
        """Return everybody who owns something, with counts and the display name that they used last."""

    def names(self, space: str | int = ..., *, users: Iterable[str | int] | None = None) -> dict[str, str]:
        """Return the display names of a space by user id: of everybody who wrote under one, or of `users` alone.

        The name that somebody used last counts. Authors who own no memory are included, the assistant too.
        """

    def stats(self) -> Stats:
        """Return totals."""

    def activity(self, days: int = 30, *, space: str | int = ..., user: str | int | None = None) -> list[Activity]:
        """Return how much was said in a space on each of the last days (of UTC), oldest first; by all, or by one.

        A message counts for whom it belongs to.
        """

    def audit(self, limit: int = 100, *, space: str | int = ...) -> list[AuditEntry]:
        """Return the newest changes that were made to the settings of a space, oldest first.

        What was done with a user's memory is in `memory.user(…).audit()`.
        """

    def health(self) -> Health:
        """Say how each part is doing, what an operator should know, and what operations took in the last minutes."""

    @property
    def profile(self) -> Profile:
        """The profile that it was opened with. Settings that were stored stand above it."""

    @property
    def loops(self) -> BackgroundLoops:
        """The background loops of this memory. A loop that is added to them ends when the memory closes."""

    @property
    def metrics(self) -> Metrics:
        """What every operation took in this process: calls, failures, cache hits, latencies."""

    def upkeep(self, progress: Progress | None = None) -> UpkeepReport:
        """Do all that is due, to the end: embed what was stored. Otherwise it happens in the background."""

    def cleanup(self, progress: Progress | None = None, *, dry_run: bool = False) -> Cleanup:
        """Archive and remove what is old enough by the rules in `retention`, now; otherwise it happens once a day.

        With `dry_run`, nothing is changed: the report says what would be.
        """

    def verify(self, progress: Progress | None = None) -> Verification:
        """Check everything that is stored. Reads all of it; `progress` is called from another thread."""

    def backup(self, path: str | os.PathLike[str], progress: Progress | None = None) -> None:
        """Copy the memory as it is now to a new file, while it is in use."""

    def export(
        self, path: str | os.PathLike[str], *, vectors: bool = False, progress: Progress | None = None
    ) -> Exported:
        """Write everything to a new file of JSON lines, as it is now, while the memory is in use.

        A name that ends in `.gz` makes a compressed file, `-` means standard output. With `vectors`, what an embedder
        made of the messages is written too; without, it is made again where the file is loaded.
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
    ) -> Loaded:
        """Take in a file: an export of Aforesaid, or what another application wrote.

        What is here already is recognised, so a file can be loaded again, also after it was interrupted. Entries that
        are damaged are told in the result (`problems`, `examples`) and the rest is stored. `user` makes all of it the
        memory of one user; without it, in a chat among people everybody's words become their own, and talks with an
        assistant become those of the user `me`. `space` is where it goes (an export knows that by itself). `zone` is
        where the clocks were that wrote times without a time zone, such as `Europe/Berlin` (default: this machine's).
        With `dry_run`, it is only read.
        """

    def purge(self, user: str | int, *, space: str | int = ..., actor: str = "aforesaid") -> Purged:
        """Erase a user for good: messages, summaries, memories, facts, settings, index, vectors, caches, every byte.

        Summaries and memories of others that were made with the user's words go too, and are made again without them.
        An audit row stays that says how much was erased, and nothing of it. There is no way back.
        """

class SyncUserMemory:
    """What is remembered of one user."""

    scope: Scope

    def add(
        self,
        role: Role,
        text: str,
        *,
        at: datetime | None = None,
        id: str | int | None = None,
        author: str | int | None = None,
        name: str | None = None,
        replaces: Message | str | int | None = None,
    ) -> Receipt:
        """Store a message for good. When this returns, it is on the disk (`receipt.durable`).

        `at` is when it was said (default: now). `id` is the platform's id. A message with an id that the thread has, or
        with the same author, role, text and given `at`, is recognised and not stored twice (`receipt.duplicate`).
        `author` and `name` say who spoke, where that is not the user (or the assistant) itself.

        `replaces` stores it as a new version of an earlier message of this thread: a message or its id. Only the newest
        version is shown and found; older ones stay in the log (`history(versions=True)`). Unless `at` is given, it
        keeps the earlier message's time. A message that has been replaced is replaced at its newest version.
        """

    def history(
        self,
        limit: int = 50,
        *,
        before: Message | str | int | None = None,
        archived: bool = True,
        within: Within = "user",
        versions: bool = False,
    ) -> list[Message]:
        """Return the newest `limit` messages by when they were said, oldest first.

        To read on, pass the first one as `before`: a message, its id or its sequence number. Messages of one moment
        come in the order of storing. `archived=False` leaves out messages that a summary covers.
        Of a message with several versions only the newest is returned; with `versions=True`, all of them.
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
        without: Collection[str] = (),
        tokens: int | None = None,
    ) -> list[Hit]:
        """Return what fits best, by its words and by its meaning, best first.

        The query may hold anything. `at` is when it is asked (default: now), for what "last May" means. `kinds` says
        what is looked for: messages, summaries, memories, whole sessions. `around` adds so many messages around each
        hit, a third before it and two thirds after. `similarity` keeps what is at least as near in meaning (up to 1).
        `without` leaves out messages by their ids, and `tokens` stops before the texts are longer than that. `arms`
        limits the search to `keyword` or `dense` alone. `hit.explain()` says why something was found.
        """

    def message(self, id: str | int, *, within: Within = "user") -> Message:
        """Return one message by its id, or raise NotFound."""

    def sessions(self, limit: int = 50, *, within: Within = "user") -> list[Session]:
        """Return the newest sessions, oldest first."""

    def remember(self, fact: str, *, by: str | int | None = None, name: str | None = None) -> Remembered:
        """Keep a fact in mind: "prefers tea", "I moved to Berlin". Newer information takes the place of older.

        `by` is who says so, if not the user; what others say that is sensitive waits for approval, and so does what
        reads like an instruction to a model. `name` is what the user is called. `outcome` says what became of it.
        """

    def forget(self, fact: str, *, name: str | None = None) -> Forgotten:
        """Forget a fact, in the text of facts and in single memories. True if there was something to forget.

        It is not learned again from what had been said until now; saying it again later counts.
        """

    def portrait(self, *, name: str | None = None) -> str | None:
        """Return what should be known about the user, in one text: facts, today, the days before. None if nothing is.

        A model that is configured merges them, once for each state of the three. Without one, or when it fails, there
        are the facts, else today, else the days before.
        """

    def facts(self) -> list[Facts]:
        """Return all versions of the text of facts, oldest first, each with the words that led to it."""

    def preferences(self) -> Preferences:
        """Return what the user seems to like, counted in what they said: topics, hours, language, lengths, tone."""

    def memories(
        self,
        category: Category | None = None,
        *,
        active: bool | None = True,
        state: MemoryState | None = None,
        at: datetime | None = None,
    ) -> list[MemoryRecord]:
        """Return single memories, most important first.

        With `active=None` those in every state; with `state`, those that are `quarantined`, `superseded`, … With `at`,
        what was believed at that moment.
        """

    def note(
        self,
        category: Category,
        text: str,
        *,
        importance: int = ...,
        tags: Sequence[str] = (),
        priority: int = ...,
        when: datetime | str | None = None,
        expires: datetime | None = None,
        source: Message | None = None,
    ) -> MemoryRecord:
        """Write a memory down. `when` is when it happens or reminds; without it, what the text says counts.

        `when` is a moment, or words such as "tomorrow at 9"; without a time zone it is in the user's. `source` is the
        user's message that asked for it.
        """

    def edit_memory(
        self,
        memory: int,
        *,
        text: str | None = None,
        category: Category | None = None,
        importance: int | None = None,
        tags: Sequence[str] | None = None,
        priority: int | None = None,
        when: datetime | str | None = None,
        expires: datetime | None = None,
        revision: int | None = None,
    ) -> MemoryRecord:
        """Correct a memory. What is not given stays as it is; what it was before is kept.

        `when` moves it, and is read as for `note`. A new text that names another time moves it as well.
        With `revision`, it must not have been changed since it had that one; otherwise SourcesChanged is raised.
        """

    def deactivate(self, memory: int, *, revision: int | None = None) -> MemoryRecord:
        """Put a memory away: it is not used any more, and can be brought back. `revision` is as for `edit_memory`."""

    def reactivate(self, memory: int, *, revision: int | None = None) -> MemoryRecord:
        """Bring back a memory that was put away, superseded or over."""

    def approve(self, memory: int, *, revision: int | None = None) -> MemoryRecord:
        """Believe a memory that waits for approval (`memories(state="quarantined")`)."""

    def reject(self, memory: int, *, revision: int | None = None) -> MemoryRecord:
        """Do not believe a memory that waits for approval, also when it is said again."""

    def undo(self, memory: int, *, revision: int | None = None) -> MemoryRecord:
        """Take back the last change of a memory. One that was just learned is put away; what it replaced is back."""

    def memory_history(self, memory: int) -> list[MemoryVersion]:
        """Return what a memory was before each of its changes, oldest first, and who changed it."""

    def schedule(self, when: str | None = None, *, at: datetime | None = None) -> list[MemoryRecord]:
        """Return what is scheduled, soonest first: "what do I have Monday?", "next week". Without `when`, all to come.

        `at` is when it is asked (default: now).
        """

    def reminders(self, *, due: bool = False, at: datetime | None = None) -> list[MemoryRecord]:
        """Return the reminders that were not delivered yet, soonest first; with `due`, those whose time has come.

        Those without a time stand last, and are never due.
        """

    def time_zone(self) -> tzinfo:
        """Return the user's time zone: their setting `time_zone`, else the one of their space or of the profile."""

    def claim(self, memory: int, *, until: datetime, at: datetime | None = None) -> bool:
        """Take a reminder that is due. True for one caller alone: that one sends it, and then calls `delivered`.

        Until then it is put off: whoever is killed in between, or cannot send it, leaves it due again at `until`.
        `at` is when it is asked (default: now).
        """

    def delivered(self, memory: int) -> bool:
        """Say that a reminder was delivered. True for the first caller alone."""

    def read_memory(self, memory: int) -> MemoryRecord:
        """Return one memory of the user, in whatever state it is."""

    def summarize(self) -> list[Summary]:
        """Summarise now, however little there is, and return what was made.

        Raises ModelError when a model has to do it and none answers; then everything is as it was.
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

        With `thread`, only summaries of that chat. Without it, a handle that names a thread leaves out those of other
        chats, unless `every_thread` is set; summaries of all that the user said (days, archives, the history) belong to
        no single chat.
        """

    def current_summary(self) -> Summary | None:
        """Return the rolling summary of this handle's chat; None where there is none."""

    def edit_summary(self, summary: int, text: str, *, editor: str = ...) -> Summary:
        """Correct an active summary. The new text is its next version; the old one is kept."""

    def roll_back(self, summary: int) -> Summary:
        """Take back what a summary did: the version before it, or else what it stands for, is active again."""

    def summary_messages(self, summary: int) -> list[Message]:
        """Return the messages below a summary of any level and kind, oldest first."""

    def message_summaries(self, message: Message | str) -> list[Summary]:
        """Return the summaries, of every level and kind, that one of the user's messages lies below."""

    def messages_for_llm(self, limit: int = ...) -> list[dict[str, str]]:
        """Return the thread for a model: its rolling summary and what that does not cover; without one, the newest."""

    def update_summary(self, text: str, covers: int, *, model: str | None = None) -> Summary:
        """Store a rolling summary of your own, of the first `covers` messages of the thread."""

    def day(self, day: date | None = None) -> Summary | None:
        """Return what a day (default: today) was for the user; None if there is nothing.

        With the policy `calendar` it is made if it is time: today's at most once an hour, others once.
        """

    def week(self) -> Summary | None:
        """Return what the six days before today were for the user, made once a day; None if there is nothing."""

    def tiers(self, *, within: Within = "user") -> Tiers:
        """Return the user's memory in tiers: short-term, mid-term, the whole history, and its context.

        With `within="thread"`, the two windows are of this handle's chat alone, and the count is of what the user has
        there.
        """

    def history_context(self) -> HistoryContext:
        """Return the analysis of the whole history; what everybody starts with where there is none yet."""

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
    ) -> Context:
        """Return what to send to a model that is to answer `text`: never more than `budget` tokens. No model is asked.

        `context.messages` is for any OpenAI-style API, `context.text` the same as one text, `context.explain()` says
        what is in it, what is not, and why. `system` is your system prompt, `persona` the character of a bot, and
        `model` says how tokens are counted. `answers` is the stored message that `text` is, where others may have been
        stored after it. The profile decides what a context holds. Without a `budget` it is the one that is set, but no
        more than `most`.
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

    def clear(self) -> None:
        """Begin anew: messages up to now leave the recent window of contexts. They are kept, and can still be found."""

    def status(self, *, within: Within = "user") -> MemoryStatus:
        """Return how the user's memory stands; with `within="thread"`, counts of this handle's chat alone."""

    def health(self) -> Health:
        """Say how the parts of this user's memory are doing.

        With the profile `account` these are `short_term`, `mid_term`, `whole_history` and `history_context`.
        """

    def audit(self, limit: int = 100) -> list[AuditEntry]:
        """Return the newest changes that were made to this user's memory, oldest first."""
