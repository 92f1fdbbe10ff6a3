"""The file that holds the chats: damaged, newer, older, in use, not writable, on a full disk."""

from __future__ import annotations

import os
import random
import re
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from support.chats import Talk
from tandem.chat import migrate
from tandem.chat.conversation import Node
from tandem.chat.errors import NewerDatabase, StoreDamaged, StoreError, StoreFull, StoreInUse
from tandem.chat.history import History
from tandem.chat.migrate import Migration, migrations
from tandem.errors import TandemError

NAMES = {"chats.db", "chats.db.lock"}


def names(path: Path) -> set[str]:
    return {found.name for found in path.parent.iterdir()}


def filled(path: Path, messages: int = 50) -> None:
    """A store with a chat of several pages, closed."""
    history = History.open(path)
    talk = Talk(history, "before")
    for number in range(messages):
        talk.say(f"message {number} " + "words and more words " * 20)
    history.close()


def killed_with(path: Path, work: str) -> None:
    """Does something with the store `history` in a process that is then killed, so that its log is left."""
    code = (
        "import os, sys, signal\nfrom pathlib import Path\nfrom tandem.chat.conversation import Node\n"
        f"from tandem.chat.history import History\nhistory = History.open(Path(sys.argv[1]))\n{work}\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, path],
        env=os.environ | {"PYTHONPATH": str(Path(migrate.__file__).parents[2])},
        capture_output=True,
        text=True,
    )
    assert found.returncode == -9, found.stderr


def usable(history: History, find: bool = True) -> None:
    talk = Talk(history, "after")
    said = talk.say("after all")
    found = [hit.node for hit in history.search("after all")]
    assert found == [said.id] or not find
    assert history.conversation(talk.chat.id)[1] == [said]


# Damaged


def nuls(data: bytes) -> bytes:
    return bytes(len(data))


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def start(data: bytes) -> bytes:
    return data[:10]


def flipped_inner_page(data: bytes) -> bytes:
    return data[:4096] + bytes(byte ^ 0xFF for byte in data[4096:8192]) + data[8192:]


def page_of_nuls(data: bytes) -> bytes:
    return data[:8192] + bytes(4096) + data[12288:]


def text_file(data: bytes) -> bytes:
    return b"Dear diary,\n" * (len(data) // 12)


def flipped(place: int) -> Callable[[bytes], bytes]:
    def damage(data: bytes) -> bytes:
        return data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]

    return damage


DAMAGES = [nuls, half, start, flipped_inner_page, page_of_nuls, text_file, *map(flipped, (0, 18, 19, 21, 47, 59, 100))]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_kept_and_the_app_goes_on(path: Path, damage: Callable[[bytes], bytes]) -> None:
    filled(path)
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    history = History.open(path)
    kept = history.opened.set_aside
    assert kept is not None
    assert re.fullmatch(r"chats\.damaged-\d{8}-\d{6}\.db", kept.name)
    assert kept.read_bytes() == damaged
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert history.conversations() == []
    usable(history)
    history.close()
    assert names(path) == NAMES | {kept.name}
    again = History.open(path)
    assert again.opened.set_aside is None
    assert [summary.title for summary in again.conversations()] == ["after"]
    again.close()


def test_the_log_of_a_damaged_file_is_kept_with_it(path: Path) -> None:
    filled(path)
    killed_with(path, "history.new('in the log')")
    log = path.with_name("chats.db-wal").read_bytes()
    assert len(log) > 4096
    path.write_bytes(bytes(path.stat().st_size))
    history = History.open(path)
    kept = history.opened.set_aside
    assert kept is not None
    assert kept.with_name(kept.name + "-wal").read_bytes() == log
    # The log is not taken for the new file's.
    assert history.conversations() == []
    history.close()


def test_every_damage_keeps_its_file(path: Path) -> None:
    kept = []
    for _ in range(3):
        path.write_bytes(b"no database" * 100)
        history = History.open(path)
        kept.append(history.opened.set_aside)
        history.close()
    assert len(set(kept)) == 3
    assert all(found is not None and found.exists() for found in kept)


def test_whatever_is_damaged_the_app_opens(path: Path) -> None:
    """Random damage: it opens with all, or with a new file and the old one kept; it never fails nor loses silently."""
    filled(path, 30)
    whole = path.read_bytes()
    rng = random.Random(3)
    outcomes = {"kept": 0, "set aside": 0}
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 8, 200))):
            data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        path.write_bytes(data)
        try:
            history = History.open(path)
        except NewerDatabase:  # the damage made the version a large number
            assert path.read_bytes() == data
            continue
        aside = history.opened.set_aside
        if aside is not None:
            assert aside.read_bytes() == data
            outcomes["set aside"] += 1
        else:
            for summary in history.conversations():
                history.conversation(summary.id)
            history.search("words")
            outcomes["kept"] += 1
        # A flipped bit in the index can hide a message from a search, and nothing else.
        usable(history, find=aside is not None)
        history.close()
        for found in path.parent.iterdir():
            found.unlink()
    assert min(outcomes.values()) > 5, outcomes


