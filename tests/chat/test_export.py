"""Chats to files and back, and files that mean harm."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.chats import Talk
from tandem.chat import export
from tandem.chat.conversation import ACCEPTED, OWN, REJECTED, Conversation, Figures, Node, Run
from tandem.chat.errors import Gone
from tandem.chat.export import NotImported, export_all, export_chat, import_file
from tandem.chat.history import Changes, History
from tandem.engine.metrics import RunStats
from tandem.errors import TandemError

FIGURES = Figures(
    RunStats(generated=7, passes=3, verified=6, accepted=4, accepted_at=[3, 1], decode_tok_s=21.5),
    "3", "mtp", 2**63, "CPU", 2, 8192, "target.gguf", "drafter.gguf", "end", 4,
)  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "내보내기 😀.json"


@pytest.fixture
def full(history: History) -> History:
    """A store with two chats, one of them with everything."""
    Talk(history, "empty")
    talk = Talk(history, '한글 "title"')
    first = talk.say("question\nof two lines 😀")
    talk.say(
        "answer", "assistant", thought="hm", figures=FIGURES, state="limit", problem="P.", remedy="R.", thinking=True,
        thought_s=0.5, runs=(Run("thought", 2, OWN), Run("answer", 5, ACCEPTED), Run("answer", 1, REJECTED)),
    )  # fmt: skip
    talk.say("another answer", "assistant", parent=first.id)
    talk.say("running", "assistant", parent=first.id, state="streaming")
    talk.say("another question", parent=0)
    history.set_draft(talk.chat.id, "unsent")
    history.set_active(talk.chat.id, first.id + 1)
    return history


def plain(file: Path) -> list[Any]:
    return json.loads(file.read_bytes())["chats"]  # type: ignore[no-any-return]


def everything(history: History) -> list[tuple[Conversation, list[Node]]]:
    return [history.conversation(summary.id) for summary in history.conversations()]


def test_what_was_exported_comes_back_equal(full: History, file: Path, tmp_path: Path) -> None:
    assert export_all(full, file, "json") == 2
    before = everything(full)
    other = History.open(tmp_path / "other.db")
    assert import_file(other, file) == Changes(2, 5)
    again = tmp_path / "again.json"
    assert export_all(other, again, "json") == 2
    running = plain(file)[0]["messages"][3]
    assert running["state"] == "streaming"
    running["state"] = "interrupted"  # it runs nowhere any more
    expected = plain(file)
    expected[0]["messages"][3] = running
    assert plain(again) == expected
    other.close()
    # And the store that it came from has them already.
    assert import_file(full, file) == Changes(0, 0, 2)
    assert everything(full) == before


def test_what_is_here_is_skipped_under_another_name_and_when_it_went_on(full: History, file: Path) -> None:
    export_all(full, file, "json")
    first, second = (summary.id for summary in full.conversations())
    full.rename(first, "Another name")
    leaf = full.conversation(second)[0].active
    full.add(Node(0, second, leaf, "user", "and it went on"))
    before = everything(full)
    assert import_file(full, file) == Changes(0, 0, 2)
    assert everything(full) == before


def test_a_chat_that_went_on_elsewhere_is_read_in_beside_the_shorter_one(full: History, file: Path) -> None:
    export_all(full, file, "json")
    content = json.loads(file.read_bytes())
    messages = content["chats"][0]["messages"]
    messages.append(messages[-1] | {"id": 99, "text": "said on another machine"})
    file.write_text(json.dumps(content))
    assert import_file(full, file) == Changes(1, len(messages), 1)
    assert len(full.search("said on another machine")) == 1


def test_a_deleted_chat_is_not_here(full: History, file: Path) -> None:
    export_all(full, file, "json")
    for summary in full.conversations():
        full.delete(summary.id)
    assert import_file(full, file) == Changes(2, 5)


def test_chats_without_messages_are_told_apart_by_title(history: History, file: Path) -> None:
    history.new("one")
    export_all(history, file, "json")
    assert import_file(history, file) == Changes(0, 0, 1)
    content = json.loads(file.read_bytes())
    content["chats"][0]["conversation"]["title"] = "two"
    file.write_text(json.dumps(content))
    assert import_file(history, file) == Changes(1, 0)


def test_one_chat(full: History, file: Path) -> None:
    number = full.conversations()[0].id
    export_chat(full, number, file, "json")
    document = json.loads(file.read_bytes())
    assert document["format"] == "tandem-chats"
    assert document["version"] == 1
    assert [chat["conversation"]["title"] for chat in document["chats"]] == ['한글 "title"']
    assert [message["id"] for message in document["chats"][0]["messages"]] == [1, 2, 3, 4, 5]
    assert document["chats"][0]["messages"][1]["figures"]["stats"]["accepted_at"] == [3, 1]
    assert document["chats"][0]["conversation"]["active"] == 2
    export_chat(full, number, file.with_suffix(".md"), "markdown")
    assert file.with_suffix(".md").read_text("utf-8").startswith('# 한글 "title"\n')


def test_deleted_chats_are_not_exported(full: History, file: Path) -> None:
    full.delete(full.conversations()[0].id)
    assert export_all(full, file, "json") == 1
    assert export_all(full, file, "markdown") == 1


def test_no_chats_at_all(history: History, file: Path) -> None:
    assert export_all(history, file, "json") == 0
    assert import_file(history, file) == Changes(0, 0)
    assert export_all(history, file, "markdown") == 0
    assert file.read_bytes() == b""


def test_all_chats_in_one_document(full: History, file: Path) -> None:
    assert export_all(full, file, "markdown") == 2
    text = file.read_text("utf-8")
    assert "\n---\n\n# empty\n" in text
    assert text.index("한글") < text.index("# empty")


def test_an_export_is_private_and_replaces(full: History, file: Path) -> None:
    file.write_text("old")
    file.chmod(0o644)
    export_all(full, file, "json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {found.name for found in file.parent.iterdir()} - {"chats.db", "chats.db-wal", "chats.db-shm"} == {
        "chats.db.lock",
        file.name,
    }


def test_a_chat_that_is_not_there_leaves_the_old_file(full: History, file: Path) -> None:
    file.write_text("old")
    with pytest.raises(Gone):
        export_chat(full, 999, file, "json")
    assert file.read_text() == "old"
    assert not list(file.parent.glob(".tandem-*"))


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_an_export_that_cannot_be_written_is_said(full: History, tmp_path: Path, form: export.Form) -> None:
    with pytest.raises(TandemError) as caught:
        export_all(full, tmp_path / "no folder" / "x.json", form)
    assert "x.json" in caught.value.sentence
    assert "another folder" in caught.value.remedy
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(TandemError):
        export_all(full, tmp_path / "folder.json", form)


def test_a_full_disk_leaves_the_old_file(full: History, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("old")

    def fsync(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(TandemError) as caught:
        export_all(full, file, "json")
    assert "make room" in caught.value.remedy
    assert file.read_text() == "old"
    assert not list(file.parent.glob(".tandem-*"))


def message(number: int = 1, parent: int | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": number, "conversation": 1, "parent": parent, "role": "user", "text": "x"} | fields


def document(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    chat = {"id": 1, "title": "t", "created": 1.0, "updated": 1.0} | fields
    return {"format": "tandem-chats", "version": 1, "chats": [{"conversation": chat, "messages": list(messages)}]}


def put(file: Path, content: Any) -> None:
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


def test_a_small_document_by_hand(history: History, file: Path) -> None:
    put(file, b"\xef\xbb\xbf" + json.dumps(document(message(7), message(3, 7, role="assistant"), active=3)).encode())
    assert import_file(history, file) == Changes(1, 2)
    ((conversation, nodes),) = everything(history)
    assert [(node.role, node.parent) for node in nodes] == [("user", None), ("assistant", nodes[0].id)]
    assert conversation.active == nodes[1].id


def figures(**fields: Any) -> dict[str, Any]:
    return json.loads(msgspec.json.encode(FIGURES)) | fields  # type: ignore[no-any-return]


DAMAGED = {
    "a circle": document(message(1, 2), message(2, 1)),
    "its own parent": document(message(1, 1)),
    "a parent that is not there": document(message(1, 9)),
    "an id twice": document(message(1), message(1)),
    "a wrong role": document(message(role="system")),
    "a wrong state": document(message(state="x")),
    "a text that is a number": document(message(text=1)),
    "no text": document({"id": 1, "conversation": 1, "parent": None, "role": "user"}),
    "an id that is a text": document(message(id="1")),
    "a time before all": document(message(created=-1)),
    "a time after all": document(message(created=1e300)),
    "a title that is a list": document(message(), title=["x"]),
    "a chat without times": {"format": "tandem-chats", "version": 1, "chats": [{"conversation": {}, "messages": []}]},
    "a chat after all time": document(updated=1e18),
    "a chat that is null": {"format": "tandem-chats", "version": 1, "chats": [None]},
    "a thought of no length": document(message(thought_s=-1)),
    "a run of a wrong kind": document(message(runs=[["answer", "1", 0]])),
    "a run of no channel": document(message(runs=[["x", 1, 0]])),
    "figures that are none": document(message(figures={"stats": 1})),
    "a number beyond all": document(message(figures=figures(seed=10**30))),
    "a number below all": document(message(figures=figures(threads=-1))),
    "a name beyond all": document(message(figures=figures(target="x" * 5000))),
    "a draft beyond all": document(message(figures=figures(stats={"accepted_at": [1] * 1000}))),
    "deep figures": b'{"format":"tandem-chats","version":1,"chats":[{"conversation":{"x":'
    + b"[" * 20_000
    + b"]" * 20_000
    + b'},"messages":[]}]}',
}

FOREIGN = {
    "nothing": b"",
    "no JSON": b"hello",
    "NULs": bytes(1000),
    "no UTF-8": b'{"format":"tandem-chats","version":1,"exported":"\xff"}',
    "a list": b"[]",
    "another format": {"format": "other", "version": 1, "chats": []},
    "no version": {"format": "tandem-chats", "chats": []},
    "a version below all": {"format": "tandem-chats", "version": -3, "chats": []},
    "a version that is a text": {"format": "tandem-chats", "version": "1", "chats": []},
    "cut off": json.dumps(document(message())).encode()[:-20],
    "deep": b"[" * 1_000_000,
    "deep inside": b'{"format":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_document_changes_nothing(history: History, file: Path, case: str) -> None:
    content = DAMAGED[case]
    if isinstance(content, dict):
        content["chats"].insert(0, document(message(text="a good chat before it"))["chats"][0])
    put(file, content)
    with pytest.raises(NotImported) as caught:
        import_file(history, file)
    assert "nothing was read in" in caught.value.sentence or "exported" in caught.value.sentence
    assert everything(history) == []
    assert history.search("good chat") == []
    history.new("still works")


@pytest.mark.parametrize("case", FOREIGN)
def test_what_is_no_document_is_said(history: History, file: Path, case: str) -> None:
    put(file, FOREIGN[case])
    with pytest.raises(NotImported) as caught:
        import_file(history, file)
    assert file.name in caught.value.sentence
    assert everything(history) == []


def test_a_newer_document_is_said(history: History, file: Path) -> None:
    put(file, {"format": "tandem-chats", "version": 2, "chats": [{"of": "the future"}]})
    with pytest.raises(NotImported, match="newer Tandem"):
        import_file(history, file)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda _path: None])
def test_what_is_no_file_is_said(history: History, file: Path, make: Callable[[Path], None]) -> None:
    make(file)
    with pytest.raises(NotImported):
        import_file(history, file)


def test_sizes_are_bounded(history: History, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(file, document(message(1), message(2), message(3)))
    monkeypatch.setattr(export, "MOST_MESSAGES", 2)
    with pytest.raises(NotImported, match="more chats or messages"):
        import_file(history, file)
    monkeypatch.undo()
    monkeypatch.setattr(export, "MOST_CHATS", 0)
    with pytest.raises(NotImported, match="more chats or messages"):
        import_file(history, file)
    monkeypatch.undo()
    monkeypatch.setattr(export, "MOST_BYTES", 100)
    with pytest.raises(NotImported, match="larger than"):
        import_file(history, file)
    monkeypatch.undo()
    assert everything(history) == []
    assert import_file(history, file) == Changes(1, 3)


def test_a_very_deep_chat(history: History, file: Path) -> None:
    put(file, document(*(message(number, number - 1 or None) for number in range(1, 5001))))
    assert import_file(history, file) == Changes(1, 5000)
    ((conversation, nodes),) = everything(history)
    assert conversation.active == nodes[-1].id


def test_texts_are_cleaned_and_colours_that_do_not_fit_are_left_out(history: History, file: Path) -> None:
    right, wrong = [["answer", 3, 0]], [["answer", 2, 0]]
    put(
        file,
        document(
            message(1, text="a\0b", title="x", runs=right),
            message(2, text="abc", runs=wrong),
            title="a\0\nb",
            draft="d\0",
            system="s\0",
            active=99,
        ),
    )
    import_file(history, file)
    ((conversation, nodes),) = everything(history)
    assert [node.text for node in nodes] == ["a\ufffdb", "abc"]
    assert [node.runs for node in nodes] == [(Run("answer", 3, 0),), ()]
    assert (conversation.title, conversation.draft, conversation.system) == ("a\ufffd b", "d\ufffd", "s\ufffd")
    assert conversation.active == nodes[-1].id


def test_a_full_store_takes_all_or_nothing(history: History, file: Path) -> None:
    put(file, document(*(message(number, text="x" * 5000) for number in range(1, 200))))
    connection = history._database.connection
    connection.execute("PRAGMA max_page_count = 60")
    with pytest.raises(TandemError, match="full"):
        import_file(history, file)
    assert everything(history) == []
    connection.execute("PRAGMA max_page_count = 100000")
    assert import_file(history, file).messages == 199


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [*Node.__struct_fields__, *Conversation.__struct_fields__]
ODD = st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(st.data())
def test_whatever_stands_in_it_all_or_nothing_is_read_in(history: History, file: Path, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 5))
    ids = st.integers(0, 6)
    messages = [
        message(data.draw(ids), data.draw(st.none() | ids))
        | data.draw(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=1))
        for _ in range(count)
    ]
    content = document(*messages, **data.draw(ODD))
    put(file, content)
    before = len(history.conversations())
    try:
        added = import_file(history, file)
    except NotImported:
        assert len(history.conversations()) == before
        return
    assert added in (Changes(1, count), Changes(0, 0, 1))
    assert len(history.conversations()) == before + added.chats
    for conversation, nodes in everything(history):
        known = {node.id for node in nodes}
        assert all(node.parent is None or (node.parent in known and node.parent < node.id) for node in nodes)
        assert conversation.active in known
    export_all(history, file, "json")
    msgspec.json.decode(file.read_bytes())


NODE_TEXTS = st.text(max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 10), NODE_TEXTS, NODE_TEXTS, st.floats(0, 4e9)), max_size=10), NODE_TEXTS)
def test_round_trips(tmp_path_factory: pytest.TempPathFactory, given: list[Any], title: str) -> None:
    folder = tmp_path_factory.mktemp("round")
    one, two = History.open(folder / "one.db"), History.open(folder / "two.db")
    talk = Talk(one, title)
    ids: list[int] = []
    for parent, text, thought, created in given:
        before = ids[parent % len(ids)] if ids and parent else 0
        ids.append(talk.say(text, parent=before, thought=thought, created=created or 1.0).id)
    first, second = folder / "first.json", folder / "second.json"
    export_all(one, first, "json")
    assert import_file(two, first) == Changes(1, len(given))
    export_all(two, second, "json")
    assert plain(first) == plain(second)
    one.close()
    two.close()
