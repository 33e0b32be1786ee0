"""Who is on a server, and where: kept up to date by what the server tells."""

from __future__ import annotations

from dataclasses import dataclass, replace

from aforesaid.bots.mumble.messages import ChannelState, UserState


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who is connected. The session is theirs until they leave."""

    session: int
    name: str = ""
    user_id: int | None = None
    """The number of who is registered on this server."""
    certificate: str | None = None
    """The hash of the certificate that their client made for them."""
    channel: int = 0
    muted: bool = False
    suppressed: bool = False
    """Whether they may not speak in the channel that they are in."""

    @property
    def silenced(self) -> bool:
        """Whether others keep them from speaking."""
        return self.muted or self.suppressed

    @property
    def id(self) -> str:
        """Who this is, also after they renamed themselves, as far as the server can tell.

        By certificate: it stays the same when somebody registers. A name is nobody's own: anybody can take it.
        """
        if self.certificate:
            return self.certificate
        if self.user_id is not None:
            return f"user-{self.user_id}"
        return f"name-{self.name}"


@dataclass(frozen=True, slots=True)
class Channel:
    """A room."""

    id: int
    name: str = ""
    parent: int | None = None


class People:
    """Everybody and every channel."""

    def __init__(self) -> None:
        self.persons: dict[int, Person] = {}
        self.channels: dict[int, Channel] = {}

    def user(self, state: UserState) -> Person | None:
        """Take in what changed about somebody; return how they are now."""
        if state.session is None:
            return None
        known = self.persons.get(state.session, Person(state.session))
        changed = replace(
            known,
            name=known.name if state.name is None else state.name,
            user_id=known.user_id if state.user_id is None else state.user_id,
            certificate=state.hash or known.certificate,
            channel=known.channel if state.channel_id is None else state.channel_id,
            muted=known.muted if state.mute is None else state.mute,
            suppressed=known.suppressed if state.suppress is None else state.suppress,
        )
        self.persons[state.session] = changed
        return changed

    def gone(self, session: int | None) -> Person | None:
        """Take somebody out; return who it was."""
        return None if session is None else self.persons.pop(session, None)

    def channel(self, state: ChannelState) -> None:
        """Take in what changed about a channel."""
        if state.channel_id is None:
            return
        known = self.channels.get(state.channel_id, Channel(state.channel_id))
        self.channels[state.channel_id] = replace(
            known,
            name=known.name if state.name is None else state.name,
            parent=known.parent if state.parent is None else state.parent,
        )

    def find_channel(self, path: str) -> Channel | None:
        """Find a channel by its name, or by its path: `Games/Chess`. Upper and lower case do not matter.

        A path begins below the root channel, or at any channel of that name; of several the oldest one is taken.
        """
        names = [part.strip().casefold() for part in path.split("/") if part.strip()]
        for number in sorted(self.channels):
            channel: Channel | None = self.channels[number]
            rest = list(names)
            while channel is not None and rest and channel.name.casefold() == rest[-1]:
                rest.pop()
                channel = None if channel.parent is None else self.channels.get(channel.parent)
            if names and not rest:
                return self.channels[number]
        return None