def test_a_page_that_cannot_be_read_later_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Large files are not read through at each start.
    monkeypatch.setattr("tandem.chat.store._CHECKED_BYTES", 0)
    filled(path, 400)
    data = path.read_bytes()
    connection = sqlite3.connect(path)
    ((page,),) = connection.execute(
        "SELECT pageno FROM dbstat WHERE name = 'node' AND pagetype = 'leaf' ORDER BY pageno LIMIT 1 OFFSET 20"
    ).fetchall()
    connection.close()
    place = (page - 1) * 4096
    path.write_bytes(data[:place] + bytes(4096) + data[place + 4096 :])

    history = History.open(path)
    assert history.opened.set_aside is None
    (summary,) = history.conversations()
    with pytest.raises(StoreDamaged) as caught:
        history.conversation(summary.id)
    assert caught.value.remedy.startswith("Start Tandem again")
    history.close()

    again = History.open(path)
    assert again.opened.set_aside is not None
    usable(again)
    again.close()
    assert names(path) == NAMES | {again.opened.set_aside.name}


def test_a_damage_found_while_opening_does_not_close_the_app(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.chat.store._CHECKED_BYTES", 0)
    filled(path)
    connection = sqlite3.connect(path)
    ((page,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'unindexed'").fetchall()
    connection.close()
    data = path.read_bytes()
    place = (page - 1) * 4096
    path.write_bytes(data[:place] + b"\xff" * 4096 + data[place + 4096 :])
    history = History.open(path)
    assert history.opened.set_aside is not None
    usable(history)
    history.close()


def test_a_mark_for_nothing_costs_nothing(path: Path) -> None:
    filled(path)
    path.with_name("chats.db.check").touch()
    history = History.open(path)
    assert history.opened.set_aside is None
    assert len(history.conversations()) == 1
    history.close()
    assert names(path) == NAMES


def test_another_programs_database_is_set_aside(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.commit()
    connection.close()
    data = path.read_bytes()
    history = History.open(path)
    assert history.opened.set_aside is not None
    assert history.opened.set_aside.read_bytes() == data
    usable(history)
    history.close()


def test_an_empty_file_is_a_new_one(path: Path) -> None:
    path.touch()
    history = History.open(path)
    assert history.opened.set_aside is None
    usable(history)
    history.close()


DAMAGE_INDEX = "UPDATE gram_data SET block = X'00112233445566778899' WHERE id > 10"


def test_a_damaged_index_is_made_again(path: Path) -> None:
    filled(path)
    connection = sqlite3.connect(path)
    connection.execute(DAMAGE_INDEX)
    connection.commit()
    connection.close()
    history = History.open(path)
    assert history.opened.set_aside is None
    assert len(history.search("message 7 ")) == 5
    assert history._database.connection.execute("SELECT count(*) FROM unindexed").fetchone() == (0,)
    usable(history)
    history.close()


def test_an_index_that_becomes_damaged_loses_nothing(path: Path) -> None:
    filled(path)
    history = History.open(path)
    connection = history._database.connection
    connection.execute(DAMAGE_INDEX)
    assert len(history.search("message 7 ")) == 5
    assert path.with_name("chats.db.check").exists()
    talk = Talk(history)
    said = [talk.say("saved all the same"), talk.say("and this", "assistant", state="streaming")]
    assert [hit.node for hit in history.search("all the same")] == [said[0].id]
    connection.execute(DAMAGE_INDEX)
    history.save(msgspec.structs.replace(said[1], text="and this too", state="done"))
    connection.execute(DAMAGE_INDEX)
    history.delete(talk.chat.id)
    assert history.purge(older_than_s=-1) == 1
    history.close()
    again = History.open(path)
    assert again.opened.set_aside is None
    assert len(again.search("message 7 ")) == 5
    usable(again)
    again.close()
    assert names(path) == NAMES


# Newer


def contents(folder: Path) -> dict[str, bytes]:
    return {found.name: found.read_bytes() for found in folder.iterdir()}


def test_a_newer_database_is_not_touched(path: Path) -> None:
    filled(path)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE of_the_future (x)")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    path.with_name("chats.db.lock").unlink()
    path.chmod(0o640)
    before, time = contents(path.parent), path.stat().st_mtime_ns
    with pytest.raises(NewerDatabase) as caught:
        History.open(path)
    assert "newer Tandem" in caught.value.sentence
    assert contents(path.parent) == before
    assert (path.stat().st_mtime_ns, stat.S_IMODE(path.stat().st_mode)) == (time, 0o640)


def test_a_newer_database_that_was_not_closed_is_not_touched(path: Path) -> None:
    filled(path)
    killed_with(path, "history._database.connection.execute('PRAGMA user_version = 99')")
    assert int.from_bytes(path.read_bytes()[60:64], "big") == len(migrations())
    before = contents(path.parent)
    assert len(before["chats.db-wal"]) > 4096
    with pytest.raises(NewerDatabase):
        History.open(path)
    assert contents(path.parent) == before


# Older

SECOND = Migration(
    2, "-- A comment; with a semicolon.\nALTER TABLE conversation ADD COLUMN colour TEXT DEFAULT 'a;b';\n"
)


def test_the_first_open_makes_no_copy(path: Path) -> None:
    History.open(path).close()
    assert names(path) == NAMES
    assert int.from_bytes(path.read_bytes()[68:72], "big") == migrate.APPLICATION
    History.open(path).close()
    assert names(path) == NAMES


def test_a_copy_is_made_before_a_change_of_shape(path: Path) -> None:
    filled(path)
    killed_with(path, "history.new('only in the log')")
    history = History.open(path, migrations=[*migrations(), SECOND])
    assert [summary.title for summary in history.conversations()] == ["only in the log", "before"]
    assert history._database.connection.execute("SELECT DISTINCT colour FROM conversation").fetchall() == [("a;b",)]
    usable(history)
    history.close()
    (copy,) = names(path) - NAMES
    assert re.fullmatch(r"chats\.version-1-\d{8}-\d{6}\.db", copy)
    assert stat.S_IMODE((path.parent / copy).stat().st_mode) == 0o600
    with pytest.raises(NewerDatabase):
        History.open(path)
    # The copy is whole, and the Tandem that wrote it can use it.
    old = History.open(path.parent / copy)
    assert [summary.title for summary in old.conversations()] == ["only in the log", "before"]
    old.close()


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE conversation ADD COLUMN colour TEXT;\nINSERT INTO note VALUES (NULL, NULL);",
        "INSERT INTO unindexed VALUES (999);",
        "ALTER TABLE conversation ADD COLUMN colour TEXT;\nSELECT 1",
        "ALTER TABLE conversation ADD COLUMN colour TEXT;\nNONSENSE;",
    ],
)
def test_a_change_of_shape_that_fails_changes_nothing(path: Path, sql: str) -> None:
    filled(path)
    with pytest.raises(StoreError):
        History.open(path, migrations=[*migrations(), Migration(2, sql)])
    assert names(path) == NAMES
    history = History.open(path)
    assert [summary.title for summary in history.conversations()] == ["before"]
    history.close()


def test_the_steps_are_numbered_without_gaps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert [step.version for step in migrations()] == list(range(1, len(migrations()) + 1))
    monkeypatch.setattr(migrate, "_MIGRATIONS", tmp_path)
    (tmp_path / "README").touch()
    with pytest.raises(StoreError, match="own files"):
        migrations()
    (tmp_path / "0001_a.sql").touch()
    (tmp_path / "0003_c.sql").touch()
    with pytest.raises(StoreError, match="own files"):
        migrations()


# In use


def test_a_second_window_is_told(path: Path) -> None:
    history = History.open(path)
    talk = Talk(history)
    answer = talk.say("running", "assistant", state="streaming")
    with pytest.raises(StoreInUse) as caught:
        History.open(path)
    assert "other Tandem window" in caught.value.remedy
    # The first one's answer was not taken for one that was left behind.
    assert history.conversation(talk.chat.id)[1] == [answer]
    history.close()
    History.open(path).close()


def test_a_program_that_looks_at_the_file_does_not_disturb(path: Path) -> None:
    history = History.open(path)
    talk = Talk(history)
    reader = sqlite3.connect(path)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM node").fetchone() == (0,)
    talk.say("while it looks")
    reader.close()
    history.close()


def test_a_program_that_holds_the_file_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.chat.store.BUSY_TIMEOUT_S", 0.05)
    history = History.open(path)
    talk = Talk(history)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreInUse):
        talk.say("now")
    writer.execute("ROLLBACK")
    writer.close()
    talk.say("then")
    history.close()


# Not writable


@contextmanager
def ordinary_user() -> Iterator[None]:
    """The tests may run as the administrator, who may write anything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder into which an ordinary user can look."""
    folder = tmp_path / "folder"
    folder.mkdir()
    above = [parent for parent in (folder, *folder.parents) if parent.owner() == folder.owner() and parent != Path("/")]
    modes = {parent: parent.stat().st_mode for parent in above}
    for parent, mode in modes.items():
        parent.chmod(mode | 0o055)
    yield folder
    for parent, mode in modes.items():
        parent.chmod(mode)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of another kind")
@pytest.mark.parametrize("there", [False, True])
def test_a_folder_that_cannot_be_written(open_folder: Path, there: bool) -> None:
    path = open_folder / "chats.db"
    if there:
        filled(path)
    for found in open_folder.iterdir():
        found.chmod(0o444)
    open_folder.chmod(0o555)
    before = contents(open_folder)
    with ordinary_user(), pytest.raises(StoreError) as caught:
        History.open(path)
    assert "may not write" in caught.value.sentence
    assert str(path) in caught.value.sentence
    assert contents(open_folder) == before


def test_a_file_that_became_read_only_is_said(history: History, talk: Talk) -> None:
    history._database.connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match="may not write"):
        talk.say("x")
    history._database.connection.execute("PRAGMA query_only = OFF")
    talk.say("y")


