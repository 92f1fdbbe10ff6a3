"""How work on files is told to end, from any thread, and at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal

Why = Literal["pause", "cancel"]
"""Keep what is done, or not."""


class Stopped(Exception):
    """Work ended because it was told to.

    Args:
        why: What was asked for.
    """

    def __init__(self, why: Why) -> None:
        super().__init__(why)
        self.why: Final[Why] = why


class Stop:
    """Tells work to end. Once it is set it stays set; a "cancel" that comes after a "pause" counts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._why: Why | None = None
        self._callbacks: list[Callable[[], None]] = []

    def set(self, why: Why = "pause") -> None:
        """Ends the work; returns when all that waits for it has been called.

        Args:
            why: What is to become of what is done.
        """
        with self._lock:
            if self._why is None or why == "cancel":
                self._why = why
            callbacks = self._callbacks[:] if not self._event.is_set() else []
            self._event.set()
        for call in callbacks:
            call()

    def is_set(self) -> bool:
        """Whether the work is to end."""
        return self._event.is_set()

    @property
    def why(self) -> Why | None:
        """What was asked for; None while nothing was."""
        return self._why

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until it is set; whether it is.

        Args:
            seconds: At most; None waits for ever.
        """
        return self._event.wait(seconds)

    def check(self) -> None:
        """Ends what is being done, if it is to end.

        Raises:
            Stopped: It is.
        """
        why = self._why
        if why is not None:
            raise Stopped(why)

    def on_set(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Has something called when it is set, in the thread that sets it; at once if it is already.

        Args:
            callback: Must be short and must not raise.

        Returns:
            Takes the callback back; harmless afterwards.
        """

        def forget() -> None:
            with self._lock, suppress(ValueError):
                self._callbacks.remove(callback)

        with self._lock:
            self._callbacks.append(callback)
            if not self._event.is_set():
                return forget
        callback()
        return forget
