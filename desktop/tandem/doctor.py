"""`tandem doctor`: what this machine and this build can do."""

from __future__ import annotations

import platform
import sys
import time
from typing import Any, Final

import cpuinfo
import msgspec
import psutil

import tandem
from tandem import paths
from tandem.engine.client import EngineClient
from tandem.engine.messages import Message
from tandem.engine.params import SamplingParams
from tandem.engine.protocol import Done, Generate, Hello, Load, Loaded, Pass
from tandem.errors import EngineError, TandemError

_QUESTION: Final = "Tell me a short story about a fox."
_LENGTHS: Final = ("off", "3")
_FLAGS: Final = ("avx", "avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "asimd", "sve")


def run(as_json: bool) -> int:
    """Prints the report; returns 0 when everything works, else the exit code of what does not."""
    report, problem = examine()
    if as_json:
        print(msgspec.json.encode(report).decode())
    else:
        _print(report)
    if problem is not None:
        print(f"tandem: {problem.sentence}\n{problem.remedy}", file=sys.stderr)
        return problem.exit_code
    return 0


def examine() -> tuple[dict[str, Any], TandemError | None]:
    """Gathers the report; a failing engine is part of it."""
    processor = cpuinfo.get_cpu_info()
    memory = psutil.virtual_memory()
    report: dict[str, Any] = {
        "tandem": tandem.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpu": {
            "name": processor.get("brand_raw", platform.processor()),
            "cores": psutil.cpu_count(logical=False),
            "threads": psutil.cpu_count(),
            "instructions": [flag for flag in _FLAGS if flag in processor.get("flags", [])],
        },
        "memory": {"total": memory.total, "free": memory.available},
        "engine": None,
        "self_test": None,
    }
    try:
        with EngineClient(paths.log_dir()) as engine:
            report["engine"] = _engine(engine.hello)
            report["self_test"] = _self_test(engine)
            if not report["self_test"]["same_text"] or report["self_test"]["drafter"] != "on":
                raise EngineError("The self-test failed.", "Install Tandem again; if it comes back, report this.")
    except TandemError as error:
        report["problem"] = {"sentence": error.sentence, "remedy": error.remedy}
        return report, error
    return report, None


def _engine(hello: Hello | None) -> dict[str, Any]:
    assert hello is not None
    return {
        "llama_cpp_python": hello.llama_cpp_python,
        "llama_cpp": hello.llama_cpp,
        "symbols": "complete",  # an engine that lacks one does not come up
        "cpus_allowed": hello.cpus,
        "devices": hello.devices,
    }


def _self_test(engine: EngineClient) -> dict[str, Any]:
    """The demo pair with and without its drafter, greedy: the texts must be the same."""
    began = time.monotonic()
    target, drafter = paths.demo_pair()
    loaded: Loaded = engine.load(Load(id=engine.next_id(), target=bytes(target), drafter=bytes(drafter)))
    runs, texts = {}, []
    for length in _LENGTHS:
        request = Generate(
            id=engine.next_id(),
            messages=(Message("user", _QUESTION),),
            draft=length,
            sampling=SamplingParams(temperature=0.0),
            max_tokens=128,
            reuse=False,
        )
        text = ""
        for event in engine.generate(request):
            if isinstance(event, Pass | Done):
                text += "".join(piece.text for piece in event.text)
            if isinstance(event, Done):
                runs[length] = {
                    "decode_tok_s": event.stats.decode_tok_s,
                    "tokens_per_pass": event.stats.tokens_per_pass,
                    "acceptance_rate": event.stats.acceptance_rate,
                    "verified": event.stats.verified,
                }
        texts.append(text)
    return {
        "same_text": texts[0] == texts[1] and bool(texts[0]),
        "drafter": "on" if runs["3"]["verified"] else "off",
        "drafter_problem": loaded.problem.reason if loaded.problem else None,
        "threads": loaded.threads,
        "runs": runs,
        "seconds": round(time.monotonic() - began, 2),
    }


def _print(report: dict[str, Any]) -> None:
    cpu, memory, engine, test = report["cpu"], report["memory"], report["engine"], report["self_test"]
    print(f"Tandem        {report['tandem']} · Python {report['python']} · {report['system']}")
    print(f"CPU           {cpu['name']} · {cpu['cores']} cores · {cpu['threads']} threads")
    print(f"Instructions  {' '.join(cpu['instructions']) or 'none of those the engine looks for'}")
    print(f"Memory        {memory['free'] / 2**30:.1f} GiB free of {memory['total'] / 2**30:.1f} GiB")
    if engine is None:
        print("Engine        does not start")
        return
    print(f"Engine        llama-cpp-python {engine['llama_cpp_python']} · llama.cpp {engine['llama_cpp']} · complete")
    for device in engine["devices"]:
        free, total = device.free / 2**30, device.total / 2**30
        print(
            f"Device        {device.name} · {device.kind} · {device.description} · {free:.1f} of {total:.1f} GiB free"
        )
    if test is None:
        print("Self-test     failed")
        return
    for length, figures in test["runs"].items():
        rate = f" · {figures['acceptance_rate']:.0%} accepted" if figures["acceptance_rate"] is not None else ""
        print(f"Self-test     draft {length:>3}: {figures['decode_tok_s'] or 0:,.0f} tok/s{rate}")
    same = "same text with and without the drafter" if test["same_text"] else "the texts with and without differ"
    problem = f" · drafter failed: {test['drafter_problem']}" if test["drafter_problem"] else ""
    print(f"              drafter {test['drafter']} · {same} · {test['seconds']} s{problem}")
