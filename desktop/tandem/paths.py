"""Where things are. Nothing else in the app knows a folder.

The user's folders follow the platform's rules (platformdirs), or all lie under `TANDEM_HOME` when that variable is
set: a profile to throw away, for tests and for trying things out. A folder is made when it is first asked for.
What comes with the app, its resources, lies in the installed package or, in a checkout, beside `desktop/`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import platformdirs

from tandem.errors import ModelError, TandemError

APP: Final = "tandem"
HOME_VARIABLE: Final = "TANDEM_HOME"
DEMO_TARGET: Final = "tiny-target-q4_0.gguf"
DEMO_DRAFTER: Final = "tiny-drafter-q4_0.gguf"


def data_dir() -> Path:
    """What must last: chats, settings, models.

    Raises:
        TandemError: The folder cannot be made.
    """
    return _made("data", platformdirs.user_data_path(APP, appauthor=False))


def models_dir() -> Path:
    """Where models are kept, unless the user has chosen another folder.

    Raises:
        TandemError: The folder cannot be made.
    """
    return _made("models", platformdirs.user_data_path(APP, appauthor=False) / "models")


def cache_dir() -> Path:
    """What can be made again: measurements, checked hashes.

    Raises:
        TandemError: The folder cannot be made.
    """
    return _made("cache", platformdirs.user_cache_path(APP, appauthor=False))


def log_dir() -> Path:
    """Logs; they hold no chat text.

    Raises:
        TandemError: The folder cannot be made.
    """
    return _made("logs", platformdirs.user_log_path(APP, appauthor=False))


def resources() -> Path:
    """The folder that comes with the app: `tandem/resources` when installed, `resources/` in a checkout.

    Raises:
        TandemError: There is neither, so the installation is not whole.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "resources", package.parent.parent / "resources"):
        if folder.is_dir():
            return folder
    raise TandemError(
        "Tandem's own files are not where they should be.", "Install Tandem again.", f"no resources near {package}"
    )


def demo_pair() -> tuple[Path, Path]:
    """The built-in demo pair: target, drafter.

    Raises:
        ModelError: One of the two files is not there ("missing").
        TandemError: There are no resources at all.
    """
    folder = resources() / "demo"
    pair = (folder / DEMO_TARGET, folder / DEMO_DRAFTER)
    for file in pair:
        if not file.is_file():
            raise ModelError(
                "missing", f"The demo pair's file {file.name} is missing.", "Install Tandem again.", str(file)
            )
    return pair


def _made(name: str, usual: Path) -> Path:
    """The folder under `TANDEM_HOME` if that is set, else the usual one; there when this returns."""
    home = os.environ.get(HOME_VARIABLE, "")
    try:
        folder = Path(home).expanduser().absolute() / name if home else usual
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: a user's home that there is not
        raise TandemError(
            f"Tandem cannot make its folder {name} in {home or usual.parent}.",
            f"Make room, or set {HOME_VARIABLE} to a folder that you can write to.",
            str(error),
        ) from error
    return folder
