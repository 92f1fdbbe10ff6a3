"""`tandem models list`, `verify`, `import` and `remove`, and a chat with what is installed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import msgspec
import pytest

from support.catalogs import write_catalog
from support.command import environment, in_terminal, tandem_run
from support.model_command import Shell
from support.modelfiles import drafter_bytes, flip, llama_bytes, target_bytes
from support.shelf import catalog as small_catalog
from support.shelf import content, put
from tandem import paths, settings
from tandem.models.catalog import Catalog, CatalogPair, catalog
from tandem.models.records import Installed, now
from tandem.settings import Settings

STORY = "Tell me a short story about a fox."
GREEDY = ("--temperature", "0", "--threads", "1", "--max-tokens", "12")


@pytest.fixture
def shell(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Shell:
    return Shell.at(tmp_path, capfd)


def plain(text: str) -> bool:
    """Whether a text is lines of characters, and nothing that a terminal would act upon."""
    return all(character.isprintable() or character == "\n" for character in text)


# --- list


def test_the_list_names_every_pair_of_the_catalog() -> None:
    outcome = tandem_run("models", "list")
    assert (outcome.code, outcome.err) == (0, "")
    assert plain(outcome.out)
    rows = outcome.out.splitlines()
    assert rows[0].split() == ["Pair", "State", "Size", "Model", "Source", "Licence"]
    for size, pair in catalog().pairs():
        (row,) = [row for row in rows if row.startswith(f"{pair.key} ")]
        for part in ("not here", size.name, pair.quantisation, pair.source, pair.licence):
            assert part in row
    assert rows[-1].startswith(f"Model folder: {paths.models_dir()}")


def test_without_a_command_it_lists(shell: Shell) -> None:
    assert shell.models().out.splitlines()[:-1] == shell.models("list").out.splitlines()[:-1] != []


def test_the_list_as_one_object(shell: Shell) -> None:
    put(shell.store, "e4b")
    found = shell.models("list", "--json")
    assert (found.code, found.err) == (0, "")
    states = {pair["key"]: pair["state"] for pair in found.json["pairs"]}
    assert states == {"e2b": "absent", "e4b": "installed"}
    assert found.json["folder"] == str(paths.models_dir())
    assert found.json["pairs"][1]["target"] == str(shell.store.place(shell.pair("e4b").target))


def test_what_was_left_by_a_run_that_was_killed_is_listed_as_paused(shell: Shell) -> None:
    pair, data = shell.pair(), content("e2b", "target")
    part = shell.store.part(pair.target)
    part.parent.mkdir(parents=True)
    part.write_bytes(data[: len(data) * 2 // 5])
    share = part.stat().st_size * 100 // pair.size
    assert f"paused, {share} %" in shell.models("list").out
    assert shell.models("list", "--json").json["pairs"][0]["state"] == "paused"


def test_a_size_that_nobody_knows(shell: Shell, tmp_path: Path) -> None:
    two, four = small_catalog().sizes

    def without(pair: CatalogPair, *roles: str) -> CatalogPair:
        files = {file.role: msgspec.structs.replace(file, bytes=None) for file in pair.files if file.role in roles}
        return msgspec.structs.replace(pair, **files)

    sizes = (
        msgspec.structs.replace(two, pairs=(without(two.default, "drafter"),)),
        msgspec.structs.replace(four, pairs=(without(four.default, "target", "drafter"),)),
    )
    known = write_catalog(tmp_path / "unknown.toml", Catalog(1, sizes))
    part = shell.store.part(two.default.target)
    part.parent.mkdir(parents=True)
    part.write_bytes(b"GGUF")
    rows = shell.tandem("models", "--catalog", known, "list").out.splitlines()
    assert re.match(r"e2b +paused +> 5\.5 MiB +Tiny", rows[1])
    assert re.match(r"e4b +not here +unknown +Tiny", rows[2])
    pairs = shell.tandem("models", "--catalog", known, "list", "--json").json["pairs"]
    assert [file["total"] for pair in pairs for file in pair["files"]] == [two.default.target.bytes, None, None, None]


def test_other_files_are_listed_with_their_paths_and_how_to_chat_with_them(shell: Shell, tmp_path: Path) -> None:
    for name, data in (("t.gguf", target_bytes()), ("d.gguf", drafter_bytes()), ("l.gguf", llama_bytes())):
        (tmp_path / name).write_bytes(data)
    shell.models("import", "--in-place", tmp_path / "t.gguf", tmp_path / "l.gguf")
    listed = shell.models("list").out.splitlines()
    assert f"  {tmp_path / 't.gguf'}" in listed
    assert f"  Chat with it: tandem chat --target {tmp_path / 't.gguf'}" in listed
    assert f"  Chat with it: tandem chat --target {tmp_path / 'l.gguf'}" in listed
    shell.models("import", "--in-place", tmp_path / "d.gguf")
    listed = shell.models("list").out.splitlines()
    line = f"tandem chat --target {tmp_path / 't.gguf'} --drafter {tmp_path / 'd.gguf'}"
    assert [row for row in listed if "Chat with it" in row] == [
        f"  Chat with it: {line}",
        f"  Chat with it: tandem chat --target {tmp_path / 'l.gguf'}",
    ]


def test_a_file_is_no_model_folder(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_text("# Tandem\n")
    found = shell.models("list", "--dir", file)
    assert (found.code, found.out) == (2, "")
    assert found.complaint() == f"tandem: {file} is a file, not a folder.\nGive a folder.\n"


@pytest.mark.parametrize("name", ["모델", "Загрузки", "田中", "🚲"])
def test_a_folder_with_any_name(name: str, shell: Shell, tmp_path: Path) -> None:
    found = shell.models("list", "--dir", tmp_path / name)
    assert f"Model folder: {tmp_path / name} · " in found.out
    assert shell.models("list", "--dir", tmp_path / name, "--json").json["folder"] == str(tmp_path / name)


def test_a_folder_whose_name_is_no_unicode(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"mod\xe8les")
    assert shell.models("list", "--dir", folder).code == 0
    assert json.loads(shell.models("list", "--dir", folder, "--json").out)["folder"] == str(folder)


def test_the_folder_of_the_settings_is_the_usual_one(shell: Shell, tmp_path: Path) -> None:
    settings.save(Settings().changed(models_folder=str(tmp_path / "elsewhere")))
    assert f"Model folder: {tmp_path / 'elsewhere'} · " in shell.models("list").out


@pytest.mark.parametrize("columns", [80, 40])
def test_no_line_of_the_list_is_wider_than_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.command.environment", lambda: {**environment(), "COLUMNS": str(columns)})
    with in_terminal("models") as run:
        found = run.end()
    *rows, folder = [row for row in found.out.splitlines() if row]
    assert folder.startswith("Model folder")
    assert len(rows) >= 14 if columns == 40 else len(rows) == 8
    assert max(map(len, rows)) <= columns


# --- verify


def test_verify_finds_a_flipped_byte_sets_the_file_aside_and_ends_with_three(shell: Shell) -> None:
    target, _drafter = put(shell.store, "e2b")
    good = shell.models("verify", "--json")
    assert (good.code, good.err, good.json["ok"]) == (0, "", True)
    assert [file["state"] for file in good.json["files"]] == ["installed", "installed"]
    flip(target)
    bad = shell.models("verify")
    assert bad.code == 3
    assert "1 of 2 files are right." in bad.out
    assert "set aside" in bad.out
    assert f"tandem: {target.name} is not the file it should be" in bad.err
    assert not target.exists()
    assert len(list((shell.store.folder / "quarantine").glob("*.gguf"))) == 1
    listed = shell.models("list").out
    assert "set aside" in listed
    assert f"{target.name} is not the file it should be" in listed


def test_verify_as_json_says_what_is_wrong_in_the_object_too(shell: Shell) -> None:
    target, drafter = put(shell.store, "e2b")
    flip(drafter)
    target.unlink()
    bad = shell.models("verify", "--json")
    assert (bad.code, bad.json["ok"]) == (3, False)
    assert [file["state"] for file in bad.json["files"]] == ["missing", "quarantined"]
    assert all(file["sentence"] and file["remedy"] for file in bad.json["files"])


def test_verify_takes_names(shell: Shell) -> None:
    target, drafter = put(shell.store, "e2b")
    put(shell.store, "e4b")
    for names, expected in (
        ([drafter.name], [drafter.name]),
        ([str(target)], [target.name]),
        (["e2b"], [target.name, drafter.name]),
    ):
        found = shell.models("verify", *names, "--json")
        assert [file["name"] for file in found.json["files"]] == expected


def test_ctrl_c_stops_a_check_and_leaves_the_file_as_it_was(shell: Shell, tmp_path: Path) -> None:
    big = tmp_path / "big.gguf"
    with big.open("wb") as stream:
        stream.truncate(64 << 30)  # holes, which take no room and minutes to hash
    status = big.stat()
    entry = Installed(big, "target", status.st_size, status.st_mtime_ns, "0" * 64, now(), now(), in_place=True)
    shell.store.keep(entry)
    with in_terminal("models", "verify") as run:
        run.wait_for(r"Verifying big\.gguf")
        run.type("\x03")
        outcome = run.end()
    assert outcome.code == 130
    assert "Stopped. What was verified before is kept." in outcome.out
    assert shell.store.installed() == (entry,)


def test_nothing_to_verify_is_no_error(shell: Shell) -> None:
    found = shell.models("verify")
    assert (found.code, found.out) == (0, "There is no installed file to verify.\n")
    named = shell.models("verify", "e2b")
    assert (named.code, named.out) == (3, "")
    assert named.complaint().startswith("tandem: The pair e2b is not installed.\n")
    put(shell.store, "e4b")
    assert shell.models("verify", "e4b", "e2b").code == 3
    assert shell.models("verify", "e4b").code == 0


def test_a_file_in_place_that_has_changed_is_left_there_and_not_used(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(target_bytes())
    shell.models("import", "--in-place", file)
    flip(file)
    os.utime(file)
    said = "mine.gguf is not the file it was when it was added. It was left where it is and is not used."
    found = shell.models("verify")
    assert found.code == 3
    assert f"tandem: {said}" in found.err
    assert found.out.startswith("changed, not used ")
    listed = shell.models("list").out
    assert "mine.gguf: changed, not used, " in listed
    assert said in listed
    assert "Chat with it" not in listed
    assert file.exists()


# --- import


def test_import_knows_a_file_of_the_catalog_by_its_content(shell: Shell, tmp_path: Path) -> None:
    one, other = tmp_path / "a.gguf", tmp_path / "b.bin"
    one.write_bytes(content("e2b", "target"))
    other.write_bytes(content("e2b", "drafter"))
    found = shell.models("import", one, other)
    assert found.code == 0
    assert "a.gguf: the target of e2b, copied" in found.out
    assert "b.bin: the drafter of e2b, copied" in found.out
    assert found.out.splitlines()[-1].startswith("The pair e2b is complete. Chat with it: tandem chat")
    assert plain(found.out + found.err)
    assert one.exists()
    assert shell.store.pair_paths(shell.pair()) is not None
    again = shell.models("import", one)
    assert "a.gguf: the target of e2b, installed already" in again.out


@pytest.mark.parametrize(
    ("flag", "said"), [("--copy", "copied"), ("--link", "linked"), ("--in-place", "used where it is")]
)
def test_how_a_file_is_taken(flag: str, said: str, shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "모델 🚲.gguf"
    file.write_bytes(target_bytes())
    found = shell.models("import", flag, file)
    assert found.code == 0
    assert f"모델 🚲.gguf: a target (gemma4, Q4_0), {said}" in found.out
    (entry,) = shell.store.installed()
    assert entry.in_place == (flag == "--in-place")
    assert entry.path.samefile(file) == (flag != "--copy")


def test_a_file_is_taken_in_one_way(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "t.gguf"
    file.write_bytes(target_bytes())
    found = shell.models("import", "--copy", "--link", file)
    assert (found.code, found.out) == (2, "")
    assert found.complaint().splitlines()[1] == "Take one of --copy, --link and --in-place."
    assert shell.store.installed() == ()


def test_a_pair_from_elsewhere_is_told_as_one(shell: Shell, tmp_path: Path) -> None:
    for name, data in (("t.gguf", target_bytes()), ("d.gguf", drafter_bytes()), ("o.gguf", drafter_bytes("e4b"))):
        (tmp_path / name).write_bytes(data)
    good = shell.models("import", "--in-place", tmp_path / "t.gguf", tmp_path / "d.gguf")
    line = f"tandem chat --target {tmp_path / 't.gguf'} --drafter {tmp_path / 'd.gguf'}"
    assert good.out.splitlines()[-1] == f"They are a pair. Chat with it: {line}"
    bad = shell.models("import", "--in-place", tmp_path / "t.gguf", tmp_path / "o.gguf")
    assert bad.code == 0
    assert "They are not a pair." in bad.out
    assert "1,536" in bad.out
    assert "2,560" in bad.out


def test_what_cannot_be_imported_does_not_keep_the_others_out(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "page.gguf").write_text("<html>Sign in to this network</html>")
    (tmp_path / "llama.gguf").write_bytes(llama_bytes())
    found = shell.models("import", tmp_path / "page.gguf", tmp_path / "nothing.gguf", tmp_path / "llama.gguf")
    assert found.code == 3
    said = [line for line in found.err.splitlines() if line.startswith("tandem: ")]
    assert len(said) == 2
    assert "page.gguf" in said[0]
    assert "nothing.gguf" in said[1]
    assert "llama.gguf: a model (llama" in found.out
    assert "licence is not known" in found.out


@pytest.mark.parametrize(("answer", "said"), [("\r", "copied"), ("link\r", "linked"), ("\x03", "")])
def test_import_asks_once_at_a_terminal(answer: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "t.gguf").write_bytes(target_bytes())
    (tmp_path / "d.gguf").write_bytes(drafter_bytes())
    with in_terminal("models", "import", tmp_path / "t.gguf", tmp_path / "d.gguf") as run:
        run.wait_for(r"How shall it be taken\? \(copy, link, in-place\) \[copy\]: ")
        run.wait_until_it_reads()
        run.type(answer)
        outcome = run.end()
    assert outcome.out.count("How shall it be taken?") == 1
    assert outcome.code == (0 if said else 130)
    assert outcome.out.count(f", {said}") == 2 if said else "They are a pair" not in outcome.out


# --- wrong use


@pytest.mark.parametrize(
    "arguments",
    [["remove", "nothing.gguf"], ["remove"], ["verify", "nothing"], ["import"], ["download"], ["download", "e9b"]],
    ids=" ".join,
)
def test_wrong_use_ends_with_two_and_says_where_to_look(arguments: list[str], shell: Shell) -> None:
    found = shell.models(*arguments)
    assert (found.code, found.out) == (2, "")
    found.complaint()


def test_an_unknown_pair_is_answered_with_the_known_ones(shell: Shell) -> None:
    assert "e2b, e4b" in shell.models("download", "e9b").complaint()


# --- chat


def test_a_chat_with_an_installed_pair(shell: Shell) -> None:
    target, drafter = put(shell.store, "e2b")
    line = ["chat", "--catalog", shell.catalog, "--pair", "E2B", "--prompt", STORY, *GREEDY, "--json"]
    engine = shell.tandem(*line).json["engine"]
    assert (engine["target"], engine["drafter"]) == (target.name, drafter.name)
    flip(target)
    os.utime(target)
    changed = shell.tandem(*line)
    assert changed.code == 3
    assert target.name in changed.complaint()


def test_a_chat_with_a_pair_whose_list_was_made_anew(shell: Shell) -> None:
    target, _drafter = put(shell.store, "e2b")
    shell.store.index.path.write_text("[")
    said = shell.tandem("chat", "--catalog", shell.catalog, "--pair", "e2b", "--prompt", "x")
    assert said.code == 3
    assert said.complaint() == (
        f"tandem: {target.name} has not been verified yet.\nVerify it: tandem models verify e2b.\n"
    )
    assert shell.models("verify", "e2b").code == 0
    assert shell.store.pair_paths(shell.pair()) is not None


def test_a_chat_with_a_pair_that_is_not_installed_says_how_to_get_it(shell: Shell) -> None:
    said = shell.tandem("chat", "--pair", "e2b", "--prompt", "x")
    assert said.code == 3
    assert "tandem models download e2b" in said.complaint()
    unknown = shell.tandem("chat", "--pair", "e9b", "--prompt", "x")
    assert unknown.code == 2
    assert "e2b" in unknown.complaint()
