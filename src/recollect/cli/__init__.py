"""The command line."""

from recollect.cli.app import app, main

__all__ = ["app", "main"]
