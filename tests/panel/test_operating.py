"""What people do in the panel day by day: many memories at once, keys, live pages, alerts, settings, the graph."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import aforesaid
from aforesaid.domain.memory import MemoryDraft
from aforesaid.domain.scope import Scope
from aforesaid.server.auth import Keys
from aforesaid.store.memories import AddMemory
from panel.axe import needs_axe, violations_by_day_and_by_night
from panel.looking import Looker, looking, needs_chromium, served

pytestmark = needs_chromium

OWN = ("/memories?state=all", "/keys", "/graph", "/person/graph?user=ann", "/health", "/settings", "/audit")


@pytest.fixture(params=["desk", "phone"])
def acting(browser: Browser, filled: Path, request: pytest.FixtureRequest) -> Iterator[Looker]:
    """A signed-in browser over a memory of its own, on a desktop and on a phone."""
    with served(filled) as link, looking(browser, link, phone=request.param == "phone") as looker:
        yield looker


@pytest.mark.req("G8")
def test_many_memories_are_deleted_at_once_and_come_back_as_one_step(acting: Looker) -> None:
    page = acting.open("/memories")
    texts = page.locator(".memory .text").all_inner_texts()
    page.get_by_label("Choose all").check()
    expect(page.locator("[data-chosen]")).to_have_text(f"{len(texts)} chosen")
    page.locator("#bulk").get_by_role("button", name="Delete").click()
    expect(page.locator("#undo")).to_contain_text(f"{len(texts)} memories changed.")
    expect(page.locator(".memory")).to_have_count(0)
    page.locator("#undo").get_by_role("button", name="Undo").click()
    expect(page.locator(".memory .text")).to_have_text(texts)
    assert acting.complaints == []


def test_what_waits_says_why_and_is_approved_with_check_boxes(acting: Looker) -> None:
    page = acting.open("/memories?state=quarantined")
    expect(page.locator(".memory .notice")).to_contain_text("it reads like an instruction to the model")
    page.locator(".memory input[type=checkbox]").check()
    page.locator("#bulk").get_by_role("button", name="Approve").click()
    expect(page.locator("#undo")).to_contain_text("1 memory changed.")
    page.locator("#undo").get_by_role("button", name="Undo").click()
    expect(page.locator(".memory .chip.state")).to_have_text("quarantined")


def test_many_memories_are_edited_at_once(acting: Looker) -> None:
    page = acting.open("/memories")
    page.locator(".memory input[type=checkbox]").first.check()
    page.get_by_text("Edit them").click()
    page.locator("#bulk input[name=importance]").fill("10")
    page.locator("#bulk").get_by_role("button", name="Save").click()
    expect(page.locator(".memory[data-importance='10']")).to_have_count(1)


def test_without_scripts_choosing_nothing_is_explained_above_the_form(browser: Browser, filled: Path) -> None:
    with served(filled) as link, looking(browser, link, scripts=False) as looker:
        page = looker.open("/memories")
        page.locator("#bulk").get_by_role("button", name="Delete").click()
        expect(page.get_by_role("alert").first).to_contain_text("choose at least one memory")


def test_a_memory_that_is_no_longer_true_is_undone_at_once_or_later_from_the_audit(acting: Looker) -> None:
    page = acting.open("/person/memories?user=tom")
    card = page.locator(".memory", has_text="Plays the cello")
    card.get_by_role("button", name="No longer true").click()
    acting.hears("No longer true: Plays the cello")
    expect(page.locator(".memory")).to_contain_text("something that was true before")
    page = acting.open("/person/audit?user=tom")
    page.get_by_role("button", name="Undo").first.click()
    acting.page.wait_for_load_state()
    page = acting.open("/person/memories?user=tom")
    expect(page.locator(".memory .chip.state")).to_have_count(0)
    expect(page.locator(".memory .text")).to_have_text("Plays the cello")


def test_a_key_is_made_shown_once_used_and_revoked(acting: Looker) -> None:
    page = acting.open("/keys")
    form = page.locator("form[action^='/keys']").first
    form.locator("[name=name]").fill("Kitchen tablet")
    form.locator("[name=key_user]").fill("ann")
    form.get_by_role("button", name="Make the key").click()
    expect(page.locator("[name=key_space] + .wrong")).to_contain_text("name the space of this person too")
    expect(page.locator("[name=name]")).to_have_value("Kitchen tablet")
    page.locator("[name=key_space]").fill("default")
    page.get_by_role("button", name="Make the key").click()
    token = page.locator("#token").input_value()
    assert token.startswith("ak_")
    row = page.locator("tr", has_text="Kitchen tablet")
    expect(row).to_contain_text("ann in default")
    expect(row).to_contain_text("never")
    answer = page.request.get(f"{acting.address}/api/memories?user=ann", headers={"Authorization": f"Bearer {token}"})
    assert answer.status == 200
    page.goto(f"{acting.address}/keys")
    expect(page.locator("#token")).to_have_count(0)
    expect(page.locator("tr", has_text="Kitchen tablet")).to_contain_text("just now")
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator("tr", has_text="Kitchen tablet").get_by_role("button", name="Revoke").click()
    expect(page.locator("tr", has_text="Kitchen tablet")).to_have_count(0)
    answer = page.request.get(f"{acting.address}/api/memories?user=ann", headers={"Authorization": f"Bearer {token}"})
    assert answer.status == 401


def test_a_new_memory_appears_without_a_reload_and_a_box_that_is_checked_stays(acting: Looker) -> None:
    page = acting.open("/person/memories?user=tom")
    expect(page.locator("body[data-following]")).to_be_attached()
    page.locator(".memory input[type=checkbox]").check()
    write(acting, "Tom has a red bicycle")
    expect(page.locator(".memory", has_text="red bicycle")).to_be_visible()
    expect(page.locator(".memory", has_text="cello").locator("input[type=checkbox]")).to_be_checked()
    assert acting.complaints == []


def test_a_new_message_appears_at_the_end_of_an_open_conversation(browser: Browser, filled: Path) -> None:
    with served(filled) as link, looking(browser, link) as looker:
        page = looker.open("/person/conversation?user=tom")
        expect(page.locator("body[data-following]")).to_be_attached()
        token = json.loads(page.locator("body").get_attribute("hx-headers") or "")
        said = {"user": "tom", "role": "user", "text": "I found my umbrella."}
        assert page.request.post(f"{looker.address}/api/messages", data=said, headers=token).ok
        expect(page.locator(".turn").last).to_contain_text("I found my umbrella.")
        expect(page.locator(".turn")).to_have_count(2)


def test_an_interrupted_stream_shows_afterwards_what_happened_in_between(browser: Browser, filled: Path) -> None:
    with served(filled) as link, looking(browser, link) as looker:
        page = looker.open("/person/memories?user=tom")
        expect(page.locator("body[data-following]")).to_be_attached()
        page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(page.locator("body[data-following]")).not_to_be_attached()
        write(looker, "Tom sings in a choir")
        page.evaluate("Object.defineProperty(document, 'hidden', {value: false, configurable: true})")
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(page.locator(".memory", has_text="sings in a choir")).to_be_visible()


def write(looker: Looker, text: str) -> None:
    """Store a memory about Tom from another page of the same browser."""
    other = looker.context.new_page()
    other.goto(f"{looker.address}/person/memories?user=tom")
    other.get_by_text("Write a memory").click()
    other.get_by_label("What to remember").fill(text)
    other.get_by_role("button", name="Remember", exact=True).click()
    expect(other.locator(".memory", has_text=text)).to_be_visible()
    other.close()


def test_an_alert_is_acknowledged_and_says_by_whom(browser: Browser, filled: Path) -> None:
    settings = {"alerts.storage_bytes": 1, "alerts.free_disk": 0.0}
    with served(filled, settings=settings) as link, looking(browser, link) as looker:
        expect(looker.page.get_by_role("region", name="Alerts")).to_contain_text("the limit is 1")
        page = looker.open("/health")
        alert = page.locator(".alerts li")
        expect(alert).to_contain_text("the limit is 1")
        expect(page.locator("#health > .notice")).to_contain_text("1 alert is open")
        alert.get_by_role("button", name="Acknowledge").click()
        looker.hears("Acknowledged.")
        expect(alert).to_contain_text("Acknowledged by the ready link just now")
        expect(alert.get_by_role("button")).to_have_count(0)
        expect(page.locator("#health > .notice")).not_to_contain_text("open")
        page = looker.open("/")
        expect(page.get_by_role("region", name="Alerts")).to_have_count(0)
        page = looker.open("/audit?action=alert.acknowledge")
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.locator("tbody tr")).to_contain_text("capacity store")
        assert looker.complaints == []
    # Another process, which raises the same alert: somebody has seen it already.
    with served(filled, settings=settings) as link, looking(browser, link) as looker:
        page = looker.open("/health")
        expect(page.locator(".alerts li")).to_contain_text("Acknowledged by the ready link")
        expect(page.locator("#health > .notice")).not_to_contain_text("open")


def test_settings_say_what_applies_and_where_it_comes_from(acting: Looker) -> None:
    page = acting.open("/settings")
    help_text = page.locator("#context_budget-help")
    expect(help_text).to_contain_text("the default of the profile")
    page.locator("#context_budget").fill("4321")
    page.get_by_role("button", name="Save").click()
    expect(help_text).to_contain_text("Set for this space; the profile has")
    page = acting.open("/person/settings?user=ann")
    expect(page.locator("#context_budget-help")).to_contain_text("Applies: 4,321, set for the space.")


def test_signing_out_everywhere_ends_all_sessions_of_the_link(browser: Browser, filled: Path) -> None:
    with served(filled) as link, looking(browser, link) as one, looking(browser, link) as other:
        one.page.get_by_role("button", name="Sign out everywhere").click()
        expect(one.page.get_by_role("button", name="Sign in")).to_be_visible()
        other.page.goto(f"{other.address}/people")
        expect(other.page.get_by_role("button", name="Sign in")).to_be_visible()


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_tables_and_charts_fit_their_cards(browser: Browser, shown: str, width: int) -> None:
    with looking(browser, shown) as looker:
        looker.page.set_viewport_size({"width": width, "height": 900})
        for path in ("/", "/health", "/graph"):
            page = looker.open(path)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            # Nothing reaches beyond the edge of its card but what can be scrolled, and that can be reached by keyboard.
            assert (
                page.evaluate("""Array.from(document.querySelectorAll(".card *")).filter((each) =>
                !each.closest(".scroll, svg, .hidden") &&
                each.getBoundingClientRect().right > each.closest(".card").getBoundingClientRect().right + 1
            ).map((each) => each.outerHTML.slice(0, 100))""")
                == []
            ), path
            assert (
                page.evaluate("""Array.from(document.querySelectorAll(".scroll")).filter((each) =>
                each.scrollWidth > each.clientWidth && each.tabIndex < 0 && !each.querySelector("a, button")
            ).length""")
                == 0
            ), path
        page = looker.open("/")
        if width == 1440:
            latency = page.locator(".card", has=page.get_by_role("heading", name="Latency")).locator(".scroll")
            assert latency.evaluate("each => each.scrollWidth <= each.clientWidth")


@pytest.mark.defect("S13")
def test_the_graph_shows_values_is_walked_with_the_keyboard_and_has_a_table(browser: Browser, filled: Path) -> None:
    moved = datetime.now(UTC) - timedelta(days=30)
    before = moved - timedelta(days=40)

    def home(value: str, since: datetime, until: datetime | None) -> AddMemory:
        told = MemoryDraft(
            Scope.of("tom"),
            "fact",
            f"Tom lives in {value}.",
            matter="home",
            value=value,
            state="superseded" if until else "active",
            valid_from=since,
            valid_to=until,
            said_at=since,
        )
        return AddMemory(told)

    async def write() -> None:
        async with aforesaid.connect(filled, embedder="none") as memory:
            await memory.store.apply([home("Porto", before, moved), home("Lisbon", moved, None)])
            await memory.user("tom").note("fact", "Great, thanks, that means a lot to the assistant")
            await memory.user("tom").note("fact", "Great, thanks, that also means a lot to the assistant")

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, write()).result()
    with served(filled) as link, looking(browser, link) as looker:
        page = looker.open("/person/graph?user=tom")
        names = page.locator("svg.graph .name").all_text_contents()
        assert any("Porto" in name and "home" in name for name in names)
        assert not any(word in " ".join(names) for word in ("great", "thanks", "means", "assistant"))
        subject = page.locator("svg.graph a[aria-label^='Porto']").first
        subject.focus()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("/person/memories.*text=Porto"))
        expect(page.locator(".memory")).to_have_count(1)
        page = looker.open("/person/graph?user=tom")
        page.get_by_text("As a table").last.click()
        row = page.get_by_role("row", name="Porto")
        expect(row.get_by_role("cell", name="1", exact=True)).to_have_count(1)


@needs_axe
@pytest.mark.parametrize("phone", [False, True], ids=["desk", "phone"])
def test_axe_finds_nothing_on_these_pages(browser: Browser, shown: str, *, phone: bool) -> None:
    with looking(browser, shown, phone=phone) as looker:
        for path in OWN:
            assert violations_by_day_and_by_night(looker.open(path)) == [], path


def test_the_last_use_of_a_key_survives_a_restart_and_is_shared_by_servers(tmp_path: Path) -> None:
    from aforesaid.server.auth import KeyUse  # noqa: PLC0415

    path = tmp_path / "keys.json"
    key, _ = Keys(path).add("app", "app")
    one, other = KeyUse(path), KeyUse(path)
    one.mark(key.id)
    one.write()
    assert other.all().keys() == {key.id}
    (tmp_path / "keys.json.used").write_text("{", encoding="utf-8")
    assert KeyUse(path).all() == {}
