"""Who may see and do what in the panel, and how it answers what is wrong."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from html import escape, unescape

import httpx2
import pytest

from aforesaid.profiles.recipe import SECTIONS
from aforesaid.server.panel import search
from aforesaid.server.panel.conversation import WHY
from aforesaid.server.problems import STATIC
from server.panelling import READS, WRITES
from server.serving import ADDRESS, Running, running

pytestmark = pytest.mark.anyio

PAGE = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture
async def server() -> AsyncIterator[Running]:
    async with running() as made:
        for user, space in (("ann", "default"), ("bob", "default"), ("eve", "other")):
            person = made.memory.user(user, space=space)
            await person.add("user", f"secret of {user}: the key lies under the mat")
            await person.note("fact", f"{user} keeps a secret", importance=7)
            await person.summarize()
        yield made


@asynccontextmanager
async def browsing(server: Running, token: str) -> AsyncIterator[tuple[httpx2.AsyncClient, str]]:
    """Sign in as a browser does, and read the token that forms carry."""
    async with server.client() as browser:
        browser.headers.update(PAGE)
        await browser.get("/login", params={"token": token})
        cookie = browser.cookies.get(server.here.cookie)
        who = server.here.sessions.find(cookie or "")
        assert who is not None
        yield browser, who.csrf or ""


@pytest.mark.defect("S8")
async def test_a_search_over_everybody_goes_on_until_all_were_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SECONDS", 0.0)
    async with running() as server, browsing(server, str.__str__(server.here.link)) as (browser, _):
        await server.memory.user("first").add("user", "The hazelnuts are in the cellar.")
        for number in range(109):
            await server.memory.user(f"person-{number}").add("user", f"My number is {number}.")
        page = (await browser.get("/search?text=hazelnuts")).text
        assert "1 message has these words, of 1 person" in page, "the index says at once who has them"
        assert "in the cellar" in page
        page = (await browser.get("/search?text=number&limit=5")).text
        assert "109 messages have these words, of 109 people · people 1 to 48 searched" in page
        address, told = "/search?text=walnuts&kind=message&kind=summary&limit=5", []
        while address:
            page = (await browser.get(address)).text
            told += re.findall(r"nobody has these words · people \d+ to \d+ of 110 searched", page)
            found = re.search(r'href="(/search[^"]*)">Search \d+ more', page)
            address = unescape(found[1]) if found else ""
            assert not address or {"kind=message", "kind=summary", "limit=5"} <= set(address.split("&")), "the filters"
        searched = [f"people {some} of 110 searched" for some in ("1 to 48", "49 to 96", "97 to 110")]
        assert told == [f"nobody has these words · {each}" for each in searched]
        monkeypatch.setattr(search, "SECONDS", 600.0)
        page = (await browser.get("/search?text=walnuts")).text
        assert "all 110 people searched" in page
        assert "more people" not in page


SECRETS = {user: (f"secret of {user}", f"{user} keeps a secret") for user in ("ann", "bob", "eve")}


def found_in(answer: httpx2.Response) -> list[str]:
    """Return the secrets that an answer tells."""
    return [secret for some in SECRETS.values() for secret in some if secret in answer.text]


def address(path: str, number: int = 1) -> str:
    return path.replace("{number}", str(number))


def test_there_are_pages_to_look_at() -> None:
    assert len(READS) > 15
    assert len(WRITES) > 10


def test_every_section_of_a_context_is_explained_and_has_its_colour() -> None:
    style = (STATIC / "panel.css").read_text(encoding="utf-8")
    for section in SECTIONS:
        assert WHY[section]
        assert f".section-{section} {{ --part" in style


async def test_a_stranger_is_sent_to_the_door(server: Running) -> None:
    async with server.client() as stranger:
        for path in READS:
            answer = await stranger.get(address(path), params={"user": "ann", "session": "x"}, headers=PAGE)
            assert answer.status_code == 303, path
            assert answer.headers["location"].startswith("/login?next="), path


async def test_a_reader_changes_nothing(server: Running) -> None:
    async with browsing(server, server.key("reader")) as (browser, csrf):
        form = {"csrf": csrf, "user": "ann", "text": "x", "category": "fact", "importance": "3", "fact": "x"}
        for path in WRITES:
            answer = await browser.post(address(path), params={"user": "ann"}, data=form)
            assert answer.status_code == 403, path
            assert "needs the role" in answer.text or "all spaces" in answer.text, path
    assert [each.text for each in await server.memory.memories()] == ["bob keeps a secret", "ann keeps a secret"]


async def test_a_form_without_its_token_changes_nothing(server: Running) -> None:
    async with browsing(server, str.__str__(server.here.link)) as (browser, _):
        for path in WRITES:
            answer = await browser.post(address(path), params={"user": "ann"}, data={"text": "x", "fact": "x"})
            assert answer.status_code == 403, path
            assert "token is missing or old" in answer.text, path


async def test_a_key_for_one_space_sees_nothing_of_another(server: Running) -> None:
    async with browsing(server, server.key("admin", space="default")) as (browser, _):
        for path, number in ((path, number) for path in READS for number in range(1, 4)):
            asked = {"user": "eve", "space": "other", "text": "secret", "session": "s-3"}
            answer = await browser.get(address(path, number), params=asked)
            assert answer.status_code in {403, 404}, path
            assert not set(SECRETS["eve"]) & set(found_in(answer)), path
            # The same person in the space that the key is for is somebody else, of whom nothing is known.
            own = await browser.get(address(path, number), params=asked | {"space": "default"})
            assert not set(SECRETS["eve"]) & set(found_in(own)), path


async def test_a_key_for_one_person_sees_nobody_else(server: Running) -> None:
    seen: set[str] = set()
    async with browsing(server, server.key("admin", user="ann")) as (browser, _):
        for path, number in ((path, number) for path in READS for number in range(1, 4)):
            for asked in ({"user": "bob"}, {"user": "ann"}, {}):
                answer = await browser.get(address(path, number), params={**asked, "text": "secret", "session": "s-2"})
                assert not set(SECRETS["bob"] + SECRETS["eve"]) & set(found_in(answer)), (path, asked)
                seen |= set(found_in(answer))
    assert seen == set(SECRETS["ann"]), "these pages do show what they may"


async def test_what_belongs_to_others_cannot_be_changed(server: Running) -> None:
    theirs = (await server.memory.memories(space="other"))[0].id
    async with browsing(server, server.key("admin", space="default")) as (browser, csrf):
        form = {"csrf": csrf, "text": "changed", "category": "fact", "importance": "3", "at": "2040-01-01T10:00"}
        for path in (path for path in WRITES if "{number}" in path):
            foreign = await browser.post(address(path, theirs), params={"user": "ann"}, data=form)
            unknown = await browser.post(address(path, 999_999), params={"user": "ann"}, data=form)
            assert foreign.status_code == unknown.status_code == 404, path
    assert [each.text for each in await server.memory.memories(space="other")] == ["eve keeps a secret"]


async def test_a_key_for_one_space_exports_and_takes_in_nothing_and_erases_there_alone(server: Running) -> None:
    async with browsing(server, server.key("admin", space="default")) as (browser, csrf):
        assert (await browser.get("/data/export")).status_code == 403
        file = {"file": ("x.jsonl", b"{}")}
        assert (await browser.post("/data/import", data={"csrf": csrf}, files=file)).status_code == 403
        there = {"csrf": csrf, "user": "eve", "confirm": "eve"}
        assert (await browser.post("/data/purge", params={"space": "other"}, data=there)).status_code == 404
        assert (await browser.post("/data/purge", data=there)).status_code == 404
        here = {"csrf": csrf, "user": "bob", "confirm": "bob"}
        assert (await browser.post("/data/purge", data=here)).status_code == 303
    assert [user.id for user in await server.memory.users()] == ["ann", "eve"]


NO_FILES = (b"", b"\x00\x01\x02", b"[" * 100_000, b'{"aforesaid": 99}', "ü".encode("utf-16"))


async def test_a_file_that_is_none_is_refused(server: Running) -> None:
    async with browsing(server, str.__str__(server.here.link)) as (browser, csrf):
        for content in NO_FILES:
            file = {"file": ("../../evil.jsonl.gz", content)}
            answer = await browser.post("/data/import", data={"csrf": csrf}, files=file)
            assert answer.status_code in {200, 422}, (content[:20], answer.text)
            assert "cannot be read" in answer.text or 'role="alert"' in answer.text
    assert len(await server.memory.users()) == 3


@pytest.mark.defect("N4")
async def test_a_chat_that_was_taken_in_says_whose_memory_it_is(server: Running) -> None:
    chat = "14.03.26, 21:05 - Zoë: tea?\n14.03.26, 21:06 - Yan: <Media omitted>\n14.03.26, 21:07 - Yan: yes\n"
    async with browsing(server, str.__str__(server.here.link)) as (browser, csrf):
        file = {"file": ("..\\WhatsApp Chat with Yan (1).txt", chat.encode())}
        place = (await browser.post("/data/import", data={"csrf": csrf}, files=file)).headers["location"]
        preview = (await browser.get(place)).text
        assert "It becomes the memory of" in preview
        assert "14 Mar 2026" in preview
        assert "Yan" not in [user.id for user in await server.memory.users()], "nothing is stored yet"
        assert (await browser.post(place, data={"csrf": csrf})).status_code == 303
        while "Being imported" in (answer := await browser.get(place)).text:
            await asyncio.sleep(0.01)
        assert "It is the memory of" in answer.text
        assert 'href="/person?user=Yan"' in answer.text.replace("&amp;", "&").replace("space=default&", "")
    assert [message.thread for message in await server.memory.user("Zoë").history()] == ["whatsapp:Yan"]


async def test_what_goes_wrong_is_told_on_a_page(server: Running) -> None:
    async with browsing(server, str.__str__(server.here.link)) as (browser, _):
        for path in ("/memories/999", "/memories?category=nonsense", "/nowhere", "/person", "/memories/x"):
            answer = await browser.get(path)
            assert answer.status_code in {404, 422}, path
            assert answer.headers["content-type"].startswith("text/html")
            assert 'role="alert"' in answer.text
    async with server.admin() as program:
        answer = await program.get("/memories/999")
        assert answer.headers["content-type"] == "application/problem+json"


HUGE = "x" * 300_000


BAD = (
    ("text", ""),
    ("text", "   "),
    ("text", "a\0b"),
    ("text", HUGE),
    ("category", "nonsense"),
    ("importance", "0"),
    ("importance", "11"),
    ("importance", "seven"),
    ("importance", "9" * 40),
    ("user", ""),
    ("user", "*"),
    ("user", "a\nb"),
    ("user", "y" * 300),
    ("when", "no time at all"),
    ("tags", "z" * 300),
)


async def test_bad_input_is_refused_and_nothing_is_stored(server: Running) -> None:
    good = {"user": "ann", "text": "a good one", "category": "fact", "importance": "5", "tags": "", "when": ""}
    before = await server.memory.memories(active=None)
    async with browsing(server, str.__str__(server.here.link)) as (browser, csrf):
        for field, value in BAD:
            answer = await browser.post("/memories/add", data=good | {field: value, "csrf": csrf})
            assert answer.status_code in {404, 413, 422}, (field, value[:20], answer.text)
        assert await server.memory.memories(active=None) == before
        fine = await browser.post("/memories/add", data=good | {"csrf": csrf})
    assert fine.status_code == 303
    assert (await server.memory.memories())[0].text == "a good one"


@pytest.mark.req("G8")
@pytest.mark.parametrize(("field", "value"), BAD, ids=lambda value: value[:12])
async def test_bad_input_is_refused_in_the_language_of_the_page(server: Running, field: str, value: str) -> None:
    form = {"user": "ann", "text": "a good one", "category": "fact", "importance": "5", field: value}
    told = {}
    async with browsing(server, str.__str__(server.here.link)) as (browser, csrf):
        for language in ("en", "de"):
            headers = {"Accept": "application/json", "Accept-Language": language}
            answer = await browser.post("/memories/add", data=form | {"csrf": csrf}, headers=headers)
            told[language] = answer.json()["detail"]
    assert told["en"] != told["de"], "the same in both languages"


@pytest.mark.defect("P8")
async def test_the_form_of_a_memory_moves_a_reminder(server: Running) -> None:
    ann = server.memory.user("ann")
    await ann.set("time_zone", "Europe/Berlin")
    reminder = await ann.note("reminder", "Call mum on December 1, 2126 at 10am")
    path = f"/memories/{reminder.id}"
    form = {"category": "reminder", "importance": "5", "text": reminder.text}
    async with browsing(server, str.__str__(server.here.link)) as (browser, csrf):
        shown = (await browser.get(path, params={"edit": "true"})).text
        assert 'name="when" value="2126-12-01 10:00"' in shown
        assert "Europe/Berlin" in shown
        moved = form | {"when": "2126-12-02 10:00", "csrf": csrf}
        assert (await browser.post(path, data=moved)).status_code == 303
        assert (await ann.read_memory(reminder.id)).remind_at == datetime(2126, 12, 2, 9, 0, tzinfo=UTC)
        # The time is left as it is shown, and the text names another one.
        edited = moved | {"text": "Call mum on December 3, 2126 at 10am"}
        assert (await browser.post(path, data=edited)).status_code == 303
        assert (await ann.read_memory(reminder.id)).remind_at == datetime(2126, 12, 3, 9, 0, tzinfo=UTC)


@pytest.mark.defect("P11")
async def test_a_refused_form_is_shown_again_and_nothing_that_was_typed_runs(server: Running) -> None:
    hostile = "</textarea><script>alert(1)</script>\" onfocus='alert(2)"
    form = {
        "user": "ann",
        "text": hostile,
        "category": "task",
        "importance": "eleven",
        "tags": hostile,
        "when": hostile,
    }
    page = f"{ADDRESS}/person/memories?user=ann"
    async with browsing(server, str.__str__(server.here.link)) as (browser, csrf):
        answer = await browser.post("/memories/add", data=form | {"csrf": csrf}, headers={"Referer": page})
    assert answer.status_code == 422
    assert answer.headers["content-type"].startswith("text/html")
    assert "importance must be a whole number, not &#x27;eleven&#x27;" in answer.text
    assert answer.text.count(escape(hostile)) == 3
    assert "<script>alert" not in answer.text
    assert "came_from=%2Fperson%2Fmemories%3Fuser%3Dann" in answer.text


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Auckland", "Europe/Berlin", "Etc/GMT+12"])
async def test_a_day_without_a_time_is_the_persons_own_day(server: Running, zone: str) -> None:
    ann = server.memory.user("ann")
    await ann.set("time_zone", zone)
    await ann.note("schedule", "Move house on January 1, 2126")
    async with browsing(server, str.__str__(server.here.link)) as (browser, _):
        for page in ("/memories", "/person/memories?user=ann"):
            assert "1 Jan 2126" in (await browser.get(page)).text, page
        assert "1 Jan 2126</b>" in (await browser.get("/person/reminders?user=ann")).text, "no time of day"
        number = (await ann.memories("schedule"))[0].id
        assert 'name="when" value="2126-01-01"' in (await browser.get(f"/memories/{number}?edit=true")).text


async def test_memories_of_a_person_are_grouped_by_kind_or_by_category(server: Running) -> None:
    ann = server.memory.user("ann")
    await ann.note("relationship", "Tom is her brother")
    await ann.note("event", "Ran a marathon on May 3, 2024")
    async with browsing(server, str.__str__(server.here.link)) as (browser, _):
        by_kind = (await browser.get("/person/memories?user=ann")).text
        titles = re.findall(r'<h2 id="title-\w+">(.*?)</h2>', by_kind)
        assert titles == ["Facts", "Events", "Relationships"]
        by_category = (await browser.get("/person/memories?user=ann&by=category")).text
        assert "Relationships" not in re.findall(r'<h2 id="title-\w+">(.*?)</h2>', by_category)
        assert "Tom is her brother" in by_category
        only = (await browser.get("/memories?kind=relationship")).text
        assert ("Tom is her brother" in only, "Ran a marathon" in only) == (True, False)
        refused = await browser.get("/memories?kind=gossip")
        assert (refused.status_code, "unknown value" in refused.text) == (422, True)


async def test_a_memory_of_blanks_is_refused(server: Running) -> None:
    ann = server.memory.user("ann")
    known = await ann.note("fact", "Sails")
    before = await ann.memories()
    async with browsing(server, str.__str__(server.here.link)) as (browser, csrf):
        for path in ("/memories/add", f"/memories/{known.id}"):
            form = {"csrf": csrf, "user": "ann", "text": " \t ", "category": "fact", "importance": "5"}
            answer = await browser.post(path, data=form)
            assert answer.status_code == 422, path
            assert "the text is empty" in answer.text
    assert await ann.memories() == before


@pytest.mark.defect("P11")
async def test_a_form_that_was_corrected_leads_back_to_its_page(server: Running) -> None:
    async with browsing(server, str.__str__(server.here.link)) as (browser, csrf):
        form = {"csrf": csrf, "user": "ann", "text": "tea"}
        for came, back in (
            ("/memories?text=x", "/memories?text=x"),
            ("//evil.example/memories", "/person/memories?user=ann"),
            ("/\\evil.example", "/person/memories?user=ann"),
            ("https://evil.example/", "/person/memories?user=ann"),
        ):
            answer = await browser.post("/memories/add", params={"came_from": came}, data=form)
            assert answer.headers["location"] == back


@pytest.mark.defect("P11")
async def test_a_name_that_several_people_have_is_explained_where_it_was_typed(server: Running) -> None:
    for user in ("k1", "k2"):
        await server.memory.user(user).add("user", "hello", name="Kim")
    async with browsing(server, str.__str__(server.here.link)) as (browser, _):
        answer = await browser.get("/search", params={"user": "Kim", "text": "hello"})
    assert answer.status_code == 422
    assert "2 people are called" in answer.text
    assert 'value="Kim"' in answer.text
    assert 'value="hello"' in answer.text


IMPOSSIBLE = (
    {"short_term_memory_limit": "0"},
    {"short_term_memory_limit": "a"},
    {"semantic_similarity_threshold": "1.5"},
    {"semantic_similarity_threshold": "nan"},
    {"context_profile": "nonsense"},
    {"time_zone": "Mars/Olympus"},
    {"bot_persona": "a\0b"},
    {"context_budget": "1"},
)


async def test_a_setting_that_cannot_be_is_refused(server: Running) -> None:
    async with browsing(server, str.__str__(server.here.link)) as (browser, csrf):
        for asked in IMPOSSIBLE:
            answer = await browser.post("/settings", data=asked | {"csrf": csrf})
            assert answer.status_code in {413, 422}, (asked, answer.text)
    assert await server.memory.settings() == {}


async def test_settings_name_who_changed_them_and_only_what_changed_is_written(server: Running) -> None:
    async with browsing(server, server.key("admin")) as (browser, csrf):
        form = {"csrf": csrf, "short_term_memory_limit": "3", "bot_persona": "", "memory_enabled": "off"}
        answer = await browser.post("/person/settings", params={"user": "ann"}, data=form)
        assert answer.headers["location"] == "/person/settings?user=ann"
        assert await server.memory.user("ann").settings() == {"short_term_memory_limit": 3, "memory_enabled": False}
        await browser.post("/person/settings", params={"user": "ann"}, data=form | {"memory_enabled": ""})
    assert await server.memory.user("ann").settings() == {"short_term_memory_limit": 3}
    entries = [each for each in await server.memory.user("ann").audit() if each.action.startswith("setting.")]
    assert len(entries) == 3
    assert all("test admin" in each.actor for each in entries)


async def test_what_was_done_is_told_on_the_next_page_and_not_lost_to_a_refresh(server: Running) -> None:
    (memory,) = await server.memory.memories(user="ann")
    told = "Deleted: ann keeps a secret"
    async with browsing(server, str.__str__(server.here.link)) as (browser, csrf):
        await browser.post(f"/memories/{memory.id}/delete", data={"csrf": csrf})
        for headers in ({"X-Aforesaid-Live": "yes"}, {"HX-Request": "true"}):
            assert told not in (await browser.get("/memories", headers=headers)).text
        assert told in (await browser.get("/memories")).text
        assert told not in (await browser.get("/memories")).text


async def test_an_answer_leads_back_only_to_pages_of_our_own(server: Running) -> None:
    async with browsing(server, str.__str__(server.here.link)) as (browser, csrf):
        for came, back in (
            (f"{ADDRESS}/memories?text=x", "/memories?text=x"),
            ("http://evil.example/memories", "/person/memories?user=ann"),
            ("nonsense", "/person/memories?user=ann"),
        ):
            form = {"csrf": csrf, "user": "ann", "text": "tea"}
            answer = await browser.post("/memories/add", data=form, headers={"Referer": came})
            assert answer.headers["location"] == back


async def test_other_ids_than_ours_are_fine(server: Running) -> None:
    odd = "a/b?c=d&e#f %25 ü 日本"
    await server.memory.user(odd).note("fact", "has a strange name")
    async with browsing(server, str.__str__(server.here.link)) as (browser, _):
        for path in ("/person", "/person/memories", "/person/conversation", "/person/sessions", "/person/audit"):
            answer = await browser.get(path, params={"user": odd})
            assert answer.status_code == 200, path
            assert "a/b?c=d&amp;e#f %25 ü 日本" in answer.text


async def test_the_events_and_the_people_of_a_person_are_shown(server: Running) -> None:
    ann = server.memory.user("ann")
    await ann.note("event", "Moved to <b>Berlin</b>", when="2020-05-01")
    await ann.note("relationship", "My sister Sinéad lives in Cork")
    async with browsing(server, server.key("reader")) as (browser, _):
        events = (await browser.get("/person/timeline", params={"user": "ann"})).text
        assert "Moved to &lt;b&gt;Berlin&lt;/b&gt;" in events
        assert "Sinéad" not in events
        nothing = await browser.get("/person/timeline", params={"user": "ann", "text": "the kitchen"})
        assert "Nothing that happened fits." in nothing.text
        people = (await browser.get("/person/people", params={"user": "ann"})).text
        assert "Sinéad" in people
        assert '<span class="chip">sister</span>' in people


@pytest.mark.parametrize("wanted", [{"user": "bob"}, {"user": "eve", "space": "other"}])
async def test_nobody_is_told_when_something_changes_behind_a_wall(server: Running, wanted: dict[str, str]) -> None:
    async with browsing(server, server.key("reader", user="ann")) as (browser, _):
        answer = await browser.get("/live", params=wanted)
        assert answer.status_code in {403, 404}
    async with server.client() as stranger:
        assert (await stranger.get("/live", params=wanted)).status_code == 401
