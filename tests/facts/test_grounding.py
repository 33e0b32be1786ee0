"""A memory that a model wrote is judged by meaning, and must be about the person whom it names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.facts.admission import FAR, NEAR, admit, meanings
from aforesaid.facts.candidate import Candidate
from aforesaid.facts.people import Person
from aforesaid.models.embed import LocalEmbedder
from aforesaid.store import open_store
from facts.held_out import LATER, PAIRS, Pair
from facts.talking import connect, extraction, model, say
from making import adding


class SharedEmbedder(LocalEmbedder):
    """An embedder that stays open for all tests: loading it takes a while."""

    async def close(self) -> None:
        pass


ONE = SharedEmbedder()


@pytest.mark.defect("F1")
@pytest.mark.parametrize(
    ("said", "memory"),
    [
        ("My dad passed away two days ago.", "Ann's father died on 2026-03-03."),
        ("We are expecting a baby in June!", "Ann is pregnant."),
        ("I don't eat meat or fish, never did.", "Ann is vegetarian."),
        ("They fired me yesterday.", "Ann lost her job."),
        ("He proposed and I said yes! The wedding is in May.", "Ann is getting married."),
        ("Wir bekommen im Juni ein Baby!", "Ann ist schwanger."),
        ("Fleisch und Fisch kommen mir nicht auf den Teller.", "Ann ernährt sich vegetarisch."),
        ("Fleisch und Fisch kommen mir nicht auf den Teller.", "Ann is vegetarian."),
        ("On attend un bébé pour juin !", "Ann est enceinte."),
        ("Mon papa nous a quittés hier.", "Le père d'Ann est décédé."),
        ("¡Esperamos un bebé para junio!", "Ann está embarazada."),
        ("No como carne ni pescado.", "Ann es vegetariana."),
        ("六月に赤ちゃんが生まれます！", "Annは妊娠している。"),
    ],
)
async def test_a_memory_that_means_what_was_said_is_kept_although_it_shares_no_word(said: str, memory: str) -> None:
    assert await outcome(said, memory) == "active"


@pytest.mark.defect("F1")
@pytest.mark.parametrize(
    ("said", "memory"),
    [
        ("I had a long day at work.", "Ann owns a yacht in Monaco."),
        ("We are expecting a baby in June!", "Ann plays the violin."),
        ("My dad passed away two days ago.", "Ann lives in Paris."),
        ("They fired me yesterday.", "Ann is a lawyer."),
        ("Wir bekommen im Juni ein Baby!", "Ann besitzt ein Boot."),
        ("On attend un bébé pour juin !", "Ann joue du piano."),
        ("No como carne ni pescado.", "Ann vive en Madrid."),
        ("六月に赤ちゃんが生まれます！", "Annは東京に住んでいる。"),
    ],
)
async def test_an_invention_is_not_believed(said: str, memory: str) -> None:
    assert await outcome(said, memory) in {"dropped", "quarantined"}


@pytest.mark.defect("F1")
async def test_what_is_doubtful_waits_for_approval_instead_of_vanishing() -> None:
    assert await outcome("They fired me yesterday.", "Ann is a lawyer.") == "quarantined"
    # Without an embedder nothing can be compared by meaning.
    assert await outcome("We are expecting a baby in June!", "Ann is pregnant.", local=False) == "quarantined"


GARDEN = "Ann grows old roses, tulips, herbs, berries and apples in a garden."
YARD = "Ann grows old roses, tulips, herbs, berries and apples in a yard."


@pytest.mark.parametrize(
    ("near", "believed"),
    [(None, {GARDEN}), (FAR, set()), (2.0, {GARDEN}), (NEAR, {GARDEN, YARD})],
    ids=["not compared", "nearer to something else", "doubtful", "near"],
)
async def test_one_word_that_was_said_decides_where_the_meaning_is_doubtful(
    near: float | None, believed: set[str]
) -> None:
    ann = Person("ann", "Ann")
    said = await _stored(Scope.of("ann"), "The garden keeps me busy.", "Ann")
    found = set()
    for written in (GARDEN, YARD):
        candidate = Candidate("fact", written, 5, (said,), ann, None, None, None, "extract/3 test", "")
        admission = admit(candidate, [said], ann, {"ann": ann}, (), {} if near is None else {written: near})
        assert admission.dropped is None
        if admission.quarantine is None:
            found.add(written)
    assert found == believed


@pytest.mark.defect("F1")
@pytest.mark.parametrize(
    ("said", "memory"),
    [
        ("My sister moved to Rome last week.", "Ann moved to Rome."),
        ("My boss is allergic to nuts.", "Ann is allergic to nuts."),
        ("Meine Schwester ist nach Rom gezogen.", "Ann ist nach Rom gezogen."),
        ("Mi hermano vive en Madrid.", "Ann vive en Madrid."),
    ],
)
async def test_what_was_said_of_a_relative_is_not_believed_of_the_speaker(said: str, memory: str) -> None:
    assert await outcome(said, memory) == "quarantined"


@pytest.mark.defect("F1")
@pytest.mark.parametrize(
    ("said", "memory"),
    [
        ("My sister moved to Rome last week.", "Ann's sister moved to Rome."),
        ("My sister gave me a cat called Momo.", "Ann has a cat called Momo."),
        ("My birthday is on the 3rd of May.", "Ann has her birthday on the 3rd of May."),
    ],
)
async def test_what_was_said_of_both_or_filed_rightly_is_believed(said: str, memory: str) -> None:
    assert await outcome(said, memory) == "active"


@pytest.mark.defect("F1")
async def test_what_somebody_else_said_of_themselves_is_not_believed_of_the_owner() -> None:
    scripted = model({"extract": lambda _: extraction({"text": "Ann moved to Rome.", "from": [1]})})
    async with scripted, connect(scripted=scripted) as memory:
        ann = memory.user("ann", thread="general")
        await ann.add("user", "I moved to Rome.", author="bob", name="Bob")
        await ann.add("assistant", "Nice, Bob!")
        await memory.upkeep()
        assert [each.text for each in await ann.memories()] == []


async def outcome(said: str, written: str, *, local: bool = True, name: str = "Ann") -> str:
    """Return what becomes of a memory that a model wrote from what Ann said."""
    scripted = model({"extract": lambda _: extraction({"text": written, "from": [1]})})
    async with scripted, connect(scripted=scripted, embedder=ONE if local else "none") as memory:
        user = memory.user("ann")
        await say(user, said, reply="I see.", name=name)
        await memory.upkeep()
        found = [each for each in await user.memories(active=None) if each.matter is None]
        return found[0].state if found else "dropped"


async def judged(pair: Pair) -> str:
    """Return what becomes of a memory, as `outcome` does, without a model and a store: 60 of them take a while."""
    ann = Person("ann", "Аня" if pair.language == "russian" else "Ann")
    scope = Scope.of("ann")
    said = await _stored(scope, pair.said, ann.name)
    candidate = Candidate("fact", pair.written, 5, (said,), ann, None, None, None, "extract/3 test", "")
    near = await meanings([candidate], {"ann": ann}, ONE)
    admission = admit(candidate, [said], ann, {"ann": ann}, (), near)
    return "dropped" if admission.dropped else "quarantined" if admission.quarantine else "active"


async def _stored(scope: Scope, text: str, name: str) -> Message:
    store = await open_store(":memory:")
    stored = (await store.apply([adding(scope, text, name=name)])).message
    await store.close()
    return stored


@pytest.mark.parametrize(
    ("pairs", "supported", "expected"),
    [
        (PAIRS, True, {"active": 13, "quarantined": 7}),
        (PAIRS, False, {"quarantined": 6, "dropped": 14}),
        (LATER, True, {"active": 4, "quarantined": 6}),
        (LATER, False, {"quarantined": 3, "dropped": 7}),
    ],
    ids=["supported", "unsupported", "later supported", "later unsupported"],
)
async def test_the_guard_on_pairs_that_it_was_not_tuned_on(
    pairs: Sequence[Pair], *, supported: bool, expected: dict[str, int]
) -> None:
    """The figures are in docs/explanation/facts-and-memories.md. Another encoder gives others."""
    found = Counter([await judged(pair) for pair in pairs if pair.supported == supported])
    assert found == expected
