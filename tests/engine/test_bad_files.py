"""Files that are no model, through a real engine: a clear sentence, the right fault, and the engine goes on."""

from __future__ import annotations

import ctypes
import math
import os
import random
import resource
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil
import pytest
from gguf import GGUFReader

from support import ggufbytes
from support.engines import GREEDY, Engine
from support.handset import TINY, Pair, write_pair
from tandem.engine.client import EngineClient
from tandem.engine.protocol import Count, Generate, Load, Loaded
from tandem.engine.sampling import SamplingParams
from tandem.engine.template import Message
from tandem.errors import EngineDied, EngineError, ModelError, TandemError, UsageError

ANIMALS: Final = (Message("user", "List seven animals."),)


class Workshop:
    """One engine for many loads that fail; a new one where a load went well or ended it."""

    def __init__(self, logs: Path, demo: tuple[Path, Path]) -> None:
        self._logs = logs
        self._demo = demo
        self._client: EngineClient | None = None
        self.loaded = False

    @property
    def client(self) -> EngineClient:
        if self._client is None:
            self._client = EngineClient(self._logs, hang_after_s=60)
            self._client.start()
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client, self.loaded = None, False

    def load(self, target: Path | bytes, drafter: Path | bytes | None = None, **fields: object) -> Loaded:
        """Asks for a pair; one thread, so that nothing is timed."""
        given = Load(
            id=self.client.next_id(),
            target=bytes(target),
            drafter=None if drafter is None else bytes(drafter),
            threads=1,
            need_drafter=True,
        )
        loaded = self.client.load(msgspec.structs.replace(given, **fields))
        self.loaded = True
        return loaded

    def refuses(self, target: Path | bytes, drafter: Path | bytes | None = None, **fields: object) -> ModelError:
        """The error of a load that fails, after checking what holds for every one."""
        pid = self.client.pid
        with pytest.raises(ModelError) as caught:
            self.load(target, drafter, **fields)
        check_wording(caught.value)
        assert self.client.pid == pid
        self.answers_when_empty()
        return caught.value

    def answers_when_empty(self) -> None:
        """The engine lives, and holds no model."""
        with pytest.raises(UsageError, match="No model is loaded"):
            self.client.count(Count(self.client.next_id(), ANIMALS))

    def loads_the_demo_pair(self) -> None:
        """The engine, or one in its place, still does its work."""
        target, drafter = self._demo
        loaded = self.load(target, drafter)
        assert (loaded.method, loaded.problem) == ("mtp", None)
        assert "Dog" in Engine(self.client, loaded).ask("List seven animals.", draft="3").text
        self.close()


def check_wording(error: TandemError) -> None:
    for text in (error.sentence, error.remedy):
        assert text.endswith(".")
        assert text.isprintable()
        assert len(text) < 400
        assert "Traceback" not in text
        assert "None" not in text


@pytest.fixture(scope="module")
def only_shop(tmp_path_factory: pytest.TempPathFactory, demo_pair: tuple[Path, Path]) -> Iterator[Workshop]:
    shop = Workshop(tmp_path_factory.mktemp("logs"), demo_pair)
    yield shop
    shop.close()


@pytest.fixture
def shop(only_shop: Workshop) -> Iterator[Workshop]:
    """The engine of the tests before, unless it has loaded something."""
    yield only_shop
    if only_shop.loaded:
        only_shop.close()


@pytest.fixture(scope="module")
def target(demo_pair: tuple[Path, Path]) -> bytes:
    return demo_pair[0].read_bytes()


@pytest.fixture(scope="module")
def ends(demo_pair: tuple[Path, Path]) -> dict[str, int]:
    """Where the sections of the demo target end, in bytes."""
    reader = GGUFReader(demo_pair[0])
    infos = [tensor.field for tensor in reader.tensors]
    last = infos[-1]
    return {
        "counts": 24,
        "metadata": infos[0].offset,
        "infos": last.offset + sum(part.nbytes for part in last.parts),
        "padding": reader.data_offset,
        "data": demo_pair[0].stat().st_size,
    }


# --- no file at all ----------------------------------------------------------------------------------------------


