"""Every route of the API and of the panel, asked thousands of things: by those who may, and by those who may not."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from schemathesis import GenerationMode

from aforesaid.memory import UserMemory
from aforesaid.server.auth import ROLES
from server.belongings import fill_with_everything, state_of
from server.describing import CHECKS, OPERATIONS, requests, so_many
from server.panelling import READS, WRITES
from server.serving import Live, live
from torture.support import Figures, Size

MARK: Final = "qzx7gmarker"
"""A word that is in all that they keep, and in no request."""
PERSONA: Final = "qzx7gpersona"
"""What is set for a whole space: everybody in it may see it, and nobody else."""
UNKNOWN: Final = 987_654_321
FAILED: Final = 500
PAGE: Final = {"Accept": "text/html"}
ONE_EACH: Final = httpx2.Limits(max_keepalive_connections=0)
"""A machine that is paused for a while finds kept connections closed."""


@pytest.mark.skipif("not config.getoption('--torture')", reason="few cases are in tests/server/test_described.py")
def test_every_answer_is_as_described_whoever_asks(size: Size) -> None:
    """Half of the requests name people and things that there are, so that they are not all answered with 404."""
    figures = Figures("described", "operations", "cases", "2xx", "4xx", "5xx", "undeclared")
    with live() as server:
        numbers = server.run(fill_with_everything(server.served.memory.user("bob"), MARK))
        tokens = [server.link, *(server.key(role) for role in ROLES), server.key("admin", user="bob")]

        def all_of(operation: str) -> None:
            number = _number_in(OPERATIONS[operation][0], numbers)

            @so_many(size.of(small=2, full=400))
            @given(case=requests(operation), token=st.sampled_from(tokens), known=st.booleans())
            def ask(case: Any, token: str, *, known: bool) -> None:  # noqa: ANN401
                if known:
                    _point_at(case, "bob", None, number)
                answer = case.call(base_url=server.address, headers={"Authorization": f"Bearer {token}"})
                figures.add("cases")
                figures.add(f"{answer.status_code // 100}xx")
                try:
                    case.validate_response(answer, checks=CHECKS)
                except BaseException:
                    figures.add("undeclared", int(answer.status_code < FAILED))
                    raise

            ask()

        try:
            for operation in OPERATIONS:
                figures.add("operations")
                all_of(operation)
        finally:
            figures.show()
    assert figures["5xx"] == figures["undeclared"] == 0


@dataclass(frozen=True)
class Wall:
    """Somebody who asks, and what they ask for though it is not theirs."""

    name: str
    token: str
    user: str | None
    space: str | None
    inside: bool = False
    """Whether they belong to the space, and only the user is another."""

    def leaks(self, told: str) -> bool:
        """Tell whether they were told what they may not know."""
        return MARK in told or (not self.inside and PERSONA in told)


@contextmanager
def walled() -> Iterator[tuple[Live, list[Wall], dict[str, int], UserMemory]]:
    """Serve what others keep to keys of every role that may not see it."""
    with live() as server:
        memory = server.served.memory
        theirs = memory.user("bob", space="theirs")
        server.run(memory.user(f"{MARK}-user", space="theirs").add("user", f"nobody names {MARK}"))
        server.run(memory.set("bot_persona", PERSONA, space="theirs"))
        numbers = server.run(fill_with_everything(theirs, MARK))
        server.served.keys.add(MARK, "reader", space="theirs")
        walls = []
        for role in ROLES:
            mine = server.key(role, space="mine")
            ann = server.key(role, space="theirs", user="ann")
            walls += [
                Wall(f"{role} of another space", mine, "bob", None),
                Wall(f"{role} of another space who names it", mine, "bob", "theirs"),
                Wall(f"{role} of another space who names nobody", mine, None, "theirs"),
                Wall(f"{role} for another user", ann, "bob", None, inside=True),
                Wall(f"{role} for the same name elsewhere", server.key(role, space="mine", user="bob"), "bob", None),
            ]
        yield server, walls, numbers, theirs


def test_no_route_of_the_api_reaches_over_a_wall(size: Size) -> None:
    figures = Figures("walls of the API", "operations", "walls", "cases", "2xx", "4xx", "5xx", "leaks")
    asked = [operation for operation, (path, _) in OPERATIONS.items() if path.startswith("/api/")]
    with walled() as (server, walls, numbers, theirs):

        def all_of(operation: str) -> None:
            path, _ = OPERATIONS[operation]
            foreign = _number_in(path, numbers)

            def ask_as(case: Any, wall: Wall) -> None:  # noqa: ANN401
                answers = []
                for number in (foreign, UNKNOWN) if "{number}" in path else (foreign,):
                    _point_at(case, wall.user, wall.space, number)
                    answer = case.call(base_url=server.address, headers={"Authorization": f"Bearer {wall.token}"})
                    figures.add("cases")
                    figures.add(f"{answer.status_code // 100}xx")
                    told = answer.text + str(answer.headers)
                    figures.add("leaks", int(wall.leaks(told)))
                    assert answer.status_code < FAILED, (wall.name, operation, told)
                    assert not wall.leaks(told), (wall.name, operation, told)
                    answers.append((answer.status_code, re.sub(rf"\b{number}\b", "N", answer.text)))
                # What is another's looks exactly like what there is not.
                assert answers[0] == answers[-1], (wall.name, operation)

            @so_many(size.of(small=1, full=12))
            @given(case=requests(operation, GenerationMode.POSITIVE))
            def ask(case: Any) -> None:  # noqa: ANN401
                given_parts = case.path_parameters, case.query, case.body
                for wall in walls:
                    case.path_parameters, case.query, case.body = given_parts
                    ask_as(case, wall)

            ask()

        before = server.run(state_of(theirs))
        figures.add("walls", len(walls))
        for operation in asked:
            figures.add("operations")
            all_of(operation)
        after = server.run(state_of(theirs))
    figures.show()
    assert after == before, "nothing of theirs was changed"
    assert figures["5xx"] == figures["leaks"] == 0


def test_no_page_of_the_panel_reaches_over_a_wall(size: Size) -> None:
    figures = Figures("walls of the panel", "pages", "forms", "walls", "cases", "2xx", "3xx", "4xx", "5xx", "leaks")
    chance = random.Random(4711)
    with walled() as (server, walls, numbers, theirs):
        before = server.run(state_of(theirs))
        figures.add("pages", len(READS))
        figures.add("forms", len(WRITES))
        figures.add("walls", len(walls))
        for wall in walls:
            with httpx2.Client(base_url=server.address, headers=PAGE, limits=ONE_EACH) as browser:
                browser.get("/login", params={"token": wall.token})
                who = server.served.sessions.find(browser.cookies.get(server.served.cookie) or "")
                assert who is not None
                for path in [*READS, *WRITES] * size.of(small=1, full=5):
                    number = chance.choice([*numbers.values(), *range(1, 6), UNKNOWN])
                    asked: dict[str, Any] = {"user": wall.user or "", "text": chance.choice(["Tom", "in", "go to"])}
                    asked |= {"space": wall.space} if wall.space else {}
                    asked |= {"session": f"s-{chance.randint(1, 4)}", "state": "all", "before": 100, "around": 1}
                    form = {"csrf": who.csrf, "text": "x", "fact": "Tom", "category": "fact", "importance": "3"}
                    filled = path.replace("{number}", str(number))
                    if path in READS and (path not in WRITES or chance.random() < 0.5):
                        answer = browser.get(filled, params={**asked, "kind": ["message", "memory", "summary"]})
                    else:
                        more = {"user": wall.user or "bob", "confirm": wall.user or "bob"}
                        answer = browser.post(filled, params=asked, data=form | more)
                    figures.add("cases")
                    figures.add(f"{answer.status_code // 100}xx")
                    leaked = wall.leaks(answer.text + str(answer.headers))
                    figures.add("leaks", int(leaked))
                    assert answer.status_code < FAILED, (wall.name, path, answer.text)
                    assert not leaked, (wall.name, path, answer.text)
        after = server.run(state_of(theirs))
    figures.show()
    assert after == before, "nothing of theirs was changed"
    assert figures["5xx"] == figures["leaks"] == 0


def _number_in(path: str, numbers: dict[str, int]) -> int:
    """Return the number of something that a path is about."""
    return next((number for kind, number in numbers.items() if f"/{kind}/" in path), 1)


def _point_at(case: Any, user: str | None, space: str | None, number: int) -> None:  # noqa: ANN401
    """Let a request name somebody's things, where it can name any."""
    path = dict(case.path_parameters or {})
    path |= {name: value for name, value in (("number", number), ("user", user or "bob")) if name in path}
    case.path_parameters = path
    known = {each["name"] for each in case.operation.definition.raw.get("parameters", ()) if each["in"] == "query"}
    query = {name: value for name, value in dict(case.query or {}).items() if name not in {"user", "space"}}
    query |= {name: value for name, value in (("user", user), ("space", space)) if value and name in known}
    case.query = query
    if isinstance(case.body, dict):
        named = {name: user for name in ("user", "user_name") if name in case.body and user}
        case.body = case.body | named


@pytest.mark.parametrize("path", ["/api/memories", "/memories"])
def test_the_word_is_found_by_those_who_may(path: str) -> None:
    """A word that nobody could find would prove nothing."""
    with walled() as (server, _, _, _), httpx2.Client(base_url=server.address, headers=PAGE) as one:
        one.get("/login", params={"token": server.key("admin", space="theirs")})
        assert MARK in one.get(path).text
