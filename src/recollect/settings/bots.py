"""The bots, and the tokens that they show to their platforms."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Final, TypeVar

from recollect.errors import InvalidInput
from recollect.settings.layers import FILE_RANK
from recollect.settings.providers import warn_when_open
from recollect.settings.secrets import read_key
from recollect.settings.sources import DEFAULT, Sources
from recollect.settings.values import BotSettings, DiscordSettings, Secret, TelegramSettings

_TOKEN: Final = "token"  # noqa: S105 - the name of a key

Table = TypeVar("Table", TelegramSettings, DiscordSettings)


def read_bots(sources: Sources) -> BotSettings:
    """Return how each bot is set up."""
    return BotSettings(
        name=sources.take("bots", "name", default=None),
        system=sources.take("bots", "system", default=None),
        telegram=_table(sources, TelegramSettings, "telegram"),
        discord=_table(sources, DiscordSettings, "discord"),
    )


def _table(sources: Sources, table: type[Table], name: str) -> Table:
    plain = table()
    rest = [field.name for field in fields(table) if field.name != _TOKEN]
    values = {key: sources.take("bots", name, key, default=getattr(plain, key)) for key in rest}
    return table(token=read_token(sources, name), **values)


def read_token(sources: Sources, bot: str) -> Secret | None:
    """Return the token of a bot: itself, or from a file that holds nothing else."""
    sources.origins[f"bots.{bot}.{_TOKEN}"] = DEFAULT
    itself, file = sources.given("bots", bot, _TOKEN), sources.given("bots", bot, "token_file")
    if itself is not None and file is not None and itself.rank == file.rank:
        raise InvalidInput(f"{itself.origin}: bots.{bot} has token and token_file; keep one of them")
    if itself is not None and (file is None or itself.rank > file.rank):
        if itself.rank == FILE_RANK and sources.file is not None:
            warn_when_open(sources, sources.file)
        sources.origins[f"bots.{bot}.{_TOKEN}"] = itself.origin
        return Secret(itself.value)
    if file is None:
        return None
    base = sources.file.parent if sources.file is not None and file.rank == FILE_RANK else Path()
    path = (base / Path(file.value).expanduser()).absolute()
    sources.origins[f"bots.{bot}.{_TOKEN}"] = f"{path}, named by {file.origin}"
    token, wrong = read_key(path)
    if wrong:
        sources.warnings.append(f"{file.origin}: bots.{bot}.token_file names {path}: {wrong}")
    else:
        warn_when_open(sources, path)
    return token
