"""The values of all layers, and the origin of each value that is used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from aforesaid.settings.keys import Key, dotted
from aforesaid.settings.layers import ENVIRONMENT_RANK, KNOWN_PROVIDER_RANK, GivenValue, Layer

DEFAULT: Final = "default"


class LayeredValues:
    """Returns each value from its strongest layer, and records its origin."""

    def __init__(self, layer: Layer, file: Path | None, env: Mapping[str, str], warnings: list[str]) -> None:
        self.layer: Final = layer
        self.file: Final = file
        self.env: Final = env
        self.warnings: Final = warnings
        self.origins: Final[dict[str, str]] = {}

    def given(self, *key: str) -> GivenValue | None:
        """Return the configured value of a key, or None."""
        return self.layer.get(key)

    def take(self, *key: str, default: object) -> Any:  # noqa: ANN401 - each key has its own type
        """Return the value of a key, or its default, and record its origin."""
        given = self.layer.get(key)
        self.origins[dotted(key)] = given.origin if given else DEFAULT
        return given.value if given else default

    def where(self, *key: str) -> str:
        """Return the origin of a key for error messages: the file and key, or the variable."""
        given = self.layer[key]
        return (
            given.origin if given.rank in (ENVIRONMENT_RANK, KNOWN_PROVIDER_RANK) else f"{given.origin}: {dotted(key)}"
        )

    def providers(self) -> set[str]:
        """Return the names of all providers with a configured value."""
        return {key[1] for key in self.layer if key[0] == "providers"}

    def any_key_of(self, provider: str) -> Key:
        """Return any configured key of a provider."""
        return next(key for key in self.layer if key[:2] == ("providers", provider))
