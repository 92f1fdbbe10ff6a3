"""The flags of `tandem models`: what is here, downloads, checks, imports, and whether two files are a pair.

A catalog of one's own can be given with the hidden option `--catalog FILE`, for mirrors and tests.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import click

from tandem import settings, terminal_files, terminal_models
from tandem.engine.gguf_header import printable
from tandem.errors import UsageError
from tandem.models import catalog as catalogs
from tandem.models.catalog import Catalog, CatalogPair
from tandem.models.imports import How
from tandem.models.store import Store
from tandem.terminal import reader_may_go
from tandem.terminal_files import Models

INTERRUPTED: Final = 130
"""What shells make of Ctrl-C."""

_F = TypeVar("_F", bound=Callable[..., object])
_PATH: Final = click.Path(path_type=Path)


def catalog_option(function: _F) -> _F:
    """`--catalog FILE`: another list of pairs than the app's."""
    option = click.option("--catalog", type=_PATH, hidden=True, help="Another list of pairs, for mirrors and tests.")
    return option(function)


_folder = click.option("--dir", "folder", type=_PATH, metavar="DIR", help="The model folder; default: the settings'.")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")


@click.group(invoke_without_command=True, short_help="Download, verify, import and remove models.")
@catalog_option
@click.pass_context
def models(context: click.Context, catalog: Path | None) -> None:
    """Model files: download, verify, import and remove them.

    Without a command it lists them. Ctrl-C pauses a download: what has come in is kept, and the same command goes on.
    """
    context.obj = catalog
    if context.invoked_subcommand is None:
        context.invoke(list_command)


@models.command("list", short_help="What there is to download, and what is here.")
@_folder
@_json
@click.pass_obj
def list_command(catalog: Path | None, folder: Path | None, as_json: bool) -> None:
    """What there is to download, and what is here."""
    with _polite():
        sys.exit(terminal_models.list_models(_models(catalog, folder), as_json))


@models.command(short_help="Download a pair, or go on with it.")
@click.argument("key")
@click.option("--endpoint", metavar="URL", help="A mirror of the Hub; default: the settings' or HF_ENDPOINT.")
@_folder
@click.pass_obj
def download(catalog: Path | None, key: str, endpoint: str | None, folder: Path | None) -> None:
    """Download a pair, or go on with it: target and drafter, checked by size, sha256 and header.

    KEY is a pair's name in the list, such as e2b or e4b.
    """
    with _polite():
        here = _models(catalog, folder)
        sys.exit(terminal_models.download(here, _pair(here.store.catalog, key), endpoint))


@models.command(short_help="Hash installed files again.")
@click.argument("names", nargs=-1, metavar="[KEY|FILE]...")
@_folder
@_json
@click.pass_obj
def verify(catalog: Path | None, names: tuple[str, ...], folder: Path | None, as_json: bool) -> None:
    """Hash installed files again, all or the named ones; a wrong one is set aside."""
    with _polite():
        sys.exit(terminal_models.verify_files(_models(catalog, folder), names, as_json))


@models.command("import", short_help="Take over files that are on this disk already.")
@click.argument("files", nargs=-1, required=True, type=_PATH, metavar="FILE...")
@click.option("--copy", is_flag=True, help="A copy of its own in the model folder (the default).")
@click.option("--link", is_flag=True, help="A hard link: a second name for the same bytes.")
@click.option("--in-place", is_flag=True, help="Use the file where it is.")
@_folder
@click.pass_obj
def import_command(
    catalog: Path | None, files: tuple[Path, ...], copy: bool, link: bool, in_place: bool, folder: Path | None
) -> None:
    """Take over GGUF files that are on this disk already, whatever their names."""
    ways: dict[How, bool] = {"copy": copy, "link": link, "in-place": in_place}
    wanted = [way for way, given in ways.items() if given]
    if len(wanted) > 1:
        given = " and ".join(f"--{way}" for way in wanted)
        raise UsageError(f"{given} are given together.", "Take one of --copy, --link and --in-place.")
    with _polite():
        sys.exit(terminal_files.import_files(_models(catalog, folder), files, wanted[0] if wanted else None))


@models.command(short_help="Delete a pair's files, or single ones.")
@click.argument("names", nargs=-1, required=True, metavar="KEY|FILE...")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@_folder
@click.pass_obj
def remove(catalog: Path | None, names: tuple[str, ...], yes: bool, folder: Path | None) -> None:
    """Delete a pair's files, or single ones, with what has come in in part."""
    with _polite():
        sys.exit(terminal_files.remove_files(_models(catalog, folder), names, yes))


@models.command(short_help="Are two files a pair, and if not, why?")
@click.argument("target", type=_PATH)
@click.argument("drafter", type=_PATH)
@_json
def pair(target: Path, drafter: Path, as_json: bool) -> None:
    """Are two files a pair, and if not, which fact differs? Only headers are read."""
    with _polite():
        sys.exit(terminal_models.compare(target, drafter, as_json))


@models.command(short_help="Make an exact Q4_0 GGUF of bf16 safetensors.")
@click.argument("safetensors_dir", type=_PATH)
@click.argument("out", type=_PATH, metavar="OUT.gguf")
@_json
def repack(safetensors_dir: Path, out: Path, as_json: bool) -> None:
    """Make an exact Q4_0 GGUF of a QAT drafter that is published as bf16 safetensors."""
    with _polite():
        sys.exit(terminal_models.repack_drafter(safetensors_dir, out, as_json))


def pair_named(key: str, catalog: Path | None) -> tuple[Path, Path]:
    """Target and drafter of an installed pair, for `tandem chat --pair`.

    Raises:
        UsageError: There is no such pair.
        ModelError: It is not installed.
    """
    here = _models(catalog, None)
    return terminal_models.installed_pair(here.store, _pair(here.store.catalog, key))


def _models(catalog: Path | None, folder: Path | None) -> Models:
    found = settings.load()
    listed = None if catalog is None else _own_catalog(catalog)
    if found.set_aside is not None:
        print(f"The settings could not be used and were kept as {found.set_aside}.", file=sys.stderr)
    if folder is not None:
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{printable(str(folder))} is a file, not a folder.", "Give a folder.")
        return Models(Store(folder, listed), found.settings, given=True, catalog=catalog)
    return Models(Store.chosen(found.settings, listed), found.settings, catalog=catalog)


def _own_catalog(path: Path) -> Catalog:
    try:
        return catalogs.load(path)
    except Exception as error:
        raise UsageError(f"{path} is no list of pairs.", "Write it like Tandem's own catalog.toml.") from error


def _pair(catalog: Catalog, key: str) -> CatalogPair:
    found = catalog.pair(key)
    if found is None:
        keys = ", ".join(pair.key for _size, pair in catalog.pairs())
        raise UsageError(f"There is no pair called {key}.", f"Take one of these: {keys}.")
    return found


@contextmanager
def _polite() -> Iterator[None]:
    """A reader that goes away is no error; Ctrl-C between two jobs, or at a question, ends with its own code."""
    try:
        with reader_may_go():
            yield
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
