"""What a scripted model is asked, and what it writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from aforesaid.testing.faults import Fault


@dataclass(frozen=True, slots=True)
class Request:
    """A request, as it came over the wire."""

    method: str
    path: str
    """Without its query, such as `/v1/chat/completions`."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Their names in small letters."""
    body: Mapping[str, Any]
    """The JSON object, or the fields of a form; a file in a form is bytes."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of a chat."""
        return list(self.body.get("messages", ()))

    @property
    def asked(self) -> str:
        """What the last message says."""
        return str(self.messages[-1].get("content", "")) if self.messages else ""

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema that the reply has to fit, if there is one."""
        form = self.body.get("response_format")
        if not isinstance(form, dict) or form.get("type") != "json_schema":
            return None
        schema: dict[str, Any] = form.get("json_schema", {}).get("schema", {})
        return schema


@dataclass(frozen=True, slots=True)
class Writes:
    """A reply in detail. Where only the text matters, a string will do."""

    text: str
    finish: Literal["stop", "length", "content_filter"] | None = "stop"
    """Why it ends; None leaves it open, as if the connection broke."""
    usage: bool = True
    """Whether it says how many tokens were used."""
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Tools that it calls, by their names, with their arguments."""


Said: TypeAlias = "str | Mapping[str, Any] | Writes | Fault"
"""A text, a value that is written as JSON, a reply in detail, or a fault."""

Script: TypeAlias = "Iterable[Said] | Callable[[Request], Said]"
"""What to write: one after the other, or depending on what is asked."""


class ScriptEnded(Exception):
    """There were more requests than replies."""


@dataclass(slots=True)
class Play:
    """A script on its way."""

    script: Script
    used: int = 0
    _rest: Iterator[Said] | None = field(default=None, init=False)

    def next(self, request: Request) -> Said:
        """Return what comes next."""
        if callable(self.script):
            return self.script(request)
        if self._rest is None:
            self._rest = iter(self.script)
        for said in self._rest:
            self.used += 1
            return said
        if self.used:
            raise ScriptEnded(f"the script has ended after {self.used} replies")
        return _unscripted(request)


def _unscripted(request: Request) -> Said:
    if request.schema is None:
        return f"You said: {request.asked}"
    return json.dumps(example(request.schema))


_PLAIN: Final[Mapping[str, Any]] = {"string": "text", "integer": 1, "number": 1.0, "boolean": True, "null": None}


def example(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - any JSON
    """Return a small value that fits a JSON schema, always the same one. Limits are kept where they are simple."""
    root = root or schema
    if "$ref" in schema:
        return example(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if "anyOf" in schema:
        return example(schema["anyOf"][0], root)
    kind = schema.get("type")
    if kind == "object":
        return {name: example(inner, root) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [example(schema.get("items", {"type": "null"}), root)] * max(schema.get("minItems", 1), 1)
    if kind == "string":
        text = str(_PLAIN["string"]).ljust(schema.get("minLength", 0), "x")
        return text[: schema.get("maxLength", len(text))]
    if kind in {"integer", "number"}:
        return schema.get("minimum", _PLAIN[kind])
    return _PLAIN.get(str(kind))
