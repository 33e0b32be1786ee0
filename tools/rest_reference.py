"""Write docs/reference/rest.md and the types of the TypeScript client from the OpenAPI description: `make rest`."""

from __future__ import annotations

import re
import runpy
from collections import Counter
from pathlib import Path
from typing import Any, Final, cast

from aforesaid.memory import Memory
from aforesaid.server import create_app

_Field = tuple[str, str, str, str]
"""A parameter or field of a body: its name, where it is, its type and its meaning."""
PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "rest.md"
_OF_ALL: Final = frozenset({"400", "401", "403", "404", "409", "412", "413", "415", "422", "429", "502", "503", "507"})
_MANY: Final = 4
"""A field that so many routes take alike is described once."""
_NAMED: Final = re.compile(r"\[(\w+)\]\(#values\)")
_HEAD: Final = """# REST API

<!-- Written by `make rest`; a test fails when it is not up to date. -->

`aforesaid serve` listens on `http://127.0.0.1:5002`. Every request needs a key: `Authorization: Bearer …`. [Run the
server](../how-to/run-the-server.md) shows how to start it and make keys. Client generators can use the OpenAPI
description at `/openapi.json`.

**Errors** are problem details (`application/problem+json`) with `type` (such as `urn:aforesaid:problem:conflict`),
`title`, `status` and `detail`. If fields of the request are invalid, `errors` names them (at most 100): `where` is the
place and name, such as `body.importance` or `query.user`, and `what` says what is wrong with it. Every route can
return these, in addition to those it lists: 400 and 422 invalid input; 401 missing or unknown key; 403 the key's role
does not allow this; 404 not found, or not visible to this key; 409 conflicting change, or not possible in the present
state; 413 body too large; 415 a JSON body without the header `Content-Type: application/json`; 429 too many requests
(`Retry-After` says when to try again); 502 and 503 a model or the store is unavailable; 507 the disk is full.

**Unknown input** is refused with 422 by the routes below `/api` on this page: parameters and fields that a route does
not have (the error lists those it has), a parameter sent twice that is not a list, and a body where it takes none.

**Pagination.** Lists have a field `next`; pass it as `cursor` to get the next page. It is null on the last page.

**Retries.** A `POST` with an `Idempotency-Key` that was already processed is not processed again; the response then
has the header `Idempotency-Replayed: true`, even after a restart. For messages, the key becomes the message id, so
it works for as long as the message exists. For other requests, the server keeps about the last 64 keys of each
user. If it crashes after processing such a request but before recording its key, a retry is processed a second
time.

**Concurrent changes.** Memories have an `ETag`. Send it as `If-Match`; the response is 412 if the memory was
changed in the meantime.

**Chats and threads.** `chat` names one of several private chats of a user, and `thread` a channel that users share.
[The glossary](glossary.md#chats-and-threads) explains the difference. A web app sends the id of each conversation as
`chat`.

**Spaces.** A key is limited to one space, or valid for all. With a key for all spaces, `space` selects one.
"""


