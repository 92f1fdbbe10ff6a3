"""The catalog that comes with the app, and what counts as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem.errors import TandemError
from tandem.models.catalog import HUB, Catalog, CatalogFile, CatalogPair, CatalogSize, catalog, load

GIB = 1 << 30
FILES = [(pair, file) for _size, pair in catalog().pairs() for file in pair.files]
NAMES = [f"{pair.key}-{file.role}" for pair, file in FILES]

# The hashes that identify the default pairs, once more and by hand: a slip in the list must not pass unseen.
EXACT = {
    ("e2b", "target"): "419db9a6bf3bc15d770c85ccf9216827aa88c64fe8f3d72fbe5674f48efe2dc8",
    ("e2b", "drafter"): "060f5a0158f8120d25137866b90e04e21cd0d2d23de1db7a9cc3b7f00e60bd11",
    ("e4b", "target"): "5462cc102b7d22c4748f9b8e82091f2ae064e10a45525151af6f9a7d0da7caf9",
    ("e4b", "drafter"): "dc965cb963e56b86fbc04db8efec83163886085e88514574650a57fa55a2ee24",
}


def test_e2b_and_e4b_come_first_and_are_the_main_ones() -> None:
    sizes = catalog().sizes
    assert [size.key for size in sizes] == ["e2b", "e4b", "12b", "26b-a4b", "31b"]
    assert [size.main for size in sizes] == [True, True, False, False, False]


@pytest.mark.parametrize(("key", "role"), list(EXACT))
def test_the_exact_pair_is_the_default_of_each_main_size(key: str, role: str) -> None:
    size = next(size for size in catalog().sizes if size.key == key)
    assert "exact" in size.default.quantisation
    assert size.default.key == key
    file = size.default.target if role == "target" else size.default.drafter
    assert file.pin == EXACT[key, role]


@pytest.mark.parametrize("key", ["e2b", "e4b"])
def test_the_second_source_is_pinned_to_the_byte(key: str) -> None:
    size = next(size for size in catalog().sizes if size.key == key)
    (second,) = size.pairs[1:]
    assert second.source == "unsloth"
    for file in second.files:
        assert file.pin
        assert file.bytes
        assert file.revision


@pytest.mark.parametrize(("pair", "file"), FILES, ids=NAMES)
def test_each_file_is_known_by_its_hash_or_confirmed_by_the_hub(pair: CatalogPair, file: CatalogFile) -> None:
    assert file.sha256 == HUB or (len(file.sha256) == 64 and int(file.sha256, 16) > 0)
    assert file.sha256 == file.sha256.lower()
    assert file.revision is None or len(file.revision) == 40
    assert file.bytes is None or file.about_bytes is None
    assert (file.role == "drafter") is (file is pair.drafter)


def test_only_one_hash_is_left_to_the_hub() -> None:
    assert [(pair.key, file.role) for pair, file in FILES if file.sha256 == HUB] == [("26b-a4b", "drafter")]


def test_every_pair_is_complete_and_has_a_licence() -> None:
    for size, pair in catalog().pairs():
        assert (pair.target.role, pair.drafter.role) == ("target", "drafter")
        assert pair.licence == "Apache-2.0"
        assert pair.source
        assert pair.key.startswith(size.key)
        assert catalog().pair(pair.key.upper()) is pair
        assert catalog().size_of(pair) is size
    assert catalog().pair("nothing") is None


def test_no_hash_no_place_and_no_key_stands_twice() -> None:
    hashes = [file.pin for _pair, file in FILES if file.pin]
    assert len(hashes) == len(set(hashes))
    places = [(file.repo, file.file) for _pair, file in FILES]
    assert len(places) == len(set(places))
    keys = [pair.key for _size, pair in catalog().pairs()]
    assert len(keys) == len(set(keys))


def test_each_file_is_found_by_its_hash_and_by_its_name() -> None:
    for pair, file in FILES:
        if file.pin:
            place = catalog().by_sha256(file.pin)
            assert place is not None
            assert (place.pair, place.file) == (pair, file)
        place = catalog().by_name(file.repo, file.file)
        assert place is not None
        assert place.file is file
    assert catalog().by_sha256("0" * 64) is None
    assert catalog().by_sha256(HUB) is None
    assert catalog().by_name("somebody/else", "a.gguf") is None


def test_sizes_are_plausible() -> None:
    targets = [size.default.target.size for size in catalog().sizes]
    assert targets == sorted(targets)
    for size, pair in catalog().pairs():
        assert 2 * GIB < pair.target.size < 18 * GIB
        if pair.drafter.size:  # two are not known before the Hub is asked
            assert 50_000_000 < pair.drafter.size < pair.target.size / 20
        assert pair.size == pair.target.size + pair.drafter.size
        if size.main:
            assert pair.drafter.size
            assert pair.target.bytes
    assert [pair.key for pair, file in FILES if not file.size] == ["26b-a4b", "31b"]


def test_both_sources_of_a_size_are_about_as_large() -> None:
    for size in catalog().sizes:
        for pair in size.pairs:
            assert abs(pair.size - size.default.size) < size.default.size / 100


def test_the_shape_of_the_main_sizes_gives_the_kv_cache_of_8192_tokens() -> None:
    # Measured elsewhere: 60 MiB for E2B and 168 for E4B, with a window of 512 and a batch of 512.
    for key, mebibytes in (("e2b", 60), ("e4b", 168)):
        shape = next(size.shape for size in catalog().sizes if size.key == key)
        assert shape is not None
        cells = {"full": 8192, "sliding": 1024}
        full = shape.full_layers * shape.kv_heads * 512 * 2 * 2 * cells["full"]
        sliding = shape.sliding_layers * shape.kv_heads * 256 * 2 * 2 * cells["sliding"]
        assert (full + sliding) >> 20 == mebibytes


TARGET = 'role = "target"\nrepo = "a/b"\nfile = "t.gguf"\nsha256 = "hub"\n'
DRAFTER = 'role = "drafter"\nrepo = "a/b"\nfile = "d.gguf"\nsha256 = "hub"\n'
PAIR = (
    '[[sizes.pairs]]\nkey = "x"\nsource = "s"\nquantisation = "q"\nlicence = "MIT"\n'
    f"[sizes.pairs.target]\n{TARGET}[sizes.pairs.drafter]\n{DRAFTER}"
)
WHOLE = f'version = 1\n[[sizes]]\nkey = "x"\nname = "X"\nmain = true\n{PAIR}'


def test_a_small_catalog_is_read(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text(WHOLE, encoding="utf-8")
    read = load(path)
    assert isinstance(read, Catalog)
    assert isinstance(read.sizes[0], CatalogSize)
    assert read.sizes[0].default.target.pin is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no toml at all [",
        WHOLE.replace("version = 1", "version = 2"),
        WHOLE.replace('sha256 = "hub"', 'sha256 = "abc"', 1),
        WHOLE.replace('sha256 = "hub"', f'sha256 = "{"A" * 64}"', 1),
        WHOLE.replace('sha256 = "hub"', f'sha256 = "{"a" * 64}\\n"', 1),
        WHOLE.replace('sha256 = "hub"\n', "", 1),
        WHOLE.replace(f"[sizes.pairs.drafter]\n{DRAFTER}", ""),
        WHOLE.replace('licence = "MIT"\n', ""),
        WHOLE.replace('licence = "MIT"', 'licence = ""'),
        WHOLE.replace('file = "t.gguf"', 'file = "../t.gguf"'),
        WHOLE.replace('file = "t.gguf"', 'file = "t.bin"'),
        WHOLE.replace('repo = "a/b"', 'repo = "a"', 1),
        WHOLE.replace('role = "target"', 'role = "helper"'),
        WHOLE.replace('role = "target"', 'role = "target"\nrevision = "main"'),
        WHOLE.replace('role = "target"', 'role = "target"\nbytes = 0'),
        WHOLE.replace('role = "target"', 'role = "target"\nunknown = 1'),
        WHOLE.replace(PAIR, "pairs = []\n"),
    ],
)
def test_what_is_no_catalog_is_refused_with_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TandemError) as caught:
        load(path)
    assert caught.value.sentence == "Tandem's list of models is damaged."
    assert "catalog.toml" in caught.value.details


def test_a_catalog_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TandemError):
        load(tmp_path / "catalog.toml")
