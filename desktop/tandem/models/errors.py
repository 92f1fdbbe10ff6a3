"""What can go wrong between the Hub and an installed file.

::

    TandemError
    └── TransferError        a download or a check could not be finished      (exit 5)
        │                    where the file is another one than it should be   (exit 3)
        ├── PinDiffers       the Hub's file is not the one that is pinned      (exit 3)
        └── RateLimited      the Hub asks to wait                              (exit 5)
"""

from __future__ import annotations

from typing import Final, Literal

from tandem.errors import TandemError

TransferFault = Literal[
    "offline-mode",
    "unreachable",
    "timeout",
    "proxy",
    "certificate",
    "stalled",
    "sign-in",
    "gated",
    "missing-repo",
    "missing-revision",
    "missing-file",
    "rate-limited",
    "server",
    "portal",
    "pin-differs",
    "wrong-size",
    "wrong-hash",
    "wrong-header",
    "no-room",
    "disk-full",
    "disk",
    "busy",
    "keyring",
]
"""Kinds of `TransferError`."""

PASSING: Final[frozenset[TransferFault]] = frozenset({"unreachable", "timeout", "stalled", "rate-limited", "server"})
"""Faults that may be gone a moment later: these are tried again by themselves, the others are not."""

WRONG: Final[frozenset[TransferFault]] = frozenset({"pin-differs", "wrong-size", "wrong-hash", "wrong-header"})
"""Faults of the file itself: the network and the disk did what they should."""


class TransferError(TandemError):
    """A file could not be fetched or checked; what came in so far is kept.

    Args:
        fault: Which kind, see `TransferFault`.
        host: The host that it was about, "" for none.
    """

    exit_code = 5

    def __init__(self, fault: TransferFault, sentence: str, remedy: str, details: str = "", host: str = "") -> None:
        super().__init__(sentence, remedy, details)
        self.fault: Final = fault
        self.host: Final = host
        if fault in WRONG:
            self.exit_code = 3  # as for any file that cannot be used


class PinDiffers(TransferError):
    """The Hub says another sha256 or size than the catalog.

    Args:
        file: The file's name.
        pinned: What the catalog says.
        found: What the Hub says.
    """

    def __init__(self, file: str, pinned: str, found: str, host: str = "") -> None:
        super().__init__(
            "pin-differs",
            f"{file} on the Hub is not the file that Tandem knows: {found} there, {pinned} here.",
            "Update Tandem, or choose the other source of this model.",
            host=host,
        )
        self.pinned: Final = pinned
        self.found: Final = found


class RateLimited(TransferError):
    """The Hub asks to wait.

    Args:
        host: Which host.
        wait_s: Seconds to wait, None when it did not say.
    """

    def __init__(self, host: str, wait_s: float | None) -> None:
        wait = "a while" if wait_s is None else f"{wait_s:.0f} seconds"
        super().__init__(
            "rate-limited",
            f"{host} has had too many requests from here and asks to wait for {wait}.",
            "Wait, then try again; signing in to the Hub raises the limit.",
            host=host,
        )
        self.wait_s: Final = wait_s
