"""Read the configuration of the bots, including their tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, TypeVar

from aforesaid.errors import InvalidInput
from aforesaid.settings.basic_values import Secret
from aforesaid.settings.layered_values import DEFAULT, LayeredValues
from aforesaid.settings.layers import FILE_RANK, GivenValue
from aforesaid.settings.providers import warn_when_open
from aforesaid.settings.secrets import read_key, read_password
from aforesaid.settings.values import BotSettings, DiscordSettings, MumbleSettings, TelegramSettings

_TOKEN: Final = "token"  # noqa: S105 - the name of a key
_PASSWORD: Final = "password"  # noqa: S105 - the same

Table = TypeVar("Table", TelegramSettings, DiscordSettings)


def read_bots(sources: LayeredValues) -> BotSettings:
    """Return the settings of all bots. Raises InvalidInput."""
    return BotSettings(
        name=sources.take("bots", "name", default=None),
        system=sources.take("bots", "system", default=None),
        telegram=_table(sources, TelegramSettings, "telegram"),
        discord=_table(sources, DiscordSettings, "discord"),
        mumble=_mumble(sources),
    )


def _table(sources: LayeredValues, table: type[Table], name: str) -> Table:
    return table(token=_secret(sources, name, _TOKEN, read_key), **_rest(sources, table, name, _TOKEN))


def _mumble(sources: LayeredValues) -> MumbleSettings:
    values = _rest(sources, MumbleSettings, "mumble", _PASSWORD)
    certificate = sources.given("bots", "mumble", "certificate")
    if certificate is not None:
        values["certificate"] = str(_path(sources, certificate))
    return MumbleSettings(password=_secret(sources, "mumble", _PASSWORD, read_password), **values)


def _rest(sources: LayeredValues, table: type[Table | MumbleSettings], name: str, secret: str) -> dict[str, Any]:
    """Return the values of a table, without its secret."""
    plain = table()
    rest = [field.name for field in fields(table) if field.name != secret]
    return {key: sources.take("bots", name, key, default=getattr(plain, key)) for key in rest}


def _secret(
    sources: LayeredValues, bot: str, key: str, read: Callable[[Path], tuple[Secret | None, str]]
) -> Secret | None:
    """Return the token or password of a bot: the value itself, or the content of a file."""
    sources.origins[f"bots.{bot}.{key}"] = DEFAULT
    itself, file = sources.given("bots", bot, key), sources.given("bots", bot, f"{key}_file")
    if itself is not None and file is not None and itself.rank == file.rank:
        raise InvalidInput(f"{itself.origin}: bots.{bot} has {key} and {key}_file; keep one of them")
    if itself is not None and (file is None or itself.rank > file.rank):
        if itself.rank == FILE_RANK and sources.file is not None:
            warn_when_open(sources, sources.file)
        sources.origins[f"bots.{bot}.{key}"] = itself.origin
        return Secret(itself.value)
    if file is None:
        return None
    path = _path(sources, file)
    sources.origins[f"bots.{bot}.{key}"] = f"{path}, named by {file.origin}"
    secret, wrong = read(path)
    if wrong:
        sources.warnings.append(f"{file.origin}: bots.{bot}.{key}_file names {path}: {wrong}")
    else:
        warn_when_open(sources, path)
    return secret


def _path(sources: LayeredValues, given: GivenValue) -> Path:
    """Return a path. A relative path in a configuration file is relative to that file."""
    base = sources.file.parent if sources.file is not None and given.rank == FILE_RANK else Path()
    return (base / Path(given.value).expanduser()).absolute()
