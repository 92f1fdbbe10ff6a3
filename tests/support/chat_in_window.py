"""A program: the real window without a screen. Looks at the pages, asks one question, prints the answer, closes."""

from __future__ import annotations

import sys

from PySide6.QtCore import QTimer

from tandem.chat.conversation import Node
from tandem.ui import app
from tandem.ui.session_state import PairState

PAGES = ("models", "settings", "chat")


class Asking(app.Application):
    """The app with somebody in front of it."""

    def start(self) -> None:
        """Opens it, and asks as soon as the pair is loaded."""
        self.asked = False
        self.controller.pair_changed.connect(self._pair_changed)
        self.controller.node_finished.connect(self._answered)
        super().start()
        for page in PAGES:
            self.window.show_page(page)

    def _pair_changed(self, pair: PairState) -> None:
        if pair.kind == "loaded" and not self.asked:
            self.asked = True
            self.controller.send(sys.argv[1])

    def _answered(self, node: Node) -> None:
        print(node.state, node.text, sep="\n", flush=True)
        QTimer.singleShot(0, self.window.close)


if __name__ == "__main__":
    app.Application = Asking  # type: ignore[misc]
    sys.exit(app.main(["-platform", "offscreen"]))
