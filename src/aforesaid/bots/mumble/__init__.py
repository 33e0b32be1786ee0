"""Mumble: text and voice over one TLS connection. Voice is tunnelled through TCP; UDP is not used."""

from aforesaid.bots.mumble.platform import Mumble

__all__ = ["Mumble"]
