"""The description of the API (OpenAPI), complete and no more."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from aforesaid.server.problems import Problem, Wrong


def describe(app: FastAPI) -> None:
    """Let an application describe its problems as well."""
    plain = app.openapi

    def whole() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = plain()
            shapes = made.setdefault("components", {}).setdefault("schemas", {})
            for model in (Problem, Wrong):
                shapes[model.__name__] = model.model_json_schema(ref_template="#/components/schemas/{model}")
                shapes[model.__name__].pop("$defs", None)
            # Declared by the framework for what is declared here as a problem.
            for unused in ("HTTPValidationError", "ValidationError"):
                shapes.pop(unused, None)
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = whole  # type: ignore[method-assign] # as the framework documents it
