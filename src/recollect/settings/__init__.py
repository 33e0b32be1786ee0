"""Configuration: typed values, and where they come from."""

from recollect.settings.load import as_settings, load_settings
from recollect.settings.values import (
    OPERATIONS,
    WITHOUT,
    Alerts,
    Choice,
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
)

__all__ = [
    "OPERATIONS",
    "WITHOUT",
    "Alerts",
    "Choice",
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
    "as_settings",
    "load_settings",
]
