"""Pieces of a file: who fetches which, and what can be written."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.models.ranges import Window

DATA = random.Random(1).randbytes(1000)


def test_pieces_are_handed_out_in_order() -> None:
    window = Window(25, 0, 10, 100)
    pieces = [window.take("me"), window.take("me"), window.take("me")]
    assert [(piece.start, piece.end) for piece in pieces if piece] == [(0, 10), (10, 20), (20, 25)]
    assert window.take("me") is None


def test_a_window_goes_on_behind_what_is_there() -> None:
    window = Window(25, 7, 10, 100)
    piece = window.take("me")
    assert piece is not None
    assert (piece.start, piece.end) == (7, 17)


def test_what_is_there_already_is_finished() -> None:
    window = Window(25, 25, 10, 100)
    assert window.finished
    assert window.take("me") is None


def test_only_what_follows_can_be_written() -> None:
    window = Window(20, 0, 10, 100)
    first, second = window.take("a"), window.take("b")
    assert first is not None
    assert second is not None
    window.put(second, "b", DATA[10:20])
    assert window.ready() == []
    assert window.have == 10
    window.put(first, "a", DATA[:4])
    assert b"".join(window.ready()) == DATA[:4]
    window.put(first, "a", DATA[4:10])
    assert b"".join(window.ready()) == DATA[4:20]
    assert window.finished


def test_memory_is_bounded() -> None:
    window = Window(1000, 0, 10, 30)
    taken = [window.take(number) for number in range(10)]
    assert [piece is not None for piece in taken] == [True] * 3 + [False] * 7
    assert taken[0] is not None
    window.put(taken[0], 0, DATA[:10])
    assert window.take("more") is None  # until it was written
    window.ready()
    assert window.take("more") is not None


def test_a_piece_that_was_given_back_goes_on_where_it_was() -> None:
    window = Window(20, 0, 10, 100)
    piece = window.take("a")
    assert piece is not None
    window.put(piece, "a", DATA[:6])
    window.give_back(piece, "a")
    again = window.take("b")
    assert again is piece
    assert again.at == 6
    window.put(piece, "b", DATA[6:10])
    assert b"".join(window.ready()) == DATA[:10]


def test_who_gave_a_piece_back_brings_nothing_more() -> None:
    window = Window(20, 0, 10, 100)
    piece = window.take("a")
    assert piece is not None
    window.give_back(piece, "a")
    assert not window.put(piece, "a", DATA[:6])
    window.take("b")
    assert not window.put(piece, "a", DATA[:6])
    window.give_back(piece, "a")  # it is not theirs to give
    assert window.put(piece, "b", DATA[:6])
    assert b"".join(window.ready()) == DATA[:6]


def test_more_than_a_piece_needs_is_refused() -> None:
    window = Window(20, 0, 10, 100)
    piece = window.take("a")
    assert piece is not None
    with pytest.raises(ValueError, match="too many"):
        window.put(piece, "a", DATA[:11])


@given(
    size=st.integers(1, 1000),
    position=st.integers(0, 1000),
    piece=st.integers(1, 300),
    ahead=st.integers(1, 600),
    seed=st.integers(0, 1 << 30),
)
def test_whatever_happens_the_writer_gets_the_file(size: int, position: int, piece: int, ahead: int, seed: int) -> None:
    position = min(position, size)
    rnd = random.Random(seed)
    window, written, owners = Window(size, position, piece, ahead), bytearray(DATA[:position]), {}
    while not window.finished:
        match rnd.randrange(4):
            case 0:
                owner = rnd.randrange(4)
                if owner not in owners and (found := window.take(owner)) is not None:
                    owners[owner] = found
            case 1 if owners:
                owner, found = rnd.choice(list(owners.items()))
                count = rnd.randint(0, found.end - found.at)
                assert window.put(found, owner, DATA[found.at : found.at + count])
                if found.whole:
                    del owners[owner]
            case 2 if owners and rnd.random() < 0.3:
                owner = rnd.choice(list(owners))
                window.give_back(owners.pop(owner), owner)
            case 3:
                for block in window.ready():
                    written += block
        assert window.have <= window.position + ahead + piece
    assert written == DATA[:size]
