"""What a terminal says to do about an error: nothing that only the window has."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from tandem.errors import UsageError
from tandem.models.disk import amount
from tandem.models.errors import PinDiffers, RateLimited, TransferError, TransferFault
from tandem.terminal_errors import remedy
from tandem.ui.errors_models import SENTENCES

OF_THE_WINDOW = re.compile(r"\bSettings\b|in the settings|\bResume\b")
OTHERS = {"disk", "keyring", "busy", "wrong-size", "wrong-hash", "wrong-header", "offline-mode"}
"""Faults that are not of the network; "disk" is looked at apart, the others' remedies name nothing of the window."""
NAMED = [text for text in SENTENCES if OF_THE_WINDOW.search(text)]
ABOUT_PROXIES = [text for text in NAMED if "http://host:port" in text and "proxy" not in text.split("in Settings")[1]]
OF_THE_DISK = [text for text in NAMED if "folder" in text]


def test_there_are_such_remedies() -> None:
    assert len(NAMED) > len(OF_THE_DISK) > len(ABOUT_PROXIES) > 1


@pytest.mark.parametrize("fault", sorted(set(get_args(TransferFault)) - OTHERS))
@pytest.mark.parametrize("text", NAMED)
def test_no_remedy_of_a_transfer_names_the_window(text: str, fault: TransferFault) -> None:
    said = remedy(TransferError(fault, "It broke.", text.format_map(dict.fromkeys(("address", "variable"), "x"))))
    assert said.endswith(".")
    assert OF_THE_WINDOW.search(said) is None


@pytest.mark.parametrize("text", OF_THE_DISK)
def test_nor_does_one_of_the_disk(text: str) -> None:
    said = remedy(TransferError("no-room" if "Make room" in text else "disk", "It broke.", text))
    assert OF_THE_WINDOW.search(said) is None
    assert "folder" in said


@pytest.mark.parametrize("text", ABOUT_PROXIES)
def test_nor_does_one_for_wrong_use(text: str) -> None:
    assert "with HTTPS_PROXY" in remedy(UsageError("It is no proxy.", text))


def test_what_each_fault_says() -> None:
    other = "tandem models download e2b-unsloth"
    pinned = PinDiffers("a.gguf", "a", "b")
    assert remedy(pinned) == "Update Tandem."
    assert remedy(pinned, other) == f"Take the other source of this model: {other}"
    private = TransferError("sign-in", "It is private.", "Sign in with a token in Settings.")
    assert remedy(private) == "Set HF_TOKEN to a token of yours."
    assert (
        remedy(private, other) == f"Set HF_TOKEN to a token of yours, or take the other source of this model: {other}"
    )
    page = "https://huggingface.co/owner/repo"
    for rest in ("then press Resume.", "then sign in with a token in Settings."):
        gated = TransferError("gated", "It is gated.", f"Ask for access on its page at {page}, {rest}")
        assert remedy(gated) == f"Ask for access on its page at {page}, then set HF_TOKEN to a token of yours."
    assert "HF_TOKEN" in remedy(RateLimited("huggingface.co", 30.0))
    kept = "Check that disk, or choose another one."
    assert remedy(TransferError("disk", "It broke.", kept)) == kept


@pytest.mark.parametrize(
    ("count", "down", "up"),
    [
        (0, "0.0 MiB", "0.0 MiB"),
        (1_000_000, "0.9 MiB", "1.0 MiB"),
        (1 << 20, "1.0 MiB", "1.0 MiB"),
        ((1 << 30) + 1, "1.0 GiB", "1.1 GiB"),
        (5 << 40, "5,120.0 GiB", "5,120.0 GiB"),
    ],
)
def test_amounts_in_sentences(count: int, down: str, up: str) -> None:
    assert (amount(count), amount(count, up=True)) == (down, up)
