"""An empty folder for configuration tests."""

from __future__ import annotations

from pathlib import Path

from aforesaid.settings import Settings, load_settings

KEY = "sk-0123456789abcdefWXYZ"


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
