"""What to do about an error, for somebody at a terminal: options, variables and commands, no page and no button."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tandem.errors import TandemError
from tandem.models.errors import TransferError, TransferFault

_REACH: Final = (
    "Check the internet connection; where the Hub is blocked, give a mirror with --endpoint URL "
    "or a proxy with HTTPS_PROXY."
)
_TOKEN: Final = "Set HF_TOKEN to a token of yours"
_UPDATE: Final = "Update Tandem."
_WINDOW: Final = re.compile(r"\bSettings\b|\bin the settings\b|\bResume\b|\bthe page Models\b")
"""What only a window has."""

_BY_FAULT: Final[Mapping[TransferFault, str]] = {
    "unreachable": _REACH,
    "timeout": _REACH,
    "stalled": _REACH,
    "proxy": "Check HTTPS_PROXY and ALL_PROXY; they give a proxy as http://host:port or http://name:password@host:port.",
    "certificate": (
        "Check --endpoint, HF_ENDPOINT and HTTPS_PROXY; a network that wants a sign-in can be the cause too."
    ),
    "portal": "Open a web browser and sign in to this network, or give another address with --endpoint URL.",
    "server": "Try again later with the same command; what came in so far is kept.",
    "rate-limited": "Wait, then give the same command again; a token in HF_TOKEN raises the limit.",
    "no-room": "Make room, or give another folder with --dir DIR.",
    "disk-full": "Make room on that disk, then give the same command again.",
}
_BY_TEXT: Final[Mapping[str, str]] = {
    "Choose another model folder in the settings, or change this one's permissions.": (
        "Give another folder with --dir DIR, or change this one's permissions."
    ),
    "Choose a model folder on another disk in the settings.": "Give a folder on another disk with --dir DIR.",
    "Connect its disk, or choose another model folder in the settings.": (
        "Connect its disk, or give another folder with --dir DIR."
    ),
    "Give an HTTP proxy as http://host:port in Settings, or none to go without.": (
        "Give an HTTP proxy as http://host:port with HTTPS_PROXY, or unset it to go without."
    ),
    "Give it as http://host:port in Settings, or none to go without.": (
        "Give it as http://host:port with HTTPS_PROXY, or unset it to go without."
    ),
}
_SOURCES: Final[frozenset[TransferFault]] = frozenset(
    {"pin-differs", "missing-repo", "missing-revision", "missing-file"}
)
_ADDRESS: Final = re.compile(r"https?://[^\s,]+")


def remedy(error: TandemError, other: str = "") -> str:
    """What to do about an error.

    Args:
        error: It.
        other: The command line that gets the same model from another source; "" for none.
    """
    said = error.remedy
    fault = error.fault if isinstance(error, TransferError) else None
    if fault in _SOURCES:
        return f"Take the other source of this model: {other}" if other else _UPDATE
    if fault == "sign-in":
        return f"{_TOKEN}, or take the other source of this model: {other}" if other else f"{_TOKEN}."
    if fault == "gated":
        page = _ADDRESS.search(said)
        return (
            f"Ask for access on its page at {page[0]}, then set HF_TOKEN to a token of yours." if page else f"{_TOKEN}."
        )
    if fault == "rate-limited":
        return _BY_FAULT[fault]
    if _WINDOW.search(said) is None:
        return said
    return _BY_TEXT.get(said) or (_BY_FAULT.get(fault, "") if fault is not None else "") or said
