"""A Bot API server on this machine, for tests of Telegram bots. It needs aiohttp, which comes with aiogram.

It follows the rules of the real server that bots trip over: updates are repeated until confirmed, texts have a
limit, tokens are checked, people block bots, and a bot that sends too fast has to wait.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from time import time
from typing import Any, Final, Self

from aiohttp import ClientError, ClientSession, web

from aforesaid.background import end

_LONGEST: Final = 4096
_BOT_ID: Final = 42


@dataclass(frozen=True, slots=True)
class Person:
    """A Telegram account."""

    id: int
    name: str
    username: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the account in Telegram's JSON format."""
        known = {"id": self.id, "is_bot": False, "first_name": self.name}
        return known if self.username is None else {**known, "username": self.username}


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that the bot sent."""

    id: int
    chat: int
    text: str
    buttons: tuple[str, ...] = ()
    """The callback data of each button."""
    entities: tuple[Mapping[str, Any], ...] = ()
    replies_to: int | None = None
    file: bytes | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """An error response instead of the regular one."""

    status: int
    description: str
    retry_after: int | None = None
    migrate_to: int | None = None
    """The id of the supergroup that a group was migrated to."""


@dataclass(slots=True)
class _Fails:
    fault: Fault
    times: int


class FakeTelegram:
    """A Bot API server on loopback. Use it with `async with`; point a bot at its `base_url`."""

    def __init__(self, token: str = "42:a-token-for-tests", username: str = "memory_bot") -> None:  # noqa: S107
        self.token = token
        self.username = username
        self.sent: list[Sent] = []
        self.calls: list[str] = []
        """The names of all methods that were called."""
        self.menus: dict[str, list[dict[str, str]]] = {}
        """The commands that are shown in each language; under "" for everybody else."""
        """The command menu that the bot set."""
        self.typing: list[int] = []
        """The chats in which the bot showed "typing"."""
        self.clock: Callable[[], float] = time
        """Returns the time of incoming messages."""
        self._numbers = count(1)
        self._updates: deque[dict[str, Any]] = deque()
        self._next_update = count(1000)
        self._last: dict[str, Any] = {}
        self._webhook: tuple[str, str] | None = None
        self._faults: dict[str, _Fails] = {}
        self._blocked: set[int] = set()
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._port = 0
        self._pushing: asyncio.Task[None] | None = None

    @property
    def base_url(self) -> str:
        """The base URL for bots. It stays the same after a restart."""
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start listening."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/bot{token}/{method}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self._pushing = asyncio.create_task(self._push())

    async def stop(self) -> None:
        """Stop listening. Unconfirmed updates are kept."""
        await end(self._pushing)
        self._pushing = None
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def say(
        self,
        person: Person,
        text: str | None,
        *,
        group: int | None = None,
        replies_to: Sent | None = None,
        **more: Any,  # noqa: ANN401 - any field of a message
    ) -> int:
        """Send a message to the bot, in a private chat or a group. Return the message id."""
        number = next(self._numbers)
        message = self._message(number, person, group)
        if text is not None:
            message["text"] = text
        if replies_to is not None:
            message["reply_to_message"] = self._of_the_bot(replies_to)
        self._add({"message": {**message, **more}})
        return number

    def edit(self, person: Person, number: int, text: str, *, group: int | None = None) -> None:
        """Edit a message that was sent to the bot."""
        message = {**self._message(number, person, group), "text": text, "edit_date": int(self.clock())}
        self._add({"edited_message": message})

    def press(self, person: Person, sent: Sent, button: str) -> None:
        """Press a button below one of the bot's messages."""
        query = {"id": str(next(self._numbers)), "from": person.as_json(), "chat_instance": "1", "data": button}
        self._add({"callback_query": {**query, "message": self._of_the_bot(sent)}})

    def fail(self, method: str, fault: Fault, *, times: int = 1_000_000) -> None:
        """Fail calls of a method, `times` times."""
        self._faults[method.casefold()] = _Fails(fault, times)

    def heal(self) -> None:
        """Remove all failures."""
        self._faults.clear()

    def block(self, person: Person) -> None:
        """Block the bot as this account."""
        self._blocked.add(person.id)

    def replay(self) -> None:
        """Deliver the last update again, as if it had not been confirmed."""
        self._add({**self._last, "update_id": next(self._next_update)})

    async def wait_for(self, true: Callable[[], bool]) -> None:
        """Wait until a condition is true."""
        while not true():
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    await self._changed.wait()

    async def next_sent(self, after: int) -> Sent:
        """Wait until the bot has sent more than `after` messages; return the first new one."""
        await self.wait_for(lambda: len(self.sent) > after)
        return self.sent[after]

    async def confirmed(self) -> None:
        """Wait until the bot has confirmed every update."""
        await self.wait_for(lambda: not self._updates)

    def _message(self, number: int, person: Person, group: int | None) -> dict[str, Any]:
        chat = (
            {"id": person.id, "type": "private", "first_name": person.name}
            if group is None
            else {"id": group, "type": "supergroup", "title": f"Group {group}"}
        )
        return {"message_id": number, "date": int(self.clock()), "chat": chat, "from": person.as_json()}

    def _of_the_bot(self, sent: Sent) -> dict[str, Any]:
        kind = "private" if sent.chat > 0 else "supergroup"
        chat = {"id": sent.chat, "type": kind, "title": "Group", "first_name": "Somebody"}
        return {"message_id": sent.id, "date": int(self.clock()), "chat": chat, "from": self._me(), "text": sent.text}

    def _me(self) -> dict[str, Any]:
        return {"id": _BOT_ID, "is_bot": True, "first_name": "Memory", "username": self.username}

    def _add(self, update: dict[str, Any]) -> None:
        self._last = {"update_id": next(self._next_update), **update}
        self._updates.append(self._last)
        self._changed.set()

    async def _answer(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        self.calls.append(method)
        if request.match_info["token"] != self.token:
            return _failure(Fault(401, "Unauthorized"))
        fails = self._faults.get(method.casefold())
        if fails is not None and fails.times > 0:
            fails.times -= 1
            return _failure(fails.fault)
        given = dict(await request.post())
        known: dict[str, Callable[[dict[str, Any]], Any]] = {
            "getme": lambda _: {**self._me(), "can_join_groups": True, "can_read_all_group_messages": True},
            "setmycommands": self._set_commands,
            "deletewebhook": lambda _: self._set_webhook(None),
            "setwebhook": lambda values: self._set_webhook((values["url"], values.get("secret_token", ""))),
            "sendmessage": self._send,
            "senddocument": self._send_document,
            "sendchataction": self._show_typing,
            "answercallbackquery": lambda _: True,
            "editmessagereplymarkup": lambda _: True,
        }
        if method.casefold() == "getupdates":
            result: Any = await self._get_updates(given)
        elif method.casefold() in known:
            result = known[method.casefold()](given)
        else:
            result = Fault(404, "Not Found: method not found")
        self._changed.set()
        return _failure(result) if isinstance(result, Fault) else web.json_response({"ok": True, "result": result})

    async def _get_updates(self, given: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a list, or a fault
        if self._webhook is not None:
            return Fault(409, "Conflict: can't use getUpdates method while webhook is active")
        offset = int(given.get("offset", 0))
        while self._updates and self._updates[0]["update_id"] < offset:
            self._updates.popleft()
        self._changed.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(int(given.get("timeout", 0))):
                await self.wait_for(lambda: bool(self._updates))
        return list(self._updates)[:100]

    async def _push(self) -> None:
        """Post updates to the webhook in order; repeat each one until it is accepted."""
        async with ClientSession() as session:
            while True:
                if self._webhook is None or not self._updates:
                    await asyncio.sleep(0.02)
                    continue
                address, secret = self._webhook
                headers = {"X-Telegram-Bot-Api-Secret-Token": secret}
                with suppress(ClientError):
                    async with session.post(address, json=self._updates[0], headers=headers) as answer:
                        if answer.ok:
                            self._updates.popleft()
                            self._changed.set()
                            continue
                await asyncio.sleep(0.05)

    def _set_commands(self, given: Mapping[str, Any]) -> bool:
        self.menus[given.get("language_code", "")] = json.loads(given["commands"])
        return True

    def _show_typing(self, given: Mapping[str, Any]) -> bool:
        self.typing.append(int(given["chat_id"]))
        return True

    def _set_webhook(self, webhook: tuple[str, str] | None) -> bool:
        self._webhook = webhook
        return True

    def _send(self, given: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a message, or a fault
        text, chat = str(given.get("text", "")), int(given["chat_id"])
        if chat in self._blocked:
            return Fault(403, "Forbidden: bot was blocked by the user")
        if not text.strip():
            return Fault(400, "Bad Request: message text is empty")
        if len(text.encode("utf-16-le")) // 2 > _LONGEST:
            return Fault(400, "Bad Request: message is too long")
        keyboard = json.loads(given.get("reply_markup") or "{}").get("inline_keyboard", [])
        reply = json.loads(given.get("reply_parameters") or "{}").get("message_id")
        return self._keep(
            chat,
            text,
            buttons=tuple(button["callback_data"] for row in keyboard for button in row),
            entities=tuple(json.loads(given.get("entities") or "[]")),
            replies_to=reply,
        )

    def _send_document(self, given: Mapping[str, Any]) -> Any:  # noqa: ANN401
        if int(given["chat_id"]) in self._blocked:
            return Fault(403, "Forbidden: bot was blocked by the user")
        file = next(value for value in given.values() if isinstance(value, web.FileField))
        return self._keep(int(given["chat_id"]), file.filename, file=file.file.read())

    def _keep(self, chat: int, text: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of what was sent
        self.sent.append(Sent(next(self._numbers), chat, text, **more))
        return self._of_the_bot(self.sent[-1])


def _failure(fault: Fault) -> web.Response:
    body: dict[str, Any] = {"ok": False, "error_code": fault.status, "description": fault.description}
    if fault.retry_after is not None:
        body["parameters"] = {"retry_after": fault.retry_after}
    if fault.migrate_to is not None:
        body["parameters"] = {"migrate_to_chat_id": fault.migrate_to}
    return web.json_response(body, status=fault.status)
