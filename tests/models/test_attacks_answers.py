import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from support.fetching import QUICK, Fetching, fetching
from support.hub import COMMIT, FakeHub
from support.modelfiles import sha256
from tandem.errors import TandemError
from tandem.models import connection, hub_errors
from tandem.models.connection import NotTheHub
from tandem.models.download import Options
from tandem.models.hub import Hub
from tandem.models.network import Network
from tandem.models.progress import JobProgress

ONCE = msgspec.structs.replace(QUICK, tries=1)
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_ENOUGH = 256 << 20  # of an answer without end; who takes that much of it has no limit

Answer = Callable[[socket.socket, Fetching], None]


def says(*parts: bytes) -> Answer:
    def answer(line: socket.socket, _job: Fetching) -> None:
        for part in parts:
            line.sendall(part)

    return answer


def goes_on(head: bytes, block: bytes) -> Answer:
    """Without end, as far as a test can have that."""

    def answer(line: socket.socket, _job: Fetching) -> None:
        line.sendall(head)
        for _number in range(_ENOUGH // len(block)):
            line.sendall(block)

    return answer


def with_header(header: bytes) -> Answer:
    """All of the target, as it is asked for, and one header more."""

    def answer(line: socket.socket, job: Fetching) -> None:
        content = job.contents[0]
        head = b"HTTP/1.1 206 Part\r\nConnection: close\r\nContent-Range: bytes 0-%d/%d\r\n" % (
            len(content) - 1,
            len(content),
        )
        line.sendall(head + header + b"\r\n\r\n" + content)

    return answer


class Host:
    """Answers every request with whatever a test wants to send.

    Attributes:
        url: Its address.
        sent_all: Whether somebody has taken all of an answer.
    """

    def __init__(self, answer: Answer) -> None:
        self.job: Fetching | None = None
        self.sent_all = False
        self._answer = answer
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                line, _from = self._server.accept()
            except OSError:
                return
            with line:
                try:
                    self._one(line)
                except OSError:  # who asked has gone
                    continue

    def _one(self, line: socket.socket) -> None:
        asked = b""
        while b"\r\n\r\n" not in asked:
            some = line.recv(1 << 16)
            if not some:
                return
            asked += some
        assert self.job is not None
        self._answer(line, self.job)
        self.sent_all = True


@contextmanager
def hosted(answer: Answer) -> Iterator[Host]:
    host = Host(answer)
    try:
        yield host
    finally:
        host.close()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Fetching]:
    with FakeHub() as server:
        yield fetching(server, tmp_path / "models")


def ended(job: Fetching, options: Options = ONCE) -> JobProgress:
    progress = job.run(options)
    assert progress.fault
    assert progress.sentence.isprintable()
    assert len(progress.sentence) < 400
    return progress


def asked_hub(job: Fetching, answer: Answer) -> tuple[JobProgress, Host]:
    """A download that ends at the Hub's first answer."""
    with hosted(answer) as host:
        host.job, job.server.endpoint = job, host.url
        return ended(job), host


def asked_storage(job: Fetching, answer: Answer, options: Options = ONCE) -> JobProgress:
    """A download whose storage host answers; afterwards a good one is tried."""
    with hosted(answer) as host:
        host.job, job.server.elsewhere = job, host.url + "/file"
        progress = job.run(options)
    job.server.elsewhere = None
    job.run()
    job.check_installed()
    return progress


def sibling(job: Fetching, **fields: Any) -> dict[str, Any]:
    content = job.contents[0]
    lfs = {"sha256": sha256(content), "size": len(content), "pointerSize": 130}
    return {"rfilename": job.file(0).file, "size": len(content), "lfs": lfs, **fields}


def says_of_the_repository(job: Fetching, *siblings: object) -> JobProgress:
    job.server.info = json.dumps({"id": job.file(0).repo, "sha": COMMIT, "siblings": siblings}).encode()
    return ended(job)


# --- answers without end


