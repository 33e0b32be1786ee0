"""Describes the machine of a measurement."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """Return the facts about this machine."""
    models = [each for each in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if "model name" in each]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": models[0].partition(": ")[2] if models else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory),
    }


def sentence(known: dict[str, Any]) -> str:
    """Return the facts as a sentence."""
    return (
        f"Measured on {known['date']}: {known['processor']}, {known['cores']} cores, {known['memory_gb']} GB, "
        f"{known['system']}, Python {known['python']}."
    )
