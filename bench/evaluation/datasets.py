"""Load labelled conversations. Formats are recognised by their content, never by the name of a file or folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from aforesaid.errors import InvalidInput, quoted
from evaluation import (
    beam,
    friendsqa,
    halumem,
    locomo,
    longmemeval,
    memdaily,
    memory_agent_bench,
    realtalk,
    transcript,
)
from evaluation.conversation import Conversation, Dataset, Tallies, counts
from evaluation.json_files import Node, read_first_value, read_json_lines, read_text


class Format(NamedTuple):
    """A published format of labelled conversations."""

    name: str
    fits: Callable[[Node], bool]
    load: Callable[[Node, Tallies], Iterable[Conversation]]
    whole: Callable[[Path], Path]
    """Returns the file or folder of the whole data set that a file belongs to."""


FORMATS: Final = (
    Format("LoCoMo", locomo.fits, locomo.load, lambda file: file),
    Format("LongMemEval", longmemeval.fits, longmemeval.load, lambda file: file),
    Format("FriendsQA", friendsqa.fits, friendsqa.load, lambda file: file),
    Format("MemDaily", memdaily.fits, memdaily.load, lambda file: file.parent),
    Format("BEAM", beam.fits, beam.load, lambda file: file.parent.parent),
    Format("REALTALK", realtalk.fits, realtalk.load, lambda file: file.parent),
    Format("HaluMem", halumem.fits, halumem.load, lambda file: file),
    Format("MemoryAgentBench", memory_agent_bench.fits, memory_agent_bench.load, lambda file: file),
    Format("transcripts", transcript.fits, transcript.load, lambda file: file.parent),
)


_TEXT: Final = ".txt"
_JSON: Final = (".json", ".jsonl")


class _Collected(NamedTuple):
    conversations: dict[str, Conversation]
    tallies: Tallies


def load_datasets(path: Path) -> list[Dataset]:
    """Load every data set in a file or folder, sorted by path. Raises if there is none."""
    collected: dict[tuple[Path, str], _Collected] = {}
    files = _files(path.absolute())
    for file in files:
        root, rest = _read(file)
        for known in FORMATS:
            if not known.fits(root):
                continue
            if rest is not None:
                raise rest
            whole = known.whole(file)
            home = whole if whole.is_relative_to(path.absolute()) else path.absolute()
            _collect(known, root, collected.setdefault((home, known.name), _Collected({}, Tallies())))
            break
    if not collected:
        what = "it is" if path.is_file() else f"of its {len(files):,} JSON files each is"
        names = ", ".join(known.name for known in FORMATS)
        raise InvalidInput(f"no labelled conversations in {path}: {what} none of {names}")
    return [
        Dataset(name, home, tuple(found.values()), counts(tallies.left_out), counts(tallies.mended))
        for (home, name), (found, tallies) in collected.items()
    ]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InvalidInput(f"{path} does not exist; pass a file or folder with labelled conversations")
    found = [file for suffix in _JSON for file in path.rglob(f"*{suffix}") if file.is_file()]
    found += [file for file in path.rglob(f"*{_TEXT}") if file.is_file() and transcript.begins(file)]
    return sorted(found, key=_as_people_sort)


def _read(file: Path) -> tuple[Node, InvalidInput | None]:
    """Read a transcript as text, every other file as JSON: one value, or one in each line."""
    if file.suffix == _TEXT:
        return Node(read_text(file), file), None
    if file.suffix == _JSON[1]:
        return read_json_lines(file), None
    return read_first_value(file)


def _as_people_sort(path: Path) -> list[tuple[int, str]]:
    """Return a sort key that puts 2 before 10."""
    return [(int(piece), "") if piece.isdecimal() else (0, piece) for piece in re.split(r"([0-9]+)", str(path))]


def _collect(known: Format, root: Node, into: _Collected) -> None:
    for conversation in known.load(root, into.tallies):
        if conversation.id in into.conversations:
            raise root.damaged(f"has a second conversation with the id {quoted(conversation.id)}")
        into.conversations[conversation.id] = conversation
