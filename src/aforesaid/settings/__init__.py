"""Configuration: typed values and the origin of each."""

from aforesaid.settings.basic_values import WITHOUT, Choice, Secret
from aforesaid.settings.load import as_settings, load_settings
from aforesaid.settings.values import (
    OPERATIONS,
    Alerts,
    BotSettings,
    DiscordSettings,
    Keep,
    MumbleSettings,
    Operation,
    Provider,
    Resilience,
    Retention,
    Route,
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
    "Keep",
    "MumbleSettings",
    "Operation",
    "Provider",
    "Resilience",
    "Retention",
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
