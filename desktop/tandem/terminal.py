"""Chatting in a terminal: one answer, or a conversation."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.markup import escape

import tandem
from tandem import paths
from tandem.engine.client import EngineClient, RequestStopped
from tandem.engine.draft_length import draft_length
from tandem.engine.messages import Message, clean
from tandem.engine.metrics import RunStats
from tandem.engine.protocol import Done, Generate, Load, Loaded, Pass, Progress, Text
from tandem.errors import EngineDied, EngineError, TandemError, UsageError
from tandem.terminal_errors import remedy

with suppress(ImportError):  # gives input() line editing, a history and lines of any length, where there is one
    importlib.import_module("readline")

_HELP = """Type a message and press Enter. Ctrl-C stops an answer, Ctrl-D leaves.
/new  a new conversation        /draft off|N  how far to draft
/thinking on|off                /help  this text        /quit  leave"""


@dataclass(frozen=True)
class ChatJob:
    """What to load and how to ask.

    Attributes:
        load: The pair.
        template: A request without a prompt; each answer is a copy with one.
        system: The system message.
    """

    load: Load
    template: Generate
    system: str | None


class Answer:
    """Collects one answer from its events."""

    def __init__(self) -> None:
        self.texts = {"thought": "", "answer": ""}
        self.tokens: list[int] = []
        self.drafted: list[bool] = []
        self.accepted: list[bool] = []
        self.done: Done | None = None
        self.stopped = False
        """Whether it was stopped before it began, and so ends without `Done`."""
        self._counted = RunStats()

    def add(self, event: Pass | Done) -> tuple[Text, ...]:
        """Takes an event; returns its new text."""
        if isinstance(event, Done):
            self.done = event
        else:
            self.tokens += event.tokens
            self.drafted += event.drafted
            self.accepted += event.accepted
            self._count(event)
        for piece in event.text:
            self.texts[piece.channel] += piece.text
        return event.text

    def _count(self, event: Pass) -> None:
        """Keeps figures for the case that the engine dies and cannot send its own, which know more."""
        self._counted.count_pass(
            tokens=len(event.tokens),
            judged=len(event.confidences),
            accepted=sum(event.accepted),
            seconds=event.draft_s + event.verify_s if self._counted.passes else 0.0,
            draft_s=event.draft_s,
            verify_s=event.verify_s,
            thought=bool(event.text) and event.text[0].channel == "thought",
        )

    def _stats(self) -> RunStats:
        if self.done is not None:
            return self.done.stats
        self._counted.finish()
        return self._counted

    def as_json(self, loaded: Loaded | None, engine: EngineClient, draft: str) -> dict[str, Any]:
        """The object that `--json` prints; see the README."""
        done, hello = self.done, engine.hello
        return {
            "text": self.texts["answer"],
            "thought": self.texts["thought"],
            "tokens": self.tokens,
            "drafted": self.drafted,
            "accepted": self.accepted,
            "stop": done.stop if done else "stopped" if self.stopped else "error",
            "stats": self._stats(),
            "engine": {
                "version": tandem.__version__,
                "llama_cpp": hello.llama_cpp if hello else None,
                "llama_cpp_python": hello.llama_cpp_python if hello else None,
                "method": loaded.method if loaded else None,
                "draft": done.draft if done else draft,
                "threads": loaded.threads if loaded else None,
                "context": loaded.context if loaded else None,
                "kv_type": loaded.kv_type if loaded else None,
                "device": loaded.device if loaded else None,
                "target": loaded.target.file if loaded else None,
                "drafter": loaded.drafter.file if loaded and loaded.drafter else None,
                "drafter_problem": drafter_problem(loaded, done) if loaded else None,
                "seed": done.seed if done else None,
            },
        }


def drafter_problem(loaded: Loaded, done: Done | None) -> str | None:
    """Why the drafter does not work, if it does not."""
    problem = loaded.problem or (done.problem if done else None)
    return problem.reason if problem else None


# readline must know which characters of its prompt take no room (\x01 … \x02)
_PROMPT: Final = "\x01\x1b[1;36m\x02You\x01\x1b[0m\x02 > "
_CONTROLS: Final = dict.fromkeys([*range(32), *range(127, 160)]) | {9: 9, 10: 10}


def harmless(text: str) -> str:
    """A model's text without control characters: on a terminal they could move the cursor or change its settings."""
    return text.translate(_CONTROLS)


def complain(error: TandemError, other: str = "") -> int:
    """Prints the sentence and the remedy on stderr; returns the exit code. For `other` see `terminal_errors`."""
    print(harmless(f"tandem: {error.sentence}\n{remedy(error, other)}"), file=sys.stderr)
    return error.exit_code


