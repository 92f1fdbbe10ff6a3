"""What is kept of model files, as records: an installed file, one that was set aside, and their form in JSON.

Times are in UTC. A path that is no Unicode keeps its bytes (as lone surrogates, escaped in JSON).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

NO_HASH: Final = ""
"""In place of a sha256 that is not known yet."""

_Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
_Sha256 = Annotated[str, msgspec.Meta(pattern=r"\A([0-9a-f]{64})?\Z")]

InstalledRole = Literal["target", "drafter", "model"]
"""A "model" is neither: another family's, which can be chatted with but has no drafter here."""


class Installed(msgspec.Struct, frozen=True):
    """A file in the list of installed files.

    Attributes:
        path: Where it is, absolute.
        role: What it is.
        bytes: Size when it was checked.
        mtime_ns: Time of its last change when it was checked, in nanoseconds.
        sha256: 64 hex digits; `NO_HASH` for a file that was found on disk and not hashed yet.
        in_place: It belongs to somebody else and is used where it is: never moved, never deleted.
        repo: The Hub's repository it is known to be from, "" for none.
        file: Its name there, "" for none.
        commit: The Hub's commit it was fetched from, "" for unknown.
        licence: SPDX identifier, or what the file itself says; None for unknown.
        installed_at: When it came into the list.
        verified_at: When its sha256 was last found right; None for never.
        architecture: By its header.
        name: The model's own name, by its header.
        quantisation: By its header, such as "Q4_0".
        problem: The fault of a file in place that failed its check, such as "wrong-hash"; "" for none.
        unproven: Its sha256 is what was found, and nothing says what it should be. It can be used.
    """

    path: Path
    role: InstalledRole
    bytes: _Number
    mtime_ns: Annotated[int, msgspec.Meta(gt=-(1 << 62), lt=1 << 62)]
    sha256: _Sha256
    installed_at: datetime
    verified_at: datetime | None = None
    in_place: bool = False
    repo: str = ""
    file: str = ""
    commit: str = ""
    licence: str | None = None
    architecture: str = ""
    name: str | None = None
    quantisation: str = ""
    problem: str = ""
    unproven: bool = False


class Quarantined(msgspec.Struct, frozen=True):
    """A file that was set aside.

    Attributes:
        path: Where it is now.
        name: The name it had.
        bytes: Its size.
        fault: Why, such as "wrong-hash".
        sentence: Why (English).
        remedy: What to do about it.
        repo: The Hub's repository it should have been from, "" for none.
        file: Its name there.
        expected: The sha256 it should have, "" where that is not known.
        found: The sha256 it has, "" where that is not known.
        at: When.
    """

    path: str
    name: str
    bytes: int
    fault: str = ""
    sentence: str = ""
    remedy: str = ""
    repo: str = ""
    file: str = ""
    expected: str = ""
    found: str = ""
    at: datetime | None = None


def now() -> datetime:
    """The time, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def builtins(value: Any) -> Any:
    """A record as what JSON knows: objects, lists, strings, numbers."""
    return msgspec.to_builtins(value, enc_hook=_plain)


def to_json(value: Any, indent: int | None = 1) -> bytes:
    """A record as JSON with a line break at its end; without `indent` on one line."""
    plain = builtins(value)
    try:
        return json.dumps(plain, ensure_ascii=False, indent=indent).encode() + b"\n"
    except UnicodeEncodeError:  # a file name that is no Unicode, which only an escape in JSON can hold
        return json.dumps(plain, indent=indent).encode() + b"\n"


def installed_from(plain: Any) -> Installed:
    """Reads one record.

    Raises:
        msgspec.ValidationError: It is none.
    """
    return msgspec.convert(plain, Installed, dec_hook=_path)


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"no JSON for {type(value).__name__}")


def _path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise TypeError(f"no {kind.__name__} from JSON")
