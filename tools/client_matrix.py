"""Write docs/reference/clients.md: what is tested with which official client of the proxy and of MCP.

Tests say it themselves: `@pytest.mark.client(protocol, client, *features)`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs/reference/clients.md"
TESTS = ROOT / "tests/server"
FEATURES = (
    "memory", "streaming", "hang-up", "tools", "images", "usage", "versions", "stored history", "provider's errors",
    "own errors", "model list",
)  # fmt: skip
MCP_FEATURES = (
    "tools", "paging", "errors in words", "read-only keys", "resources", "completion", "prompts", "progress",
    "cancellation", "session ids", "OAuth metadata",
)  # fmt: skip
MCP = "MCP"
"""Protocols whose name begins with this are in the second table."""
HEADER = """# Tested clients

What is tested with the official clients of each protocol, unmodified, through the
[proxy](../how-to/use-the-openai-proxy.md) to a scripted model that records what it gets. `make clients` writes this
page from the tests; each ✓ is at least one test.

- **memory**: messages are stored, and a later conversation knows them.
- **streaming**: a stream comes back as the provider sent it.
- **hang-up**: if the client disconnects, the part that it received is stored.
- **tools**: calls and results pass through. **images**: they pass through, and leave a word in the log.
- **usage**: the provider's token counts arrive.
- **versions**: regenerated answers, edited questions and several choices are versions of one turn.
- **stored history**: a request that names an earlier reply instead of sending the history belongs to its conversation.
- **provider's errors**: they arrive as they were sent. **own errors**: errors of this server have the protocol's form.
"""
MCP_HEADER = """
## MCP

What is tested with clients of the [Model Context Protocol](../how-to/connect-an-agent-over-mcp.md).

- **tools**: they are listed, called, and answer with structured content. **paging**: long lists come in small pages.
- **errors in words**: a wrong call is answered with a sentence. **read-only keys** are offered no tools that write.
- **progress**, **cancellation**: of calls that take long. **session ids**: they are bound to the key.
- **OAuth metadata**: a client without a key learns where to sign in.
"""


def _marks() -> Iterator[tuple[str, str, list[str], str]]:
    """Yield protocol, client, features and test of each mark."""
    for file in sorted((*TESTS.glob("test_proxy*.py"), *TESTS.glob("test_mcp*.py"))):
        module = ast.parse(file.read_text(encoding="utf-8"))
        for test in module.body:
            if not isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for call in (each for decorator in test.decorator_list for each in ast.walk(decorator)):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.client":
                    # Their arguments may be constants of the test's module.
                    marked = eval(ast.unparse(call), {"pytest": pytest, **_constants(module)})  # noqa: S307
                    protocol, client, *features = marked.mark.args
                    yield protocol, client, features, f"{file.stem}.py::{test.name}"


def _constants(module: ast.Module) -> dict[str, object]:
    """Return the constants of a module that are texts, or tuples of them."""
    found: dict[str, object] = {}
    for each in module.body:
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            with suppress(ValueError):
                found[each.targets[0].id] = ast.literal_eval(each.value)
    return found


def _lines() -> Iterator[str]:
    tested: dict[tuple[str, str], dict[str, list[str]]] = {}
    for protocol, client, features, test in _marks():
        for feature in features:
            known = MCP_FEATURES if protocol.startswith(MCP) else FEATURES
            if feature not in known:
                sys.exit(f"{test} names the feature {feature!r}; the features are {', '.join(known)}")
            tested.setdefault((protocol, client), {}).setdefault(feature, []).append(test)
    yield HEADER
    yield from _table(FEATURES, {of: found for of, found in tested.items() if not of[0].startswith(MCP)})
    yield MCP_HEADER
    yield from _table(MCP_FEATURES, {of: found for of, found in tested.items() if of[0].startswith(MCP)})
    yield ""


def _table(features: tuple[str, ...], tested: dict[tuple[str, str], dict[str, list[str]]]) -> Iterator[str]:
    yield f"| protocol | client | {' | '.join(features)} |"
    yield f"|---|---|{'---|' * len(features)}"
    for (protocol, client), found in sorted(tested.items()):
        yield f"| {protocol} | `{client}` | {' | '.join('✓' if each in found else '' for each in features)} |"


def page() -> str:
    """Return the page."""
    return "\n".join(_lines())


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
