"""Mumble: text and voice, over TLS alone. Voice goes through the tunnel of the same connection."""
