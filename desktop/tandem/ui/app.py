"""The application: settings first, so that the window opens in its own colours and language, then all the rest."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from PySide6.QtCore import QObject, QSocketNotifier, Qt, QTimer
from PySide6.QtWidgets import QApplication, QMessageBox

import tandem
from tandem import paths, settings
from tandem.errors import TandemError
from tandem.settings import Settings
from tandem.ui import i18n, icons
from tandem.ui.controller import Controller
from tandem.ui.errors_text import localised
from tandem.ui.single import SingleInstance
from tandem.ui.theme import ThemeManager
from tandem.ui.window import MainWindow
from tandem.ui.workers import Throttle

_DRESS_EVERY_MS: Final = 300
SIGNALS: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Application(QObject):
    """The window and what works for it.

    Args:
        app: Qt's application, bare.
        known: The settings as they were read; None reads them.

    Raises:
        TandemError: A folder cannot be made, or the app's own files are missing.
    """

    def __init__(self, app: QApplication, known: settings.Loaded | None = None) -> None:
        super().__init__(app)
        self._app = app
        found = settings.load_anyway() if known is None else known
        self._worn = found.settings
        app.setApplicationName("Tandem")
        app.setApplicationVersion(tandem.__version__)
        app.setDesktopFileName("tandem")
        app.setQuitOnLastWindowClosed(False)
        i18n.install(app, found.settings.language)
        self.manager = ThemeManager(self)
        self.manager.apply(app, found.settings.theme, found.settings.text_scale)
        app.setWindowIcon(icons.app_icon())
        self.controller = Controller(self, known=found)
        self.controller.threads.faults.install()
        self.window = MainWindow(self.manager, self.controller)
        self.window.restore(found.settings.geometry)
        # Restyling takes a while: of several text sizes in a row the first is worn at once, and then only the last.
        self._dress = Throttle(self._put_on, _DRESS_EVERY_MS, self)
        self.controller.settings_changed.connect(self._wear)
        self.window.gone.connect(app.quit)

    def start(self) -> None:
        """Shows the window; what takes time begins after it is there."""
        self.window.show()
        QTimer.singleShot(0, self.controller, self.controller.start)

    def end(self) -> bool:
        """Ends everything, whatever is still at work; safe to call twice.

        Returns:
            Whether all threads have ended. Qt aborts when one that runs is taken down.
        """
        return self.controller.join()

    def _put_on(self) -> None:
        self.manager.apply(self._app, self._worn.theme, self._worn.text_scale)

    def _wear(self, changed: Settings) -> None:
        before, self._worn = self._worn, changed
        if changed.theme != before.theme:
            self._put_on()
        elif changed.text_scale != before.text_scale:
            self._dress.call()
        if changed.language != before.language:
            i18n.install(self._app, changed.language)


def main(arguments: Sequence[str] = ()) -> int:
    """Opens the window and stays until it is closed.

    Args:
        arguments: For Qt, such as `-platform offscreen`.

    Returns:
        The exit code.
    """
    app = QApplication(["tandem", *arguments])
    try:
        single = SingleInstance(paths.data_dir(), app)
        if not single.claim():
            return 0
        application = Application(app)
    except TandemError as error:
        print(f"tandem: {error.sentence}\n{error.remedy}", file=sys.stderr)
        _show(app, error)
        return error.exit_code
    single.raised.connect(application.window.raise_up)
    interrupts = _Interrupts(application.window)
    application.start()
    code = 1
    try:
        code = app.exec()
    finally:
        ended = application.end()
        interrupts.close()
        single.release()
        if not ended:  # a thread is stuck in the system; what had to be stored is stored
            os._exit(code)
    return code


def _show(app: QApplication, error: TandemError) -> None:
    """Why there is no window, for who sees no terminal; returns when it was read."""
    if app.platformName() == "offscreen":
        return  # nobody could read it
    with suppress(TandemError):
        i18n.install(app, "system")
    app.setStyleSheet("")  # in ours a message box is too narrow for a long path
    sentence, remedy = localised(error.sentence, error.remedy)
    box = QMessageBox(QMessageBox.Icon.Critical, "Tandem", f"{sentence}\n\n{remedy}")
    box.setTextFormat(Qt.TextFormat.PlainText)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own handler would wait for the event loop
    box.finished.connect(app.quit)
    box.show()
    app.exec()


class _Interrupts(QObject):
    """Closes the window on Ctrl-C and its kin. Python's handlers run only when Qt lets them: a socket wakes it."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._read, self._write = socket.socketpair()
        for end in (self._read, self._write):
            end.setblocking(False)
        self._before = {number: signal.signal(number, lambda *_: None) for number in SIGNALS}
        self._fd = signal.set_wakeup_fd(self._write.fileno())
        self._notifier = QSocketNotifier(self._read.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._woken)

    def close(self) -> None:
        """Gives the signals back."""
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._fd)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._read.close()
        self._write.close()

    def _woken(self) -> None:
        self._read.recv(64)
        self._window.close()
