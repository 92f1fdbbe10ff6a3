"""A scripted engine: a process that speaks the engine's protocol over its real pipe, and has no model.

It answers at exactly the pace that it is asked for, which no real pair does, so that what is measured is the window.
Everything else is real: the client, its thread, the controller, the widgets. `install` puts it in the engine's place;
the message that is sent tells the pace:

    {"tokens": 30000, "rate": 500, "a_pass": 5}

All tokens of a pass but the last count as accepted drafts; every third time the last replaces a rejected one.
"""

from __future__ import annotations

import itertools
import os
import queue
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any, Final

import _path  # noqa: F401  (first: it makes the packages below importable)
import msgspec

from tandem.engine import host, protocol
from tandem.engine.lifeline import die_with_parent
from tandem.engine.metrics import RunStats
from tandem.engine.protocol import (
    Count,
    Counted,
    DeviceInfo,
    Done,
    Generate,
    Hello,
    Load,
    Loaded,
    ModelInfo,
    Pass,
    Progress,
    Stop,
    StopReason,
    Text,
)

CONTEXT: Final = 131_072

MARKDOWN: Final = """\
Here is what happens when a draft is checked. The drafter proposes some tokens, and the target looks at all of them in \
**one** pass; whatever it would have written itself is *accepted*, and the first that it would not is replaced.

1. The drafter runs `n` times, which is cheap.
2. The target runs once, which is not.
   - Accepted tokens cost next to nothing.
   - A rejected one costs the rest of its draft.
3. Both go on from the same place.

```python
def accept(drafts: list[int], chosen: list[int]) -> list[int]:
    \"\"\"Tokens that a pass gives: the accepted drafts and one more.\"\"\"
    taken = []
    for draft, token in zip(drafts, chosen):
        taken.append(token)
        if draft != token:
            break
    return taken
```

| length | tokens per pass | tok/s |
|-------:|----------------:|------:|
| 0      | 1.00            | 22.2  |
| 3      | 2.41            | 36.0  |
| 8      | 3.05            | 31.7  |

> So a longer draft is not always a better one: $1 + \\sum a_i$ grows ever more slowly, the cost of a pass does not.

한국어도 섞여 있습니다. 초안 모델이 제안한 토큰을 본 모델이 한 번에 확인합니다.
Emoji 🙂 and a family 👨‍👩‍👧 come through as well.

"""


class Pace(msgspec.Struct, frozen=True):
    """What a message asks for.

    Attributes:
        tokens: Of the answer.
        rate: Tokens a second; 0 is as fast as it goes.
        a_pass: Tokens of a pass.
    """

    tokens: int
    rate: float = 500.0
    a_pass: int = 5


def install() -> None:
    """Puts it in the engine's place, for every `EngineClient` that starts from now on in this process."""
    host.main = main


def question(tokens: int, rate: float = 500.0, a_pass: int = 5) -> str:
    """The message to send."""
    return msgspec.json.encode(Pace(tokens, rate, a_pass)).decode()


def pieces() -> Iterator[str]:
    """The answer's tokens: its Markdown over and over, in pieces of about four characters."""
    size = itertools.cycle((4, 3, 5, 4, 1, 6, 4, 2, 5))
    while True:
        start = 0
        while start < len(MARKDOWN):
            end = start + next(size)
            yield MARKDOWN[start:end]
            start = end


def main(connection: Connection[Any, Any], parent: int, _log: str) -> None:
    """The process; takes the arguments of `host.main`."""
    die_with_parent(parent)
    requests: queue.SimpleQueue[protocol.Request] = queue.SimpleQueue()
    stopped: set[int] = set()
    threading.Thread(target=_read, args=(connection, requests, stopped), daemon=True).start()

    def send(event: protocol.Event) -> None:
        connection.send_bytes(protocol.encode(event))

    device = DeviceInfo("Script", "a script in the engine's place", "cpu", 0, 0)
    send(Hello(protocol.PROTOCOL, "script", "script", "script", (device,), os.cpu_count() or 1))
    while True:
        request = requests.get()
        if isinstance(request, Load):
            send(Progress(request.id, "target", 1.0, 1.0))
            send(_loaded(request))
        elif isinstance(request, Count):
            send(Counted(request.id, 100, CONTEXT))
        elif isinstance(request, Generate):
            for event in _answer(request, stopped):
                send(event)


def _read(connection: Connection[Any, Any], requests: queue.SimpleQueue[protocol.Request], stopped: set[int]) -> None:
    try:
        while True:
            request = protocol.decode_request(connection.recv_bytes())
            if isinstance(request, Stop):
                stopped.add(request.id)
            else:
                requests.put(request)
    except (EOFError, OSError):
        os._exit(0)


def _loaded(request: Load) -> Loaded:
    target = ModelInfo("scripted.gguf", "Script", "gemma4", "none", 0)
    drafter = ModelInfo("scripted-drafter.gguf", "Script's drafter", "gemma4-assistant", "none", 0)
    return Loaded(
        id=request.id,
        target=target,
        drafter=drafter if request.drafter else None,
        method="mtp" if request.drafter else "none",
        problem=None,
        context=CONTEXT,
        trained_context=CONTEXT,
        threads=1,
        device="Script",
        vocabulary=262_144,
        switches_thinking=True,
        load_s=0.0,
        kv_type=request.kv_type,
    )


def _answer(request: Generate, stopped: set[int]) -> Iterator[protocol.Event]:
    pace = msgspec.json.decode((request.messages or ())[-1].content, type=Pace)
    stats = RunStats(prompt_tokens=100, prefill_s=0.001, time_to_first_token_s=0.001)
    yield Progress(request.id, "prefill", 100, 100)
    texts, sent, passes = pieces(), 0, 0
    start = last = time.perf_counter()
    why: StopReason = "limit"
    while sent < pace.tokens:
        if request.id in stopped:
            why = "stopped"
            break
        if pace.rate:
            due = start + sent / pace.rate
            time.sleep(max(0.0, due - time.perf_counter()))
        count = min(pace.a_pass, pace.tokens - sent)
        accepted = [True] * (count - 1) + [False]
        drafts = count if passes % 3 == 0 else count - 1  # the last one was rejected, or was none
        now = time.perf_counter()
        yield Pass(
            id=request.id,
            tokens=tuple(range(1000, 1000 + count)),
            text=tuple(Text("answer", next(texts), sent + index) for index in range(count)),
            drafted=tuple(index < drafts for index in range(count)),
            accepted=tuple(accepted),
            confidences=(0.9,) * drafts,
            draft_s=0.001,
            verify_s=0.008,
        )
        stats.count_pass(count, drafts, sum(accepted), now - last if sent else 0.0, 0.001, 0.008, False)
        sent, passes, last = sent + count, passes + 1, now
    stats.finish()
    yield Done(request.id, why, stats, (), 0, request.draft, 0)
