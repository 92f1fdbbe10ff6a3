"""What every test of the window gets: Qt without a screen, a clean state, and a check that nothing is left behind."""

from __future__ import annotations

import os
import traceback
from collections.abc import Generator, Iterator

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from PySide6.QtCore import QLocale, QSettings, QStandardPaths, QUrl
from PySide6.QtGui import QDesktopServices, QPalette
from PySide6.QtWidgets import QApplication, QToolTip

from support import leaks, qtlog
from tandem.ui.workers import Faults

IGNORED_MESSAGES = [
    # The platform without a screen has no window manager to tell sizes to.
    r"This plugin does not support propagateSizeHints\(\)",
]

_failed = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    for pattern in IGNORED_MESSAGES:
        config.addinivalue_line("qt_log_ignore", pattern)
    config.addinivalue_line("markers", "faults_expected: the test brings about a fault of ours, to see it reported.")
    qtlog.listen()
    leaks.watch()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when != "teardown" and report.failed:
        item.stash[_failed] = True
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Fails a test for what Qt said while it was taken down; pytest-qt only listens up to the end of the call."""
    yield
    ignored = [*item.config.getini("qt_log_ignore")]
    for mark in item.iter_markers("qt_log_ignore"):
        ignored += mark.args
    messages = qtlog.take(ignored)
    if messages and item.get_closest_marker("no_qt_log") is None:
        pytest.fail("Qt said at teardown:\n" + "\n".join(messages), pytrace=False)


@pytest.fixture(autouse=True)
def _nothing_left(request: pytest.FixtureRequest, qapp: QApplication) -> Iterator[None]:
    """Fails a test that leaves something behind. Every other fixture here asks for it, so it ends last."""
    census = leaks.Census(qapp)
    yield
    left = census.left()
    if left:
        census.remove()
        # A failed test's traceback holds its widgets, and its own message is the one to read.
        if not request.node.stash.get(_failed, False):
            pytest.fail("The test left behind:\n" + "\n".join(left), pytrace=False)


@pytest.fixture(autouse=True)
def _clean_state(_nothing_left: None, qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees what another did to the application, nor the user's own settings of Qt."""
    folder = tmp_path_factory.mktemp("qt-settings")
    for form in (QSettings.Format.NativeFormat, QSettings.Format.IniFormat):
        QSettings.setPath(form, QSettings.Scope.UserScope, str(folder))
    QStandardPaths.setTestModeEnabled(True)
    locale, font, style = QLocale(), qapp.font(), qapp.style().name()
    direction, icon, quits = qapp.layoutDirection(), qapp.windowIcon(), qapp.quitOnLastWindowClosed()
    yield
    QToolTip.hideText()
    while QApplication.overrideCursor() is not None:
        QApplication.restoreOverrideCursor()
    leaks.remove_translators()
    leaks.settle()  # widgets go first: they need not be drawn anew
    if qapp.styleSheet():
        qapp.setStyleSheet("")
    if qapp.style().name() != style:
        qapp.setStyle(style)
    qapp.setPalette(QPalette())
    qapp.setFont(font)
    qapp.styleHints().unsetColorScheme()
    qapp.setLayoutDirection(direction)
    qapp.setWindowIcon(icon)
    qapp.setQuitOnLastWindowClosed(quits)
    qapp.clipboard().clear()
    QLocale.setDefault(locale)
    # Qt itself keeps the state of its file dialog.
    written = [path.name for path in folder.iterdir() if path.name != "QtProject.conf"]
    if written:
        pytest.fail(f"Settings are kept in one file of our own; the test wrote through QSettings: {written}")


@pytest.fixture(autouse=True)
def _no_faults(_nothing_left: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test in which the app reported a fault of ours, in whichever thread; people only see a notice of it.

    A `Faults` without a parent was made by the test itself, to be tested.
    """
    faults: list[str] = []
    report = Faults.report

    def noted(self: Faults, part: str, error: BaseException) -> None:
        if self.parent() is not None:
            faults.append(f"{part}: {''.join(traceback.format_exception(error))}")
        report(self, part, error)

    monkeypatch.setattr(Faults, "report", noted)
    yield
    if faults and request.node.get_closest_marker("faults_expected") is None:
        pytest.fail("The app reported faults:\n" + "\n".join(faults), pytrace=False)


@pytest.fixture(autouse=True)
def opened_urls(_nothing_left: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the test had the desktop open (links, folders): it is noted here, and nothing is opened."""
    urls: list[str] = []

    def open_url(url: QUrl) -> bool:
        urls.append(url.toString())
        return True

    monkeypatch.setattr(QDesktopServices, "openUrl", open_url)
    return urls
