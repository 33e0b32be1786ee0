"""The part of the front door that is about taking data out and in, and about erasing people."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aforesaid.domain import checks
from aforesaid.domain.scope import DEFAULT_SPACE, Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.domain.transfer import Purged
from aforesaid.errors import InvalidInput
from aforesaid.profiles import Profile
from aforesaid.store import Progress, Store
from aforesaid.telemetry import Metrics, timed
from aforesaid.upkeep import Upkeep

if TYPE_CHECKING:
    from aforesaid.portability.exporting import Exported
    from aforesaid.portability.loading import Loaded


class MemoryTransfer(ABC):
    """The memory of all users, as something that can be carried about."""

    _store: Store
    _metrics: Metrics
    _upkeep: Upkeep
    _profile: Profile

    @timed("export")
    async def export(
        self, path: str | os.PathLike[str], *, vectors: bool = False, progress: Progress | None = None
    ) -> Exported:
        """Write everything to a new file of JSON lines, as it is now, while the memory is in use.

        A name that ends in `.gz` makes a compressed file, `-` means standard output. With `vectors`, what an embedder
        made of the messages is written too; without, it is made again where the file is loaded.
        """
        from aforesaid.portability.exporting import export  # noqa: PLC0415 - loaded when somebody moves

        target = checks.file_path(path, "the export's path")
        return await export(self._store, target, vectors=vectors, progress=progress)

    @timed("load")
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
    ) -> Loaded:
        """Take in a file: an export of Aforesaid, or what another application wrote.

        What is here already is recognised, so a file can be loaded again, also after it was interrupted. Entries that
        are damaged are told in the result (`problems`, `examples`) and the rest is stored. `user` makes all of it the
        memory of one user; without it, in a chat among people everybody's words become their own, and talks with an
        assistant become those of the user `me`. `space` is where it goes (an export knows that by itself). `zone` is
        where the clocks were that wrote times without a time zone, such as `Europe/Berlin` (default: this machine's).
        With `dry_run`, it is only read.
        """
        from aforesaid.portability.items import Reading  # noqa: PLC0415
        from aforesaid.portability.loading import Loader, Taking  # noqa: PLC0415

        profile = self._profile
        taking = Taking(
            format=format,
            space=checks.identifier(space, "the space"),
            user=None if user is None else checks.identifier(user, "the user id"),
            reading=Reading(zone=None if zone is None else _zone(zone)),
            dry_run=dry_run,
            silence=profile.session_silence,
            message_bytes=profile.message_bytes,
        )
        loaded = await Loader(self._store, taking).load(checks.file_path(path, "the path"), progress)
        if not dry_run:
            self._upkeep.nudge()
        return loaded

    @timed("purge")
    async def purge(self, user: str | int, *, space: str | int = DEFAULT_SPACE, actor: str = "aforesaid") -> Purged:
        """Erase a user for good: messages, summaries, memories, facts, settings, index, vectors, caches, every byte.

        Summaries and memories of others that were made with the user's words go too, and are made again without them.
        An audit row stays that says how much was erased, and nothing of it. There is no way back.
        """
        scope = Scope.of(user, space)
        if scope.user == EVERYBODY:
            raise InvalidInput(f"{EVERYBODY!r} stands for everybody in a space; name one user")
        done = await self._store.purge(scope, checks.identifier(actor, "the actor"))
        self._forget_what_is_at_hand()
        # What was made with the user's words is made again without them.
        self._upkeep.nudge()
        return done

    @abstractmethod
    def _forget_what_is_at_hand(self) -> None:
        """Let go of what is kept in memory and may hold words of somebody who was erased."""


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"unknown time zone {name!r}; write it like Europe/Berlin") from None
