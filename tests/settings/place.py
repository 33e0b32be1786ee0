"""An empty folder for configuration tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aforesaid.settings import Settings, ValueType, load_settings
from aforesaid.settings.layers import TREE, Each, Table

KEY = "sk-0123456789abcdefWXYZ"


def all_keys(table: Table = TREE, above: str = "") -> Iterator[str]:
    """Return every key in documented form; NAME is the name of a provider."""
    for name, node in table.items():
        if isinstance(node, ValueType):
            yield f"{above}{name}"
        elif isinstance(node, Each):
            yield from all_keys(node.table, f"{above}{name}.NAME.")
        else:
            yield from all_keys(node, f"{above}{name}.")


class Place:
    """A current folder and a folder for configuration that hold nothing but what a test puts there."""

    def __init__(self, root: Path) -> None:
        self.here = root / "here"
        self.home = root / "home"
        self.here.mkdir()
        self.home.mkdir()

    def write(self, text: str, name: str = "aforesaid.toml") -> Path:
        path = self.here / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        return path

    def load(self, text: str | None = None, overrides: dict[str, object] | None = None, /, **env: str) -> Settings:
        if text is not None:
            self.write(text)
        return load_settings(env={"XDG_CONFIG_HOME": str(self.home), **env}, overrides=overrides)
