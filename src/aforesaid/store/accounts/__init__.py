"""A folder for each account: short-term, mid-term, whole history and history context, and what else is known."""

from __future__ import annotations

from aforesaid.store.accounts.layout import AccountFolders

__all__ = ["AccountFolders"]
