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
