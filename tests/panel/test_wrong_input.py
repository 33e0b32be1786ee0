"""What somebody typed stays in a form that is refused, and what is wrong stands beside the field: in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import aforesaid
from panel.looking import Looker, looking, needs_chromium, served

pytestmark = [needs_chromium, pytest.mark.defect("P11")]

UNREADABLE = "no time can be read in 'soonish'"
APART = """
(field, described) => {
    const [above, below] = [field, document.getElementById(described)].map((each) => each.getBoundingClientRect());
    return [below.x - above.x, below.y - above.y, above.width, above.height];
}
"""


def wrong(field: Locator, words: str) -> None:
    """Check that a field is marked, and that its message stands directly below or beside it."""
    expect(field).to_have_attribute("aria-invalid", "true")
    described = (field.get_attribute("aria-describedby") or "").split()[-1]
    expect(field.page.locator(f"#{described}")).to_contain_text(words)
    field.page.wait_for_load_state()  # with its style sheets
    # In one step, because the page may scroll to the field meanwhile.
    right, down, width, height = field.evaluate(APART, described)
    assert 0 <= down < height + 20
    assert abs(right) < width


def write_a_memory(page: Page) -> Locator:
    """Fill in the form for a new memory, with a time that nobody can read."""
    form = page.locator("details.add")
    if form.get_attribute("open") is None:
        form.locator("summary").click()
    form.get_by_label("Kind").select_option("schedule")
    form.get_by_label("Importance").fill("8")
    form.get_by_label("What to remember").fill("Choir <rehearsal> & cake")
    form.get_by_label("Tags").fill("music, evening")
    form.get_by_label("When").fill("soonish")
    form.get_by_role("button", name="Remember").click()
    return form


def still_there(form: Locator) -> None:
    expect(form.get_by_label("Kind")).to_have_value("schedule")
    expect(form.get_by_label("Importance")).to_have_value("8")
    expect(form.get_by_label("What to remember")).to_have_value("Choir <rehearsal> & cake")
    expect(form.get_by_label("Tags")).to_have_value("music, evening")
    expect(form.get_by_label("When")).to_have_value("soonish")


def correct_it(form: Locator) -> None:
    form.get_by_label("When").fill("tomorrow at 9")
    form.get_by_role("button", name="Remember").click()


def stored(path: Path) -> list[str]:
    with aforesaid.open(path) as memory:
        return [each.text for each in memory.user("ann").memories()]


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_new_memory_with_an_unreadable_time_is_corrected_in_place(
    browser: Browser, filled: Path, *, scripts: bool
) -> None:
    with served(filled) as link, looking(browser, link, scripts=scripts) as looker:
        page = looker.open("/person/memories?user=ann")
        form = write_a_memory(page)
        wrong(form.get_by_label("When"), UNREADABLE)
        still_there(form)
        looker.picture(f"wrong time {'with' if scripts else 'without'} scripts")
        correct_it(form)
        expect(page.locator("article.memory", has_text="Choir <rehearsal> & cake")).to_be_visible()
        expect(page.locator(".wrong")).to_have_count(0)
    assert "Choir <rehearsal> & cake" in stored(filled)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_corrected_memory_keeps_what_was_typed(browser: Browser, filled: Path, *, scripts: bool) -> None:
    with served(filled) as link, looking(browser, link, scripts=scripts) as looker:
        page = looker.open("/memories")
        page.locator("article.memory", has_text="Water the plants").get_by_role("link", name="Edit").click()
        form = page.locator("article.memory form:has(textarea)")
        form.get_by_label("Text").fill("Water the ferns")
        form.get_by_label("When").fill("soonish")
        form.get_by_role("button", name="Save").click()
        wrong(form.get_by_label("When"), UNREADABLE)
        expect(form.get_by_label("Text")).to_have_value("Water the ferns")
        form.get_by_label("When").fill("")
        form.get_by_role("button", name="Save").click()
        expect(page.locator("article.memory", has_text="Water the ferns").first).to_be_visible()
    assert "Water the ferns" in stored(filled)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_wrong_setting_is_explained_and_changes_nothing(browser: Browser, filled: Path, *, scripts: bool) -> None:
    with served(filled) as link, looking(browser, link, scripts=scripts) as looker:
        page = looker.open("/settings")
        page.get_by_label("Recent exchanges").fill("7")
        page.get_by_label("Learn and summarise").select_option("off")
        page.get_by_label("Persona").fill("a patient\nlibrarian")
        page.get_by_label("Time zone").fill("Mars/Olympus")
        page.get_by_role("button", name="Save").click()
        wrong(page.get_by_label("Time zone"), "unknown time zone 'Mars/Olympus'")
        expect(page.get_by_label("Recent exchanges")).to_have_value("7")
        expect(page.get_by_label("Learn and summarise")).to_have_value("off")
        expect(page.get_by_label("Persona")).to_have_value("a patient\nlibrarian")
        looker.picture(f"wrong setting {'with' if scripts else 'without'} scripts")
        assert settings_of(looker) == {}
        page.get_by_label("Time zone").fill("Europe/Berlin")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_label("Time zone")).to_have_value("Europe/Berlin")
        assert settings_of(looker)["short_term_memory_limit"] == 7


def settings_of(looker: Looker) -> dict[str, object]:
    found: dict[str, object] = looker.context.request.get(f"{looker.address}/api/settings").json()["settings"]
    return found


def test_erasing_somebody_asks_again_when_the_ids_differ(looker: Looker) -> None:
    page = looker.open("/data")
    page.get_by_label("Whom").fill("tom")
    page.get_by_label("Type the name or id again to confirm").fill("tim")
    page.get_by_role("button", name="Erase for good").click()
    wrong(page.get_by_label("Type the name or id again to confirm"), "type “tom” to confirm")
    expect(page.get_by_label("Whom")).to_have_value("tom")
    expect(page.locator("h1")).to_have_text("Data")


def test_an_empty_summary_is_refused_beside_its_text(browser: Browser, filled: Path) -> None:
    with served(filled) as link, looking(browser, link) as looker:
        page = looker.open("/person/summaries?user=ann")
        page.locator("article.summary").first.get_by_role("link", name="Edit").click()
        text = page.get_by_label("Text of the summary")
        text.fill("   ")
        page.get_by_role("button", name="Save as a new version").click()
        wrong(text, "the summary is empty")
        text.fill("Ann cooks for eight people.")
        page.get_by_role("button", name="Save as a new version").click()
        looker.hears("Corrected; this is version 2.")
        expect(page.locator("article.summary", has_text="Ann cooks for eight people.")).to_be_visible()


def test_a_question_with_an_impossible_budget_is_shown_with_it(looker: Looker) -> None:
    page = looker.page
    page.goto(f"{looker.address}/context?user=ann&text=What+could+I+cook%3F&budget=3")
    wrong(page.get_by_label("Budget in tokens"), "the budget must be at least 256")
    expect(page.get_by_label("Budget in tokens")).to_have_value("3")
    expect(page.get_by_label("Their message")).to_have_value("What could I cook?")


def test_what_is_wrong_is_said_in_the_language_of_the_page(browser: Browser, filled: Path) -> None:
    with served(filled, serving={"language": "de"}) as link, looking(browser, link) as looker:
        page = looker.open("/person/memories?user=ann")
        form = page.locator("details.add")
        form.locator("summary").click()
        form.locator("[name=text]").fill("Chorprobe")
        form.locator("[name=when]").fill("demnächst mal")
        form.locator("button[type=submit]").click()
        wrong(form.locator("[name=when]"), "in 'demnächst mal' ist keine Zeit zu erkennen")
