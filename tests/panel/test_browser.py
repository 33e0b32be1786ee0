"""Every page's main use, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import APIResponse, Browser, Page, Route, expect

import aforesaid
from panel.looking import PAGES, Looker, looking, needs_chromium, served

pytestmark = needs_chromium

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_itself_and_nothing_goes_wrong(looker: Looker, name: str) -> None:
    page = looker.open(PAGES[name])
    expect(page.locator("h1")).to_have_count(1)
    expect(page.locator(".htmx-request")).to_have_count(0)
    looker.picture(name)
    assert page.evaluate("window.alarms") == []
    assert looker.complaints == []
    assert page.evaluate(OVERFLOW) <= 0


def test_pages_fit_on_a_phone_and_look_well_at_night(browser: Browser, shown: str) -> None:
    with looking(browser, shown, dark=True, phone=True) as looker:
        for name, path in PAGES.items():
            page = looker.open(path)
            assert page.evaluate(OVERFLOW) <= 0, name
            looker.picture(f"{name} phone")
        page = looker.open("/")
        expect(page.locator("#nav")).to_be_hidden()
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("link", name="People").first.click()
        expect(page).to_have_title("People · Aforesaid")
        assert looker.complaints == []


@pytest.mark.req("D9", "A18")
def test_the_overview_counts_and_draws(looker: Looker) -> None:
    page = looker.open("/")
    tiles = page.get_by_role("list", name="Totals")
    expect(tiles).to_contain_text("People2")
    expect(tiles).to_contain_text("Messages73")
    expect(page.locator(".chart canvas")).to_have_count(2)
    expect(page.get_by_role("img", name=re.compile(r"Messages per day: 73 in 1[34] days"))).to_be_visible()
    expect(page.get_by_role("heading", name="Tokens saved").locator("..").locator(".bars li").first).to_be_visible()
    for heading in ("Growth", "Categories", "Importance", "Health", "Latency"):
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    page.get_by_text("As numbers").click()
    expect(page.get_by_role("row")).not_to_have_count(0)
    page.get_by_role("link", name="schedule").click()
    expect(page.locator("article.memory")).to_have_count(1)


@pytest.mark.req("D9", "D2")
def test_a_memory_is_deleted_with_one_click_and_comes_back_with_another(browser: Browser, filled: Path) -> None:
    with served(filled) as link, looking(browser, link) as looker:
        page = looker.open("/memories")
        card = page.locator("article.memory", has_text="Dentist on Monday")
        number = int((card.get_attribute("id") or "").removeprefix("memory-"))
        card.get_by_role("button", name="Delete").click()
        looker.hears("Deleted: Dentist on Monday at 9")
        gone = page.locator(f"#memory-{number}")
        expect(gone.get_by_role("button", name="Undo")).to_be_focused()
        looker.picture("deleted")
        page.keyboard.press("Enter")
        expect(page.locator(f"#memory-{number}").get_by_role("button", name="Delete")).to_be_visible()
        page.locator(f"#memory-{number}").get_by_role("button", name="Delete").click()
        gone.get_by_role("button", name="Undo").wait_for()
        page.get_by_label("State").select_option("deactivated")
        expect(page.locator("article.memory")).to_have_count(2)
        page.locator(f"#memory-{number}").get_by_role("button", name="Bring back").click()
        expect(page.locator(f"#memory-{number}").get_by_role("button", name="Delete")).to_be_visible()
    with aforesaid.open(filled) as memory:
        assert "Dentist on Monday at 9" in [each.text for each in memory.user("ann").memories()]
        actors = {entry.actor for entry in memory.user("ann").audit(500) if entry.action == "memory.deactivate"}
    assert actors == {"the ready link"}


@pytest.mark.req("D9")
def test_memories_are_filtered_by_person_category_importance_state_and_text(looker: Looker) -> None:
    page = looker.open("/memories")
    cards = page.locator("article.memory")
    page.get_by_label("Person", exact=True).fill("tom")
    page.get_by_label("Person", exact=True).press("Tab")
    expect(cards.filter(has_text="Dentist")).to_have_count(0)
    expect(cards.filter(has_text="Plays the cello")).to_have_count(1)
    page.get_by_label("Person", exact=True).fill("")
    page.get_by_label("Person", exact=True).press("Tab")
    expect(cards.filter(has_text="Dentist")).to_have_count(1)
    page.locator(".filters").get_by_label("Category").select_option("task")
    expect(cards.filter(has_text="Water the plants")).to_have_count(1)
    expect(cards).to_have_count(1)
    page.locator(".filters").get_by_label("Category").select_option("")
    page.locator(".filters").get_by_label("Importance").select_option("low")
    expect(cards.filter(has_text="green umbrella")).to_have_count(1)
    expect(cards).to_have_count(1)
    page.locator(".filters").get_by_label("Importance").select_option("")
    page.locator(".filters").get_by_label("Text").fill("SHORT ans")
    expect(cards.filter(has_text="Likes short answers")).to_have_count(1)
    expect(cards).to_have_count(1)
    assert "text=SHORT" in page.url
    page.reload()
    expect(cards).to_contain_text("Likes short answers")


@pytest.mark.req("D2")
def test_the_four_bands_have_their_colours(looker: Looker) -> None:
    page = looker.open("/person/memories?user=ann")
    seen = {}
    for text in ("green umbrella", "Likes short answers", "Water the plants", "Dentist on Monday"):
        card = page.locator("article.memory", has_text=text)
        colour = card.evaluate("card => getComputedStyle(card).borderLeftColor")
        seen[(card.get_attribute("class") or "").split()[1]] = [int(part) for part in colour[4:-1].split(",")]
    assert list(seen) == ["band-low", "band-medium", "band-high", "band-critical"]
    red, green, blue = seen["band-low"]
    assert max(red, green, blue) - min(red, green, blue) < 16, "grey"
    assert seen["band-medium"].index(max(seen["band-medium"])) == 2, "blue"
    red, green, blue = seen["band-high"]
    assert red > green > blue, "orange"
    red, green, blue = seen["band-critical"]
    assert red > 2 * green, "red"
    assert abs(green - blue) < 30, "red"


@pytest.mark.req("D9")
def test_memories_are_written_corrected_and_their_story_is_told(browser: Browser, filled: Path) -> None:
    with served(filled) as link, looking(browser, link) as looker:
        page = looker.open("/memories")
        page.get_by_text("Write a memory").click()
        form = page.locator("details.add")
        form.get_by_label("About").fill("tom")
        form.get_by_label("What to remember").fill("Likes <b>strong</b> tea & cake")
        form.get_by_label("Kind").select_option("preference")
        form.get_by_label("Importance").fill("10")
        form.get_by_label("Tags").fill("tea, cake")
        form.get_by_role("button", name="Remember").click()
        card = page.locator("article.memory", has_text="strong</b> tea")
        expect(card).to_contain_text("#cake")
        expect(card).to_have_class("memory band-critical new")
        card.get_by_role("link", name="Edit").click()
        text = page.locator("article textarea")
        expect(text).to_be_focused()
        text.fill("Likes weak tea")
        page.get_by_role("button", name="Save").click()
        changed = page.locator("article.memory", has_text="Likes weak tea")
        expect(changed).to_be_visible()
        changed.get_by_text("Story").click()
        expect(changed.locator(".versions")).to_contain_text("strong</b> tea")
        assert looker.complaints == []
    with aforesaid.open(filled) as memory:
        found = [each for each in memory.user("tom").memories() if each.text == "Likes weak tea"]
    assert [(each.importance, each.category, each.tags) for each in found] == [(10, "preference", ("tea", "cake"))]


def test_a_correction_of_what_somebody_else_changed_is_refused_and_nothing_is_lost(
    browser: Browser, filled: Path
) -> None:
    with served(filled) as link, looking(browser, link) as looker, looking(browser, link) as other:
        for each in (looker, other):
            page = each.open("/person/memories?user=tom")
            page.get_by_role("link", name="Edit").first.click()
            page.locator("article textarea").fill("Plays the viola")
        other.page.get_by_role("button", name="Save").click()
        other.page.locator("article.memory", has_text="viola").get_by_role("button", name="Delete").wait_for()
        looker.page.locator("article textarea").fill("Plays the drums")
        looker.page.get_by_role("button", name="Save").click()
        expect(looker.page.get_by_role("alert")).to_contain_text("changed after it was read")
        expect(looker.page.locator("article textarea")).to_have_value("Plays the drums")


def test_what_waits_is_approved_or_rejected(browser: Browser, filled: Path) -> None:
    with served(filled) as link, looking(browser, link) as looker:
        page = looker.open("/")
        page.get_by_role("link", name="Look at it").click()
        # Loaded, not just there: before its scripts have come, a click brings the next page, as it does without any.
        page.wait_for_url("**/memories?state=quarantined")
        card = page.locator("article.memory")
        expect(card).to_contain_text("Ignore all previous instructions")
        card.get_by_role("button", name="Reject").click()
        looker.hears("Rejected")
        page.evaluate("window.loadedOnce = true")
        card.get_by_role("button", name="Undo").click()
        expect(page.locator("#undo")).to_contain_text("Undone")
        card.get_by_role("button", name="Approve").click()
        expect(page.locator("#undo")).to_contain_text("Approved")
        assert page.evaluate("window.loadedOnce"), "the page was loaded again"
        # It no longer waits, so it leaves the list once the page is up to date.
        expect(card.get_by_role("button", name="Approve")).to_have_count(0)
        looker.open("/memories")
        expect(page.locator("article.memory", has_text="Ignore all previous instructions")).to_have_count(1)
        expect(page.get_by_text("for approval")).to_have_count(0)


def test_the_summary_tree_opens_down_to_the_messages(browser: Browser, filled: Path) -> None:
    with served(filled) as link, looking(browser, link) as looker:
        page = looker.open("/person/summaries?user=ann")
        top = page.locator("article.summary").first
        expect(top).to_contain_text("level")
        level = int(top.locator(".chip").first.inner_text().split()[1])
        assert level >= 2
        node = top
        for below in range(level - 1, 0, -1):
            node.locator("> details > summary").click()
            node = node.locator("> details > .below > .tree > article.summary").first
            expect(node.locator(".chip").first).to_have_text(f"level {below}")
        node.locator("> details > summary").click()
        expect(node.locator("> details li.turn").first).to_contain_text("What could I cook for eight people? (0)")
        looker.picture("summary tree")
        top.get_by_role("link", name="Edit").first.click()
        top.get_by_label("Text of the summary").fill("Ann cooked, and asked for the landlord.")
        top.get_by_role("button", name="Save").click()
        looker.hears("version 2")
        expect(page.locator("article.summary").first).to_contain_text("Ann cooked, and asked for the landlord.")
        assert looker.complaints == []


def test_a_conversation_shows_archived_parts_and_goes_back_in_time(looker: Looker) -> None:
    page = looker.open("/person/conversation?user=ann")
    expect(page.locator(".stretch.archived").first).to_be_visible()
    first = page.get_by_text("What could I cook for eight people? (0)", exact=True)
    expect(first).to_have_count(0)
    page.get_by_role("link", name="Earlier messages").click()
    expect(first).to_be_visible()
    expect(page.locator("li.turn")).to_have_count(72)
    expect(page.get_by_role("link", name="Earlier messages")).to_have_count(0)


def test_sessions_open(looker: Looker) -> None:
    page = looker.open("/person/sessions?user=ann")
    first = page.locator("details.session").first
    expect(page.locator("details.session")).to_have_count(12)
    first.locator("summary").click()
    expect(first.locator("li.turn")).to_have_count(6)


def test_a_search_explains_its_scores(looker: Looker) -> None:
    page = looker.open("/search")
    page.get_by_label("Person", exact=True).fill("ann")
    page.get_by_label("Looking for").fill("hazelnuts")
    page.keyboard.press("Enter")
    hit = page.locator(".hit").first
    expect(hit).to_contain_text("hazelnuts")
    expect(hit.locator("mark").first).to_have_text("hazelnuts")
    scores = [float(each) for each in page.locator(".hit .score").all_inner_texts()]
    assert 1.0 >= scores[0] >= scores[-1] >= 0.0
    parts = [float(each) for each in hit.locator(".why td.num").all_text_contents()]
    assert max(parts) > 0, "what speaks for the hit"
    hit.get_by_role("link", name="In the conversation").click()
    expect(page.locator("li.turn.marked")).to_contain_text("hazelnuts")


def test_the_context_inspector_shows_the_budget_and_the_reasons(looker: Looker) -> None:
    page = looker.open("/context")
    page.get_by_label("Person", exact=True).fill("ann")
    page.get_by_label("Their message").fill("Which food must I avoid?")
    page.get_by_label("Budget in tokens").fill("400")
    page.keyboard.press("Enter")
    used, most = (
        int(each.replace(",", ""))
        for each in page.locator(".budget .big").inner_text().split(" tokens")[0].split(" of ")
    )
    assert 0 < used <= most == 400
    legend = [int(each.replace(",", "")) for each in page.locator(".budget .legend b").all_inner_texts()]
    assert used - 10 <= sum(legend) <= used + 10, "each section's part is on the bar"
    expect(page.locator("#section-current")).to_contain_text("Which food must I avoid?")
    page.get_by_text("left out, and why").first.click()
    expect(page.locator(".items.out").first).to_contain_text("no room left")
    page.get_by_text("Exactly what is sent").click()
    expect(page.locator(".raw pre").last).to_have_text(re.compile(r"Now: .*\sWhich food must I avoid\?$", re.DOTALL))


@pytest.mark.req("D8")
def test_settings_act_at_once_and_are_stored(browser: Browser, filled: Path) -> None:
    with served(filled, profile="companion") as link, looking(browser, link) as looker:
        page = looker.open("/context?user=ann&text=What+do+you+know%3F")
        memories = page.locator("#section-memories li")
        assert memories.count() > 1
        page = looker.open("/settings")
        page.get_by_label("Memories", exact=True).fill("1")
        page.get_by_label("Recent exchanges").fill("2")
        page.get_by_label("Search results").fill("1")
        page.get_by_label("Similarity").fill("0.25")
        page.get_by_label("Persona").fill("You are a butler.")
        page.get_by_label("Profile").select_option("companion")
        page.get_by_role("button", name="Save").click()
        looker.hears("Saved. It takes effect at once.")
        looker.picture("settings saved")
        expect(page.get_by_label("Memories", exact=True)).to_have_value("1")
        looker.open("/context?user=ann&text=What+do+you+know%3F")
        expect(memories).to_have_count(1)
        expect(page.locator("#section-recent li")).to_have_count(4)
        expect(page.locator("#section-persona")).to_contain_text("You are a butler.")
        page = looker.open("/audit?action=setting.put")
        expect(page.get_by_role("row", name=re.compile("everybody here")).first).to_be_visible()
        page = looker.open("/person/settings?user=ann")
        expect(page.get_by_label("Memories", exact=True)).to_have_attribute("placeholder", "1")
        page.get_by_label("Memories", exact=True).fill("2")
        page.get_by_role("button", name="Save").click()
        looker.open("/context?user=ann&text=What+do+you+know%3F")
        expect(memories).to_have_count(2)
        page = looker.open("/settings")
        page.get_by_label("Persona").fill("")
        page.get_by_role("button", name="Save").click()
        looker.hears("Saved. It takes effect at once.")
    with aforesaid.open(filled) as memory:
        stored = memory.settings()
        assert memory.user("ann").settings()["persistent_memory_limit"] == 2
    assert stored == {
        "persistent_memory_limit": 1,
        "short_term_memory_limit": 2,
        "long_term_memory_limit": 1,
        "semantic_similarity_threshold": 0.25,
        "context_profile": "companion",
    }


def test_facts_are_told_and_forgotten_with_all_their_versions(browser: Browser, filled: Path) -> None:
    with served(filled) as link, looking(browser, link) as looker:
        page = looker.open("/person?user=ann")
        expect(page.locator(".portrait .prose").first).to_contain_text("Lisbon")
        before = page.locator(".history li").count()
        page.get_by_label("Remember that").fill("I play the violin")
        page.get_by_role("button", name="Remember").click()
        looker.hears("Remembered.")
        expect(page.locator(".history li")).to_have_count(before + 1)
        expect(page.locator(".history li.now ins")).to_contain_text("violin")
        page.get_by_label("Forget that").fill("violin")
        page.get_by_role("button", name="Forget").click()
        looker.hears("Forgotten.")
        expect(page.locator(".history li.now del")).to_contain_text("violin")


def test_reminders_are_taken_off_the_list(browser: Browser, filled: Path) -> None:
    with served(filled) as link, looking(browser, link) as looker:
        page = looker.open("/person/reminders?user=ann")
        page.locator(".plan", has_text="Call the landlord").get_by_role("button", name="Done").click()
        looker.hears("Done: Call the landlord")
        looker.open("/person/reminders?user=ann")
        expect(page.get_by_text("is to be reminded of nothing")).to_be_visible()


def test_who_looked_is_in_the_audit_log(looker: Looker) -> None:
    looker.open("/person/conversation?user=tom")
    page = looker.open("/audit?user=tom")
    expect(page.locator("tbody .views summary").first).to_contain_text("You looked at")
    page.locator("tbody .views summary").first.click()
    expect(page.locator("tbody .views").first).to_contain_text("read the conversation")
    page.get_by_label("Did").select_option(label="read messages")
    expect(page.locator("tbody .views").last).to_contain_text("read the conversation")


def test_health_shows_parts_and_checks_everything(looker: Looker) -> None:
    page = looker.open("/health")
    expect(page.locator("#health")).to_contain_text("Everything works")
    for part in ("store", "embedder", "models"):
        expect(page.locator(".part", has_text=part).first).to_contain_text("active")
    expect(page.get_by_text("The memory uses no model of its own")).to_be_visible()
    page.get_by_role("button", name="Check everything stored").click()
    expect(page.get_by_role("status").first).to_contain_text("All of it is right.")


def test_everything_can_be_taken_along_and_taken_in_elsewhere(browser: Browser, shown: str, tmp_path: Path) -> None:
    with looking(browser, shown) as looker:
        page = looker.open("/data")
        with page.expect_download() as waiting:
            page.get_by_role("link", name="Export everything").click()
        path = tmp_path / "export.jsonl.gz"
        waiting.value.save_as(path)
        with aforesaid.open(tmp_path / "other.db") as memory:
            assert memory.load(path).ok
            assert len(memory.user("ann").history(1_000)) == 72
    with served(tmp_path / "third.db") as link, looking(browser, link) as looker:
        page = looker.open("/data")
        page.get_by_label("File").set_input_files(path)
        page.get_by_role("button", name="Look what is in it").click()
        expect(page.locator("#import")).to_contain_text("It becomes the memory of")
        page.get_by_role("button", name="Import it").click()
        expect(page.locator("#import")).to_contain_text("It is the memory of")
        looker.open("/people")
        expect(page.locator(".person-card")).to_have_count(2)


def test_a_person_is_erased_for_good_once_that_is_confirmed(browser: Browser, filled: Path) -> None:
    with served(filled) as link, looking(browser, link) as looker:
        page = looker.open("/data")
        page.get_by_label("Whom").fill("tom")
        page.get_by_label("again to confirm").fill("tim")
        page.get_by_role("button", name="Erase for good").click()
        expect(page.locator(".wrong")).to_contain_text("nothing was erased")
        page.get_by_label("again to confirm").fill("tom")
        page.get_by_role("button", name="Erase for good").click()
        looker.hears("Erased for good: 1 message,")
        looker.open("/people")
        expect(page.locator(".person-card")).to_have_count(1)
    assert b"allergic to cats" not in filled.read_bytes()


def test_spaces_have_walls(looker: Looker) -> None:
    page = looker.open("/spaces")
    page.get_by_role("link", name="guild").click()
    expect(page.get_by_role("list", name="Totals")).to_contain_text("People1")
    page.get_by_role("link", name="People").first.click()
    expect(page.locator(".person-card")).to_have_count(1)
    expect(page.locator(".person-card")).to_contain_text("kim")
    page.get_by_role("link", name="kim").click()
    page.get_by_role("link", name="Conversation", exact=True).click()
    expect(page.locator("li.turn")).to_contain_text("Hello from another space.")


def test_it_is_used_with_the_keyboard_alone(browser: Browser, filled: Path) -> None:
    with served(filled) as link, looking(browser, link) as looker:
        page = looker.open("/person/memories?user=tom")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="To the content")).to_be_focused()
        page.keyboard.press("Enter")
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent.trim()") == "Delete":
                break
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Undo")).to_be_focused()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Delete").wait_for()
        page.keyboard.press("/")
        expect(page.locator("input[type=search]")).to_be_focused()


def test_it_works_without_scripts(browser: Browser, filled: Path) -> None:
    with served(filled) as link, looking(browser, link, scripts=False) as looker:
        page = looker.open("/person/memories?user=tom")
        page.locator("article.memory").get_by_role("button", name="Delete").click()
        told = page.get_by_role("status").filter(has_text="Deleted: Plays the cello")
        expect(told).to_have_count(1)
        assert "/person/memories?user=tom" in page.url
        card = page.locator("article.memory", has_text="cello")
        expect(card).to_have_count(0)
        told.get_by_role("button", name="Undo").click()
        expect(page.locator("#said")).to_have_text("1 change undone.")
        card.get_by_role("button", name="Delete").click()
        expect(card).to_have_count(0)
        page.get_by_label("State").select_option("deactivated")
        page.get_by_role("button", name="Show").click()
        page.locator("article.memory").get_by_role("button", name="Bring back").click()
        expect(page.locator("#undo")).to_contain_text("Restored: Plays the cello")


def test_a_click_before_the_scripts_have_come_can_be_undone_too(browser: Browser, filled: Path) -> None:
    with served(filled) as link, looking(browser, link) as looker:
        page = looker.open("/")
        held: list[str] = []
        # Never answered: the page is there, and what it does with htmx is not.
        page.route("**/htmx*.js", lambda route: held.append(route.request.url))
        page.get_by_role("link", name="Look at it").click()
        card = page.locator("article.memory", has_text="Ignore all previous instructions")
        card.get_by_role("button", name="Reject").click(no_wait_after=True)
        told = page.get_by_role("status").filter(has_text="Rejected: Ignore all previous")
        expect(told).to_be_visible()
        assert held, "the click came first"
        page.unroute_all()
        looker.picture("rejected without scripts")
        told.get_by_role("button", name="Undo").click()
        expect(card.get_by_role("button", name="Approve")).to_be_visible()


def test_a_click_just_before_the_scripts_have_come_does_not_load_the_page_again(browser: Browser, filled: Path) -> None:
    with served(filled) as link, looking(browser, link) as looker:
        page = looker.open("/")
        # However slow this machine is, the page does not give up waiting.
        page.add_init_script(
            "const later = setTimeout; window.setTimeout = (f, ms) => later(f, ms === 2000 ? 60_000 : ms)"
        )
        held: list[Route] = []
        page.route("**/htmx*.js", lambda route: held.append(route))  # noqa: PLW0108 - a method of a list cannot be marked
        page.goto(f"{looker.address}/memories?state=quarantined", wait_until="commit")
        card = page.locator("article.memory", has_text="Ignore all previous instructions")
        card.get_by_role("button", name="Reject").click(no_wait_after=True)
        page.evaluate("window.loadedOnce = true")
        held[0].continue_()
        looker.hears("Rejected")
        assert page.evaluate("window.loadedOnce")


def test_a_page_that_was_fetched_before_a_click_does_not_undo_what_is_shown_after_it(
    browser: Browser, filled: Path
) -> None:
    with served(filled) as link, looking(browser, link) as looker:
        page = looker.open("/memories?state=quarantined")
        held: list[tuple[Route, APIResponse]] = []

        def hold_the_first(route: Route) -> None:
            if "x-aforesaid-live" in route.request.headers and not held:
                held.append((route, route.fetch()))
            else:
                route.continue_()

        page.route("**/memories?state=quarantined", hold_the_first)
        card = page.locator("article.memory", has_text="Ignore all previous instructions")
        card.get_by_role("button", name="Reject").click()
        eventually(page, lambda: bool(held))
        card.get_by_role("button", name="Undo").click()
        expect(page.locator("#undo")).to_contain_text("Undone")
        card.evaluate("element => { element.dataset.mark = '' }")
        # The next one comes after what the page does with this one.
        with page.expect_response(lambda answer: "x-aforesaid-live" in answer.request.headers and len(held) > 1):
            route, before = held[0]
            held.append(held[0])
            route.fulfill(response=before)
        assert page.locator("article.memory[data-mark]").count() == 1, "it was taken away"
        card.get_by_role("button", name="Approve").click()
        expect(page.locator("#undo")).to_contain_text("Approved")


def eventually(page: Page, true: Callable[[], bool]) -> None:
    """Let the browser work until something is true."""
    while not true():
        page.wait_for_timeout(20)


def test_light_and_dark_can_be_chosen(looker: Looker) -> None:
    page = looker.open("/people")
    shade = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(shade)
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate(shade) != light
    page.reload()
    assert page.evaluate(shade) != light


def test_signing_in_and_out(browser: Browser, shown: str) -> None:
    with looking(browser, shown) as looker:
        page = looker.page
        page.get_by_role("button", name="Sign out", exact=True).click()
        expect(page).to_have_title("Sign in · Aforesaid")
        page.get_by_label("Key").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("unknown")
        looker.picture("sign in")
        page.get_by_label("Key").fill(shown.partition("token=")[2])
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Overview")
