"""What the Hub of the tests can do wrong, one word each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Route = Literal["info", "resolve", "storage"]
Kind = Literal[
    "drop",  # the body ends early, the connection closes
    "reset",  # the same with a TCP reset
    "refuse",  # closed before any answer
    "stall",  # silent after some of the body, the connection stays open until `hub.release()`
    "silent",  # silent instead of an answer, until `hub.release()`
    "drip",  # some bytes, then one every 20 ms
    "slow",  # only what `hub.allow()` allows
    "200-to-range",  # all of it, though a part was asked for
    "no-range",  # the same, and it does not say that it accepts ranges
    "wrong-content-range",  # 206 of another range, and says so
    "lying-content-range",  # the right bytes, a wrong Content-Range
    "wrong-total",  # Content-Range with another size
    "no-content-range",  # 206 without it
    "416",
    "401",
    "401-hub",  # as the Hub answers for what it does not show to strangers
    "403",
    "gated",
    "gated-401",
    "disabled",
    "no-repo",
    "no-revision",
    "no-entry",
    "404",
    "429",  # Retry-After
    "429-ratelimit",  # ratelimit header
    "429-bare",
    "500",
    "503",
    "portal",  # an HTML page with 200
    "portal-redirect",  # to a login page of another host
    "expired",  # 403 of the storage host
    "changed-etag",  # other content under another ETag
    "gzip",
    "short",  # fewer bytes, a Content-Length that agrees
    "long",  # more bytes
    "no-length",  # chunked
    "wrong-bytes",  # one byte flipped, right size
    "redirect-loop",
    "wrong-linked-etag",
    "wrong-linked-size",
    "other-commit",
    "garbage",  # no HTTP at all
    "bad-json",
    "echo",  # 500 whose texts repeat the credentials that came in
]

ROUTE_OF: Final[dict[str, Route]] = {
    "gated": "resolve",
    "gated-401": "resolve",
    "no-repo": "info",
    "no-revision": "info",
    "no-entry": "resolve",
    "disabled": "info",
    "redirect-loop": "resolve",
    "wrong-linked-etag": "resolve",
    "wrong-linked-size": "resolve",
    "other-commit": "resolve",
    "bad-json": "info",
}
"""Where a fault happens unless said otherwise; the others at the storage."""

TRANSFER_FAULTS: Final[tuple[Kind, ...]] = (
    "drop",
    "reset",
    "refuse",
    "200-to-range",
    "no-range",
    "wrong-content-range",
    "lying-content-range",
    "wrong-total",
    "no-content-range",
    "416",
    "429-bare",
    "500",
    "503",
    "portal",
    "expired",
    "changed-etag",
    "gzip",
    "short",
    "long",
    "no-length",
    "wrong-bytes",
    "garbage",
)
"""What the storage can do wrong without keeping anyone waiting: the choice for a property test."""


@dataclass(frozen=True)
class Fault:
    """One answer that is wrong.

    Attributes:
        kind: In which way.
        after: Body bytes of the answer before it happens ("drop", "reset", "stall", "drip").
        at: The same as a position in the file: happens in an answer in which it lies, others are answered well.
        seconds: To wait, for the 429 ones.
        extra: Bytes too many or too few, for "long" and "short".
    """

    kind: Kind
    after: int = 0
    at: int | None = None
    seconds: int = 1
    extra: int = 1

    def hits(self, start: int, end: int) -> bool:
        """Whether it happens in an answer with the bytes from `start` to before `end`."""
        return self.at is None or start <= self.at < end

    def good_bytes(self, start: int) -> int:
        """Body bytes of an answer from `start` on before it happens."""
        return self.after if self.at is None else self.at - start
