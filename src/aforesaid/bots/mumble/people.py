"""The users and channels of a server, updated by its messages."""

from __future__ import annotations

from dataclasses import dataclass, replace

from aforesaid.bots.mumble.messages import ChannelState, UserState


@dataclass(frozen=True, slots=True)
class Person:
    """A connected user. The session number is theirs until they disconnect."""

    session: int
    name: str = ""
    user_id: int | None = None
    """The id of a user who is registered on this server."""
    certificate: str | None = None
    """The hash of the certificate of their client."""
    channel: int = 0
    muted: bool = False
    suppressed: bool = False
    """Whether they may not speak in their channel."""

    @property
    def silenced(self) -> bool:
        """Whether the server does not let them speak."""
        return self.muted or self.suppressed

    @property
    def id(self) -> str:
        """The user's id, which survives a rename if the server allows it.

        The certificate comes first: it stays the same when somebody registers. Anybody can use a name.
        """
        if self.certificate:
            return self.certificate
        if self.user_id is not None:
            return f"user-{self.user_id}"
        return f"name-{self.name}"


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of a server."""

    id: int
    name: str = ""
    parent: int | None = None


class People:
    """All users and channels of a server."""

    def __init__(self) -> None:
        self.persons: dict[int, Person] = {}
        self.channels: dict[int, Channel] = {}

    def user(self, state: UserState) -> Person | None:
        """Apply the changed fields of a user; return the new state."""
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
        """Remove a user; return who it was."""
        return None if session is None else self.persons.pop(session, None)

    def channel(self, state: ChannelState) -> None:
        """Apply the changed fields of a channel."""
        if state.channel_id is None:
            return
        known = self.channels.get(state.channel_id, Channel(state.channel_id))
        self.channels[state.channel_id] = replace(
            known,
            name=known.name if state.name is None else state.name,
            parent=known.parent if state.parent is None else state.parent,
        )

    def find_channel(self, path: str) -> Channel | None:
        """Find a channel by its name or path, such as `Games/Chess`. Case does not matter.

        A path may begin at any channel. If several match, the oldest is returned.
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
