"""The playground: ask with the memory on and off, see what is sent, and keep a turn only if asked to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from aforesaid.testing import ScriptedModel
from panel.looking import needs_chromium
from server.serving import Live, live

QUESTION = "Where do I live?"
CHECKS = (Path(__file__).parent / "checks.js").read_text(encoding="utf-8")


def script(asked: Any) -> str:  # noqa: ANN401
    """Answer from what the model was sent, as a model would."""
    told = json.dumps(asked.body)
    return "You live in <b>Berlin</b>." if "moved to Berlin" in told else "I do not know."


@pytest.fixture
def server() -> Iterator[Live]:
    with ScriptedModel(script) as model:
        chosen = model.settings()
        with live(settings=replace(chosen, routes={"chat": chosen.routes["chat"]})) as served:
            ann = served.served.memory.user("ann")
            served.run(ann.add("user", "I moved to Berlin last week.", name="Ann"))
            yield served


def ask(server: Live, **form: str) -> list[dict[str, str]]:
    headers = {"Authorization": f"Bearer {server.link}"}
    body = {"user": "ann", "text": QUESTION, **form}
    answer = httpx2.post(f"{server.address}/playground/ask", data=body, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_the_same_question_with_and_without_memory(server: Live) -> None:
    told = ask(server, memory="on")
    assert "I moved to Berlin last week." in told[0]["sent"]
    assert "".join(each.get("piece", "") for each in told) == "You live in <b>Berlin</b>."
    assert "Whole reply after" in told[-1]["done"]
    blank = ask(server, memory="off")
    assert "nothing from memory" in blank[0]["sent"]
    assert "".join(each.get("piece", "") for each in blank) == "I do not know."


def test_nothing_is_stored_until_a_turn_is_kept(server: Live) -> None:
    ann = server.served.memory.user("ann")
    done = ask(server, memory="on")[-1]["done"]
    assert len(server.run(ann.history())) == 1
    assert server.run(ann.receipts()) == []
    turn = done.split('name="turn" value="')[1].split('"')[0]
    headers = {"Authorization": f"Bearer {server.link}"}

    def keep(name: str) -> int:
        address = f"{server.address}/playground/keep"
        return httpx2.post(address, data={"turn": name}, headers=headers).status_code

    assert keep("another") == 404
    assert keep(turn) == 303
    assert [each.text for each in server.run(ann.history())][1:] == [QUESTION, "You live in <b>Berlin</b>."]
    (receipt,) = server.run(ann.receipts())
    assert receipt.reply == server.run(ann.history())[-1].seq
    assert keep(turn) == 404


def test_without_a_model_it_says_how_to_configure_one_and_shows_the_context() -> None:
    with live() as server:
        server.run(server.served.memory.user("ann").add("user", "I moved to Berlin last week."))
        headers = {"Authorization": f"Bearer {server.link}"}
        page = httpx2.get(f"{server.address}/playground", params={"user": "ann"}, headers=headers)
        assert "models.default" in page.text
        (only,) = ask(server, memory="on")
        assert "I moved to Berlin last week." in only["sent"]


@needs_chromium
@pytest.mark.parametrize("width", [1_280, 390])
def test_both_answers_come_side_by_side_in_a_browser(server: Live, browser: Browser, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800})
    try:
        page = context.new_page()
        failures: list[str] = []
        page.on("console", lambda each: failures.append(each.text) if each.type == "error" else None)
        page.goto(f"{server.address}/login?token={server.link}")
        page.goto(f"{server.address}/playground?user=ann")
        page.get_by_label("Question").fill(QUESTION)
        page.get_by_role("button", name="Ask").click()
        on, off = page.get_by_role("region", name="With memory"), page.get_by_role("region", name="Without memory")
        expect(on).to_contain_text("You live in <b>Berlin</b>.")
        expect(on).to_contain_text("I moved to Berlin last week.")
        expect(off).to_contain_text("I do not know.")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it is wider than the screen"
        page.evaluate("document.querySelectorAll('details').forEach((each) => each.open = true)")
        assert page.evaluate(CHECKS) == {"nameless": [], "twice": [], "faint": []}
        # In one step, because the page may scroll between two.
        left, right = page.evaluate(
            "(all) => all.map((each) => each.getBoundingClientRect().y)", [on.element_handle(), off.element_handle()]
        )
        assert (left == right) is (width > 1_000), "side by side where there is room, else one below another"
        on.get_by_role("button", name="Keep this turn").click()
        expect(page.get_by_text("Stored.")).to_be_visible()
        assert len(server.run(server.served.memory.user("ann").history())) == 3
        assert not failures
    finally:
        context.close()
