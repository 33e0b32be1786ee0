"""Take the screenshots of the README from the demo conversation in a real browser: `make pictures`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

import aforesaid
from aforesaid.cli.demo import conversation

PICTURES: Final = Path(__file__).parent.parent / "docs" / "pictures"
WIDTH: Final = 1280
MOST_BYTES: Final = 250_000
_LINK: Final = re.compile(r"http://\S+/login\?token=\S+")
_ASKED: Final = {
    "user": "ann",
    "text": "What should I cook when Inês and her son come?",
    "budget": "2000",
}
_SHOTS: Final = {
    "overview": ("/", ".grid > section:nth-of-type(3)"),
    "context": (f"/context?{urlencode(_ASKED)}", "#section-snippets > ol > li:nth-of-type(3)"),
    "person": ("/person?user=ann", ".about > .stack:last-child > section:nth-of-type(2)"),
}
"""The path of each page, and the element at which its screenshot ends."""
_FOLDED: Final = ("portrait", "habits", "summaries", "recent")
"""Sections of a context that are too long for a screenshot."""
_MARGIN: Final = 14

_OTHERS: Final = {
    "tom": ("I play the cello on Thursdays.", "My train leaves at seven on Friday.", "No mushrooms for me, please."),
    "ines": ("Afonso starts school in September.", "We come to Lisbon on the third weekend."),
}


def fill(path: Path) -> None:
    """Fill a memory with eight weeks of Ann's messages and a few of others."""
    with aforesaid.open(path) as memory:
        ann = memory.user("ann")
        for role, text, at in conversation():
            ann.add(role, text, at=at, name="Ann" if role == "user" else None)  # type: ignore[arg-type]
        now = datetime.now(UTC)
        for user, said in _OTHERS.items():
            for number, text in enumerate(said):
                memory.user(user).add("user", text, at=now - timedelta(days=3 * number + 1))
        ann.note("reminder", "Call Senhor Tavares before ten", importance=8, when=now + timedelta(days=1))
        ann.note("schedule", "Inês and her son arrive on Friday evening", importance=9)
        ann.note("task", "Ask the neighbour to feed the cat", importance=6)
        ann.note("other", "Keeps the big oven dish on top of the cupboard", importance=3)
        memory.upkeep()


@contextmanager
def served(path: Path) -> Iterator[str]:
    """Run `aforesaid serve` until the end of the block; yield the sign-in link."""
    command = [sys.executable, "-m", "aforesaid", "serve", "--store", str(path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"}) as server:  # noqa: S603
        try:
            found = next(filter(None, map(_LINK.search, server.stdout or ())), None)
            if found is None:
                raise RuntimeError("the server ended before it was ready")
            yield found[0]
        finally:
            server.terminate()


def take(page: Page, name: str, address: str, last: str) -> None:
    """Take a screenshot of a page down to an element, after it has loaded."""
    page.set_viewport_size({"width": WIDTH, "height": 900})
    page.goto(address)
    page.wait_for_load_state("networkidle")
    for section in _FOLDED:
        if page.locator(f"#section-{section}[open]").count():
            page.locator(f"#section-{section} > summary").click()
    page.evaluate("document.activeElement?.blur(), scrollTo(0, 0)")
    bottom = page.locator(last).evaluate("element => element.getBoundingClientRect().bottom")
    page.set_viewport_size({"width": WIDTH, "height": round(bottom + _MARGIN)})
    target = PICTURES / f"{name}.png"
    page.screenshot(path=target)
    size = target.stat().st_size
    if size > MOST_BYTES:
        raise RuntimeError(f"{target.name} has {size:,} bytes; at most {MOST_BYTES:,} are wanted")
    print(f"{target}: {size:,} bytes")


def main() -> None:
    """Fill a memory, serve it, and take every screenshot in light and dark mode."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        raise SystemExit("Chromium is missing: apt install chromium")
    PICTURES.mkdir(exist_ok=True)
    rooted = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="aforesaid-pictures-") as folder, sync_playwright() as driver:
        path = Path(folder) / "memory.db"
        fill(path)
        browser = driver.chromium.launch(executable_path=chromium, args=[*rooted, "--disable-dev-shm-usage"])
        with served(path) as link:
            for dark in (False, True):
                context = browser.new_context(
                    color_scheme="dark" if dark else "light", locale="en-GB", timezone_id="Europe/Lisbon"
                )
                page = context.new_page()
                page.goto(link)
                for name, (address, last) in _SHOTS.items():
                    take(page, f"{name}{'-dark' * dark}", link.partition("/login")[0] + address, last)
                context.close()
        browser.close()


if __name__ == "__main__":
    main()
