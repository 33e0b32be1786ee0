"""Token features of the built-in sentence encoder, computed with PyTorch.

The same numbers as `aforesaid.models.embed.token_features` gives, for a million tokens in seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

CHUNKS: Final = 17
BRANCHES: Final = ((2, 0), (3, 1), (5, 2))
"""Width and left context of the encoder's three convolutions."""
WIDTH: Final = 256
PART: Final = 50_000
"""Tokens computed at a time."""


class TokenFeatures:
    """Computes the features of tokens in their context, 1,280 numbers each."""

    def __init__(self, weights: Path, device: str) -> None:
        with np.load(weights) as stored:
            table = np.empty((CHUNKS * len(stored["q1"]), stored["q1"].shape[1]), dtype=np.uint8)
            for chunk in range(CHUNKS):
                table[chunk::CHUNKS] = stored[f"q{chunk + 1}"]
            rest = {name: stored[name] for name in stored.files if not name.startswith("q")}
        self._device = device
        self._table = torch.from_numpy(table).to(device)
        self._rest = {name: torch.from_numpy(np.asarray(value)).to(device) for name, value in rest.items()}

    def of(self, texts: list[list[int]]) -> Any:  # noqa: ANN401 - a tensor
        """Return the features of all tokens of all texts, one row each, in half precision."""
        made: list[Any] = []
        group: list[list[int]] = []
        size = 0
        for text in texts:
            if group and size + len(text) > PART:
                made.append(self._part(group))
                group, size = [], 0
            group.append(text)
            size += len(text)
        return torch.cat([*made, self._part(group)])

    def _part(self, texts: list[list[int]]) -> Any:  # noqa: ANN401 - a tensor
        with torch.no_grad():
            return self._computed(texts)

    def _computed(self, texts: list[list[int]]) -> Any:  # noqa: ANN401 - a tensor
        rest = self._rest
        lengths = torch.tensor([len(text) for text in texts], device=self._device)
        flat = torch.tensor([token for text in texts for token in text], device=self._device)
        chunk = flat % CHUNKS
        raw = self._table[flat].float() * rest["scale"][chunk, None] + rest["lo"][chunk, None]
        joined = [torch.cat([rest[f"{name}{width}"] for width, _ in BRANCHES], -1) for name in ("proj", "proj_b")]
        branches = self._normed(
            raw @ joined[0] + joined[1],
            torch.cat([rest[f"ln_g{width}"] for width, _ in BRANCHES]),
            torch.cat([rest[f"ln_b{width}"] for width, _ in BRANCHES]),
        )
        ends = lengths.cumsum(0).repeat_interleave(lengths)[:, None]
        begins = ends - lengths.repeat_interleave(lengths)[:, None]
        made = [raw]
        for number, (width, left) in enumerate(BRANCHES):
            window = torch.arange(len(flat), device=self._device)[:, None]
            window = window + torch.arange(-left, width - left, device=self._device)
            window = torch.where((window >= begins) & (window < ends), window, len(flat))
            inner = branches[:, number * WIDTH : (number + 1) * WIDTH]
            for layer in ("1", "2"):
                padded = torch.cat([inner, inner.new_zeros(1, WIDTH)])[window].flatten(1)
                inner = torch.relu(padded @ rest[f"w{layer}_{width}"] + rest[f"b{layer}_{width}"]) + inner
            made.append(inner)
        return self._normed(torch.cat(made, -1), rest["ln_g"], rest["ln_b"]).half()

    def _normed(self, values: Any, gain: Any, offset: Any) -> Any:  # noqa: ANN401 - tensors
        values = values - values.mean(-1, keepdim=True)
        spread = (values * values).mean(-1, keepdim=True)
        return values * torch.rsqrt(spread + float(self._rest["eps"])) * gain + offset
