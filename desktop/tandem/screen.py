"""Whether there is a screen to open a window on. Asked before Qt is loaded: without one Qt ends the process."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

_X_OK: Final = 0  # xcb.h: xcb_connection_has_error


def available() -> bool:
    """Whether Qt will find a screen.

    Windows and macOS always have one. Elsewhere it takes an answering X server or a Wayland socket, or somebody who
    chose Qt's platform plugin by hand, such as `QT_QPA_PLATFORM=offscreen`.
    """
    if sys.platform != "linux" or os.environ.get("QT_QPA_PLATFORM"):
        return True
    return _wayland() or _x11()


def _wayland() -> bool:
    name = os.environ.get("WAYLAND_DISPLAY", "")
    if not name:
        return False
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    path = name if name.startswith("/") else f"{folder}/{name}"
    return os.path.exists(path)  # noqa: PTH110 - a socket's name, nothing that is opened


def _x11() -> bool:
    if not os.environ.get("DISPLAY"):
        return False
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return True  # Qt brings or misses its own, and says so
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = [ctypes.c_void_p]
    xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(None, None)
    answered = xcb.xcb_connection_has_error(connection) == _X_OK
    xcb.xcb_disconnect(connection)
    return bool(answered)
