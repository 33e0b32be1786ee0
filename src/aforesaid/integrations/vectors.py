"""Vectors of documents, computed by a framework's own embedder."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np


def packed(vector: Sequence[float]) -> str:
    """Return a vector as text: base64 of 32-bit floats."""
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


def unpacked(text: str) -> list[float]:
    """Return the vector in a text that `packed` made."""
    return [float(value) for value in np.frombuffer(base64.b64decode(text), dtype="<f4")]


def similarity(query: Sequence[float], vectors: Sequence[str]) -> float:
    """Return the cosine similarity of a query and the nearest of packed vectors."""
    asked = np.asarray(query, dtype=np.float64)
    rows = np.stack([np.frombuffer(base64.b64decode(each), dtype="<f4") for each in vectors]).astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(asked)
    return float(np.divide(rows @ asked, lengths, out=np.zeros(len(rows)), where=lengths > 0).max())
