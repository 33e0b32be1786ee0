"""Write clients/typescript/types/api.d.ts from the OpenAPI description of the server: `make rest`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from aforesaid.memory import Memory
from aforesaid.server import create_app

TARGET: Final = Path(__file__).parent.parent / "clients" / "typescript" / "types" / "api.d.ts"
Schema: TypeAlias = dict[str, Any]

_HEAD: Final = """// Written by `make rest` from the server's OpenAPI description.
// A test fails when it is not up to date.
"""
_REFERENCE: Final = "#/components/schemas/"
_BYTES: Final = "string | Blob | ArrayBuffer | ArrayBufferView<ArrayBuffer> | ReadableStream<Uint8Array>"
_SIMPLE: Final = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_TEXT: Final = "text/plain"
_STREAM: Final = "ReadableStream<Uint8Array>"
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$]*")
_PLACES: Final = ("path", "query", "header")


def client_types() -> str:
    """Return the declarations: one type per schema, and `Routes` with the options and the result of every route."""
    return _Writer(create_app(cast("Memory", None)).openapi()).text()


class _Writer:
    """Writes the declarations of one OpenAPI description."""

    def __init__(self, description: Schema) -> None:
        self._paths: Schema = description["paths"]
        self._schemas: Schema = description["components"]["schemas"]
        self._names = _short_names(self._schemas)
        self._sent = self._sent_schemas()

    def text(self) -> str:
        schemas = [self._declaration(name) for name in sorted(self._schemas, key=self._names.__getitem__)]
        routes = [
            self._route(method, path, each) for path, all_ in self._paths.items() for method, each in all_.items()
        ]
        listed = "\n".join(routes)
        return "\n".join(
            [_HEAD, *schemas, f"/** Every route of the server. */\nexport interface Routes {{\n{listed}\n}}\n"]
        )

    def _sent_schemas(self) -> set[str]:
        """Return the names of schemas that are part of a request. Their fields with a default may be left out."""
        found: set[str] = set()
        waiting = [each.get("requestBody", {}) for methods in self._paths.values() for each in methods.values()]
        while waiting:
            for name in set(_references(waiting.pop())) - found:
                found.add(name)
                waiting.append(self._schemas[name])
        return found

    def _declaration(self, name: str) -> str:
        schema = self._schemas[name]
        comment = _comment(schema.get("description"), "")
        if "properties" not in schema:
            return f"{comment}export type {self._names[name]} = {self._type(schema)};\n"
        return f"{comment}export interface {self._names[name]} {self._object(schema, sent=name in self._sent)}\n"

    def _object(self, schema: Schema, indent: str = "", *, sent: bool) -> str:
        lines = []
        for name, member in schema["properties"].items():
            # The server writes every field of a response, also those that have a default.
            mark = "?" if sent and name not in schema.get("required", ()) else ""
            lines.append(_comment(member.get("description"), f"{indent}  "))
            lines.append(f"{indent}  {_key(name)}{mark}: {self._type(member, indent + '  ')};\n")
        return "{\n" + "".join(lines) + indent + "}"

    def _type(self, schema: Schema, indent: str = "") -> str:
        if "$ref" in schema:
            return self._names[schema["$ref"].removeprefix(_REFERENCE)]
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return " | ".join(json.dumps(value) for value in schema["enum"])
        if "anyOf" in schema:
            return " | ".join(dict.fromkeys(self._type(each, indent) for each in schema["anyOf"]))
        kind = schema.get("type")
        if schema.get("format") == "binary":
            return _BYTES
        if kind == "array":
            inner = self._type(schema.get("items", {}), indent)
            return f"({inner})[]" if " | " in inner else f"{inner}[]"
        if kind == "object" and "properties" in schema:
            return self._object(schema, indent, sent=False)
        if kind == "object":
            values = schema.get("additionalProperties")
            return f"Record<string, {self._type(values, indent) if isinstance(values, dict) and values else 'unknown'}>"
        return _SIMPLE[kind] if isinstance(kind, str) else "unknown"

    def _route(self, method: str, path: str, operation: Schema) -> str:
        members = []
        for place in _PLACES:
            given = [each for each in operation.get("parameters", ()) if each["in"] == place]
            if given:
                needed = any(each.get("required") for each in given)
                name = "headers" if place == "header" else place
                members.append(f"      {name}{'' if needed else '?'}: {self._parameters(given)};\n")
        if "requestBody" in operation:
            kind, body = next(iter(operation["requestBody"]["content"].items()))
            sent = self._type(body["schema"]) if kind == "application/json" else _BYTES
            members.append(f"      body{'' if operation['requestBody'].get('required') else '?'}: {sent};\n")
        options = "{\n" + "".join(members) + "    }" if members else "{}"
        route = json.dumps(f"{method.upper()} {path}")
        return (
            f"{_comment(operation['summary'], '  ')}  {route}: {{\n    options: {options};\n"
            f"    result: {self._result(operation)};\n  }};"
        )

    def _parameters(self, given: list[Schema]) -> str:
        lines = []
        for each in given:
            # A parameter that is left out has its default; null cannot be sent.
            kind = " | ".join(part for part in self._type(each["schema"]).split(" | ") if part != "null")
            lines.append(_comment(each.get("description"), " " * 8))
            lines.append(f"        {_key(each['name'])}{'' if each.get('required') else '?'}: {kind};\n")
        return "{\n" + "".join(lines) + "      }"

    def _result(self, operation: Schema) -> str:
        kinds = []
        for status, response in operation["responses"].items():
            for media, content in response.get("content", {}).items():
                if status.startswith("2"):
                    other = "string" if media == _TEXT else _STREAM
                    kinds.append(self._type(content["schema"], "    ") if media == "application/json" else other)
        return " | ".join(dict.fromkeys(kinds)) or "undefined"


def _short_names(schemas: Schema) -> dict[str, str]:
    """Return a name for each schema: without `Shape` at its end, unless another schema has that name."""
    return {
        name: short if (short := name.removesuffix("Shape")) == name or short not in schemas else name
        for name in schemas
    }


def _references(value: object) -> Iterator[str]:
    """Yield the names of schemas that a part of the description refers to."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].removeprefix(_REFERENCE)
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def _key(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else json.dumps(name)


def _comment(text: str | None, indent: str) -> str:
    if not text:
        return ""
    flat = " ".join(text.split()).replace("*/", "* /")
    return f"{indent}/** {flat} */\n"
