"""Output of commands, for tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from typer.testing import Result

Run: TypeAlias = Callable[..., Result]


def ok(result: Result) -> str:
    """Return the output of a command that succeeded."""
    assert result.exit_code == 0, result.output
    return result.stdout


def as_json(result: Result) -> Any:  # noqa: ANN401
    """Return the JSON output of a command."""
    return json.loads(ok(result))
