"""Reads the trained weights that come with the package."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from io import BytesIO
from typing import TYPE_CHECKING

from aforesaid.errors import ModelError
from aforesaid.extras import np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read_weights(name: str, digest: str) -> bytes:
    """Return a file of weights in the folder of models. Raises ModelError if its SHA-256 is not `digest`."""
    data = (files("aforesaid.models") / name).read_bytes()
    if (found := sha256(data).hexdigest()) != digest:
        raise ModelError(f"the weights in {name} are not the ones expected (SHA-256 {found[:16]}…)")
    return data


def arrays(data: bytes) -> dict[str, NDArray[np.float32]]:
    """Return the arrays in a file of weights, by name."""
    with np.load(BytesIO(data), allow_pickle=False) as stored:
        return {name: stored[name].astype(np.float32) for name in stored.files}
