"""What the page Chat asks in a box of its own: where a file goes, which file to read, whether to follow a link."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QCoreApplication, Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from tandem.chat.export import Form

# Under a name of its own: after `QCoreApplication.translate(…)` lupdate puts the next `self.tr` into a false context.
translate = QCoreApplication.translate

_SHOWN: Final = 400
_BREAK: Final = 24
"""Characters of a link's address that are shown, and after which a line may end."""


def export_dialog(parent: QWidget, folder: str, form: Form, *, whole: bool) -> QFileDialog:
    """Asks where to write one chat, or all of them; `fileSelected` tells. Not shown yet."""
    markdown, json = (
        (".md", translate("ChatPage", "Markdown (*.md)")),
        (".json", translate("ChatPage", "JSON (*.json)")),
    )
    ending, name = json if form == "json" else markdown
    title = translate("ChatPage", "tandem-chats") if whole else translate("ChatPage", "tandem-chat")
    dialog = QFileDialog(parent, translate("ChatPage", "Export"), folder, name)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(ending[1:])
    dialog.selectFile(title + ending)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    return dialog


def import_dialog(parent: QWidget, folder: str) -> QFileDialog:
    """Asks for a file of exported chats; `fileSelected` tells. Not shown yet."""
    name = translate("ChatPage", "JSON (*.json)")
    dialog = QFileDialog(parent, translate("ChatPage", "Import chats"), folder, name)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    return dialog


def link_box(parent: QWidget, address: str) -> QMessageBox:
    """Opens a link in the browser, if the user says so: a model may have made it up. Not shown yet."""
    box = QMessageBox(parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setIcon(QMessageBox.Icon.NoIcon)
    box.setWindowTitle(translate("ChatPage", "Open a link"))
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(translate("ChatPage", "The model wrote this link. Open it in your browser?"))
    box.setInformativeText(_breakable(address))
    opener = box.addButton(translate("ChatPage", "Open"), QMessageBox.ButtonRole.AcceptRole)
    box.addButton(QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(QMessageBox.StandardButton.Cancel)
    opener.clicked.connect(lambda: QDesktopServices.openUrl(QUrl(address)))
    return box


def _breakable(address: str) -> str:
    """An address that a box can break into lines; of a very long one the beginning and the end."""
    if len(address) > _SHOWN:
        address = f"{address[: _SHOWN * 3 // 4]} … {address[-_SHOWN // 4 :]}"
    return "\u200b".join(address[place : place + _BREAK] for place in range(0, len(address), _BREAK))
