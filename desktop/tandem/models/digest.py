"""A sha256 that is found in a thread of its own, while the bytes are also written."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from queue import Queue
from typing import Final

from tandem.models.ranges import Bytes

_AHEAD: Final = 4


def kept(_block: Bytes) -> None:
    """Does nothing with a block that is no longer needed."""


class Digest:
    """The sha256 of blocks, for one thread that gives them; `close` ends the other thread."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._blocks: Queue[tuple[Bytes, Callable[[Bytes], None]] | None] = Queue(_AHEAD)
        self._thread: threading.Thread | None = None

    def update(self, block: Bytes, done: Callable[[Bytes], None] = kept) -> None:
        """Takes the next block; waits while several are not hashed yet.

        Args:
            block: Not to be changed until it is done.
            done: Gets the block, in the other thread, when it is.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="part-hash", daemon=True)
            self._thread.start()
        self._blocks.put((block, done))

    def take(self, block: Bytes) -> None:
        """Hashes a block here and now, before any was given to `update`."""
        self._digest.update(block)

    def hexdigest(self) -> str:
        """Of all blocks: 64 hex digits."""
        self._blocks.join()
        return self._digest.hexdigest()

    def restart(self) -> None:
        """Forgets all blocks."""
        self._blocks.join()
        self._digest = hashlib.sha256()

    def close(self) -> None:
        """Ends the other thread."""
        if self._thread is not None:
            self._blocks.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while True:
            found = self._blocks.get()
            if found is not None:
                block, done = found
                self._digest.update(block)
                done(block)
            self._blocks.task_done()
            if found is None:
                return
