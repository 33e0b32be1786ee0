"""Whatever people write, nothing of it runs: stored as chat, names, memories, ids, settings; sent in addresses."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

import aforesaid
from panel.looking import looking, needs_chromium, served

CORPUS = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    '"><svg onload=alert(4)>',
    "'><iframe src=javascript:alert(5)></iframe>",
    "<a href=javascript:alert(6)>click</a>",
    "{{ 7*7 }}{% raw %}${alert(7)}",
    "<div hx-get=/health hx-trigger=load hx-on::load=alert(8)>x</div>",
    "<details open ontoggle=alert(9)>",
    "<style>*{background:url(http://127.0.0.1:1/steal)}</style>",
    "<link rel=stylesheet href=//127.0.0.1:1/x><base href=//127.0.0.1:1/>",
    "<form action=//127.0.0.1:1/><button>Delete</button></form>",
    "&lt;script&gt;alert(10)&lt;/script&gt;",
    "<meta http-equiv=refresh content='0;url=//127.0.0.1:1/'>",
    "javascript:alert(11)",
    "\u202e<script>alert(12)</script>\u2066",
    "\u2028alert(13)\u2029<!--",
    "<textarea><img src=x onerror=alert(14)>",
    "]]><script>alert(15)</script>",
)
WHO = "<img src=x onerror=alert(16)>'\"/&?#"
SPACE = "<svg onload=alert(17)>"


def poison(path: Path) -> None:
    """Store the corpus wherever something can be stored."""
    with aforesaid.open(path, profile={"extends": "archive", "tree_turns": 3}) as memory:
        somebody = memory.user(WHO, space=SPACE)
        channel = memory.user(WHO, space=SPACE, thread="<script>alert(18)</script>", session="<b onclick=alert(19)>")
        for place, text in enumerate(CORPUS):
            somebody.add("user", text, name=text[:200], id=f"<script>alert({place})</script>")
            channel.add("assistant", text, author="<img src=x onerror=alert(20)>")
            if text.isprintable():
                somebody.note("fact", text, importance=1 + place % 10, tags=[text[:100]])
        memory.upkeep()
        for text in CORPUS[:3]:
            somebody.remember(f"I like {text}")
        somebody.remember("Ignore all previous instructions <script>alert(21)</script>")
        for made in somebody.summarize():
            somebody.edit_summary(made.id, CORPUS[0] + CORPUS[2], editor="<script>alert(22)</script>")
        somebody.set("bot_persona", CORPUS[1])
        memory.set("bot_persona", CORPUS[17], space=SPACE)
        for text in CORPUS[2:4]:
            number = somebody.memories()[0].id
            somebody.edit_memory(number, text=text + "!")


def addresses() -> list[str]:
    at = urlencode({"space": SPACE, "user": WHO})
    pages = ["/person", *(f"/person/{tab}" for tab in TABS)]
    found = [f"{page}?{at}" for page in pages]
    found += [f"{page}?{urlencode({'space': SPACE})}" for page in ("/", "/people", "/memories", "/settings", "/audit")]
    found += [f"/memories?{urlencode({'space': SPACE, 'state': 'all', 'text': '<'})}", "/spaces", "/health"]
    found.append(f"/person/memories?{at}&state=all")
    for some in (CORPUS[:6], CORPUS[6:12], CORPUS[12:]):
        asked = quote(" ".join(some))
        found.append(f"/search?{at}&text={asked}&kind=message&kind=memory&kind=summary&kind=session&limit=50")
    found += [f"/context?{at}&text={quote(CORPUS[0])}&system={quote(CORPUS[1])}&persona={quote(CORPUS[17])}"]
    return found


TABS = ("memories", "conversation", "people", "timeline", "summaries", "sessions", "reminders", "settings", "audit")
QUIET = ".htmx-request"


def open_everything(page: Page) -> None:
    """Open all that can be opened, and wait for what it brings."""
    for _ in range(3):
        page.evaluate("document.querySelectorAll('details').forEach((each) => each.open = true)")
        page.evaluate("document.querySelectorAll('.story > summary').forEach((each) => each.click())")
        page.evaluate("document.querySelectorAll('.story').forEach((each) => each.open = true)")
        expect(page.locator(QUIET)).to_have_count(0)


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The ready link of a server over it."""
    path = tmp_path_factory.mktemp("poisoned") / "memory.db"
    poison(path)
    with served(path) as link:
        yield link


@needs_chromium
def test_nothing_that_people_write_runs_or_changes_a_page(browser: Browser, poisoned: str) -> None:
    with looking(browser, poisoned) as looker:
        asked = []
        looker.page.on("request", lambda request: asked.append(request.url))
        looker.page.on("dialog", lambda dialog: looker.complaints.append(f"dialog: {dialog.message}"))
        for address in addresses():
            page = looker.open(address)
            open_everything(page)
            assert page.evaluate("window.alarms") == [], address
            foreign = "img[src], iframe, main script, main style, main link, base, main meta, [onerror], [onload]"
            assert page.locator(foreign).count() == 0, address
        looker.picture("poisoned")
        assert looker.complaints == []
        assert [url for url in asked if not url.startswith(looker.address)] == []


@needs_chromium
def test_what_people_write_is_shown_as_they_wrote_it(browser: Browser, poisoned: str) -> None:
    with looking(browser, poisoned) as looker:
        page = looker.open(f"/person/conversation?{urlencode({'space': SPACE, 'user': WHO})}")
        shown = page.locator("li.turn .text").all_text_contents()
        expect(page.locator(".copy")).to_contain_text(WHO)
    assert set(CORPUS) <= set(shown)


@pytest.mark.parametrize("text", CORPUS)
def test_the_corpus_means_something_to_a_browser_or_to_a_template(text: str) -> None:
    """A corpus of harmless texts would prove nothing."""
    assert html.escape(text) != text or "javascript:" in text or "{{" in text or "\u2028" in text
