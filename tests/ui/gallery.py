"""Every widget of the kit and every styled Qt control on one page, to be looked at.

    python tests/ui/gallery.py [--theme light|dark] [--scale 1.0] [--language en|ko] [--save FILE] [--focus N]

Without `--save` it opens a window; with it, the page is drawn into a PNG file, in QT_SCALE_FACTOR's resolution.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "desktop"))

from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListView,
    QPlainTextEdit,
    QProgressBar,
    QRadioButton,
    QScrollArea,
    QSlider,
    QTableWidget,
    QTableWidgetItem,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

from tandem.ui import i18n, icons, kit, theme

WORDS = {
    "en": {
        "send": "Send",
        "download": "Download",
        "delete": "Delete",
        "drafter": "Drafter · 3",
        "thinking": "Thinking",
        "on": "Drafter on · length 3",
        "off": "Drafter off",
        "busy": "Loading E2B",
        "failed": "Drafter failed",
        "warn": "Few drafts accepted",
        "idle": "Drafter ready",
        "title": "No chats yet",
        "text": "Ask something below. Everything stays on this machine.",
        "try": "Try the demo",
        "own": "Use files I have…",
        "row": "Context",
        "help": "How many tokens the model keeps in view. More needs more memory.",
        "deleted": "“Trip to Busan” was deleted.",
        "undo": "Undo",
        "search": "Search chats",
        "theme": ("System", "Light", "Dark"),
        "section": "Appearance",
        "list": ("Trip to Busan", "Prime numbers in Python", "Letter to the landlord"),
    },
    "ko": {
        "send": "보내기",
        "download": "내려받기",
        "delete": "삭제",
        "drafter": "드래프터 · 3",
        "thinking": "생각하기",
        "on": "드래프터 켜짐 · 길이 3",
        "off": "드래프터 꺼짐",
        "busy": "E2B 불러오는 중",
        "failed": "드래프터 실패",
        "warn": "받아들인 초안이 적음",
        "idle": "드래프터 준비됨",
        "title": "아직 대화가 없습니다",
        "text": "아래에 질문을 입력하세요. 모든 내용은 이 컴퓨터에만 남습니다.",
        "try": "데모 써 보기",
        "own": "가진 파일 쓰기…",
        "row": "컨텍스트",
        "help": "모델이 한 번에 볼 수 있는 토큰 수입니다. 늘리면 메모리가 더 필요합니다.",
        "deleted": "‘부산 여행’ 대화를 삭제했습니다.",
        "undo": "실행 취소",
        "search": "대화 검색",
        "theme": ("시스템", "밝게", "어둡게"),
        "section": "모양",
        "list": ("부산 여행", "파이썬 소수", "집주인에게 보내는 편지"),
    },
}


def row(manager: theme.ThemeManager, *parts: QWidget) -> QWidget:
    made = QWidget()
    line = QHBoxLayout(made)
    kit.spaced(line, manager, "s")
    for part in parts:
        line.addWidget(part)
    line.addStretch(1)
    return made


def able(part: QWidget, *, on: bool = False) -> QWidget:
    part.setEnabled(on)
    return part


def checked(part: QWidget) -> QWidget:
    part.setChecked(True)
    return part


def named(name: str, part: QWidget) -> QWidget:
    part.setAccessibleName(name)
    return part


def buttons(manager: theme.ThemeManager, words: dict[str, str]) -> QWidget:
    card = kit.Card(manager)
    card.body.addWidget(kit.SectionTitle(manager, "Buttons"))
    card.body.addWidget(
        row(
            manager,
            kit.PrimaryButton(manager, words["send"], "send"),
            kit.QuietButton(manager, words["download"], "download"),
            kit.QuietButton(manager, words["delete"], "trash", danger=True),
        )
    )
    card.body.addWidget(
        row(
            manager,
            able(kit.PrimaryButton(manager, words["send"], "send")),
            able(kit.QuietButton(manager, words["download"], "download")),
            able(kit.IconButton(manager, "copy", "Copy")),
            kit.IconButton(manager, "copy", "Copy", "Ctrl+C"),
            kit.IconButton(manager, "refresh", "Regenerate"),
            kit.IconButton(manager, "more", "More"),
        )
    )
    card.body.addWidget(
        row(
            manager,
            checked(kit.ToggleChip(manager, "bolt", words["drafter"])),
            kit.ToggleChip(manager, "thinking", words["thinking"]),
            able(kit.ToggleChip(manager, "thinking", words["thinking"])),
        )
    )
    states = [kit.StateChip(manager, kind, words[kind]) for kind in ("on", "off", "busy", "failed", "warn", "idle")]
    card.body.addWidget(row(manager, *states[:3]))
    card.body.addWidget(row(manager, *states[3:]))
    meters = []
    for used in (30, 85, 100):
        meter = kit.Meter(manager, "Context")
        meter.set_value(used, 100)
        meters.append(meter)
    card.body.addWidget(row(manager, *meters))
    return card


def fields(manager: theme.ThemeManager, words: dict[str, str]) -> QWidget:
    card = kit.Card(manager)
    card.body.addWidget(kit.SectionTitle(manager, "Fields"))
    line, combo, spin, double = (
        QLineEdit("Gemma 4"),
        kit.ComboBox("KV"),
        kit.SpinBox("Context"),
        kit.DoubleSpinBox("Heat"),
    )
    named("Name", line)
    combo.addItems(["f16", "q8_0", "System"])
    spin.setMaximum(65536)
    spin.setValue(4096)
    double.setValue(0.7)
    card.body.addWidget(row(manager, line, combo))
    card.body.addWidget(row(manager, spin, double, able(kit.ComboBox("None")), able(kit.SpinBox("None"))))
    search = kit.SearchField(manager, words["search"])
    card.body.addWidget(search)
    area = QPlainTextEdit("Plain text, edited here.\n" * 8)
    area.setFixedHeight(84)
    area.setTabChangesFocus(True)
    named("Notes", area)
    card.body.addWidget(area)
    card.body.addWidget(
        row(manager, QCheckBox("Off"), checked(QCheckBox("On")), able(checked(QCheckBox("On"))), able(QCheckBox("Off")))
    )
    card.body.addWidget(row(manager, QRadioButton("One"), checked(QRadioButton("Two")), able(QRadioButton("Three"))))
    slider, progress = QSlider(Qt.Orientation.Horizontal), QProgressBar()
    slider.setValue(40)
    named("Heat", slider)
    named("Progress", progress)
    progress.setValue(60)
    progress.setTextVisible(False)
    card.body.addWidget(slider)
    card.body.addWidget(progress)
    return card


def settings(manager: theme.ThemeManager, words: dict[str, str]) -> QWidget:
    card = kit.Card(manager)
    card.body.addWidget(kit.SectionTitle(manager, words["section"]))
    segments = kit.Segmented(manager, "Theme", list(zip(("system", "light", "dark"), words["theme"], strict=True)))
    segments.choose("light")
    card.body.addWidget(kit.FormRow(manager, "Theme", segments))
    card.body.addWidget(kit.divider())
    spin = kit.SpinBox()
    spin.setMaximum(65536)
    spin.setValue(4096)
    card.body.addWidget(kit.FormRow(manager, words["row"], spin, words["help"]))
    card.body.addWidget(kit.divider())
    card.body.addWidget(kit.FormRow(manager, words["thinking"], checked(kit.Switch(manager)), words["help"]))
    card.body.addWidget(kit.FormRow(manager, words["drafter"], kit.Switch(manager)))
    card.body.addWidget(kit.FormRow(manager, words["drafter"], able(checked(kit.Switch(manager)))))
    return card


def views(manager: theme.ThemeManager, words: dict[str, str]) -> QWidget:
    card = kit.Card(manager)
    model = QStandardItemModel(card)
    for text in words["list"]:
        model.appendRow(QStandardItem(text))
    view = QListView()
    view.setModel(model)
    named("Chats", view)
    view.ensurePolished()  # rows laid out before that keep the height of an unstyled list
    view.setCurrentIndex(model.index(1, 0))
    view.setFixedHeight(120)
    table = QTableWidget(3, 2)
    named("Figures", table)
    table.setTabKeyNavigation(False)
    table.setHorizontalHeaderLabels(["Pair", "tok/s"])
    for place in range(6):
        table.setItem(place // 2, place % 2, QTableWidgetItem("12.3"))
    table.verticalHeader().hide()
    table.setFixedHeight(120)
    line = QWidget()
    two = QHBoxLayout(line)
    kit.spaced(two, manager, "s")
    two.addWidget(view)
    two.addWidget(table)
    card.body.addWidget(line)
    for size in ("display", "title", "lead", "body", "small", "mono"):
        card.body.addWidget(kit.label(f"{size} · {words['title']} 0123", size))
    card.body.addWidget(
        row(manager, *(kit.label(role, "small", role) for role in ("muted", "faint", "accent", "good", "warn", "bad")))
    )
    return card


def page(manager: theme.ThemeManager, language: str) -> QWidget:
    words = WORDS[language]
    body = QWidget()
    body.setProperty("kit", "page")
    grid = QGridLayout(body)
    kit.spaced(grid, manager, "l", "l")
    rail = QWidget()
    rail.setProperty("kit", "sunken")
    rail.setAttribute(
        Qt.WidgetAttribute.WA_StyledBackground
    )  # a bare QWidget draws no background of a style sheet's otherwise
    column = QVBoxLayout(rail)
    kit.spaced(column, manager, "xs", "xs")
    for icon, text in (("chat", "Chat"), ("models", "Models"), ("compare", "Compare"), ("settings", "Settings")):
        column.addWidget(kit.NavButton(manager, icon, text))
    rail.findChild(kit.NavButton).setChecked(True)
    column.addStretch(1)
    grid.addWidget(rail, 0, 0, 3, 1)
    grid.addWidget(buttons(manager, words), 0, 1)
    grid.addWidget(fields(manager, words), 0, 2)
    grid.addWidget(settings(manager, words), 1, 1)
    grid.addWidget(views(manager, words), 1, 2)
    empty = kit.EmptyState(manager, "chat", words["title"], words["text"])
    empty.add_button(kit.PrimaryButton(manager, words["try"]))
    empty.add_button(kit.QuietButton(manager, words["own"], "folder"))
    grid.addWidget(empty, 2, 1)
    notices = kit.Notices(manager)
    notices.show_notice(words["deleted"], "info", words["undo"], seconds=0)
    notices.show_notice(words["warn"], "warn", seconds=0)
    notices.show_notice(words["failed"], "bad", words["try"])
    grid.addWidget(notices, 2, 2, Qt.AlignmentFlag.AlignBottom)
    strip = QWidget()
    line = QHBoxLayout(strip)
    kit.spaced(line, manager, "s")
    for name in icons.names():
        line.addWidget(kit.IconButton(manager, name, name))
    grid.addWidget(strip, 3, 0, 1, 3)
    return body


def popups(manager: theme.ThemeManager, words: dict[str, str], file: Path) -> None:
    """Draws dialogs and menus beside the page's picture."""
    parts: list[tuple[str, Literal["accept", "reject"]]] = [(words["undo"], "accept"), (words["off"], "reject")]
    box = kit.message_box(manager, None, "question", words["deleted"], words["help"], parts)
    files = QFileDialog(None, "Open", str(Path.cwd()))
    files.setOption(QFileDialog.Option.DontUseNativeDialog)
    menu = kit.Menu(manager)
    menu.add("edit", "Rename", shortcut="F2")
    menu.add("export", "Export…")
    menu.addSeparator()
    menu.add("trash", words["delete"], shortcut="Del", danger=True)
    pick = menu.addAction("Checked")
    pick.setCheckable(True)
    pick.setChecked(True)
    menu.addMenu("More")
    menu.addAction("Not now").setEnabled(False)
    combo = kit.ComboBox()
    combo.addItems(["f16", "q8_0", "System"])
    for name, widget in (("box", box), ("files", files), ("menu", menu)):
        if widget is menu:
            menu.popup(QPoint(0, 0))
            menu.setActiveAction(menu.actions()[0])
        else:
            widget.show()
        QApplication.processEvents()
        widget.grab().save(str(file.with_stem(f"{file.stem}-{name}")))
        widget.close()
    combo.show()
    combo.showPopup()
    QApplication.processEvents()
    combo.view().window().grab().save(str(file.with_stem(f"{file.stem}-combo")))
    combo.hidePopup()
    QToolTip.showText(QPoint(10, 10), "Copy  Ctrl+C", combo)
    QApplication.processEvents()
    for top in QApplication.topLevelWidgets():
        if isinstance(top, QLabel) and top.isVisible():
            top.grab().save(str(file.with_stem(f"{file.stem}-tip")))
    QToolTip.hideText()
    combo.close()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--theme", default="system")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--language", default="en", choices=sorted(WORDS))
    parser.add_argument("--save", type=Path)
    parser.add_argument("--focus", type=int, default=-1, help="how often Tab is pressed before saving")
    given = parser.parse_args()
    app = QApplication(sys.argv[:1])
    i18n.install(app, given.language)
    manager = theme.ThemeManager(app)
    manager.apply(app, given.theme, given.scale)
    body = page(manager, given.language)
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setWidget(body)
    area.setWindowTitle("Tandem kit")
    area.resize(1180, 860)
    area.show()
    if given.save is None:
        QTimer.singleShot(0, area.raise_)
        return int(app.exec())
    app.processEvents()
    body.adjustSize()
    for _ in range(given.focus):
        body.focusNextChild()
    app.processEvents()
    body.grab().save(str(given.save))
    popups(manager, WORDS[given.language], given.save)
    area.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
