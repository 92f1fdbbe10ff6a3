"""Two processes and every way that one of them can end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from support.engines import GREEDY, Engine, running
from tandem.engine.client import EngineClient, RequestStopped
from tandem.engine.deaths import describe_death
from tandem.engine.lifeline import interrupts_ignored
from tandem.engine.protocol import Done, Generate, Hello, Load, Pass
from tandem.engine.template import Message
from tandem.errors import EngineDied, EngineError, UsageError


def endless(client: EngineClient) -> Generate:
    return Generate(
        id=client.next_id(),
        messages=(Message("user", "Tell me a short story about a fox."),),
        draft="3",
        sampling=GREEDY,
        ignore_eos=True,
    )


def read_all(client: EngineClient, during: Callable[[object], None]) -> None:
    for event in client.generate(endless(client)):
        during(event)


def load(client: EngineClient, pair: tuple[Path, Path]) -> None:
    client.load(Load(id=client.next_id(), target=bytes(pair[0]), drafter=bytes(pair[1]), threads=1))


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGKILL, "killed"),
        (signal.SIGTERM, "killed"),
        (signal.SIGSEGV, "crashed"),
        (signal.SIGABRT, "aborted"),
        (signal.SIGILL, "illegal instruction"),
    ],
)
def test_death_in_the_middle_of_an_answer_is_typed_and_a_new_engine_answers(
    demo_pair: tuple[Path, Path], tmp_path: Path, number: signal.Signals, reason: str
) -> None:
    client = EngineClient(tmp_path)
    client.start()
    load(client, demo_pair)
    pid = client.pid
    assert pid is not None
    passes: list[Pass] = []

    def kill_after_some_text(event: object) -> None:
        if isinstance(event, Pass):
            passes.append(event)
            if len(passes) > 10:
                os.kill(pid, number)

    with pytest.raises(EngineDied) as caught:
        read_all(client, kill_after_some_text)
    text = "".join(piece.text for event in passes for piece in event.text)
    assert caught.value.reason == reason
    assert caught.value.sentence.endswith(".")
    assert "llama" in caught.value.log_tail or "fault" in caught.value.log_tail.lower()
    assert text not in caught.value.log_tail
    assert text.startswith("Once upon")
    assert not client.alive
    client.close()
    client.start()
    load(client, demo_pair)
    assert client.alive
    client.close()
    assert not psutil.pid_exists(pid)


def test_death_between_requests_is_noticed_by_the_next(demo_pair: tuple[Path, Path], tmp_path: Path) -> None:
    with running(tmp_path, *demo_pair) as engine:
        os.kill(engine.client.pid or 0, signal.SIGKILL)
        with pytest.raises(EngineDied) as caught:
            engine.ask()
        assert caught.value.reason == "killed"


def test_a_hung_engine_is_ended_and_can_be_started_again(demo_pair: tuple[Path, Path], tmp_path: Path) -> None:
    client = EngineClient(tmp_path, hang_after_s=1.0)
    client.start()
    load(client, demo_pair)
    pid = client.pid
    assert pid is not None
    with pytest.raises(EngineDied) as caught:
        read_all(client, lambda event: os.kill(pid, signal.SIGSTOP) if isinstance(event, Pass) else None)
    assert caught.value.reason == "hung"
    client.close()
    client.start()
    load(client, demo_pair)
    client.close()


PARENT = """
import sys
from pathlib import Path
from support.engines import running

if __name__ == "__main__":
    with running(Path(sys.argv[3]), Path(sys.argv[1]), Path(sys.argv[2])) as engine:
        request = engine.request(draft="3", ignore_eos=True, max_tokens=None)
        busy = sys.argv[4] == "busy"
        print(engine.client.pid, flush=True)
        if busy:
            for event in engine.client.generate(request):
                print("event", flush=True)
        sys.stdin.read()
"""


@pytest.mark.parametrize("state", ["idle", "busy", "stopped"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_the_engine_ends_with_its_parent(
    demo_pair: tuple[Path, Path], tmp_path: Path, state: str, number: signal.Signals
) -> None:
    """Also while it decodes, and also while it cannot run (SIGSTOP): then only the kernel can end it."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    command = [sys.executable, str(script), *map(str, demo_pair), str(tmp_path), "busy" if state == "busy" else "idle"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        if state == "busy":
            parent.stdout.readline()
        if state == "stopped":
            child.suspend()
        parent.send_signal(number)
        parent.wait()
        assert psutil.wait_procs([child], timeout=2.0)[1] == []


def test_closing_in_the_middle_of_an_answer_leaves_no_process(demo_pair: tuple[Path, Path], tmp_path: Path) -> None:
    client = EngineClient(tmp_path)
    client.start()
    load(client, demo_pair)
    pid = client.pid
    events = client.generate(endless(client))
    next(events)
    client.close()
    client.close()
    assert not psutil.pid_exists(pid or 0)
    with pytest.raises(EngineDied):
        next(events)


def test_a_client_that_was_not_started_says_so(tmp_path: Path) -> None:
    client = EngineClient(tmp_path)
    with pytest.raises(EngineDied):
        client.generate(endless(client))
    client.close()


def test_hello_names_versions_and_devices(demo: Engine) -> None:
    hello = demo.client.hello
    assert isinstance(hello, Hello)
    assert hello.llama_cpp_python == "0.3.36"
    assert [device.kind for device in hello.devices if device.name == "CPU"] == ["cpu"]
    assert hello.devices[0].total > 0
    assert 1 <= hello.cpus <= (os.cpu_count() or 1)


