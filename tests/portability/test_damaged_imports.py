"""Files that are damaged, hostile, or very large."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from aforesaid.errors import InvalidInput
from portability.imported import history, load, packed, said, written

TALK = [{"role": "user", "content": "tea?", "timestamp": "2026-03-01T10:00:00Z"}]


@pytest.mark.defect("N4")
async def test_a_truncated_archive_is_named_as_one(tmp_path: Path) -> None:
    whole = packed(tmp_path / "whole.zip", {"talk.json": TALK * 50}).read_bytes()
    cut = tmp_path / "cut.zip"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidInput, match="truncated archive"):
        await load(cut)


@pytest.mark.defect("N4")
async def test_many_small_files_can_be_a_bomb_together(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zip"
    block = b" " * (60 * 1024 * 1024)
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
        out.writestr("0.json", block)
    with zipfile.ZipFile(bomb, "a") as out:
        first = out.infolist()[0]
        for number in range(1, 30):
            # Further entries of the directory share the data of the first one.
            same = zipfile.ZipInfo(f"{number}.json")
            for name in ("compress_type", "CRC", "compress_size", "file_size", "header_offset", "date_time"):
                setattr(same, name, getattr(first, name))
            out.filelist.append(same)
            out.NameToInfo[same.filename] = same
        out._didModify = True  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput, match="archive bomb"):
        await load(bomb)


@pytest.mark.defect("N4")
async def test_names_in_an_archive_cannot_leave_it(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    source = packed(inside / "export.zip", {"../../stolen.json": TALK, "/etc/talk.json": TALK})
    before = sorted(tmp_path.rglob("*"))
    report, store = await load(source)
    assert (report.format, await said(store, "me")) == ("openai", ["tea?", "tea?"])
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.defect("N4")
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig"])
async def test_json_in_another_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "talk.json"
    path.write_bytes(json.dumps([{"role": "user", "content": "grüner Tee 🍵"}], ensure_ascii=False).encode(encoding))
    _, store = await load(path)
    assert await said(store, "me") == ["grüner Tee 🍵"]


async def test_bytes_that_are_no_text_cost_only_their_message(tmp_path: Path) -> None:
    path = tmp_path / "_chat.txt"
    path.write_bytes(b"14.03.26, 21:05 - Ann: gr\xfcner Tee\n14.03.26, 21:06 - Ann: tea\n")
    report, store = await load(path)
    assert (report.problems, report.examples[0].where, await said(store, "Ann")) == (1, "line 1", ["tea"])


@pytest.mark.defect("N4")
async def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is nothing to import"):
        await load(tmp_path)


@pytest.mark.defect("N4")
@pytest.mark.defect("I5")
@pytest.mark.parametrize("content", ["", "\ufeff", " \n"])
@pytest.mark.parametrize("format_", ["auto", "openai"])
async def test_an_empty_file_says_so(tmp_path: Path, content: str, format_: str) -> None:
    with pytest.raises(InvalidInput, match="is empty: there is nothing to import"):
        await load(written(tmp_path / "chat.json", content), format=format_)


async def test_messages_that_do_not_fit_in_memory_are_sorted_all_the_same() -> None:
    from aforesaid.portability.input_files import TimeSort  # noqa: PLC0415

    start = datetime(2026, 3, 1, tzinfo=UTC)
    order = TimeSort(run_messages=7)
    places = [(number * 37) % 100 for number in range(100)]
    for number in places:
        at = None if number == 50 else start + timedelta(seconds=number // 2)
        order.add(at, (number,), characters=2)
    found = [number for (number,) in order]
    order.close()
    expected = sorted(
        (number for number in places if number != 50), key=lambda number: (number // 2, places.index(number))
    )
    assert found == [*expected, 50]


async def test_messages_without_a_time_stay_beside_their_neighbours(tmp_path: Path) -> None:
    talk = [
        {"role": "user", "content": "first", "timestamp": "2026-03-01T10:00:00Z"},
        {"role": "assistant", "content": "second"},
        {"role": "user", "content": "third", "timestamp": "2026-03-01T10:05:00Z"},
    ]
    _, store = await load(written(tmp_path / "talk.json", talk))
    assert [message.text for message in await history(store, "me")] == ["first", "second", "third"]


MEASURED = """
import asyncio, resource, sys
from pathlib import Path
from aforesaid.portability.importing import ImportOptions, Loader
from aforesaid.store import open_store

async def main():
    store = await open_store(":memory:")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = await Loader(store, ImportOptions(dry_run=True)).load(Path(sys.argv[1]))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(report.found["message"], (after - before) // 1024)

asyncio.run(main())
"""


def test_a_list_of_200_mb_is_streamed(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    entry = json.dumps({"role": "user", "content": "tea " * 5_000, "timestamp": "2026-03-01T10:00:00Z"})
    count = 200 * 1024 * 1024 // len(entry)
    with path.open("w") as file:
        file.write("[")
        for number in range(count):
            file.write((", " if number else "") + entry)
        file.write("]")
    done = subprocess.run([sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, check=True)
    found, megabytes = map(int, done.stdout.split())
    assert found == count
    assert megabytes < 120


@pytest.mark.defect("N4")
async def test_a_message_that_is_too_long_is_stored_in_pieces(tmp_path: Path) -> None:
    whole = "".join(f"line {number} with grüner Tee\n" for number in range(5_000))
    files = [{"file_name": f"{number}.txt", "extracted_content": "ü" * 30_000} for number in range(4)]
    message = {
        "uuid": "m",
        "sender": "human",
        "text": whole,
        "attachments": files,
        "created_at": "2026-03-01T10:00:00Z",
    }
    report, store = await load(written(tmp_path / "conversations.json", [{"uuid": "t", "chat_messages": [message]}]))
    found = await history(store, "me", "claude:t")
    assert (report.problems, len(found)) == (0, 3)
    assert "".join(each.text for each in found) == whole.rstrip()
    assert all(each.text.startswith("line ") for each in found)
    assert [part.name for part in found[0].parts] == ["0.txt", "1.txt", "2.txt", "3.txt"]
    assert all(part.text is not None and part.text.endswith("ü […]") for part in found[0].parts)
