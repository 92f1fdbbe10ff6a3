"""Finding: whatever is typed is plain text, in any language, of any length."""

from __future__ import annotations

import time
import unicodedata

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.chats import Talk
from tandem.chat import search
from tandem.chat.conversation import Hit, Node
from tandem.chat.history import History

TEXTS = [
    "Hello World, this is a test",
    "안녕하세요, 모델이 말합니다",
    "한국어 검색은 두 글자로 됩니다",
    'She said "AND" and (OR) NEAR*: -not',
    "100% of under_scores; DROP TABLE node; --",
    "ÉCOLE ΟΔΟΣ straße İstanbul",
    "日本語の検索",
    "C++ and a\\b and c:\\temp",
    "emoji 😀 here",
]


@pytest.fixture
def found(history: History, talk: Talk) -> Talk:
    for text in TEXTS:
        talk.say(text)
    assert history.conversations()
    return talk


def texts(hits: list[Hit]) -> list[str]:
    return [hit.excerpt for hit in hits if hit.node is not None]


@pytest.mark.parametrize(
    ("typed", "places"),
    [
        ("hello", [0]),
        ("HELLO world", [0]),
        ("world hello", [0]),
        ("ello, thi", []),
        ("llo", [0]),
        ("요", [1]),
        ("글", [2]),
        ("글자", [2]),
        ("말합니다", [1]),
        ("니다", [1, 2]),
        ("다 한", [2]),
        ("検", [6]),
        ("検索", [6]),
        ('"AND"', [3]),
        ('"', [3]),
        ("AND", [3, 7]),
        ("(OR)", [3]),
        ("NEAR*", [3]),
        ("*", [3]),
        ("-not", [3]),
        ("-", [3, 4]),
        ("'", []),
        ("%", [4]),
        ("100%", [4]),
        ("r_s", [4]),
        ("; drop table node; --", [4]),
        ("école", [5]),
        ("e\u0301cole", [5]),
        ("οδος", [5]),
        ("ΟΔΟΣ", [5]),
        ("STRAßE", [5]),
        ("istanbul", [5]),
        ("c++", [7]),
        ("a\\b", [7]),
        ("C:\\", [7]),
        ("😀", [8]),
        ("z", []),
        ("zz", []),
        ("nowhere", []),
        ("hello nowhere", []),
        ("\0", []),
        ("\ud800", []),
        ("", []),
        ("  \n ", []),
    ],
)
def test_found(found: Talk, typed: str, places: list[int]) -> None:
    hits = found.history.search(typed)
    assert texts(hits) == [unicodedata.normalize("NFC", TEXTS[place]) for place in reversed(places)]


def test_hangul_typed_in_pieces_is_found(history: History, talk: Talk) -> None:
    said = talk.say(unicodedata.normalize("NFD", "한글 검색"))
    for typed in ("한글", "검색", "색", unicodedata.normalize("NFD", "글")):
        (hit,) = history.search(typed)
        assert hit.node == said.id
        assert hit.excerpt == "한글 검색"


def test_the_matches_stand_where_they_say(found: Talk) -> None:
    (hit,) = found.history.search("O wor he")
    marked = [hit.excerpt[start:end] for start, end in hit.ranges]
    assert marked == ["He", "o", "Wor"]
    (hit,) = found.history.search("lo ell hello")
    assert [hit.excerpt[start:end] for start, end in hit.ranges] == ["Hello"]


def test_a_hit_says_where_it_is(history: History) -> None:
    talk = Talk(history, "Named chat")
    said = talk.say("the words")
    (hit,) = history.search("words")
    assert hit == Hit(talk.chat.id, said.id, "Named chat", "the words", ((4, 9),), said.created)


def test_titles_come_first(history: History) -> None:
    older, newer = Talk(history, "About apples"), Talk(history, "Pears")
    said = [newer.say("apples again"), older.say("no fruit")]
    hits = history.search("apples")
    assert [(hit.conversation, hit.node) for hit in hits] == [(older.chat.id, None), (newer.chat.id, said[0].id)]
    assert hits[0].excerpt == "About apples"
    assert hits[0].ranges == ((6, 12),)
    history.rename(older.chat.id, "About plums")
    assert [hit.node for hit in history.search("apples")] == [said[0].id]


def test_an_excerpt_shows_the_match(history: History, talk: Talk) -> None:
    talk.say("word " * 300 + "\n\nthe needle\tis here\n" + "more " * 300)
    (hit,) = history.search("needle")
    ((start, end),) = hit.ranges
    assert hit.excerpt[start:end] == "needle"
    assert hit.excerpt.startswith("…word ")
    assert hit.excerpt.endswith("…")
    assert "the needle is here more" in hit.excerpt
    assert len(hit.excerpt) <= search.EXCERPT + 2
    assert start < 50


