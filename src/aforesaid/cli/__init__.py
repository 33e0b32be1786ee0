"""The command line."""

from aforesaid.cli.app import app, main

__all__ = ["app", "main"]
