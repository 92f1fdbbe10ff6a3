"""How fast a download is, how long it will take, and how fast it may be. Pure: the time is given in."""

from __future__ import annotations

import threading
from collections import deque
from typing import Final

WINDOW_S: Final = 5.0
"""Seconds over which speed is counted."""

_STEP_S: Final = 0.1
_LEAST_S: Final = 0.5
_BURST_S: Final = 0.25
_LEAST_BURST: Final = 1 << 16


class Speed:
    """Bytes a second over the last seconds; not to be shared between threads.

    Args:
        window_s: How many seconds.
    """

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._steps: deque[tuple[float, int]] = deque()  # from that time on, so many bytes
        self._began: float | None = None

    def add(self, count: int, now: float) -> None:
        """Bytes have come in.

        Args:
            count: How many.
            now: Seconds that only grow.
        """
        if self._began is None:
            self._began = now
        if self._steps and now - self._steps[-1][0] < _STEP_S:
            since, before = self._steps[-1]
            self._steps[-1] = (since, before + count)
        else:
            self._steps.append((now, count))
        self._forget(now)

    def rate(self, now: float) -> float | None:
        """Bytes a second; None while too little is known."""
        self._forget(now)
        if self._began is None or now - self._began < _LEAST_S:
            return None
        return sum(count for _since, count in self._steps) / min(self._window_s, now - self._began)

    def left_s(self, count: int, now: float) -> float | None:
        """Seconds until so many more bytes are here; None while that is not known."""
        rate = self.rate(now)
        return count / rate if rate else None

    def restart(self) -> None:
        """What came in before no longer counts: there was a pause."""
        self._steps.clear()
        self._began = None

    def _forget(self, now: float) -> None:
        while self._steps and now - self._steps[0][0] > self._window_s:
            self._steps.popleft()


class Limit:
    """A speed limit that any number of threads keep to together: a bucket of tokens, one for each byte.

    Args:
        bytes_per_s: The limit, None for none.
    """

    def __init__(self, bytes_per_s: float | None = None) -> None:
        self._lock = threading.Lock()
        self._rate = bytes_per_s
        self._free_at: float | None = None  # when all that was taken will have been allowed

    @property
    def bytes_per_s(self) -> float | None:
        """The limit, None for none."""
        return self._rate

    def change(self, bytes_per_s: float | None) -> None:
        """Another limit from now on."""
        with self._lock:
            self._rate, self._free_at = bytes_per_s, None

    def take(self, count: int, now: float) -> float:
        """Counts bytes that have come in.

        Args:
            count: How many.
            now: Seconds that only grow.

        Returns:
            Seconds to wait before more is asked for.
        """
        with self._lock:
            if self._rate is None:
                return 0.0
            burst_s = max(_BURST_S, _LEAST_BURST / self._rate) if self._free_at is None else _BURST_S
            free_at = max(self._free_at if self._free_at is not None else now - burst_s, now - burst_s)
            self._free_at = free_at + count / self._rate
            return max(0.0, self._free_at - now)
