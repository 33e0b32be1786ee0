"""Completes the OpenAPI description of the API."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI

from aforesaid.server.problems import Problem, Wrong

_description: Final[dict[str, Any]] = {}
"""The description, once it was made. All applications of a process have the same routes, and so share it."""


def describe(app: FastAPI) -> None:
    """Add the problem responses to the description of an application."""
    plain = app.openapi

    def whole() -> dict[str, Any]:
        if not _description:
            _description.update(_with_problems(plain()))
        app.openapi_schema = _description
        return _description

    app.openapi = whole  # type: ignore[method-assign] # as the framework documents it


def _with_problems(made: dict[str, Any]) -> dict[str, Any]:
    shapes = made.setdefault("components", {}).setdefault("schemas", {})
    for model in (Problem, Wrong):
        shapes[model.__name__] = model.model_json_schema(ref_template="#/components/schemas/{model}")
        shapes[model.__name__].pop("$defs", None)
    # The framework's own schema, which the problem schema replaces.
    for unused in ("HTTPValidationError", "ValidationError"):
        shapes.pop(unused, None)
    return made
