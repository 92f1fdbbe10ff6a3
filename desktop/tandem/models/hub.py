"""Asking the Hub: which commit, size and sha256 a file has, and where its bytes are.

Everything is asked through huggingface_hub, of the endpoint that was chosen. What it fetches is metadata only; the
bytes are `tandem.models.transfer`'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self, TypeVar

import httpx2
from huggingface_hub import HfApi, get_hf_file_metadata, hf_hub_url
from huggingface_hub.hf_api import ModelInfo, RepoSibling

import tandem
from tandem.models import connection
from tandem.models.catalog import CatalogFile
from tandem.models.errors import PinDiffers, TransferError
from tandem.models.hub_errors import OTHER_SOURCE, not_the_hub
from tandem.models.hub_errors import mapped as mapped_error
from tandem.models.network import Network, host_of
from tandem.models.tokens import Token

ASK_S: Final = 20.0
"""Seconds that an answer without bytes of a file may take to begin, and between its parts."""

_MOST_BYTES: Final = 16 << 20  # of an answer: one about a repository of a thousand files has a tenth of it
_MOST_SIZE: Final = 1 << 60
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Resolved:
    """A file as the Hub has it now.

    Attributes:
        repo: "owner/name".
        file: Its path there; not always the catalog's.
        commit: 40 hex digits.
        bytes: Its exact size.
        sha256: 64 hex digits.
        url: Its address at that commit, at the endpoint.
    """

    repo: str
    file: str
    commit: str
    bytes: int
    sha256: str
    url: str


@dataclass(frozen=True)
class Located:
    """Where the bytes of a file are, for a while: the address may be signed and expire. It is not shown when printed.

    Attributes:
        location: The address.
        etag: What the Hub says, the sha256 of an LFS file; None when it does not say.
        headers: To be sent to that address; the token is among them only where that is the endpoint itself.
        host: The address's host.
    """

    location: str = field(repr=False)
    etag: str | None
    headers: dict[str, str] = field(repr=False)
    host: str


class Hub:
    """The Hub, or a mirror of it.

    Args:
        network: How it is reached.
        token: The user's; None for none.
    """

    def __init__(self, network: Network, token: Token | None = None) -> None:
        self.network: Final = network
        self._token = token
        self._client = connection.client(network, ASK_S, _MOST_BYTES)
        connection.install()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends its connections; a call that is under way in another thread fails."""
        self._client.close()

    def resolve(self, file: CatalogFile) -> Resolved:
        """What the Hub has under a catalog's entry, compared with what is pinned there.

        Args:
            file: The entry. Where its name is not there but its sha256 is, that file is taken.

        Raises:
            PinDiffers: sha256, size or commit are not the pinned ones.
            TransferError: The Hub cannot be asked, refuses, or has no such file.
        """
        api = HfApi(endpoint=self.network.endpoint, library_name="tandem", library_version=tandem.__version__)
        info = self._asked(
            file.repo,
            lambda token: api.model_info(
                file.repo, revision=file.revision, files_metadata=True, timeout=ASK_S, token=token
            ),
        )
        commit = info.sha if isinstance(info.sha, str) else ""
        if not _COMMIT.fullmatch(commit):
            raise not_the_hub(self.network.host, f"no commit of {file.repo}")
        if file.revision is not None and commit != file.revision:
            raise PinDiffers(file.file, f"commit {file.revision[:12]}", f"commit {commit[:12]}", self.network.host)
        sibling = self._chosen(file, info)
        size, sha256 = _lfs(sibling)
        if sha256 is None:
            raise TransferError(
                "pin-differs",
                f"{self.network.host} gives no sha256 for {file.file}, so that it cannot be checked.",
                OTHER_SOURCE,
                host=self.network.host,
            )
        if file.pin is not None and sha256 != file.pin:
            raise PinDiffers(file.file, f"sha256 {file.pin}", f"sha256 {sha256}", self.network.host)
        if size is None or (file.bytes is not None and size != file.bytes):
            found = "no size" if size is None else f"{size:,} bytes"
            raise PinDiffers(file.file, f"{file.size:,} bytes", found, self.network.host)
        url = hf_hub_url(file.repo, sibling.rfilename, revision=commit, endpoint=self.network.endpoint)
        return Resolved(file.repo, sibling.rfilename, commit, size, sha256, url)

    def locate(self, resolved: Resolved) -> Located:
        """Where the bytes are now. Ask again when that address has expired (403).

        Args:
            resolved: The file.

        Raises:
            PinDiffers: The Hub says another sha256, size or commit than a moment ago.
            TransferError: The Hub cannot be asked, refuses, or has the file no more.
        """
        name, host = resolved.file, self.network.host
        found = self._asked(
            f"{resolved.repo}/{name}",
            lambda token: get_hf_file_metadata(
                resolved.url,
                token=token,
                timeout=ASK_S,
                library_name="tandem",
                library_version=tandem.__version__,
                endpoint=self.network.endpoint,
            ),
        )
        if found.commit_hash is None or not found.location:
            raise not_the_hub(host, f"no commit of {name}")
        if found.commit_hash != resolved.commit:
            raise PinDiffers(name, f"commit {resolved.commit[:12]}", f"commit {found.commit_hash[:12]}", host)
        if found.etag is not None and _SHA256.fullmatch(found.etag) and found.etag != resolved.sha256:
            raise PinDiffers(name, f"sha256 {resolved.sha256}", f"sha256 {found.etag}", host)
        if found.size is not None and found.size != resolved.bytes:
            raise PinDiffers(name, f"{resolved.bytes:,} bytes", f"{found.size:,} bytes", host)
        headers = {"Accept-Encoding": "identity"}
        if self._token is not None and self.network.trusts(found.location):
            headers["Authorization"] = f"Bearer {self._token.value}"
        return Located(found.location, found.etag, headers, host_of(found.location))

    def mapped(self, error: Exception, host: str = "", what: str = "") -> TransferError:
        """What a person sees of an error that a transfer met.

        Args:
            error: What was raised.
            host: The host or address that was asked; "" for the endpoint.
            what: The file that it was about.
        """
        token = self._token.value if self._token is not None else ""
        return mapped_error(error, host or self.network.endpoint, self.network, what, token)

    def _asked(self, what: str, ask: Callable[[str | bool], _T]) -> _T:
        """Asks with the token; where that is refused, without, as what anybody may read needs none."""
        try:
            return self._once(what, ask)
        except TransferError as error:
            token = self._token
            if error.fault != "sign-in" or token is None:
                raise
            self._token = None
            try:
                return self._once(what, ask)
            except TransferError:
                self._token = token
                raise error from None

    def _once(self, what: str, ask: Callable[[str | bool], _T]) -> _T:
        token = self._token.value if self._token is not None else ""
        sent = token if self.network.trusts(self.network.endpoint) else ""
        with connection.speaking(self._client):
            try:
                return ask(sent or False)
            except (
                httpx2.HTTPError,
                httpx2.InvalidURL,
                OSError,
                ValueError,
                TypeError,
                KeyError,
                AttributeError,
                RecursionError,
            ) as error:
                # Not chained: what a library says of a request is not to be printed by whoever prints this.
                raise mapped_error(error, self.network.endpoint, self.network, what, sent) from None

    def _chosen(self, file: CatalogFile, info: ModelInfo) -> RepoSibling:
        """The file of that name; where it is not there or is another, the one with the pinned sha256."""
        siblings = [one for one in info.siblings or [] if _can_be(one.rfilename)]
        named = next((one for one in siblings if one.rfilename == file.file), None)
        if file.pin is not None and (named is None or _lfs(named)[1] != file.pin):
            same = next((one for one in siblings if _lfs(one)[1] == file.pin), None)
            named = same or named
        if named is None:
            raise TransferError(
                "missing-file",
                f"{file.repo} at {self.network.host} has no {file.file}.",
                OTHER_SOURCE,
                host=self.network.host,
            )
        return named


def _lfs(sibling: RepoSibling) -> tuple[int | None, str | None]:
    """Size and sha256 of a file as the Hub says; None for what it does not say."""
    lfs = sibling.lfs
    if lfs is None or not isinstance(lfs.sha256, str) or not _SHA256.fullmatch(lfs.sha256):
        return None, None
    known = type(lfs.size) is int and 0 < lfs.size < _MOST_SIZE
    return (lfs.size if known else None), lfs.sha256


def _can_be(name: object) -> bool:
    """Whether a file of a repository can have that name, which goes into addresses and sentences."""
    return isinstance(name, str) and name.isprintable() and not {"", ".", ".."} & set(name.split("/"))
