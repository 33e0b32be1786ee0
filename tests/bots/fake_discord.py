"""A fake Discord on loopback: the parts of REST and gateway that a bot needs, used through discord.py."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from time import time
from typing import Any

import aiohttp
import discord
import pytest
import yarl
from aiohttp import web

TOKEN = "a-token-for-tests"  # noqa: S105
GUILD, CHANNEL, BOT = 900, 901, 42
ROLE = {"id": str(GUILD), "name": "@everyone", "permissions": "8", "position": 0, "color": 0, "hoist": False}
_ME = {"id": str(BOT), "username": "memory", "discriminator": "0", "avatar": None, "bot": True}
_APPLICATION: dict[str, Any] = {
    "id": str(BOT),
    "name": "memory",
    "description": "",
    "icon": None,
    "flags": 0,
    "bot_public": True,
    "bot_require_code_grant": False,
    "verify_key": "",
    "owner": _ME,
    "team": None,
    "summary": "",
    "rpc_origins": [],
}
_MEMBER: dict[str, Any] = {"roles": [], "joined_at": None, "deaf": False, "mute": False, "flags": 0}
_EPOCH = 1_420_070_400_000


class FakeDiscord:
    """One guild with one channel, and the bot in it."""

    def __init__(self) -> None:
        self.messages: dict[int, list[dict[str, Any]]] = {CHANNEL: []}
        self.commands: list[dict[str, Any]] = []
        self.people: dict[int, tuple[str, str | None]] = {}
        """Names of the users, and their nicknames in the guild."""
        self.identified = 0
        self.close_with: int | None = None
        """An error to return instead of a login."""
        self._numbers = count()
        self._sockets: set[web.WebSocketResponse] = set()
        self._sequence = count(1)
        self.base = ""

    def number(self) -> int:
        """Return the next id, which contains its time."""
        return ((int(time() * 1000) - _EPOCH) << 22) + next(self._numbers)

    @property
    def said(self) -> list[str]:
        """What the bot wrote."""
        return [each["content"] for here in self.messages.values() for each in here if each["author"]["id"] == str(BOT)]

    async def say(
        self, user: int, name: str, text: str, *, channel: int = CHANNEL, nick: str | None = None
    ) -> dict[str, Any]:
        """Send a message of a user to the guild's channel, with an optional nickname, or to the bot directly."""
        self.people[user] = (name, nick)
        message = self._message(channel, _user(user, name), text)
        if channel == CHANNEL:
            message["guild_id"] = str(GUILD)
            message["member"] = {
                **_MEMBER,
                "nick": nick,
            }
        self.messages.setdefault(channel, []).append(message)
        await self.dispatch("MESSAGE_CREATE", message)
        # The history says nothing of the guild.
        message.pop("member", None)
        for mention in message["mentions"]:
            mention.pop("member", None)
        return message

    async def dispatch(self, event: str, data: dict[str, Any]) -> None:
        """Send an event to the bot, if it is connected."""
        for socket in self._sockets:
            await socket.send_json({"op": 0, "t": event, "s": next(self._sequence), "d": data})

    async def hang_up(self) -> None:
        """Break the connection."""
        for socket in list(self._sockets):
            await socket.close(code=1001)

    async def wait_for(self, true: Callable[[], bool]) -> None:
        while not true():
            await asyncio.sleep(0.02)

    def _message(self, channel: int, author: dict[str, Any], text: str) -> dict[str, Any]:
        mentions: list[dict[str, Any]] = [dict(_ME)] if f"<@{BOT}>" in text else []
        for user, (name, nick) in self.people.items():
            if f"<@{user}>" in text:
                mentions.append({**_user(user, name), "member": {**_MEMBER, "nick": nick}})
        return {
            "id": str(self.number()),
            "channel_id": str(channel),
            "author": author,
            "content": text,
            "timestamp": discord.utils.utcnow().isoformat(),
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "mentions": mentions,
            "mention_roles": [],
            "attachments": [],
            "embeds": [],
            "pinned": False,
            "type": 0,
        }

    def _general(self) -> dict[str, Any]:
        last = self.messages[CHANNEL][-1]["id"] if self.messages[CHANNEL] else None
        channel = {"id": str(CHANNEL), "type": 0, "name": "general", "position": 0, "last_message_id": last}
        return {**channel, "permission_overwrites": []}

    async def rest(self, request: web.Request) -> web.Response:
        """Answer a call of the API."""
        if request.headers.get("Authorization") != f"Bot {TOKEN}":
            return _json({"message": "401: Unauthorized", "code": 0}, status=401)
        path, method = request.path.removeprefix("/api"), request.method
        me = _ME
        if path == "/users/@me":
            return _json(me)
        if path == "/oauth2/applications/@me":
            return _json(_APPLICATION)
        if path.endswith("/commands") and method == "PUT":
            given = await request.json()
            self.commands = [
                {**each, "id": str(self.number()), "application_id": str(BOT), "version": "1"} for each in given
            ]
            return _json(self.commands)
        if path.startswith(("/users/", "/guilds/")):
            return _json(await self._person(request, path))
        if path.endswith("/typing"):
            return web.Response(status=204)
        if path == f"/channels/{CHANNEL}":
            return _json({**self._general(), "guild_id": str(GUILD)})
        if path.endswith("/messages"):
            return await self._channel(request, int(path.split("/")[2]), me)
        return _json({"message": "Unknown", "code": 0}, status=404)

    async def _person(self, request: web.Request, path: str) -> dict[str, Any]:
        if path == "/users/@me/channels":
            user = int((await request.json())["recipient_id"])
            return {"id": str(user + 10_000), "type": 1, "recipients": [_user(user, "somebody")]}
        user = int(path.rsplit("/", 1)[1])
        if path.startswith("/users/"):
            return _user(user, "somebody")
        name, nick = self.people[user]
        return {**_MEMBER, "user": _user(user, name), "nick": nick}

    async def _channel(self, request: web.Request, channel: int, me: dict[str, Any]) -> web.Response:
        here = self.messages.setdefault(channel, [])
        if request.method == "POST":
            given = await request.json()
            if len(given["content"]) > 2000:
                return _json({"message": "Invalid Form Body", "code": 50035}, status=400)
            if given.get("enforce_nonce"):
                # As the real one: what it was sent before under this number is shown again, and not made anew.
                again = [each for each in here if each.get("sent_with", {}).get("nonce") == given["nonce"]]
                if again:
                    return _json(again[0])
            message = {**self._message(channel, me, given["content"]), "sent_with": given}
            here.append(message)
            return _json(message)
        after, limit = int(request.query.get("after", 0)), int(request.query.get("limit", 50))
        # As the real one: the oldest ones after it, newest first.
        return _json([each for each in here if int(each["id"]) > after][:limit][::-1])

    async def gateway(self, request: web.Request) -> web.WebSocketResponse:
        """Speak the gateway's protocol with one client."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": 41_250}})
        async for received in socket:
            if received.type is not aiohttp.WSMsgType.TEXT:
                break
            said = received.json()
            if said["op"] == 1:
                await socket.send_json({"op": 11})
            if said["op"] == 6:
                # It was away for too long to go on where it stopped.
                await socket.send_json({"op": 9, "d": False})
            if said["op"] == 2:
                self.identified += 1
                if self.close_with is not None:
                    await socket.close(code=self.close_with)
                    break
                self._sockets.add(socket)
                await self._let_in(socket)
        self._sockets.discard(socket)
        return socket

    async def _let_in(self, socket: web.WebSocketResponse) -> None:
        me = _ME
        ready = {
            "v": 10,
            "user": me,
            "guilds": [{"id": str(GUILD), "unavailable": True}],
            "session_id": "s",
            "resume_gateway_url": f"ws://{self.base}/gateway",
            "application": {"id": str(BOT), "flags": 0},
        }
        guild = {
            "id": str(GUILD),
            "name": "Home",
            "owner_id": "1",
            "member_count": 3,
            "roles": [ROLE],
            "channels": [self._general()],
            "members": [{"user": me, "roles": [], "joined_at": None, "deaf": False, "mute": False, "flags": 0}],
            "emojis": [],
            "stickers": [],
            "features": [],
            "threads": [],
            "presences": [],
            "voice_states": [],
            "stage_instances": [],
            "guild_scheduled_events": [],
            "soundboard_sounds": [],
            "verification_level": 0,
            "default_message_notifications": 0,
            "explicit_content_filter": 0,
            "mfa_level": 0,
            "nsfw_level": 0,
            "premium_tier": 0,
            "premium_progress_bar_enabled": False,
            "preferred_locale": "en-US",
            "system_channel_flags": 0,
            "afk_timeout": 0,
        }
        await socket.send_json({"op": 0, "t": "READY", "s": next(self._sequence), "d": ready})
        await socket.send_json({"op": 0, "t": "GUILD_CREATE", "s": next(self._sequence), "d": guild})


def _user(user: int, name: str) -> dict[str, Any]:
    return {"id": str(user), "username": name, "discriminator": "0", "avatar": None}


def _json(value: object, status: int = 200) -> web.Response:
    # Without a charset, as Discord does it: discord.py looks for exactly this.
    return web.Response(body=json.dumps(value).encode(), status=status, content_type="application/json")


@asynccontextmanager
async def fake_discord(patch: pytest.MonkeyPatch) -> AsyncIterator[FakeDiscord]:
    """Run one, and point discord.py at it."""
    fake = FakeDiscord()
    app = web.Application()
    app.router.add_get("/gateway/", fake.gateway)
    app.router.add_get("/gateway", fake.gateway)
    app.router.add_route("*", "/api/{path:.*}", fake.rest)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    fake.base = f"127.0.0.1:{runner.addresses[0][1]}"
    patch.setattr(discord.http.Route, "BASE", f"http://{fake.base}/api")
    patch.setattr(discord.gateway.DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(f"ws://{fake.base}/gateway/"))
    try:
        yield fake
    finally:
        await runner.cleanup()