def test_what_is_not_a_file(shop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "folder.gguf").mkdir()
    os.mkfifo(tmp_path / "pipe.gguf")
    (tmp_path / "nowhere.gguf").symlink_to(tmp_path / "gone.gguf")
    (tmp_path / "circle.gguf").symlink_to(tmp_path / "circle.gguf")
    (tmp_path / "text.gguf").write_text("# Dear reader\n\nThis is a text.\n" * 50, encoding="utf-8")
    (tmp_path / "empty.gguf").touch()
    faults = {
        "folder.gguf": "not-a-file",
        "pipe.gguf": "not-a-file",  # opening one would wait for a writer for ever
        "missing.gguf": "missing",
        "nowhere.gguf": "missing",
        "text.gguf/inside.gguf": "missing",
        f"{'x' * 300}.gguf": "missing",
        "circle.gguf": "unreadable",
        "text.gguf": "not-gguf",
        "empty.gguf": "empty",
    }
    for name, fault in faults.items():
        error = shop.refuses(tmp_path / name)
        assert error.fault == fault, name
        assert Path(name).name[:40] in error.sentence
    for device in ("/dev/null", "/dev/zero"):
        assert shop.refuses(Path(device)).fault == "not-a-file"
    for odd in (b"", b"."):
        assert shop.refuses(odd).fault in {"missing", "not-a-file"}


@pytest.mark.parametrize("path", [b"a\0b.gguf", b"\0"])
def test_a_name_that_no_file_can_have(shop: Workshop, path: bytes) -> None:
    assert shop.refuses(path).fault == "missing"


def without_privilege(job: Callable[[], None]) -> None:
    """Runs `job` in a thread, and starts its processes, without the super-user's right to read any file."""
    drop_from_bounding_set, rights = 24, (1, 2)  # linux/prctl.h; CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    if os.geteuid() != 0:
        job()
        return
    failed: list[BaseException] = []

    def run() -> None:
        try:
            for right in rights:  # a thread has rights of its own, and what it starts gets no others
                if ctypes.CDLL(None).prctl(drop_from_bounding_set, right, 0, 0, 0) != 0:
                    pytest.skip("the super-user here may not give up the right to read any file")
            job()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def test_no_permission_to_read(tmp_path: Path, target: bytes) -> None:
    inside = tmp_path / "inner"
    inside.mkdir()
    files = tmp_path / "closed.gguf", inside / "file.gguf"
    for file in files:
        file.write_bytes(target)
    files[0].chmod(0)
    inside.chmod(0)

    def job() -> None:
        with EngineClient(tmp_path / "logs") as client:
            for file in files:
                with pytest.raises(ModelError) as caught:
                    client.load(Load(client.next_id(), bytes(file)))
                assert caught.value.fault == "unreadable"
                assert file.name in caught.value.sentence
                check_wording(caught.value)

    try:
        without_privilege(job)
    finally:
        inside.chmod(0o700)


# --- not the whole file ------------------------------------------------------------------------------------------


