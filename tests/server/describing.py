"""The OpenAPI description, and checks of responses against it."""

from __future__ import annotations

from typing import Any, Final, cast

import schemathesis
import schemathesis.transport
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from aforesaid.memory import Memory
from aforesaid.server import create_app

# Loads the modules that send requests. Later, pytest would parse them while a server's thread may parse something too,
# which Python 3.11 cannot do at the same time ("AST constructor recursion depth mismatch").
schemathesis.transport.get(None)

load_all_checks()
CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SCHEMA: Final = create_app(cast("Memory", None)).openapi()
ENDLESS: Final = "/api/events"
"""Routes with separate tests."""
OPERATIONS: Final = {
    f"{method.upper()} {path}": (path, method)
    for path, methods in SCHEMA["paths"].items()
    for method in methods
    if path != ENDLESS
}
_DESCRIBED: Final[Any] = schemathesis.openapi.from_dict(SCHEMA)


def requests(operation: str, *modes: GenerationMode) -> st.SearchStrategy[Any]:
    """Return requests for an operation: such as fit its description, and such as do not."""
    path, method = OPERATIONS[operation]
    strategies = (_DESCRIBED[path][method].as_strategy(generation_mode=mode) for mode in modes or GenerationMode)
    return st.one_of(*strategies)


def so_many(examples: int) -> settings:
    """Return how hypothesis is to go about it: nothing is kept, and a slow server is not a fault."""
    return settings(
        max_examples=examples,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
        database=None,
    )
