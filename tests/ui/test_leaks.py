"""Each kind of thing that a test can leave behind is really caught, in a run of pytest's of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

FAULTY = """
import multiprocessing
import subprocess
import sys
import threading
import time

import pytest
from PySide6.QtCore import (
    QCoreApplication, QEventLoop, QLocale, QObject, QPoint, QProcess, QPropertyAnimation, QSettings, QStandardPaths, Qt,
    QThread, QTimer, QTranslator, QUrl, qInfo, qWarning,
)
from PySide6.QtGui import QColor, QDesktopServices, QFont, QPalette
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from tandem.ui.workers import Faults

KEPT = []
END = threading.Event()


class Sleeper(QThread):
    def run(self):
        while not self.isInterruptionRequested():
            self.msleep(5)


class Ticking(QObject):
    def __init__(self):
        super().__init__()
        self.made = self.startTimer(100_000)


@pytest.fixture
def warns_at_teardown():
    yield
    qWarning("said at teardown")


@pytest.fixture
def raises_at_teardown(qtbot):
    yield
    QTimer.singleShot(0, lambda: 1 / 0)


def test_bad_qthread():
    thread = Sleeper()
    KEPT.append(thread)
    thread.start()  # here: qthread


def test_bad_python_thread():
    threading.Thread(target=END.wait, daemon=True, name="stray").start()  # here: thread
    KEPT.append(END)


def test_ends_the_python_thread():
    END.set()


def test_bad_timer(qapp):
    timer = QTimer(qapp)
    timer.start(100_000)  # here: timer


def test_bad_timer_started_by_a_signal(qtbot):
    field = QLineEdit()
    qtbot.addWidget(field)
    timer = QTimer(QApplication.instance(), interval=100_000)
    KEPT.append(timer)
    field.textChanged.connect(timer.start)
    field.setText("a")  # here: signal


def test_bad_start_timer():
    KEPT.append(Ticking())


def test_bad_animation(qapp):
    label = QLabel(qapp.applicationName())
    animation = QPropertyAnimation(label, b"pos", qapp)
    animation.setDuration(100_000)
    animation.setStartValue(QPoint(0, 0))
    animation.setEndValue(QPoint(9, 9))
    animation.start()  # here: animation
    KEPT.append(label)


def test_bad_widget():
    KEPT.append(QPushButton("stray", objectName="stray-button"))


def test_bad_child_process():
    KEPT.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))  # here: popen


def test_bad_engine_like_process():
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=time.sleep, args=(100,), daemon=True)
    process.start()  # here: spawn
    KEPT.append(process)


def test_bad_qprocess():
    process = QProcess()
    process.start(sys.executable, ["-c", "input()"])  # here: qprocess
    process.waitForStarted()
    KEPT.append(process)


def test_bad_warning():
    qWarning("said in the call")


def test_bad_warning_of_qt():
    QLabel().setMinimumSize(-1, -1)


def test_bad_warning_at_teardown(warns_at_teardown):
    pass


def test_bad_exception_in_a_slot(qtbot):
    button = QPushButton()
    qtbot.addWidget(button)
    button.clicked.connect(lambda: {}["missing"])
    button.click()


def test_bad_exception_in_an_event():
    class Faulty(QWidget):
        def closeEvent(self, event):
            raise ValueError("in closeEvent")

    Faulty().close()


def test_bad_exception_in_a_qthread():
    class Faulty(QThread):
        def run(self):
            raise ValueError("in run")

    thread = Faulty()
    thread.start()
    thread.wait()


def test_bad_exception_in_a_python_thread():
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()


def test_bad_exception_at_teardown(raises_at_teardown):
    pass


def test_bad_settings():
    settings = QSettings("tandem", "tandem")
    settings.setValue("a", 1)
    settings.sync()


def test_bad_fault(tmp_path):
    owner = QObject()
    faults = Faults(tmp_path, owner)
    faults.report("made up", ValueError("a fault"))
    faults.close()


@pytest.mark.faults_expected
def test_good_expected_fault(tmp_path):
    owner = QObject()
    faults = Faults(tmp_path, owner)
    faults.report("made up", ValueError("a fault"))
    faults.close()


def test_good_fault_of_its_own(tmp_path):
    faults = Faults(tmp_path)
    faults.report("made up", ValueError("a fault"))
    faults.close()


def test_good_tidy(qtbot):
    window = QWidget()
    QVBoxLayout(window).addWidget(QLineEdit())
    qtbot.addWidget(window)
    window.show()
    timer = QTimer(window)
    timer.start(100_000)
    animation = QPropertyAnimation(window, b"pos", window)
    animation.setDuration(100_000)
    animation.setStartValue(QPoint(0, 0))
    animation.setEndValue(QPoint(9, 9))
    animation.start()
    Sleeper.instance = thread = Sleeper()
    thread.start()
    thread.requestInterruption()
    thread.wait()
    worker = threading.Thread(target=int)
    worker.start()
    worker.join()
    subprocess.run([sys.executable, "-c", ""], check=True)
    qInfo("nothing worth a failure")
    lost = QLabel("in a cycle of references")
    lost.myself = lost


def test_good_ignored_message():
    qWarning("This plugin does not support propagateSizeHints()")


@pytest.mark.qt_log_ignore("said at teardown")
def test_good_expected_message(warns_at_teardown):
    pass


