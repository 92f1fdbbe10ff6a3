"""The sign-in token: where it is found, kept and forgotten, and that it shows nowhere."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import keyring.errors
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail

from tandem.errors import UsageError
from tandem.models import tokens
from tandem.models.errors import TransferError
from tandem.models.tokens import Token

SECRET = "hf_GeheimesWort0123456789"


class Ring(KeyringBackend):
    """A keyring in memory."""

    priority = 1.0  # type: ignore[assignment]

    def __init__(self, broken: Exception | None = None) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.broken = broken

    def _work(self) -> None:
        if self.broken is not None:
            raise self.broken

    def get_password(self, service: str, username: str) -> str | None:
        self._work()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._work()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._work()
        if (service, username) not in self.kept:
            raise keyring.errors.PasswordDeleteError("not there")
        del self.kept[service, username]


@pytest.fixture
def ring() -> Iterator[Ring]:
    before = keyring.get_keyring()
    mine = Ring()
    keyring.set_keyring(mine)
    yield mine
    keyring.set_keyring(before)


@pytest.fixture
def no_ring() -> Iterator[None]:
    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())
    yield
    keyring.set_keyring(before)


def written(folder: Path, text: str | bytes = SECRET) -> Path:
    path = folder / "token"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.usefixtures("no_ring")
def test_there_need_be_none(tmp_path: Path) -> None:
    assert tokens.find({"HF_HOME": str(tmp_path)}) is None


def test_the_environment_comes_before_the_keyring_and_that_before_the_file(ring: Ring, tmp_path: Path) -> None:
    written(tmp_path, "hf_of_the_file\n")
    environ = {"HF_HOME": str(tmp_path), "HF_TOKEN": f" {SECRET}\n"}
    assert tokens.find(environ) == Token(SECRET, "HF_TOKEN")
    del environ["HF_TOKEN"]
    assert tokens.find(environ) == Token("hf_of_the_file", "file")
    tokens.keep("hf_of_the_ring")
    assert tokens.find(environ) == Token("hf_of_the_ring", "keyring")
    assert tokens.find({"HUGGING_FACE_HUB_TOKEN": SECRET}) == Token(SECRET, "HF_TOKEN")
    assert ring.kept == {("tandem", "huggingface"): "hf_of_the_ring"}


def test_the_standard_place_is_where_huggingface_hub_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tokens.file({"HF_TOKEN_PATH": "/srv/t", "HF_HOME": "/srv/h"}) == Path("/srv/t")
    assert tokens.file({"HF_HOME": "/srv/h", "XDG_CACHE_HOME": "/srv/c"}) == Path("/srv/h/token")
    assert tokens.file({"XDG_CACHE_HOME": "/srv/c"}) == Path("/srv/c/huggingface/token")
    monkeypatch.setenv("HOME", "/srv/somebody")
    monkeypatch.setenv("USERPROFILE", "/srv/somebody")
    assert tokens.file({}) == Path("/srv/somebody/.cache/huggingface/token")
    monkeypatch.setenv("PLACE", "/srv/place")
    assert tokens.file({"HF_HOME": "$PLACE/hf"}) == Path("/srv/place/hf/token")


@pytest.mark.usefixtures("no_ring")
@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe", "hf_é".encode(), b"hf_a\nhf_b", b"x" * 5000, b"\x00"])
def test_a_file_without_a_token_is_passed_over(content: bytes, tmp_path: Path) -> None:
    written(tmp_path, content)
    assert tokens.find({"HF_HOME": str(tmp_path)}) is None


@pytest.mark.usefixtures("no_ring")
@pytest.mark.parametrize("name", ["모델", "Загрузки", "🤗", os.fsdecode(b"\xff") if sys.platform == "linux" else "é"])
def test_the_file_may_lie_anywhere(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    written(folder)
    assert tokens.find({"HF_HOME": str(folder)}) == Token(SECRET, "file")
    assert tokens.find({"HF_HOME": str(folder / "token")}) is None
    assert tokens.find({"HF_TOKEN_PATH": str(folder)}) is None
    assert tokens.find({"HF_TOKEN_PATH": "a\x00b"}) is None


def test_one_is_kept_and_forgotten(ring: Ring) -> None:
    assert tokens.keep(f"  {SECRET}\n") == Token(SECRET, "keyring")
    assert tokens.find({}) == Token(SECRET, "keyring")
    tokens.keep("hf_another")
    assert ring.kept == {("tandem", "huggingface"): "hf_another"}
    tokens.forget()
    assert ring.kept == {}
    tokens.forget()


@pytest.mark.usefixtures("ring")
@pytest.mark.parametrize("text", ["", "   ", "hf a", "hf_é", "hf_\x07", "line\nline", "x" * 5000])
def test_what_cannot_be_a_token_is_not_kept(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        tokens.keep(text)
    assert refused.value.sentence == "This is no token of the Hub."
    assert not text.strip() or text not in f"{refused.value.details}{refused.value.remedy}"


@pytest.mark.usefixtures("no_ring")
def test_without_a_keyring_the_other_ways_are_named() -> None:
    for work in (lambda: tokens.keep(SECRET), tokens.forget):
        with pytest.raises(TransferError) as refused:
            work()
        assert refused.value.fault == "keyring"
        assert "HF_TOKEN" in refused.value.remedy
        assert "hf auth login" in refused.value.remedy


@pytest.mark.parametrize("broken", [keyring.errors.KeyringLocked("locked"), RuntimeError(SECRET), OSError(SECRET)])
def test_a_keyring_that_fails_is_none_and_what_it_says_is_not_repeated(
    broken: Exception, ring: Ring, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ring.broken = broken
    written(tmp_path, "hf_of_the_file")
    with caplog.at_level(logging.DEBUG):
        assert tokens.find({"HF_HOME": str(tmp_path)}) == Token("hf_of_the_file", "file")
        for work in (lambda: tokens.keep("hf_new"), tokens.forget):
            with pytest.raises(TransferError) as refused:
                work()
            assert SECRET not in f"{refused.value.details} {refused.value}"
            assert refused.value.__suppress_context__
    assert SECRET not in caplog.text


def test_a_token_shows_nowhere(ring: Ring, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        token = tokens.keep(SECRET)
        tokens.find({"HF_TOKEN": SECRET + "é"})
    assert SECRET not in f"{token} {token!r} {[token]} {caplog.text}"
    assert ring.kept
