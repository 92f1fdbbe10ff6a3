"""`tandem models download` against the Hub of the tests: what it prints, how it ends, how it goes on."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.catalogs import write_catalog
from support.command import command, environment, eventually, in_terminal, started, tandem_run, watched
from support.hub import FakeHub, dead_port
from support.hub_faults import Kind
from support.model_command import Shell
from support.shelf import catalog as small_catalog
from support.shelf import content, fill, put
from tandem import paths, settings
from tandem.models import network
from tandem.models.catalog import Catalog
from tandem.models.store import Store
from tandem.settings import Settings

SECRET = "hf_ThisMustNotBeSeenAnywhere"
FAR = 5_000_000
"""A position in the target's file, near its end."""


@pytest.fixture(autouse=True)
def _no_network_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in network.environment():
        monkeypatch.delenv(variable.name)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub() as running:
        fill(running)
        yield running


@pytest.fixture
def shell(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Shell:
    return Shell.at(tmp_path, capfd)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_right(store: Store, shell: Shell, key: str = "e2b") -> bool:
    """Whether both files are installed, and are what they should be."""
    pair = shell.pair(key)
    found = store.pair_paths(pair)
    return found is not None and [sha256(path) for path in found] == [file.pin for file in pair.files]


def last_line(text: str) -> str:
    return text.splitlines()[-1]


# --- a good line


def test_a_pair_is_fetched_checked_and_ready_to_chat_with(hub: FakeHub, shell: Shell) -> None:
    found = shell.models("download", "e2b", "--endpoint", hub.endpoint)
    assert found.code == 0
    assert is_right(shell.store, shell)
    assert found.out.splitlines()[0] == f"Tiny E2B (e2b) is installed in {paths.models_dir()}."
    line = shlex.split(last_line(found.out).removeprefix("Chat with it: "))
    assert line == ["tandem", "chat", "--catalog", str(shell.catalog), "--pair", "e2b"]
    chat = shell.tandem(*line[1:], "--prompt", "Hello", "--max-tokens", "4", "--threads", "1", "--json")
    assert chat.json["engine"]["target"] == shell.pair().target.file


def test_progress_is_plain_lines_where_there_is_no_terminal(hub: FakeHub, shell: Shell) -> None:
    found = shell.models("download", "e2b", "--endpoint", hub.endpoint)
    assert all(character.isprintable() or character == "\n" for character in found.out + found.err)
    target, drafter = (file.file for file in shell.pair().files)
    said = found.err.splitlines()
    assert said[0] == f"Asking the Hub about {target}"
    assert f"Downloading {target}: 0 %, 0 bytes of 6.7 MiB" in said
    assert any(line.startswith(f"Checking {target}: 83 %") for line in said)
    assert any(line.startswith(f"Checking {drafter}: 100 %") for line in said)
    assert len(said) <= 20 + 6


def test_a_pair_that_is_here_is_not_asked_for_again(hub: FakeHub, shell: Shell) -> None:
    put(shell.store, "e2b")
    found = shell.models("download", "E2B", "--endpoint", hub.endpoint)
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("Tiny E2B (e2b) is installed already.\n")
    assert hub.seen() == []


def test_only_what_is_missing_is_fetched(hub: FakeHub, shell: Shell) -> None:
    _target, drafter = put(shell.store, "e2b")
    drafter.unlink()
    assert shell.models("download", "e2b", "--endpoint", hub.endpoint).code == 0
    assert is_right(shell.store, shell)
    assert hub.sent == drafter.stat().st_size


@pytest.mark.parametrize("name", ["모델", "Загрузки", "田中 🚲", "it's here"])
def test_another_folder_and_the_command_line_that_finds_it_again(
    name: str, hub: FakeHub, shell: Shell, tmp_path: Path
) -> None:
    folder = tmp_path / name
    found = shell.models("download", "e2b", "--endpoint", hub.endpoint, "--dir", folder)
    assert found.code == 0
    store = Store(folder, shell.store.catalog)
    assert is_right(store, shell)
    assert shell.store.installed() == ()
    line = shlex.split(last_line(found.out).removeprefix("Chat with it: "))
    target, drafter = map(str, store.pair_paths(shell.pair()) or ())
    assert line == ["tandem", "chat", "--target", target, "--drafter", drafter]


def test_where_the_endpoint_comes_from(hub: FakeHub, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = f"http://127.0.0.1:{dead_port()}"
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    assert shell.models("download", "e2b").code == 0
    monkeypatch.setenv("HF_ENDPOINT", dead)
    settings.save(Settings().changed(hub_endpoint=hub.endpoint))
    shutil.rmtree(paths.models_dir())
    assert shell.models("download", "e2b").code == 0
    settings.save(Settings().changed(hub_endpoint=dead))
    shutil.rmtree(paths.models_dir())
    assert shell.models("download", "e2b", "--endpoint", hub.endpoint).code == 0


# --- a bad line


@pytest.mark.parametrize(
    ("kind", "where", "code", "words", "remedied"),
    [
        ("no-repo", "info", 5, ["tiny/e2b"], "Update Tandem."),
        ("gated", "resolve", 5, ["tiny/e2b"], ", then set HF_TOKEN to a token of yours."),
        ("portal", "info", 5, ["127.0.0.1"], "or give another address with --endpoint URL."),
        ("wrong-linked-etag", "resolve", 3, ["tiny-e2b-target.gguf"], "Update Tandem."),
        ("wrong-bytes", "storage", 3, ["tiny-e2b-target.gguf", "sha256"], "this one was set aside."),
    ],
)
def test_what_will_not_go_away_ends_with_its_code_and_sentence(
    kind: Kind, where: Any, code: int, words: list[str], remedied: str, hub: FakeHub, shell: Shell
) -> None:
    hub.misbehave(kind, None, where)
    found = shell.models("download", "e2b", "--endpoint", hub.endpoint)
    assert found.code == code
    sentence, remedy = found.err.splitlines()[-2:]
    assert sentence.startswith("tandem: ")
    assert all(word in sentence for word in words), sentence
    assert remedy.endswith(remedied)
    assert shell.store.pair_paths(shell.pair()) is None
    hub.behave()
    line = ["tandem", "models", "--catalog", str(shell.catalog), "download", "e2b", "--endpoint", hub.endpoint]
    if kind == "wrong-bytes":
        assert found.out.splitlines() == [f"Start again with: {shlex.join(line)}"]
    else:  # nothing came in, and the same once more would not help
        assert found.out == ""
    assert shell.tandem(*line[1:]).code == 0
    assert is_right(shell.store, shell)


def test_a_broken_line_is_said_while_it_is_tried_again(hub: FakeHub, shell: Shell) -> None:
    hub.misbehave("503", 1, "resolve")
    found = shell.models("download", "e2b", "--endpoint", hub.endpoint)
    assert found.code == 0
    (waiting,) = [line for line in found.err.splitlines() if line.startswith("Trying ")]
    host = hub.endpoint.removeprefix("http://")
    assert re.fullmatch(rf"Trying again( in 1 s)? \(2 of 8\): {host} answered with error 503\.", waiting)


def test_no_network_at_all_is_said_after_three_tries(shell: Shell) -> None:
    port = dead_port()
    found = shell.models("download", "e2b", "--endpoint", f"http://127.0.0.1:{port}")
    assert found.code == 5
    asked, *waits, sentence, remedy = found.err.splitlines()
    assert asked.startswith("Asking the Hub about ")
    assert [re.sub(" in . s", "", wait) for wait in waits] == [
        f"Trying again ({attempt} of 3): 127.0.0.1:{port} cannot be reached." for attempt in (2, 3)
    ]
    assert sentence == f"tandem: 127.0.0.1:{port} cannot be reached."
    assert "--endpoint URL" in remedy
    assert "HTTPS_PROXY" in remedy
    assert "Settings" not in remedy
    kept, again = found.out.splitlines()
    assert kept == "Kept: nothing so far."
    assert again.startswith("Go on with: tandem models ")


@pytest.mark.parametrize(("key", "other"), [("e2b", "e2b-unsloth"), ("e2b-unsloth", "e2b"), ("e4b", "")])
def test_a_pin_that_differs_names_the_other_source(
    key: str, other: str, hub: FakeHub, shell: Shell, tmp_path: Path
) -> None:
    two, four = small_catalog().sizes
    second = msgspec.structs.replace(two.default, key="e2b-unsloth")
    sizes = (msgspec.structs.replace(two, pairs=(two.default, second)), four)
    catalog = write_catalog(tmp_path / "two.toml", Catalog(1, sizes))
    hub.misbehave("wrong-linked-etag", None, "resolve")
    found = shell.tandem("models", "--catalog", catalog, "download", key, "--endpoint", hub.endpoint)
    assert (found.code, found.out) == (3, "")
    line = shlex.join(["tandem", "models", "--catalog", str(catalog), "download", other, "--endpoint", hub.endpoint])
    expected = f"Take the other source of this model: {line}" if other else "Update Tandem."
    assert last_line(found.err) == expected


def test_offline_mode_is_said(hub: FakeHub, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = shell.models("download", "e2b", "--endpoint", hub.endpoint)
    assert found.code == 5
    assert "HF_HUB_OFFLINE" in found.complaint()
    assert "Asking" not in found.err
    assert found.out == ""
    assert hub.seen() == []


def test_a_dead_proxy_is_named(hub: FakeHub, shell: Shell) -> None:
    port = dead_port()
    settings.save(Settings().changed(proxy=f"http://user:s3cret@127.0.0.1:{port}"))
    with started("models", "--catalog", shell.catalog, "download", "e2b", "--endpoint", hub.endpoint) as run:
        outcome = run.end()
    assert outcome.code == 5
    assert f"127.0.0.1:{port}" in outcome.err
    assert "s3cret" not in outcome.err + outcome.out


def test_a_disk_without_room_ends_with_five(hub: FakeHub, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(paths.models_dir())
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=1_000_000))
    found = shell.models("download", "e2b", "--endpoint", hub.endpoint)
    assert found.code == 5
    assert re.search(r" has 0\.9 MiB free, and 7\.4 MiB are needed\.\n", found.err)
    assert last_line(found.err) == "Make room, or give another folder with --dir DIR."
    assert found.out == ""
    assert hub.sent == 0


@pytest.mark.parametrize("endpoint", ["not an address", "notaurl", "ftp://mirror", "https://name:s3cret@mirror", ""])
def test_an_endpoint_that_is_none_is_wrong_use(endpoint: str, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    if not endpoint:
        monkeypatch.setenv("HF_ENDPOINT", "http://")
    found = shell.models("download", "e2b", *(["--endpoint", endpoint] if endpoint else []))
    assert found.code == 2
    assert "s3cret" not in found.complaint()
    if endpoint:
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        assert shell.models("download", "e2b") == found


def test_a_token_is_used_and_never_shown(hub: FakeHub, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", SECRET)
    hub.misbehave("echo", 1, "info")
    hub.misbehave("401", 1, "resolve")
    found = shell.models("download", "e2b", "--endpoint", hub.endpoint)
    assert SECRET not in found.out + found.err
    assert any(seen.authorised for seen in hub.seen(host="hub"))
    assert shell.models("download", "e2b", "--endpoint", hub.endpoint).code == 0
    assert not any(seen.authorised for seen in hub.seen(host="storage"))
    assert not [path for path in paths.data_dir().parent.rglob("*") if path.is_file() and has(path, SECRET)]


def has(path: Path, text: str) -> bool:
    return text.encode() in path.read_bytes()


# --- pausing


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_signal_pauses_and_the_same_command_goes_on(
    number: signal.Signals, hub: FakeHub, shell: Shell, tmp_path: Path
) -> None:
    folder = tmp_path / "모델"
    store = Store(folder, shell.store.catalog)
    line = ["models", "--catalog", shell.catalog, "download", "e2b", "--endpoint", hub.endpoint, "--dir", folder]
    hub.misbehave("stall", None, at=FAR)
    with started(*line) as run:
        eventually(lambda: store.part_bytes(shell.pair().target) > 0)
        run.process.send_signal(number)
        outcome = run.end()
    assert outcome.code == 128 + number
    assert "Pausing…" in outcome.err
    kept, again = outcome.out.splitlines()
    assert kept.startswith("Kept: ")
    assert kept.endswith(" of 6.7 MiB.")
    part = store.part(shell.pair().target)
    here = part.read_bytes()
    assert 0 < len(here) < len(content("e2b", "target"))
    assert content("e2b", "target").startswith(here)
    hub.behave()
    sent = hub.sent
    words = shlex.split(again.removeprefix("Go on with: "))
    assert words == ["tandem", *map(str, line)]
    assert shell.tandem(*words[1:]).code == 0
    assert is_right(store, shell)
    assert hub.sent - sent == shell.pair().size - len(here)


def test_ctrl_c_at_a_terminal_pauses_and_leaves_the_terminal_as_it_was(hub: FakeHub, shell: Shell) -> None:
    store = shell.store
    hub.misbehave("stall", None, at=FAR)
    with in_terminal("models", "--catalog", shell.catalog, "download", "e2b", "--endpoint", hub.endpoint) as run:
        run.wait_for(r"Downloading tiny-e2b-target\.gguf")
        eventually(lambda: store.part_bytes(shell.pair().target) > 0)
        run.type("\x03")
        outcome = run.end()
    assert outcome.code == 130
    assert "Pausing…" in outcome.out
    assert "Go on with: tandem models --catalog" in outcome.out
    raw = run._seen
    assert raw.count(b"\x1b[?25l") == raw.count(b"\x1b[?25h") == 1
    assert raw.rindex(b"\x1b[?25h") < raw.rindex(b"Go on with")
    hub.behave()


def test_a_bar_on_the_terminal_and_the_outcome_in_the_pipe(hub: FakeHub, shell: Shell) -> None:
    with watched("models", "--catalog", shell.catalog, "download", "e2b", "--endpoint", hub.endpoint) as run:
        outcome = run.end()
    assert outcome.code == 0
    assert outcome.out.startswith("Tiny E2B (e2b) is installed in ")
    assert "\x1b" not in outcome.out
    assert "Checking tiny-e2b-drafter.gguf" in run.seen
    assert "━" in run.seen
    assert "100 %" in run.seen


def test_a_killed_download_is_listed_and_goes_on(hub: FakeHub, shell: Shell) -> None:
    store = shell.store
    line = ["models", "--catalog", shell.catalog, "download", "e2b", "--endpoint", hub.endpoint]
    hub.misbehave("stall", None, at=FAR)
    with started(*line) as run:
        eventually(lambda: store.part_bytes(shell.pair().target) > 0)
        run.process.kill()
        run.process.wait()
    hub.behave()
    assert shell.models("list", "--json").json["pairs"][0]["state"] == "paused"
    assert shell.tandem(*line).code == 0
    assert is_right(shell.store, shell)


def test_two_at_once_are_one_too_many(hub: FakeHub, shell: Shell) -> None:
    store = shell.store
    line = ["models", "--catalog", shell.catalog, "download", "e2b", "--endpoint", hub.endpoint]
    hub.misbehave("stall", None, at=FAR)
    with started(*line) as run:
        eventually(lambda: store.part_bytes(shell.pair().target) > 0)
        other = tandem_run(*line)
        assert other.code == 5
        assert "tandem: tiny-e2b-target.gguf is being downloaded by another Tandem." in other.err
        assert re.search(r"^e2b +being downloaded by another Tandem, \d+ %", shell.models("list").out, re.MULTILINE)
        assert shell.models("list", "--json").json["pairs"][0]["state"] == "transferring"
        refused = shell.models("remove", "e2b", "--yes")
        assert refused.code == 5
        assert "is being downloaded by another Tandem." in refused.complaint()
        assert store.part_bytes(shell.pair().target) > 0
        run.process.send_signal(signal.SIGINT)
        assert run.end().code == 130
    hub.behave()
    assert shell.tandem(*line).code == 0
    assert is_right(store, shell)


def test_it_can_be_paused_while_the_hub_says_nothing_at_all(hub: FakeHub, shell: Shell) -> None:
    hub.misbehave("silent", None, "info")
    with started("models", "--catalog", shell.catalog, "download", "e2b", "--endpoint", hub.endpoint) as run:
        hub.wait_for(lambda hub: bool(hub.seen("info")))
        run.process.send_signal(signal.SIGINT)
        outcome = run.end()
    assert outcome.code == 130
    assert outcome.out.startswith("Kept: nothing so far.\nGo on with: tandem models ")


def test_a_reader_that_goes_away_ends_it(hub: FakeHub, shell: Shell) -> None:
    words = ["models", "--catalog", shell.catalog, "download", "e2b", "--endpoint", hub.endpoint]
    hub.misbehave("stall", None)
    # The reader takes one line; the next one finds nobody. The download itself would go on for minutes.
    script = f"{shlex.join(command(*words))} 2>&1 | head -n 1"
    done = subprocess.run(["sh", "-c", script], env=environment(), capture_output=True, timeout=30, check=False)
    assert done.stdout.decode() == "Asking the Hub about tiny-e2b-target.gguf\n"
    assert done.stderr == b""


def test_no_process_is_left_behind(hub: FakeHub, shell: Shell) -> None:
    with started("models", "--catalog", shell.catalog, "download", "e2b", "--endpoint", hub.endpoint) as run:
        assert run.end().code == 0
    with pytest.raises(ProcessLookupError):
        os.killpg(run.process.pid, 0)