class Upper(QTranslator):
    def translate(self, context, text, *rest):
        return text.upper()

    def isEmpty(self):
        return False


def test_good_changes_the_application(qapp, opened_urls):
    translator = Upper(qapp)
    qapp.installTranslator(translator)
    assert QCoreApplication.translate("a", "b") == "B"
    qapp.setStyleSheet("QLabel { color: red }")
    palette = QPalette()
    palette.setColor(QPalette.ColorRole.Window, QColor("green"))
    qapp.setPalette(palette)
    qapp.setFont(QFont("Noto Sans", 40))
    qapp.setStyle("Windows")
    qapp.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    QLocale.setDefault(QLocale("ko_KR"))
    qapp.clipboard().setText("secret")
    QApplication.setOverrideCursor(Qt.CursorShape.WaitCursor)
    QDesktopServices.openUrl(QUrl("https://example.org"))
    assert opened_urls == ["https://example.org"]


def test_good_sees_nothing_of_it(qapp, opened_urls):
    assert QCoreApplication.translate("a", "b") == "b"
    assert qapp.styleSheet() == ""
    assert qapp.palette().window().color() != QColor("green")
    assert qapp.font().pointSize() != 40
    assert qapp.style().name() != "windows"
    assert qapp.layoutDirection() == Qt.LayoutDirection.LeftToRight
    assert QLocale().name() != "ko_KR"
    assert qapp.clipboard().text() == ""
    assert QApplication.overrideCursor() is None
    assert opened_urls == []
    assert "qttest" in QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericConfigLocation)


def test_good_fails_for_its_own_reason_only():
    KEPT.append(QLabel("held by a failed test"))
    raise AssertionError("its own reason")
"""

# Test, and what its report must say.
CAUGHT = {
    "test_bad_qthread": ["Sleeper", "here: qthread"],
    "test_bad_python_thread": ["stray", "here: thread"],
    "test_bad_timer": ["QTimer", "here: timer"],
    "test_bad_timer_started_by_a_signal": ["QTimer", "here: signal"],
    "test_bad_start_timer": ["Ticking", "startTimer"],
    "test_bad_animation": ["QPropertyAnimation", "here: animation"],
    "test_bad_widget": ["QPushButton", "stray-button"],
    "test_bad_child_process": ["input()", "here: popen"],
    "test_bad_engine_like_process": ["spawn_main", "here: spawn"],
    "test_bad_qprocess": ["input()", "here: qprocess"],
    "test_bad_warning": ["said in the call"],
    "test_bad_warning_of_qt": ["QtWarningMsg", "Negative sizes"],
    "test_bad_warning_at_teardown": ["said at teardown"],
    "test_bad_exception_in_a_slot": ["KeyError", "missing"],
    "test_bad_exception_in_an_event": ["ValueError", "in closeEvent"],
    "test_bad_exception_in_a_qthread": ["in run"],
    "test_bad_exception_in_a_python_thread": ["ZeroDivisionError"],
    "test_bad_exception_at_teardown": ["ZeroDivisionError"],
    "test_bad_fault": ["ValueError", "a fault"],
    "test_bad_settings": ["QSettings", "tandem"],
}
FINE = [
    "test_good_fault_of_its_own",
    "test_good_expected_fault",
    "test_good_tidy",
    "test_good_ignored_message",
    "test_good_expected_message",
    "test_good_changes_the_application",
    "test_good_sees_nothing_of_it",
    "test_ends_the_python_thread",
]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What was reported of each faulty test: one text for every failure and error, none where it passed."""
    folder = tmp_path_factory.mktemp("faulty")
    shutil.copy(HERE.parent / "conftest.py", folder / "conftest.py")
    (folder / "ui").mkdir()
    shutil.copy(HERE / "conftest.py", folder / "ui" / "conftest.py")
    (folder / "ui" / "test_faulty.py").write_text(FAULTY, "utf-8")
    outcome = folder / "outcome.xml"
    options = ["-o", "cache_dir=cache", "-o", f"pythonpath={ROOT / 'desktop'} {ROOT / 'tests'}"]
    run = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", f"--rootdir={folder}"]
    done = subprocess.run(
        [*run, *options, f"--junitxml={outcome}", folder / "ui"],
        cwd=folder,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert outcome.exists(), done.stdout + done.stderr
    found: dict[str, list[str]] = {}
    for case in ElementTree.parse(outcome).iter("testcase"):
        texts = found.setdefault(case.get("name", ""), [])
        texts += [f"{part.get('message')}\n{part.text}" for part in case if part.tag in ("failure", "error")]
    return found


@pytest.mark.parametrize("name", CAUGHT)
def test_is_caught(reports: dict[str, list[str]], name: str) -> None:
    assert len(reports[name]) == 1, reports[name]
    for words in CAUGHT[name]:
        assert words in reports[name][0]


@pytest.mark.parametrize("name", FINE)
def test_is_let_through(reports: dict[str, list[str]], name: str) -> None:
    assert reports[name] == []


def test_a_failed_test_has_one_message(reports: dict[str, list[str]]) -> None:
    (report,) = reports["test_good_fails_for_its_own_reason_only"]
    assert "its own reason" in report


def test_each_of_them_ran(reports: dict[str, list[str]]) -> None:
    assert set(reports) == {*CAUGHT, *FINE, "test_good_fails_for_its_own_reason_only"}
