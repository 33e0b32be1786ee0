"""Keyword search on every store."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.domain.checks import Within
from aforesaid.domain.hit import VectorRow
from aforesaid.domain.scope import Scope
from aforesaid.store import Store, open_store
from aforesaid.store.columns import Roll
from aforesaid.store.searches import AddVectors, SearchText, SearchVector
from aforesaid.store.sqlite import MemoryStore
from aforesaid.text.languages import query_words, terms
from making import add, adding, archive, minutes
from pg import clean_database

ANN = Scope.of("ann")


async def found(store: Store, query: str, limit: int = 10) -> list[str]:
    return [hit.text for hit in await store.read(SearchText(ANN, query, limit=limit))]


async def test_a_message_is_found_by_its_words_the_moment_it_is_stored(store: Store) -> None:
    for number in range(20):
        await add(store, ANN, f"note number{number} about the garden")
        assert await found(store, f"number{number}") == [f"note number{number} about the garden"]


async def test_both_sides_of_the_conversation_are_found(store: Store) -> None:
    await add(store, ANN, "which wine goes with fish?")
    await add(store, ANN, "A dry riesling goes with fish.", role="assistant")
    assert set(await found(store, "fish")) == {"which wine goes with fish?", "A dry riesling goes with fish."}
    assert await found(store, "riesling") == ["A dry riesling goes with fish."]


async def test_rare_words_count_more_than_common_ones_and_more_matches_more_than_few(store: Store) -> None:
    await add(store, ANN, *[f"we talked about the house, part {number}" for number in range(10)])
    await add(store, ANN, "we painted the house turquoise", "turquoise is a colour")
    assert (await found(store, "the turquoise house"))[:2] == [
        "we painted the house turquoise",
        "turquoise is a colour",
    ]


async def test_among_equals_the_newer_comes_first(store: Store) -> None:
    first, second = await add(store, ANN, "milk and bread", "milk and bread")
    assert [hit.message for hit in await store.read(SearchText(ANN, "bread"))] == [second, first]


async def test_a_hit_says_what_it_is_and_why_it_was_found(store: Store) -> None:
    (message,) = await add(store, ANN, "Berlin in Spring")
    (hit,) = await store.read(SearchText(ANN, "spring in PARIS?"))
    assert (hit.kind, hit.id, hit.text, hit.at, hit.sources) == (
        "message",
        message.id,
        message.text,
        message.at,
        (message.id,),
    )
    assert hit.terms == ("spring",)
    assert hit.message == message
    assert hit.score > 0


async def test_the_limit_is_kept_and_the_best_are_within_it(store: Store) -> None:
    await add(store, ANN, *["apple " + "filler " * (number % 7) for number in range(300)])
    hits = await store.read(SearchText(ANN, "apple", limit=5))
    assert [hit.text for hit in hits] == ["apple "] * 5
    everything = await store.read(SearchText(ANN, "apple", limit=1000))
    assert len(everything) == 300
    assert [hit.message for hit in everything[:5]] == [hit.message for hit in hits]
    assert [hit.score for hit in everything] == sorted((hit.score for hit in everything), reverse=True)


async def test_archived_messages_are_found_like_all_others(store: Store) -> None:
    messages = await add(store, ANN, "the vault code is in the drawer", "something else")
    await archive(store, ANN, messages)
    assert await found(store, "vault") == ["the vault code is in the drawer"]


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Ich wohne in der Straße am Fluss", "strasse"),
        ("Nos vemos en el CAFÉ mañana", "cafe manana"),
        ("Мы переехали в Москву вчера", "москву"),
        ("我昨天搬到了柏林", "柏林"),
        ("昨日、東京に引っ越しました", "東京"),
        ("انتقلت إلى برلين الأسبوع الماضي", "برلين"),
        ("어제 서울로 이사했어요", "서울로"),
        ("ฉันย้ายไปกรุงเทพ", "กรุงเทพ"),
        ("the file is called report_2026-v2.pdf", "report_2026"),
        ("I 💜 turtles", "turtles 💜"),
    ],
)
async def test_any_script_is_found_in_the_form_it_was_written(store: Store, said: str, asked: str) -> None:
    await add(store, ANN, "something entirely different", said, "yet another line")
    assert (await found(store, asked))[0] == said


@pytest.mark.parametrize(
    "query",
    [
        "",
        " ",
        "\n\t",
        '"',
        '""',
        "'",
        "*",
        "a*",
        "-",
        "NOT",
        "AND OR NOT",
        "NEAR(a b, 2)",
        "^x",
        "(",
        "a AND (b",
        "terms:x",
    ]
    + [
        "{a b}:c",
        "u1.secret",
        "t1.secret",
        "; DROP TABLE log; --",
        "%",
        "_",
        "🙂",
        "\u202e",
        "a" * 5000,
        "? " * 2000,
        "\x01\x02",
    ],
)
async def test_a_query_may_hold_anything(store: Store, query: str) -> None:
    await add(store, ANN, "a plain message about nothing")
    await add(store, Scope.of("bob", thread="general"), "a secret of somebody else")
    hits = await store.read(SearchText(ANN, query))
    assert all(hit.message is not None and hit.message.user == "ann" for hit in hits)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("We adopted two puppies last winter", "puppy adoption"),
        ("Ich wohne jetzt in einem der alten Häuser", "Haus wohnen"),
        ("Mi hermana deja las maletas en la estación", "maleta"),
        ("Мы купили новую собаку и гуляли с ней", "собаки"),
        ("我昨天在北京的大学上课", "北京大学在哪里"),
        ("昨日、友達と映画館に行きました", "映画"),
        ("قرأت الكتاب الجديد في المكتبة", "كتاب"),
        ("Nous avons visité les musées de la ville", "musée"),
        ("어제 도서관에서 책을 읽었어요", "도서관"),
        ("मैंने कल नई किताबें खरीदीं", "किताब"),
    ],
)
async def test_another_form_of_a_word_finds_the_message(store: Store, said: str, asked: str) -> None:
    await add(store, ANN, "something entirely different", said, "yet another line")
    assert (await found(store, asked))[0] == said


async def test_stop_words_are_dropped_from_a_query_unless_nothing_else_is_left(store: Store) -> None:
    await add(store, ANN, "what did you do there", "the lighthouse keeper waved")
    assert (await found(store, "what did the keeper do"))[0] == "the lighthouse keeper waved"
    assert await found(store, "what did you do") == ["what did you do there"]


@given(texts=st.lists(st.text(max_size=40), max_size=12), query=st.text(max_size=20), seed=st.integers(0, 9))
async def test_every_message_that_shares_a_term_is_found_and_no_other(texts: list[str], query: str, seed: int) -> None:
    store = MemoryStore()
    usable = [text for text in texts if text and "\0" not in text and text.isprintable()]
    await add(store, ANN, *usable)
    random.Random(seed).shuffle(usable)
    hits = await store.read(SearchText(ANN, query, limit=100))
    asked = {term for word in query_words(query) for term in word.terms}
    expected = [text for text in usable if set(terms(text)) & asked]
    assert sorted(hit.text for hit in hits) == sorted(expected)


async def test_search_survives_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("restart") / "memory.db"
    store = await open_store(path)
    await add(store, ANN, "an unforgettable hippopotamus")
    await store.close()
    store = await open_store(path)
    assert await found(store, "hippopotamus") == ["an unforgettable hippopotamus"]
    await store.close()


async def test_the_rare_words_of_a_very_long_query_count(store: Store) -> None:
    await add(store, ANN, *[" ".join(f"common{number}" for number in range(60)) for _ in range(5)], "xylophone lesson")
    query = " ".join([*(f"common{number}" for number in range(60)), *(f"unheard{number}" for number in range(300))])
    hits = await store.read(SearchText(ANN, f"{query} xylophone", limit=10))
    assert "xylophone lesson" in [hit.text for hit in hits]
    assert all(len(hit.terms) <= 48 for hit in hits)


@pytest.mark.defect("U2")
@pytest.mark.parametrize("location", ["sqlite", "postgres"], indirect=True)
async def test_a_search_does_not_count_what_is_cached_of_others(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    size = Roll.size.fget  # type: ignore[attr-defined]
    people = [Scope.of(f"user{number}") for number in range(12)]
    await store.apply([adding(person, "tea") for person in people])
    for person in people:
        await store.read(SearchText(person, "tea"))

    def counting(roll: Roll) -> int:
        counted.append(1)
        return int(size(roll))

    monkeypatch.setattr(Roll, "size", property(counting))
    await store.read(SearchText(people[0], "tea"))
    assert len(counted) <= 1


WORDS = [
    *("tea", "teas", "coffee", "running", "runs", "ran", "Berlin", "berlin", "Café", "cafe", "柏林", "東京", "москва"),
    *("the", "and", "house", "houses", "2026", "telephone", "mother's", "naïve", "walking"),
]
SCOPES = [Scope.of(user, thread=thread) for user in ("ann", "bob") for thread in (None, "general")]


async def talk(store: Store, source: random.Random) -> None:
    for number in range(150):
        scope = source.choice(SCOPES)
        text = " ".join(source.choices(WORDS, k=source.randint(1, 12)))
        role = source.choice(["user", "assistant"])
        message = (await store.apply([adding(scope, text, role, at=minutes(source.randint(0, 4000) + number))])).message
        vector = np.array([source.gauss(0, 1) for _ in range(16)])
        value = (vector / np.linalg.norm(vector)).astype(np.float16).tobytes()
        await store.apply([AddVectors("m", (VectorRow(message.seq, text, value, message.space),), message.seq)])


async def answers(store: Store, source: random.Random) -> tuple[list[Any], list[float]]:
    found: list[Any] = []
    numbers: list[float] = []
    for _ in range(120):
        scope, within = source.choice(SCOPES), source.choice(["user", "thread"])
        place: Within = "user" if within == "user" else "thread"
        words = " ".join(source.choices(WORDS, k=source.randint(1, 6)))
        hits = await store.read(SearchText(scope, words, within=place, limit=source.randint(1, 20)))
        found.append([(hit.message.seq if hit.message else 0, hit.terms) for hit in hits])
        numbers += [hit.score for hit in hits]
        vector = np.array([source.gauss(0, 1) for _ in range(16)], dtype=np.float32)
        vector /= np.linalg.norm(vector)
        similar = await store.read(SearchVector(scope, "m", vector, within=place, limit=5))
        assert similar is not None
        found.append(similar.seqs.tolist())
        numbers += [*similar.scores.tolist(), similar.mean, similar.deviation]
    return found, numbers


@pytest.mark.req("D7")
async def test_random_searches_have_the_same_answers(tmp_path: Path) -> None:
    stores = [await open_store(tmp_path / "memory.db"), await open_store(clean_database())]
    told = []
    for store in stores:
        await talk(store, random.Random(7))
        told.append(await answers(store, random.Random(8)))
        await store.close()
    (found, numbers), (others, other_numbers) = told
    assert found == others
    assert numbers == pytest.approx(other_numbers, abs=1e-5)
