"""A rate limit for text messages: Mumble servers silently drop messages that come too fast."""

from __future__ import annotations

import asyncio


class RateLimit:
    """A token bucket: a burst, then `per_second` messages. Servers allow five at once and one per second by default."""

    def __init__(self, burst: int = 4, per_second: float = 0.95) -> None:
        self._burst = burst
        self._per_second = per_second
        self._free = float(burst)
        self._counted_at: float | None = None
        self._turn = asyncio.Lock()

    async def wait(self) -> None:
        """Wait until the next message may be sent, first come first served."""
        async with self._turn:
            time = asyncio.get_running_loop().time
            now = time()
            since = 0.0 if self._counted_at is None else now - self._counted_at
            self._free = min(self._burst, self._free + since * self._per_second)
            if self._free < 1:
                await asyncio.sleep((1 - self._free) / self._per_second)
                self._free, now = 1.0, time()
            self._free, self._counted_at = self._free - 1, now
