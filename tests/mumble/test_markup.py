"""From Mumble's HTML to text and back, and from an answer to what is read aloud."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.assistant import Phrases
from aforesaid.bots.mumble.platform import _fitting, marked_up, plain
from aforesaid.bots.mumble.speech import LONGEST_SPOKEN, speech_text

ENGLISH = Phrases.of("en")


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("plain", "plain"),
        ("a < b & c", "a < b & c"),
        ("one<br>two<br/>three", "one\ntwo\nthree"),
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("<ul><li>a</li><li>b</li></ul>", "a\n\nb"),
        ('<a href="https://example.org/">https://example.org</a>', "https://example.org"),
        ('<a href="https://example.org/x">here</a>', "here (https://example.org/x)"),
        ('<a href="https://example.org/x"></a>', "https://example.org/x"),
        ("<style>p { color: red }</style>seen", "seen"),
        ("&lt;b&gt; &amp;amp; &#128512;", "<b> &amp; \N{GRINNING FACE}"),
        ("</b></p></a></style>closing what was never opened", "closing what was never opened"),
        ("<!DOCTYPE html><html><head><title>t</title></head><body>Qt's way</body></html>", "Qt's way"),
        ("", ""),
    ],
)
def test_html_becomes_text(markup: str, text: str) -> None:
    assert plain(markup) == (text, 0)


def test_pictures_are_counted() -> None:
    assert plain('look: <img src="data:…"/><br/><img src="data:…"/>') == ("look:", 2)


@given(st.text())
def test_no_message_breaks_the_reader(markup: str) -> None:
    plain(markup)


@given(st.text(alphabet=st.characters(blacklist_categories=["Cc", "Cs", "Zs", "Zl", "Zp"])))
def test_a_line_that_is_written_is_read_as_it_was(text: str) -> None:
    if "```" not in text and "~~~" not in text:
        assert plain(marked_up(text))[0] == text


def test_lines_and_code_are_shown_as_such() -> None:
    written = marked_up("Look & see:\n```python\nif a < b:\n    pass\n```\nDone.")
    assert written == "Look &amp; see:<pre>if a &lt; b:\n    pass</pre>Done."


@pytest.mark.parametrize(
    ("text", "pieces", "whole"),
    [
        ("Hello Ann.", ("Hello Ann.",), True),
        ("***", (), True),
        ("**Hello** _Ann_\n- one\n- two", ("Hello Ann one two",), True),
        ("# Title\nIt is `x`.", ("Title It is x .",), True),
        ("See [the page](https://example.org/a).", ("See the page. The rest is written.",), False),
        ("See https://example.org/a for more.", ("See for more. The rest is written.",), False),
        ("Look:\n```\ncode\n```\nDone.", ("Look: Done. The rest is written.",), False),
        ("```\nnever closed", ("I have written the answer.",), False),
        ("https://example.org", ("I have written the answer.",), False),
    ],
)
def test_what_is_for_the_eyes_is_not_read_aloud(text: str, pieces: tuple[str, ...], whole: bool) -> None:  # noqa: FBT001
    assert speech_text(text, ENGLISH) == (pieces, whole)


def test_long_answers_are_read_aloud_in_part_and_piece_by_piece() -> None:
    sentence = "This is a sentence of some fifty characters in all. "
    pieces, whole = speech_text(sentence * 4, ENGLISH)
    assert whole
    assert len(pieces) == 2
    pieces, whole = speech_text(sentence * 100, ENGLISH)
    assert not whole
    assert pieces[-1].endswith("The rest is written.")
    assert sum(map(len, pieces)) < LONGEST_SPOKEN + 50


@pytest.mark.parametrize("endless", ["word " * 1000, "x" * 5000, "そうです" * 1000])
def test_a_sentence_without_an_end_is_cut(endless: str) -> None:
    pieces, whole = speech_text(endless, ENGLISH)
    assert not whole
    assert 100 < sum(map(len, pieces)) < LONGEST_SPOKEN + 50


@given(st.text())
def test_nothing_that_is_left_out_goes_unsaid(text: str) -> None:
    pieces, whole = speech_text(text, ENGLISH)
    assert pieces or whole
    if not whole:
        assert "written" in pieces[-1]


@pytest.mark.parametrize("text", ["<" * 5000, "a & b\n" * 900, "```\n" + "if a < b:\n" * 500 + "```", "short"])
def test_texts_that_html_makes_longer_still_fit(text: str) -> None:
    parts = _fitting(text, 5000)
    assert all(len(part) <= 5000 for part in parts)
    assert "".join(plain(part)[0] for part in parts).replace("\n", "").count("<") == text.count("<")
    assert _fitting(text, 0) == [marked_up(text)]
    # A server whose limit is smaller than anything is refused by the server itself, and not waited for.
    assert _fitting(text, 1)