@pytest.mark.parametrize("kind", ["folder", "under a file"])
def test_a_place_where_no_file_can_be(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "chats.db"
    if kind == "folder":
        path.mkdir()
    else:
        path.touch()
        path = path / "chats.db"
    with pytest.raises(StoreError) as caught:
        History.open(path)
    assert caught.value.remedy


# Full


def test_a_full_disk_is_said_and_loses_nothing(history: History, talk: Talk, path: Path) -> None:
    said = talk.say("before")
    connection = history._database.connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StoreFull) as caught:
        talk.say("too much " * 10_000)
    assert "full" in caught.value.sentence
    assert "Make room" in caught.value.remedy
    with pytest.raises(StoreFull):
        history.save(msgspec.structs.replace(said, text="grown " * 10_000))
    with pytest.raises(StoreFull):
        history.set_draft(None, "x" * 100_000)
    assert history.conversation(talk.chat.id)[1] == [said]
    assert [hit.node for hit in history.search("before")] == [said.id]
    assert history.search("much") == []
    connection.execute("PRAGMA max_page_count = 100000")
    more = talk.say("there is room again")
    history.close()
    again = History.open(path)
    assert again.opened.set_aside is None
    assert again.conversation(talk.chat.id)[1] == [said, more]
    again.close()