@contextmanager
def reader_may_go() -> Iterator[None]:
    """Ends quietly, as done, when the reader of our output has gone; click would make it an error."""
    try:
        yield
    except BrokenPipeError:
        # what Python still holds back for the reader goes nowhere, instead of failing at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def figures(done: Done, loaded: Loaded) -> str:
    """The line under an answer. The drafter is "on" only after drafts were really verified."""
    stats = done.stats
    parts = []
    if stats.decode_tok_s is not None:
        parts.append(f"{stats.decode_tok_s:,.1f} tok/s")
    if stats.tokens_per_pass is not None:
        parts.append(f"{stats.tokens_per_pass:.2f} tokens per pass")
    if stats.acceptance_rate is not None:
        parts.append(f"{stats.acceptance_rate:.0%} of drafts accepted")
    if stats.time_to_first_token_s is not None:
        parts.append(f"first token after {stats.time_to_first_token_s * 1000:,.0f} ms")
    parts.append(f"{stats.cached_tokens:,} of {stats.prompt_tokens:,} prompt tokens reused")
    problem = drafter_problem(loaded, done)
    if problem:
        parts.append(f"drafter failed: {problem}")
    elif stats.verified:
        parts.append(f"drafter on, {loaded.method}, length {done.draft}")
    else:
        parts.append("drafter off" if done.draft == "off" or loaded.method == "none" else "drafter has not drafted")
    if done.stop in ("limit", "context", "stopped"):
        ends = {"limit": "ended at the limit", "context": "ended: the context is full", "stopped": "stopped"}
        parts.append(ends[done.stop])
    return " · ".join(parts)


def answer_once(job: ChatJob, request: Generate, as_json: bool) -> int:
    """One answer to stdout; returns the exit code."""
    errors = Console(stderr=True, highlight=False)
    answer = Answer()
    with EngineClient(paths.log_dir()) as engine:
        loaded = _load(engine, job, errors)
        if loaded is None:
            if as_json:
                answer.stopped = True
                print(msgspec.json.encode(answer.as_json(None, engine, request.draft)).decode(), flush=True)
            return 0
        failure: TandemError | None = None
        shown = ""
        try:
            for event in _events(engine, request):
                for piece in answer.add(event):
                    if not as_json:
                        if shown and piece.channel != shown:
                            print("\n", flush=True)
                        shown = piece.channel
                        print(harmless(piece.text), end="", flush=True)
        except RequestStopped:
            answer.stopped = True
        except (EngineDied, EngineError) as error:
            failure = error
        if as_json:
            result = answer.as_json(loaded, engine, request.draft)
            print(msgspec.json.encode(result).decode(), flush=True)
        else:
            print(flush=True)
            if answer.done is not None:
                errors.print(f"[dim]{escape(figures(answer.done, loaded))}[/]", soft_wrap=not errors.is_terminal)
        if failure is not None:
            errors.print(f"tandem: {escape(failure.sentence)}\n{escape(failure.remedy)}", soft_wrap=True)
            return failure.exit_code
    return 0


def converse(job: ChatJob) -> int:
    """A conversation until end of input; returns the exit code."""
    console = Console(highlight=False)
    with EngineClient(paths.log_dir()) as engine:
        loaded = _load(engine, job, console)
        if loaded is None:
            return 0
        drafter = loaded.drafter.file if loaded.drafter else loaded.method
        console.print(
            f"[bold]Tandem {tandem.__version__}[/] · {escape(harmless(loaded.target.name or loaded.target.file))}"
        )
        console.print(
            f"[dim]drafter {escape(drafter)}, length {escape(job.template.draft)} · {loaded.device}, "
            f"{loaded.threads} thread{'s' * (loaded.threads > 1)} · context {loaded.context:,} · /help[/]"
        )
        with interrupts(lambda *_: None):  # a Ctrl-C that comes just after an answer is not meant for the program
            return _turns(engine, loaded, job, console)


def _turns(engine: EngineClient, loaded: Loaded, job: ChatJob, console: Console) -> int:
    system = [Message("system", job.system)] if job.system else []
    history: list[Message] = []
    template = msgspec.structs.replace(job.template, trim=True)
    while (line := _read_line(console)) is not None:
        if line.startswith("/"):
            changed = _slash(line, template, console)
            if changed is None:
                return 0
            if line == "/new":
                history.clear()
            template = changed
            continue
        if not line.strip():
            continue
        history.append(Message("user", line))
        answer = Answer()
        try:
            request = msgspec.structs.replace(template, messages=(*system, *history))
            _show(engine, request, answer, console)
        except RequestStopped:
            console.print("stopped", style="dim")
        except UsageError as error:
            history.pop()
            console.print(f"[red]{escape(error.sentence)}[/] {escape(error.remedy)}", soft_wrap=True)
            continue
        except EngineDied as error:
            console.print(f"\n[red]{escape(error.sentence)}[/] {escape(error.remedy)}", soft_wrap=True)
            return error.exit_code
        except EngineError as error:
            console.print(f"\n[red]{escape(error.sentence)}[/] {escape(error.remedy)}", soft_wrap=True)
        if answer.texts["answer"].strip():
            history.append(Message("assistant", answer.texts["answer"]))
        else:
            history.pop()
        if answer.done is not None:
            if answer.done.dropped:
                console.print(f"[yellow]{answer.done.dropped} oldest messages did not fit and were left out.[/]")
            console.print(f"[dim]{escape(figures(answer.done, loaded))}[/]", soft_wrap=not console.is_terminal)
    return 0


