"""Literal types: the fixed values of roles, categories, states and kinds."""

from __future__ import annotations

from typing import Literal, TypeAlias

Role = Literal["user", "assistant", "system", "tool"]

Within = Literal["user", "thread", "session"]
"""Where a read looks: what the user owns, everything in the thread, or one session."""

Category = Literal["schedule", "fact", "task", "preference", "reminder", "other"]

Kind = Literal["fact", "preference", "event", "schedule", "task", "reminder", "relationship", "instruction"]
"""What a memory is. `event`: something dated, past or to come, that does not expire; `schedule`: an appointment;
`instruction`: a standing request to the assistant. The order is that of the outputs of the salience model."""

CategoryOrKind = Literal[
    "schedule", "fact", "task", "preference", "reminder", "other", "event", "relationship", "instruction"
]
"""What a memory that is written by hand can be called: by its category or by its kind."""

MemoryState = Literal["active", "superseded", "deactivated", "quarantined", "expired"]
"""Active; superseded by a newer one; deactivated by a person; quarantined for approval; expired."""

Trust = Literal["stated", "said", "reported"]
"""`stated`: asked to be remembered. `said`: extracted from the user's messages. `reported`: from other people's."""

Timely = Literal["expiry", "reminder", "unseen"]
"""Why a memory is due: it expires, it reminds, or (`unseen`) it was not stated or changed for a long time."""

SessionState = Literal["active", "idle", "closed"]

ComponentStatus = Literal["active", "failing", "initializing"]

AlertKind = Literal["failure", "capacity", "slowness", "errors", "backlog"]
"""A component fails; disk space runs out; calls are slow; calls fail; background work lags behind."""

HitKind = Literal["message", "summary", "memory", "session"]
"""What a search can find."""

SettingValue: TypeAlias = str | int | float | bool | None
"""The type of a setting's value."""

ExportFormat = Literal["auto", "jsonl", "markdown"]
"""How an export is written. `auto`: Markdown if the file's name ends in `.md`, otherwise JSON Lines."""
