"""The links in the transcript's document: where they are, one after the other, and how they look for a moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from PySide6.QtGui import QTextBlock, QTextCursor, QTextDocument

from tandem.ui.transcript_look import ICONS


class Link(NamedTuple):
    """A link: positions of its start and end, its address and what it is called."""

    start: int
    end: int
    href: str
    name: str


def links_of(block: QTextBlock) -> list[Link]:
    """The links of a block, in order."""
    found: list[Link] = []
    for part in block:  # type: ignore[attr-defined]  # the stubs lack __next__
        fragment = part.fragment()
        chars = fragment.charFormat()
        href = chars.anchorHref() if chars.isAnchor() else ""
        if not href:
            continue
        start, end = fragment.position(), fragment.position() + fragment.length()
        text = "" if chars.isImageFormat() else fragment.text().replace("\u00a0", " ")
        if found and found[-1].href == href and found[-1].end == start:
            last = found[-1]
            found[-1] = last._replace(end=end, name=f"{last.name}{text}")
        else:
            found.append(Link(start, end, href, text))
    return [link._replace(name=link.name.strip() or tip_of(block, link)) for link in found]


def tip_of(block: QTextBlock, link: Link) -> str:
    """What is said about a link of a block that the mouse rests on; may be ""."""
    cursor = QTextCursor(block)
    cursor.setPosition(link.end)
    return cursor.charFormat().toolTip()


def next_link(block: QTextBlock, after: int) -> Link | None:
    """The first link that begins behind a position, from this block on."""
    while block.isValid():
        for link in links_of(block):
            if link.start > after:
                return link
        block = block.next()
    return None


def previous_link(block: QTextBlock, before: int) -> Link | None:
    """The last link that begins in front of a position, from this block back."""
    while block.isValid():
        for link in reversed(links_of(block)):
            if link.start < before:
                return link
        block = block.previous()
    return None


def find_link(document: QTextDocument, href: str, start: int, end: int) -> Link | None:
    """The link with an address between two positions."""
    for block in _blocks(document, start, end):
        for link in links_of(block):
            if link.href == href:
                return link
    return None


def dress(document: QTextDocument, link: Link, icon: str, words: str) -> None:
    """Gives a link another icon, or other words where it has no icon; its address stays."""
    cursor = QTextCursor(document)
    cursor.setPosition(link.start + 1)
    chars = cursor.charFormat()
    cursor.setPosition(link.start)
    cursor.setPosition(link.end, QTextCursor.MoveMode.KeepAnchor)
    if chars.isImageFormat():
        image = chars.toImageFormat()
        _, _, rest = image.name().removeprefix(ICONS).partition("/")
        image.setName(f"{ICONS}{icon}/{rest}")
        cursor.setCharFormat(image)
    else:
        cursor.insertText(words, chars)


def _blocks(document: QTextDocument, start: int, end: int) -> Iterator[QTextBlock]:
    block = document.findBlock(start)
    while block.isValid() and block.position() <= end:
        yield block
        block = block.next()
