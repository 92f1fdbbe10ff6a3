"""Builds the engine, llama-cpp-python with the llama.cpp inside it, as a wheel kept in the user's cache.

    build.py [--flavour cpu] [--cache FOLDER] [--rebuild] [--cached-only]

The wheel's path is the only line on standard output; progress goes to standard error. The wheel is compiled for this
machine's processor, so its folder is named by a key of all that decides what comes out: see `recipe`. Two builds at
once are safe: one compiles, the other waits and takes its result. README.md in this folder says the rest.

Needs a C and a C++ compiler and Python's venv module; cmake and ninja come from the package index. Uses only the
standard library, since it runs before anything else is installed.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import sys
import tempfile
import time
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, Popen
from typing import Final

HERE: Final = Path(__file__).resolve().parent

PACKAGE: Final = "llama-cpp-python"
VERSION: Final = "0.3.36"
SDIST_SHA256: Final = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"

REVISION: Final = 1
"""Counts changes of this file that change the wheel, so that kept wheels of the older kind are not used."""

FLAVOURS: Final[dict[str, tuple[str, ...]]] = {
    # LLAVA_BUILD: pictures and sound, which Tandem does not use. GGML_LLAMAFILE: see README.md, "What is built".
    # OpenMP and GGML_NATIVE stay on, as is the default.
    "cpu": ("-DLLAVA_BUILD=OFF", "-DGGML_LLAMAFILE=OFF"),
}
"""CMake arguments of each kind of engine."""

BYTES_PER_COMPILER: Final = 1 << 30
"""Free memory that there must be for each compiler process; a cautious round figure, not a measurement."""

LAST_LINES: Final = 25
"""How much of a failed tool's output is shown."""

_STEP: Final = re.compile(r"^\s*\[(\d+)/(\d+)\]")
_FULL_SONAME: Final = re.compile(r"\.so\.\d+\.\d+")


class BuildError(Exception):
    """A step failed. The text is for people: the tool's last lines, what could not be done, and where the log is."""


