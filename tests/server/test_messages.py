"""Messages, batches, filters and threads over HTTP."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Any

import pytest

from aforesaid import Part
from server.serving import Running

pytestmark = pytest.mark.anyio


async def test_a_message_keeps_all_that_was_sent_with_it(server: Running) -> None:
    details: dict[str, Any] = {
        "parts": [{"type": "image", "url": "https://example.org/cat.png", "text": "a cat on a roof"}],
        "tool_calls": [{"id": "c1", "name": "look", "arguments": "{}"}],
        "metadata": {"topic": {"name": "cats"}, "n": 1},
        "reply_to": "m0",
        "kind": "photo",
        "language": "en",
    }
    async with server.client(server.key()) as client:
        stored = await client.post("/api/messages", json={"user": "ann", "role": "assistant", "id": "m1"} | details)
        assert stored.status_code == 201, stored.text
        (shown,) = (await client.get("/api/messages", params={"user": "ann"})).json()["messages"]
        assert shown == stored.json()["message"]
        assert shown["text"] == "a cat on a roof"
        part = {name: value for name, value in shown["parts"][0].items() if value is not None}
        assert {**shown, "parts": [part]}.items() >= details.items()
        assert (shown["tool_call_id"], shown["taken_back"]) == (None, False)
        empty = await client.post("/api/messages", json={"user": "ann", "role": "user"})
        assert (empty.status_code, empty.json()["detail"]) == (422, "the text is empty")


async def test_bytes_are_uploaded_and_downloaded_with_their_media_type(server: Running) -> None:
    data = b"<script>alert(1)</script>"
    part = {"type": "file", "name": "näme.html", "media_type": "text/html", "data": b64encode(data).decode()}
    async with server.client(server.key()) as client:
        stored = await client.post("/api/messages", json={"user": "ann", "role": "user", "id": "m1", "parts": [part]})
        assert stored.status_code == 201, stored.text
        (shown,) = stored.json()["message"]["parts"]
        assert (shown["hash"], shown["size"], "data" in shown) == (sha256(data).hexdigest(), len(data), False)
        asked = {"user": "ann", "message": "m1"}
        answer = await client.get(f"/api/attachments/{shown['hash']}", params=asked)
        assert (answer.status_code, answer.content) == (200, data)
        assert answer.headers["content-type"].startswith("text/html")
        assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''n%C3%A4me.html"
        assert answer.headers["x-content-type-options"] == "nosniff"
        kept = {"user": "ann", "id": "m1", "text": "edited", "parts": [shown]}
        edited = await client.patch("/api/messages", json=kept)
        assert edited.json()["message"]["parts"] == [shown], edited.text


async def test_bytes_are_served_only_for_a_message_that_has_them(server: Running) -> None:
    data = b"Ann's secret"
    name = sha256(data).hexdigest()
    stored = await server.memory.user("ann").add("user", id="m1", parts=[Part.of(data)])
    assert stored.message.parts[0].hash == name
    async with server.client(server.key()) as client:
        bob = {"user": "bob", "role": "user", "id": "m1"}
        named = await client.post("/api/messages", json={**bob, "parts": [{"type": "file", "hash": name}]})
        assert (named.status_code, "needs its data" in named.json()["detail"]) == (422, True)
        elsewhere = {"type": "file", "hash": name, "url": "https://example.org/file"}
        assert (await client.post("/api/messages", json={**bob, "parts": [elsewhere]})).status_code == 201
        for message in ("m1", "m2"):
            refused = await client.get(f"/api/attachments/{name}", params={"user": "bob", "message": message})
            assert refused.status_code == 404
        await server.memory.user("ann").take_back("m1")
        gone = await client.get(f"/api/attachments/{name}", params={"user": "ann", "message": "m1"})
        assert gone.status_code == 404
        for wrong in ({"data": "not base64!"}, {"data": "QUJD", "url": "https://example.org/file"}):
            answer = await client.post("/api/messages", json={**bob, "id": "m3", "parts": [{"type": "file"} | wrong]})
            assert answer.status_code == 422


async def test_a_batch_is_stored_as_a_whole(server: Running) -> None:
    async with server.client(server.key()) as client:
        batch = [{"role": "user", "text": f"line {number}"} for number in range(500)]
        body = {"user": "ann", "thread": "t", "messages": batch}
        keyed = {"Idempotency-Key": "k"}
        first = await client.post("/api/messages/batch", json=body, headers=keyed)
        assert first.status_code == 201, first.text
        assert (first.json()["stored"], first.json()["duplicates"]) == (500, 0)
        assert len(first.json()["ids"]) == 500
        again = await client.post("/api/messages/batch", json=body, headers=keyed)
        assert (again.json()["stored"], again.json()["duplicates"]) == (0, 500)
        batch[321] = {"role": "user", "text": ""}
        refused = await client.post("/api/messages/batch", json=body)
        assert refused.status_code == 422
        assert "message 321 of the batch" in refused.json()["detail"]
        nothing = await client.post("/api/messages/batch", json={"user": "ann", "messages": []})
        assert (nothing.status_code, nothing.json()["stored"]) == (201, 0)
        assert (await client.get("/api/messages/count", params={"user": "ann"})).json() == {"count": 500}


async def test_reads_counts_and_searches_take_the_same_filters(server: Running) -> None:
    async with server.client(server.key()) as client:
        batch = [
            {"role": "user", "text": "a blue boat", "at": "2026-03-01T09:00:00Z", "metadata": {"n": 1}},
            {"role": "assistant", "text": "which boat", "at": "2026-03-02T09:00:00Z"},
            {"role": "user", "text": "bob's boat", "at": "2026-03-03T09:00:00Z", "author": "bob"},
        ]
        await client.post("/api/messages/batch", json={"user": "ann", "messages": batch})
        filters: list[tuple[dict[str, str], str]] = [
            ({"metadata": '{"n": 1}'}, "a blue boat"),
            ({"role": "assistant"}, "which boat"),
            ({"author": "bob"}, "bob's boat"),
            ({"since": "2026-03-02T00:00:00Z", "until": "2026-03-03T00:00:00Z"}, "which boat"),
        ]
        for where, text in filters:
            asked = {"user": "ann", **where}
            listed = (await client.get("/api/messages", params=asked)).json()["messages"]
            found = (await client.get("/api/search", params={**asked, "q": "boat", "min_score": 0})).json()["hits"]
            assert ([each["text"] for each in listed], [each["text"] for each in found]) == ([text], [text])
            assert (await client.get("/api/messages/count", params=asked)).json() == {"count": 1}
        for wrong in ("[1]", "{", '{"n": [1]}', '"x"'):
            refused = await client.get("/api/messages", params={"user": "ann", "metadata": wrong})
            assert refused.status_code == 422, wrong
            assert "metadata" in refused.json()["detail"]


async def test_threads_are_listed_newest_first_and_paged(server: Running) -> None:
    async with server.client(server.key()) as client:
        for day, thread in enumerate(("one", "two", "three"), 1):
            said = {"user": "ann", "thread": thread, "role": "user", "text": "hi", "at": f"2026-03-0{day}T09:00:00Z"}
            await client.post("/api/messages", json=said)
        first = (await client.get("/api/threads", params={"user": "ann", "limit": 2})).json()["threads"]
        assert [each["id"] for each in first] == ["three", "two"]
        assert first[0] == {
            "id": "three",
            "chat": None,
            "messages": 1,
            "first_at": "2026-03-03T09:00:00Z",
            "last_at": "2026-03-03T09:00:00Z",
            "last_text": "hi",
        }
        rest = (await client.get("/api/threads", params={"user": "ann", "before": "two"})).json()["threads"]
        assert [each["id"] for each in rest] == ["one"]
        unknown = await client.get("/api/threads", params={"user": "ann", "before": "four"})
        assert unknown.status_code == 404
    async with server.client(server.key(user="bob")) as client:
        assert (await client.get("/api/threads")).json() == {"threads": []}


async def test_a_message_is_edited_taken_back_and_erased(server: Running) -> None:
    async with server.client(server.key()) as client:
        whose = {"user": "ann", "thread": "t"}
        batch = [{"role": "user", "text": text, "id": text} for text in ("one", "two", "three")]
        await client.post("/api/messages/batch", json={**whose, "messages": batch})
        edited = await client.patch("/api/messages", json={**whose, "id": "one", "text": "first", "metadata": {"n": 1}})
        assert (edited.status_code, edited.json()["message"]["text"]) == (200, "first")
        gone = await client.post("/api/messages/take-back", json={**whose, "id": "two"})
        assert (gone.status_code, gone.json()["message"]["taken_back"]) == (200, True)
        again = await client.post("/api/messages/take-back", json={**whose, "id": "two"})
        assert (again.status_code, again.json()["duplicate"]) == (200, True)
        refused = await client.patch("/api/messages", json={**whose, "id": "two", "text": "x"})
        assert refused.status_code == 409, refused.text
        erased = await client.post("/api/messages/erase", json={**whose, "ids": ["three"]})
        assert (erased.status_code, erased.json()["messages"]) == (200, 1)
        listed = (await client.get("/api/messages", params=whose)).json()["messages"]
        assert [(each["text"], each["metadata"]) for each in listed] == [("first", {"n": 1})]
        for path, body in (("take-back", {"id": "never"}), ("erase", {"ids": ["never"]})):
            assert (await client.post(f"/api/messages/{path}", json=whose | body)).status_code == 404
        cleared = await client.post("/api/threads/clear", json=whose)
        assert cleared.json() == {"count": 1}
        assert (await client.post("/api/threads/clear", json={**whose, "erase": True})).json() == {"count": 0}
        assert (await client.get("/api/messages", params={**whose, "versions": True})).json()["messages"] == []
    async with server.client(server.key("reader")) as client:
        assert (await client.post("/api/threads/clear", json=whose)).status_code == 403


@pytest.mark.defect("I5")
async def test_messages_of_openai_style_programs_are_taken_one_by_one_and_together(server: Running) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    image = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Look!"},
        {"role": "user", "content": [{"type": "text", "text": "This one"}, image]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    async with server.client(server.key()) as client:
        for message in messages:
            assert (await client.post("/api/messages", json={"user": "ann", **message})).status_code == 201
        batch = await client.post("/api/messages/batch", json={"user": "bob", "messages": messages})
        assert batch.status_code == 201, batch.text
        refused = await client.post("/api/messages", json={"user": "ann", "role": "user", "text": "a", "content": "b"})
        assert (refused.status_code, refused.json()["errors"][0]["where"]) == (422, "body.content")
        for user in ("ann", "bob"):
            found = (await client.get("/api/messages", params={"user": user})).json()["messages"]
            assert [each["text"] for each in found] == ["Look!", "This one", ""]
            assert found[1]["parts"][1]["url"] == "https://example.org/cat.png"
            assert found[2]["tool_calls"][0]["name"] == "look"
