"""Everybody can use it: names for what cannot be seen, contrast for what can."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from panel.looking import PAGES, looking, needs_chromium

pytestmark = needs_chromium

CHECKS = (Path(__file__).parent / "checks.js").read_text(encoding="utf-8")
RIGHT: dict[str, list[str]] = {"nameless": [], "twice": [], "faint": []}


def test_every_page_can_be_read_and_heard_by_day_and_by_night(browser: Browser, shown: str) -> None:
    with looking(browser, shown) as looker:
        for name, path in PAGES.items():
            page = looker.open(path)
            page.evaluate("document.querySelectorAll('details').forEach((each) => each.open = true)")
            expect(page.locator(".htmx-request")).to_have_count(0)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                # What fades in is not there yet.
                page.evaluate("Promise.all(document.getAnimations().map((each) => each.finished))")
                assert page.evaluate(CHECKS) == RIGHT, (name, scheme)
            page.emulate_media(color_scheme="light")
            assert page.evaluate("document.documentElement.lang") == "en"
            landmarks = page.evaluate("['main', 'nav', 'h1'].map((each) => document.querySelectorAll(each).length > 0)")
            assert landmarks == [True, True, True], name
