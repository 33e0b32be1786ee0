"""Well-known providers, and the environment variables in which other programs expect their keys and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from aforesaid.errors import InvalidInput
from aforesaid.settings.keys import entry
from aforesaid.settings.layers import KNOWN_PROVIDER_RANK, GivenValue, Layer
from aforesaid.settings.value_types import ValueType


@dataclass(frozen=True, slots=True)
class KnownProvider:
    """A provider that needs no configuration but its name."""

    base_url: str
    address_variable: str | None
    key_variable: str | None
    example: str
    """A suggested model."""


KNOWN_PROVIDERS: Final[Mapping[str, KnownProvider]] = {
    "ollama": KnownProvider("http://localhost:11434/v1", "OLLAMA_HOST", None, "llama3.2"),
    "openai": KnownProvider("https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY", "gpt-4o-mini"),
    "gemini": KnownProvider(
        "https://generativelanguage.googleapis.com/v1beta/openai/", None, "GEMINI_API_KEY", "gemini-2.5-flash"
    ),
}

_OLLAMA_PORT: Final = 11434
_ANYWHERE: Final = ("0.0.0.0", "::", "")  # noqa: S104 - nothing is bound here
"""Listening addresses that clients cannot connect to."""


def from_known_variables(env: Mapping[str, str]) -> tuple[Layer, list[str]]:
    """Read the variables that other programs use. An invalid one is reported and ignored."""
    layer: Layer = {}
    doubts = []
    for name, known in KNOWN_PROVIDERS.items():
        for part, variable in (("base_url", known.address_variable), ("api_key", known.key_variable)):
            text = env.get(variable, "").strip() if variable else ""
            if not variable or not text:
                continue
            key = ("providers", name, part)
            kind = entry(key, variable)
            if not isinstance(kind, ValueType):
                raise InvalidInput(f"{variable} is empty")
            try:
                value = kind.read(ollama_address(text) if name == "ollama" else text)
            except ValueError:
                doubts.append(f"{variable} is not used: it must be {kind.allowed}")
            else:
                layer[key] = GivenValue(value, variable, KNOWN_PROVIDER_RANK)
    return layer, doubts


def ollama_address(host: str) -> str:
    """Convert OLLAMA_HOST, in every form that Ollama accepts, to the URL of its OpenAI-compatible API."""
    has_scheme = "://" in host
    parts = urlsplit(host if has_scheme else f"http://{host}")
    name = parts.hostname or ""
    if name in _ANYWHERE:
        name = "localhost"
    if ":" in name:
        name = f"[{name}]"
    port = parts.port if parts.port is not None or has_scheme else _OLLAMA_PORT
    return f"{parts.scheme}://{name}{f':{port}' if port else ''}{parts.path.rstrip('/')}/v1"
