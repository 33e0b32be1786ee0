"""Mumble: text and voice, over TLS alone. Voice goes through the tunnel of the same connection."""

from aforesaid.bots.mumble.platform import Mumble

__all__ = ["Mumble"]
