"""What a person has chosen, in one record and one file.

A file that cannot be read is set aside and the defaults are taken; a single value that makes no sense takes its
default and is named. Nothing is lost silently.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec

from tandem import paths
from tandem.errors import TandemError, UsageError
from tandem.files import free_name, read_beginning, sync_folder, write_private

VERSION: Final = 1
"""Changes when an older Tandem could misunderstand the file."""

_MAX_BYTES: Final = 1 << 20

Theme = Literal["system", "light", "dark"]
Language = Literal["system", "en", "ko"]
KvType = Literal["f16", "q8_0"]
Count = Annotated[int, msgspec.Meta(ge=1, le=1 << 24)]
DraftChoice = Literal["off", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"]


class Sampling(msgspec.Struct, frozen=True):
    """How a token is chosen; see `tandem.engine.sampling.SamplingParams`, whose defaults these are.

    Attributes:
        max_tokens: Most tokens of an answer; None leaves it to the context.
    """

    temperature: Annotated[float, msgspec.Meta(ge=0.0, le=100.0)] = 1.0
    top_k: Annotated[int, msgspec.Meta(ge=0, le=1 << 20)] = 64
    top_p: Annotated[float, msgspec.Meta(gt=0.0, le=1.0)] = 0.95
    min_p: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.0
    repeat_penalty: Annotated[float, msgspec.Meta(ge=0.01, le=100.0)] = 1.0
    max_tokens: Count | None = None


class PairChoice(msgspec.Struct, frozen=True):
    """The pair to load at start: the built-in demo pair, or two files by their paths.

    Attributes:
        kind: Which.
        target: The target's path, for "files".
        drafter: The drafter's path, for "files"; None goes without.
    """

    kind: Literal["demo", "files"] = "demo"
    target: str | None = None
    drafter: str | None = None


class Settings(msgspec.Struct, frozen=True):
    """All settings. Make changed ones with `changed`, which checks.

    Attributes:
        version: Of the file.
        theme: Colours.
        text_scale: Size of text, 1.0 is normal.
        language: Of the window.
        draft: Draft length: "off" or a number.
        draft_on: Whether the drafter is used, whatever its length.
        thinking: Whether the model is asked to think first.
        show_drafted: Whether answers show which tokens were drafted.
        context: Positions; None lets the engine choose.
        threads: None lets the engine choose.
        device: Name of a device; None takes the best.
        kv_type: Type of the target's KV cache.
        sampling: How tokens are chosen.
        system_prompt: For every chat without its own; blank for none.
        pair: What to load at start.
        geometry: The window's place, as Qt's `saveGeometry` in base64; empty when unknown.
        sidebar: Whether the list of chats is shown.
        first_run_done: Whether the welcome was seen.
        export_folder: Where the last export went.
        models_folder: Where models are kept; None takes the usual folder.
        hub_endpoint: Address of the Hub or of a mirror of it; "" takes HF_ENDPOINT or the Hub's own.
        proxy: Address of a proxy; "" takes the environment's, "none" goes without.
        speed_limit: Most bytes a second of a download; None for no limit.
        connections: Most connections at a time of a download.
    """

    version: int = VERSION
    theme: Theme = "system"
    text_scale: Annotated[float, msgspec.Meta(ge=0.8, le=1.6)] = 1.0
    language: Language = "system"
    draft: DraftChoice = "3"
    draft_on: bool = True
    thinking: bool = False
    show_drafted: bool = False
    context: Count | None = None
    threads: Annotated[int, msgspec.Meta(ge=1, le=4096)] | None = None
    device: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    kv_type: KvType = "f16"
    sampling: Sampling = Sampling()
    system_prompt: Annotated[str, msgspec.Meta(max_length=200_000)] = ""
    pair: PairChoice = PairChoice()
    geometry: Annotated[str, msgspec.Meta(max_length=10_000)] = ""
    sidebar: bool = True
    first_run_done: bool = False
    export_folder: str | None = None
    models_folder: Annotated[str, msgspec.Meta(pattern=r"\A[^\x00]*\Z")] | None = None
    hub_endpoint: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    proxy: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    speed_limit: Annotated[int, msgspec.Meta(ge=1 << 10, le=1 << 40)] | None = None
    connections: Annotated[int, msgspec.Meta(ge=1, le=4)] = 4

    def changed(self, **fields: Any) -> Settings:
        """These settings with some fields changed.

        Raises:
            UsageError: A value makes no sense, or there is no such field.
        """
        try:
            return msgspec.convert(msgspec.to_builtins(msgspec.structs.replace(self, **fields)), Settings)
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            raise UsageError("This setting cannot have that value.", "Choose another value.", str(error)) from error


class Loaded(msgspec.Struct, frozen=True):
    """Settings as they were found.

    Attributes:
        settings: To use.
        set_aside: Where an unreadable file, or one of a newer Tandem, was kept.
        defaulted: Names of fields whose value made no sense and that now have their default.
        problem: Why a file could neither be read nor set aside.
    """

    settings: Settings
    set_aside: Path | None = None
    defaulted: tuple[str, ...] = ()
    problem: TandemError | None = None


def file() -> Path:
    """Where the settings are.

    Raises:
        TandemError: The folder cannot be made.
    """
    return paths.data_dir() / "settings.json"


def load(path: Path | None = None) -> Loaded:
    """Reads the settings; without a file these are the defaults.

    A file that is no JSON object is renamed and kept. A newer Tandem's file is copied before what is understood of it
    takes its place.

    Args:
        path: None takes `file()`.

    Raises:
        TandemError: The file is there and can neither be read nor set aside.
    """
    path = path or file()
    try:
        data = read_beginning(path, _MAX_BYTES + 1)
    except FileNotFoundError:
        return Loaded(Settings())
    except OSError as error:
        raise TandemError(
            f"The settings in {path} cannot be read.", "Check the permissions of that file.", str(error)
        ) from error
    raw = None if data is None else _parsed(data)
    if data is None or raw is None:
        return Loaded(Settings(), set_aside=_set_aside(path))
    defaulted: list[str] = []
    found = _understood(Settings, raw, "", defaulted)
    if found.version <= VERSION:
        return Loaded(msgspec.structs.replace(found, version=VERSION), defaulted=tuple(defaulted))
    settings = msgspec.structs.replace(found, version=VERSION)
    kept = free_name(path, f"version-{found.version}")
    try:
        write_private(kept, data)
    except OSError as error:
        raise _not_written(path, error) from error
    save(settings, path)
    return Loaded(settings, kept, tuple(defaulted))


def load_anyway(path: Path | None = None) -> Loaded:
    """As `load`, but never fails: a file that cannot be read is renamed too, as the next change would replace it.

    Args:
        path: None takes `file()`.
    """
    try:
        return load(path)
    except TandemError as error:
        try:
            return Loaded(Settings(), set_aside=_set_aside(path or file()))
        except TandemError:
            return Loaded(Settings(), problem=error)


def save(settings: Settings, path: Path | None = None) -> None:
    """Writes the settings, whole or not at all.

    Args:
        settings: To keep.
        path: None takes `file()`.

    Raises:
        TandemError: They cannot be written; the old ones are still there.
    """
    path = path or file()
    plain = msgspec.to_builtins(settings)
    try:
        data = json.dumps(plain, ensure_ascii=False, indent=1).encode()
    except UnicodeEncodeError:  # a file name that is no Unicode, which only an escape in JSON can hold
        data = json.dumps(plain, indent=1).encode()
    try:
        write_private(path, data + b"\n")
    except OSError as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> TandemError:
    return TandemError(
        f"The settings cannot be written to {path.parent}.",
        "Make room on that disk, and check that you may write to that folder.",
        str(error),
    )


def _set_aside(path: Path) -> Path:
    kept = free_name(path, "damaged")
    try:
        path.rename(kept)
    except OSError as error:
        raise TandemError(
            f"The settings in {path} are damaged and cannot be set aside.",
            "Remove or rename that file yourself, then start Tandem again.",
            str(error),
        ) from error
    sync_folder(path.parent)
    return kept


def _parsed(data: bytes) -> dict[str, Any] | None:
    """The JSON object, None when it is none."""
    if len(data) > _MAX_BYTES:
        return None
    try:
        raw = json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError):  # also what is no UTF-8
        return None
    return raw if isinstance(raw, dict) else None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


_S = TypeVar("_S", bound=msgspec.Struct)


def _understood(kind: type[_S], raw: dict[str, Any], prefix: str, defaulted: list[str]) -> _S:
    """A struct with every field of `raw` that is valid for it; the others' names go to `defaulted`."""
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        if field.name not in raw:
            continue
        value, name = raw[field.name], prefix + field.name
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct) and isinstance(value, dict):
            values[field.name] = _understood(field.type, value, f"{name}.", defaulted)
            continue
        try:
            values[field.name] = msgspec.convert(value, field.type)
        except (msgspec.ValidationError, OverflowError):
            defaulted.append(name)
    return kind(**values)
