"""Tandem's engine against llama.cpp's own server: decode speed on the same files, threads, context, draft length.

    python tests/perf/bench_server.py [--shape e2b] [--draft 0 3] [--repeats 5]

makes the pair and builds the server when the cache has them not (see `make_pair` and `llama_server`). The two take
turns (server, Tandem, server, Tandem, ...) so that a change of the machine's speed meets both. One server stays up
for a draft length, idle while Tandem runs; every Tandem run is a process of its own, `tandem chat --json`.

Decode tok/s is (generated - 1) / (time from first to last token) on both sides: `stats.decode_tok_s` of Tandem, and
`timings` of the server, whose clock starts once the first token has been sampled and stops at the last. The
tokens of both must be the same; if not, the run ends with an error, since then the work was not the same.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import _path  # noqa: F401  (first: it makes the packages below importable)
from llama_server import Server, build, serve
from make_pair import SHAPES, get_pair, prompt

_DESKTOP = Path(__file__).resolve().parents[2] / "desktop"


@dataclass(frozen=True)
class Setting:
    """What both sides are given.

    Attributes:
        target: GGUF of the target.
        drafter: GGUF of the drafter.
        draft: Draft length, 0 for none.
        threads: Threads.
        context: Context in tokens.
        prompt: Token ids.
        count: Tokens to generate.
    """

    target: Path
    drafter: Path
    draft: int
    threads: int
    context: int
    prompt: Sequence[int]
    count: int


@dataclass(frozen=True)
class Measured:
    """One run.

    Attributes:
        tok_s: Decode speed, tokens a second.
        tokens: Token ids said.
        verified: Drafts verified.
        accepted: Drafts accepted.
    """

    tok_s: float
    tokens: Sequence[int]
    verified: int
    accepted: int


def run_server(server: Server, setting: Setting) -> Measured:
    """One completion of a running server."""
    answer = server.complete(setting.prompt, setting.count)
    return Measured(answer.decode_tok_s, answer.tokens, answer.drafted, answer.accepted)


def run_tandem(command: Sequence[str], setting: Setting, environment: Mapping[str, str]) -> Measured:
    """One run of `tandem chat`.

    Args:
        command: How to call `tandem`.
        setting: What to run.
        environment: Variables to set for it.

    Raises:
        SystemExit: It failed; its own words follow.
    """
    with tempfile.TemporaryDirectory() as scratch:
        tokens = Path(scratch) / "prompt.json"
        tokens.write_text(json.dumps(list(setting.prompt)))
        call = [*command, "chat", "--target", str(setting.target), "--json", "--tokens", str(tokens)]
        if setting.draft:
            call += ["--drafter", str(setting.drafter)]
        call += ["--draft", str(setting.draft) if setting.draft else "off"]
        call += ["--max-tokens", str(setting.count), "--ignore-eos", "--temperature", "0"]
        call += ["--threads", str(setting.threads), "--context", str(setting.context)]
        done = subprocess.run(call, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(call)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    answer = json.loads(done.stdout)
    stats = answer["stats"]
    return Measured(float(stats["decode_tok_s"]), answer["tokens"], int(stats["verified"]), int(stats["accepted"]))


def compare(
    setting: Setting, binary: Path, command: Sequence[str], repeats: int, environments: tuple[dict[str, str], ...]
) -> dict[str, float]:
    """Runs both in turns and prints a line for each turn.

    Args:
        setting: What to run.
        binary: The server.
        command: How to call `tandem`.
        repeats: Turns.
        environments: Variables for the server, and for Tandem.

    Returns:
        Medians in tok/s (`server`, `tandem`), `ratio` of the medians and `paired`, the median of the turns' ratios.

    Raises:
        SystemExit: The two said different tokens.
    """
    server_speeds: list[float] = []
    tandem_speeds: list[float] = []
    drafter = setting.drafter if setting.draft else None
    with serve(
        binary,
        setting.target,
        drafter,
        draft=setting.draft,
        threads=setting.threads,
        context=setting.context,
        environment=environments[0],
    ) as server:
        run_server(server, setting)  # the first request touches every page of the file
        for turn in range(repeats):
            theirs = run_server(server, setting)
            ours = run_tandem(command, setting, environments[1])
            if list(ours.tokens) != list(theirs.tokens):
                sys.exit(f"Different tokens at draft length {setting.draft}: the two did not do the same work.")
            server_speeds.append(theirs.tok_s)
            tandem_speeds.append(ours.tok_s)
            print(
                f"draft {setting.draft} turn {turn + 1}: "
                f"server {theirs.tok_s:6.2f} ({theirs.accepted}/{theirs.verified})  "
                f"tandem {ours.tok_s:6.2f} ({ours.accepted}/{ours.verified})  ratio {ours.tok_s / theirs.tok_s:.3f}",
                flush=True,
            )
    return {
        "draft": setting.draft,
        "server": median(server_speeds),
        "tandem": median(tandem_speeds),
        "ratio": median(tandem_speeds) / median(server_speeds),
        "paired": median(ours / theirs for ours, theirs in zip(tandem_speeds, server_speeds, strict=True)),
    }


def _variables(given: Sequence[str]) -> dict[str, str]:
    return dict(item.split("=", 1) for item in given)


def main() -> None:
    """Runs the comparison and prints medians and ratios."""
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parser = argparse.ArgumentParser(description="Tandem's decode speed against llama-server's on the same files.")
    parser.add_argument("--shape", choices=SHAPES, default="e2b", help="sizes of the hand-set pair")
    parser.add_argument("--share", type=float, default=0.7, help="share of right guesses")
    parser.add_argument("--target", type=Path, help="another target, with --drafter, instead of a hand-set pair")
    parser.add_argument("--drafter", type=Path)
    parser.add_argument("--draft", type=int, nargs="+", default=[0, 3], help="draft lengths, 0 for none")
    parser.add_argument("--repeats", type=int, default=5, help="turns at each draft length")
    parser.add_argument("--threads", type=int, default=threads)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=128, help="tokens to generate")
    parser.add_argument("--sdist", type=Path, help="see llama_server.py")
    parser.add_argument("--tandem", default=shlex.join([sys.executable, "-m", "tandem"]), help="how to call tandem")
    parser.add_argument("--server-env", nargs="*", default=[], metavar="NAME=VALUE", help="as OMP_WAIT_POLICY=PASSIVE")
    parser.add_argument("--tandem-env", nargs="*", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    if (options.target is None) != (options.drafter is None):
        parser.error("--target and --drafter go together")

    binary = build(options.sdist)
    if options.target is None:
        target, drafter = get_pair(SHAPES[options.shape], options.share)
    else:
        target, drafter = options.target, options.drafter
    tandem_env = {"PYTHONPATH": str(_DESKTOP), **_variables(options.tandem_env)}
    environments = (_variables(options.server_env), tandem_env)
    results = []
    for draft in options.draft:
        ids = prompt(options.prompt_tokens)
        setting = Setting(target, drafter, draft, options.threads, options.context, ids, options.tokens)
        results.append(compare(setting, binary, shlex.split(options.tandem), options.repeats, environments))
    print("draft  server tok/s  tandem tok/s  ratio of medians  median ratio of turns")
    for result in results:
        print("{draft:5}  {server:12.2f}  {tandem:12.2f}  {ratio:16.3f}  {paired:21.3f}".format_map(result))


if __name__ == "__main__":
    main()
