"""Trying again: which faults, how often, after how long, and saying so meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, wait_random_exponential

from tandem.models.errors import PASSING, RateLimited, TransferError
from tandem.models.hub_errors import REACH
from tandem.models.progress import Waiting
from tandem.models.stop import Stop, Stopped

LONGEST_S: Final = 60.0
"""Most seconds between two tries."""

PATIENCE_S: Final = 300.0
"""A host that asks to wait for longer than that is not waited for."""

FIRST_TRIES: Final = 3
"""So often, some seconds in all, where nothing has answered yet: then there is no network, or a wrong address."""

_NO_ANSWER: Final = frozenset({"unreachable", "timeout"})
_TOLD_EVERY_S: Final = 1.0
_T = TypeVar("_T")


class Retries:
    """Does things that may fail for a moment.

    Args:
        tries: How often in a row without any progress, once anything has answered.
        backoff_s: Seconds before the second try, about; they double with each.
        stop: Ends the waiting.
        waits: Is told why nothing happens, and with None that it goes on.
    """

    def __init__(self, tries: int, backoff_s: float, stop: Stop, waits: Callable[[Waiting | None], None]) -> None:
        self._tries = tries
        self._stop = stop
        self._waits = waits
        self._answered = False  # has anything, ever
        self._exponential = wait_random_exponential(multiplier=backoff_s, max=LONGEST_S)

    def __call__(self, action: Callable[[], _T], advanced: Callable[[], bool] = lambda: False) -> _T:
        """Does something until it is done.

        Args:
            action: What.
            advanced: Whether the last try brought something: then the tries are counted anew.

        Raises:
            TransferError: The last try's, or one that no second try can help.
            Stopped: It was asked for.
        """
        # Tenacity forgets the error before it sleeps, and counts the next try by then.
        failed: list[tuple[BaseException | None, int]] = []

        def after(state: RetryCallState) -> None:
            if advanced():
                state.attempt_number = 1
            failed[:] = [(_error_of(state), state.attempt_number + 1)]

        retrying = Retrying(
            retry=retry_if_exception(_may_pass),
            after=after,
            wait=self._seconds,
            stop=lambda state: state.attempt_number >= self._most,
            sleep=lambda seconds: self._rest(seconds, *failed[0]),
            reraise=True,
        )
        return retrying(lambda: self._heard(action))

    @property
    def _most(self) -> int:
        return self._tries if self._answered else min(self._tries, FIRST_TRIES)

    def _heard(self, action: Callable[[], _T]) -> _T:
        """Does it once, and notes whether anybody answered."""
        try:
            result = action()
        except TransferError as error:
            self._answered = self._answered or error.fault not in _NO_ANSWER
            raise
        self._answered = True
        return result

    def _seconds(self, state: RetryCallState) -> float:
        error = _error_of(state)
        if isinstance(error, RateLimited) and error.wait_s is not None:
            return error.wait_s
        return float(self._exponential(state))

    def _rest(self, seconds: float, error: BaseException | None, attempt: int) -> None:
        sentence = error.sentence if isinstance(error, TransferError) else ""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._waits(Waiting(sentence, left, attempt, self._most))
            if self._stop.wait(min(left, _TOLD_EVERY_S)):
                break
        self._waits(None)
        self._stop.check()


def answered(ask: Callable[[], _T], stop: Stop, seconds: float, host: str) -> _T:
    """Does something that may block for ever, such as looking up a name, and leaves it alone if it does.

    Args:
        ask: What; in a thread of its own.
        stop: Ends the waiting.
        seconds: Most to wait.
        host: Who is asked, for the sentence.

    Raises:
        TransferError: "timeout", or what `ask` raised.
        Stopped: It was asked for.
    """
    answers: list[_T] = []
    errors: list[BaseException] = []
    over = threading.Event()

    def run() -> None:
        try:
            answers.append(ask())
        except BaseException as error:
            errors.append(error)
        finally:
            over.set()

    forget = stop.on_set(over.set)
    try:
        threading.Thread(target=run, name="download-ask", daemon=True).start()
        over.wait(seconds)
    finally:
        forget()
    if stop.is_set():
        raise Stopped(stop.why or "pause")
    if answers:
        return answers[0]
    if errors:
        raise errors[0]
    raise TransferError("timeout", f"{host} did not answer in time.", REACH, host=host)


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, RateLimited):
        return error.wait_s is None or error.wait_s <= PATIENCE_S
    return isinstance(error, TransferError) and error.fault in PASSING


def _error_of(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None
