"""The API for administration: totals, health, background work, verification, backup, export, import, deletion."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aforesaid.background import BackgroundLoops
from aforesaid.domain import checks
from aforesaid.domain.checks import ExportFormat
from aforesaid.domain.report import Activity, AuditEntry, Cleanup, Component, Health, Stats, User, Verification
from aforesaid.domain.scope import DEFAULT_SPACE, Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.domain.transfer import Purged
from aforesaid.errors import InvalidInput, NotFound, quoted
from aforesaid.front.handle import IN_METHOD, MemoryHandle, UserHandle, at_once, public
from aforesaid.profiles import Profile
from aforesaid.store import Progress
from aforesaid.store.messages import ActivityPerDay, IsAuthor
from aforesaid.store.people import AuditAccess, AuditRows, DisplayNames, Totals, Users, UsersPage
from aforesaid.telemetry import Metrics
from aforesaid.upkeep import UpkeepReport

if TYPE_CHECKING:
    from aforesaid.portability.exporting import Exported
    from aforesaid.portability.importing import Loaded
    from aforesaid.portability.merging import Merged


MOST_DAYS = 366
_DAY = 24 * 60 * 60 * 1_000_000


def _start(day: date) -> int:
    return checks.microseconds(datetime(day.year, day.month, day.day, tzinfo=UTC), "the day")


class MemoryOperations(MemoryHandle):
    """Operations on the memory of all users."""

    @public(audit=IN_METHOD)
    async def users(self, space: str | int | None = None, *, actor: str | None = None) -> list[User]:
        """Return all users, with counts and their last display name.

        With an `actor`, the audit log names who looked.
        """
        found = await self._services.store.read(
            Users(None if space is None else checks.identifier(space, "the space", "space"))
        )
        people = [user for user in found if user.id != EVERYBODY]
        spaces = {user.space for user in people} if space is None else {str(space)}
        await self._record(actor, "users.read", "users", spaces or {DEFAULT_SPACE})
        return people

    @public(unaudited="names alone; what they are the names of is audited")
    async def names(
        self, space: str | int = DEFAULT_SPACE, *, users: Iterable[str | int] | None = None
    ) -> dict[str, str]:
        """Return the display names of a space by user id: of all authors who have one, or only of `users`.

        It is the name that each of them used last. Authors without a memory are included, and the assistant.
        """
        wanted = None if users is None else [checks.identifier(user, "the user id", "user") for user in users]
        return await self._services.store.read(DisplayNames(checks.identifier(space, "the space", "space"), wanted))

    @public(unaudited="counts alone")
    async def stats(self) -> Stats:
        """Return the totals of the store."""
        return await self._services.store.read(Totals())

    @public(unaudited="counts alone")
    async def activity(
        self, days: int = 30, *, space: str | int = DEFAULT_SPACE, user: str | int | None = None
    ) -> list[Activity]:
        """Return the number of messages in a space on each of the last days (UTC), oldest first, of all users or one.

        A message counts for its owner.
        """
        where = checks.identifier(space, "the space", "space")
        whose = None if user is None else checks.identifier(user, "the user id", "user")
        wanted = checks.at_most(checks.at_least(days, 1, "the days"), MOST_DAYS, "the days")
        last = datetime.now(UTC).date()
        days_now = [last - timedelta(days=wanted - 1 - each) for each in range(wanted)]
        found = await self._services.store.read(ActivityPerDay(where, _start(days_now[0]), _start(last) + _DAY, whose))
        counted = {each.day: each for each in found}
        return [counted.get(day) or Activity(day, 0, 0) for day in days_now]

    @public(audit=IN_METHOD)
    async def audit(
        self, limit: int = 100, *, space: str | int = DEFAULT_SPACE, actor: str | None = None
    ) -> list[AuditEntry]:
        """Return the newest rows about a space as a whole, oldest first: settings, exports, keys, sign-ins.

        A user's audit log is in `memory.user(…).audit()`. With an `actor`, looking leaves a row too.
        """
        most = at_once(limit)
        where = checks.identifier(space, "the space", "space")
        found = await self._services.store.read(AuditRows(Scope.of(EVERYBODY, where), limit=most))
        await self._record(actor, "audit.read", "audit log", {where})
        return found

    @public(unaudited="states and counts alone", untimed="it reports the timings")
    async def health(self) -> Health:
        """Return the status of each component, alerts, storage growth, and recent latencies."""
        self._services.watch.start()
        return await self._services.watch.look()

    @property
    def profile(self) -> Profile:
        """The profile that the memory was opened with. Stored settings override it."""
        return self._services.profile

    @property
    def loops(self) -> BackgroundLoops:
        """The background loops of this memory. A loop that is added to them ends when the memory closes."""
        return self._services.loops

    @property
    def components(self) -> dict[str, Callable[[], Component]]:
        """Further components of health, by name, such as the `upstream` of a server's proxy."""
        return self._services.components

    @property
    def metrics(self) -> Metrics:
        """Metrics of this process by operation: calls, failures, cache hits, latencies."""
        return self._services.metrics

    @public(unaudited="what it changes is recorded with each change", unbounded=True)
    async def upkeep(self, progress: Progress | None = None) -> UpkeepReport:
        """Do all pending background work now: embed, extract memories, summarise. Return a report."""
        return await self._services.upkeep.run(progress)

    @public(unaudited="what it changes is recorded with each change")
    async def cleanup(self, progress: Progress | None = None, *, dry_run: bool = False) -> Cleanup:
        """Apply the retention rules now, instead of once a day.

        With `dry_run`, nothing is changed: the report says what would be archived or deleted.
        """
        return await self._services.cleaning.clean(progress, dry_run=dry_run)

    @public(unaudited="findings name numbers, never what was said", unbounded=True)
    async def verify(self, progress: Progress | None = None) -> Verification:
        """Verify everything that is stored. Reads all of it; `progress` is called from another thread."""
        return await self._services.store.verify(progress)

    @public(unaudited="only who read a message knows the hash of its attachment", unbounded=True)
    async def attachment(self, hash: str) -> bytes:  # noqa: A002 - the field of a part
        """Return the bytes of a part of a message by its hash (`part.hash`). Raises NotFound."""
        return await self._services.attachments.read(hash)

    @public(audit=IN_METHOD, unbounded=True)
    async def backup(
        self, path: str | os.PathLike[str], progress: Progress | None = None, *, actor: str | None = None
    ) -> None:
        """Back up the store, also in use, to a new file and verify the copy. The audit log names the `actor`."""
        await self.record_access("backup", "everything", actor=actor)
        await self._services.store.backup(checks.file_path(path, "the backup's path"), progress)


