"""There is room for what is long, for what is written from right to left, and for nothing at all."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

import aforesaid
from panel.looking import Looker, looking, needs_chromium, served
from panel.test_access import CHECKS, RIGHT

pytestmark = needs_chromium

LONG = "x" * 120
ARABIC = "دانة الخطيب"
TABS = (
    "",
    "/memories?state=all",
    "/conversation",
    "/people",
    "/days",
    "/timeline",
    "/summaries",
    "/sessions",
    "/reminders",
    "/settings",
    "/audit",
)
OVERFLOW = "document.scrollingElement.scrollWidth - innerWidth"


def of(user: str, space: str = "default") -> list[str]:
    """Return the addresses of all pages about somebody."""
    at = f"user={quote(user)}&space={space}"
    pages = [f"/person{tab}{'&' if '?' in tab else '?'}{at}" for tab in TABS]
    found = f"/search?{at}&text=word&kind=message&kind=memory"
    return [*pages, found, f"/context?{at}&text=word&budget=600"]


EVERYWHERE = ("/", "/people", "/memories?state=all", "/search", "/context", "/settings", "/audit", "/data", "/health")
PAGES = {
    "long": [*EVERYWHERE, *of(LONG)],
    "from right to left": of(ARABIC),
    "empty": [*(f"{path}{'&' if '?' in path else '?'}space=new" for path in EVERYWHERE), *of("quiet", "still")],
    "wrong": ["/nowhere", "/memories/9999", "/memories?category=nonsense", "/person"],
}


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The ready link of a server over what is hard to show."""
    path = tmp_path_factory.mktemp("hard") / "memory.db"
    with aforesaid.open(path) as memory:
        for name, words in ((LONG, "unbroken" * 60), (ARABIC, "تحب القهوة بالهيل")):
            somebody = memory.user(name)
            somebody.add("user", f"word {words}", name=name)
            memory.user(name, thread="t" * 200).add("assistant", words * 5)
            somebody.note("reminder", words, importance=7, tags=[name[:90]])
            somebody.remember(f"I like {words}")
            somebody.summarize()
        talker = memory.user("talker", space="long")
        for number in range(40):
            talker.note("fact", f"Talker likes the number {number} best of all numbers", importance=8)
            talker.add("user", f"{number} {'and so on and on ' * 60}")
        quiet = memory.user("quiet", space="still")
        quiet.add("user", "word")
        quiet.clear(erase=True)
        memory.upkeep()
    with served(path) as link:
        yield link


@pytest.fixture(params=["phone", "desk"])
def looker(browser: Browser, hard: str, request: pytest.FixtureRequest) -> Iterator[Looker]:
    with looking(browser, hard, phone=request.param == "phone", dark=request.param == "phone") as made:
        yield made


@pytest.mark.parametrize("kind", PAGES)
def test_nothing_is_wider_than_the_screen_and_everything_can_be_read(looker: Looker, kind: str) -> None:
    page = looker.page
    wrong = {}
    for path in PAGES[kind]:
        answer = page.goto(looker.address + path)
        assert answer is not None
        assert answer.status == 200 or kind == "wrong", (path, answer.status)
        page.evaluate("document.querySelectorAll('details').forEach((each) => each.open = true)")
        expect(page.locator(".htmx-request")).to_have_count(0)
        found = page.evaluate(CHECKS) | {"too wide by": page.evaluate(OVERFLOW)}
        if found != RIGHT | {"too wide by": 0}:
            wrong[path] = found
    assert wrong == {}


@pytest.mark.defect("S13")
def test_the_page_about_somebody_is_short_however_much_is_known(browser: Browser, hard: str) -> None:
    with looking(browser, hard, phone=True) as looker:
        page = looker.open("/person?user=talker&space=long")
        expect(page.locator(".portrait .lines")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollHeight") < 4_500
        expect(page.locator(".portrait details")).to_contain_text("lines more")


def test_the_labels_of_a_form_stand_in_line(browser: Browser, hard: str) -> None:
    with looking(browser, hard) as looker:
        for path, form in (("/context", "main form"), ("/memories", "form.filters"), ("/search", "main form")):
            page = looker.open(path)
            row = page.locator(form).locator(".line, :scope.filters").first
            tops = row.locator("> .field > span").evaluate_all("all => all.map((each) => each.offsetTop)")
            assert len(tops) >= 2, path
            assert len(set(tops)) == 1, path


def test_the_open_tab_is_in_sight_on_a_phone(browser: Browser, hard: str) -> None:
    with looking(browser, hard, phone=True) as looker:
        page = looker.open(f"/person/audit?user={quote(ARABIC)}")
        expect(page.locator(".tabs [aria-current]")).to_be_in_viewport(ratio=0.99)


def test_a_table_that_is_folded_on_a_phone_is_still_a_table(browser: Browser, hard: str) -> None:
    with looking(browser, hard, phone=True) as looker:
        looker.open("/people")
        page = looker.open("/audit")
        tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
        roles = [node["role"]["value"] for node in tree if "role" in node]
        assert roles.count("table") == 1
        assert roles.count("row") >= 2, "the head, and at least that somebody looked at people"
        assert roles.count("columnheader") >= 5
        assert roles.count("cell") >= 5


def test_what_is_not_there_is_said(browser: Browser, hard: str) -> None:
    with looking(browser, hard) as looker:
        page = looker.page
        page.goto(f"{looker.address}/nowhere")
        expect(page.get_by_role("alert")).to_have_text("There is no such page or route.")
        page.get_by_role("link", name="To the overview").click()
        expect(page.locator("h1")).to_have_text("Overview")
        looker.open("/?space=new")
        expect(page.get_by_role("heading", name="Nobody is remembered here yet")).to_be_visible()
        expect(page.locator(".chart")).to_have_count(0)
