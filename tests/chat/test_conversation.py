"""The tree of messages, and what of it the engine sees."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.chat.conversation import (
    ACCEPTED,
    OWN,
    REJECTED,
    Node,
    Run,
    Tree,
    checked_runs,
    shown_leaf,
    storable,
)
from tandem.engine.template import Message


def node(number: int, parent: int | None, text: str = "text", **fields: object) -> Node:
    role = fields.pop("role", "user" if number % 2 else "assistant")
    return Node(number, 1, parent, role, text, **fields)  # type: ignore[arg-type]


# 1 ─ 2 ─ 3 ─ 4      the first way
#      └─ 5 ─ 6      message 3 edited
# 7 ─ 8              message 1 edited
FAMILY = [node(1, None), node(2, 1), node(3, 2), node(4, 3), node(5, 2), node(6, 5), node(7, None), node(8, 7)]


def ids(nodes: list[Node]) -> list[int]:
    return [found.id for found in nodes]


def test_paths() -> None:
    tree = Tree(FAMILY)
    assert ids(tree.path(4)) == [1, 2, 3, 4]
    assert ids(tree.path(6)) == [1, 2, 5, 6]
    assert ids(tree.path(8)) == [7, 8]
    assert ids(tree.path(2)) == [1, 2]
    assert tree.path(None) == []


def test_versions_of_a_message() -> None:
    tree = Tree(FAMILY)
    assert tree.siblings(3) == tree.siblings(5) == [3, 5]
    assert tree.siblings(1) == tree.siblings(7) == [1, 7]
    assert tree.siblings(2) == [2]
    assert tree.branches(4) == {1: (1, 2), 3: (1, 2)}
    assert tree.branches(6) == {1: (1, 2), 5: (2, 2)}
    assert tree.branches(8) == {7: (2, 2)}


def test_switching_to_another_version_leads_to_its_newest_end() -> None:
    tree = Tree(FAMILY)
    assert tree.newest_leaf_under(1) == 6
    assert tree.newest_leaf_under(3) == 4
    assert tree.newest_leaf_under(7) == 8
    assert tree.newest_leaf_under(8) == 8
    assert tree.newest_leaf_under(None) == 8
    assert Tree().newest_leaf_under(None) is None


def test_editing_the_first_of_five_turns_keeps_the_rest() -> None:
    chain = [node(number, number - 1 or None) for number in range(1, 11)]
    tree = Tree(chain)
    tree.add(node(11, None))
    assert ids(tree.path(tree.newest_leaf_under(None))) == [11]
    assert ids(tree.path(tree.newest_leaf_under(1))) == list(range(1, 11))


def test_adding_and_replacing() -> None:
    tree = Tree(FAMILY)
    tree.replace(node(4, 3, "new"))
    assert tree[4].text == "new"
    assert len(tree) == 8
    assert 4 in tree
    assert 9 not in tree
    with pytest.raises(ValueError, match="two messages"):
        tree.add(node(4, 3))
    with pytest.raises(KeyError):
        tree.replace(node(9, 3))
    with pytest.raises(ValueError, match="moved"):
        tree.replace(node(4, 1))


def test_what_is_not_there() -> None:
    tree = Tree(FAMILY)
    for ask in (tree.path, tree.siblings, tree.newest_leaf_under, tree.messages):
        with pytest.raises(KeyError):
            ask(99)


def test_the_remembered_leaf_or_the_newest() -> None:
    tree = Tree(FAMILY)
    assert shown_leaf(tree, 4) == 4
    assert shown_leaf(tree, None) == shown_leaf(tree, 99) == 8
    assert shown_leaf(Tree(), None) is None


def test_a_parent_that_is_no_older_is_none() -> None:
    tree = Tree([node(1, 2), node(2, 1), node(3, 3), node(4, 99)])
    assert tree.siblings(1) == [1, 3, 4]
    assert ids(tree.path(2)) == [1, 2]


@given(st.lists(st.integers(-3, 30), max_size=30), st.randoms())
def test_every_message_is_reached_however_they_are_linked(parents: list[int], rng: object) -> None:
    nodes = [node(place, parent if parent > 0 else None) for place, parent in enumerate(parents, 1)]
    rng.shuffle(nodes)  # type: ignore[attr-defined]
    tree = Tree(nodes)
    assert len(tree.nodes) == len(parents)
    under = {number: [number] for number in range(1, len(parents) + 1)}
    for found in tree.nodes:
        path = tree.path(found.id)
        assert path[-1] is found
        assert found.id in tree.siblings(found.id)
        for before in path[:-1]:
            under[before.id].append(found.id)
        for step, after in itertools.pairwise(path):
            assert after.parent == step.id
    for number, family in under.items():
        leaf = tree.newest_leaf_under(number)
        assert leaf is not None
        assert leaf in family
        assert tree.children(leaf) == []
        # Nothing newer stands under it.
        assert leaf == max(family)


def test_a_very_long_chat() -> None:
    count = 50_000
    tree = Tree(node(number, number - 1 or None) for number in range(1, count + 1))
    assert len(tree.path(count)) == count
    assert tree.newest_leaf_under(1) == count
    assert len(tree.messages(count)) == count


def test_the_engine_sees_no_thoughts_and_no_failures() -> None:
    tree = Tree(
        [
            node(1, None, "one"),
            node(2, 1, "two", thought="hm"),
            node(3, 2, "three"),
            node(4, 3, "half", state="failed", problem="It died."),
            node(5, 4, "five"),
            node(6, 5, " \n", thought="only this"),
            node(7, 6, "seven"),
            node(8, 7, "cut", state="stopped"),
            node(9, 8, "nine"),
        ]
    )
    assert tree.messages(9) == (
        Message("user", "one"),
        Message("assistant", "two"),
        Message("user", "three"),
        Message("user", "five"),
        Message("user", "seven"),
        Message("assistant", "cut"),
        Message("user", "nine"),
    )
    assert tree.messages(1, "Be brief.") == (Message("system", "Be brief."), Message("user", "one"))
    assert tree.messages(1, " \n") == (Message("user", "one"),)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("plain", "plain"),
        ("a\0b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("\udc00\0", "\ufffd\ufffd"),
        ("한글 😀", "한글 😀"),
    ],
)
def test_what_can_be_stored(text: str, kept: str) -> None:
    assert storable(text) == kept


@given(st.text(st.characters(categories=None), max_size=30))
def test_everything_can_be_stored_once_cleaned(text: str) -> None:
    kept = storable(text)
    kept.encode()
    assert "\0" not in kept
    assert storable(kept) == kept


def test_colours_that_do_not_fit_the_text_are_not_kept() -> None:
    answer = node(2, 1, "abcdef", thought="xy")
    right = (Run("thought", 2, OWN), Run("answer", 4, ACCEPTED), Run("answer", 2, REJECTED))
    assert checked_runs(answer, right) == right
    assert checked_runs(answer, ()) == ()
    for wrong in (
        right[:2],
        (*right, Run("answer", 1, OWN)),
        (*right[:2], Run("answer", 2, 3)),
        (*right, Run("answer", -1, OWN), Run("answer", 1, OWN)),
        (*right, Run("thought", 1, OWN)),
    ):
        assert checked_runs(answer, wrong) == ()
    assert checked_runs(msgspec.structs.replace(answer, text="abcdefg"), right) == ()
