"""A request of a person waits for the replies that are being stored."""

from __future__ import annotations

import asyncio

from aforesaid.server.proxy.proxy_memory import StoreOrder

ANN = ("default", "ann")


async def test_a_request_waits_for_every_reply_of_its_person_and_for_nobody_elses() -> None:
    order = StoreOrder()
    with order.reply(ANN):
        with order.reply(ANN):
            pass
        # One is stored, the other is not.
        waiting = asyncio.create_task(order.replies_before(ANN))
        await order.replies_before(("default", "bob"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
    await waiting
    await order.replies_before(ANN)


async def test_nothing_is_kept_of_people_whose_replies_are_stored() -> None:
    order = StoreOrder()
    for number in range(3):
        with order.reply(("default", f"user {number}")), order.reply(("default", f"user {number}")):
            pass
    assert order._replies == {}
