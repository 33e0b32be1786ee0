"""Write docs/reference/clients.md: what is tested with which official client of the proxy.

Tests say it themselves: `@pytest.mark.client(protocol, client, *features)`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs/reference/clients.md"
TESTS = ROOT / "tests/server"
FEATURES = (
    "memory", "streaming", "hang-up", "tools", "images", "usage", "versions", "stored history", "provider's errors",
    "own errors", "model list",
)  # fmt: skip
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


def _marks() -> Iterator[tuple[str, str, list[str], str]]:
    """Yield protocol, client, features and test of each mark."""
    for file in sorted(TESTS.glob("test_proxy*.py")):
        for test in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(test, ast.FunctionDef):
                continue
            for call in (each for decorator in test.decorator_list for each in ast.walk(decorator)):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.client":
                    protocol, client, *features = (str(ast.literal_eval(each)) for each in call.args)
                    yield protocol, client, features, f"{file.stem}.py::{test.name}"


def _lines() -> Iterator[str]:
    tested: dict[tuple[str, str], dict[str, list[str]]] = {}
    for protocol, client, features, test in _marks():
        for feature in features:
            if feature not in FEATURES:
                sys.exit(f"{test} names the feature {feature!r}; the features are {', '.join(FEATURES)}")
            tested.setdefault((protocol, client), {}).setdefault(feature, []).append(test)
    yield HEADER
    yield f"| protocol | client | {' | '.join(FEATURES)} |"
    yield f"|---|---|{'---|' * len(FEATURES)}"
    for (protocol, client), features_ in sorted(tested.items()):
        yield f"| {protocol} | `{client}` | {' | '.join('✓' if each in features_ else '' for each in FEATURES)} |"
    yield ""


def page() -> str:
    """Return the page."""
    return "\n".join(_lines())


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
