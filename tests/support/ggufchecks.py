"""What the tests of GGUF files share: facts of written files, and refusals with sentences worth reading."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.ggufbytes import Tensor, Value, sections
from tandem.engine.gguf import GgufFacts, read_facts
from tandem.errors import ModelError

Make = Callable[..., GgufFacts]
Refused = Callable[[bytes], ModelError]


def fault_of(call: Callable[[], object]) -> ModelError:
    """The refusal that a call must end with."""
    with pytest.raises(ModelError) as caught:
        call()
    error = caught.value
    for text in (error.sentence, error.remedy):
        assert text.endswith(".")
        assert text.isprintable()
        assert len(text) < 1000
    return error


def refusals_in(folder: Path) -> Refused:
    """Gives the refusal of a file with some content."""
    path = folder / "hostile.gguf"

    def refused(content: bytes) -> ModelError:
        path.write_bytes(content)
        return fault_of(lambda: read_facts(path))

    return refused


def facts_in(folder: Path) -> Make:
    """Gives the facts of a file with some metadata."""

    def make(metadata: dict[str, Value], name: str = "a.gguf", tensors: tuple[Tensor, ...] = (Tensor(),)) -> GgufFacts:
        path = folder / name
        path.write_bytes(sections(metadata, tensors).joined())
        return read_facts(path)

    return make
