"""How often something is tried again: seldom where nothing has ever answered, patiently where something has."""

from __future__ import annotations

import pytest

from tandem.models.errors import TransferError, TransferFault
from tandem.models.progress import Waiting
from tandem.models.retries import FIRST_TRIES, Retries
from tandem.models.stop import Stop


class Line:
    """A line that fails in the given way each time."""

    def __init__(self, *faults: TransferFault | None) -> None:
        self.faults = list(faults)
        self.tries = 0
        self.told: list[Waiting] = []
        self.retries = Retries(5, 0.001, Stop(), self.waits)

    def waits(self, waiting: Waiting | None) -> None:
        if waiting is not None:
            self.told.append(waiting)

    def use(self) -> None:
        self.tries += 1
        fault = self.faults[min(self.tries, len(self.faults)) - 1]
        if fault is not None:
            raise TransferError(fault, "It broke.", "Mend it.")


@pytest.mark.parametrize("fault", ["unreachable", "timeout"])
def test_where_nothing_ever_answered_it_is_soon_given_up(fault: TransferFault) -> None:
    line = Line(fault)
    with pytest.raises(TransferError):
        line.retries(line.use)
    assert line.tries == FIRST_TRIES == 3
    assert [(told.attempt, told.tries) for told in line.told] == [(2, 3), (3, 3)]


def test_a_line_that_once_worked_is_tried_for_long() -> None:
    line = Line(None, "unreachable")
    line.retries(line.use)
    with pytest.raises(TransferError):
        line.retries(line.use)
    assert line.tries == 1 + 5
    assert line.told[-1].tries == 5


def test_an_answer_that_is_an_error_is_an_answer() -> None:
    line = Line("unreachable", "server", "unreachable")
    with pytest.raises(TransferError):
        line.retries(line.use)
    assert line.tries == 5
    assert [told.tries for told in line.told] == [3, 5, 5, 5]


def test_what_will_not_pass_is_not_tried_again() -> None:
    line = Line("gated")
    with pytest.raises(TransferError):
        line.retries(line.use)
    assert line.tries == 1
