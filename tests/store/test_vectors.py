"""Vectors on every store, and the cache of what was searched lately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from aforesaid.domain.hit import TOKENS, VectorRow
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.store import Store, vector_matrix
from aforesaid.store.messages import MessagesByNumber
from aforesaid.store.searches import AddVectors, MatchText, SearchVector, TokenVectors, UnembeddedMessages
from aforesaid.store.vector_matrix import Matrix, SizedCache, packed, repacked, signs_of, unpacked, widened
from making import add, adding, minutes

ANN = Scope.of("ann")
BOB = Scope.of("bob")


def direction(*numbers: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    vector = np.array(numbers, dtype=np.float32)
    scaled: np.ndarray[tuple[int], np.dtype[np.float32]] = vector / np.linalg.norm(vector)
    return scaled


async def embed(store: Store, message: Message, *numbers: float, model: str = "m") -> None:
    row = VectorRow(message.seq, message.text, direction(*numbers).astype(np.float16).tobytes(), message.space)
    await store.apply([AddVectors(model, (row,), message.seq)])


async def test_what_is_due_is_what_lies_beyond_the_embedders_mark(store: Store) -> None:
    messages = await add(store, ANN, "one", "two") + await add(store, BOB, "one")
    assert [due.text for due in await store.read(UnembeddedMessages("m", 10))] == ["one", "two", "one"]
    await embed(store, messages[0], 1, 0)
    due = await store.read(UnembeddedMessages("m", 10))
    assert [(each.seq, each.known is None) for each in due] == [(2, True), (3, False)]
    assert [each.seq for each in await store.read(UnembeddedMessages("another", 1))] == [1]


async def test_the_most_similar_messages_of_the_scope_come_first(store: Store) -> None:
    for number, message in enumerate(await add(store, ANN, *"abcd")):
        await embed(store, message, 4 - number, number)
    for message in await add(store, BOB, "not mine"):
        await embed(store, message, 1, 0)
    similar = await store.read(SearchVector(ANN, "m", direction(1, 0), limit=2, also=[4]))
    assert similar is not None
    assert list(similar.seqs[:2]) == [1, 2]
    assert 4 in similar.seqs
    assert similar.scores[0] == pytest.approx(1, abs=1e-3)
    assert 0 < similar.mean < 1
    assert await store.read(SearchVector(Scope.of("carol"), "m", direction(1, 0))) is None
    assert await store.read(SearchVector(ANN, "another", direction(1, 0))) is None


async def test_new_vectors_are_found_at_once_and_two_models_never_mix(store: Store) -> None:
    (first,) = await add(store, ANN, "first")
    await embed(store, first, 1, 0)
    await store.read(SearchVector(ANN, "m", direction(1, 0)))
    (second,) = await add(store, ANN, "second")
    await embed(store, second, 0, 1)
    await embed(store, first, 0, 0, 1, model="wider")
    found = await store.read(SearchVector(ANN, "m", direction(0, 1), limit=1))
    assert found is not None
    assert found.seqs[0] == second.seq
    other = await store.read(SearchVector(ANN, "wider", direction(0, 0, 1), limit=5))
    assert other is not None
    assert list(other.seqs) == [first.seq]


async def test_a_channel_is_compared_whole_only_when_asked_for(store: Store) -> None:
    ann, bob = Scope.of("ann", thread="general"), Scope.of("bob", thread="general")
    (theirs,) = await add(store, bob, "bob speaks")
    (mine,) = await add(store, ann, "ann speaks")
    await embed(store, mine, 1, 0)
    # Embedded later, although it was said earlier.
    await embed(store, theirs, 1, 0)
    for within, expected in (("user", [mine.seq]), ("thread", [mine.seq, theirs.seq])):
        similar = await store.read(SearchVector(ann, "m", direction(1, 0), within=within))  # type: ignore[arg-type]
        assert similar is not None
        assert sorted(similar.seqs) == sorted(expected)


async def test_storing_a_vector_twice_stores_it_once(store: Store) -> None:
    (message,) = await add(store, ANN, "once")
    await embed(store, message, 1, 0)
    await embed(store, message, 0, 1)
    similar = await store.read(SearchVector(ANN, "m", direction(1, 0)))
    assert similar is not None
    assert similar.scores[0] == pytest.approx(1, abs=1e-3)


async def test_columns_tell_sessions_and_speakers_and_follow_a_merge_of_sessions(store: Store) -> None:
    for number, at in enumerate((0, 1, 40)):
        await store.apply([adding(ANN, f"message {number}", at=minutes(at))])
    columns = (await store.read(MatchText(ANN, "message"))).columns
    assert columns.seq.tolist() == [1, 2, 3]
    assert columns.session.tolist() == [0, 0, 1]
    assert columns.speakers == ("ann",)
    # What lies between two sessions makes one of them.
    await store.apply([adding(ANN, "message between", at=minutes(20))])
    columns = (await store.read(MatchText(ANN, "message"))).columns
    assert columns.session.tolist() == [0, 0, 0, 0]


async def test_messages_are_picked_inside_the_scope_alone(store: Store) -> None:
    mine = await add(store, ANN, "one", "two", "three")
    await add(store, BOB, "not mine")
    assert await store.read(MessagesByNumber(ANN, [1, 3, 4, 99])) == [mine[0], mine[2]]
    assert await store.read(MessagesByNumber(BOB, [1, 2])) == []


def test_a_large_matrix_finds_what_an_exact_comparison_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(1)
    centres = chance.standard_normal((50, 256))
    rows = centres[chance.integers(0, 50, 20_000)] + chance.standard_normal((20_000, 256))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    large = Matrix()
    large.extend([(number, row.tobytes()) for number, row in enumerate(rows[:15_000])])
    large.extend([(number, row.tobytes()) for number, row in enumerate(rows[15_000:], 15_000)])
    assert len(large) == 20_000
    found = 0
    for _ in range(20):
        query = (centres[chance.integers(0, 50)] + chance.standard_normal(256)).astype(np.float32)
        query /= np.linalg.norm(query)
        similar = large.similar(query, 10, also=[7])
        assert similar is not None
        exact = rows.astype(np.float32) @ query
        named = dict(zip(similar.seqs.tolist(), similar.scores.tolist(), strict=True))
        assert named[7] == pytest.approx(float(exact[7]), abs=1e-3)
        assert similar.mean == pytest.approx(float(exact.mean()), abs=0.02)
        found += len(set(similar.seqs[:10].tolist()) & {int(at) for at in np.argsort(-exact)[:10]})
    assert found >= 0.97 * 200
    monkeypatch.setattr(vector_matrix, "EXACT", 30_000)
    assert large.similar(query, 10, ()) is not None


@pytest.mark.parametrize("expected", [0, 6_000])
def test_a_matrix_that_holds_signs_alone_finds_the_same(expected: int) -> None:
    chance = np.random.default_rng(2)
    rows = chance.standard_normal((6_000, 128))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    whole, signs = Matrix(), Matrix(expected, held=4_500)
    # The last thousand of the first half come late, and some come twice.
    for first, last in ((0, 2_000), (3_000, 4_000), (2_000, 3_000), (3_990, 5_000), (5_000, 6_000)):
        page = [(number, rows[number].tobytes()) for number in range(first, last)]
        whole.extend(page)
        signs.extend(page)
    assert len(whole) == len(signs) == 6_000
    assert signs.size < whole.size / 6
    asked: list[int] = []

    def read(seqs: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        asked.append(len(seqs))
        found: np.ndarray[tuple[int, int], np.dtype[np.float32]] = rows[seqs].astype(np.float32)
        return found

    for only in (None, np.arange(500, 5_500), np.arange(100, 3_000)):
        for _ in range(3):
            vector = direction(*chance.standard_normal(128))
            expected_, found = (
                each.similar(vector, 10, [7, 501, 5_999], only, reader)
                for each, reader in ((whole, None), (signs, read))
            )
            assert expected_ is not None
            assert found is not None
            assert found.seqs.tolist() == expected_.seqs.tolist()
            assert found.scores == pytest.approx(expected_.scores, abs=1e-6)
            assert (found.mean, found.deviation) == pytest.approx((expected_.mean, expected_.deviation), abs=1e-6)
    assert max(asked) < 4_000


async def test_token_vectors_come_back_as_they_were_stored(store: Store) -> None:
    ann, bob = Scope.of("ann", thread="general"), Scope.of("bob", thread="general")
    (mine,) = await add(store, ann, "ann speaks")
    (theirs,) = await add(store, bob, "bob speaks")
    packed = {mine.seq: bytes(range(96)), theirs.seq: bytes([120, 0, 60, 119] * 12)}
    rows = tuple(VectorRow(each.seq, each.text, packed[each.seq], each.space) for each in (mine, theirs))
    await store.apply([AddVectors("tokens", rows, theirs.seq)])
    for within, expected in (("user", {mine.seq}), ("thread", {mine.seq, theirs.seq})):
        asked = TokenVectors(ann, "tokens", [mine.seq, theirs.seq], within=within)  # type: ignore[arg-type]
        assert await store.read(asked) == {seq: packed[seq] for seq in expected}
    assert await store.read(TokenVectors(ann, "others", [mine.seq])) == {}


async def test_a_shorter_form_of_stored_token_vectors_takes_their_place_and_a_longer_one_does_not(store: Store) -> None:
    (message,) = await add(store, ANN, "ann speaks")
    earlier, later = bytes(range(96)), TOKENS + bytes(range(48))
    asked = TokenVectors(ANN, "tokens", [message.seq])
    for value, expected in ((earlier, earlier), (later, later), (earlier, later)):
        row = VectorRow(message.seq, message.text, value, message.space)
        await store.apply([AddVectors("tokens", (row,), message.seq)])
        assert await store.read(asked) == {message.seq: expected}
    assert [each.known for each in await store.read(UnembeddedMessages("tokens", 1))] == []
    (equal,) = await add(store, ANN, "ann speaks")
    [due] = await store.read(UnembeddedMessages("tokens", 1))
    assert (due.seq, due.known) == (equal.seq, later)


def test_a_packed_vector_is_as_precise_as_a_byte_for_each_number_allows() -> None:
    rows = np.random.default_rng(3).standard_normal((20, 512)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[4] = 0
    values = packed(rows)
    assert {len(value) for value in values} == {512 + 4}
    largest = np.abs(rows).max(axis=1, keepdims=True)
    assert (np.abs(unpacked(values) - rows) <= largest * (0.5 / 127 + 2**-10)).all()
    assert [repacked(value) for value in values] == values


def test_half_precision_is_widened_to_the_very_same_numbers() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)]
    assert widened(finite).tobytes() == finite.astype(np.float32).tobytes()


async def test_vectors_in_both_forms_are_searched_together(store: Store) -> None:
    for number, message in enumerate(await add(store, ANN, *"abcd")):
        vector = direction(4 - number, number)
        value = vector.astype(np.float16).tobytes() if number % 2 else packed(vector[None])[0]
        row = VectorRow(message.seq, message.text, value, message.space)
        await store.apply([AddVectors("m", (row,), message.seq)])
    similar = await store.read(SearchVector(ANN, "m", direction(1, 0)))
    assert similar is not None
    assert similar.seqs.tolist() == [1, 2, 3, 4]
    exact = [float(direction(4 - number, number) @ direction(1, 0)) for number in range(4)]
    assert similar.scores == pytest.approx(exact, abs=0.005)


def test_a_shortlist_takes_the_signs_of_half_precision_numbers_for_those_of_the_numbers() -> None:
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = every[np.isfinite(every)].reshape(-1, 64)
    assert np.array_equal(signs_of(halves), signs_of(halves.astype(np.float32)))


@dataclass
class Counted:
    """An entry that counts how often anybody asks for the size of any entry."""

    asked: ClassVar[int] = 0
    bytes: int = 0

    @property
    def size(self) -> int:
        Counted.asked += 1
        return self.bytes


def test_the_least_recently_used_entries_go_first() -> None:
    cache: SizedCache[str, Counted] = SizedCache(100)
    for name in ("a", "b", "c"):
        cache.get(name, lambda: Counted(40))
        cache.resized(name)
    assert ["a" in cache, "b" in cache, "c" in cache, cache.size] == [False, True, True, 80]
    cache.get("b", Counted).bytes = 90
    cache.resized("b")
    assert ["b" in cache, "c" in cache, cache.size] == [True, False, 90]
    cache.drop("b")
    assert cache.size == 0


def test_the_last_entry_stays_however_large_it_is() -> None:
    cache: SizedCache[str, Counted] = SizedCache(100)
    cache.get("large", lambda: Counted(1_000))
    cache.resized("large")
    assert "large" in cache


@pytest.mark.parametrize("entries", [10, 2_000])
def test_a_call_asks_for_one_size_however_many_entries_there_are(entries: int) -> None:
    cache: SizedCache[int, Counted] = SizedCache(1 << 30)
    for number in range(entries):
        cache.get(number, lambda: Counted(1))
        cache.resized(number)
    before = Counted.asked
    cache.get(0, Counted)
    cache.resized(0)
    assert Counted.asked - before == 1
