"""The API for export, import and deletion."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aforesaid.domain import checks
from aforesaid.domain.checks import ExportFormat
from aforesaid.domain.memory import AuditAccess
from aforesaid.domain.scope import DEFAULT_SPACE, Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.domain.transfer import Purged
from aforesaid.errors import InvalidInput, NotFound, quoted
from aforesaid.front.handle import IN_METHOD, MemoryHandle, public
from aforesaid.store import Progress, questions

if TYPE_CHECKING:
    from aforesaid.portability.exporting import Exported
    from aforesaid.portability.import_report import Loaded


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
        if scope is not None and not await self._services.store.read(
            questions.UsersPage(scope.space, users=[scope.user])
        ):
            raise NotFound(f"there is no user {quoted(scope.user)} in the space {quoted(scope.space)}")
        if scope is None:
            await self.record_access("export", "everything", actor=actor)
        elif actor is not None:
            seen = AuditAccess(scope, checks.identifier(actor, "the actor"), "export", "everything about the user")
            await self._services.store.apply([seen])
        bytes_from = self._services.attachments if attachments else None
        if readable and scope is not None:
            from aforesaid.facts import zone_of  # noqa: PLC0415
            from aforesaid.portability.readable import export_readable  # noqa: PLC0415

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
        from aforesaid.portability.import_items import ReadOptions  # noqa: PLC0415
        from aforesaid.portability.importing import ImportOptions, Loader  # noqa: PLC0415

        profile = self._services.profile
        taking = ImportOptions(
            format=format,
            space=checks.identifier(space, "the space", "space"),
            user=None if user is None else checks.identifier(user, "the user id", "user"),
            reading=ReadOptions(zone=None if zone is None else _zone(zone)),
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


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"unknown time zone {quoted(name)}; write it like Europe/Berlin") from None