@pytest.mark.parametrize(
    "answer",
    [
        goes_on(JSON + b"\r\n[", b'"x",' * (1 << 16)),
        goes_on(JSON + b"Transfer-Encoding: chunked\r\n\r\n", b"40000\r\n" + b" " * (1 << 18) + b"\r\n"),
        goes_on(b"HTTP/1.1 404 No\r\n\r\n", b"x" * (1 << 18)),
        goes_on(b"HTTP/1.1 302 Away\r\nLocation: /x\r\n\r\n", b"x" * (1 << 18)),
        goes_on(b"HTTP/1.1 200 OK\r\n", b"X: " + b"y" * 5000 + b"\r\n"),
    ],
    ids=["json", "chunks", "refusal", "redirect", "headers"],
)
def test_an_answer_of_the_hub_without_end_is_not_taken(job: Fetching, answer: Answer) -> None:
    _progress, host = asked_hub(job, answer)
    assert not host.sent_all


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 302 Away\r\nLocation: /x\r\n\r\n", b"HTTP/1.1 403 No\r\n\r\n", b"HTTP/1.1 500 No\r\n\r\n"]
)
def test_an_answer_of_the_storage_without_end_is_not_taken(job: Fetching, head: bytes) -> None:
    with hosted(goes_on(head, b"x" * (1 << 18))) as host:
        host.job, job.server.elsewhere = job, host.url + "/file"
        ended(job)
    assert not host.sent_all


@pytest.mark.parametrize("times", [1, 2])
def test_an_answer_that_unpacks_to_very_much_is_not_unpacked(job: Fetching, times: int) -> None:
    right = {"id": job.file(0).repo, "sha": COMMIT, "siblings": [sibling(job)]}
    body = json.dumps(right).encode() + b" " * (64 << 20)
    for _time in range(times):
        body = gzip.compress(body, 1)
    packed = b"Content-Encoding: " + b", ".join([b"gzip"] * times) + b"\r\n\r\n"
    progress, _host = asked_hub(job, says(JSON + packed + body))
    assert progress.fault == "portal"


def test_an_answer_that_is_as_long_as_allowed_is_taken(job: Fetching) -> None:
    with hosted(says(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 1000)) as host:
        host.job = job
        network = Network(endpoint=host.url)
        with connection.client(network, most=1000) as client:
            assert len(client.get(host.url).content) == 1000
        with connection.client(network, most=999) as client, pytest.raises(NotTheHub):
            client.get(host.url)
        with connection.client(network) as client:
            assert client.get(host.url).request.headers["Accept-Encoding"] == "identity"


def test_a_list_of_very_many_files_is_not_taken(job: Fetching) -> None:
    many = [{"rfilename": f"{'x' * 100}{number}", "size": 1, "lfs": None} for number in range(150_000)]
    assert says_of_the_repository(job, *many, sibling(job)).fault == "portal"


# --- names and numbers that cannot be


@pytest.mark.parametrize(
    "name",
    [5, None, "\ud800.gguf", "\0.gguf", "a\x1b[2J.gguf", "a\r\nb.gguf", "\u202ea.gguf", "../x.gguf", "/x", "a//b"],
)
def test_a_file_with_a_name_that_cannot_be_is_not_there(job: Fetching, name: object) -> None:
    progress = says_of_the_repository(job, sibling(job, rfilename=name))
    assert progress.fault == "missing-file"


@pytest.mark.parametrize("size", [True, "1", -1, 0, 1e300, 1 << 60, 10**4000])
def test_a_size_that_cannot_be_is_none(job: Fetching, size: object) -> None:
    lfs = {"sha256": sha256(job.contents[0]), "size": size, "pointerSize": 130}
    progress = says_of_the_repository(job, sibling(job, lfs=lfs))
    assert progress.fault == "pin-differs"
    assert "no size" in progress.sentence


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "9" * 400},
        {"ratelimit": f'"api";r=0;t={"9" * 400}'},
        {"ratelimit": f'"api";r=0;t={"9" * 5000}'},
        {"Retry-After": "Mon, 01 Jan 2030 00:00:00 +99999999999999"},
        {"Retry-After": "²"},
        {"Retry-After": "nan"},
    ],
)
def test_a_wait_that_cannot_be_is_none_or_finite(headers: dict[str, str]) -> None:
    encoded = {name.encode(): value.encode() for name, value in headers.items()}
    wait = hub_errors.wait_of(httpx2.Response(429, headers=encoded))
    assert wait is None or 0 <= wait <= 1e9


