"""A chat is private and one of many of a person, and a thread is shared, at every door."""

from __future__ import annotations

import json
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import anyio
import httpx2
import pytest
from typer.testing import CliRunner

import aforesaid
from aforesaid.cli import app
from aforesaid.errors import InvalidInput
from server.agents import call, over_http, refusal
from server.talking import Talk, ask, eventually, talking
from server.test_typescript_client import CLIENT, node

FERRY: Final = "Shall we take the ferry or the train?"
BUILD: Final = "Why is the build red again?"
BOTH: Final = "both a chat and a thread are given"


class Door(ABC):
    """One way to reach the memory of a space."""

    def __init__(self, talk: Talk, store: str, space: str) -> None:
        self.talk, self.store, self.space = talk, store, space
        self.key = talk.server.key(space=space)

    def close(self) -> None:  # noqa: B027 - most doors have nothing to close
        pass

    @abstractmethod
    def add(self, user: str, text: str, **place: str) -> str:
        """Store a message; return what an error says, or nothing."""

    @abstractmethod
    def history(self, user: str, chat: str) -> list[str]:
        """Return the texts of a chat."""

    @abstractmethod
    def context(self, user: str, text: str, **place: str) -> str: ...

    @abstractmethod
    def search(self, user: str, query: str, chat: str) -> list[str]: ...

    @abstractmethod
    def chats(self, user: str) -> set[str | None]:
        """Return the ids of a user's chats, from the list of threads."""


class Python(Door):
    def _user(self, user: str, **place: str) -> aforesaid.UserMemory:
        return self.talk.server.served.memory.user(user, space=self.space, **place)

    def add(self, user: str, text: str, **place: str) -> str:
        try:
            self.talk.server.run(self._user(user, **place).add("user", text))
        except InvalidInput as error:
            return str(error)
        return ""

    def history(self, user: str, chat: str) -> list[str]:
        found = self.talk.server.run(self._user(user).chat(chat).history(within="thread"))
        return [each.text for each in found]

    def context(self, user: str, text: str, **place: str) -> str:
        return self.talk.server.run(self._user(user, **place).context(text)).text

    def search(self, user: str, query: str, chat: str) -> list[str]:
        return [hit.text for hit in self.talk.server.run(self._user(user, chat=chat).search(query))]

    def chats(self, user: str) -> set[str | None]:
        return {each.chat for each in self.talk.server.run(self._user(user).threads())}


class Rest(Door):
    def _send(self, method: str, path: str, *, query: Any = None, body: Any = None) -> Any:  # noqa: ANN401
        headers = {"Authorization": f"Bearer {self.key}"}
        with httpx2.Client(base_url=self.talk.server.address, headers=headers, timeout=60) as client:
            return client.request(method, f"/api/{path}", params=query, json=body).json()

    def add(self, user: str, text: str, **place: str) -> str:
        return str(self._send("POST", "messages", body={"user": user, "role": "user", "text": text, **place}))

    def history(self, user: str, chat: str) -> list[str]:
        query = {"user": user, "chat": chat, "within": "thread"}
        return [each["text"] for each in self._send("GET", "messages", query=query)["messages"]]

    def context(self, user: str, text: str, **place: str) -> str:
        return str(self._send("POST", "context", body={"user": user, "text": text, **place})["text"])

    def search(self, user: str, query: str, chat: str) -> list[str]:
        asked = {"user": user, "q": query, "chat": chat}
        return [hit["text"] for hit in self._send("GET", "search", query=asked)["hits"]]

    def chats(self, user: str) -> set[str | None]:
        return {each["chat"] for each in self._send("GET", "threads", query={"user": user})["threads"]}


class CommandLine(Door):
    def _run(self, *words: str, **place: str) -> Any:  # noqa: ANN401
        options = [f"--{name}={value}" for name, value in {**place, "space": self.space, "store": self.store}.items()]
        result = CliRunner().invoke(app, [*words, *options, "--json"])
        return json.loads(result.stdout) if result.exit_code == 0 else result.output

    def add(self, user: str, text: str, **place: str) -> str:
        return str(self._run("add", text, user=user, **place))

    def history(self, user: str, chat: str) -> list[str]:
        return [each["text"] for each in self._run("history", user=user, chat=chat, within="thread")]

    def context(self, user: str, text: str, **place: str) -> str:
        options = [f"--{name}={value}" for name, value in {**place, "space": self.space, "store": self.store}.items()]
        return CliRunner().invoke(app, ["context", text, "--text", f"--user={user}", *options]).stdout

    def search(self, user: str, query: str, chat: str) -> list[str]:
        return [hit["text"] for hit in self._run("search", query, user=user, chat=chat)]

    def chats(self, user: str) -> set[str | None]:
        return {each["chat"] for each in self._run("threads", user=user)}


class Agent(Door):
    def _call(self, tool: str, **arguments: Any) -> Any:  # noqa: ANN401
        async def called() -> Any:  # noqa: ANN401
            async with over_http(self.talk.server, self.key) as client:
                both = {"chat", "thread"} <= arguments.keys()
                return await (refusal if both else call)(client, tool, **arguments)

        return anyio.run(called)

    def add(self, user: str, text: str, **place: str) -> str:
        return str(self._call("add_messages", messages=[{"role": "user", "text": text}], user=user, **place))

    def history(self, user: str, chat: str) -> list[str]:
        return [each["text"] for each in self._call("get_messages", user=user, chat=chat)["messages"]]

    def context(self, user: str, text: str, **place: str) -> str:
        return str(self._call("get_context", text=text, user=user, **place)["text"])

    def search(self, user: str, query: str, chat: str) -> list[str]:
        del chat  # the tool searches everything that the user said
        return [hit["text"] for hit in self._call("search_memories", query=query, user=user)["hits"]]

    def chats(self, user: str) -> set[str | None]:
        return {each["chat"] for each in self._call("list_threads", user=user)["threads"]}


