"""Requests to a scripted model, and the scripts of its replies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from aforesaid.testing.faults import Fault


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the server received it."""

    method: str
    path: str
    """The path without the query, such as `/v1/chat/completions`."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Headers by lower-case name."""
    body: Mapping[str, Any]
    """The JSON object, or the fields of a form; a file in a form is bytes."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of a chat: the items of a Responses request, and a prompt as a message of the user."""
        given = next((self.body[name] for name in ("messages", "input", "prompt") if name in self.body), ())
        if isinstance(given, str):
            return [{"role": "user", "content": given}]
        return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []

    @property
    def asked(self) -> str:
        """The text of the last message."""
        content = self.messages[-1].get("content", "") if self.messages else ""
        if not isinstance(content, list):
            return str(content)
        return "\n\n".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)

    @property
    def question(self) -> str:
        """The last paragraph of the last message: what was asked, without what a context puts above it."""
        return self.asked.rpartition("\n\n")[2]

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema of the reply, or None."""
        form = self.body.get("response_format")
        if not isinstance(form, dict) or form.get("type") != "json_schema":
            return None
        schema: dict[str, Any] = form.get("json_schema", {}).get("schema", {})
        return schema


@dataclass(frozen=True, slots=True)
class Writes:
    """A reply with details. If only the text matters, use a string."""

    text: str
    finish: Literal["stop", "length", "content_filter"] | None = "stop"
    """The finish reason; None for a reply that ends without one, like a broken connection."""
    usage: bool = True
    """Whether the reply includes token usage."""
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Tool calls: names and arguments."""
    more: tuple[str, ...] = ()
    """Texts of further choices, for requests with `n`."""


Said: TypeAlias = "str | Mapping[str, Any] | Writes | Fault"
"""A reply: a text, a value to write as JSON, a detailed reply, or a fault."""

Script: TypeAlias = "Iterable[Said] | Callable[[Request], Said]"
"""Replies in order, or a function of the request."""


class ScriptEnded(Exception):
    """The script has no replies left."""


@dataclass(slots=True)
class Play:
    """A script and the current position in it."""

    script: Script
    used: int = 0
    _rest: Iterator[Said] | None = field(default=None, init=False)

    def next(self, request: Request) -> Said:
        """Return the next reply. Raises ScriptEnded after the last one."""
        if callable(self.script):
            return self.script(request)
        if self._rest is None:
            self._rest = iter(self.script)
        for said in self._rest:
            self.used += 1
            return said
        if self.used:
            raise ScriptEnded(f"the script has ended after {self.used} replies")
        if request.schema is None:
            return f"You said: {request.asked}"
        return json.dumps(example(request.schema))


_PLAIN: Final[Mapping[str, Any]] = {"string": "text", "integer": 1, "number": 1.0, "boolean": True, "null": None}


def example(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - any JSON
    """Return a small value that fits a JSON schema, always the same one. Only simple limits are respected."""
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
