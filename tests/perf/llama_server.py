"""Builds and runs llama.cpp's own `llama-server`, from the very sources that the engine's wheel was built from.

Run it by hand to build the server once into the user's cache (some 5 to 10 minutes on two cores)::

    python tests/perf/llama_server.py [--sdist llama_cpp_python-X.tar.gz]

Without `--sdist` (or the environment variable `TANDEM_SDIST`) the source distribution of the installed
llama-cpp-python is fetched with `pip download`. The compile options are those of the wheel: Release,
`GGML_NATIVE` and OpenMP on, shared libraries. `CMAKE_C_COMPILER_LAUNCHER`, `CMAKE_CXX_COMPILER_LAUNCHER` and
`CCACHE_DIR` of the caller are honoured, as CMake and ccache read them from the environment.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.metadata
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import _path  # noqa: F401  (first: it makes `tandem` importable)

from tandem import paths

OPTIONS: Sequence[str] = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=ON",
    "-DGGML_NATIVE=ON",
    "-DGGML_OPENMP=ON",
    "-DLLAMA_CURL=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_COMMON=ON",
    "-DLLAMA_BUILD_TOOLS=ON",
    "-DLLAMA_BUILD_SERVER=ON",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
)
"""CMake options: those of the wheel, and of the tools nothing but the server (without its web page)."""


def cache_folder() -> Path:
    """The folder for everything big that benchmarks make, in the user's cache; made on demand, safe to delete."""
    folder = paths.cache_dir() / "perf"
    folder.mkdir(exist_ok=True)
    return folder


def _sdist(given: Path | None, scratch: Path) -> Path:
    """The source archive: as given, from `TANDEM_SDIST`, or downloaded at the installed version."""
    chosen = given or (Path(os.environ["TANDEM_SDIST"]) if "TANDEM_SDIST" in os.environ else None)
    if chosen is not None:
        return chosen
    wanted = f"llama-cpp-python=={importlib.metadata.version('llama-cpp-python')}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "-d", str(scratch), wanted]
    subprocess.run(command, check=True)
    return next(scratch.glob("llama_cpp_python-*.tar.gz"))


def _extract(archive: Path, folder: Path) -> Path:
    """Unpacks llama.cpp out of the source distribution.

    Returns:
        The folder `vendor/llama.cpp` below `folder`.
    """
    with tarfile.open(archive) as tar:
        members = [member for member in tar.getmembers() if "/vendor/llama.cpp/" in member.name]
        tar.extractall(folder, members=members, filter="data")
    return next(folder.glob("*/vendor/llama.cpp"))


def build(sdist: Path | None = None, jobs: int = 2) -> Path:
    """The path of `llama-server`, built first where the cache does not have it.

    Args:
        sdist: llama-cpp-python's source archive; without it `TANDEM_SDIST`, else `pip download`.
        jobs: Compilers to run at once.

    Raises:
        subprocess.CalledProcessError: CMake or the compiler failed; their output went to stderr.
    """
    version = importlib.metadata.version("llama-cpp-python")
    key = hashlib.sha256("\n".join([version, *OPTIONS]).encode()).hexdigest()[:12]
    folder = cache_folder() / f"llama-server-{version}-{key}"
    binary = folder / "bin" / ("llama-server.exe" if os.name == "nt" else "llama-server")
    if binary.exists():
        return binary
    with tempfile.TemporaryDirectory(dir=cache_folder()) as scratch:
        source = _extract(_sdist(sdist, Path(scratch)), Path(scratch))
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        tree = Path(scratch) / "build"
        configure = ["cmake", "-S", str(source), "-B", str(tree), *generator, *OPTIONS]
        make = ["cmake", "--build", str(tree), "--config", "Release", "--target", "llama-server", "-j", str(jobs)]
        for command in (configure, make):
            subprocess.run(command, check=True, stdout=sys.stderr)
        # The libraries lie beside the server and are found through LD_LIBRARY_PATH (see `serve`); renaming last
        # means that a build that was broken off leaves nothing behind that looks finished.
        staged = Path(scratch) / "staged"
        shutil.copytree(tree / "bin", staged / "bin", symlinks=True)
        staged.rename(folder)
    return binary


@dataclass(frozen=True)
class Completion:
    """One answer of the server.

    Attributes:
        tokens: Token ids of the answer.
        generated: Number of tokens that the server counts (`timings.predicted_n`).
        decode_s: Seconds from the first token to the last (`timings.predicted_ms`, see `decode_tok_s`).
        drafted: Drafts made, accepted or not (`timings.draft_n`); 0 without a drafter.
        accepted: Drafts accepted (`timings.draft_n_accepted`).
        prompt_tokens: Prompt tokens that were really processed (`timings.prompt_n`).
        prefill_s: Seconds for them (`timings.prompt_ms`).
    """

    tokens: tuple[int, ...]
    generated: int
    decode_s: float
    drafted: int
    accepted: int
    prompt_tokens: int
    prefill_s: float

    @property
    def decode_tok_s(self) -> float:
        """Decode speed as Tandem defines it: (generated - 1) / time from first to last token.

        The server starts its decode clock when the first token has been sampled and reads it at the last, so its
        `predicted_ms` is that very time (server_slot_stats in tools/server/server-common.h). In this version its
        own `predicted_per_second` is the same quotient; earlier ones divided `generated` by it.
        """
        return (self.generated - 1) / self.decode_s