def test_an_excerpt_of_text_without_spaces(history: History, talk: Talk) -> None:
    talk.say("가" * 500 + "나" + "다" * 500)
    (hit,) = history.search("나")
    ((start, end),) = hit.ranges
    assert hit.excerpt[start:end] == "나"
    assert len(hit.excerpt) <= search.EXCERPT + 2


def test_a_long_search_is_found_whole(history: History, talk: Talk) -> None:
    long = "x" * 20 + "".join(chr(0xAC00 + number) for number in range(800))
    talk.say("before " + long + " after")
    (hit,) = history.search(long)
    ((start, end),) = hit.ranges
    assert hit.excerpt[start:end] == long
    assert history.search(long[:-1] + "!") == []
    assert history.search(long * 1000) == []


def test_the_newest_are_found_when_there_are_many(history: History, talk: Talk) -> None:
    said = [talk.say(f"same {number}") for number in range(30)]
    assert [hit.node for hit in history.search("same", limit=5)] == [node.id for node in said[:-6:-1]]
    assert len(history.search("same")) == 30
    assert history.search("same", limit=0) == []


def test_a_text_that_grows_is_found(history: History, talk: Talk) -> None:
    answer = talk.say("first", "assistant", state="streaming")
    assert [hit.node for hit in history.search("first")] == [answer.id]
    answer = history.save(msgspec.structs.replace(answer, text="first second"))
    assert [hit.node for hit in history.search("second")] == [answer.id]
    answer = history.save(msgspec.structs.replace(answer, text="first second third", state="done"))
    assert [hit.node for hit in history.search("second third")] == [answer.id]
    # Answered again in its place.
    answer = history.save(msgspec.structs.replace(answer, text="", state="streaming"))
    assert history.search("third") == []
    history.save(msgspec.structs.replace(answer, text="fourth", state="failed"))
    assert history.search("second") == []
    assert [hit.node for hit in history.search("fourth")] == [answer.id]
    history.save(msgspec.structs.replace(answer, text="fifth", state="failed"))
    assert history.search("fourth") == []
    assert [hit.node for hit in history.search("fifth")] == [answer.id]


def test_a_thought_is_not_searched(history: History, talk: Talk) -> None:
    talk.say("answer", "assistant", thought="secret")
    assert history.search("secret") == []


def test_a_very_long_message_is_saved_at_once_and_found(history: History, talk: Talk) -> None:
    waiting = "SELECT count(*) FROM unindexed"
    said = talk.say("a needle " + "hay " * 10_000)
    assert history._database.connection.execute(waiting).fetchone() == (1,)
    assert [hit.node for hit in history.search("needle")] == [said.id]
    answer = talk.say("short", "assistant", state="streaming")
    history.save(msgspec.structs.replace(answer, state="done"))
    assert history._database.connection.execute(waiting).fetchone() == (0,)
    assert [hit.node for hit in history.search("needle")] == [said.id]
    history.save(msgspec.structs.replace(said, text="nothing " * 10_000))
    assert history.search("needle") == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.data())
def test_found_is_what_holds_it(history: History, data: st.DataObject) -> None:
    """Against looking through everything, with an alphabet that is small enough for things to be found."""
    alphabet = "aAbß가각 나\"*'-%:\\İΣςσ\u0301é😀\ue022"
    talk = Talk(history)
    for text in data.draw(st.lists(st.text(alphabet, max_size=12), min_size=1, max_size=6)):
        talk.say(text)
    typed = data.draw(st.text(alphabet, min_size=1, max_size=4))
    _, nodes = history.conversation(talk.chat.id)
    wanted = search.parts(typed)
    expected = {
        node.id
        for node in nodes
        if wanted and all(part in search.folded(search.composed(node.text)) for part in wanted)
    }
    hits = [hit for hit in history.search(typed, limit=10_000) if hit.conversation == talk.chat.id and hit.node]
    assert {hit.node for hit in hits} == expected
    for hit in hits:
        marked = {search.folded(hit.excerpt[start:end]) for start, end in hit.ranges}
        assert marked
        assert all(any(part in mark for mark in marked) for part in wanted)


@given(st.text(st.characters(categories=None, exclude_categories=["Cs"])))
def test_folding_moves_nothing(text: str) -> None:
    assert len(search.folded(text)) == len(text)
    assert search.folded(search.folded(text)) == search.folded(text)


def test_folding_keeps_the_place_of_every_character() -> None:
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    assert all(len(search.folded(character)) == 1 for character in every)


def test_many_messages_are_searched_quickly(history: History) -> None:
    """A coarse guard; bench_history.py measures."""
    talk = Talk(history)
    nodes = []
    for number in range(1, 3001):
        text = f"message {number} " + ("두 글자 검색 시험 " if number % 2 else "the usual English words ") * 5
        nodes.append(Node(number, 1, None, "user", text))
    history.bring_in([(talk.chat, nodes)])
    for typed in ("글", "글자", "the", "usual words", "힣", "zq", "message 2999"):
        start = time.perf_counter()
        history.search(typed)
        assert time.perf_counter() - start < 1.0, typed
