"""What commands say, as tests look at it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from typer.testing import Result

Run: TypeAlias = Callable[..., Result]


def ok(result: Result) -> str:
    """Return what a command printed that did what it should."""
    assert result.exit_code == 0, result.output
    return result.stdout


def as_json(result: Result) -> Any:  # noqa: ANN401
    """Return what a command printed for scripts."""
    return json.loads(ok(result))
