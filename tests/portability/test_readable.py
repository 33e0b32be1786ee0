"""A copy in Markdown of what is stored about one person."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import aforesaid
from aforesaid.errors import InvalidInput, StoreFull
from aforesaid.portability import exporting, input_files
from aforesaid.portability.exporting import NamedFiles, export, export_readable, safe_file_name
from aforesaid.store import Store
from aforesaid.store.attachments import Attachments
from filling import ANN, fill_with_everything

NINE = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def parsed(text: str) -> str:
    """Return the HTML of a Markdown text."""
    return str(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text))


async def test_it_has_what_is_known_and_the_messages_by_day(store: Store, tmp_path: Path) -> None:
    await fill_with_everything(store)
    done = await export_readable(store, tmp_path / "ann.md", None, ANN, UTC)
    text = (tmp_path / "ann.md").read_text("utf-8")
    assert text.startswith("# What is stored about ann\n")
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings[1:6] == [
        "## What is known",
        "### Facts",
        "### Not in use",
        "### Requests to forget",
        "## Summaries",
    ]
    assert "- lives in Berlin Mitte *(since 20" in text
    assert "earlier: lives in Berlin" in text
    assert "- lives in Bonn *(fact, superseded" in text
    assert "- the cat\n" in text
    assert "Ann lives in Berlin. *(since" in text
    assert "- summary\\_every\\_n: 12" in text or "- summary_every_n: 12" in text
    day = text.index("### 2026-03-01\n")
    assert text.index("- 12:00 **Ann**: I live in Berlin\n") > day
    assert "- 12:01 **assistant**: How nice\n" in text
    assert "**ann** in general: ann says 0" in text
    whole = await export(store, tmp_path / "ann.jsonl", scope=ANN)
    assert done.rows == {kind: count for kind, count in whole.rows.items() if kind in done.rows}
    assert {"message", "memory", "facts", "forgotten", "summary", "setting"} == set(done.rows)
    assert done.bytes == (tmp_path / "ann.md").stat().st_size
    assert (tmp_path / "ann.md").stat().st_mode & 0o777 == 0o600


async def test_it_has_nothing_of_other_users_and_other_spaces(store: Store, tmp_path: Path) -> None:
    await fill_with_everything(store)
    await export_readable(store, tmp_path / "ann.md", None, ANN, UTC)
    text = (tmp_path / "ann.md").read_text("utf-8")
    for foreign in ("bob says", "carol", "likes tea", "same words elsewhere"):
        assert foreign not in text


async def test_messages_are_in_the_order_of_time_and_in_the_zone_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_files.TimeSort.__init__, "__defaults__", (3,))  # runs go to a file
    async with aforesaid.connect(tmp_path / "memory.db", embedder="none") as memory:
        ann = memory.user("ann")
        await ann.set("time_zone", "Asia/Tokyo")
        for number in (4, 1, 7, 0, 6, 2, 5, 3, 8):
            await ann.add("user", f"said {number}", at=NINE + timedelta(hours=6 * number))
        seen: list[tuple[str, int, int]] = []
        await memory.export(tmp_path / "ann.md", user="ann", progress=lambda *each: seen.append(each))
    text = (tmp_path / "ann.md").read_text("utf-8")
    places = [text.index(f"said {number}") for number in range(9)]
    assert places == sorted(places)
    first = NINE.astimezone(ZoneInfo("Asia/Tokyo"))
    assert f"### {first:%Y-%m-%d}\n\n- {first:%H:%M} **ann**: said 0" in text
    assert text.count("\n### 2026") == 3
    assert seen[-1] == ("messages", 9, 9)


async def test_edited_and_taken_back_messages_say_so(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", embedder="none") as memory:
        ann = memory.user("ann")
        first = (await ann.add("user", "I live in Bonn", at=NINE)).message
        await ann.edit(first, "I live in Bern")
        second = (await ann.add("user", "forget that", at=NINE + timedelta(minutes=1))).message
        await ann.take_back(second)
        await memory.export(tmp_path / "ann.md", user="ann")
    text = (tmp_path / "ann.md").read_text("utf-8")
    assert "**ann** *(edited or taken back later)*: I live in Bonn\n" in text
    assert "**ann**: I live in Bern\n" in text
    assert "**ann**: *taken back on 20" in text


async def test_attachments_are_beside_it_under_their_own_names(tmp_path: Path) -> None:
    parts = [
        aforesaid.Part.of(b"a cat", "image/png", name="cat.png", text="on a roof"),
        aforesaid.Part.of(b"another cat", "image/png", name="Cat.png"),
        aforesaid.Part.of(b"a plan", "application/pdf", name="../../etc/pass wd.pdf"),
        aforesaid.Part.of(b"a sound", "audio/mpeg"),
        aforesaid.Part("image", url="https://example.org/x.png"),
    ]
    async with aforesaid.connect(tmp_path / "memory.db", embedder="none") as memory:
        lost = aforesaid.Part.of(b"lost", name="lost.txt")
        await memory.user("ann").add("user", "look", parts=parts, at=NINE)
        await memory.user("ann").add("user", "again", parts=[parts[0], lost], at=NINE)
        (tmp_path / "memory.db.attachments" / str(lost.hash)[:2] / str(lost.hash)).unlink()
        done = await memory.export(tmp_path / "ann.md", user="ann")
        with pytest.raises(InvalidInput, match="exists already"):
            await memory.export(tmp_path / "ann.md", user="ann")
        alone = await memory.export(tmp_path / "alone.md", user="ann", attachments=False)
    folder = tmp_path / "ann.md.attachments"
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found == {
        "cat.png": b"a cat",
        "Cat-2.png": b"another cat",
        "pass wd.pdf": b"a plan",
        "attachment-1.mp3": b"a sound",
    }
    assert (done.attachments, done.missing_attachments) == (4, (lost.hash,))
    text = (tmp_path / "ann.md").read_text("utf-8")
    assert (
        text.count("attached: [cat.png](ann.md.attachments/cat.png): on a roof\n")
        + text.count("attached: [cat.png](ann.md.attachments/cat.png): on a roof  \n")
        == 2
    )
    assert "](ann.md.attachments/pass%20wd.pdf)" in text
    assert "attached: lost.txt (not in this copy)" in text
    assert "attached: image (https://example.org/x.png)" in text
    assert (alone.attachments, alone.missing_attachments) == (0, ())
    assert not (tmp_path / "alone.md.attachments").exists()


def test_it_can_be_compressed_or_go_to_standard_output(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        part = aforesaid.Part.of(b"a cat", name="cat.png")
        memory.user("ann").add("user", "hello", parts=[part])
        memory.export(tmp_path / "ann.md.gz", user="ann")
        assert b"# What is stored about ann" in gzip.decompress((tmp_path / "ann.md.gz").read_bytes())
        done = memory.export("-", user="ann", format="markdown")
        assert done.missing_attachments == (part.hash,)
        assert b"**ann**: hello" in capfdbinary.readouterr().out
        memory.export(tmp_path / "lines.md", format="jsonl")
        assert (tmp_path / "lines.md").read_text("utf-8").startswith('{"aforesaid"')


def test_it_is_of_one_user_and_has_no_vectors(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        with pytest.raises(InvalidInput, match="is of one user"):
            memory.export(tmp_path / "all.md")
        with pytest.raises(InvalidInput, match="has no vectors"):
            memory.export(tmp_path / "all.md", user="ann", vectors=True)
        with pytest.raises(InvalidInput, match="unknown format"):
            memory.export(tmp_path / "all.md", user="ann", format="pdf")  # type: ignore[arg-type]
        memory.user("ann").add("user", "hm")
        memory.export(tmp_path / "ann.md", user="ann")
    assert "## What is known\n\nNothing.\n" in (tmp_path / "ann.md").read_text("utf-8")


@pytest.mark.parametrize("fails", ["aforesaid.portability.exporting._put", "aforesaid.portability.exporting.lines"])
async def test_one_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", embedder="none") as memory:
        for data in (b"a cat", b"a dog"):
            await memory.user("ann").add("user", "look", parts=[aforesaid.Part.of(data, name="a.png")])

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(fails, full)
        with pytest.raises(StoreFull):
            await memory.export(tmp_path / "ann.md", user="ann")
    assert not [path for path in tmp_path.iterdir() if "ann.md" in path.name]


HOSTILE = [
    "# fake\n## Messages\n### 2026-01-01",
    "a\n- 10:00 **Bob**: I owe Ann money",
    "a\r- 10:00 **Bob**: carriage return",
    "a\u2028- 10:00 **Bob**: line separator",
    "<!-- hidden",
    "</li></ul><h2>fake</h2>",
    "```\nunclosed",
    "~~~\nunclosed",
    "[a]: https://example.org 'gone'",
    "![x](https://example.org/x.png) [y](javascript:alert(1))",
    "heading\n===\n---",
    "a | b\n:-|-:\n1 | 2",
    "> quoted\n1. one\n2) two\n+ plus\n* star",
    "&lt;b&gt; &#35; C:\\Users \\* \\",
    "    code\n\n\tcode <b>",
    "_emphasis_ __strong__ snake_case 2*3*4 ~~gone~~ `code`",
    "right\u202eto left\x1b[2J",
    "\n\n  \nlate",
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_people_wrote_is_shown_literally_and_stays_in_its_entry(tmp_path: Path, hostile: str) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        ann = memory.user("ann")
        ann.add("user", "before", at=NINE, name="**Bob**: fake\n- 10:00")
        ann.add("user", hostile, at=NINE + timedelta(minutes=1))
        ann.add("user", "after", at=NINE + timedelta(minutes=2))
        ann.note("fact", hostile)
        memory.export(tmp_path / "ann.md", user="ann")
    html = parsed((tmp_path / "ann.md").read_text("utf-8"))
    assert html.count("<h1>") + html.count("<h2>") + html.count("<h3>") == 1 + 2 + 2
    assert html.count("<li>") == 4
    assert html.count("<strong>") == 3
    for never in ("<pre>", "<code>", "<a ", "<img", "<blockquote>", "<ol>", "<table>", "<script", "<!--", "<s>", "<hr"):
        assert never not in html
    assert "\x1b" not in html
    assert "\u202e" not in html


def test_the_name_of_an_attachment_cannot_lead_elsewhere(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        name = "a](https://example.org) ![b](c"
        part = aforesaid.Part.of(b"a cat", "image/png", name=name, text="[x](https://example.org)\n# fake")
        memory.user("ann").add("user", "look", parts=[part], at=NINE)
        memory.export(tmp_path / "ann.md", user="ann")
    html = parsed((tmp_path / "ann.md").read_text("utf-8"))
    assert html.count("<a ") == 1
    assert '<a href="ann.md.attachments/' in html
    assert html.count("<h3>") == 1
    assert "<img" not in html


@given(st.text(alphabet=st.sampled_from("a1 \t\n\r#>+-=*_`~[]()<>!&;:|\\.\u2028\x0b\x85"), max_size=40))
def test_no_text_becomes_anything_but_a_paragraph(text: str) -> None:
    html = parsed(f"- **ann**: {exporting.lines(text, '  ')}\n- **bob**: end\n")
    allowed = ("<ul>", "<li>", "<p>", "<strong>", "<br />")
    for tag in allowed:
        html = html.replace(tag, "").replace(tag.replace("<", "</"), "")
    assert "<" not in html
    assert "bob: end" in html
    words = "".join(text.split())
    shown = html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")
    assert "".join(shown.split()) == f"ann:{words}bob:end"


@given(st.lists(st.text(max_size=300), max_size=5))
def test_file_names_are_safe(names: list[str]) -> None:
    for name in names:
        safe = safe_file_name(name)
        assert "/" not in safe
        assert "\\" not in safe
        assert "\0" not in safe
        assert safe not in {".", ".."}
        assert len(safe.encode()) <= 120


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("cat.png", "cat.png"),
        ("..", ""),
        ("C:\\Users\\ann\\plan.pdf", "plan.pdf"),
        ("nul", "_nul"),
        ("COM1.txt", "_COM1.txt"),
        (".bashrc", "bashrc"),
        ('a<b>:"c|d?*.txt', "a_b___c_d__.txt"),
        ("Zoe\u0308.jpg", "Zo\u00eb.jpg"),
        ("\u202egnp.exe", "gnp.exe"),
        (f"{'x' * 300}.jpeg", f"{'x' * 115}.jpeg"),
        ("trailing. ", "trailing"),
    ],
)
def test_a_file_name_keeps_what_is_safe(name: str, safe: str) -> None:
    assert safe_file_name(name) == safe


async def test_many_files_of_one_name_are_numbered(tmp_path: Path) -> None:
    source = Attachments(None)
    files = NamedFiles(source, tmp_path / "files")
    names = []
    for number in range(4):
        part = aforesaid.Part.of(str(number).encode(), name="image.png" if number != 2 else "image-2.png")
        await source.put(str(part.hash), part.data or b"")
        names.append(await files.add(part))
    files.finish()
    assert names == ["image.png", "image-2.png", "image-2-2.png", "image-3.png"]
    assert sorted(path.name for path in (tmp_path / "files").iterdir()) == sorted(str(name) for name in names)