# --- the storage host


@pytest.mark.parametrize(
    "header",
    [
        b'ETag: "a\xff"',
        'ETag: "Ж"'.encode(),
        b'ETag: "\xed\xa0\x80"',
        b'ETag: "' + b"a" * 50_000 + b'"',
        b"ETag: W/x",
        b"ETag: ",
    ],
)
def test_a_content_with_an_odd_name_is_taken(job: Fetching, header: bytes) -> None:
    whole = msgspec.structs.replace(ONCE, piece_bytes=1 << 30)
    progress = asked_storage(job, with_header(header), whole)
    assert progress.files[0].state == "installed"


@pytest.mark.parametrize("etag", ['"x\r\nX: y"', '"Ж"', "\ud800", '"a b"', "x" * 10_000])
def test_a_record_with_an_odd_name_of_the_content_is_gone_on_with(job: Fetching, etag: str) -> None:
    content, record = job.contents[0], job.record()
    record.parent.mkdir(parents=True)
    job.part().write_bytes(content[:5000])
    host = job.server.storage.removeprefix("http://")
    record.write_text(
        json.dumps(
            {
                "repo": job.file(0).repo,
                "file": job.file(0).file,
                "commit": COMMIT,
                "sha256": sha256(content),
                "bytes": len(content),
                "etag": etag,
                "host": host,
                "synced": 5000,
            }
        )
    )
    for _run in range(2):
        job.run()
    job.check_installed()


@pytest.mark.parametrize(
    "answer",
    [
        with_header(b"Content-Range: bytes 0-1/2"),
        with_header(b"Content-Length: -1"),
        with_header(b"Content-Length: 99999999999999999999999"),
        says(b"HTTP/1.1 206 Part\r\nContent-Range: bytes " + b"0" * 5000 + b"-1/2\r\n\r\n"),
        says(b"HTTP/1.1 206 Part\r\nContent-Range: bytes 0-1/" + b"9" * 5000 + b"\r\n\r\n"),
        says(b'HTTP/1.1 429 Wait\r\nContent-Length: 0\r\nratelimit: "api";r=0;t=' + b"9" * 5000 + b"\r\n\r\n"),
        says(b'HTTP/1.1 429 Wait\r\nContent-Length: 0\r\nratelimit: "api";r=0;t=' + b"9" * 400 + b"\r\n\r\n"),
        says(b"HTTP/1.1 302 Away\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"),
        says(b"HTTP/1.1 302 Away\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n"),
        says(b"HTTP/1.1 302 Away\r\nLocation: http:///\r\nContent-Length: 0\r\n\r\n"),
        says(b"HTTP/1.1 302 Away\r\nLocation: http://" + b"a" * 5000 + b"/\r\nContent-Length: 0\r\n\r\n"),
        says(b"HTTP/1.1 302 Away\r\nLocation: \xff\xfe\r\nContent-Length: 0\r\n\r\n"),
        says(b"HTTP/1.1 999 Odd\r\n\r\n"),
        says(bytes(range(256)) * 100),
    ],
)
def test_whatever_the_storage_says_ends_in_a_sentence_and_can_be_gone_on_with(job: Fetching, answer: Answer) -> None:
    progress = asked_storage(job, answer)
    assert progress.fault
    assert progress.sentence.isprintable()


# --- in clear


def test_who_was_asked_with_encryption_does_not_lead_to_one_without() -> None:
    with (
        connection.client(Network(endpoint="https://mirror.example")) as client,
        pytest.raises(NotTheHub, match="without encryption"),
    ):
        client.get("http://storage.example/file")


def test_that_is_said_as_somebody_elses_answer() -> None:
    network = Network(endpoint="https://mirror.example")
    error = NotTheHub("asked without encryption", request=httpx2.Request("GET", "http://storage.example/file?sign=x"))
    with Hub(network) as hub:
        said = hub.mapped(error)
    assert (said.fault, said.host) == ("portal", "storage.example")
    assert "sign" not in said.sentence + said.details
    assert isinstance(said, TandemError)
