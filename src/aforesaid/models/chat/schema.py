"""Convert a Pydantic model to a JSON schema that providers accept."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pydantic import BaseModel

_LIMITS: Final = frozenset(
    {
        *("minLength", "maxLength", "pattern", "format"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "propertyNames"),
    }
)
"""Schema keywords that local servers support, but OpenAI and others reject."""

_DROPPED: Final = frozenset({"default", "title", "discriminator", "examples", "$comment"})


@dataclass(frozen=True, slots=True)
class Schema:
    """The JSON schema of a reply."""

    name: str
    full: str
    """The schema as JSON, with all limits."""
    plain: str
    """The schema without limits, for providers that support types only. Replies are validated anyway."""
    strict: bool
    """Whether the schema fits OpenAI's strict mode, which requires all keys to be known."""


@cache
def schema_of(shape: type[BaseModel]) -> Schema:
    """Return the schema of a shape."""
    whole = shape.model_json_schema()
    if "$ref" in whole:
        # A recursive shape: providers require an object at the root instead of a reference.
        whole = {**whole["$defs"][whole["$ref"].rpartition("/")[2]], "$defs": whole["$defs"]}
    full, plain = _walk(whole, _full), _walk(whole, _plain)
    return Schema(shape.__name__, json.dumps(full), json.dumps(plain), _closed(full))


def _full(node: dict[str, Any]) -> dict[str, Any]:
    return node


def _plain(node: dict[str, Any]) -> dict[str, Any]:
    """Say limits in words."""
    limits = [f"{key} {node.pop(key)}" for key in sorted(_LIMITS & node.keys())]
    if limits:
        node["description"] = " ".join(filter(None, (node.get("description"), f"({', '.join(limits)})")))
    return node


def _walk(node: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(node, list):
        return [_walk(item, change) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        # Strict mode wants a reference to stand alone.
        return {"$ref": node["$ref"]}
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key in _DROPPED:
            continue
        if key in {"properties", "$defs"}:
            # Their keys are names, not words of the schema.
            made[key] = {name: _walk(inner, change) for name, inner in value.items()}
        elif key in {"enum", "const"}:
            made[key] = value
        else:
            made["anyOf" if key == "oneOf" else key] = _walk(value, change)
    if "properties" in made:
        made["required"] = list(made["properties"])
        made.setdefault("additionalProperties", False)
    return change(made)


def _closed(node: Any) -> bool:  # noqa: ANN401 - any JSON
    if isinstance(node, list):
        return all(_closed(item) for item in node)
    if not isinstance(node, dict):
        return True
    if node.get("type") == "object" and node.get("additionalProperties") is not False:
        return False
    return all(_closed(value) for value in node.values())
