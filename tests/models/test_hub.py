"""What the Hub says of a file, asked with the real client: commit, size, sha256, and where the bytes are."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import httpx2
import msgspec
import pytest

from support.hub import COMMIT, FakeHub, dead_port
from tandem.models.catalog import CatalogFile
from tandem.models.errors import PinDiffers, TransferError
from tandem.models.hub import Hub, Resolved
from tandem.models.network import Network

REPO, NAME = "owner/repo-gguf", "file-q4_0.gguf"
DATA = bytes(range(256)) * 40
SHA256 = hashlib.sha256(DATA).hexdigest()
PINNED = CatalogFile("target", REPO, NAME, SHA256, bytes=len(DATA), revision=COMMIT)
FROM_HUB = CatalogFile("target", REPO, NAME, "hub")


def asking(server: FakeHub) -> Hub:
    return Hub(Network.chosen(endpoint=server.endpoint, environ={}))


@pytest.fixture
def asked(hub: FakeHub) -> Iterator[Hub]:
    hub.add(REPO, "README.md", b"# hello", lfs=False)
    hub.add(REPO, NAME, DATA)
    with asking(hub) as real:
        yield real


def changed(file: CatalogFile = PINNED, **changes: object) -> CatalogFile:
    return msgspec.structs.replace(file, **changes)


def test_a_file_is_resolved_to_commit_size_and_sha256(hub: FakeHub, asked: Hub) -> None:
    found = asked.resolve(PINNED)
    url = f"{hub.endpoint}/{REPO}/resolve/{COMMIT}/{NAME}"
    assert found == Resolved(REPO, NAME, COMMIT, len(DATA), SHA256, url)
    (request,) = hub.requests
    assert request.path == f"/api/models/{REPO}/revision/{COMMIT}?blobs=true"
    assert not request.authorised
    assert request.headers["user-agent"].startswith("tandem/")


def test_without_a_pin_the_hubs_own_hash_is_taken(hub: FakeHub, asked: Hub) -> None:
    found = asked.resolve(FROM_HUB)
    assert (found.sha256, found.commit, found.bytes) == (SHA256, COMMIT, len(DATA))
    assert hub.requests[0].path == f"/api/models/{REPO}?blobs=true"


def test_a_file_that_was_renamed_is_found_by_its_hash(hub: FakeHub, asked: Hub) -> None:
    hub.rename_file(REPO, NAME, "renamed.gguf")
    found = asked.resolve(PINNED)
    assert (found.file, found.sha256) == ("renamed.gguf", SHA256)
    assert found.url.endswith("/renamed.gguf")
    with pytest.raises(TransferError) as refused:
        asked.resolve(FROM_HUB)
    assert refused.value.fault == "missing-file"


def test_the_right_hash_under_another_name_comes_before_the_name(hub: FakeHub, asked: Hub) -> None:
    hub.add(REPO, "old.gguf", DATA)
    hub.add(REPO, NAME, b"a newer upload")
    assert asked.resolve(PINNED).file == "old.gguf"


def test_a_repository_that_was_renamed_is_followed(hub: FakeHub, asked: Hub) -> None:
    hub.rename(REPO, "owner/new-name")
    found = asked.resolve(PINNED)
    assert found.sha256 == SHA256
    located = asked.locate(found)
    assert httpx2.get(located.location, headers=located.headers).content == DATA


@pytest.mark.parametrize(
    ("file", "pinned", "found"),
    [
        (changed(sha256="0" * 64), f"sha256 {'0' * 64}", f"sha256 {SHA256}"),
        (changed(bytes=len(DATA) + 1), f"{len(DATA) + 1:,} bytes", f"{len(DATA):,} bytes"),
        (changed(sha256="hub", bytes=5), "5 bytes", f"{len(DATA):,} bytes"),
    ],
)
def test_a_pin_that_differs_stops_and_names_both(file: CatalogFile, pinned: str, found: str, asked: Hub) -> None:
    with pytest.raises(PinDiffers) as stopped:
        asked.resolve(file)
    assert (stopped.value.pinned, stopped.value.found) == (pinned, found)
    assert pinned in stopped.value.sentence
    assert found in stopped.value.sentence
    assert NAME in stopped.value.sentence
    assert stopped.value.exit_code == 3


def test_a_mirror_that_ignores_the_pinned_commit_is_noticed(hub: FakeHub, asked: Hub) -> None:
    real_at = hub.repos[REPO].commit
    hub.repos[REPO].commit = "b" * 40
    hub.repos[REPO].aliases.append(real_at)
    with pytest.raises(PinDiffers, match="commit 0123456789ab"):
        asked.resolve(PINNED)


def test_a_size_that_is_only_about_is_no_pin(asked: Hub) -> None:
    assert asked.resolve(changed(bytes=None, about_bytes=3)).bytes == len(DATA)


def test_a_file_without_a_hash_of_the_hub_is_refused(hub: FakeHub, asked: Hub) -> None:
    hub.add(REPO, NAME, DATA, lfs=False)
    with pytest.raises(TransferError) as refused:
        asked.resolve(FROM_HUB)
    assert refused.value.fault == "pin-differs"
    assert NAME in refused.value.sentence
    assert asked.network.host in refused.value.sentence


@pytest.mark.parametrize("name", ["sub folder/모델 é.gguf", "a%20b?c#d.gguf"])
def test_a_name_with_any_characters_arrives(name: str, hub: FakeHub, asked: Hub) -> None:
    hub.add("owner/odd", name, DATA)
    found = asked.resolve(CatalogFile("target", "owner/odd", "x.gguf", SHA256))
    assert found.file == name
    located = asked.locate(found)
    assert httpx2.get(located.location).content == DATA


def test_a_file_is_located_at_the_storage_host(hub: FakeHub, asked: Hub) -> None:
    located = asked.locate(asked.resolve(PINNED))
    assert located.location.startswith(hub.storage + "/")
    assert located.etag == SHA256
    assert located.host == hub.storage.removeprefix("http://")
    assert located.headers == {"Accept-Encoding": "identity"}
    assert httpx2.get(located.location).content == DATA
    assert "SECRET" in located.location
    assert "SECRET" not in f"{located} {located!r}"


def test_a_hub_that_sends_the_bytes_itself_is_its_own_storage() -> None:
    with FakeHub(direct=True, prefix="/hf") as server, asking(server) as real:
        server.add(REPO, NAME, DATA)
        resolved = real.resolve(PINNED)
        located = real.locate(resolved)
        assert located.location == resolved.url
        assert located.host == real.network.host


def test_a_mirror_below_a_path_is_asked_below_that_path() -> None:
    with FakeHub(prefix="/api/hf/mirror") as server, asking(server) as real:
        server.add(REPO, NAME, DATA)
        located = real.locate(real.resolve(PINNED))
        assert httpx2.get(located.location).content == DATA
        assert all(one.path.startswith("/api/hf/mirror/") for one in server.seen(host="hub"))
        assert len(server.seen(host="hub")) == 2


def test_an_address_that_expired_is_asked_for_again(hub: FakeHub, asked: Hub) -> None:
    resolved = asked.resolve(PINNED)
    first = asked.locate(resolved)
    hub.expire_urls()
    assert httpx2.get(first.location).status_code == 403
    second = asked.locate(resolved)
    assert httpx2.get(second.location).content == DATA


@pytest.mark.parametrize(
    ("fault", "named"),
    [("wrong-linked-etag", "0" * 64), ("wrong-linked-size", f"{len(DATA) + 1:,} bytes"), ("other-commit", "f" * 12)],
)
def test_what_the_redirect_says_must_be_what_was_resolved(fault: str, named: str, hub: FakeHub, asked: Hub) -> None:
    resolved = asked.resolve(PINNED)
    hub.misbehave(fault)  # type: ignore[arg-type]
    with pytest.raises(PinDiffers, match=named):
        asked.locate(resolved)
    assert asked.locate(resolved).etag == SHA256


def test_two_networks_can_be_in_use_side_by_side() -> None:
    with FakeHub() as one, FakeHub(prefix="/two") as two, asking(one) as first, asking(two) as second:
        one.add(REPO, NAME, DATA)
        two.add(REPO, NAME, DATA, commit="c" * 40)
        one.misbehave("silent", where="info")
        slow: list[object] = []

        def wait() -> None:
            try:
                slow.append(first.resolve(FROM_HUB))
            except TransferError as error:
                slow.append(error.fault)

        thread = threading.Thread(target=wait)
        thread.start()
        one.wait_for(lambda hub: len(hub.requests) == 1)
        assert second.resolve(FROM_HUB).commit == "c" * 40  # while the other is kept waiting
        one.release()
        thread.join()
        assert slow == ["unreachable"]
        assert first.resolve(FROM_HUB).commit == COMMIT


def test_only_what_is_asked_for_is_asked(hub: FakeHub, asked: Hub) -> None:
    asked.locate(asked.resolve(PINNED))
    assert [(one.method, one.route) for one in hub.requests] == [("GET", "info"), ("HEAD", "resolve")]


_FRESH = """
import sys
from tandem.models.catalog import CatalogFile
from tandem.models.errors import TransferError
from tandem.models.hub import Hub
from tandem.models.network import Network
from tandem.settings import Settings
with Hub(Network.chosen(Settings(hub_endpoint=sys.argv[1]))) as real:
    try:
        print(real.locate(real.resolve(CatalogFile("target", sys.argv[2], sys.argv[3], "hub"))).etag)
    except TransferError as error:
        print(error.fault, error.remedy)
"""


def fresh(hub: FakeHub, **environ: str) -> str:
    plain = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environ}
    command = [sys.executable, "-c", _FRESH, hub.endpoint, REPO, NAME]
    done = subprocess.run(command, env=plain, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip() + done.stderr


def test_what_huggingface_hub_read_at_its_import_does_not_count(hub: FakeHub) -> None:
    hub.add(REPO, NAME, DATA)
    said = fresh(hub, HF_ENDPOINT=f"http://127.0.0.1:{dead_port()}", HF_TOKEN="hf_0123456789abcdef0123", HF_DEBUG="1")
    assert said.startswith(SHA256)
    assert "hf_0123456789abcdef0123" not in said
    assert [one.authorised for one in hub.requests] == [False, False]  # that token was not given to this hub


def test_offline_mode_in_the_environment_is_heeded_and_named(hub: FakeHub) -> None:
    hub.add(REPO, NAME, DATA)
    said = fresh(hub, HF_HUB_OFFLINE="1")
    assert said.startswith("offline-mode Unset HF_HUB_OFFLINE ")
    assert hub.requests == []
