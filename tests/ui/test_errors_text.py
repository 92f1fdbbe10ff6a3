"""Errors in the window's language: every sentence in the source is known, and comes back with its values."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QObject, QTranslator

import tandem
from support.sentences import Found, Hole, Source
from tandem import paths
from tandem.engine.deaths import DEATHS
from tandem.engine.gguf import read_facts
from tandem.engine.pairing import check_drafter, check_target
from tandem.engine.sampling import SamplingParams
from tandem.errors import PromptTooLong, TandemError
from tandem.models import imports, pair_facts
from tandem.ui import errors_models
from tandem.ui.errors_text import CHOICES, CONTEXT, PHRASES, SENTENCES, localised

PLACEHOLDER = re.compile(r"\{\w+\}")
ALL_PHRASES = [*PHRASES, *(phrase for phrases in CHOICES.values() for phrase in phrases)]
PACKAGE = Path(tandem.__file__).parent
# They speak to a terminal, in English.
NOT_IN_THE_WINDOW = frozenset(
    path.name
    for pattern in ("cli*.py", "terminal*.py", "doctor.py", "models/repack*.py")
    for path in PACKAGE.glob(pattern)
)
NOTES_OF_MODELS = {
    imports.NOTE_COPIED,
    imports.NOTE_LICENCE,
    imports.NOTE_NOT_QAT,
    imports.NOTE_OTHER,
    pair_facts.QAT_DRAFTER_ONLY,
    pair_facts.QAT_TARGET_ONLY,
    pair_facts.SWAPPED,
}


class Marked(QTranslator):
    """Puts what it translates into brackets, which no English sentence has."""

    def isEmpty(self) -> bool:  # noqa: N802 - Qt's name
        return False

    def translate(self, context: str, text: str, _disambiguation: str | None = None, _n: int = -1) -> str:
        return f"‹{text}›" if context == CONTEXT else ""


@pytest.fixture
def marked(qapp: QCoreApplication) -> Iterator[None]:
    owner = QObject()
    translator = Marked(owner)
    qapp.installTranslator(translator)
    yield
    qapp.removeTranslator(translator)
    owner.deleteLater()


def shape(text: str) -> str:
    return PLACEHOLDER.sub("{}", text)


def missing(found: Found, sentences: set[str], phrases: set[str]) -> Iterator[str]:
    """What of a text is not to be had in other languages: it stands whole, or with its phrases apart, or filled in."""
    holes = [part for part in found.parts if isinstance(part, Hole)]
    if found.shape in sentences:
        for hole in holes:
            for text in hole.texts:
                if " " in text.shape and text.shape not in sentences:
                    yield from missing(text, phrases, phrases)
        return
    choices = [
        sorted({text.shape for text in part.texts if " " in text.shape}) or ["{}"] if isinstance(part, Hole) else [part]
        for part in found.parts
    ]
    for whole in product(*choices):
        if (text := "".join(whole)) not in sentences and not re.fullmatch(r"(\{\}|\W)*", text):
            yield f"{found.place}: {text}"


def test_every_sentence_of_an_error_can_be_translated() -> None:
    source = Source(PACKAGE, NOT_IN_THE_WINDOW)
    sentences, phrases = {shape(text) for text in SENTENCES}, {shape(text) for text in ALL_PHRASES}
    lacking: set[str] = set()
    seen = 0
    for place, texts in source.sentences():
        seen += 1
        if not texts and not place.startswith("engine/client.py"):  # there a death's, see below
            lacking.add(f"{place}: what does this error say?")
        for text in texts:
            lacking.update(missing(text, sentences, phrases))
    for text in source.texts_given_to("Difference", 0):  # kept apart from the sentence until a pair is refused
        lacking.update(missing(text, phrases, phrases))
    for reason, sentence, remedy in DEATHS.values():
        lacking.update({sentence, remedy} - sentences, {reason} - phrases)
    assert seen > 100
    modules = "ui/errors_app.py, errors_engine.py, errors_files.py or errors_models.py"
    assert not lacking, f"Add to {modules}:\n" + "\n".join(sorted(lacking))


def test_no_sentence_is_there_that_no_error_says() -> None:
    source = Source(PACKAGE, NOT_IN_THE_WINDOW)
    said = {text.shape for _, texts in source.sentences() for text in texts}
    said |= {text for death in DEATHS.values() for text in death[1:]} | NOTES_OF_MODELS
    unknown = sorted(text for text in SENTENCES if shape(text) not in said)
    assert not unknown, unknown


def test_every_note_on_a_file_or_a_pair_can_be_translated() -> None:
    assert set(errors_models.NOTES) == NOTES_OF_MODELS


def test_texts_and_placeholders_are_in_order() -> None:
    assert len(set(SENTENCES)) == len(SENTENCES)
    assert len(set(ALL_PHRASES)) == len(ALL_PHRASES)
    for text in (*SENTENCES, *ALL_PHRASES):
        names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
        assert len(set(names)) == len(names)
        assert all(name.isidentifier() for name in names)


@pytest.mark.parametrize("text", SENTENCES)
@pytest.mark.usefixtures("marked")
def test_every_sentence_is_recognised_and_keeps_its_values(text: str) -> None:
    names = [match[1:-1] for match in PLACEHOLDER.findall(text)]
    values = {
        name: CHOICES[name][0] if name in CHOICES else f"모델 {number}/a.b; (x), “y” 1.5: z"
        for number, name in enumerate(names)
    }
    expected = {name: f"‹{value}›" if name in CHOICES else value for name, value in values.items()}
    assert localised(text.format_map(values), text.format_map(values)) == (f"‹{text}›".format_map(expected),) * 2


@pytest.mark.parametrize("phrase", ALL_PHRASES)
@pytest.mark.usefixtures("marked")
def test_every_phrase_is_translated_where_it_stands(phrase: str) -> None:
    names = [match[1:-1] for match in PLACEHOLDER.findall(phrase)]
    value = phrase.format_map({name: f"value{number}" for number, name in enumerate(names)})
    around = "a.gguf is damaged: {}."
    assert localised(around.format(value)) == (f"‹{around}›".format(f"‹{value}›"), "")


@pytest.mark.usefixtures("marked")
def test_errors_as_they_come(tmp_path: Path) -> None:
    html, drafter = tmp_path / "model file is empty.gguf", paths.demo_pair()[1]
    html.write_text("<html>" + "x" * 100)
    with pytest.raises(TandemError) as page:
        read_facts(html)
    with pytest.raises(TandemError) as not_a_target:
        check_target(read_facts(drafter))
    with pytest.raises(TandemError) as not_a_drafter:
        check_drafter(read_facts(paths.demo_pair()[0]))
    with pytest.raises(TandemError) as no_temperature:
        SamplingParams(temperature=-1.0).check()
    with pytest.raises(TandemError) as no_reach:
        SamplingParams(repeat_last_n=-5).check()
    told = [localised(error.value.sentence, error.value.remedy) for error in (page, not_a_target, not_a_drafter)]
    assert told == [
        (
            "‹model file is empty.gguf ‹is a web page, not a GGUF file›.›",
            "‹Download it again; a login page may have answered instead.›",
        ),
        (
            f"‹{drafter.name} is a drafter, not a model to chat with.›",
            "‹Give it as the drafter, and the Gemma 4 model as the target.›",
        ),
        (
            f"‹{paths.DEMO_TARGET} is not a drafter: its architecture is gemma4.›",
            "‹Choose a file of the architecture gemma4-assistant, or draft with the method draft-model.›",
        ),
    ]
    assert localised(no_temperature.value.sentence, no_temperature.value.remedy) == (
        "‹The ‹temperature› is -1.0 and must be ‹0 or more›.›",
        "‹Use ‹0 for the likeliest token each time, or 1.0›.›",
    )
    assert localised(no_reach.value.sentence, no_reach.value.remedy)[1] == "‹Use 64.›"
    error = PromptTooLong(12_345, 511)
    assert localised(error.sentence)[0] == "‹The prompt has 12,345 tokens and the context holds 511.›"


@pytest.mark.usefixtures("marked")
def test_facts_in_which_a_pair_differs_are_translated_one_by_one() -> None:
    facts = (
        "hidden size: 1,536 in the target, not given in the drafter; tokenizer: gemma4 in the target, x in the drafter"
    )
    sentence, _ = localised(f"d.gguf does not fit t.gguf ({facts}).")
    assert sentence == (
        "‹d.gguf does not fit t.gguf (‹‹hidden size›: 1,536 in the target, ‹not given› in the drafter›; "
        "‹‹tokenizer›: gemma4 in the target, x in the drafter›).›"
    )


@pytest.mark.usefixtures("marked")
@pytest.mark.parametrize(
    "text", ["", "Something new happened.", "Use something.", "A b c.", "x" * 100_000, "{name} {what"]
)
def test_what_is_not_known_stays_as_it_is(text: str) -> None:
    assert localised(text, text) == (text, text)


def test_without_a_translation_every_sentence_is_itself(qapp: QCoreApplication) -> None:
    assert qapp is not None
    for reason, sentence, remedy in DEATHS.values():
        assert localised(sentence, remedy) == (sentence, remedy)
        ended = f"The engine ended while it loaded the drafter ({reason})."
        assert localised(ended) == (ended, "")


def test_a_translation_with_other_placeholders_does_no_harm(qapp: QCoreApplication) -> None:
    class Wrong(QTranslator):
        def isEmpty(self) -> bool:  # noqa: N802 - Qt's name
            return False

        def translate(self, context: str, _text: str, _disambiguation: str | None = None, _n: int = -1) -> str:
            return "{nothing} {" if context == CONTEXT else ""

    translator = Wrong()
    qapp.installTranslator(translator)
    try:
        assert localised("a.gguf is empty.", "Check the path.") == ("a.gguf is empty.", "Check the path.")
    finally:
        qapp.removeTranslator(translator)