def test_cut_off_at_every_section(shop: Workshop, tmp_path: Path, target: bytes, ends: dict[str, int]) -> None:
    cuts = {1, 3, 4, 8, 23}
    for end in ends.values():
        cuts |= {end - 1, end, end + 1}
    cuts |= {ends["metadata"] // 2, (ends["metadata"] + ends["infos"]) // 2, (ends["padding"] + ends["data"]) // 2}
    file = tmp_path / "cut.gguf"
    for cut in sorted(cut for cut in cuts if cut < ends["data"]):
        file.write_bytes(target[:cut])
        error = shop.refuses(file)
        assert error.fault == "truncated" if cut >= 4 else error.fault in {"truncated", "not-gguf"}, cut
    assert file.name in error.sentence


def test_a_cut_drafter_names_the_drafter(shop: Workshop, tmp_path: Path, demo_pair: tuple[Path, Path]) -> None:
    whole = demo_pair[1].read_bytes()
    for cut in (100, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut-drafter.gguf").write_bytes(whole[:cut])
        error = shop.refuses(demo_pair[0], tmp_path / "cut-drafter.gguf")
        assert error.fault == "truncated"
        assert "cut-drafter.gguf" in error.sentence


# --- lies in the header ------------------------------------------------------------------------------------------


HUGE: Final = 2**62
ALL: Final = 2**64 - 1


def with_value(content: bytes) -> ggufbytes.Sections:
    """A target with one more value, its kind in front."""
    return ggufbytes.sections(ggufbytes.target(evil=content))


def with_tensor(**fields: Any) -> ggufbytes.Sections:
    """A target with one tensor that is wrong."""
    return ggufbytes.sections(ggufbytes.target(), [ggufbytes.Tensor(**fields)])


HOSTILE: Final = {
    "2**62 tensors": ggufbytes.sections(ggufbytes.target(), tensor_count=HUGE),
    "65,536 tensors": ggufbytes.sections(ggufbytes.target(), tensor_count=2**16),
    "2**62 pairs": ggufbytes.sections(ggufbytes.target(), pair_count=HUGE),
    "-1 pairs": ggufbytes.sections(ggufbytes.target(), pair_count=ALL),
    "too few pairs": ggufbytes.sections(ggufbytes.target(), pair_count=3),
    "long string": with_value(struct.pack("<IQ", 8, HUGE) + b"x"),
    "string of length -1": with_value(struct.pack("<IQ", 8, ALL) + b"x"),
    "string of 2 GiB": with_value(struct.pack("<IQ", 8, 2**31) + b"x"),
    "long array of strings": with_value(ggufbytes.array(8, HUGE, b"")),
    "array over 2**63": with_value(ggufbytes.array(0, 2**63, b"")),
    "array of arrays": with_value(ggufbytes.array(9, 2, b"")),
    "unknown kind": with_value(struct.pack("<I", 99)),
    "alignment 0": ggufbytes.sections(ggufbytes.target(general__alignment=0)),
    "alignment 3": ggufbytes.sections(ggufbytes.target(general__alignment=3)),
    "2**31 layers": ggufbytes.sections(ggufbytes.target(gemma4__block_count=2**31)),
    "no layers": ggufbytes.sections(ggufbytes.target(gemma4__block_count=0)),
    "more shared layers than layers": ggufbytes.sections(ggufbytes.target(gemma4__attention__shared_kv_layers=77)),
    "shape that overflows": with_tensor(shape=(2**40, 2**40)),
    "huge shape": with_tensor(shape=(2**62, 1)),
    "huge offset": with_tensor(offset=HUGE),
    "unknown tensor type": with_tensor(kind=200),
    "long tensor name": with_tensor(name="x" * 5000),
    "version 0": ggufbytes.sections(ggufbytes.target(), version=0),
    "version 2**31": ggufbytes.sections(ggufbytes.target(), version=2**31),
    "other byte order": ggufbytes.sections(ggufbytes.target(), version=0x03000000),
}


@pytest.mark.parametrize("parts", HOSTILE.values(), ids=HOSTILE)
def test_hostile_numbers(shop: Workshop, tmp_path: Path, parts: ggufbytes.Sections) -> None:
    (tmp_path / "hostile.gguf").write_bytes(parts.joined())
    before = psutil.Process(shop.client.pid).memory_info().rss
    error = shop.refuses(tmp_path / "hostile.gguf")
    assert error.fault in {"corrupt", "truncated", "not-gguf", "load-failed"}
    assert psutil.Process(shop.client.pid).memory_info().rss - before < 300 << 20


def test_an_architecture_that_the_engine_does_not_know(shop: Workshop, tmp_path: Path) -> None:
    metadata = {key.replace("gemma4.", "nova9."): value for key, value in ggufbytes.target().items()}
    metadata["general.architecture"] = "nova9"
    (tmp_path / "nova.gguf").write_bytes(ggufbytes.sections(metadata).joined())
    error = shop.refuses(tmp_path / "nova.gguf")
    assert error.fault == "unknown-architecture"
    assert "nova9" in error.sentence
    assert "nova.gguf" in error.sentence


def test_a_header_without_the_weights_that_it_needs(shop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "bare.gguf").write_bytes(ggufbytes.sections(ggufbytes.target()).joined())
    assert shop.refuses(tmp_path / "bare.gguf").fault in {"corrupt", "load-failed"}


@pytest.mark.parametrize("part", ["names and numbers", "tensor records"])
def test_flipped_bits_in_the_header(
    shop: Workshop, tmp_path: Path, target: bytes, ends: dict[str, int], part: str
) -> None:
    first, last = (0, 2500) if part == "names and numbers" else (ends["metadata"], ends["infos"])
    file = tmp_path / "flipped.gguf"
    for seed in range(24):
        chance = random.Random(seed)
        content = bytearray(target)
        for _ in range(chance.choice((1, 1, 8))):
            content[chance.randrange(first, last)] ^= 1 << chance.randrange(8)
        file.write_bytes(content)
        survives(shop, file, seed)
    shop.loads_the_demo_pair()


def survives(shop: Workshop, file: Path, seed: int) -> None:
    """A damaged file is refused with a sentence, or works somehow; the engine goes on, or another takes its place."""
    try:
        loaded = shop.load(file)
    except ModelError as error:
        check_wording(error)
        shop.answers_when_empty()
        return
    except EngineDied as died:
        check_wording(died)
        if died.reason in {"hung", "killed"}:
            pytest.fail(f"seed {seed}: {died.reason}")
        shop.close()
        return
    says_something(shop.client, loaded)
    shop.close()


def says_something(client: EngineClient, loaded: Loaded) -> None:
    """An answer comes to an end, whatever it says."""
    engine = Engine(client, loaded)
    try:
        reply = engine.ask((2, 105), max_tokens=24)
        assert reply.done.stop in {"end", "limit"}
    except EngineError as error:
        check_wording(error)
    assert client.alive


def test_flipped_bits_in_the_weights(shop: Workshop, tmp_path: Path, target: bytes, ends: dict[str, int]) -> None:
    file = tmp_path / "flipped.gguf"
    for seed, flips in enumerate((1, 300, 30_000)):
        chance = random.Random(seed)
        content = bytearray(target)
        for _ in range(flips):
            content[chance.randrange(ends["padding"], ends["data"])] ^= 1 << chance.randrange(8)
        file.write_bytes(content)
        loaded = shop.load(file)
        says_something(shop.client, loaded)
        shop.close()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers(
    shop: Workshop, tmp_path: Path, demo_pair: tuple[Path, Path], value: float
) -> None:
    content = bytearray(demo_pair[0].read_bytes())
    (norm,) = [tensor for tensor in GGUFReader(demo_pair[0]).tensors if tensor.name == "output_norm.weight"]
    content[norm.data_offset : norm.data_offset + norm.n_bytes] = struct.pack("<f", value) * (norm.n_bytes // 4)
    (tmp_path / "wild.gguf").write_bytes(content)
    shop.load(tmp_path / "wild.gguf", demo_pair[1])
    for draft, sampling in (("off", GREEDY), ("3", GREEDY), ("3", SamplingParams())):
        request = Generate(shop.client.next_id(), messages=ANIMALS, draft=draft, max_tokens=12, sampling=sampling)
        try:
            list(shop.client.generate(request))
        except EngineError as error:
            check_wording(error)
        else:  # NaN can get lost in a quantised matrix, and then there are scores
            assert math.isnan(value)
    assert shop.client.alive
    shop.close()


# --- the wrong file ----------------------------------------------------------------------------------------------


SMALL: Final = replace(TINY, name="small", hidden=256)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Pair, Pair]:
    """Two pairs of different width."""
    return write_pair(tmp_path_factory.mktemp("tiny")), write_pair(tmp_path_factory.mktemp("small"), SMALL)


def test_the_wrong_way_round(shop: Workshop, demo_pair: tuple[Path, Path]) -> None:
    target, drafter = demo_pair
    error = shop.refuses(drafter, target)
    assert (error.fault, drafter.name in error.sentence) == ("not-a-target", True)
    error = shop.refuses(target, target)
    assert (error.fault, target.name in error.sentence) == ("not-a-drafter", True)
    assert shop.refuses(drafter, method="ngram").fault == "not-a-target"
    assert shop.refuses(target, drafter, method="draft-model").fault == "not-a-drafter"


def test_a_drafter_of_another_model(shop: Workshop, demo_pair: tuple[Path, Path], pairs: tuple[Pair, Pair]) -> None:
    tiny, small = pairs
    for target, drafter, facts in (
        (tiny.target, small.drafter, ("384", "256")),
        (small.target, tiny.drafter, ("256", "384")),
        (demo_pair[0], small.drafter, ("4,096",)),
        (tiny.target, demo_pair[1], ("4,096",)),
    ):
        error = shop.refuses(target, drafter)
        assert error.fault == "not-a-pair"
        for fact in facts:
            assert fact in error.sentence
    assert shop.refuses(demo_pair[0], tiny.target, method="draft-model").fault in {"not-a-pair", "not-a-drafter"}


def test_without_need_the_target_goes_on_alone(
    shop: Workshop, tmp_path: Path, demo_pair: tuple[Path, Path], pairs: tuple[Pair, Pair]
) -> None:
    (tmp_path / "empty.gguf").touch()
    for drafter in (tmp_path / "empty.gguf", tmp_path / "missing.gguf", pairs[0].drafter, demo_pair[0]):
        loaded = shop.load(demo_pair[0], drafter, need_drafter=False)
        assert (loaded.method, loaded.drafter) == ("none", None)
        assert loaded.problem is not None
        assert drafter.name in loaded.problem.reason
        says_something(shop.client, loaded)
        shop.close()


# --- any name ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["田中の模型", "모델", "🦊 fox", "a b'c\"d;$(e)", "-rf", "line\nbreak", b"caf\xe9 \xff\xfe"],
    ids=["japanese", "korean", "emoji", "shell", "dash", "newline", "no-utf8"],
)
def test_any_file_name(shop: Workshop, tmp_path: Path, demo_pair: tuple[Path, Path], name: str | bytes) -> None:
    folder = os.path.join(os.fsencode(tmp_path), os.fsencode(name))  # noqa: PTH118 - bytes
    os.mkdir(folder)  # noqa: PTH102 - bytes
    bad, files = os.path.join(folder, b"bad.gguf"), []  # noqa: PTH118 - bytes
    Path(os.fsdecode(bad)).write_bytes(b"GGUF")
    assert shop.refuses(bad).fault == "truncated"
    for path, role in zip(demo_pair, (b" target.gguf", b" drafter.gguf"), strict=True):
        files.append(os.path.join(folder, os.fsencode(name) + role))  # noqa: PTH118 - bytes
        Path(os.fsdecode(files[-1])).symlink_to(path)
    loaded = shop.load(*files)
    assert (loaded.method, loaded.problem) == ("mtp", None)
    assert loaded.target.file.endswith("target.gguf")
    loaded.target.file.encode()  # a name for people is always text
    says_something(shop.client, loaded)


# --- too little memory -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Pair, Pair]:
    """A pair with 245 MB of weights, and one with room for a context of 131,072."""
    weights = replace(TINY, name="weights", ffn=1 << 16, ffn_shared=1 << 16)
    context = replace(TINY, name="context", context=1 << 17)
    folder = tmp_path_factory.mktemp("large")
    return write_pair(folder, weights), write_pair(folder, context)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the limit of another process can be set on Linux only")
@pytest.mark.parametrize("what", ["weights", "context"])
def test_too_little_memory(shop: Workshop, large: tuple[Pair, Pair], what: str) -> None:
    shop.close()
    pid = shop.client.pid
    assert pid is not None
    pair, room, context = (large[0], 100 << 20, None) if what == "weights" else (large[1], 60 << 20, 1 << 17)
    limit = psutil.Process(pid).memory_info().vms + room
    resource.prlimit(pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    with pytest.raises((ModelError, EngineDied)) as caught:
        shop.load(pair.target, context=context)
    check_wording(caught.value)
    error: TandemError = caught.value
    if isinstance(error, ModelError):
        assert error.fault == "out-of-memory"
        assert ("131,072" in error.sentence) == (what == "context")
        shop.answers_when_empty()
        resource.prlimit(pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        shop.loads_the_demo_pair()
    else:
        assert isinstance(error, EngineDied)
        assert error.reason == "out of memory"
        shop.close()


# --- and after all that ------------------------------------------------------------------------------------------


def test_a_good_pair_loads_in_the_same_process_after_many_bad_ones(
    shop: Workshop, tmp_path: Path, demo_pair: tuple[Path, Path], target: bytes, ends: dict[str, int]
) -> None:
    shop.close()
    pid = shop.client.pid
    bad = tmp_path / "bad.gguf"
    for content in (b"", b"GGUF", target[: ends["metadata"]], target[: ends["data"] - 1], bytes(5000)):
        bad.write_bytes(content)
        shop.refuses(bad)
    bad.write_bytes(ggufbytes.sections(ggufbytes.target()).joined())  # one that only llama.cpp itself refuses
    shop.refuses(bad)
    shop.refuses(demo_pair[1], demo_pair[0])
    for _ in range(3):
        with pytest.raises(UsageError):
            shop.load(*demo_pair, context=10**9)
        with pytest.raises(UsageError):
            shop.load(*demo_pair, device="abacus")
    assert shop.client.pid == pid
    shop.loads_the_demo_pair()


def test_a_second_pair_is_refused_and_the_first_goes_on(shop: Workshop, demo_pair: tuple[Path, Path]) -> None:
    loaded = shop.load(*demo_pair)
    with pytest.raises(UsageError, match="loaded already"):
        shop.load(*demo_pair)
    says_something(shop.client, loaded)
    shop.close()


def test_a_file_that_is_replaced_after_loading(shop: Workshop, tmp_path: Path, demo_pair: tuple[Path, Path]) -> None:
    file = tmp_path / "replaced.gguf"
    file.write_bytes(demo_pair[0].read_bytes())
    engine = Engine(shop.client, shop.load(file, demo_pair[1]))
    first = engine.ask("List seven animals.", max_tokens=30, reuse=False)
    (tmp_path / "other").write_bytes(b"nothing")
    (tmp_path / "other").replace(file)  # how downloads and editors replace a file
    assert engine.ask("List seven animals.", max_tokens=30, reuse=False).text == first.text
