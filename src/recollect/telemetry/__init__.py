"""What everything took, counted in this process. Nothing of it leaves the machine by itself."""

from recollect.telemetry.kinds import CALLERS, kind_of
from recollect.telemetry.metrics import OWN, SECONDS, Key, Measured, Metrics
from recollect.telemetry.timing import timed

__all__ = ["CALLERS", "OWN", "SECONDS", "Key", "Measured", "Metrics", "kind_of", "timed"]
