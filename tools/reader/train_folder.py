# mypy: ignore-errors
"""Make the working folder of train_reader.py, and the lines that are left out of it, to compare weights.

    PYTHONPATH=src python tools/reader/train_folder.py SLOTS FOLDER

A fifth of the newest lines (of `marked`, the files ending in i, j and k, and of `fresh`) is left out, by a hash of
their words. Of chats, messages of every second one that was judged are taken with what is right in them, and messages of all
that say no fact, and in which the reader marks nothing. The test part of the conversations is left out.
"""

import json
import random
import re
import shutil
import sys
import unicodedata
from hashlib import sha256
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent.parent / "bench")]
from evaluation.memories.transcripts import load_fact_transcripts
from train_judge import Watched
from train_reader import parse

HERE = Path(__file__).parent
CHATS = HERE.parent.parent / "bench/conversations"
NEWEST = re.compile(r"^[a-z]{2}[ijk]\.txt$")
EMPTY = 5_000
"""Messages of chats that tell nothing."""


def is_left_out(text):
    return sha256(text.encode()).digest()[0] < 52


def main():
    slots, folder = Path(sys.argv[1]), Path(sys.argv[2])
    for name in ("marked", "left"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for path in sorted(slots.glob("*.txt")):
        (folder / "slots").mkdir(exist_ok=True)
        shutil.copyfile(path, folder / "slots" / path.name)
    for name in ("lines", "answers"):
        shutil.copytree(HERE / name, folder / name, dirs_exist_ok=True)
    for path in sorted([*(HERE / "marked").glob("*.txt"), *(HERE / "fresh").glob("*.txt")]):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        is_new = NEWEST.match(path.name) or path.parent.name == "fresh"
        name = path.name if path.parent.name == "marked" else f"{path.stem}-fresh.txt"
        for part, is_wanted in (("marked", False), ("left", True)):
            its = [line for line in lines if (is_new and is_left_out(parse(line.partition(" | ")[2])[0])) == is_wanted]
            (folder / part / name).write_text("".join(its), encoding="utf-8")
    test = set((CHATS / "test-part.txt").read_text().split())
    (folder / "convs").mkdir(exist_ok=True)
    for path in CHATS.glob("*.txt"):
        if path.stem not in test:
            shutil.copyfile(path, folder / "convs" / path.name)
    judged = [json.loads(line) for line in open(HERE / "chats.jsonl", encoding="utf-8")]
    half = sorted({row["id"] for row in judged} - test)[::2]
    rows = []
    for row in judged:
        if row["id"] in half and "text" in row:
            spans = [span[:4] for span in row["spans"] if span[4] in "RP"]
            rows.append({"language": row["id"][:2], "text": row["text"], "spans": spans, "judged": True})
    known, watched, empty = {row.get("text") for row in judged}, Watched(), []
    for chat in load_fact_transcripts(CHATS):
        told = {turn for fact in chat.facts for turn in fact.turns}
        for turn in chat.turns if chat.id not in test else ():
            text = unicodedata.normalize("NFC", turn.text)
            if turn.role == "user" and turn.id not in told and text not in known and 3 < len(text) < 300:
                empty.append({"language": chat.id[:2], "text": text, "spans": [], "judged": False})
    random.Random(1).shuffle(empty)
    rows += [row for row in empty[: 2 * EMPTY] if not watched.read(row["text"])[0].marks][:EMPTY]
    with open(folder / "chats.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


if __name__ == "__main__":
    main()
