"""The command `tandem` with arguments, or without a screen: the app's jobs in a terminal.

Exit codes, for scripts: 0 done; 2 wrong use; 3 a model or pair problem, so also "they are not a pair", a pair that is
not installed, and a file that is not what it should be, here or at the Hub; 4 the engine died; 5 a file could not be
fetched or kept: the network or the disk. A download or a check that is stopped by Ctrl-C ends with 130, by a polite
kill with 143, as shells count; what it has is kept.
Errors are one sentence and a remedy on stderr. Nothing here computes: it reads flags and hands over to `terminal`,
`terminal_models` and `doctor`; the commands under `tandem models` are in `cli_models`.
"""

from __future__ import annotations

import io
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, get_args

import click
import msgspec

import tandem
from tandem import doctor as doctor_job
from tandem import paths
from tandem.cli_models import catalog_option, models, pair_named
from tandem.engine.draft_length import draft_length
from tandem.engine.messages import Message, clean
from tandem.engine.params import SamplingParams
from tandem.engine.protocol import Generate, KvType, Load, Method
from tandem.errors import TandemError, UsageError
from tandem.terminal import ChatJob, answer_once, complain, converse, reader_may_go

DEFAULT_DRAFT: Final = "3"
"""llama.cpp's own default length; which one is best here is measured in another place."""

DEMO: Final = "demo"
"""The built-in pair's name."""

_FILE: Final = click.Path(path_type=Path)


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tandem.__version__, prog_name="Tandem")
@click.pass_context
def command(context: click.Context) -> None:
    """Gemma 4 with its drafter, fast and offline on this machine.

    Without a command it opens the window, or chats here where there is no screen.
    """
    if context.invoked_subcommand is None:
        context.invoke(chat)


