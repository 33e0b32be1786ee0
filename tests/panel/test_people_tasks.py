"""What people come to the panel for: about people, in at most three clicks from the first page, desktop and phone."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import aforesaid
from aforesaid.domain.details import Part, ToolCall
from panel.looking import Looker, looking, needs_chromium, served

pytestmark = [needs_chromium, pytest.mark.req("G4")]

ANN, TOM, SPACE = "8812730041", "5519934410", "guild 42"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf500f00048101806e0bf3"
    "1a0000000049454e44ae426082"
)
NOON = datetime.now(UTC).replace(hour=10, minute=0, second=0, microsecond=0)
MAY = datetime(2026, 5, 3, 9, tzinfo=UTC)


def fill(path: Path) -> None:
    """Make the memory of a group: Ann with everything that pages show, and Tom, who was active before her."""
    with aforesaid.open(path, embedder="deterministic") as memory:
        tom = memory.user(TOM, space=SPACE)
        tom.add("user", "Hazelnuts grow behind my house", at=MAY, name="Tom")
        ann = memory.user(ANN, space=SPACE)
        ann.set("time_zone", "Asia/Tokyo")
        name: dict[str, Any] = {"name": "Ann Müller"}
        for day in range(40):
            at = NOON - timedelta(days=45 - day)
            ann.add("user", f"Good morning number {day}", at=at, **name)
            ann.add("assistant", f"Good morning to you, {day}", at=at + timedelta(minutes=1))
        said = ann.add("user", "I am allergic to hazelnuts", at=NOON - timedelta(days=2), **name).message
        at = NOON - timedelta(days=1)
        ann.add("user", "Look", at=at, parts=[Part.of(PIXEL, "image/png", name="roof.png", text="a roof")], **name)
        ann.add("user", "And this", at=at, parts=[Part.of(b"%PDF" * 500, "application/pdf", name="lease.pdf")], **name)
        ann.add("assistant", "", at=at, tool_calls=[ToolCall("c1", "file_away", json.dumps({"name": "lease.pdf"}))])
        ann.add("tool", json.dumps({"filed": True}), at=at, tool_call_id="c1")
        answer = ann.add("assistant", "It is filed.", at=at).message
        thanks = ann.add("user", "Thnaks", at=at, reply_to=answer.id, **name).message
        ann.edit(thanks, "Thanks")
        ann.take_back(ann.add("user", "My PIN is 4471", at=at, **name).message)
        ann.note("fact", "Ann is allergic to hazelnuts", importance=9, source=said)
        ann.note("event", "Ann moved to Kyoto", when="2026-05-03", importance=7)
        ann.note("relationship", "Ann's sister is Bea", importance=8)
        ann.note("reminder", "Call the landlord", when=datetime.now(UTC) + timedelta(days=3))


@pytest.fixture(scope="module")
def filled_guild(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tasks") / "memory.db"
    fill(path)
    return path


@pytest.fixture(scope="module")
def guild(filled_guild: Path) -> Iterator[str]:
    with served(filled_guild) as link:
        yield link


@dataclass
class Visitor:
    """Somebody who starts on the first page, and whose clicks are counted."""

    looker: Looker
    store: Path
    clicks: int = 0
    asked: list[str] = field(default_factory=list)
    """What dialogs asked before something was done."""

    @property
    def page(self) -> Page:
        return self.looker.page

    def click(self, place: Locator) -> None:
        self.clicks += 1
        assert self.clicks <= 3, "more than three clicks"
        # After a click on a link, what needs scripts may be there before they ran.
        self.page.locator("html[data-ready]").locator(place).click()

    def link(self, name: str, within: str = "main") -> None:
        self.click(self.page.locator(within).get_by_role("link", name=name, exact=True).first)

    def button(self, name: str) -> None:
        self.click(self.page.get_by_role("button", name=name, exact=True).first)

    def face(self, name: str) -> None:
        self.click(self.page.locator(".face-row a", has=self.page.get_by_text(name, exact=True)))

    def menu(self, name: str) -> None:
        """Go to a page of the menu, which has to be opened first on a phone."""
        if self.page.get_by_role("button", name="Menu").is_visible():
            self.button("Menu")
        self.link(name, "#nav")


@pytest.fixture(params=["desk", "phone"])
def visitor(browser: Browser, guild: str, filled_guild: Path, request: pytest.FixtureRequest) -> Iterator[Visitor]:
    with looking(browser, guild, phone=request.param == "phone") as made:
        made.open("/")
        yield Visitor(made, filled_guild)
        assert made.complaints == []


def test_the_first_page_shows_who_is_remembered_last_active_first(visitor: Visitor) -> None:
    page = visitor.page
    expect(page.locator(".face-row b")).to_have_text(["Ann Müller", "Tom"])
    expect(page.locator(".face-row .picture").first).to_have_text("AM")
    visitor.click(page.locator(".tiles a", has_text="People"))
    cards = page.locator(".person-card")
    expect(cards.locator("b")).to_have_text(["Ann Müller", "Tom"])
    expect(cards.first).to_contain_text(ANN)
    expect(cards.nth(1)).to_contain_text("1 message")
    expect(cards.nth(1).locator("time").last).to_have_text("3 May 2026")


def test_a_conversation_is_read_as_a_chat(visitor: Visitor) -> None:
    page = visitor.page
    visitor.face("Ann Müller")
    visitor.link("Conversation")
    expect(page.locator("li.turn.own").last).to_be_in_viewport()
    expect(page.locator(".cut").last).to_contain_text(f"{(NOON - timedelta(days=1)).year}")
    image = page.locator(".attached img")
    expect(image).to_have_attribute("alt", "a roof")
    assert image.evaluate("each => each.decode().then(() => each.naturalWidth)") == 1
    expect(page.locator(".file")).to_contain_text("lease.pdf")
    expect(page.locator(".file")).to_contain_text("2.0 kB")
    call = page.locator("details.tool", has_text="Called file_away")
    expect(call.locator("pre")).to_be_hidden()
    call.locator("summary").click()
    expect(call.locator("pre")).to_contain_text('"name": "lease.pdf"')
    expect(page.locator("details.tool", has_text="Result of file_away")).to_be_visible()
    expect(page.locator(".quote")).to_contain_text("It is filed.")
    page.get_by_text("edited").click()
    expect(page.locator(".edits s")).to_have_text("Thnaks")
    expect(page.get_by_text("A message of Ann Müller was taken back")).to_be_visible()
    expect(page.get_by_text("4471")).to_have_count(0)
    # Ten in the morning UTC is seven in the evening in Tokyo.
    expect(page.locator("li.turn.own .stamp").last).to_contain_text("19:0")


def test_a_conversation_goes_both_ways_from_a_day(visitor: Visitor) -> None:
    page = visitor.page
    visitor.face("Ann Müller")
    visitor.link("Conversation")
    day = NOON - timedelta(days=30)
    page.get_by_label("Jump to a day").fill(f"{day:%Y-%m-%d}")
    page.get_by_label("Jump to a day").press("Enter")
    page.wait_for_url("**day=**")
    expect(page.locator("li.turn .text").first).to_have_text("Good morning number 15")
    page.get_by_role("link", name="Later messages").click()
    expect(page.get_by_text("It is filed.").first).to_be_attached()
    page.get_by_role("link", name="Earlier messages").click()
    expect(page.get_by_text("Good morning number 0", exact=True)).to_be_attached()
    expect(page.get_by_role("link", name="Earlier messages")).to_have_count(0)
    texts = page.locator("li.turn .text").all_text_contents()
    mornings = [text for text in texts if text.startswith("Good morning number")]
    assert mornings == [f"Good morning number {number}" for number in range(40)]


def test_a_memory_leads_to_its_message_and_back(visitor: Visitor) -> None:
    page = visitor.page
    visitor.click(page.locator(".tiles a", has_text="Memories"))
    card = page.locator("article.memory", has_text="allergic to hazelnuts").first
    visitor.click(card.get_by_role("link", name="Source"))
    expect(page.locator("li.turn.marked")).to_contain_text("I am allergic to hazelnuts")
    expect(page.locator("li.turn.marked")).to_be_in_viewport()
    visitor.link("Back to the memory")
    expect(page.locator("article.memory")).to_contain_text("allergic to hazelnuts")


def test_everybody_is_searched_and_each_hit_says_whose_it_is_and_why(visitor: Visitor) -> None:
    page = visitor.page
    page.get_by_role("searchbox", name="Search everybody").fill("hazelnuts")
    page.get_by_role("searchbox", name="Search everybody").press("Enter")
    expect(page.get_by_role("status").filter(has_text="2 people searched")).to_be_visible()
    expect(page.locator(".hit .who").filter(has_text="Tom")).to_have_count(1)
    expect(page.locator(".hit .who").filter(has_text="Ann Müller").first).to_be_visible()
    expect(page.locator(".hit .because").first).to_contain_text("its words match")
    visitor.click(page.get_by_text("Filters: time, speaker, kind"))
    page.get_by_label("until").fill("2026-05-31")
    page.get_by_label("Speaker").select_option("person")
    page.get_by_label("Looking for").press("Enter")
    expect(page.locator(".hit")).to_have_count(1)
    expect(page.locator(".hit")).to_contain_text("Hazelnuts grow behind my house")


def test_a_wrong_period_is_explained_beside_its_field(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.looker.address}/search?space={SPACE}&text=x&since=2026-05-02&until=2026-05-01")
    expect(page.get_by_label("until")).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".wrong")).to_have_text("this is before the first day")
    visitor.looker.complaints.clear()


def test_what_happened_in_may_and_who_is_in_a_life(visitor: Visitor) -> None:
    page = visitor.page
    visitor.face("Ann Müller")
    expect(page.locator(".around")).to_contain_text("Bea")
    expect(page.locator(".around")).to_contain_text("sister")
    visitor.link("Timeline")
    month = page.get_by_role("region", name="May 2026")
    expect(month).to_contain_text("Ann moved to Kyoto")
    expect(month.locator(".when b")).to_have_text("3")


def test_an_id_is_copied_with_a_click(visitor: Visitor) -> None:
    visitor.looker.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visitor.face("Ann Müller")
    visitor.click(visitor.page.locator(".copy"))
    visitor.looker.hears("Copied")
    assert visitor.page.evaluate("navigator.clipboard.readText()") == ANN


def test_an_id_is_copied_where_the_browser_offers_no_clipboard(visitor: Visitor) -> None:
    """As on a page from another machine without TLS."""
    visitor.looker.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visitor.looker.context.add_init_script("window.kept = navigator.clipboard; delete Navigator.prototype.clipboard;")
    visitor.face("Ann Müller")
    visitor.click(visitor.page.locator(".copy"))
    visitor.looker.hears("Copied")
    assert visitor.page.evaluate("kept.readText()") == ANN


@pytest.mark.defect("P8")
def test_reminders_are_set_moved_and_cancelled_in_the_persons_own_zone(
    browser: Browser, filled_guild: Path, tmp_path: Path
) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(filled_guild, path)
    with served(path) as link, looking(browser, link, phone=True) as looker:
        page = looker.open("/")
        visitor = Visitor(looker, tmp_path)
        visitor.face("Ann Müller")
        visitor.link("Reminders")
        page.get_by_label("Remind Ann Müller to").fill("Buy tea")
        page.get_by_label("When").fill("2040-02-03T09:30")
        visitor.button("Set")
        looker.hears("Reminder set: Buy tea")
        plan = page.locator(".plan", has_text="Buy tea")
        expect(plan).to_contain_text("3 Feb 2040, 09:30")
        plan.get_by_label("New time").fill("2040-02-04T10:00")
        plan.get_by_role("button", name="Move").click()
        looker.hears("Moved: Buy tea")
        expect(plan).to_contain_text("4 Feb 2040, 10:00")
        plan.get_by_label("New time").fill("2020-02-04T10:00")
        plan.get_by_role("button", name="Move").click()
        expect(plan.locator(".wrong")).to_contain_text("is in the past")
        page.locator(".plan", has_text="Call the landlord").get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("status").filter(has_text="Cancelled: Call the landlord")).to_be_visible()
        expect(page.locator(".plan")).to_have_count(1)
    with aforesaid.open(path) as memory:
        (left,) = memory.user(ANN, space=SPACE).reminders()
    assert left.remind_at == datetime(2040, 2, 4, 1, 0, tzinfo=UTC)


def test_a_person_is_exported_and_erased_after_their_name_was_typed(
    browser: Browser, filled_guild: Path, tmp_path: Path
) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(filled_guild, path)
    with served(path) as link, looking(browser, link) as looker:
        page = looker.open("/")
        visitor = Visitor(looker, tmp_path)
        visitor.face("Tom")
        visitor.link("Data")
        with page.expect_download() as waiting:
            visitor.link("Export")
        export = tmp_path / "tom.jsonl.gz"
        waiting.value.save_as(export)
        expect(page.locator(".gone-list")).to_contain_text("1 message")
        page.get_by_label("to confirm").fill("Tim")
        page.get_by_role("button", name="Erase for good").click()
        expect(page.locator(".wrong")).to_contain_text("nothing was erased")
        page.get_by_label("to confirm").fill("tom")
        page.get_by_role("button", name="Erase for good").click()
        looker.hears("Erased for good: 1 message")
        expect(page.locator("tbody")).to_contain_text("erased a person for good")
        expect(page.locator("h1")).to_have_text("Audit")
    with aforesaid.open(tmp_path / "other.db") as memory:
        assert memory.load(export).ok
        assert [(user.id, user.name) for user in memory.users()] == [(TOM, "Tom")]
        assert [message.text for message in memory.user(TOM, space=SPACE).history()] == [
            "Hazelnuts grow behind my house"
        ]


@pytest.mark.defect("N4")
def test_an_import_is_previewed_before_anything_is_stored(browser: Browser, tmp_path: Path) -> None:
    chat = tmp_path / "WhatsApp Chat with Zoe.txt"
    lines = [f"{day:02}.03.26, 21:05 - {who}: message {day}" for day in range(1, 21) for who in ("Zoe", "Yan")]
    chat.write_text("\n".join(lines), encoding="utf-8")
    with served(tmp_path / "memory.db") as link, looking(browser, link, phone=True) as looker:
        page = looker.open("/")
        visitor = Visitor(looker, tmp_path)
        visitor.link("Import conversations")
        page.get_by_label("File").set_input_files(chat)
        visitor.button("Look what is in it")
        found = page.locator("#import")
        expect(found).to_contain_text("from 1 Mar 2026 to 20 Mar 2026")
        expect(found.locator(".imported li")).to_have_count(2)
        expect(found.locator(".imported")).to_contain_text("20 messages")
        assert users(looker) == []
        visitor.button("Import it")
        expect(found).to_contain_text("It is the memory of")
        found.get_by_role("link", name="Zoe").click()
        expect(page.locator("h1")).to_have_text("Zoe")
        page = looker.open("/people")
        expect(page.locator(".person-card time").last).to_have_text("1 Mar 2026")


def users(looker: Looker) -> list[Any]:
    found: list[Any] = looker.context.request.get(f"{looker.address}/api/users").json()["users"]
    return found


def test_what_grew_is_what_is_there(visitor: Visitor) -> None:
    page = visitor.page
    tile = page.locator(".tiles a", has_text="Memories").locator("b").inner_text()
    label = page.locator("[data-chart][aria-label^=Growth]").get_attribute("aria-label") or ""
    assert re.findall(r"([\d,]+) memories", label) == [tile]
    chart = json.loads(page.locator("[data-chart][aria-label^=Growth]").get_attribute("data-chart") or "{}")
    assert chart["series"][1]["values"][-1] == int(tile)