def test_requests_without_a_pair_and_second_loads_are_refused(
    demo: Engine, demo_pair: tuple[Path, Path], tmp_path: Path
) -> None:
    with pytest.raises(UsageError):
        load(demo.client, demo_pair)
    with EngineClient(tmp_path) as client, pytest.raises(UsageError):
        next(client.generate(endless(client)))


def test_an_engine_whose_build_lacks_a_symbol_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent's environment makes the child's bindings look for one symbol more."""
    hook = tmp_path / "sitecustomize.py"
    hook.write_text("import importlib.abc, sys\nimport llama_cpp.llama_cpp_ext as ext\ndel ext.llama_get_ctx_other\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    client = EngineClient(tmp_path)
    with pytest.raises(EngineError) as caught:
        client.start()
    assert "llama_get_ctx_other" in caught.value.sentence
    client.close()


def test_a_request_that_fills_the_pipe_of_a_hung_engine_does_not_hang_us(
    demo_pair: tuple[Path, Path], tmp_path: Path
) -> None:
    client = EngineClient(tmp_path, hang_after_s=2.0)
    client.start()
    load(client, demo_pair)
    os.kill(client.pid or 0, signal.SIGSTOP)
    request = Generate(id=client.next_id(), messages=(Message("user", "fox " * 500_000),))
    with pytest.raises(EngineDied) as caught:
        client.generate(request)
    assert caught.value.reason == "hung"
    client.close()


def test_stop_does_not_wait_for_a_large_request_that_an_engine_does_not_take(
    demo_pair: tuple[Path, Path], tmp_path: Path
) -> None:
    client = EngineClient(tmp_path, hang_after_s=30.0)
    client.start()
    load(client, demo_pair)
    engine = psutil.Process(client.pid)
    engine.suspend()
    large = msgspec.structs.replace(endless(client), messages=(Message("user", "fox " * 500_000),))
    results: list[object] = []

    def ask() -> None:
        try:
            results.extend(client.generate(large))
        except (RequestStopped, UsageError) as error:
            results.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    while not client._sending.locked():
        asking.join(0.001)
    began = time.monotonic()
    client.stop(large.id)
    assert time.monotonic() - began < 0.3
    assert asking.is_alive()
    assert not results
    engine.resume()  # now the request arrives, and the stop behind it
    asking.join(20.0)
    assert len(results) == 1
    assert isinstance(results[0], RequestStopped | UsageError)  # stopped, or so fast that its length was found first
    events = list(client.generate(msgspec.structs.replace(endless(client), max_tokens=5)))
    assert isinstance(events[-1], Done)
    client.close()


def test_a_client_lives_in_a_thread_and_is_stopped_from_another(demo_pair: tuple[Path, Path], tmp_path: Path) -> None:
    client = EngineClient(tmp_path)
    request = endless(client)
    answering, done = threading.Event(), []

    def live() -> None:
        client.start()
        load(client, demo_pair)
        for event in client.generate(request):
            if isinstance(event, Pass):
                answering.set()
            if isinstance(event, Done):
                done.append(event)
        client.close()

    thread = threading.Thread(target=live)
    thread.start()
    assert answering.wait(60.0)
    pid = client.pid or 0
    assert psutil.Process(pid).is_running()
    client.stop(request.id)
    thread.join(20.0)
    assert [event.stop for event in done] == ["stopped"]
    assert not psutil.pid_exists(pid)


@pytest.mark.parametrize("main", [True, False])
def test_a_child_ignores_interrupts_from_its_first_instruction(main: bool) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('alive')"
    said: list[str] = []

    def start() -> None:
        with interrupts_ignored():
            said.append(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)

    if main:
        start()
    else:
        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
    assert said == ["alive\n"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())


@pytest.mark.parametrize("symbol", ["llama_model_n_swa", "ggml_backend_dev_count"])
def test_a_symbol_that_llama_cpp_binds_by_itself_is_named_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, symbol: str
) -> None:
    hook = tmp_path / "sitecustomize.py"
    hook.write_text(
        "import ctypes\n"
        "plain = ctypes.CDLL.__getattr__\n"
        "def lacking(self, name):\n"
        f"    if name == {symbol!r}:\n"
        "        raise AttributeError(f'undefined symbol: {name}')\n"
        "    return plain(self, name)\n"
        "ctypes.CDLL.__getattr__ = lacking\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    client = EngineClient(tmp_path)
    with pytest.raises(EngineError) as caught:
        client.start()
    assert symbol in caught.value.sentence


def test_an_answer_that_nobody_reads_on_is_stopped(demo: Engine) -> None:
    events = demo.client.generate(endless(demo.client))
    while not isinstance(next(events), Pass):
        pass
    events.close()
    assert demo.ask("Hello!").done.stop == "end"


def test_a_log_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a file"
    file.write_text("")
    with pytest.raises(EngineError) as caught:
        EngineClient(file).start()
    assert "a file" in caught.value.sentence


def test_importing_the_client_does_not_load_what_only_the_engine_needs() -> None:
    code = "import sys, tandem.engine.client; print({'llama_cpp', 'numpy', 'jinja2'} & sys.modules.keys())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert found.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("code", "tail", "reason"),
    [
        (-9, "", "killed"),
        (-4, "", "illegal instruction"),
        (-6, "ggml_abort", "aborted"),
        (-6, "terminate called after throwing std::bad_alloc", "out of memory"),
        (1, "failed to allocate buffer of size 123", "out of memory"),
        (-9, "failed to allocate buffer of size 123", "killed"),
        (1, "", "exited"),
        (None, "", "exited"),
        (-63, "", "exited"),
    ],
)
def test_every_end_has_a_reason_and_a_remedy(code: int | None, tail: str, reason: str) -> None:
    name, sentence, remedy = describe_death(code, tail)
    assert name == reason
    assert sentence.endswith(".")
    assert remedy.endswith(".")
