"""Logging for commands that run until they are stopped."""

from __future__ import annotations

import logging
from typing import Annotated, Final

import typer

from aforesaid.errors import InvalidInput, quoted

LogLevel = Annotated[
    str, typer.Option("--log-level", help="The least severe level to print: debug, info, warning or error.")
]
_LEVELS: Final = ("debug", "info", "warning", "error")


def write_log(level: str) -> None:
    """Write log records of this level and above to standard error, with secrets removed."""
    from aforesaid.models.client import SecretFilter  # noqa: PLC0415 - only long-running commands write a log

    if level not in _LEVELS:
        raise InvalidInput(f"unknown log level {quoted(level)}; use one of {', '.join(_LEVELS)}")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.addFilter(SecretFilter())
    logging.basicConfig(level=level.upper(), handlers=[handler])
