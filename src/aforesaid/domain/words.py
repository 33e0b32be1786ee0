"""The closed vocabularies of the domain."""

from __future__ import annotations

from typing import Literal, TypeAlias

Role = Literal["user", "assistant", "system", "tool"]

Within = Literal["user", "thread", "session"]
"""Where a read looks: what the user owns, everything in the thread, or one session."""

Category = Literal["schedule", "fact", "task", "preference", "reminder", "other"]

MemoryState = Literal["active", "superseded", "deactivated", "quarantined", "expired"]
"""Active; superseded by a newer one; deactivated by a person; quarantined for approval; expired."""

Trust = Literal["stated", "said", "reported"]
"""Told to be remembered; learned from what the person said; learned from what somebody else said."""

Timely = Literal["expiry", "reminder", "unseen"]
"""What the time of a memory can have come for; `unseen`: it was not said or changed since."""

SessionState = Literal["active", "idle", "closed"]

ComponentStatus = Literal["active", "failing", "initializing"]

AlertKind = Literal["failure", "capacity", "slowness", "errors", "backlog"]
"""A part fails; room runs out; answers are late; calls fail; what is derived from the log lags behind it."""

HitKind = Literal["message", "summary", "memory", "session"]
"""What a search can find."""

SettingValue: TypeAlias = str | int | float | bool | None
"""What a setting of a user can be set to."""
