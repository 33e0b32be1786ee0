"""Completes the OpenAPI description of the API."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from aforesaid.server.problems import Problem, Wrong


def describe(app: FastAPI) -> None:
    """Add the problem responses to the description of an application."""
    plain = app.openapi

    def whole() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = plain()
            shapes = made.setdefault("components", {}).setdefault("schemas", {})
            for model in (Problem, Wrong):
                shapes[model.__name__] = model.model_json_schema(ref_template="#/components/schemas/{model}")
                shapes[model.__name__].pop("$defs", None)
            # The framework's own schema, which the problem schema replaces.
            for unused in ("HTTPValidationError", "ValidationError"):
                shapes.pop(unused, None)
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = whole  # type: ignore[method-assign] # as the framework documents it
