"""What the trainings share: vectors of texts, and how weights are written with their hash and figures."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
from linear import Floats

from aforesaid.models.embed.local import load_encoder

_BATCH = 32


def encoded(texts: Sequence[str]) -> Floats:
    """Return the encoder's vectors, one row for each text, in half precision as stores keep them."""
    encoder = load_encoder()
    made = [encoder.encode(list(texts[start : start + _BATCH])) for start in range(0, len(texts), _BATCH)]
    return np.concatenate(made).astype(np.float16).astype(np.float64)


def write(weights: bytes, path: Path, module: Path, constant: str, figures: Mapping[str, object], beside: Path) -> None:
    """Write the weights to `path`, their hash into a constant of the module that loads them, and the figures.

    The figures are printed, too. They are written into the file `beside`.
    """
    path.write_bytes(weights)
    digest = sha256(weights).hexdigest()
    source = module.read_text(encoding="utf-8")
    module.write_text(re.sub(rf'({constant}: Final = )"\w*"', rf'\1"{digest}"', source), encoding="utf-8")
    beside.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    json.dump(figures, sys.stdout, indent=1)
