"""What a model file can be, and what can become of it: one enum, one table. `docs/models.md` draws it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class FileState(StrEnum):
    """Where a file of a pair stands.

    Attributes:
        ABSENT: Nothing of it is here.
        QUEUED: It waits for its turn.
        RESOLVING: The Hub is asked what it is.
        TRANSFERRING: Bytes come in.
        PAUSED: A part is kept; it goes on when asked to.
        FAILED: It could not be downloaded: it cannot be, or was tried often enough. A part may be kept.
        CHECKING: All bytes are here: size, sha256 and header are compared.
        INSTALLED: Size, sha256 and header agreed.
        VERIFYING: An installed file is hashed again.
        CHANGED: Size or time of an installed file are not those that were checked.
        MISSING: An installed file is not where it was.
        QUARANTINED: It is not what it should be, and was set aside under another name.
    """

    ABSENT = "absent"
    QUEUED = "queued"
    RESOLVING = "resolving"
    TRANSFERRING = "transferring"
    PAUSED = "paused"
    FAILED = "failed"
    CHECKING = "checking"
    INSTALLED = "installed"
    VERIFYING = "verifying"
    CHANGED = "changed"
    MISSING = "missing"
    QUARANTINED = "quarantined"


_S = FileState
TRANSITIONS: Final[Mapping[FileState, frozenset[FileState]]] = {
    _S.ABSENT: frozenset({_S.QUEUED, _S.CHECKING}),  # checking: a file that is imported
    _S.QUEUED: frozenset({_S.RESOLVING, _S.PAUSED, _S.ABSENT}),
    _S.RESOLVING: frozenset({_S.TRANSFERRING, _S.CHECKING, _S.PAUSED, _S.FAILED, _S.ABSENT}),
    _S.TRANSFERRING: frozenset({_S.CHECKING, _S.PAUSED, _S.FAILED, _S.ABSENT}),
    _S.PAUSED: frozenset({_S.QUEUED, _S.ABSENT}),
    _S.FAILED: frozenset({_S.QUEUED, _S.PAUSED, _S.ABSENT}),
    _S.CHECKING: frozenset({_S.INSTALLED, _S.QUARANTINED, _S.FAILED, _S.PAUSED, _S.ABSENT}),
    _S.INSTALLED: frozenset({_S.VERIFYING, _S.CHANGED, _S.MISSING, _S.ABSENT}),
    _S.VERIFYING: frozenset({_S.INSTALLED, _S.CHANGED, _S.QUARANTINED, _S.MISSING}),
    _S.CHANGED: frozenset({_S.VERIFYING, _S.INSTALLED, _S.QUARANTINED, _S.MISSING, _S.ABSENT}),
    _S.MISSING: frozenset({_S.QUEUED, _S.INSTALLED, _S.CHANGED, _S.ABSENT}),
    _S.QUARANTINED: frozenset({_S.QUEUED, _S.ABSENT}),
}
"""From each state, the states that can follow it. Staying is always possible."""

ACTIVE: Final = frozenset({_S.QUEUED, _S.RESOLVING, _S.TRANSFERRING, _S.CHECKING, _S.VERIFYING})
"""Something is being done, or will be without being asked for again."""


def follows(before: FileState, after: FileState) -> bool:
    """Whether a file can go from one state to the other in one step."""
    return before == after or after in TRANSITIONS[before]