class Server:
    """A running `llama-server`, see `serve`."""

    def __init__(self, port: int, process: subprocess.Popen[bytes], log: Path) -> None:
        self._port = port
        self._process = process
        self._log = log

    def _call(self, path: str, body: Mapping[str, object] | None, timeout_s: float) -> dict[str, object]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=timeout_s) as response:
            answer = json.load(response)
        assert isinstance(answer, dict)
        return answer

    def wait(self, timeout_s: float = 120.0) -> None:
        """Waits until the models are loaded.

        Raises:
            RuntimeError: The server ended, or is not ready after `timeout_s` seconds; ends of its log included.
        """
        end = time.monotonic() + timeout_s
        while time.monotonic() < end and self._process.poll() is None:
            with contextlib.suppress(OSError, urllib.error.URLError):
                self._call("/health", None, 2.0)
                return
            time.sleep(0.1)
        raise RuntimeError(f"llama-server did not come up:\n{self._log.read_text(errors='replace')[-3000:]}")

    def complete(self, prompt: Sequence[int], count: int, timeout_s: float = 600.0) -> Completion:
        """Greedy completion of `count` tokens, end-of-generation tokens ignored, nothing reused from before.

        Args:
            prompt: Token ids.
            count: Tokens to generate.
            timeout_s: Seconds after which to give up.
        """
        body = {
            "prompt": list(prompt),
            "n_predict": count,
            "temperature": 0.0,
            # One sampler instead of the server's whole chain: at temperature 0 they cannot change the token, and
            # each would cost the server time on a row of the vocabulary that Tandem does not spend.
            "samplers": ["temperature"],
            "ignore_eos": True,
            "cache_prompt": False,
            "return_tokens": True,
        }
        answer = self._call("/completion", body, timeout_s)
        times = answer["timings"]
        tokens = answer["tokens"]
        assert isinstance(times, dict)
        assert isinstance(tokens, list)
        return Completion(
            tokens=tuple(tokens),
            generated=int(times["predicted_n"]),
            decode_s=float(times["predicted_ms"]) / 1000.0,
            drafted=int(times.get("draft_n", 0)),
            accepted=int(times.get("draft_n_accepted", 0)),
            prompt_tokens=int(times["prompt_n"]),
            prefill_s=float(times["prompt_ms"]) / 1000.0,
        )


@contextlib.contextmanager
def serve(
    binary: Path,
    target: Path,
    drafter: Path | None,
    *,
    draft: int,
    threads: int,
    context: int,
    extra: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Runs `llama-server` with one slot and gives it back ready.

    Args:
        binary: What `build` returned.
        target: GGUF of the target.
        drafter: GGUF of the drafter; None, or `draft` 0, for plain decoding.
        draft: Draft length (`--spec-draft-n-max`).
        threads: Threads for target and drafter, prefill and decode alike.
        context: Context length in tokens.
        extra: More arguments for the server.
        environment: Variables to set for it, such as `OMP_WAIT_POLICY`.

    Raises:
        RuntimeError: It did not come up; the message has the end of its log.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [str(binary), "-m", str(target), "--host", "127.0.0.1", "--port", str(port), "-np", "1"]
    command += ["-t", str(threads), "-tb", str(threads), "-c", str(context), "--offline", "--no-ui", "-cram", "0"]
    # Checkpoints are for chats; in a timed single request they would only cost the server time.
    command += ["-ctxcp", "0", *extra]
    if drafter is not None and draft > 0:
        command += ["--spec-type", "draft-mtp", "-md", str(drafter), "--spec-draft-n-max", str(draft)]
        command += ["-td", str(threads), "-tbd", str(threads)]
    variables = {**os.environ, **(environment or {})}
    variables["LD_LIBRARY_PATH"] = os.pathsep.join(
        filter(None, [str(binary.parent), variables.get("LD_LIBRARY_PATH", "")])
    )
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "server.log"
        with log.open("wb") as sink:
            process = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT, env=variables)
            try:
                server = Server(port, process, log)
                server.wait()
                yield server
            finally:
                process.terminate()
                try:
                    process.wait(10.0)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def main() -> None:
    """Builds the server and prints where it is."""
    parser = argparse.ArgumentParser(description="Build llama.cpp's llama-server into the user's cache.")
    parser.add_argument("--sdist", type=Path, help="llama-cpp-python's source archive (else TANDEM_SDIST, else pip)")
    parser.add_argument("--jobs", type=int, default=2, help="compilers to run at once")
    options = parser.parse_args()
    print(build(options.sdist, options.jobs))


if __name__ == "__main__":
    main()
