"""Mumble: text and voice, over TLS alone. Voice goes through the tunnel of the same connection."""

from recollect.bots.mumble.platform import Mumble

__all__ = ["Mumble"]
