"""Streams of tokens against the texts that they must give, however the bytes are cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tandem.engine.stream import AnswerStream, Chunk, Markers

OPEN, CLOSE, CONTROL = 100, 101, 50
MARKERS = Markers(open=OPEN, close=CLOSE)
HIDDEN = MARKERS.texts
BEGINNINGS = {marker[:size] for marker in HIDDEN for size in range(2, len(marker))}

Item = bytes | int


class Feed:
    """A stream with a vocabulary made up on the way: bytes become ordinary tokens."""

    def __init__(self, stop: Sequence[str] = (), in_thought: bool = False, markers: Markers = MARKERS) -> None:
        self._pieces: dict[int, bytes] = {OPEN: b"", CLOSE: b"", CONTROL: b""}
        self.stream = AnswerStream(self._pieces.__getitem__, markers, stop, in_thought)
        self.chunks: list[Chunk] = []

    def push(self, item: Item | str) -> list[Chunk]:
        if isinstance(item, int):
            token = item
        else:
            token = 1000 + len(self._pieces)
            self._pieces[token] = item.encode() if isinstance(item, str) else item
        chunks = self.stream.push(token)
        self.chunks += chunks
        return chunks

    def finish(self) -> tuple[str, str]:
        self.chunks += self.stream.finish()
        return self.text("thought"), self.text("answer")

    def text(self, channel: str) -> str:
        return "".join(chunk.text for chunk in self.chunks if chunk.channel == channel)


def texts(items: Iterable[Item | str], stop: Sequence[str] = (), in_thought: bool = False) -> tuple[str, str]:
    feed = Feed(stop, in_thought)
    for item in items:
        feed.push(item)
    return feed.finish()


def single_bytes(items: Iterable[Item]) -> list[Item]:
    return [part for item in items for part in ([item] if isinstance(item, int) else [bytes([b]) for b in item])]


def joined(items: Iterable[Item]) -> list[Item]:
    """Neighbouring bytes as one token."""
    out: list[Item] = []
    for item in items:
        if isinstance(item, bytes) and out and isinstance(out[-1], bytes):
            out[-1] += item
        else:
            out.append(item)
    return out


FRAGMENTS = [
    *HIDDEN,
    *(
        "<",
        "|",
        ">",
        "<|",
        "|>",
        "<|tu",
        "rn>",
        "rn|>",
        "<chan",
        "nel|>",
        "nel>",
        "<|chan",
        "<|thi",
        "nk|>",
        "<<",
        "|t",
    ),
    *(
        "\n",
        "\n\n",
        "thought\n",
        "x",
        "turn",
        " END ",
        "EN",
        "D",
        "é",
        "👩‍👩‍👧‍👦",
        "한국어",
        "\ufffd",
        "\0",
        "longer than a name ",
    ),
]
items_of_fragments = st.lists(
    st.one_of(
        st.sampled_from(FRAGMENTS).map(str.encode),
        st.sampled_from([OPEN, CLOSE, CONTROL]),
        st.binary(min_size=1, max_size=3),
    ),
    max_size=25,
)
stops = st.lists(st.sampled_from(["END", "\n\n", "D", "é", "<|x", "|>", "turn", "", "👧", "x<|turn>x"]), max_size=2)


class TestChannels:
    def test_plain_answer(self) -> None:
        feed = Feed()
        assert feed.push("Hello") == [Chunk("answer", "Hello", 0)]
        assert feed.push(" world") == [Chunk("answer", " world", 1)]
        assert feed.finish() == ("", "Hello world")

    @pytest.mark.parametrize(
        ("opener", "closer"), [((OPEN,), (CLOSE,)), (("<|channel>",), ("<channel|>",)), (tuple("<|channel>"), (CLOSE,))]
    )
    def test_thought_then_answer(self, opener: tuple[Item | str, ...], closer: tuple[Item | str, ...]) -> None:
        items: list[Item | str] = [*opener, "thought", "\n", "I think\n", "so.", *closer, "\n", "\n", "Yes.\n\nNo.\n"]
        assert texts(items) == ("I think\nso.", "Yes.\n\nNo.\n")

    def test_one_token_may_hold_it_all(self) -> None:
        assert texts(["a<|channel>thought\nb<channel|>\n\nc"]) == ("b", "ac")

    def test_chunks_keep_the_order_of_channels(self) -> None:
        feed = Feed()
        chunks = feed.push("a<|channel>thought\nb<channel|>c<|turn>d")
        assert chunks == [Chunk("answer", "a", 0), Chunk("thought", "b", 0), Chunk("answer", "cd", 0)]

    def test_prompt_opened_the_thought(self) -> None:
        assert texts(["hm\n", CLOSE, "\nyes"], in_thought=True) == ("hm\n", "yes")
        assert texts(["hm"], in_thought=True) == ("hm", "")

    def test_unclosed_thought_stays_a_thought(self) -> None:
        assert texts([OPEN, "thought\n", "and then"]) == ("and then", "")

    def test_empty_thought(self) -> None:
        assert texts([OPEN, "thought\n", CLOSE, "yes"]) == ("", "yes")
        assert texts([OPEN, CLOSE, "yes"]) == ("", "yes")
        assert texts([OPEN, "thought", CLOSE, "yes"]) == ("", "yes")

    def test_stray_markers_vanish(self) -> None:
        assert texts(["a", CLOSE, "\nb<channel|>c"]) == ("", "a\nbc")
        assert texts([OPEN, "thought\na", OPEN, "b<|channel>c", CLOSE, "d"]) == ("abc", "d")
        assert texts(["a<|turn>b<turn|>c<|think|>d"]) == ("", "abcd")

    def test_several_thoughts(self) -> None:
        items: list[Item | str] = [OPEN, "thought\none", CLOSE, "\na", OPEN, "thought\ntwo", CLOSE, "\n\nb"]
        assert texts(items) == ("onetwo", "ab")

    def test_line_breaks_after_a_thought_go_even_around_a_marker(self) -> None:
        assert texts([OPEN, "thought\nx", CLOSE, "\n", "<|think|>", "\n", "<", "a\n"]) == ("x", "<a\n")
        assert texts(["a<|tu", OPEN, "thought\nx", CLOSE, "\n", "rn>", "\n", "b"]) == ("x", "ab")

    def test_line_breaks_elsewhere_stay(self) -> None:
        assert texts(["\n\na\n\n"]) == ("", "\n\na\n\n")

    def test_the_end_of_the_stream_leaves_out_a_name_without_a_line_break(self) -> None:
        assert texts([OPEN, "thou"]) == ("", "")

    def test_text_after_an_opener_without_a_name_is_not_lost(self) -> None:
        words = "Let me see whether this can be done at all, without a name. "
        assert texts([OPEN, words, "More.\n", CLOSE, "Yes."]) == (words + "More.\n", "Yes.")

    def test_control_tokens_give_nothing(self) -> None:
        assert texts(["a", CONTROL, "b"]) == ("", "ab")

    def test_the_channel_changes_with_the_marker(self) -> None:
        feed = Feed()
        seen = []
        for item in ("a", OPEN, "thought\n", "x", CLOSE, "\n", "b"):
            feed.push(item)
            seen.append(feed.stream.channel)
        assert seen == ["answer", *["thought"] * 3, "answer", "answer", "answer"]

    def test_without_marker_ids_only_texts_count(self) -> None:
        feed = Feed(markers=Markers())
        for item in ("a", OPEN, CLOSE, "b<|channel>thought\nc"):
            feed.push(item)
        assert feed.finish() == ("c", "ab")


class TestMarkersSpelledOut:
    @pytest.mark.parametrize("marker", HIDDEN)
    def test_split_anywhere(self, marker: str) -> None:
        for cut in range(1, len(marker)):
            thought, answer = texts(["a", marker[:cut], marker[cut:], "b"])
            assert (thought, answer) == (("", "a") if marker == "<|channel>" else ("", "ab"))

    def test_what_does_not_become_one_is_given_back(self) -> None:
        feed = Feed()
        assert feed.push("x <|chan") == [Chunk("answer", "x ", 0)]
        assert feed.push("ge> y") == [Chunk("answer", "<|chan", 0), Chunk("answer", "ge> y", 1)]

    def test_halves_of_a_marker_around_another_do_not_join(self) -> None:
        around: list[list[Item | str]] = [
            ["<|tu<|think|>rn>!"],
            ["<|tu", CLOSE, "rn>!"],
            ["<|tu", OPEN, "thought\nx", CLOSE, "rn>!"],
        ]
        for items in around:
            _, answer = texts(items)
            assert "<|turn>" not in answer
            assert answer.endswith("!")

    def test_cut_short_by_the_end(self) -> None:
        assert texts(["a <"]) == ("", "a <")
        assert texts(["a <|"]) == ("", "a ")
        assert texts(["a <|chan"]) == ("", "a ")
        assert texts(["a <channel|"]) == ("", "a ")
        assert texts(["a <<|"]) == ("", "a <")
        assert texts([OPEN, "thought\na <chan"]) == ("a ", "")

    def test_angle_brackets_in_code_are_text(self) -> None:
        code = "if (a<b && c <= d) cout << x <<< y; List<T> t; a <| b |> c <!-- -->"
        assert texts(single_bytes([code.encode()])) == ("", code)

    @settings(deadline=None, max_examples=400)
    @given(items=items_of_fragments, stop=stops, in_thought=st.booleans())
    @example(items=[b"<|tu<|tu<|think|>rn>rn>"], stop=[], in_thought=False)
    @example(items=[b"<|tu", OPEN, b"<", b"chan", OPEN, b"nel|>", b"rn>"], stop=[], in_thought=False)
    def test_never_reach_the_text(self, items: list[Item], stop: list[str], in_thought: bool) -> None:
        for text in texts(items, stop, in_thought):
            assert not [marker for marker in HIDDEN if marker in text]


class TestSegmentation:
    @settings(deadline=None, max_examples=400)
    @given(items=items_of_fragments, stop=stops, in_thought=st.booleans())
    def test_texts_do_not_depend_on_the_cuts(self, items: list[Item], stop: list[str], in_thought: bool) -> None:
        whole = texts(joined(items), stop, in_thought)
        assert texts(items, stop, in_thought) == whole
        assert texts(single_bytes(items), stop, in_thought) == whole

    @settings(deadline=None, max_examples=300)
    @given(data=st.binary(max_size=60), cuts=st.sets(st.integers(1, 59)))
    def test_any_bytes_give_what_python_decodes(self, data: bytes, cuts: set[int]) -> None:
        edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
        parts: list[Item] = [data[start:end] for start, end in pairwise(edges)]
        expected = data.decode("utf-8", "replace")
        assume(not any(marker in expected for marker in HIDDEN))
        _, answer = texts(parts)
        # What may be missing at the end: an incomplete character, or a marker cut short.
        assert expected.startswith(answer)
        assert expected[len(answer) :].strip("\ufffd") in {""} | BEGINNINGS

    @settings(deadline=None, max_examples=300)
    @given(text=st.text(max_size=40))
    @example(text="👩‍👩‍👧‍👦 한국어 각 é e\u0301 \u200d \U0010ffff\0")
    def test_any_text_comes_back_byte_by_byte(self, text: str) -> None:
        assume(not any(marker in text for marker in HIDDEN))
        assume(not any(text.endswith(beginning) for beginning in BEGINNINGS))
        feed = Feed()
        for byte in text.encode():
            for chunk in feed.push(bytes([byte])):
                assert "\ufffd" not in chunk.text or "\ufffd" in text
        assert feed.finish() == ("", text)

    @settings(deadline=None, max_examples=200)
    @given(
        parts=st.lists(
            st.tuples(
                st.text(st.characters(exclude_characters="<", exclude_categories=["Cs"]), min_size=1, max_size=8),
                st.text(st.characters(exclude_characters="<\n", exclude_categories=["Cs"]), min_size=1, max_size=8),
                st.booleans(),
                st.integers(0, 3),
            ),
            max_size=4,
        ),
        by_byte=st.booleans(),
    )
    def test_well_formed_streams(self, parts: list[tuple[str, str, bool, int]], by_byte: bool) -> None:
        items: list[Item] = []
        for thought, answer, spelled, breaks in parts:
            items += [b"<|channel>" if spelled else OPEN, f"thought\n{thought}".encode()]
            items += [b"<channel|>" if spelled else CLOSE, ("\n" * breaks + answer).encode()]
        expected = ("".join(part[0] for part in parts), "".join(part[1] for part in parts))
        assert texts(single_bytes(items) if by_byte else items) == expected

    @settings(deadline=None, max_examples=200)
    @given(pieces=st.lists(st.sampled_from(FRAGMENTS[len(HIDDEN) :]), max_size=20), stop=stops)
    def test_no_more_is_held_back_than_could_matter(self, pieces: list[str], stop: list[str]) -> None:
        stop = [one for one in stop if "<|turn>" not in one]
        beginnings = {one[:size] for one in (*HIDDEN, *stop) for size in range(1, len(one))}
        feed = Feed(stop)
        so_far = ""
        for piece in pieces:
            so_far += piece
            feed.push(piece)
            if feed.stream.stopped or any(marker in so_far for marker in HIDDEN):
                return
            given_out = feed.text("answer")
            assert so_far.startswith(given_out)
            assert so_far[len(given_out) :] in beginnings | {""}


class TestCharacters:
    def test_a_character_split_over_tokens_waits(self) -> None:
        feed = Feed()
        emoji = "🦊".encode()
        assert [feed.push(emoji[i : i + 1]) for i in range(4)] == [[], [], [], [Chunk("answer", "🦊", 3)]]

    def test_bytes_that_are_no_text_are_shown_as_such(self) -> None:
        assert texts([b"a\xff", b"b\xe2\x82", b"c"]) == ("", "a\ufffdb\ufffdc")

    def test_an_incomplete_character_at_the_end_is_dropped(self) -> None:
        assert texts([b"a\xf0\x9f"]) == ("", "a")

    def test_an_incomplete_character_before_a_change_of_channel_is_dropped(self) -> None:
        assert texts([b"a\xe2\x82", OPEN, "thought\nx", b"\xf0\x9f", CLOSE, "b"]) == ("x", "ab")

    def test_a_character_goes_on_around_a_control_token_that_vanishes(self) -> None:
        assert texts([b"\xe2\x82", CLOSE, b"\xac"]) == ("", "€")
        assert texts([b"\xe2\x82", CONTROL, b"\xac"]) == ("", "€")


Characters = list[tuple[str, str, int]]


def characters(items: Iterable[Item], stop: Sequence[str] = (), in_thought: bool = False) -> Characters:
    """Channel, character and token of everything given out."""
    feed = Feed(stop, in_thought)
    for item in items:
        for before, after in pairwise(feed.push(item)):
            assert (before.channel, before.token) != (after.channel, after.token)  # each run is one chunk
    feed.finish()
    return [(chunk.channel, char, chunk.token) for chunk in feed.chunks for char in chunk.text]


class TestTokens:
    """Every character is told to have come from the right token."""

    def test_text_that_waited_keeps_its_tokens(self) -> None:
        feed = Feed(["ENDING"])
        assert [feed.push(piece) for piece in ("a E", "N", "D")] == [[Chunk("answer", "a ", 0)], [], []]
        assert feed.push("S b") == [
            *(Chunk("answer", char, i) for i, char in enumerate("END")),
            Chunk("answer", "S b", 3),
        ]

    def test_text_held_at_the_end_keeps_its_tokens(self) -> None:
        feed = Feed(["ENDING"])
        for piece in ("a E", "N", "D"):
            feed.push(piece)
        assert feed.stream.finish() == [Chunk("answer", char, i) for i, char in enumerate("END")]

    def test_text_held_in_the_other_channel_at_the_end_keeps_its_tokens(self) -> None:
        feed = Feed()
        for item in ("a <", OPEN, "thought\n", "b", "<"):
            feed.push(item)
        assert feed.stream.finish() == [Chunk("answer", "<", 0), Chunk("thought", "<", 4)]

    def test_text_before_a_stop_that_another_overlapped_keeps_its_tokens(self) -> None:
        feed = Feed(["abcde", "c"])
        assert [feed.push(piece) for piece in "abc"] == [[], [], [Chunk("answer", "a", 0), Chunk("answer", "b", 1)]]
        assert feed.stream.stopped

    def test_a_marker_in_between_takes_only_its_own_characters(self) -> None:
        given = characters([b"<|t", b"u<|th", b"ink|>", b"!", b"?"])
        assert [(char, token) for _, char, token in given] == [*zip("<|tu!?", [0, 0, 0, 1, 3, 4], strict=True)]

    def test_a_name_that_was_none_keeps_its_tokens(self) -> None:
        words = ["Let me ", "see whether this ", "can be done, ", "without a name."]
        given = characters([OPEN, *(word.encode() for word in words)])
        expected = [("thought", char, i) for i, word in enumerate(words, 1) for char in word]
        assert given == expected
        thoughts: list[Item] = [OPEN, b"thought\n", CLOSE, OPEN, b"thought", CLOSE, OPEN]
        for before in (thoughts, [OPEN, b"<|tu", b"rn>"]):
            again = characters([*before, *(word.encode() for word in words)])
            assert again == [(channel, char, token + len(before) - 1) for channel, char, token in expected]

    def test_control_tokens_and_markers_count(self) -> None:
        feed = Feed()
        pushed = [feed.push(item) for item in ("a", CONTROL, OPEN, "thought\n", "b", CLOSE, "\n", "c")]
        assert [chunks for chunks in pushed if chunks] == [
            [Chunk("answer", "a", 0)],
            [Chunk("thought", "b", 4)],
            [Chunk("answer", "c", 7)],
        ]

    def test_a_broken_character_is_of_the_token_that_showed_it(self) -> None:
        assert characters([b"a\xe2\x82", b"b"]) == [("answer", "a", 0), ("answer", "\ufffd", 1), ("answer", "b", 1)]

    @settings(deadline=None, max_examples=400)
    @given(
        items=st.lists(
            st.one_of(st.sampled_from(FRAGMENTS).map(str.encode), st.sampled_from([OPEN, CLOSE, CONTROL])), max_size=25
        ),
        stop=stops,
        in_thought=st.booleans(),
    )
    @example(items=[b"<|tu<|tu<|think|>rn>rn>"], stop=[], in_thought=False)
    @example(items=[b"<|tu<|turn>", b"x <|tu"], stop=["x <|tux"], in_thought=False)
    def test_byte_by_byte_a_character_stands_where_its_last_byte_stood(
        self, items: list[Item], stop: list[str], in_thought: bool
    ) -> None:
        bytewise = single_bytes(items)
        ends: dict[int, str] = {}  # position of a character's last byte -> the character
        place = 0
        for item in items:
            if isinstance(item, int):
                place += 1
                continue
            for char in item.decode():
                place += len(char.encode())
                ends[place - 1] = char
        given = characters(bytewise, stop, in_thought)
        for _, char, token in given:
            assert ends[token] == char
        for channel in ("thought", "answer"):
            tokens = [token for of, _, token in given if of == channel]
            assert tokens == sorted(set(tokens))

    @settings(deadline=None, max_examples=400)
    @given(items=items_of_fragments, stop=stops, in_thought=st.booleans(), whole=st.booleans())
    def test_however_the_bytes_are_cut_a_character_is_of_the_token_with_its_last_byte(
        self, items: list[Item], stop: list[str], in_thought: bool, whole: bool
    ) -> None:
        cut = joined(items) if whole else items
        token_of = [token for token, item in enumerate(cut) for _ in range(1 if isinstance(item, int) else len(item))]
        given = characters(single_bytes(items), stop, in_thought)
        expected = [(channel, char, token_of[place]) for channel, char, place in given]
        by_channel = [sorted(c, key=lambda one: one[0]) for c in (characters(cut, stop, in_thought), expected)]
        assert by_channel[0] == by_channel[1]


class TestStop:
    def test_text_before_is_kept_and_nothing_after_given(self) -> None:
        feed = Feed(["END"])
        assert feed.push("one EN") == [Chunk("answer", "one ", 0)]
        assert not feed.stream.stopped
        assert feed.push("D two") == []
        assert feed.stream.stopped
        assert feed.push("three") == []
        assert feed.push(OPEN) == []
        assert feed.finish() == ("", "one ")

    def test_inside_one_token(self) -> None:
        feed = Feed(["END"])
        assert feed.push("one END two END") == [Chunk("answer", "one ", 0)]
        assert feed.stream.stopped

    def test_the_one_completed_first_wins(self) -> None:
        assert texts(["abcd"], ["bcd", "c"]) == ("", "ab")
        assert texts(["abcd"], ["cd", "bcd"]) == ("", "a")
        assert texts(["aab!"], ["ab"]) == ("", "a")

    def test_split_by_bytes_inside_a_character(self) -> None:
        assert texts(single_bytes(["그만 여기 끝 더".encode()]), ["끝"]) == ("", "그만 여기 ")
        assert texts(single_bytes(["a👩‍👧b".encode()]), ["‍👧"]) == ("", "a👩")

    def test_not_in_thoughts(self) -> None:
        assert texts([OPEN, "thought\n", "END x", CLOSE, "a END b"], ["END"]) == ("END x", "a ")
        assert texts([OPEN, "END\nx", CLOSE, "a"], ["END"]) == ("x", "a")

    def test_a_line_break_that_is_not_shown_does_not_stop(self) -> None:
        assert texts([OPEN, "thought\nx", CLOSE, "\n\none\ntwo"], ["\n"]) == ("x", "one")

    def test_beginning_of_one_at_the_end_is_text(self) -> None:
        assert texts(["one EN"], ["END"]) == ("", "one EN")

    def test_around_a_thought(self) -> None:
        assert texts(["one EN", OPEN, "thought\nx", CLOSE, "D two"], ["END"]) == ("x", "one ")
        assert texts(["one EN", OPEN, "thought\nx", CLOSE, "OUGH"], ["END"]) == ("x", "one ENOUGH")

    def test_an_empty_one_never_stops(self) -> None:
        assert texts(["one"], ["", "x"]) == ("", "one")

    def test_completed_by_the_rest_of_a_name_that_was_none(self) -> None:
        feed = Feed(["END"])
        for item in (OPEN, "thought\n", "<chan", CLOSE, "a", OPEN, "nel|>END" + "x" * 60):
            feed.push(item)
        assert feed.stream.stopped
        assert feed.finish() == ("", "a")

    def test_one_that_is_a_marker_stops(self) -> None:
        feed = Feed(["<|turn>"])
        feed.push("a<|turn>b")
        assert feed.stream.stopped
        assert feed.finish() == ("", "a")

    def test_special_characters_of_patterns_are_plain(self) -> None:
        for stop in ("]", "^", "-", "\\", ".*", "[a-z]"):
            assert texts([f"a b{stop}c"], [stop]) == ("", "a b")
            assert texts(["abc"], [stop]) == ("", "abc")

    @settings(deadline=None, max_examples=300)
    @given(
        text=st.text(alphabet="ab\né", max_size=30),
        stop=st.lists(st.text(alphabet="ab\né", min_size=1, max_size=4), min_size=1, max_size=3),
        by_byte=st.booleans(),
    )
    def test_equals_a_search_in_the_whole_text(self, text: str, stop: list[str], by_byte: bool) -> None:
        ends = [(text.find(one) + len(one), text.find(one)) for one in stop if one in text]
        expected = text[: min(ends)[1]] if ends else text
        parts: list[Item] = [text.encode()]
        feed = Feed(stop)
        for item in single_bytes(parts) if by_byte else parts:
            feed.push(item)
        assert feed.stream.stopped == bool(ends)
        assert feed.finish() == ("", expected)


def test_finish_twice_gives_nothing_more() -> None:
    feed = Feed()
    feed.push("a <")
    assert feed.finish() == ("", "a <")
    assert feed.stream.finish() == []
