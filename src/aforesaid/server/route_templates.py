"""The route of a request as a template, such as `/api/keys/{key_id}`: for logs and metrics, which may not have ids."""

from __future__ import annotations

from collections.abc import Sequence
from re import Pattern
from typing import Any, Final, NamedTuple

from fastapi import routing
from starlette.routing import BaseRoute, Mount, compile_path
from starlette.types import Scope

OTHER: Final = "other"
"""Stands for all paths without a route: everybody can make up as many as they like."""


def path_of(scope: Scope) -> str:
    """Return the path of a request below the place where our application is mounted."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


class _Known(NamedTuple):
    path: Pattern[str]
    methods: frozenset[str]
    template: str


class RouteTemplates:
    """The templates of an application's routes, with the prefixes of the routers that they are in."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        """Take the list of an application's routes. It is read at the first request, when it is complete."""
        self._routes = routes
        self._all: list[_Known] = []
        self._selected: dict[int, str] = {}

    def of(self, scope: Scope, path: str) -> str:
        """Return the template for a request, whether it was answered or refused; `other` if it has no route.

        `path` is that of the request when it came: where a mounted application answers, its scope changes. A request
        with a wrong method has the route of its path.
        """
        if not self._all:
            self._read()
        selected = self._selected.get(id(scope.get("route")))
        if selected is not None:
            return selected
        # It was refused before a route was selected, or its route is one of Starlette's own, which the scope does not
        # name.
        found = [known for known in self._all if known.path.match(path)]
        fitting = (known.template for known in found if not known.methods or scope["method"] in known.methods)
        return next(fitting, found[0].template if found else OTHER)

    def _read(self) -> None:
        # FastAPI selects the routes of an included router without their prefix; older versions copy and prefix them.
        unfold = getattr(routing, "iter_route_contexts", None)
        for found in self._routes if unfold is None else unfold(self._routes):
            route: Any = found
            original = getattr(route, "original_route", route)
            below = "/{path:path}" if isinstance(original, Mount) else ""
            methods = frozenset(getattr(route, "methods", None) or ())
            known = _Known(compile_path(route.path + below)[0], methods, route.path)
            self._all.append(known)
            self._selected[id(original)] = known.template
