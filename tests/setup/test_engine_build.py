"""How the engine's wheel is kept: one per recipe, whole or not at all, built once however many ask."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "packaging" / "engine" / "build.py"
WHEEL = "llama_cpp_python-0.3.36-py3-none-linux_x86_64.whl"


@pytest.fixture
def build() -> ModuleType:
    """The script, loaded by its path: `packaging` is no package."""
    spec = importlib.util.spec_from_file_location("tandem_engine_build", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_wheel(folder: Path, content: str = "library") -> Path:
    """A wheel with the layout that llama-cpp-python's build leaves."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [
        "include/llama.h",
        "lib/libllama.so",
        "llama_cpp/__init__.py",
        "llama_cpp/lib/libllama.so",
        "llama_cpp/lib/libllama.so.0",
        "llama_cpp/lib/libllama.so.0.5.0",
        "llama_cpp_python-0.3.36.dist-info/METADATA",
        "llama_cpp_python-0.3.36.dist-info/RECORD",
    ]
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        for name in names:
            wheel.writestr(name, f"{content} {name}")
    return folder / WHEEL


@pytest.fixture
def builds(build: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Puts a quick writer of wheels in the compiler's place; lists the flavours that it was asked for."""
    asked: list[str] = []

    def compile_wheel(flavour: str, work: Path, _log: Path) -> Path:
        asked.append(flavour)
        return write_wheel(work / "wheel")

    monkeypatch.setattr(build, "compile_wheel", compile_wheel)
    return asked


def test_the_second_time_the_kept_wheel_is_used(build: ModuleType, builds: list[str], tmp_path: Path) -> None:
    first = build.build("cpu", tmp_path / "cache")
    assert build.build("cpu", tmp_path / "cache") == first
    assert builds == ["cpu"]
    assert {path.name for path in first.parent.iterdir()} == {WHEEL, "sha256", "recipe.json"}


@pytest.mark.parametrize("damage", ["changed", "no checksum", "no wheel", "a second wheel"])
def test_a_damaged_wheel_is_built_again(build: ModuleType, builds: list[str], tmp_path: Path, damage: str) -> None:
    wheel = build.build("cpu", tmp_path / "cache")
    good = wheel.read_bytes()
    match damage:
        case "changed":
            wheel.write_bytes(good[:-1])
        case "no checksum":
            (wheel.parent / "sha256").unlink()
        case "no wheel":
            wheel.unlink()
        case "a second wheel":
            (wheel.parent / "other.whl").touch()
    assert build.build("cpu", tmp_path / "cache").read_bytes()[:4] == b"PK\x03\x04"
    assert builds == ["cpu", "cpu"]
    assert build.kept(wheel.parent) == wheel


def test_rebuild_replaces_the_kept_one(build: ModuleType, builds: list[str], tmp_path: Path) -> None:
    first = build.build("cpu", tmp_path / "cache")
    assert build.build("cpu", tmp_path / "cache", rebuild=True) == first
    assert builds == ["cpu", "cpu"]


def test_a_failed_build_leaves_no_wheel_and_names_its_log(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_flavour: str, _work: Path, log: Path) -> Path:
        build.run([sys.executable, "-c", "print('the last words'); raise SystemExit(3)"], {}, log, "It failed.")
        raise AssertionError("run() returned")

    monkeypatch.setattr(build, "compile_wheel", fails)
    assert build.main(["--cache", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    log = tmp_path / f"{build.key('cpu')}.log"
    assert printed.out == ""
    assert "the last words" in printed.err
    assert printed.err.endswith(f"It failed. {Path(sys.executable).name} ended with 3; the whole log: {log}\n")
    assert "the last words" in log.read_text()
    assert not (tmp_path / build.key("cpu")).exists()


@pytest.mark.usefixtures("builds")
def test_a_build_that_breaks_off_leaves_nothing_half_done(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "sha256", lambda _path: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        build.build("cpu", tmp_path / "cache")
    assert not [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]


def test_two_at_once_build_one(
    build: ModuleType, builds: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second_waits = threading.Event()
    compile_wheel = build.compile_wheel

    def hear(text: str) -> None:
        if "waiting" in text:
            second_waits.set()

    def compile_when_both_are_there(flavour: str, work: Path, log: Path) -> Path:
        assert second_waits.wait(60)
        return compile_wheel(flavour, work, log)

    monkeypatch.setattr(build, "say", hear)
    monkeypatch.setattr(build, "compile_wheel", compile_when_both_are_there)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: build.build("cpu", tmp_path / "cache"), range(2))
    assert first == second
    assert builds == ["cpu"]


def test_the_key_follows_all_that_the_compiler_sees(build: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [build.key("cpu")]
    assert build.key("cpu") == keys[0]
    monkeypatch.setattr(build, "processor", lambda: {"name": "Another"})
    keys.append(build.key("cpu"))
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_OPENMP=OFF")
    keys.append(build.key("cpu"))
    monkeypatch.setenv("CFLAGS", "-O1")
    keys.append(build.key("cpu"))
    monkeypatch.setattr(build.platform, "libc_ver", lambda: ("glibc", "9.99"))
    keys.append(build.key("cpu"))
    monkeypatch.setattr(build, "SDIST_SHA256", "0" * 64)
    keys.append(build.key("cpu"))
    assert len(set(keys)) == len(keys)


def test_the_key_does_not_follow_the_python(build: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    key = build.key("cpu")
    monkeypatch.setattr(build.platform, "python_version", lambda: "3.99.0")
    monkeypatch.setattr(build.sys, "executable", "elsewhere")
    assert build.key("cpu") == key


def test_a_processor_is_its_name_and_its_features(build: ModuleType, tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    one = "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\ncpu MHz\t\t: {}\nflags\t\t: {}\n\n"
    cpuinfo.write_text(one.format(1200, "fma avx2") + one.format(3000, "none"))
    assert build.processor(cpuinfo) == {"name": "Some CPU @ 3 GHz", "features": "avx2 fma"}
    assert build.processor(tmp_path / "absent") == {"name": build.platform.processor()}


def test_slimming_keeps_the_package_and_rewrites_its_record(build: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    slimmed = build.slim(write_wheel(tmp_path), tmp_path / "out")
    info = "llama_cpp_python-0.3.36.dist-info"
    with zipfile.ZipFile(slimmed) as wheel:
        assert sorted(wheel.namelist()) == [
            "llama_cpp/__init__.py",
            "llama_cpp/lib/libllama.so",
            "llama_cpp/lib/libllama.so.0",
            f"{info}/METADATA",
            f"{info}/RECORD",
        ]
        record = dict(line.split(",", 1) for line in wheel.read(f"{info}/RECORD").decode().splitlines())
        for name in wheel.namelist():
            data = wheel.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert record.pop(name) == ("," if name.endswith("RECORD") else f"sha256={digest},{len(data)}")
    assert record == {}


def test_cached_only_never_compiles(
    build: ModuleType, builds: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = ["--cache", str(tmp_path), "--cached-only"]
    assert build.main(ask) == 1
    assert builds == []
    assert build.main(ask[:2]) == build.main(ask) == 0
    wheel = tmp_path / build.key("cpu") / WHEEL
    assert capsys.readouterr().out.splitlines() == [str(wheel)] * 2


def test_the_cache_follows_the_xdg_rules(build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert build.default_cache() == tmp_path / ".cache" / "tandem" / "engine"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert build.default_cache() == tmp_path / ".cache" / "tandem" / "engine"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert build.default_cache() == tmp_path / "x" / "tandem" / "engine"


def test_a_cache_that_cannot_be_written_is_said(
    build: ModuleType, builds: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert build.main(["--cache", str(tmp_path / "file" / "cache")]) == 1
    assert "or set XDG_CACHE_HOME to a folder" in capsys.readouterr().err
    assert builds == []
