"""The closed vocabularies of the domain."""

from __future__ import annotations

from typing import Literal

Role = Literal["user", "assistant", "system", "tool"]

Within = Literal["user", "thread", "session"]
"""Where a read looks: what the user owns, everything in the thread, or one session."""

Category = Literal["schedule", "fact", "task", "preference", "reminder", "other"]

SessionState = Literal["active", "idle", "closed"]

ComponentStatus = Literal["active", "failing", "initializing"]

HitKind = Literal["message", "summary", "memory", "session"]
"""What a search can find."""
