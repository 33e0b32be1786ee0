"""Chats among people, from Telegram, Discord, Slack, Signal, Facebook and Instagram."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import aforesaid
from portability.imported import history, lines, load, load_into, packed, said, users, written

pytestmark = pytest.mark.defect("N4")


def telegram(number: int, text: object = "", **more: object) -> dict[str, Any]:
    stamp = {"date": "2026-03-01T10:00:00", "date_unixtime": str(1_772_359_200 + number)}
    return {"id": number, "type": "message", **stamp, "from": "Ann", "from_id": "user1", "text": text, **more}


TELEGRAM = {
    "name": "Bob",
    "type": "personal_chat",
    "id": 4711,
    "messages": [
        telegram(1, ["Look ", {"type": "text_link", "text": "here", "href": "https://example.org/tea"}, "!"]),
        telegram(2, [{"type": "link", "text": "https://example.org"}]),
        telegram(3, "I hate tea", forwarded_from="Cleo"),
        telegram(4, contact_information={"first_name": "Dan", "last_name": "Lee", "phone_number": "+49 30 123"}),
        telegram(5, location_information={"latitude": 52.5, "longitude": 13.4}, place_name="Café", address="Main St 1"),
        telegram(
            6,
            poll={
                "question": "Which tea?",
                "closed": False,
                "total_voters": 3,
                "answers": [{"text": "green", "voters": 2}, {"text": "black", "voters": 1}],
            },
        ),
        telegram(7, "the kettle", photo="photos/kettle.jpg", width=10, height=10),
        telegram(
            8, file="(File not included. Change data exporting settings to download.)", media_type="voice_message"
        ),
        telegram(9, "yes", reply_to_message_id=7, edited="2026-03-01T11:00:00"),
        telegram(10, file="stickers/1.webp", media_type="sticker", sticker_emoji="🍵"),
        telegram(11, "ok", reactions=[{"type": "emoji", "count": 2, "emoji": "👍", "recent": []}]),
        {
            "id": 12,
            "type": "service",
            "date": "2026-03-01T10:00:00",
            "actor": "Ann",
            "action": "pin_message",
            "text": "",
        },
    ],
}


async def test_telegram_keeps_links_forwards_contacts_places_and_polls(tmp_path: Path) -> None:
    report, store = await load(written(tmp_path / "result.json", TELEGRAM))
    texts = await said(store, "user1")
    assert texts[:7] == [
        "Look here (https://example.org/tea)!",
        "https://example.org",
        "Forwarded from Cleo:\nI hate tea",
        "Contact: Dan Lee, +49 30 123",
        "Location: Café, Main St 1, 52.5, 13.4",
        "Poll: Which tea?\n- green (2)\n- black (1)",
        "the kettle",
    ]
    assert (report.problems, sum(report.skipped.values())) == (0, 1)


async def test_telegram_keeps_files_captions_replies_and_reactions(tmp_path: Path) -> None:
    _, store = await load(written(tmp_path / "result.json", TELEGRAM))
    found = {message.id: message for message in await history(store, "user1")}
    assert (found["7"].kind, found["7"].parts[0].type, found["7"].parts[0].name) == (
        "photo",
        "image",
        "photos/kettle.jpg",
    )
    assert (found["8"].text, found["8"].kind, found["8"].parts[0].type, found["8"].parts[0].name) == (
        "",
        "voice",
        "audio",
        None,
    )
    assert (found["9"].text, found["9"].reply_to) == ("yes", "7")
    assert (found["10"].kind, found["10"].parts[0].text) == ("sticker", "🍵")
    assert dict(found["11"].metadata) == {"reactions": {"👍": 2}}
    assert [found[str(number)].kind for number in (3, 4, 5, 6)] == ["forward", "contact", "location", "poll"]


async def test_a_bot_on_telegram_is_the_assistant(tmp_path: Path) -> None:
    chat = {
        "name": "TeaBot",
        "type": "bot_chat",
        "id": 9,
        "messages": [telegram(1, "tea?"), telegram(2, "green", **{"from": "TeaBot", "from_id": "user9"})],
    }
    _, store = await load(written(tmp_path / "result.json", chat))
    assert [(message.role, message.text) for message in await history(store, "user1")] == [
        ("user", "tea?"),
        ("assistant", "green"),
    ]
    assert await users(store) == {"user1"}


async def test_a_newer_export_brings_the_edited_text(tmp_path: Path) -> None:
    chat = {"name": "Bob", "type": "personal_chat", "id": 1, "messages": [telegram(1, "gren tea"), telegram(2, "ok")]}
    _, store = await load(written(tmp_path / "result.json", chat))
    chat["messages"] = [telegram(1, "green tea", edited="2026-03-01T12:00:00"), telegram(2, "ok")]
    newer = written(tmp_path / "newer" / "result.json", chat)
    report = await load_into(store, newer)
    assert report.new == {"edited message": 1}
    assert (await load_into(store, newer)).new == {}
    assert (await load_into(store, tmp_path / "result.json")).new == {}, "the older export is older"
    assert await said(store, "user1") == ["green tea", "ok"]
    chat["messages"] = [telegram(1, "sencha", edited="2026-03-01T13:00:00"), telegram(2, "ok")]
    assert (await load_into(store, written(newer, chat))).new == {"edited message": 1}
    assert await said(store, "user1") == ["sencha", "ok"]


async def test_a_message_that_was_taken_back_stays_away(tmp_path: Path) -> None:
    chat = {
        "name": "Bob",
        "type": "personal_chat",
        "id": 1,
        "messages": [telegram(1, "my password"), telegram(2, "ok")],
    }
    edited = [telegram(1, "my pass phrase", edited="2026-03-01T12:00:00"), telegram(2, "ok")]
    old = written(tmp_path / "result.json", chat)
    newer = written(tmp_path / "newer" / "result.json", {**chat, "messages": edited})
    async with aforesaid.connect(":memory:", embedder="none") as memory:
        await memory.load(old)
        ann = memory.user("user1", thread="telegram:1")
        first, _ = await ann.history()
        await ann.take_back(first)
        await memory.load(old)
        report = await memory.load(newer)
        assert [message.text for message in await ann.history()] == ["ok"]
    assert report.skipped == {"messages whose id is stored with another text": 1}


async def test_one_id_with_two_texts_is_counted(tmp_path: Path) -> None:
    chat = {"name": "Bob", "type": "personal_chat", "id": 1, "messages": [telegram(1, "tea"), telegram(1, "coffee")]}
    report, store = await load(written(tmp_path / "result.json", chat))
    assert await said(store, "user1") == ["tea"]
    assert report.skipped == {"messages whose id is stored with another text": 1}


def discord(number: int, text: str = "", **more: object) -> dict[str, Any]:
    author = {"id": "1", "name": "ann", "discriminator": "0000", "nickname": "Annie", "isBot": False}
    stamp = f"2026-03-01T10:00:{number:02}.5+00:00"
    return {"id": str(number), "type": "Default", "timestamp": stamp, "content": text, "author": author, **more}


async def test_discord_keeps_embeds_replies_files_and_forwards(tmp_path: Path) -> None:
    card = {
        "title": "Green tea",
        "url": "https://example.org/tea",
        "description": "Steep for two minutes.",
        "author": {"name": "Tea Times"},
        "fields": [{"name": "Water", "value": "80 °C", "isInline": True}],
        "footer": {"text": "page 3"},
    }
    messages = [
        discord(1, "tea?"),
        discord(2, "see", embeds=[card]),
        discord(3, "green", type="Reply", reference={"messageId": "1", "channelId": "77", "guildId": "10"}),
        discord(4, attachments=[{"id": "5", "url": "https://cdn/cat.png", "fileName": "cat.png", "fileSizeBytes": 9}]),
        discord(5, stickers=[{"id": "6", "name": "wave", "format": "Png", "sourceUrl": "https://cdn/wave.png"}]),
        discord(6, forwardedMessage={"content": "no tea today", "attachments": [], "embeds": [], "stickers": []}),
        discord(7, "joined", type="GuildMemberJoin"),
        discord(8, "ok", reactions=[{"emoji": {"name": "👍"}, "count": 3, "users": []}]),
    ]
    value = {"guild": {"id": "10"}, "channel": {"id": "77", "name": "tea"}, "messages": messages, "messageCount": 8}
    report, store = await load(written(tmp_path / "tea.json", value))
    found = {message.id: message for message in await history(store, "1")}
    assert found["2"].text == (
        "see\nTea Times\nGreen tea (https://example.org/tea)\nSteep for two minutes.\nWater: 80 °C\npage 3"
    )
    assert (found["3"].text, found["3"].reply_to) == ("green", "1")
    part = found["4"].parts[0]
    assert (part.type, part.name, part.url, part.size) == ("image", "cat.png", "https://cdn/cat.png", 9)
    assert (found["5"].kind, found["5"].parts[0].text) == ("sticker", "wave")
    assert (found["6"].kind, found["6"].text) == ("forward", "Forwarded: no tea today")
    assert dict(found["8"].metadata) == {"reactions": {"👍": 3}}
    assert (report.problems, sum(report.skipped.values())) == (0, 1)


def slack(stamp: int, text: str = "", user: str = "U1", **more: object) -> dict[str, Any]:
    return {"type": "message", "user": user, "text": text, "ts": f"{1_772_359_200 + stamp}.000100", **more}


async def test_slack_is_read_as_people_see_it(tmp_path: Path) -> None:
    root = "1772359202.000100"
    rich = {
        "type": "rich_text",
        "elements": [
            {
                "type": "rich_text_section",
                "elements": [
                    {"type": "text", "text": "only in "},
                    {"type": "link", "url": "https://example.org/b", "text": "blocks"},
                    {"type": "text", "text": " for "},
                    {"type": "user", "user_id": "U2"},
                ],
            },
            {
                "type": "rich_text_list",
                "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "one"}]}],
            },
        ],
    }
    day = [
        slack(1, "milk &amp; sugar &lt;3 <@U2> in <#C1> see <https://example.org/tea|the page> <!here>"),
        slack(2, "who wants tea?", thread_ts=root, reply_count=2),
        slack(3, "me", user="U2", thread_ts=root),
        slack(4, "me too", thread_ts=root, subtype="thread_broadcast"),
        slack(5, "", blocks=[rich]),
        slack(
            6, "", attachments=[{"title": "Alert", "title_link": "https://example.org/a", "text": "kettle &gt; 100"}]
        ),
        slack(7, "", files=[{"id": "F1", "name": "menu.pdf", "mimetype": "application/pdf", "size": 7}]),
        slack(8, "U2 has joined", subtype="channel_join"),
    ]
    source = packed(
        tmp_path / "slack.zip",
        {
            "users.json": [{"id": "U1", "name": "ann"}, {"id": "U2", "profile": {"display_name": "Bob"}}],
            "channels.json": [{"id": "C1", "name": "general"}],
            "general/2026-03-01.json": day,
        },
    )
    report, store = await load(source)
    assert await said(store, "U1", "slack:general") == [
        "milk & sugar <3 @Bob in #general see the page (https://example.org/tea) @here",
        "who wants tea?",
        "me too",
        "only in blocks (https://example.org/b) for @Bob\n- one",
        "Alert (https://example.org/a)\nkettle > 100",
        "",
    ]
    (reply,) = await history(store, "U2", f"slack:general:{root}")
    assert (reply.text, reply.name, reply.reply_to) == ("me", "Bob", root)
    (*_, file) = await history(store, "U1", "slack:general")
    assert (file.parts[0].name, file.parts[0].media_type, file.parts[0].size) == ("menu.pdf", "application/pdf", 7)
    assert (report.problems, sum(report.skipped.values())) == (0, 1)


SIGNAL = [
    {"version": "1", "backupTimeMs": "1772359200000"},
    {"account": {"givenName": "Ann"}},
    {"recipient": {"id": "1", "self": {}}},
    {
        "recipient": {
            "id": "2",
            "contact": {"aci": "a", "e164": "49301234", "profileGivenName": "Bob", "profileFamilyName": "Lee"},
        }
    },
    {"chat": {"id": "1", "recipientId": "2"}},
    {
        "chatItem": {
            "chatId": "1",
            "authorId": "2",
            "dateSent": "1772359201000",
            "incoming": {},
            "standardMessage": {"text": {"body": "tea?"}, "reactions": [{"emoji": "❤️", "authorId": "1"}]},
        }
    },
    {
        "chatItem": {
            "chatId": "1",
            "authorId": "1",
            "dateSent": "1772359202000",
            "outgoing": {},
            "revisions": [{}],
            "standardMessage": {
                "text": {"body": "green"},
                "quote": {"targetSentTimestamp": "1772359201000", "authorId": "2", "text": {"body": "tea?"}},
            },
        }
    },
    {
        "chatItem": {
            "chatId": "1",
            "authorId": "2",
            "dateSent": "1772359203000",
            "incoming": {},
            "standardMessage": {
                "attachments": [
                    {"pointer": {"contentType": "audio/aac", "locatorInfo": {"size": 12}}, "flag": "VOICE_MESSAGE"}
                ]
            },
        }
    },
    {"chatItem": {"chatId": "1", "authorId": "2", "dateSent": "1772359204000", "remoteDeletedMessage": {}}},
    {
        "chatItem": {
            "chatId": "1",
            "authorId": "2",
            "dateSent": "1772359205000",
            "updateMessage": {"individualCall": {}},
        }
    },
]


async def test_signals_own_export(tmp_path: Path) -> None:
    report, store = await load(lines(tmp_path / "main.jsonl", *SIGNAL))
    assert (report.format, report.problems) == ("signal", 0)
    first, second, third = await history(store, "me", "signal:+49301234")
    assert [(each.author, each.name, each.text) for each in (first, second, third)] == [
        ("+49301234", "Bob Lee", "tea?"),
        ("me", None, "green"),
        ("+49301234", "Bob Lee", ""),
    ]
    assert second.reply_to == first.id
    assert (third.kind, third.parts[0].media_type, third.parts[0].size) == ("voice", "audio/aac", 12)
    assert await users(store) == {"me", "+49301234"}


async def test_signal_export_writes_a_folder_per_chat(tmp_path: Path) -> None:
    def entry(sender: str, body: str, **more: object) -> dict[str, Any]:
        return {
            "date": "2026-03-01T10:00:00",
            "sender": sender,
            "body": body,
            "reactions": [],
            "attachments": [],
            **more,
        }

    lines(
        tmp_path / "out" / "Bob" / "data.json",
        entry("Bob", "tea?"),
        entry("Me", "green", attachments=[{"name": "cup.jpg", "path": "media/cup.jpg"}]),
        entry("Bob", "", deleted=True),
    )
    written(tmp_path / "out" / "Bob" / "chat.md", "[2026-03-01 10:00:00] Bob: tea?\n")
    report, store = await load(tmp_path / "out")
    assert (report.format, report.skipped) == ("signal", {"deleted messages": 1})
    assert [(each.author, each.text) for each in await history(store, "me", "signal:Bob")] == [
        ("Bob", "tea?"),
        ("me", "green"),
    ]


async def test_signal_exports_markdown(tmp_path: Path) -> None:
    text = (
        "[2026-03-01 10:00:00] Bob: tea?\nor coffee?\n(- Me: 👍 -)\n"
        "[2026-03-01 10:01:00] Me: green ![cup.jpg](./media/cup.jpg)  \n"
    )
    report, store = await load(written(tmp_path / "Bob" / "chat.md", text))
    assert (report.format, await said(store, "me", "signal:Bob")) == ("signal", ["tea?\nor coffee?", "green"])


def facebook(milliseconds: int, content: str | None = None, **more: object) -> dict[str, Any]:
    found: dict[str, Any] = {"sender_name": "Zo\u00c3\u00ab", "timestamp_ms": 1_772_359_200_000 + milliseconds, **more}
    return found if content is None else {**found, "content": content}


@pytest.mark.parametrize("app", ["facebook", "instagram"])
async def test_facebook_and_instagram(tmp_path: Path, app: str) -> None:
    newest_first = [
        facebook(5, "later"),
        facebook(4, photos=[{"uri": "messages/photos/1.jpg", "creation_timestamp": 1}]),
        facebook(
            3, "caf\u00c3\u00a9 \u00e2\u0098\u0095", reactions=[{"reaction": "\u00e2\u009d\u00a4", "actor": "Bob"}]
        ),
        facebook(2, "look", share={"link": "https://example.org/tea"}),
        facebook(1, "You missed a call from Zo\u00c3\u00ab.", type="Call", call_duration=0),
        facebook(1, is_unsent=True),
        facebook(0, "same time, second"),
        facebook(0, "same time, first"),
    ]
    chat = {
        "participants": [{"name": "x"}],
        "messages": newest_first,
        "title": "Zo\u00c3\u00ab",
        "thread_path": "inbox/zoe_1",
    }
    folder = "your_instagram_activity" if app == "instagram" else "your_facebook_activity"
    report, store = await load(packed(tmp_path / "x.zip", {f"{folder}/messages/inbox/zoe_1/message_1.json": chat}))
    assert (report.format, report.problems, sum(report.skipped.values())) == (app, 0, 2)
    messages = await history(store, "Zoë", f"{app}:zoe_1")
    assert [message.text for message in messages] == [
        "same time, first",
        "same time, second",
        "look\nhttps://example.org/tea",
        "café ☕",
        "",
        "later",
    ]
    assert dict(messages[3].metadata) == {"reactions": {"❤": 1}}
    assert (messages[4].kind, messages[4].parts[0].url) == ("photo", "messages/photos/1.jpg")


async def test_an_encrypted_chat_of_facebook(tmp_path: Path) -> None:
    entry = {"isUnsent": False, "media": [], "reactions": [], "senderName": "Zoë", "type": "text"}
    chat = {
        "participants": ["Zoë", "Bob"],
        "threadName": "Zoë_1",
        "messages": [{**entry, "text": "hi", "timestamp": 1_772_359_200_000}],
    }
    report, store = await load(written(tmp_path / "Zoe_1.json", chat))
    assert (report.format, await said(store, "Zoë", "facebook:Zoë_1")) == ("facebook", ["hi"])