def _show(engine: EngineClient, request: Generate, answer: Answer, console: Console) -> None:
    shown = ""
    for event in _events(engine, request):
        for piece in answer.add(event):
            if shown and piece.channel != shown:
                console.print("\n")
            shown = piece.channel
            style = "dim italic" if piece.channel == "thought" else ""
            console.print(harmless(piece.text), end="", style=style, markup=False, soft_wrap=True)
    console.print()


def _slash(line: str, template: Generate, console: Console) -> Generate | None:
    """Carries out a `/command`; None is /quit."""
    name, _, value = line.strip().partition(" ")
    if name in ("/quit", "/exit"):
        return None
    value = value.strip()
    if name == "/draft" and value:
        try:
            label = draft_length(value).label
        except UsageError as error:
            console.print(f"[red]{escape(error.sentence)}[/] {escape(error.remedy)}")
            return template
        console.print(f"[dim]Draft length: {label}.[/]")
        return msgspec.structs.replace(template, draft=value)
    if name == "/thinking" and value in ("on", "off"):
        console.print(f"[dim]Thinking: {value}.[/]")
        return msgspec.structs.replace(template, thinking=value == "on")
    if name == "/new":
        console.print("[dim]A new conversation.[/]")
        return template
    if name != "/help":
        console.print(f"There is no command {escape(line.strip())}.", style="yellow", markup=False)
    console.print(_HELP, style="dim", markup=False)
    return template


def _read_line(console: Console) -> str | None:
    """The next message; None at the end of input. Ctrl-C only gives up the line."""
    while sys.stdin is not None:
        try:
            with interrupts(signal.default_int_handler):
                if sys.stdin.isatty():
                    console.print()
                    return clean(input(_PROMPT if console.is_terminal and not console.no_color else "You > "))
                data = sys.stdin.buffer.readline()  # any bytes: not every line that is piped is UTF-8
                return clean(data.decode("utf-8", "replace").rstrip("\r\n")) if data else None
        except EOFError:
            console.print()
            return None
        except KeyboardInterrupt:
            console.print("\n[dim]Ctrl-D leaves.[/]")
    return None


def _load(engine: EngineClient, job: ChatJob, console: Console) -> Loaded | None:
    """Loads the pair with a bar on a terminal; None when Ctrl-C stopped it."""
    request = msgspec.structs.replace(job.load, id=engine.next_id())
    names = {"target": "Loading the target", "drafter": "Loading the drafter", "threads": "Timing thread counts"}
    began = time.monotonic()
    with console.status("Starting", spinner="dots") as status, _interrupts_stop(engine, request.id):

        def progress(event: Progress) -> None:
            if time.monotonic() - began > 0.3:  # a small model is there before anyone reads this
                status.update(f"{names.get(event.stage, event.stage)} {event.done / event.total:.0%}")

        try:
            loaded = engine.load(request, progress)
        except RequestStopped:
            return None
    if loaded.problem:
        line = f"[yellow]The drafter is not used: {escape(loaded.problem.reason)}[/] {escape(loaded.problem.remedy)}"
        console.print(line, soft_wrap=True)
    return loaded


def _events(engine: EngineClient, request: Generate) -> Iterator[Pass | Done]:
    """Passes and the end of an answer; Ctrl-C stops the answer and not the program."""
    request = msgspec.structs.replace(request, id=engine.next_id())
    with _interrupts_stop(engine, request.id):
        for event in engine.generate(request):
            if not isinstance(event, Progress):
                yield event


@contextmanager
def _interrupts_stop(engine: EngineClient, request: int) -> Iterator[None]:
    def on_interrupt(_signal: int, _frame: FrameType | None) -> None:
        # not from here: this thread may be in the middle of sending something, and would wait for itself
        threading.Thread(target=engine.stop, args=(request,), daemon=True).start()

    with interrupts(on_interrupt):
        yield


@contextmanager
def interrupts(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Ctrl-C goes to `handler` in here."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
