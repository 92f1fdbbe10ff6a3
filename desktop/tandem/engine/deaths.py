"""Why an engine's process ended, as a sentence with a remedy."""

from __future__ import annotations

import signal
import sys
from typing import Final

_WINDOWS_CODES: Final = {  # NTSTATUS, and what abort() and fail-fast give
    0xC000001D: signal.SIGILL,
    0xC0000005: signal.SIGSEGV,
    0xC0000409: signal.SIGABRT,
    3: signal.SIGABRT,
}

DEATHS: Final[dict[str, tuple[str, str, str]]] = {
    reason: (reason, sentence, remedy)
    for reason, sentence, remedy in (
        (
            "out of memory",
            "The engine ran out of memory.",
            "Choose a smaller context or model, or close other programs.",
        ),
        ("illegal instruction", "The engine was built for a newer CPU.", "Install the build made for this machine."),
        (
            "aborted",
            "The engine gave up after an error of its own.",
            "Try again; without the drafter if it comes back.",
        ),
        ("crashed", "The engine crashed.", "Try again; without the drafter if it comes back."),
        ("killed", "The engine was ended from outside.", "Try again; if memory was short, choose a smaller context."),
        ("exited", "The engine ended by itself.", "Try again; its log says more."),
        ("hung", "The engine did not answer any more and was ended.", "Try again."),
    )
}
_SIGNALS: Final = {
    signal.SIGILL: "illegal instruction",
    signal.SIGABRT: "aborted",
    signal.SIGSEGV: "crashed",
    getattr(signal, "SIGBUS", signal.SIGSEGV): "crashed",
    signal.SIGFPE: "crashed",
    getattr(signal, "SIGKILL", signal.SIGTERM): "killed",
    signal.SIGTERM: "killed",
}


def describe_death(exit_code: int | None, log_tail: str) -> tuple[str, str, str]:
    """Reason, sentence and remedy for an engine that ended.

    Args:
        exit_code: As `multiprocessing` gives it: negative is a signal; Windows gives an NTSTATUS.
        log_tail: The end of its log.
    """
    number: int = -exit_code if exit_code is not None and exit_code < 0 else 0
    if sys.platform == "win32" and exit_code is not None:
        number = _WINDOWS_CODES.get(exit_code & 0xFFFFFFFF, 0)
    reason = _SIGNALS.get(number, "exited")
    last = log_tail.lower()[-1000:]
    signs = ("out of memory", "failed to allocate", "bad_alloc", "unable to allocate", "cannot allocate")
    if reason in ("aborted", "exited") and any(sign in last for sign in signs):
        reason = "out of memory"  # an abort says why in its last lines; after a signal from outside they mean nothing
    return DEATHS[reason]
