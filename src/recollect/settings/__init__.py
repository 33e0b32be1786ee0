"""Configuration: typed values, and where they come from."""

from recollect.settings.load import as_settings, load_settings
from recollect.settings.values import (
    OPERATIONS,
    WITHOUT,
    Alerts,
    BotSettings,
    Choice,
    DiscordSettings,
    Operation,
    Provider,
    Resilience,
    Route,
    Secret,
    Serving,
    Settings,
    Speech,
    SpeechOperation,
    Spending,
    TelegramSettings,
)

__all__ = [
    "OPERATIONS",
    "WITHOUT",
    "Alerts",
    "BotSettings",
    "Choice",
    "DiscordSettings",
    "Operation",
    "Provider",
    "Resilience",
    "Route",
    "Secret",
    "Serving",
    "Settings",
    "Speech",
    "SpeechOperation",
    "Spending",
    "TelegramSettings",
    "as_settings",
    "load_settings",
]
