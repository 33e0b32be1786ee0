"""People are shown and found by display name, in the space where they are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, expect

import aforesaid
from panel.looking import Looker, looking, needs_chromium, served

pytestmark = [needs_chromium, pytest.mark.defect("B5"), pytest.mark.req("G4")]

ANN, TOM, SPACE = "8812730041", "5519934410", "guild 42"


@pytest.fixture(scope="module")
def guild(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The ready link of a server over a bot's memory: people with numbers as ids, none of them in the default space."""
    path = tmp_path_factory.mktemp("guild") / "memory.db"
    start = datetime.now(UTC) - timedelta(days=2)
    with aforesaid.open(path, embedder="deterministic") as memory:
        memory.user("1", space="quiet").add("user", "hello", at=start, name="Old Bob")
        for hour, (user, name) in enumerate(((ANN, "Ann Müller"), (TOM, "Tom"))):
            person = memory.user(user, space=SPACE, actor=user)
            person.add("user", "I am allergic to hazelnuts", at=start + timedelta(hours=hour + 1), name=name)
            person.note("fact", f"Plays the cello with {hour + 2} friends")
    with served(path) as link:
        yield link


@pytest.fixture(params=["desk", "phone"])
def looker(browser: Browser, guild: str, request: pytest.FixtureRequest) -> Iterator[Looker]:
    with looking(browser, guild, phone=request.param == "phone") as made:
        yield made


def test_the_panel_opens_the_space_that_was_active_last_when_the_default_one_is_empty(looker: Looker) -> None:
    page = looker.open("/")
    expect(page.get_by_role("list", name="Totals")).to_contain_text("People2")
    expect(page.locator("main header p.quiet")).to_contain_text(SPACE)
    page.goto(
        page.locator("#nav").get_by_role("link", name="People", include_hidden=True).evaluate("link => link.href")
    )
    expect(page.locator(".person-card")).to_have_count(2)


def test_an_empty_space_that_was_chosen_is_shown_and_names_the_spaces_with_people(looker: Looker) -> None:
    for path in ("/?space=default", "/people?space=default", "/people"):
        page = looker.open(path)
        expect(page.locator("main")).to_contain_text("Nobody is remembered here yet")
        expect(page.locator("main").get_by_role("link", name="quiet")).to_be_visible()
        page.locator("main").get_by_role("link", name=SPACE).click()
        expect(page.get_by_role("list", name="Totals")).to_contain_text("People2")
    looker.open("/people?space=default")
    home = page.locator("#nav").get_by_role("link", name="Overview", include_hidden=True).evaluate("link => link.href")
    page.goto(home)
    expect(page.locator("main")).to_contain_text("Nobody is remembered here yet")


def test_people_are_listed_by_name_with_a_quiet_id_and_found_by_name(looker: Looker) -> None:
    page = looker.open(f"/people?space={SPACE}")
    row = page.locator(".faces li", has_text="Ann Müller")
    expect(row.locator(".id")).to_have_text(ANN)
    sizes = [
        row.locator(part).first.evaluate("each => parseFloat(getComputedStyle(each).fontSize)")
        for part in ("bdi", ".id")
    ]
    assert sizes[0] > sizes[1]
    page.get_by_label("Name").fill("mÜll")
    expect(page.locator(".person-card")).to_have_count(1)
    looker.picture("people by name")
    row.get_by_role("link").click()
    expect(page).to_have_title("Ann Müller · Aforesaid")
    expect(page.locator("h1")).to_have_text("Ann Müller")
    expect(page.locator(".copy")).to_contain_text(ANN)


@pytest.mark.parametrize(
    "path",
    [
        "/person",
        "/person/memories",
        "/person/conversation",
        "/person/sessions",
        "/person/summaries",
        "/person/reminders",
    ],
)
def test_every_page_about_a_person_is_headed_by_their_name(looker: Looker, path: str) -> None:
    page = looker.open(f"{path}?space={SPACE}&user={ANN}")
    expect(page.locator("h1")).to_have_text("Ann Müller")
    assert looker.complaints == []


def test_memories_search_and_audit_show_names_and_take_them(looker: Looker) -> None:
    page = looker.open(f"/memories?space={SPACE}&user=tom")
    expect(page.locator("article.memory .who")).to_have_text([f"TTom {TOM}"])
    page = looker.open(f"/search?space={SPACE}&user=Ann+Müller&text=hazelnuts")
    expect(page.get_by_text("in what Ann Müller and the assistant said")).to_be_visible()
    expect(page.locator(".hit header").first).to_contain_text("Ann Müller")
    page = looker.open(f"/audit?space={SPACE}&user=Ann+Müller&by=müller")
    expect(page.locator("tbody tr").first).to_contain_text("Ann Müller")
    assert looker.complaints == []