LIMITED = """
import resource, signal, sys
from pathlib import Path
from tandem.chat.conversation import Node
from tandem.chat.history import History
from tandem.errors import TandemError
path = Path(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
if sys.argv[2] == "start":
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
try:
    history = History.open(path)
    chat = history.new("kept")
    history.add(Node(0, chat.id, None, "user", "before"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    for number in range(1000):
        history.add(Node(0, chat.id, None, "user", f"{number} " + "x" * 3000))
except TandemError as error:
    print(type(error).__name__, error.sentence, error.remedy, sep="|")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits as on Linux")
@pytest.mark.parametrize("when", ["later", "start"])
def test_a_file_that_cannot_grow(path: Path, when: str) -> None:
    """A real refusal of the system's, which stands for a full disk or a quota."""
    found = subprocess.run(
        [sys.executable, "-c", LIMITED, path, when],
        env=os.environ | {"PYTHONPATH": str(Path(migrate.__file__).parents[2])},
        capture_output=True,
        text=True,
    )
    kind, sentence, remedy = found.stdout.strip().split("|")
    assert kind in ("StoreError", "StoreFull"), found.stderr
    assert sentence.endswith(".")
    assert "room" in remedy
    history = History.open(path)
    assert history.opened.set_aside is None
    if when == "later":
        (summary,) = history.conversations()
        _, nodes = history.conversation(summary.id)
        assert nodes[0].text == "before"
        assert 5 < len(nodes) < 1000
        assert all(node.text.startswith(f"{number} xxx") for number, node in enumerate(nodes[1:]))
    usable(history)
    history.close()


def test_a_mistake_of_ours_is_no_message(history: History) -> None:
    history.close()
    with pytest.raises(sqlite3.ProgrammingError):
        history.conversations()
    with pytest.raises(sqlite3.ProgrammingError):
        history.add(Node(0, 1, None, "user", "x"))


def test_what_goes_wrong_has_a_sentence_and_a_remedy() -> None:
    for kind in (NewerDatabase, StoreDamaged, StoreError, StoreFull, StoreInUse):
        assert issubclass(kind, TandemError)