def sha256(path: Path) -> str:
    """The file's SHA-256, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def kept(folder: Path) -> Path | None:
    """The finished wheel in a folder of the cache; None when there is none or it is not the one that was written."""
    wheels = sorted(folder.glob("*.whl"))
    checksum = folder / "sha256"
    if len(wheels) != 1 or not checksum.is_file():
        return None
    return wheels[0] if checksum.read_text("ascii", "replace").strip() == sha256(wheels[0]) else None


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> dict[str, str]:
    """Name and features of the processor, which `-march=native` compiles for.

    Args:
        cpuinfo: The kernel's description; only its first processor is read.
    """
    wanted = {"model name": "name", "flags": "features", "Features": "features", "CPU part": "part"}
    found: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in cpuinfo.read_text("utf-8", "replace").partition("\n\n")[0].splitlines():
            label, _, value = line.partition(":")
            if label.strip() in wanted:
                words = value.split()
                found[wanted[label.strip()]] = " ".join(words if "name" in label else sorted(words))
    return found or {"name": platform.processor()}


def recipe(flavour: str) -> dict[str, object]:
    """All that decides what the compiler makes; the same recipe, the same wheel.

    Args:
        flavour: A key of `FLAVOURS`.
    """
    return {
        "revision": REVISION,
        "source": f"{PACKAGE}=={VERSION}",
        "source_sha256": SDIST_SHA256,
        "flavour": flavour,
        "cmake_args": list(FLAVOURS[flavour]),
        "cmake": (HERE / "engine.cmake").read_text("utf-8"),
        "environment": {name: os.environ.get(name, "") for name in ("CMAKE_ARGS", "CFLAGS", "CXXFLAGS")},
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "processor": processor(),
    }


def key(flavour: str) -> str:
    """The name of the wheel's folder in the cache: 20 hex digits of the recipe's SHA-256."""
    return hashlib.sha256(json.dumps(recipe(flavour), sort_keys=True).encode()).hexdigest()[:20]


def default_cache() -> Path:
    """Where finished engines are kept: `$XDG_CACHE_HOME/tandem/engine`, or the same under `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says that a relative path is to be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "tandem" / "engine"


def say(text: str) -> None:
    """Writes one line of progress to standard error."""
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def locked(path: Path, waiting: str) -> Iterator[None]:
    """Holds an exclusive lock on a file; the kernel lets go of it however the process ends.

    Args:
        path: The file, made if need be, never changed.
        waiting: Said when another process holds the lock.
    """
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(waiting)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def compilers() -> int:
    """How many compiler processes to run: one per allowed processor, fewer where memory is short."""
    allowed = len(os.sched_getaffinity(0))
    with contextlib.suppress(OSError):
        found = re.search(r"^MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text("ascii"), re.MULTILINE)
        if found:
            allowed = min(allowed, int(found[1]) * 1024 // BYTES_PER_COMPILER)
    return max(1, allowed)


def clean_environment() -> dict[str, str]:
    """This process's environment without what leads pip, Python or ninja (make's job server) astray."""
    dropped = {"PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_NO_BINARY"}
    dropped |= {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}


class Progress:
    """Shows ninja's `[done/all]` with the time so far: one moving line on a terminal, else a line every quarter."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._moving = sys.stderr.isatty()
        self._shown = 0

    def line(self, text: str) -> None:
        """Reads one line of the build's output."""
        step = _STEP.match(text)
        if not step:
            return
        done, total = int(step[1]), int(step[2])
        seconds = int(time.monotonic() - self._start)
        report = f"engine: compiled {done} of {total}, {seconds // 60}:{seconds % 60:02d} min"
        if self._moving:
            print(f"\r{report}", end="\n" if done == total else "", file=sys.stderr, flush=True)
        elif done * 4 // total > self._shown:
            self._shown = done * 4 // total
            say(report)


def run(
    command: Sequence[str | Path],
    environment: dict[str, str],
    log: Path,
    failure: str,
    progress: Progress | None = None,
) -> None:
    """Runs a command, appending all that it prints to `log`.

    Args:
        command: The program and its words.
        environment: Its whole environment.
        log: Takes the command line, its output and its errors.
        failure: What it means for people when the command fails, one sentence.
        progress: Reads the output line by line.

    Raises:
        BuildError: It did not exit with 0.
    """
    words = [str(word) for word in command]
    with log.open("a", encoding="utf-8") as out:
        out.write(f"$ {shlex.join(words)}\n")
        with Popen(
            words, env=environment, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, encoding="utf-8", errors="replace"
        ) as process:
            for line in process.stdout or ():
                out.write(line)
                if progress:
                    progress.line(line)
        code = process.returncode
    if code != 0:
        tail = "\n".join(log.read_text("utf-8").splitlines()[-LAST_LINES:])
        raise BuildError(f"{tail}\n\n{failure} {Path(words[0]).name} ended with {code}; the whole log: {log}")


def compile_wheel(flavour: str, work: Path, log: Path) -> Path:
    """Compiles the engine.

    Args:
        flavour: A key of `FLAVOURS`.
        work: An empty folder for the build tools and the wheel.
        log: Takes all that the tools print.

    Returns:
        The wheel as llama-cpp-python's own build makes it.

    Raises:
        BuildError: A tool failed.
    """
    environment = clean_environment()
    failure = "The engine could not be built."
    tools, out = work / "tools", work / "wheel"
    run([sys.executable, "-m", "venv", tools], environment, log, failure)
    python = tools / "bin" / "python"
    run([python, "-m", "pip", "install", "--require-hashes", "-r", HERE / "tools.txt"], environment, log, failure)
    source = work / "source.txt"
    source.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SDIST_SHA256}\n", "utf-8")
    # In the work folder its path has no space, which CMAKE_ARGS could not carry through every tool.
    include = shutil.copy(HERE / "engine.cmake", work)
    arguments = [*FLAVOURS[flavour], f"-DCMAKE_PROJECT_llama.cpp_INCLUDE={include}"]
    environment |= {
        "PATH": f"{tools / 'bin'}{os.pathsep}{environment.get('PATH', os.defpath)}",
        "CMAKE_ARGS": f"{environment.get('CMAKE_ARGS', '')} {shlex.join(arguments)}".strip(),
        "CMAKE_GENERATOR": "Ninja",
        "CMAKE_BUILD_PARALLEL_LEVEL": str(compilers()),
    }
    pip_wheel: list[str | Path] = [
        python,
        "-m",
        "pip",
        "wheel",
        "--verbose",
        "--no-deps",
        "--no-build-isolation",
        "--no-cache-dir",
    ]
    pip_wheel += ["--no-binary", PACKAGE, "--require-hashes", "-r", source, "--wheel-dir", out]
    run(pip_wheel, environment, log, failure, Progress())
    return next(out.glob("*.whl"))


def slim(wheel: Path, out: Path) -> Path:
    """Copies a wheel without what nothing reads, so that it installs faster and takes a third of the room.

    The build leaves headers, CMake files and a second set of the libraries beside the package, and each library under
    three names. A library is opened as `libX.so` and by the others as `libX.so.0`; `libX.so.0.1.2` is not used.

    Args:
        wheel: The wheel to copy.
        out: The folder for the copy, which keeps its name.

    Returns:
        The copy.
    """
    target = out / wheel.name
    record: list[str] = []
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        listing = next(name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        for info in old.infolist():
            top = info.filename.partition("/")[0]
            needed = top == "llama_cpp" or top.endswith(".dist-info")
            if not needed or info.filename == listing or info.is_dir() or _FULL_SONAME.search(info.filename):
                continue
            data = old.read(info)
            digest = urlsafe_b64encode(hashlib.sha256(data).digest()).decode("ascii").rstrip("=")
            record.append(f"{info.filename},sha256={digest},{len(data)}")
            new.writestr(info, data, zipfile.ZIP_DEFLATED)
        new.writestr(listing, "\n".join([*record, f"{listing},,", ""]))
    return target


def keep(flavour: str, wheel: Path, folder: Path) -> Path:
    """Puts a finished wheel into the cache in one step: a folder of that name is always whole.

    Args:
        flavour: The recipe to write beside it.
        wheel: The wheel to slim and keep.
        folder: Where it is to be; replaced if it is there.

    Returns:
        The kept wheel.
    """
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        slimmed = slim(wheel, staging)
        (staging / "sha256").write_text(sha256(slimmed) + "\n", "ascii")
        (staging / "recipe.json").write_text(json.dumps(recipe(flavour), indent=2) + "\n", "utf-8")
        staging.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        staging.rename(folder)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return folder / slimmed.name


def build(flavour: str, cache: Path, rebuild: bool = False) -> Path:
    """Gives the engine's wheel: the kept one where it is whole, else a new one.

    Args:
        flavour: A key of `FLAVOURS`.
        cache: The folder that keeps finished engines.
        rebuild: Compile even if there is a kept one.

    Returns:
        The wheel's path.

    Raises:
        BuildError: A tool failed, or the cache cannot be written.
    """
    folder = cache / key(flavour)
    if not rebuild and (wheel := kept(folder)):
        return wheel
    lock = cache / f"{folder.name}.lock"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with (
            locked(lock, "engine: another set-up is building it; waiting"),
            tempfile.TemporaryDirectory(prefix="tandem-engine-") as work,
        ):
            if not rebuild and (wheel := kept(folder)):
                return wheel
            say("engine: building it from source, 3 to 5 minutes on two cores; once for this machine")
            log = cache / f"{folder.name}.log"
            log.unlink(missing_ok=True)
            wheel = keep(flavour, compile_wheel(flavour, Path(work), log), folder)
            log.unlink(missing_ok=True)
            return wheel
    except OSError as error:
        raise BuildError(
            f"The engine could not be kept: {error}. Make room, or set XDG_CACHE_HOME to a folder."
        ) from error


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; see the module.

    Args:
        arguments: The words after the program's name; the process's own when None.

    Returns:
        0 with the wheel's path printed; 1 when it could not be built, or, with `--cached-only`, is not kept.
    """
    parser = argparse.ArgumentParser(description="Build the engine's wheel, or find it in the cache.")
    parser.add_argument("--flavour", choices=sorted(FLAVOURS), default="cpu")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="folder that keeps finished engines")
    parser.add_argument("--rebuild", action="store_true", help="compile even if there is a kept one")
    parser.add_argument("--cached-only", action="store_true", help="never compile; exit 1 if there is no kept one")
    options = parser.parse_args(arguments)
    if options.cached_only:
        wheel = kept(options.cache / key(options.flavour))
        if wheel is None:
            return 1
    else:
        try:
            wheel = build(options.flavour, options.cache, options.rebuild)
        except BuildError as error:
            say(str(error))
            return 1
        except KeyboardInterrupt:
            say("engine: interrupted")
            return 130
    print(wheel)
    return 0


if __name__ == "__main__":
    sys.exit(main())
