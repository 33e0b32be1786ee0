"""Receipts over HTTP: who may read which, and what became of what they name."""

from __future__ import annotations

import pytest

from server.serving import Running

pytestmark = pytest.mark.anyio


async def test_receipts_are_listed_and_read_with_their_texts(server: Running) -> None:
    async with server.client(server.key()) as client:
        for text in ("I moved to Berlin.", "My pin is 1234."):
            await client.post("/api/messages", json={"user": "ann", "role": "user", "text": text})
        sent = [
            (await client.post("/api/context", json={"user": "ann", "text": "hello", "sent": True})).json()["receipt"]
            for _ in range(3)
        ]
        asked = (await client.post("/api/context", json={"user": "ann", "text": "hello"})).json()["receipt"]
        page = (await client.get("/api/receipts", params={"user": "ann", "limit": 2})).json()
        rest = (await client.get("/api/receipts", params={"user": "ann", "limit": 2, "cursor": page["next"]})).json()
        assert [each["id"] for each in page["receipts"] + rest["receipts"]] == sent[::-1]
        assert asked not in sent
        assert rest["next"] is None
        one = (await client.get(f"/api/receipts/{sent[0]}", params={"user": "ann"})).json()
        items = [item for section in one["sections"] for item in section["items"] if item["kind"] == "message"]
        assert [(item["text"], item["erased"]) for item in items] == [
            ("I moved to Berlin.", False),
            ("My pin is 1234.", False),
        ]
        erased = await client.post("/api/messages/erase", json={"user": "ann", "ids": [f"#{items[1]['id']}"]})
        assert erased.status_code == 200, erased.text
        again = (await client.get(f"/api/receipts/{sent[0]}", params={"user": "ann"})).json()
        items = [item for section in again["sections"] for item in section["items"] if item["kind"] == "message"]
        assert [(item["text"], item["erased"]) for item in items] == [("I moved to Berlin.", False), (None, True)]


async def test_a_receipt_is_found_by_its_owner_alone(server: Running) -> None:
    async with server.client(server.key()) as client:
        for user in ("ann", "bob"):
            await client.post("/api/messages", json={"user": user, "role": "user", "text": "hello"})
        made = await client.post("/api/context", json={"user": "ann", "text": "hello", "sent": True})
        receipt = made.json()["receipt"]
        assert (await client.get(f"/api/receipts/{receipt}", params={"user": "ann"})).status_code == 200
        assert (await client.get(f"/api/receipts/{receipt}", params={"user": "bob"})).status_code == 404
        assert (await client.get("/api/receipts/nonsense", params={"user": "ann"})).status_code == 422
    async with server.client(server.key(user="bob")) as client:
        assert (await client.get(f"/api/receipts/{receipt}")).status_code == 404
        assert (await client.get(f"/api/receipts/{receipt}", params={"user": "ann"})).status_code in {403, 404}


async def test_the_panel_shows_what_a_reply_knew(server: Running) -> None:
    ann = server.memory.user("ann")
    await ann.add("user", "I moved to Berlin.", name="Ann <b>")
    secret = (await ann.add("user", "My pin is 1234.")).message
    await ann.remember("likes tea")
    context = await ann.context("Where do I live?")
    reply = (await ann.add("assistant", "In Berlin.")).message
    receipt = await ann.sent(context, reply=reply, model="gpt-4o", input_tokens=1_234, output_tokens=5)
    async with server.admin() as client:
        listed = await client.get("/person/receipts", params={"user": "ann"})
        assert listed.status_code == 200, listed.text
        assert receipt.id in listed.text
        assert "2 messages, 1 memory" in listed.text
        await ann.erase(secret)
        talk = await client.get("/person/conversation", params={"user": "ann"})
        assert "This answer knew 2 messages, 1 memory" in talk.text
        assert f"id={receipt.id}" in talk.text
        page = await client.get("/person/receipt", params={"user": "ann", "id": receipt.id})
        assert page.status_code == 200, page.text
        for shown in ("I moved to Berlin.", "likes tea", "erased since", "In Berlin.", "gpt-4o", "1,234 in, 5 out"):
            assert shown in page.text
        assert f"around={reply.seq}" in page.text
        assert "1234." not in page.text
        assert (await client.get("/person/receipt", params={"user": "bob", "id": receipt.id})).status_code == 404
        german = await client.get(
            "/person/receipt", params={"user": "ann", "id": receipt.id}, headers={"Accept-Language": "de"}
        )
        assert "Was das Modell wusste" in german.text
        assert "1.234 hinein" in german.text