class TypeScript(Door):
    _SCRIPT: Final = """
        import { createInterface } from "node:readline";
        import { Aforesaid } from "aforesaid";
        for await (const line of createInterface({ input: process.stdin })) {
          const [baseUrl, key, user, place, method, ...given] = JSON.parse(line);
          const { chat, thread } = place;
          const client = new Aforesaid({ baseUrl, key });
          const there = chat && !thread ? client.user(user).chat(chat) : client.user(user, place);
          console.log(JSON.stringify(await there[method](...given).catch((error) => error.detail)));
        }
    """

    def __init__(self, talk: Talk, store: str, space: str) -> None:
        super().__init__(talk, store, space)
        command = [node(), "--input-type=module", "--eval", self._SCRIPT]
        self._client = subprocess.Popen(command, cwd=CLIENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self) -> None:
        self._client.communicate()

    def _call(self, user: str, place: dict[str, str], method: str, *arguments: Any) -> Any:  # noqa: ANN401
        assert self._client.stdin is not None
        assert self._client.stdout is not None
        given = json.dumps([self.talk.server.address, self.key, user, place, method, *arguments])
        self._client.stdin.write(f"{given}\n")
        self._client.stdin.flush()
        return json.loads(self._client.stdout.readline())

    def add(self, user: str, text: str, **place: str) -> str:
        return str(self._call(user, place, "add", "user", text))

    def history(self, user: str, chat: str) -> list[str]:
        found = self._call(user, {"chat": chat}, "history", {"within": "thread"})
        return [each["text"] for each in found["messages"]]

    def context(self, user: str, text: str, **place: str) -> str:
        return str(self._call(user, place, "context", text)["text"])

    def search(self, user: str, query: str, chat: str) -> list[str]:
        return [hit["text"] for hit in self._call(user, {"chat": chat}, "search", query)]

    def chats(self, user: str) -> set[str | None]:
        return {each["chat"] for each in self._call(user, {}, "threads")}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Talk, str]]:
    store = str(tmp_path_factory.mktemp("chats") / "memory.db")
    with talking(location=store) as talk:
        yield talk, store


@pytest.fixture(params=[Python, Rest, CommandLine, Agent, TypeScript])
def door(served: tuple[Talk, str], request: pytest.FixtureRequest) -> Iterator[Door]:
    made: Door = request.param(*served, request.param.__name__)
    with closing(made):
        yield made


def _current(context: str) -> str:
    """Return the messages that a context goes on with."""
    return context.partition("Current conversation:\n")[2].partition("\n\n")[0]


@pytest.mark.req("G22")
@pytest.mark.defect("I1")
def test_two_chats_of_a_person_go_on_apart_and_recall_each_other(door: Door, served: tuple[Talk, str]) -> None:
    door.add("ann", FERRY, chat="trip")
    door.add("ann", BUILD, chat="work")
    door.add("ann", "Hello everybody", thread="general")
    assert (door.history("ann", "trip"), door.history("ann", "work")) == ([FERRY], [BUILD])
    assert door.chats("ann") == {"trip", "work", None}
    going_on = door.context("ann", "Go on.", chat="trip"), door.context("ann", "Go on.", chat="work")
    assert [_current(text) for text in going_on] == [f"ann: {FERRY}", f"ann: {BUILD}"]
    assert FERRY in door.search("ann", "ferry or train", chat="work")
    assert FERRY in door.context("ann", "Did I mean the ferry or the train?", chat="work")
    assert FERRY not in door.context("ann", "Did I mean the ferry or the train?", thread="general")
    assert door.history("bob", "trip") == door.search("bob", "ferry or train", chat="trip") == []
    assert FERRY not in door.context("bob", "Did I mean the ferry or the train?", chat="trip")
    assert BOTH in door.add("ann", "Where is this?", chat="trip", thread="general")
    here = Python(*served, door.space)
    assert here.history("ann", "trip") == [FERRY], "Python's chat is another one"


@pytest.mark.req("G22")
@pytest.mark.defect("I1")
def test_the_chat_id_that_an_app_sends_the_proxy_is_the_chat_of_all_other_doors(served: tuple[Talk, str]) -> None:
    talk, _ = served
    talk.key = talk.server.key(space="proxy")
    door = Rest(*served, "proxy")
    door.add("ann", BUILD, chat="trip")
    with talk.client(**{"X-OpenWebUI-Chat-Id": "trip"}) as client:
        ask(client, FERRY)
    eventually(lambda: not talk.server.served._finishing)
    assert door.history("ann", "trip")[:2] == [BUILD, FERRY]


@pytest.mark.defect("I1")
def test_a_key_of_one_person_reaches_their_chats_alone(served: tuple[Talk, str]) -> None:
    everybody = Rest(*served, "one-person")
    everybody.add("ann", FERRY, chat="trip")
    everybody.add("bob", BUILD, chat="trip")
    own = Rest(*served, "one-person")
    own.key = served[0].server.key(space="one-person", user="ann")
    assert own.history("ann", "trip") == [FERRY]


@pytest.mark.defect("I1")
def test_ids_of_chats_that_look_the_same_are_the_same(served: tuple[Talk, str]) -> None:
    door = Rest(*served, "spelling")
    door.add("ann", FERRY, chat="Zo\u0308e ")
    assert door.history("ann", "Z\u00f6e") == [FERRY]
