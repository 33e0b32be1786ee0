"""axe-core, the usual checker of accessibility, from the package `axe-playwright-python`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page

_SPEC: Final = find_spec("axe_playwright_python")
needs_axe: Final = pytest.mark.skipif(_SPEC is None, reason="axe-playwright-python is not installed")


def violations(page: Page) -> list[str]:
    """Return what axe-core finds wrong with a page that is open."""
    assert _SPEC is not None
    assert _SPEC.origin is not None
    # Evaluated over the debugger, which the page's Content-Security-Policy does not concern.
    if not page.evaluate("'axe' in window"):
        page.evaluate((Path(_SPEC.origin).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [f"{each['id']}: {[node['target'] for node in each['nodes']][:5]}" for each in found]


def violations_by_day_and_by_night(page: Page) -> list[str]:
    """Return what axe-core finds wrong with a page that is open, in light and in dark colours."""
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.evaluate("Promise.all(document.getAnimations().map((each) => each.finished))")
        found += [f"{scheme}: {each}" for each in violations(page)]
    page.emulate_media(color_scheme="light")
    return found
