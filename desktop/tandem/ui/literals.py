"""Texts that are marked for translation where they stand and translated where they are used."""

from __future__ import annotations


def texts(*marked: object) -> tuple[str, ...]:
    """What `QT_TRANSLATE_NOOP` gave back, as the strings that it is: PySide6 declares no type for it."""
    return tuple(map(str, marked))