@command.command(short_help="Chat with a pair, or get one answer.")
@click.option("--pair", metavar="demo|KEY", help="The built-in demo (the default), or an installed pair such as e2b.")
@click.option("--target", type=_FILE, help="The target's GGUF file.")
@click.option("--drafter", type=_FILE, help="The drafter's GGUF file.")
@click.option("--method", type=click.Choice(["mtp", "ngram", "draft-model"]), default="mtp", help="Who drafts.")
@click.option("--draft", default=DEFAULT_DRAFT, metavar="off|N|auto", help="Draft length; default 3.")
@click.option("--prompt", metavar="TEXT|-", help="Answer this and end; - reads it from standard input.")
@click.option("--system", metavar="TEXT", help="The system message.")
@click.option("--raw", is_flag=True, help="The prompt goes to the model as it is, without the chat template.")
@click.option("--tokens", type=_FILE, metavar="FILE", help="A JSON list of token ids as the prompt.")
@click.option("--thinking", type=click.Choice(["on", "off"]), default="off", help="Ask for a thought first.")
@click.option("--max-tokens", type=click.IntRange(0), metavar="N", help="Most tokens of the answer.")
@click.option("--ignore-eos", is_flag=True, help="Do not end at an end of turn; for measuring.")
@click.option("--temperature", type=float, default=1.0, metavar="F", help="0 always takes the likeliest token.")
@click.option("--top-p", type=float, default=0.95, metavar="F")
@click.option("--top-k", type=int, default=64, metavar="N")
@click.option("--min-p", type=float, default=0.0, metavar="F")
@click.option("--seed", type=int, metavar="N", help="The same seed gives the same text.")
@click.option("--context", type=int, metavar="N", help="Tokens the conversation may hold.")
@click.option("--kv-type", type=click.Choice(get_args(KvType)), default="f16", help="KV cache; q8_0 takes half.")
@click.option("--threads", type=click.IntRange(1), metavar="N", help="Default: the fastest in a short timing.")
@click.option("--device", metavar="NAME", help="A device that `tandem doctor` lists.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@catalog_option
def chat(**flags: Any) -> None:
    """Chat with a pair; without --prompt or --tokens it is a conversation."""
    job = _job(flags)
    once = flags["prompt"] is not None or flags["tokens"] is not None
    if not once and flags["as_json"]:
        raise UsageError("--json needs a prompt.", "Add --prompt TEXT, --prompt - or --tokens FILE.")
    with reader_may_go():
        sys.exit(answer_once(job, _prompt(flags, job.template), flags["as_json"]) if once else converse(job))


command.add_command(models)


@command.command(short_help="What this machine and this build can do.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def doctor(as_json: bool) -> None:
    """What this machine and this build can do, with a self-test of ten seconds at most."""
    with reader_may_go():
        sys.exit(doctor_job.run(as_json))


def main(arguments: list[str] | None = None) -> int:
    """Entry point of the console script; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # an answer may hold any character, whatever the locale
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        command.main(arguments, prog_name="tandem", standalone_mode=False)
    except TandemError as error:
        return complain(error)
    except click.ClickException as error:
        print(f"tandem: {error.format_message()}", file=sys.stderr)
        asked = getattr(error, "ctx", None)  # where in the command line it went wrong
        print(f"See: {asked.command_path if asked is not None else 'tandem'} --help", file=sys.stderr)
        return UsageError.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 0
    except Exception:  # a fault of ours: nobody wants to read a traceback, and everybody should be able to send one
        return complain(_own_fault())
    return 0


def _own_fault() -> TandemError:
    details = traceback.format_exc()
    remedy = "Try again."
    with suppress(OSError, TandemError):
        file = paths.log_dir() / "tandem-fault.log"
        file.write_text(details, encoding="utf-8")
        remedy = f"Try again, and report it with {file}."
    return TandemError("Tandem met a fault of its own.", remedy, details)


def _job(flags: dict[str, Any]) -> ChatJob:
    method: Method = flags["method"]
    target, drafter = flags["target"], flags["drafter"]
    if target is not None and flags["pair"] is not None:
        raise UsageError("Both --pair and --target are given.", "Give one of them.")
    if target is None and drafter is not None and method != "draft-model":
        raise UsageError("--drafter is given without --target.", "Give both files.")
    if target is None:
        named = flags["pair"] or DEMO
        target, own_drafter = paths.demo_pair() if named == DEMO else pair_named(named, flags["catalog"])
        drafter = drafter or (own_drafter if method == "mtp" else None)
    if method == "draft-model" and drafter is None:
        raise UsageError("The method draft-model needs a model to draft with.", "Give it with --drafter FILE.")
    if method == "ngram":
        drafter = None
    sampling = SamplingParams(
        temperature=flags["temperature"],
        top_k=flags["top_k"],
        top_p=flags["top_p"],
        min_p=flags["min_p"],
        seed=flags["seed"],
    )
    sampling.check()
    draft_length(flags["draft"])  # nothing is loaded for a length that makes no sense
    if flags["raw"] and flags["prompt"] is None and flags["tokens"] is None:
        raise UsageError("--raw needs a prompt.", "Add --prompt TEXT, --prompt - or --tokens FILE.")
    if flags["system"] and (flags["raw"] or flags["tokens"] is not None):
        raise UsageError("A system message needs the chat template.", "Leave out --system, or --raw and --tokens.")
    if flags["tokens"] is not None and flags["prompt"] is not None:
        raise UsageError("Both --prompt and --tokens are given.", "Give one of them.")
    return ChatJob(
        load=Load(
            id=0,
            target=bytes(target),
            drafter=None if drafter is None else bytes(drafter),
            method=method,
            context=flags["context"],
            kv_type=flags["kv_type"],
            threads=flags["threads"],
            device=flags["device"],
            need_drafter=True,
        ),
        template=Generate(
            id=0,
            thinking=flags["thinking"] == "on",
            draft=flags["draft"],
            sampling=sampling,
            max_tokens=flags["max_tokens"],
            ignore_eos=flags["ignore_eos"],
        ),
        system=clean(flags["system"]) if flags["system"] else None,
    )


def _prompt(flags: dict[str, Any], template: Generate) -> Generate:
    """The request of a single answer."""
    if flags["tokens"] is not None:
        return msgspec.structs.replace(template, tokens=_read_tokens(flags["tokens"]))
    text = flags["prompt"]
    if text == "-":
        if sys.stdin is None:  # it was closed by whoever started us
            raise UsageError("There is no standard input to read the prompt from.", "Give it with --prompt TEXT.")
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    text = clean(text)
    if not text.strip():
        raise UsageError("The prompt is empty.", "Write something to answer.")
    if flags["raw"]:
        return msgspec.structs.replace(template, prompt=text)
    system = [Message("system", clean(flags["system"]))] if flags["system"] else []
    return msgspec.structs.replace(template, messages=(*system, Message("user", text)))


def _read_tokens(path: Path) -> tuple[int, ...]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=tuple[int, ...])
    except OSError as error:
        raise UsageError(f"{path} cannot be read.", "Check the name.", str(error)) from error
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path} is not a JSON list of token ids.", "Write it like [2, 105, 2364].") from error
