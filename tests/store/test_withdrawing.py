"""Messages that are edited, taken back or erased, on every store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aforesaid.domain.checks import LATEST, Within
from aforesaid.domain.memory import MemoryDraft, MemoryRecord, NoteKey, Superseded
from aforesaid.domain.message import Message, tombstone
from aforesaid.domain.scope import Scope, Subject, Touch
from aforesaid.domain.summary import SummaryDraft, ViewDraft
from aforesaid.errors import SourcesChanged
from aforesaid.store import Store, open_store
from aforesaid.store.agenda import Advance, PlannedEntry, Unprocessed
from aforesaid.store.erasing import Withdraw
from aforesaid.store.memories import AddMemory, CountMemory, DerivedText, Memories, MemoryById, PutDerived
from aforesaid.store.messages import AddMessage, Messages, UserLedger, VersionsOf
from aforesaid.store.people import AuditRows, Spend, TokensSpent
from aforesaid.store.retention import Discard
from aforesaid.store.searches import SearchText
from aforesaid.store.summaries import AddView, Archive, Revise, RollBack, Summaries
from copying import copy
from making import adding, archive, minutes

ANN, BOB = Scope.of("ann"), Scope.of("bob")
GENERAL, BOB_HERE = Scope.of("ann", thread="general"), Scope.of("bob", thread="general")


async def say(store: Store, text: str, role: str = "user", scope: Scope = ANN, **options: object) -> Message:
    return (await store.apply([adding(scope, text, role, **options)])).message  # type: ignore[arg-type]


async def take_back(store: Store, *messages: Message) -> list[Message]:
    """Take back messages of one user, as the API does."""
    scope = Scope.of(messages[0].user, messages[0].space)
    changes = [AddMessage(tombstone(message)) for message in messages]
    receipt = await store.apply([*changes, Withdraw(scope, tuple(message.seq for message in messages), "tester")])
    return [result.message for result in receipt.results[: len(messages)]]  # type: ignore[union-attr]


async def remember(store: Store, text: str, *sources: Message, supersedes: MemoryRecord | None = None) -> MemoryRecord:
    draft = MemoryDraft(ANN, "fact", text, sources=tuple(message.seq for message in sources))
    old = () if supersedes is None else (Superseded(supersedes.id, supersedes.revision),)
    return (await store.apply([AddMemory(draft, supersedes=old)])).memory


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


@pytest.mark.distributed
@pytest.mark.parametrize("scope", [ANN, GENERAL])
async def test_a_message_that_was_taken_back_is_not_shown_or_found(store: Store, scope: Scope) -> None:
    within: Within = "user" if scope is ANN else "thread"
    first = await say(store, "my secret is marzipan", scope=scope, at=minutes(0))
    second = await say(store, "marzipan is nice", scope=scope, at=minutes(1))
    (gone,) = await take_back(store, first)
    assert (gone.text, gone.taken_back, gone.replaces, gone.at) == ("", True, first.seq, first.at)
    assert await store.read(Messages(scope, within=within)) == [second]
    found = await store.read(SearchText(scope, "secret marzipan", within=within))
    assert [hit.message for hit in found] == [second]
    every = await store.read(Messages(scope, within=within, versions=True))
    assert [(message.text, message.replaced, message.taken_back) for message in every] == [
        ("my secret is marzipan", True, False),
        ("", True, True),
        ("marzipan is nice", False, False),
    ]
    assert every[1] == gone
    assert (await store.verify()).ok


async def test_all_versions_go_with_a_message(store: Store) -> None:
    first = await say(store, "one", id="m1")
    second = await say(store, "two", replaces="m1")
    await say(store, "other")
    await take_back(store, second)
    assert texts(await store.read(Messages(ANN))) == ["other"]
    for seq in (first.seq, second.seq):
        versions = await store.read(VersionsOf(ANN, [seq]))
        assert texts(versions) == ["one", "two", ""]
    assert await store.read(VersionsOf(BOB, [first.seq])) == []
    assert (await store.verify()).ok


async def test_a_later_version_brings_a_message_back(store: Store) -> None:
    first = await say(store, "one")
    (gone,) = await take_back(store, first)
    third = await say(store, "three", replaces=first)
    assert third.replaces == gone.seq
    assert texts(await store.read(Messages(ANN))) == ["three"]
    assert (await store.verify()).ok


async def test_a_summary_that_covers_it_is_deleted_and_due_again(store: Store) -> None:
    kept = [await say(store, text, at=minutes(count)) for count, text in enumerate(("a", "b"))]
    others = [await say(store, text, at=minutes(10 + count)) for count, text in enumerate(("secret", "d"))]
    below = await archive(store, ANN, kept, "A and b.")
    gone = await archive(store, ANN, others, "A secret and d.")
    await store.apply([Archive(SummaryDraft(ANN, "All, with a secret.", summaries=(below.id, gone.id)))])
    subject = Subject("tree", "default", "ann")
    await store.apply([Advance("tree", 0, others[-1].seq, (Touch(subject, 4, 9, others[-1].seq, LATEST),))])
    await store.apply([PutDerived(ANN, "habits", "k", "tells secrets")])
    await take_back(store, others[0])
    assert [summary.text for summary in await store.read(Summaries(ANN, active=None))] == ["A and b."]
    assert [summary.id for summary in await store.read(Summaries(ANN))] == [below.id]
    free = await store.read(Messages(ANN, archived=False, versions=True))
    assert texts(free) == ["secret", "", "d"]
    entry = await store.read(PlannedEntry(subject))
    assert entry is not None
    assert entry.due_at is not None
    assert entry.due_at < LATEST
    assert entry.messages == 4, "the message is still in the log"
    assert await store.read(DerivedText(ANN, "habits")) is None
    assert (await store.verify()).ok


async def test_day_summaries_of_others_who_read_it_are_deleted(store: Store) -> None:
    secret = await say(store, "secret", scope=GENERAL, at=minutes(0))
    theirs = await say(store, "hello", scope=BOB_HERE, at=minutes(1))
    view = ViewDraft(BOB_HERE, "day", "Ann has a secret.", theirs.seq, theirs.seq, 1, day=minutes(0).date())
    await store.apply([AddView(view)])
    await take_back(store, secret)
    assert await store.read(Summaries(BOB, active=None)) == []
    assert (await store.verify()).ok


async def test_memories_that_rest_on_it_alone_are_deactivated(store: Store) -> None:
    first, second = await say(store, "I moved to Rome"), await say(store, "I like tea")
    old = await remember(store, "lives in Bonn")
    alone = await remember(store, "lives in Rome", first, supersedes=old)
    both = await remember(store, "drinks tea in Rome", first, second)
    await take_back(store, first)
    found = {memory.id: memory for memory in await store.read(Memories(ANN, active=None))}
    assert {number: memory.state for number, memory in found.items()} == {
        old.id: "active",
        alone.id: "deactivated",
        both.id: "active",
    }
    assert (found[alone.id].reason, found[old.id].superseded_by) == ("its message was taken back", None)
    assert [row.action for row in await store.read(AuditRows(ANN, 3))] == [
        "memory.take_back",
        "memory.take_back",
        "messages.take_back",
    ]
    assert (await store.verify()).ok


async def test_a_message_that_was_taken_back_does_not_come_back_with_age(store: Store) -> None:
    first, second = await say(store, "secret", at=minutes(0)), await say(store, "other", at=minutes(1))
    (gone,) = await take_back(store, first)
    await archive(store, ANN, [gone], "Nothing.")
    await store.apply([Discard("messages", LATEST)])
    assert await store.read(Messages(ANN, versions=True)) == [second]
    assert (await store.verify()).ok


async def test_tombstones_are_copied_to_another_store(store: Store, tmp_path: Path) -> None:
    other = await open_store(str(tmp_path / "other.db"))
    await say(other, "was here before", at=minutes(-5))
    first = await say(store, "secret", at=minutes(0))
    await say(store, "kept", at=minutes(1))
    await take_back(store, first)
    for _ in range(2):
        await copy(store.dump(), other)
        assert texts(await other.read(Messages(ANN))) == ["was here before", "kept"]
        every = await other.read(Messages(ANN, versions=True))
        assert [message.taken_back for message in every] == [False, False, True, False]
        assert (await other.verify()).ok
    await other.close()


@pytest.mark.distributed
async def test_erased_messages_go_in_all_versions_with_what_was_made_of_them(store: Store) -> None:
    first = await say(store, "secret", at=minutes(0), metadata={"k": "v"})
    second = await say(store, "secret again", replaces=first)
    kept = await say(store, "kept", at=minutes(1))
    await archive(store, ANN, [first, second, kept], "A secret.")
    memory = await remember(store, "has a secret", second, kept)
    done = await store.erase(ANN, [second.seq], "tester")
    assert (done.messages, done.summaries, done.memories, done.of_others) == (2, 1, 1, 0)
    (left,) = await store.read(Messages(ANN, versions=True))
    assert left == replace(kept, active=True, chunk=None)
    assert await store.read(Summaries(ANN, active=None)) == []
    assert memory.id not in {each.id for each in await store.read(Memories(ANN, active=None))}
    (row,) = await store.read(AuditRows(ANN, 1))
    assert (row.actor, row.action) == ("tester", "messages.erase")
    assert (await store.erase(ANN, [second.seq])).messages == 0, "twice is as good as once"
    assert (await store.erase(BOB, [kept.seq])).messages == 0, "it is not Bob's"
    assert (await say(store, "new")).seq > kept.seq
    assert (await store.verify()).ok


async def test_what_was_taken_back_can_be_erased(store: Store) -> None:
    first, kept = await say(store, "secret"), await say(store, "kept")
    await take_back(store, first)
    assert (await store.erase(ANN, [first.seq])).messages == 2
    assert await store.read(Messages(ANN, versions=True)) == [kept]
    assert (await store.verify()).ok


async def test_erasing_all_messages_of_a_thread_leaves_a_sound_store(store: Store) -> None:
    mine = [await say(store, f"line {count}", scope=GENERAL, at=minutes(count * 40)) for count in range(6)]
    theirs = await say(store, "hello", scope=BOB_HERE, at=minutes(1))
    await archive(store, GENERAL, mine[:3])
    await store.erase(GENERAL, [message.seq for message in mine])
    assert await store.read(Messages(GENERAL, within="thread", versions=True)) == [theirs]
    assert (await store.read(UserLedger(ANN))).messages == 0
    assert (await store.verify()).ok
    await say(store, "again", scope=GENERAL)
    assert (await store.verify()).ok


@pytest.mark.parametrize("kind", ["sqlite", "json", "files"])
@pytest.mark.req("C18")
async def test_no_byte_of_an_erased_message_is_left(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "home" / ("memory.db" if kind == "sqlite" else "memory")
    store = await open_store(f"{kind}:{place}")
    secret = await say(store, "my Zugzwang", metadata={"note": "quizzaciously"})
    for count in range(50):
        await say(store, f"talk {count}")
    await take_back(store, secret)
    await store.erase(ANN, [secret.seq])

    def left() -> list[str]:
        words = (b"zugzwang", b"quizzaciously")
        files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
        return [f"{word!r} in {path}" for path in files for word in words if word in path.read_bytes().lower()]

    assert left() == []
    await store.close()
    assert left() == []


@pytest.mark.distributed
@pytest.mark.parametrize("taken_back", [True, False])
async def test_no_memory_rests_on_words_that_were_edited_or_taken_back(store: Store, *, taken_back: bool) -> None:
    first, second = await say(store, "My dog is called Zorbinax."), await say(store, "I like tea.")
    known = await remember(store, "likes tea", second)
    await (take_back(store, first) if taken_back else say(store, "My cat is called Ada.", replaces=first))
    with pytest.raises(SourcesChanged):
        await remember(store, "has a dog called Zorbinax", first, second)
    with pytest.raises(SourcesChanged):
        await store.apply([CountMemory(ANN, known.id, 1, first.at, (first.seq,))])
    (left,) = await store.read(Memories(ANN, active=None))
    assert (left.text, left.times, left.sources) == ("likes tea", 1, (second.seq,))


@pytest.mark.distributed
@pytest.mark.parametrize("taken_back", [True, False])
async def test_no_summary_is_stored_of_words_that_were_edited_or_taken_back(store: Store, *, taken_back: bool) -> None:
    first, second = await say(store, "secret", at=minutes(0)), await say(store, "other", at=minutes(1))
    seqs = (first.seq, second.seq)
    await (take_back(store, first) if taken_back else say(store, "new", replaces=first))
    archived = SummaryDraft(ANN, "A secret.", messages=seqs, shown=seqs)
    view = ViewDraft(ANN, "history", "A secret.", first.seq, second.seq, 2, shown=seqs)
    for change in (Archive(archived), AddView(view)):
        with pytest.raises(SourcesChanged):
            await store.apply([change])
    assert await store.read(Summaries(ANN, active=None)) == []
    await store.apply([AddView(replace(view, text="Other.", shown=seqs[1:]))])
    await store.apply([Archive(replace(archived, text="Other.", shown=seqs[1:]))])
    assert [summary.text for summary in await store.read(Summaries(ANN))] == ["Other."] * 2
    assert (await store.verify()).ok


@pytest.mark.distributed
async def test_an_edit_deactivates_memories_that_rest_on_the_old_words_alone(store: Store) -> None:
    first, second = await say(store, "I moved to Rome"), await say(store, "I like tea")
    old = await remember(store, "lives in Bonn")
    alone = await remember(store, "lives in Rome", first, supersedes=old)
    both = await remember(store, "drinks tea in Rome", first, second)
    same = await say(store, "I moved to Rome", replaces=first, metadata={"seen": True})
    assert (await store.read(MemoryById(ANN, alone.id))).active, "the words are the same"
    await say(store, "I have a parrot", replaces=same)
    found = {memory.id: memory for memory in await store.read(Memories(ANN, active=None))}
    assert {number: memory.state for number, memory in found.items()} == {
        old.id: "active",
        alone.id: "deactivated",
        both.id: "active",
    }
    assert found[alone.id].reason == "its message was edited"
    assert [row.action for row in await store.read(AuditRows(ANN, 2))] == ["memory.edit_message"] * 2
    assert (await store.verify()).ok


@pytest.mark.defect("W1")
@pytest.mark.req("G17")
@pytest.mark.parametrize("how", ["erase", "purge", "take back"])
async def test_summaries_that_were_rolled_back_go_with_their_messages(store: Store, how: str) -> None:
    kept = await say(store, "said before", at=minutes(-9))
    await archive(store, ANN, [kept], "What was said before.")
    said = [
        await say(store, text, at=minutes(count), author=author)
        for count, (text, author) in enumerate([("my secret", "carol"), ("another thing", "ann")])
    ]
    first = await archive(store, ANN, said, "A secret and another thing.")
    above = (await store.apply([Archive(SummaryDraft(ANN, "All, with a secret.", summaries=(first.id,)))])).summary
    edited = (await store.apply([Revise(ANN, above.id, "All of it: a secret.", edited_by="ann")])).summary
    for number in (edited.id, above.id, first.id):
        await store.apply([RollBack(ANN, number)])
    await archive(store, ANN, said[1:], "Another thing.")
    if how == "erase":
        await store.erase(ANN, [said[0].seq])
    elif how == "purge":
        await store.purge(Scope.of("carol"))
    else:
        await take_back(store, said[0])
    left = await store.read(Summaries(ANN, active=None))
    assert [summary.text for summary in left] == ["What was said before.", "Another thing."]
    assert (await store.verify()).ok


@pytest.mark.defect("W1")
@pytest.mark.req("G17")
async def test_an_archive_that_states_a_memory_goes_with_any_source_of_the_memory(store: Store) -> None:
    first, second = await say(store, "allergic to nuts", at=minutes(0)), await say(store, "yes, nuts", at=minutes(1))
    memory = await remember(store, "Ann is allergic to nuts.", first)
    await store.apply([CountMemory(ANN, memory.id, 1, minutes(1), (second.seq,))])
    await archive(store, ANN, [first], "Ann is allergic to nuts.")
    await store.erase(ANN, [second.seq])
    assert await store.read(Memories(ANN, active=None)) == []
    assert await store.read(Summaries(ANN, active=None)) == []
    assert (await store.verify()).ok


@pytest.mark.defect("W3")
@pytest.mark.req("G17")
@pytest.mark.parametrize("how", ["erase", "purge"])
async def test_the_agenda_does_not_count_what_was_erased_while_it_was_read(store: Store, how: str) -> None:
    said = [await say(store, text, at=minutes(count)) for count, text in enumerate("abc")]
    after, page = await store.read(Unprocessed("tree", 10))
    subject = Subject("tree", "default", "ann")
    touch = Touch(subject, len(page), 3, page[-1].seq, LATEST)
    await (store.erase(ANN, [said[1].seq]) if how == "erase" else store.purge(ANN))
    with pytest.raises(SourcesChanged, match="erased since"):
        await store.apply([Advance("tree", after, page[-1].seq, (touch,), "default", len(page))])
    assert await store.read(PlannedEntry(subject)) is None
    assert (await store.verify()).ok


@pytest.mark.defect("W3")
@pytest.mark.req("G17")
async def test_what_was_worked_out_is_not_kept_when_its_sources_were_erased_meanwhile(store: Store) -> None:
    said = [await say(store, text, at=minutes(count)) for count, text in enumerate(("secret", "b", "c"))]
    summary = await archive(store, ANN, said, "A secret.")
    memory = await remember(store, "Ann has a secret.", said[0])
    read = (said[0].seq, said[-1].seq, len(said))
    habits = PutDerived(ANN, "habits", "3", "secret", known_user=True, messages=read)
    await store.apply([habits])
    notes = (NoteKey("summary", summary.id), NoteKey("memory", memory.id))
    portraits = [PutDerived(ANN, "portrait", "k", "secret", known_user=True, notes=(note,)) for note in notes]
    await store.apply(portraits)
    await store.erase(ANN, [said[0].seq])
    for change in (habits, *portraits):
        with pytest.raises(SourcesChanged, match="erased since"):
            await store.apply([change])
        assert await store.read(DerivedText(ANN, change.kind)) is None


@pytest.mark.defect("W3")
@pytest.mark.req("G17")
async def test_tokens_that_are_counted_late_do_not_bring_a_purged_user_back(store: Store) -> None:
    day = minutes(0).date()
    await store.apply([Spend(day, Scope.of("nobody yet"), 7)])
    await say(store, "hello")
    await store.purge(ANN)
    await store.apply([Spend(day, ANN, 5)])
    assert await store.read(TokensSpent(day, ANN)) == 0
    assert await store.read(TokensSpent(day, Scope.of("nobody yet"))) == 7
    assert await store.read(TokensSpent(day, None)) == 12
