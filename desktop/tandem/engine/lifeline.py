"""Ties the engine's process to the one that started it: when that one ends, however, this one ends too.

The reader thread of `host` ends the process at the end of its pipe, which covers closing, crashing and `kill -9`. What
is added here covers a process that cannot run its threads (stopped, or stuck in the kernel): on Linux the kernel kills
it (`PR_SET_PDEATHSIG`), on Windows the parent puts it into a job that dies with its last handle.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_KILL_ON_JOB_CLOSE = 0x2000  # JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, winnt.h
_EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation, winnt.h
_PROCESS_SET_QUOTA_AND_TERMINATE = 0x0100 | 0x0001
_LIMITS_SIZE, _FLAGS_AT = 144, 16  # JOBOBJECT_EXTENDED_LIMIT_INFORMATION on 64 bits; LimitFlags' offset in it


def die_with_parent(parent: int) -> None:
    """Asks the kernel to kill this process when the thread that started it ends (Linux; elsewhere nothing).

    Args:
        parent: Process id of the parent; when it is gone already this process ends at once.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(0)


def tie_child(pid: int) -> Any:
    """Puts a child into a job that Windows ends with this process (elsewhere nothing).

    Returns:
        A handle to keep for as long as the child may live; None where there is none.
    """
    if sys.platform != "win32":
        return None
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.CreateJobObjectW.restype = kernel.OpenProcess.restype = ctypes.c_void_p
    job = kernel.CreateJobObjectW(None, None)
    limits = bytearray(_LIMITS_SIZE)
    limits[_FLAGS_AT : _FLAGS_AT + 4] = _KILL_ON_JOB_CLOSE.to_bytes(4, "little")
    data = (ctypes.c_char * _LIMITS_SIZE).from_buffer(limits)
    kernel.SetInformationJobObject(ctypes.c_void_p(job), _EXTENDED_LIMITS, data, _LIMITS_SIZE)
    process = kernel.OpenProcess(_PROCESS_SET_QUOTA_AND_TERMINATE, False, pid)
    kernel.AssignProcessToJobObject(ctypes.c_void_p(job), ctypes.c_void_p(process))
    kernel.CloseHandle(ctypes.c_void_p(process))
    return job


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """A child that this thread starts in here ignores Ctrl-C from its first instruction on.

    Only the main thread may change what a signal does; from any other one the child inherits that it is blocked (on
    Windows, where nothing is inherited, only what it does later counts).
    """
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
    elif sys.platform == "win32":
        yield
    else:
        resource_tracker.ensure_running()  # multiprocessing starts it first, and then lets the signal through again
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
