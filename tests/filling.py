"""Fills a store with every kind of data, and reads all of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

from aforesaid.domain.context_receipt import ContextReceipt, SentItem, SentSection
from aforesaid.domain.hit import VectorRow
from aforesaid.domain.memory import MemoryDraft, Superseded
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope, Subject, Touch
from aforesaid.domain.summary import SummaryDraft, ViewDraft
from aforesaid.domain.transfer import Row
from aforesaid.store import Store
from aforesaid.store.agenda import Advance, FinishEntry
from aforesaid.store.memories import (
    AddMemory,
    ChangeMemory,
    CountMemory,
    FactsVersions,
    Forget,
    MarkExtracted,
    Memories,
    MemoryVersions,
    PutDerived,
    PutFacts,
    Tombstones,
    UnextractedUsers,
)
from aforesaid.store.messages import Messages, Sessions, UserLedger
from aforesaid.store.people import AuditRows, KeepReceipt, PutSetting, Receipts, Settings, Spend, TokensSpent
from aforesaid.store.searches import AddVectors, SearchNotes, SearchText
from aforesaid.store.summaries import AddView, Archive, Revise, RollBack, Summaries
from making import NOON, adding, archive, minutes

ANN = Scope.of("ann")
BOB = Scope.of("bob")
ANN_HERE = Scope.of("ann", thread="general")
BOB_HERE = Scope.of("bob", thread="general")
ANN_AWAY = Scope.of("ann", space="elsewhere")
EMBEDDER = "test"


async def fill_with_everything(store: Store) -> None:
    """Store every kind of data."""
    await store.apply([adding(ANN, "I live in Berlin", at=minutes(0), id="m1", name="Ann")])
    await store.apply([adding(ANN, "How nice", "assistant", at=minutes(1))])
    await store.apply([adding(ANN_AWAY, "same words elsewhere", at=minutes(0), id="m1")])
    for number in range(6):
        await store.apply([adding(ANN_HERE, f"ann says {number}", at=minutes(100 * number))])
        await store.apply([adding(BOB_HERE, f"bob says {number}", at=minutes(100 * number + 1))])
    await store.apply([adding(BOB_HERE, "carol said so", at=minutes(700), author="carol", name="Carol")])
    late = Scope.of("ann", thread="general", session="holidays")
    await store.apply([adding(late, "in a session of my own", at=minutes(900))])
    mine = await store.read(Messages(ANN))
    first = await archive(store, ANN, mine[:2], "Ann lives in Berlin.")
    second = await archive(store, ANN, mine[2:4], "Ann says things.")
    third = await archive(store, ANN, mine[4:5], "A mistake.")
    await store.apply([RollBack(ANN, third.id)])
    await store.apply([Revise(ANN, second.id, "Ann says 0 and 1.", edited_by="ann")])
    newest = (await store.read(Summaries(ANN)))[1]
    await store.apply([Archive(SummaryDraft(ANN, "All of Ann.", summaries=(first.id, newest.id)))])
    seqs = [message.seq for message in await store.read(Messages(BOB_HERE, within="user"))]
    day = ViewDraft(BOB_HERE, "day", "Bob and Ann talked.", seqs[0], seqs[-1], len(seqs), day=NOON.date())
    (made,) = (await store.apply([AddView(day)])).results
    rolling = ViewDraft(BOB_HERE, "rolling", "So far.", seqs[0], seqs[1], 2, reach="thread", details={"topics": ["a"]})
    before = (await store.apply([AddView(rolling)])).summary
    await store.apply(
        [AddView(replace(rolling, text="On.", first=seqs[2], last=seqs[2], messages=1, previous=before.id))]
    )
    await know(store, seqs, mine)
    subject = Subject("calendar", "default", day="2026-03-01")
    await store.apply([Advance("calendar", 0, seqs[-1], (Touch(subject, 17, 100, seqs[-1], 5),))])
    await store.apply([FinishEntry(subject, seqs[-1], None, done_at=9)])
    del made


async def know(store: Store, seqs: list[int], mine: list[Message]) -> None:
    """Store memories, facts and similar data."""
    old = MemoryDraft(ANN, "fact", "lives in Bonn", sources=(mine[0].seq,), tags=("home",), remind_at=minutes(5))
    known = (await store.apply([AddMemory(old)])).memory
    new = MemoryDraft(
        ANN, "fact", "lives in Berlin", sources=(mine[0].seq,), subject="home", matter="home", value="Berlin"
    )
    after = (await store.apply([AddMemory(new, supersedes=(Superseded(known.id, 1),))])).memory
    await store.apply([ChangeMemory(replace(after, text="lives in Berlin Mitte"), "edit", "ann")])
    await store.apply([CountMemory(ANN, after.id, 2, minutes(3), (mine[2].seq,))])
    said = MemoryDraft(BOB, "preference", "likes tea", sources=(seqs[-1],), speaker="carol", trust="reported")
    of_bob = (await store.apply([AddMemory(said)])).memory
    await store.apply([PutFacts(ANN, "Ann lives in Bonn.", "Bonn"), PutFacts(ANN, "Ann lives in Berlin.", "Berlin")])
    await store.apply([Forget(ANN, ("the cat",)), PutSetting(ANN, "summary_every_n", 12), PutSetting(BOB, "x", "y")])
    await store.apply([MarkExtracted(ANN, 0, mine[3].seq), PutDerived(BOB, "portrait", "k", "Bob, friend of Ann")])
    await store.apply([Spend(date(2026, 3, 1), ANN, 70), Spend(date(2026, 3, 1), None, 5)])
    await store.apply([KeepReceipt(receipt_of(ANN, mine[1], known.id)), KeepReceipt(receipt_of(BOB, None, of_bob.id))])
    rows = tuple(VectorRow(message.seq, message.text, bytes(4), message.space) for message in mine)
    await store.apply([AddVectors(EMBEDDER, rows, mine[-1].seq)])


def receipt_of(scope: Scope, reply: Message | None, memory: int, number: int = 1) -> ContextReceipt:
    """Return the receipt of a context that showed a memory, and the reply that it led to."""
    sections = (
        SentSection("memories", 30, (SentItem("memory", memory, 12), SentItem("memory", None, 8))),
        SentSection("recent", 20, () if reply is None else (SentItem("message", reply.seq, 20),)),
        SentSection("date", 10, (SentItem("text", None, 10),)),
    )
    return ContextReceipt(
        id=f"{number:032x}",
        space=scope.space,
        user=scope.user,
        thread=scope.thread,
        at=minutes(number),
        caller="app",
        profile="default",
        budget=8_000,
        tokens=60,
        sections=sections,
        model="a-model",
        reply=None if reply is None else reply.seq,
        input_tokens=75,
        output_tokens=None if reply is None else 5,
        milliseconds={"context": 12, "reply": 900},
    )


async def everything(store: Store, *, vectors: bool = False) -> list[Row]:
    return [row async for page in store.dump(vectors=vectors) for row in page]


async def shown(store: Store, scope: Scope) -> list[Any]:
    """Return everything that can be read about a user, without run-time state."""
    return [
        await store.read(Messages(scope, limit=100)),
        await store.read(Sessions(scope)),
        await store.read(Summaries(scope, active=None)),
        await store.read(Memories(scope, active=None)),
        [
            await store.read(MemoryVersions(scope, memory.id))
            for memory in await store.read(Memories(scope, active=None))
        ],
        await store.read(FactsVersions(scope)),
        await store.read(Tombstones(scope)),
        await store.read(Settings(scope)),
        await store.read(Receipts(scope)),
        await store.read(UserLedger(scope)),
        await store.read(TokensSpent(date(2026, 3, 1), scope)),
        [(row.at, row.actor, row.action, row.subject) for row in await store.read(AuditRows(scope))],
        await store.read(SearchText(scope, "berlin says tea")),
        [(match.key, match.words) for match in await store.read(SearchNotes(scope, "berlin tea", EMBEDDER, None))],
        [user for user in await store.read(UnextractedUsers(10)) if user.scope[:2] == scope[:2]],
    ]
