"""What a person has chosen is kept, and never lost silently."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem import settings
from tandem.engine.draft_length import MAX_DRAFT_LENGTH
from tandem.engine.sampling import SamplingParams
from tandem.errors import TandemError, UsageError
from tandem.settings import PairChoice, Sampling, Settings

CHANGED = Settings(
    theme="dark",
    text_scale=1.25,
    language="ko",
    draft="off",
    draft_on=False,
    thinking=True,
    show_drafted=True,
    context=4096,
    threads=3,
    device="CUDA0",
    kv_type="q8_0",
    sampling=Sampling(0.5, 10, 0.9, 0.1, 1.1, 500),
    system_prompt="한국어로 답해 주세요 😀",
    pair=PairChoice("files", "/models/모델.gguf", None),
    geometry="AdnQywAD",
    sidebar=False,
    first_run_done=True,
    export_folder="/chats/내보내기",
    models_folder="/srv/모델",
    hub_endpoint="https://mirror.example.org",
    proxy="none",
    speed_limit=1 << 20,
    connections=2,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings.json"


def test_without_a_file_they_are_the_defaults(path: Path) -> None:
    assert settings.load(path) == settings.Loaded(Settings())
    assert not path.exists()


def test_what_is_saved_comes_back(path: Path) -> None:
    assert not any(
        getattr(CHANGED, name) == getattr(Settings(), name) for name in Settings.__struct_fields__ if name != "version"
    )
    settings.save(CHANGED, path)
    assert settings.load(path) == settings.Loaded(CHANGED)
    assert "한국어" in path.read_text("utf-8")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_the_usual_place() -> None:
    settings.save(CHANGED)
    assert settings.file().name == "settings.json"
    assert settings.load().settings == CHANGED


def test_a_file_name_that_is_no_unicode(path: Path) -> None:
    odd = CHANGED.changed(pair=PairChoice("files", os.fsdecode(b"/models/\xff.gguf")))
    settings.save(odd, path)
    assert settings.load(path).settings == odd


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", bytes(100), b"\xff\xfe", b'{"theme": NaN}', b"[" * 100_000, b" " * (2 << 20)],
    ids=["empty", "cut", "list", "null", "NULs", "no UTF-8", "NaN", "deep", "huge"],
)
def test_a_damaged_file_is_kept(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    loaded = settings.load(path)
    assert loaded.settings == Settings()
    assert loaded.set_aside is not None
    assert re.fullmatch(r"settings\.damaged-\d{8}-\d{6}\.json", loaded.set_aside.name)
    assert loaded.set_aside.read_bytes() == data
    assert not path.exists()
    settings.save(CHANGED, path)
    assert settings.load(path) == settings.Loaded(CHANGED)


WRONG: list[tuple[str, Any]] = [
    ("theme", "sepia"),
    ("text_scale", 0.5),
    ("text_scale", 9),
    ("text_scale", "1"),
    ("language", 1),
    ("draft", "17"),
    ("draft", "0"),
    ("draft", "auto"),
    ("draft", "3\n"),
    ("draft", 3),
    ("thinking", "yes"),
    ("context", 0),
    ("context", 10**30),
    ("context", 1.5),
    ("threads", -1),
    ("kv_type", "q4_0"),
    ("device", ["x"]),
    ("system_prompt", None),
    ("system_prompt", "x" * 200_001),
    ("pair", "demo"),
    ("sampling", []),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_one_value_that_makes_no_sense_costs_no_other(path: Path, name: str, value: Any) -> None:
    settings.save(CHANGED, path)
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {name: value}), "utf-8")
    loaded = settings.load(path)
    assert loaded.defaulted == (name,)
    assert loaded.set_aside is None
    assert loaded.settings == msgspec.structs.replace(CHANGED, **{name: getattr(Settings(), name)})


def test_inside_a_part_too(path: Path) -> None:
    content = {"sampling": {"temperature": -1, "top_k": 5, "top_p": 0}, "pair": {"kind": "x", "target": "a"}, "new": 1}
    path.write_text(json.dumps(content))
    loaded = settings.load(path)
    assert loaded.defaulted == ("sampling.temperature", "sampling.top_p", "pair.kind")
    assert loaded.settings == Settings(sampling=Sampling(top_k=5), pair=PairChoice(target="a"))


@pytest.mark.parametrize(("name", "value"), [*WRONG, ("text_scale", math.nan), ("no_such", 1)])
def test_a_change_is_checked(name: str, value: Any) -> None:
    with pytest.raises(UsageError):
        CHANGED.changed(**{name: value})


def test_a_change() -> None:
    changed = Settings().changed(theme="dark", text_scale=1, sampling=Sampling(temperature=0.0))
    assert changed == Settings(theme="dark", text_scale=1.0, sampling=Sampling(temperature=0.0))
    with pytest.raises(UsageError):
        Settings().changed(sampling=Sampling(temperature=math.inf))


def test_a_newer_file_is_copied_first(path: Path) -> None:
    settings.save(CHANGED, path)
    newer = json.loads(path.read_text("utf-8")) | {"version": 7, "of the future": [1], "theme": "sepia"}
    path.write_text(json.dumps(newer), "utf-8")
    loaded = settings.load(path)
    assert loaded.settings == msgspec.structs.replace(CHANGED, theme="system")
    assert loaded.set_aside is not None
    assert loaded.set_aside.name.startswith("settings.version-7-")
    assert json.loads(loaded.set_aside.read_text("utf-8")) == newer
    assert settings.load(path) == settings.Loaded(loaded.settings)


def test_a_file_that_cannot_be_read_or_written_is_said(path: Path) -> None:
    path.mkdir()
    with pytest.raises(TandemError, match="cannot be read") as caught:
        settings.load(path)
    assert caught.value.remedy
    with pytest.raises(TandemError, match="cannot be written"):
        settings.save(Settings(), path)
    with pytest.raises(TandemError, match="cannot be written"):
        settings.save(Settings(), path / "no" / "settings.json")
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_a_full_disk_keeps_the_old_ones(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.save(CHANGED, path)

    def fsync(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(TandemError) as caught:
        settings.save(Settings(), path)
    assert "Make room" in caught.value.remedy
    assert settings.load(path).settings == CHANGED
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_a_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "real" / "mine.json"
    real.parent.mkdir()
    path.symlink_to(real)
    settings.save(CHANGED, path)
    assert path.is_symlink()
    assert settings.load(real).settings == CHANGED


NAMES = [*Settings.__struct_fields__, *Sampling.__struct_fields__, *PairChoice.__struct_fields__]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*Settings.__struct_fields__, "x"]), inner)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(Settings.__struct_fields__), JSON))
def test_whatever_stands_there_the_settings_make_sense(tmp_path_factory: pytest.TempPathFactory, content: Any) -> None:
    path = tmp_path_factory.mktemp("s") / "settings.json"
    path.write_text(json.dumps(content))
    loaded = settings.load(path)
    assert loaded.settings.changed() == loaded.settings


def test_they_agree_with_the_engine() -> None:
    plain = msgspec.to_builtins(Sampling())
    del plain["max_tokens"]
    assert plain.items() <= msgspec.to_builtins(SamplingParams()).items()
    assert get_args(settings.DraftChoice) == ("off", *map(str, range(1, MAX_DRAFT_LENGTH + 1)))
    # What the settings allow, the engine takes.
    for edge in (Sampling(0.0, 0, 1.0, 0.0, 0.01), Sampling(100.0, 1 << 20, 0.001, 1.0, 100.0)):
        fields = msgspec.to_builtins(edge)
        del fields["max_tokens"]
        SamplingParams(**fields).check()
