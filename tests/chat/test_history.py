"""Chats in the store: what was put in comes out, also after the process was killed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from support.chats import Clock, Talk
from tandem.chat import history as module
from tandem.chat.conversation import ACCEPTED, OWN, REJECTED, Figures, Node, Run, Tree
from tandem.chat.errors import Gone
from tandem.chat.history import History
from tandem.engine.metrics import ChannelStats, RunStats

STATS = RunStats(
    prompt_tokens=12,
    generated=7,
    passes=3,
    verified=6,
    accepted=4,
    accepted_at=[3, 1],
    drafted_at=[3, 3],
    decode_tok_s=21.5,
    time_to_first_token_s=0.25,
    answer=ChannelStats(generated=7, passes=3, verified=6, accepted=4, decode_s=0.3),
)
FIGURES = Figures(STATS, "3", "mtp", 2**63, "CPU", 2, 8192, "target 모델.gguf", None, "end", 4)
ANSWER = {
    "thought": "hm\n",
    "state": "limit",
    "problem": "It broke.",
    "remedy": "Try again.",
    "figures": FIGURES,
    "runs": (Run("thought", 3, OWN), Run("answer", 5, ACCEPTED), Run("answer", 1, REJECTED)),
    "thinking": True,
    "thought_s": 1.5,
}


def test_everything_comes_back(history: History, talk: Talk, path: Path) -> None:
    user = talk.say("Question 😀\n\n한글")
    answer = talk.say("answer", "assistant", **ANSWER)
    before = history.conversation(talk.chat.id)
    assert before[1] == [user, answer]
    assert answer.figures == FIGURES
    assert (before[0].title, before[0].active) == ("A chat", answer.id)
    history.close()
    again = History.open(path)
    assert again.conversation(talk.chat.id) == before
    again.close()


def test_the_list_shows_the_newest_chat_first(history: History) -> None:
    first, second, third = Talk(history, "one"), Talk(history, "two"), Talk(history)
    first.say("a")
    second.say("b")
    assert [summary.id for summary in history.conversations()] == [second.chat.id, first.chat.id, third.chat.id]
    first.say("  # line one\n\nline\ttwo " + "x" * 400, "assistant")
    newest, *rest = history.conversations()
    assert newest.id == first.chat.id
    assert newest.title == "one"
    assert newest.snippet.startswith("# line one line two xxx")
    assert len(newest.snippet) == 120
    assert [summary.snippet for summary in rest] == ["b", ""]
    assert rest[1].title == ""


def test_renaming(history: History, talk: Talk) -> None:
    history.rename(talk.chat.id, "  new\n\0 na\u202eme \ud800 ")
    assert history.conversations()[0].title == "new \ufffd name \ufffd"
    history.rename(talk.chat.id, "x" * 1000)
    assert len(history.conversations()[0].title) == module.LONGEST_TITLE


def test_the_answer_grows_in_its_place(history: History, talk: Talk) -> None:
    user = talk.say("q")
    answer = talk.say("", "assistant", state="streaming", thinking=True)
    for text in ("a", "ab"):
        answer = history.save(msgspec.structs.replace(answer, text=text))
    answer = history.save(msgspec.structs.replace(answer, text="abc", state="done", figures=FIGURES))
    assert history.conversation(talk.chat.id)[1] == [user, answer]
    # Where it stands cannot be changed.
    moved = history.save(msgspec.structs.replace(answer, parent=None, role="user", created=1.0))
    assert moved.text == "abc"
    assert history.conversation(talk.chat.id)[1] == [user, answer]


def test_a_message_brings_its_chat_to_the_top(history: History, clock: Clock) -> None:
    one, two = Talk(history), Talk(history)
    answer = one.say("x", "assistant", state="streaming")
    two.say("y")
    assert history.conversations()[0].id == two.chat.id
    history.save(msgspec.structs.replace(answer, text="xx"))
    assert history.conversations()[0].id == one.chat.id
    clock.now -= 1000  # the clock was set back
    history.save(msgspec.structs.replace(answer, text="xxx"))
    assert history.conversations()[0].id == one.chat.id


def test_times(talk: Talk, clock: Clock) -> None:
    said = talk.say("a")
    assert clock.now - 2 <= said.created <= clock.now
    assert talk.say("b", created=5.0).created == 5.0


def test_texts_are_cleaned(history: History, talk: Talk) -> None:
    dirty = "a\0b\ud800c"
    added = talk.say(dirty, thought=dirty, problem=dirty, remedy=dirty)
    assert {added.text, added.thought, added.problem, added.remedy} == {"a\ufffdb\ufffdc"}
    assert history.save(msgspec.structs.replace(added, text=dirty)) == added
    assert history.conversation(talk.chat.id)[1] == [added]
    history.set_draft(None, dirty)
    history.set_draft(talk.chat.id, dirty)
    assert history.draft() == history.draft(talk.chat.id) == "a\ufffdb\ufffdc"


def test_editing_keeps_the_other_branch(history: History, talk: Talk) -> None:
    """Edit turn 1 of 5, switch back."""
    said = [talk.say(str(turn), "assistant" if turn % 2 else "user") for turn in range(10)]
    edited = talk.say("0, better", parent=0)
    assert edited.parent is None
    conversation, nodes = history.conversation(talk.chat.id)
    assert conversation.active == edited.id
    tree = Tree(nodes)
    back = tree.newest_leaf_under(said[0].id)
    assert tree.path(back) == said
    history.set_active(talk.chat.id, back)
    assert history.conversation(talk.chat.id)[0].active == said[-1].id


def test_the_shown_leaf_is_of_this_chat(history: History, talk: Talk) -> None:
    other = Talk(history)
    theirs = other.say("theirs")
    ours = talk.say("ours")
    for leaf in (theirs.id, 999):
        with pytest.raises(Gone):
            history.set_active(talk.chat.id, leaf)
    with pytest.raises(Gone):
        history.add(Node(0, talk.chat.id, theirs.id, "user", "after theirs"))
    assert history.conversation(talk.chat.id)[0].active == ours.id
    assert len(history.conversation(talk.chat.id)[1]) == 1
    history.set_active(talk.chat.id, None)
    assert history.conversation(talk.chat.id)[0].active is None


def test_what_is_not_there(history: History, talk: Talk) -> None:
    node = Node(99, 99, None, "user", "x")
    for call in (
        lambda: history.conversation(99),
        lambda: history.rename(99, "x"),
        lambda: history.delete(99),
        lambda: history.restore(99),
        lambda: history.set_active(99, None),
        lambda: history.set_draft(99, "x"),
        lambda: history.draft(99),
        lambda: history.add(node),
        lambda: history.save(node),
    ):
        with pytest.raises(Gone) as caught:
            call()
        assert caught.value.sentence.endswith(".")
        assert caught.value.remedy.endswith(".")
    assert [summary.id for summary in history.conversations()] == [talk.chat.id]


def test_deleting_can_be_undone(history: History, talk: Talk) -> None:
    said = talk.say("findable words")
    history.delete(talk.chat.id)
    assert history.conversations() == []
    assert history.search("findable") == []
    assert history.search("A chat") == []
    for call in (lambda: history.conversation(talk.chat.id), lambda: talk.say("more")):
        with pytest.raises(Gone):
            call()
    history.restore(talk.chat.id)
    assert history.conversation(talk.chat.id)[1] == [said]
    assert [hit.node for hit in history.search("findable")] == [said.id]
    history.restore(talk.chat.id)


def test_a_deleted_chat_is_gone_after_a_day(history: History, path: Path, clock: Clock) -> None:
    kept, removed = Talk(history, "kept"), Talk(history, "removed")
    secret = "a secret that nobody else has"
    removed.say(secret)
    removed.say("its answer", "assistant")
    kept.say("stays")
    history.delete(removed.chat.id)
    history.close()
    clock.now += module.PURGE_AFTER_S - 10
    history = History.open(path, clock)
    assert history.opened.purged == 0
    history.restore(removed.chat.id)
    history.delete(removed.chat.id)
    history.close()
    clock.now += module.PURGE_AFTER_S
    history = History.open(path, clock)
    assert history.opened.purged == 1
    with pytest.raises(Gone):
        history.restore(removed.chat.id)
    assert [hit.title for hit in history.search("s")] == ["kept"]
    history.close()
    # Nor is its text left in the file, where a deleted row would leave it.
    assert secret.encode() not in path.read_bytes()
    # Ids are not given twice.
    history = History.open(path, clock)
    assert history.new().id > removed.chat.id
    history.close()


def test_nothing_of_purged_chats_is_left_in_the_file_or_its_log(history: History, path: Path) -> None:
    kept = Talk(history, "kept")
    doomed = [Talk(history, f"Hidden title {number}") for number in range(20)]
    for number in range(200):  # among those that stay, short and over many pages
        kept.say(f"stays {number} " * 20)
        doomed[number % 20].say(f"Zebraword {number} " * (1 if number % 3 else 400), thought="Quaggathought " * 30)
    for talk in doomed:
        history.set_draft(talk.chat.id, "Okapidraft")
        history.delete(talk.chat.id)
    assert history.purge_now() == 20
    found = b"".join(file.read_bytes() for file in path.parent.iterdir() if file.name.startswith(path.name)).lower()
    assert b"stays 199 " in found
    for secret in (b"zebraword", b"quagga", b"okapi", b"hidden title", b"zeb", b"qua"):
        assert secret not in found, secret
    assert len(history.search("stays 199 ")) == 1
    assert history.search("zebraword") == []
    assert history.purge_now() == 0


def test_purging_takes_its_time_in_parts(history: History) -> None:
    for number in range(3):
        talk = Talk(history, str(number))
        talk.say("x")
        history.delete(talk.chat.id)
    assert history.purge(older_than_s=0, seconds=0) == 1
    assert history.purge(older_than_s=0) == 2
    assert history.purge(older_than_s=0) == 0


def test_a_long_chat_can_be_purged(history: History) -> None:
    # Longer than SQLite follows references from row to row.
    nodes = [Node(number, 1, number - 1 or None, "user", f"m{number}") for number in range(1, 3001)]
    history.bring_in([(msgspec.structs.replace(history.new("long"), active=3000), nodes)])
    brought = history.conversations()[0].id
    assert len(history.conversation(brought)[1]) == 3000
    history.delete(brought)
    assert history.purge(older_than_s=-1e9, seconds=60) == 1


def test_unsent_text_survives(history: History, talk: Talk, path: Path) -> None:
    assert history.draft() == ""
    history.set_draft(None, "new 초안")
    history.set_draft(talk.chat.id, "of a chat")
    history.close()
    again = History.open(path)
    assert again.draft() == again.draft(None) == "new 초안"
    assert again.draft(talk.chat.id) == "of a chat"
    assert again.conversation(talk.chat.id)[0].draft == "of a chat"
    again.set_draft(None, "")
    assert again.draft() == ""
    again.close()


def test_an_answer_that_ran_is_marked_interrupted(history: History, talk: Talk, path: Path) -> None:
    talk.say("q")
    answer = talk.say("half an ans", "assistant", state="streaming")
    done = talk.say("whole", "assistant", state="done")
    history.close()
    again = History.open(path)
    assert again.opened.interrupted == 1
    _, nodes = again.conversation(talk.chat.id)
    assert nodes[1:] == [msgspec.structs.replace(answer, state="interrupted"), done]
    assert [hit.node for hit in again.search("half")] == [answer.id]
    again.close()
    last = History.open(path)
    assert last.opened.interrupted == 0
    last.close()


def test_a_row_that_cannot_be_understood_costs_no_other(history: History, talk: Talk, path: Path) -> None:
    said = [talk.say(f"message {number}", "assistant", **ANSWER) for number in range(4)]
    connection = history._database.connection
    connection.execute("UPDATE node SET figures = '{', runs = '[1]', state = 'new state' WHERE id = ?", (said[0].id,))
    connection.execute("UPDATE node SET text = CAST(X'61FF62' AS TEXT), runs = X'00' WHERE id = ?", (said[1].id,))
    connection.execute("UPDATE node SET text = X'61', thought_s = 'long', created = 'x' WHERE id = ?", (said[2].id,))
    history.close()
    again = History.open(path)
    _, nodes = again.conversation(talk.chat.id)
    assert [node.text for node in nodes] == ["message 0", "a\ufffdb", "b'a'", "message 3"]
    assert (nodes[0].figures, nodes[0].runs, nodes[0].state) == (None, (), "interrupted")
    assert (nodes[1].figures, nodes[1].runs) == (FIGURES, ())
    assert (nodes[2].thought_s, nodes[2].created) == (None, 0.0)
    assert nodes[3] == said[3]
    assert again.conversations()[0].snippet == "message 3"
    again.close()


def test_what_fails_changes_nothing(history: History, talk: Talk) -> None:
    said = talk.say("kept")
    before = history.conversation(talk.chat.id)
    good = Node(1, 1, None, "user", "brought")
    with pytest.raises(KeyError):
        history.bring_in([(talk.chat, [good]), (talk.chat, [good, Node(2, 1, 99, "user", "x")])])
    assert history.conversation(talk.chat.id) == before
    assert len(history.conversations()) == 1
    assert history.search("brought") == []
    assert history.search("kept")[0].node == said.id


@pytest.mark.parametrize("folder", ["田中", "모델 채팅", "Загрузки", "😀 a?b#c%20", "ü\udcff"])
def test_any_folder(tmp_path: Path, folder: str) -> None:
    place = tmp_path / folder
    try:
        place.mkdir()
    except OSError:
        pytest.skip("this file system has no such names")
    history = History.open(place / "chats.db")
    history.new("x")
    history.close()
    again = History.open(place / "chats.db")
    assert len(again.conversations()) == 1
    again.close()
    assert {found.name for found in place.iterdir()} == {"chats.db", "chats.db.lock"}


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = tmp_path / "chats.db"
        history = History.open(path)
        history.new("x")
        modes = {found.name: stat.S_IMODE(found.stat().st_mode) for found in tmp_path.iterdir()}
        history.close()
    finally:
        os.umask(before)
    assert "chats.db-wal" in modes
    assert set(modes.values()) == {0o600}
    path.chmod(0o644)
    History.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_usual_place() -> None:
    history = History.open()
    assert history.path == module.file()
    assert history.path.name == "chats.db"
    history.close()
    history.close()


KILLED = """
import sys, time
from pathlib import Path
import msgspec
from tandem.chat.conversation import Node
from tandem.chat.history import History
history = History.open(Path(sys.argv[1]))
chat = history.new("killed")
user = history.add(Node(0, chat.id, None, "user", "the user's text"))
answer = history.add(Node(0, chat.id, user.id, "assistant", "", state="streaming"))
answer = history.save(msgspec.structs.replace(answer, text="half of the answer"))
print("ready", flush=True)
while True:
    history.save(msgspec.structs.replace(answer, text=answer.text + "x" * 5000))
"""


def test_killed_in_the_middle(path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE, env=environment())
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert path.with_name("chats.db-wal").exists()
    history = History.open(path)
    assert history.opened.set_aside is None
    assert history.opened.interrupted == 1
    (summary,) = history.conversations()
    _, (user, answer) = history.conversation(summary.id)
    assert user.text == "the user's text"
    assert answer.state == "interrupted"
    assert answer.text.startswith("half of the answer")
    assert [hit.node for hit in history.search("user's")] == [user.id]
    history.close()


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(module.__file__).parents[2])}
