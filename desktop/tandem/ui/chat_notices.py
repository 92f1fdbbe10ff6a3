"""What the controller has to tell, above the composer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tandem.ui.kit import Notices
from tandem.ui.kit_notices import Notice as Shown
from tandem.ui.session_state import Notice
from tandem.ui.theme import ThemeManager

_SECONDS: Final = 8.0
_UNDO_SECONDS: Final = 20.0


class ChatNotices(Notices):
    """Shows notices, each for as long as it matters.

    Args:
        manager: The theme.
        perform: Does what a notice's button says.
    """

    def __init__(self, manager: ThemeManager, perform: Callable[[Notice], object]) -> None:
        super().__init__(manager)
        self._perform = perform
        self._about_loading: list[Shown] = []

    def tell(self, notice: Notice) -> None:
        """Shows a notice; one that offers to undo stays longer."""
        text = f"{notice.text} {notice.remedy}".strip()
        act: Callable[[], object] | None = None
        if notice.action:
            act = lambda: self._perform(notice)  # noqa: E731 - it needs the notice
        undoes = notice.action == "undo-delete"
        seconds = 0.0 if notice.sticky else _UNDO_SECONDS if undoes else _SECONDS
        shown = self.show_notice(text, notice.kind, notice.action_text, act, seconds, repeats=undoes)
        if notice.action == "load-again":
            self._about_loading.append(shown)

    def loaded(self) -> None:
        """A pair is there: what was said about there being none is no longer true."""
        for shown in self._about_loading:
            if shown in self.notices():
                shown.close_notice()
        self._about_loading.clear()