def reference() -> str:
    """Return the page: what many routes share, the routes, and the values that they return."""
    schema = create_app(cast("Memory", None)).openapi()
    routes = [
        (operation.get("tags", ["other"])[0], f"{method.upper()} {path}", operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    fields = {name: _fields(schema, operation) for _, name, operation in routes}
    times = Counter(field for each in fields.values() for field in each)
    shared = [field for field, number in times.items() if number >= _MANY]
    groups: dict[str, list[str]] = {}
    for tag, name, operation in routes:
        groups.setdefault(tag, []).append(_operation(schema, name, operation, fields[name], shared))
    parts = [f"## {tag.capitalize()}\n\n" + "\n".join(entries) for tag, entries in groups.items()]
    head = "## What many routes take\n\n" + "\n".join(_table(shared)) + "\n"
    return _HEAD + "\n" + "\n".join([head, *parts, _values(schema, "".join(parts))])


def _values(schema: dict[str, Any], text: str) -> str:
    """Return the fields of every value that the text names, and of those that are in these."""
    shapes = {name.removesuffix("Shape"): each for name, each in schema["components"]["schemas"].items()}
    rows: dict[str, str] = {}
    waiting = re.findall(_NAMED, text)
    while waiting:
        name = waiting.pop(0)
        if name not in rows:
            inner = {key: _type(schema, each) for key, each in shapes[name]["properties"].items()}
            of_values = {key: each for key, each in inner.items() if re.search(_NAMED, each)}
            rows[name] = ", ".join(f"`{key}`" + (f" ({of_values[key]})" if key in of_values else "") for key in inner)
            waiting += re.findall(_NAMED, " ".join(of_values.values()))
    table = [f"| {name} | {_NAMED.sub(lambda found: found[1], rows[name])} |" for name in sorted(rows)]
    return "\n".join(["## Values", "", "| value | fields |", "|---|---|", *table]) + "\n"


def _fields(schema: dict[str, Any], operation: dict[str, Any]) -> list[_Field]:
    fields = [
        (
            each["name"],
            each["schema"],
            each.get("required", False),
            f"{each.get('description', '')}".strip(),
            each["in"],
        )
        for each in operation.get("parameters", ())
    ]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is not None:
        shape = _resolved(schema, body)
        fields += [
            (name, inner, name in shape.get("required", ()), inner.get("description", ""), "body")
            for name, inner in shape["properties"].items()
        ]
    return [
        (
            f"`{name}`{' (required)' if required else ''}",
            where,
            _type(schema, inner) if required else _type(schema, inner).removesuffix(" or null"),
            _cell(words),
        )
        for name, inner, required, words, where in fields
    ]


def _operation(
    schema: dict[str, Any], name: str, operation: dict[str, Any], fields: list[_Field], shared: list[_Field]
) -> str:
    lines = [f"### {name}", "", _flowing(operation["description"]), ""]
    if own := [each for each in fields if each not in shared]:
        lines += [*_table(own), ""]
    also = ", ".join(each[0] for each in fields if each in shared)
    takes = f"{'Also takes' if own else 'Takes'} {also}. " if also else ""
    lines.append(f"{takes}Answers {', '.join(_answers(schema, operation))}.")
    return "\n".join(lines) + "\n"


def _table(fields: list[_Field]) -> list[str]:
    return ["| name | in | type | meaning |", "|---|---|---|---|", *(f"| {' | '.join(each)} |" for each in fields)]


def _answers(schema: dict[str, Any], operation: dict[str, Any]) -> list[str]:
    told = []
    for status, answer in operation["responses"].items():
        if status in _OF_ALL:
            continue
        content = next(iter(answer.get("content", {}).items()), None)
        if content is None:
            told.append(f"{status}")
        elif content[0] == "application/json":
            told.append(f"{status} with {_type(schema, content[1]['schema'])}")
        else:
            told.append(f"{status} with `{content[0]}`")
    return told


def _type(schema: dict[str, Any], shape: dict[str, Any]) -> str:
    if "anyOf" in shape:
        return " or ".join(dict.fromkeys(_type(schema, each) for each in shape["anyOf"]))
    if "$ref" in shape:
        name = shape["$ref"].rpartition("/")[2]
        inner = schema["components"]["schemas"][name]
        if "properties" in inner:
            return f"[{name.removesuffix('Shape')}](#values)"
        return _type(schema, inner)
    if "enum" in shape or "const" in shape:
        return ", ".join(f"`{each}`" for each in shape.get("enum", [shape.get("const")]))
    if shape.get("type") == "array":
        return f"list of {_type(schema, shape.get('items', {}))}"
    return {"date-time": "date and time", "date": "date"}.get(shape.get("format", ""), str(shape.get("type", "any")))


def _resolved(schema: dict[str, Any], shape: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = schema["components"]["schemas"][shape["$ref"].rpartition("/")[2]]
    return found


def _flowing(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    types = runpy.run_path(str(Path(__file__).with_name("typescript_types.py")))
    for target, text in ((PAGE, reference()), (types["TARGET"], types["client_types"]())):
        target.write_text(text, encoding="utf-8")
        print(f"wrote {target}")
