"""Sets up a checkout: system packages, `.venv/` with everything in the lock file, the engine, and Tandem itself.

    bootstrap.py [--tests]      (packaging/setup.sh finds a Python and runs it)

`--tests` also asks for what only the tests and the pictures need: a screen without a monitor, hands for it, fonts.

Each part is done once and written down in `.venv/set-up.json` with what it was made from, so that a second run has
nothing to do and says nothing. Uses only the standard library, since it runs before anything else is installed.

Exit status: 0 all is ready; 1 something is missing or failed, said in one line; 130 interrupted.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from engine import build

ROOT: Final = Path(__file__).resolve().parent.parent
VENV: Final = ROOT / ".venv"
LOCK: Final = ROOT / "packaging" / "lock" / "requirements.txt"
DONE: Final = VENV / "set-up.json"
PARTS: Final = ("packages", "engine", "tandem")
WINDOW_LIBRARIES: Final = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
}
"""What Qt's wheel expects of the system, and the Debian packages that have it."""
TEST_PROGRAMS: Final = {"Xvfb": "xvfb", "xdotool": "xdotool", "strace": "strace", "unshare": "util-linux"}
TEST_FONTS: Final = {
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf": "fonts-dejavu-core",
    "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc": "fonts-noto-cjk",
}


def say(text: str) -> None:
    """Writes one line of progress to standard error."""
    build.say(f"set-up: {text}")


def wanted() -> dict[str, str]:
    """What each part is made from; a part whose text differs from the one written down is made again.

    A virtual environment holds absolute paths, so a moved checkout needs a new one.
    """
    project = [ROOT / "pyproject.toml", ROOT / "desktop" / "tandem" / "__init__.py"]
    return {
        "packages": f"{build.sha256(LOCK)} {platform.python_version()} {sys.base_prefix} {VENV}",
        "engine": build.key("cpu"),
        "tandem": " ".join(build.sha256(path) for path in project),
    }


def done() -> dict[str, str]:
    """The parts that are ready, as `wanted` described them when they were made."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(DONE.read_text("utf-8"))
        if isinstance(found, dict) and (VENV / "bin" / "python").exists():
            return {str(part): str(text) for part, text in found.items()}
    return {}


def loads(library: str) -> bool:
    """Whether the system's loader finds a shared library by this name."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def venv_package() -> str:
    """Debian's package with this Python's venv: only the default Python's has a name without a version."""
    default = Path("/usr/bin/python3").resolve().name
    this = f"python3.{sys.version_info.minor}"
    return "python3-venv" if default == this else f"{this}-venv"


def missing_packages(compile_engine: bool) -> list[str]:
    """Names of the Debian packages that this machine lacks.

    Args:
        compile_engine: Whether the engine is still to be built, which needs the compilers.
    """
    missing = []
    if compile_engine:
        for package, programs in {"gcc": ("gcc", "cc", "clang"), "g++": ("g++", "c++", "clang++")}.items():
            if not any(map(shutil.which, programs)):
                missing.append(package)
    # Debian takes ensurepip out of Python, and `python -m venv` fails half-way without it.
    if importlib.util.find_spec("ensurepip") is None:
        missing.append(venv_package())
    if not loads("libgomp.so.1"):
        missing.append("libgomp1")
    return missing + [package for library, package in WINDOW_LIBRARIES.items() if not loads(library)]


def missing_for_tests() -> list[str]:
    """Names of the Debian packages that the tests of the window need and this machine lacks."""
    programs = [package for program, package in TEST_PROGRAMS.items() if not shutil.which(program)]
    return programs + [package for file, package in TEST_FONTS.items() if not Path(file).exists()]


def install_packages(missing: list[str]) -> None:
    """Installs Debian packages when root; else names the command.

    Args:
        missing: The packages' names.

    Raises:
        BuildError: They cannot be installed from here.
    """
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    if not shutil.which("apt-get"):
        raise build.BuildError(f"Please install these first, by your system's names for them: {' '.join(missing)}")
    if os.geteuid() != 0:
        raise build.BuildError(f"Please run this first: sudo apt-get install {' '.join(missing)}")
    say(f"installing {', '.join(missing)} with apt-get")
    log = ROOT / "set-up-apt.log"
    log.unlink(missing_ok=True)
    environment = build.clean_environment() | {"DEBIAN_FRONTEND": "noninteractive"}
    failure = f"The system packages {' '.join(missing)} could not be installed."
    build.run(["apt-get", "update"], environment, log, failure)
    build.run(command, environment, log, failure)
    log.unlink(missing_ok=True)


def pip(*words: str | Path) -> None:
    """Runs pip in the virtual environment.

    Raises:
        BuildError: It failed.
    """
    command: list[str | Path] = [VENV / "bin" / "python", "-m", "pip", *words]
    failure = "The packages could not be installed; is the network there?"
    build.run(command, build.clean_environment(), VENV / "set-up.log", failure)


def make_packages() -> None:
    """Makes the virtual environment anew, with the exact files that the lock names."""
    if VENV.exists():
        shutil.rmtree(VENV)
    say("installing the locked packages into .venv")
    VENV.mkdir()
    environment = build.clean_environment()
    failure = "The virtual environment could not be made."
    build.run([sys.executable, "-m", "venv", VENV], environment, VENV / "set-up.log", failure)
    # No dependency is resolved here: the lock is whole, and `pip check` below says so.
    pip("install", "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", LOCK)


def make_engine() -> None:
    """Installs the engine's wheel, built or from the cache."""
    wheel = build.build("cpu", build.default_cache())
    say("installing the engine")
    pip("install", "--no-deps", "--no-index", "--force-reinstall", wheel)
    load: list[str | Path] = [VENV / "bin" / "python", "-c", "import llama_cpp"]
    build.run(load, build.clean_environment(), VENV / "set-up.log", "The engine was built but does not load.")


def make_tandem() -> None:
    """Installs this checkout itself, editable, so that `.venv/bin/tandem` runs the files here."""
    say("installing Tandem")
    pip("install", "--no-deps", "--no-index", "--no-build-isolation", "--editable", ROOT)
    pip("check")


def set_up(for_tests: bool = False) -> None:
    """Makes every part that is not ready, in order.

    Args:
        for_tests: Whether the tests' own packages are wanted too.

    Raises:
        BuildError: A part could not be made; the parts before it stay ready.
    """
    start = time.monotonic()
    target = wanted()
    if for_tests and (missing := missing_for_tests()):
        install_packages(missing)
    if done() == target:
        return
    with build.locked(LOCK, "set-up: another one is at work in this folder; waiting"):
        ready = done()
        if ready.get("packages") != target["packages"]:
            ready = {}
        if {"packages", "engine"} - ready.keys():
            engine_kept = build.kept(build.default_cache() / target["engine"]) is not None
            if missing := missing_packages(compile_engine=not engine_kept):
                install_packages(missing)
        makers: dict[str, Callable[[], None]] = dict(zip(PARTS, (make_packages, make_engine, make_tandem), strict=True))
        for part, make in makers.items():
            if ready.get(part) != target[part]:
                make()
                ready[part] = target[part]
                DONE.write_text(json.dumps(ready, indent=2) + "\n", "utf-8")
    say(f"ready after {time.monotonic() - start:.0f} s")


def main(arguments: Sequence[str] = ()) -> int:
    """Sets up and turns what went wrong into one line and an exit status."""
    try:
        set_up(for_tests="--tests" in arguments)
    except build.BuildError as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"Tandem cannot be set up here: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted; run it again to go on")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
