"""The sign-in token for the Hub: where it is found, and keeping one in the system's keyring.

No account is needed for the models of the catalog; a token raises the Hub's limits and opens gated repositories. Its
value is shown nowhere: not in a log, not in an error, not when it is printed.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tandem.errors import UsageError
from tandem.models.errors import TransferError

Where = Literal["HF_TOKEN", "keyring", "file"]

SERVICE: Final = "tandem"
USER: Final = "huggingface"
_MOST: Final = 4096
_FIT: Final = re.compile(r"[\x21-\x7e]+")
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, repr=False)
class Token:
    """A token.

    Attributes:
        value: Itself; only for the header of a request to the endpoint.
        where: Where it was found.
    """

    value: str
    where: Where

    def __repr__(self) -> str:
        return f"Token(from {self.where})"


def find(environ: Mapping[str, str] = os.environ) -> Token | None:
    """The user's token: of the environment, else of the keyring, else of the standard login's file.

    One that cannot be a token is passed over, as most models need none.

    Args:
        environ: The environment.
    """
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        found = _token(environ.get(name, ""), "HF_TOKEN")
        if found is not None:
            return found
    return _token(_from_keyring(), "keyring") or _token(_from_file(file(environ)), "file")


def file(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the standard login keeps its token, by the same variables as huggingface_hub's."""
    cache = environ.get("XDG_CACHE_HOME") or str(Path("~") / ".cache")
    home = environ.get("HF_HOME") or str(Path(cache) / "huggingface")
    text = environ.get("HF_TOKEN_PATH") or str(Path(home) / "token")
    return Path(os.path.expandvars(os.path.expanduser(text)))  # noqa: PTH111  (a "~" that leads nowhere is left)


def keep(text: str) -> Token:
    """Keeps a token in the system's keyring, in place of the one before.

    Args:
        text: As it was typed or pasted.

    Raises:
        UsageError: It cannot be a token.
        TransferError: This machine has no keyring, or it refuses ("keyring").
    """
    token = _token(text, "keyring")
    if token is None:
        raise UsageError(
            "This is no token of the Hub.", "Copy it again from the access tokens in your account's settings there."
        )
    import keyring  # see `_from_keyring`

    try:
        keyring.set_password(SERVICE, USER, token.value)
    except Exception as error:  # backends raise what they like
        raise _no_keyring(error) from None
    return token


def forget() -> None:
    """Removes the token from the keyring, if there is one.

    Raises:
        TransferError: This machine has no keyring, or it refuses ("keyring").
    """
    import keyring  # see `_from_keyring`

    try:
        if keyring.get_password(SERVICE, USER) is not None:
            keyring.delete_password(SERVICE, USER)
    except Exception as error:  # backends raise what they like
        raise _no_keyring(error) from None


def _no_keyring(error: Exception) -> TransferError:
    # The error's text is a backend's own and could hold anything.
    return TransferError(
        "keyring",
        "This system has no keyring that Tandem can use.",
        "Set HF_TOKEN, or sign in with the command hf auth login; Tandem finds both.",
        type(error).__name__,
    )


def _from_keyring() -> str:
    import keyring  # slow to import, and needed only when a download starts or settings are shown

    try:
        return keyring.get_password(SERVICE, USER) or ""
    except Exception as error:  # no backend, locked, no session bus: then there is no token there
        _log.info("The keyring cannot be read: %s.", type(error).__name__)
        return ""


def _from_file(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_MOST + 1).decode()
    except (OSError, ValueError):  # not there, no permission, no UTF-8, a name that no file can have
        return ""


def _token(text: str, where: Where) -> Token | None:
    text = text.strip()
    if not text:
        return None
    # What has other characters would not only fail: the HTTP library names it in its error.
    if len(text) > _MOST or not _FIT.fullmatch(text):
        _log.warning("What was found as a token (%s) is none.", where)
        return None
    return Token(text, where)