class UserOperations(UserHandle):
    """Operations on the memory of one user."""

    @public(unaudited="states and counts alone", untimed="it reports the timings")
    async def health(self) -> Health:
        """Return the status of the components of this user's memory.

        With the profile `account` these are `short_term`, `mid_term`, `whole_history` and `history_context`.
        """
        from aforesaid.upkeep.watch import account  # noqa: PLC0415 - brings the digest

        return await account(self._services.store, self._services.profile, self.scope)

    @public(audit=("audit.read", "audit log"))
    async def audit(self, limit: int = 100) -> list[AuditEntry]:
        """Return the newest audit rows of this user, oldest first."""
        most = at_once(limit)
        return await self._services.store.read(AuditRows(self.scope, limit=most))


class MemoryTransfer(MemoryHandle):
    """Export, import and deletion for the memory of all users."""

    @public(audit=IN_METHOD, unbounded=True)
    async def export(
        self,
        path: str | os.PathLike[str],
        *,
        user: str | int | None = None,
        space: str | int = DEFAULT_SPACE,
        format: ExportFormat = "auto",  # noqa: A002 - the public name of the file's format
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
        from aforesaid.portability.exporting import export, is_markdown  # noqa: PLC0415 - loaded on first use

        target = checks.file_path(path, "the export's path")
        scope = None if user is None else Scope.of(user, space)
        readable = format == "markdown" or (format == "auto" and is_markdown(target))
        if readable and scope is None:
            raise InvalidInput("a copy in Markdown is of one user; name the user, or choose the format jsonl", "format")
        if readable and vectors:
            raise InvalidInput("a copy in Markdown has no vectors; choose the format jsonl", "vectors")
        if scope is not None:
            store = self._services.store
            # Somebody may own nothing and be the author of items in another's memory, which belong to the export.
            owns = bool(await store.read(UsersPage(scope.space, users=[scope.user])))
            if not owns and not await store.read(IsAuthor(scope)):
                raise NotFound(f"there is no user {quoted(scope.user)} in the space {quoted(scope.space)}")
        if scope is None:
            await self.record_access("export", "everything", actor=actor)
        elif actor is not None:
            seen = AuditAccess(scope, checks.identifier(actor, "the actor"), "export", "everything about the user")
            await self._services.store.apply([seen])
        bytes_from = self._services.attachments if attachments else None
        if readable and scope is not None:
            from aforesaid.facts import zone_of  # noqa: PLC0415
            from aforesaid.portability.exporting import export_readable  # noqa: PLC0415

            zone = await zone_of(self._services.store, self._services.profile, scope)
            return await export_readable(self._services.store, target, bytes_from, scope, zone, progress)
        return await export(self._services.store, target, bytes_from, scope=scope, vectors=vectors, progress=progress)

    @public(audit=IN_METHOD, unbounded=True)
    async def load(
        self,
        path: str | os.PathLike[str],
        format: str = "auto",  # noqa: A002 - the public name of the file's format
        *,
        user: str | int | None = None,
        space: str | int = DEFAULT_SPACE,
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
        from aforesaid.portability.formats.base import ReadOptions  # noqa: PLC0415
        from aforesaid.portability.importing import ImportOptions, Loader  # noqa: PLC0415

        profile = self._services.profile
        try:
            local = None if zone is None else ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise InvalidInput(f"unknown time zone {quoted(zone)}; write it like Europe/Berlin") from None
        taking = ImportOptions(
            format=format,
            space=checks.identifier(space, "the space", "space"),
            user=None if user is None else checks.identifier(user, "the user id", "user"),
            reading=ReadOptions(zone=local),
            dry_run=dry_run,
            silence=profile.session_silence,
            message_bytes=profile.message_bytes,
            ids=self._services.ids,
        )
        store, attachments = self._services.store, self._services.attachments
        loader = Loader(store, taking, attachments, self._services.recall_queue.give_way)
        loaded = await loader.load(checks.file_path(path, "the path"), progress)
        if not dry_run:
            await self._services.read_known_ids()
            self._services.upkeep.nudge()
            where = None if loaded.format == "aforesaid" else taking.space
            await self.record_access("import", f"{loaded.format} file", actor=actor, space=where)
        return loaded

    @public(audit=IN_METHOD, unbounded=True)
    async def purge(self, user: str | int, *, space: str | int = DEFAULT_SPACE, actor: str = "aforesaid") -> Purged:
        """Delete a user permanently from every byte of the store: messages, summaries, memories, facts, settings.

        Other users' summaries and memories made from the user's messages are deleted too, and made again without them.
        One audit row stays, with counts only. This cannot be undone.
        """
        scope = Scope.of(user, space)
        if scope.user == EVERYBODY:
            raise InvalidInput(f"{EVERYBODY!r} means all users of a space; pass one user's id", "user")
        done = await self._services.store.purge(scope, checks.identifier(actor, "the actor"))
        self._services.clear_caches()
        # Other users' summaries and memories are made again without the deleted messages.
        self._services.upkeep.nudge()
        return done

    @public(audit=IN_METHOD, unbounded=True)
    async def merge(
        self, user: str | int, into: str | int, *, space: str | int = DEFAULT_SPACE, actor: str = "aforesaid"
    ) -> Merged:
        """Merge two users who are one person: what is stored of `user` becomes the memory of `into`.

        Messages, memories with their versions, stated facts, receipts and the settings that `into` lacks move; the
        user is then purged, and summaries are made again. This cannot be undone: export the user first. An app that
        goes on writing under the id begins a new memory. Raises NotFound if nothing is stored of one of them.
        """
        from aforesaid.portability.merging import merge  # noqa: PLC0415 - loaded on first use

        gone, kept = Scope.of(user, space), Scope.of(into, space)
        if EVERYBODY in (gone.user, kept.user) or gone.user == kept.user:
            raise InvalidInput("name two different users", "into")
        for each in (gone, kept):
            if not await self._services.store.read(UsersPage(each.space, users=[each.user])):
                raise NotFound(f"there is no user {quoted(each.user)} in the space {quoted(each.space)}")
        merged = await merge(self._services.store, gone, kept, checks.identifier(actor, "the actor"))
        self._services.clear_caches()
        self._services.upkeep.nudge()
        return merged
