"""What everything took, counted in this process. Nothing of it leaves the machine by itself."""

from aforesaid.telemetry.kinds import CALLERS, kind_of
from aforesaid.telemetry.metrics import OWN, PROXY_RECALL, PROXY_STORE, SECONDS, Key, Measured, Metrics
from aforesaid.telemetry.timing import timed

__all__ = ["CALLERS", "OWN", "PROXY_RECALL", "PROXY_STORE", "SECONDS", "Key", "Measured", "Metrics", "kind_of", "timed"]
