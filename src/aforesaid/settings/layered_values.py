"""What is set, layer upon layer, and a note of where each value was taken from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from aforesaid.settings.keys import Key, dotted
from aforesaid.settings.layers import ENVIRONMENT_RANK, KNOWN_PROVIDER_RANK, GivenValue, Layer

DEFAULT: Final = "default"


class LayeredValues:
    """Hands out values, the strongest of each, and remembers their origins."""

    def __init__(self, layer: Layer, file: Path | None, env: Mapping[str, str], warnings: list[str]) -> None:
        self.layer: Final = layer
        self.file: Final = file
        self.env: Final = env
        self.warnings: Final = warnings
        self.origins: Final[dict[str, str]] = {}

    def given(self, *key: str) -> GivenValue | None:
        """Return what somebody set for a key."""
        return self.layer.get(key)

    def take(self, *key: str, default: object) -> Any:  # noqa: ANN401 - each key has its own type
        """Return the value of a key."""
        given = self.layer.get(key)
        self.origins[dotted(key)] = given.origin if given else DEFAULT
        return given.value if given else default

    def where(self, *key: str) -> str:
        """Name a key as its reader knows it: as it stands in the file, or the variable."""
        given = self.layer[key]
        return (
            given.origin if given.rank in (ENVIRONMENT_RANK, KNOWN_PROVIDER_RANK) else f"{given.origin}: {dotted(key)}"
        )

    def providers(self) -> set[str]:
        """Return the names of all providers that somebody set something for."""
        return {key[1] for key in self.layer if key[0] == "providers"}

    def any_key_of(self, provider: str) -> Key:
        """Return a key of a provider that somebody set."""
        return next(key for key in self.layer if key[:2] == ("providers", provider))
