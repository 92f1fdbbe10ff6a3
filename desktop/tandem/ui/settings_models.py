"""Settings of the models: where they are kept, and how Tandem reaches the Hub that they come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtWidgets import QFileDialog, QGridLayout, QVBoxLayout, QWidget

from tandem.models.progress import JobProgress
from tandem.settings import Settings
from tandem.ui.errors_text import localised
from tandem.ui.kit import label, spaced
from tandem.ui.models_card_menu import show_folder
from tandem.ui.models_card_parts import Elided
from tandem.ui.models_state_text import fitted
from tandem.ui.page import Banner, Field
from tandem.ui.session_state import NetworkView, VariableView
from tandem.ui.settings_data import HUB
from tandem.ui.settings_models_parts import Address, FolderBlock, TokenBlock, offline_variable
from tandem.ui.settings_section import Choices, Decimal, Section, Whole

if TYPE_CHECKING:
    from tandem.ui.theme import ThemeManager

MIB: Final = 1 << 20
NO_PROXY: Final = "none"
"""What `Settings.proxy` holds for going without one, whatever the environment says."""

_A_PROXY: Final = "http://proxy:8080"
_MOST_MIB: Final = 10_000.0
_MOST_CONNECTIONS: Final = 4


class ModelsSection(Section):
    """Model folder, Hub, proxy, limits, token, and the environment that counts.

    Attributes:
        folder_move_requested: The folder that the models are to be moved to.
        stop_move_requested: The move under way is to be stopped.
        token_keep_requested: A token, to be kept in the keyring.
        token_forget_requested: It is to be taken out again.
    """

    folder_move_requested = Signal(str)
    stop_move_requested = Signal()
    token_keep_requested = Signal(str)
    token_forget_requested = Signal()

    def __init__(self, manager: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(manager, parent)
        self.view = NetworkView()
        self._moving: JobProgress | None = None
        self._own_proxy = False  # an address of one's own is wanted, and none is written yet
        self.entitle(lambda: self.tr("Models and network"))
        self.problem = Banner(manager, "warn")
        self.problem.hide()
        self.card.body.addWidget(self.problem)
        self._add_folder(manager)
        self._add_hub(manager)
        self._add_limits(manager)
        self._add_token(manager)
        self._add_environment(manager)
        self.retranslate()

    def _add_folder(self, manager: ThemeManager) -> None:
        self.folder = FolderBlock(manager)
        self.say(self.folder.name.setText, lambda: self.tr("Model folder"))
        self.say(
            self.folder.help.setText,
            lambda: self.tr("Choosing another folder moves all model files there, also to another drive."),
        )
        self.say(self.folder.change.setText, lambda: self.tr("Change…"))
        self.say(self.folder.change.setAccessibleName, lambda: self.tr("Change the model folder"))
        self.say(self.folder.open.setText, lambda: self.tr("Open"))
        self.say(self.folder.open.setAccessibleName, lambda: self.tr("Open the model folder"))
        self.say(self.folder.stop.setText, lambda: self.tr("Stop"))
        self.say(self.folder.stop.setAccessibleName, lambda: self.tr("Stop moving the models"))
        self.folder.change.clicked.connect(self.open_dialog)
        self.folder.open.clicked.connect(lambda: show_folder(self.view.folder))
        self.folder.stop.clicked.connect(self.stop_move_requested)
        self.add(self.folder)

    def _add_hub(self, manager: ThemeManager) -> None:
        self.endpoint = Address(manager)
        self.endpoint.written.connect(self._endpoint_written)
        self.endpoint_field = self.field(
            self.endpoint,
            lambda: self.tr("Address of the Hub"),
            lambda: self.tr("Left empty, models come from Hugging Face. A mirror has an address of its own."),
        )
        self.proxy_kind = Choices(manager)
        self.proxy_kind.currentIndexChanged.connect(lambda _index: self._proxy_chosen(self.proxy_kind.currentData()))
        self.proxy_field = self.field(
            self.proxy_kind,
            lambda: self.tr("Proxy"),
            lambda: self.tr("Automatic takes the system's proxy or HTTPS_PROXY."),
        )
        self.proxy = Address(manager)
        self.proxy.setPlaceholderText(_A_PROXY)
        self.proxy.written.connect(self._proxy_written)
        self.proxy_address = Field(manager, self.proxy)
        self.say(self.proxy_address.set_text, lambda: self.tr("Address of the proxy"))
        self.card.body.addWidget(self.proxy_address)  # it comes and goes, and is under no hairline of its own

    def _add_limits(self, manager: ThemeManager) -> None:
        self.speed = Decimal(manager, 0.0, _MOST_MIB, 1.0)
        self.speed.setDecimals(1)
        self.say(self.speed.setSpecialValueText, lambda: self.tr("No limit"))
        self.say(self.speed.setSuffix, lambda: self.tr(" MiB/s"))
        self.speed.valueChanged.connect(lambda value: self.change(speed_limit=round(value * MIB) or None))
        self.field(
            self.speed,
            lambda: self.tr("Speed limit"),
            lambda: self.tr("The most that a download may use of your connection."),
        )
        self.connections = Whole(manager, 1, _MOST_CONNECTIONS)
        self.connections.valueChanged.connect(lambda value: self.change(connections=value))
        self.field(
            self.connections,
            lambda: self.tr("Connections"),
            lambda: self.tr("How many a download uses at a time, where the server allows it."),
        )

    def _add_token(self, manager: ThemeManager) -> None:
        block = TokenBlock(manager)
        self.token, self.keep, self.forget, self.token_help = block.line, block.keep, block.forget, block.help
        self.say(block.set_name, lambda: self.tr("Sign-in token"))
        self.token.textChanged.connect(lambda _text: self.retranslate())
        self.token.returnPressed.connect(self._keep)
        self.say(self.keep.setText, lambda: self.tr("Keep"))
        self.say(self.keep.setAccessibleName, lambda: self.tr("Keep the token in the keyring"))
        self.keep.clicked.connect(self._keep)
        self.say(self.forget.setText, lambda: self.tr("Forget"))
        self.say(self.forget.setAccessibleName, lambda: self.tr("Remove the token from the keyring"))
        self.forget.clicked.connect(self.token_forget_requested)
        self.add(block)

    def _add_environment(self, manager: ThemeManager) -> None:
        block = QWidget()
        self._environment = label(wrap=True)
        self.say(self._environment.setText, lambda: self.tr("From the environment"))
        self.certificates = label(size="small", role="muted", wrap=True)
        self.say(
            self.certificates.setText,
            lambda: self.tr(
                "Secure connections are checked with this system's own certificates, those of a company's proxy too."
            ),
        )
        self.variables = QWidget()
        self._grid = QGridLayout(self.variables)
        spaced(self._grid, manager, "xs")
        manager.changed.connect(self._space_grid)
        self._space_grid()
        self._grid.setColumnStretch(1, 2)
        self._grid.setColumnStretch(2, 1)
        column = QVBoxLayout(block)
        spaced(column, manager, "s", ("", "s"))
        for part in (self._environment, self.variables, self.certificates):
            column.addWidget(part)
        self.add(block)

    # What it is told

    def set_network(self, view: NetworkView) -> None:
        """How the Hub is reached, and where the models are."""
        self.view = view
        self.retranslate()

    def set_move(self, job: JobProgress | None) -> None:
        """How far the move of the folder is; None when none is under way."""
        self._moving = job
        self.retranslate()

    def show_settings(self, settings: Settings) -> None:
        """Puts the values into the controls."""
        self.endpoint.show_text(settings.hub_endpoint)
        kind = "none" if settings.proxy == NO_PROXY else "own" if settings.proxy else "auto"
        if kind != "auto":
            self._own_proxy = False
        self.proxy_kind.show_choice("own" if self._own_proxy else kind)
        if kind == "own" or self._own_proxy:
            self.proxy.show_text(settings.proxy if kind == "own" else "")
        else:
            self.proxy.clear()
        self.speed.show_value((settings.speed_limit or 0) / MIB)
        self.connections.show_value(settings.connections)
        self.retranslate()

    def open_dialog(self) -> QFileDialog:
        """Asks for another folder; it does not block."""
        dialog = QFileDialog(self.window(), self.tr("Model folder"), self.view.folder)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self._move)
        dialog.open()
        return dialog

    def retranslate(self) -> None:
        """What depends on the settings and on what was found."""
        view, moving = self.view, self._moving
        self.folder.path.set_whole(view.folder)
        self.folder.open.setEnabled(bool(view.folder))
        self.folder.change.setEnabled(moving is None)
        self.folder.block.setVisible(moving is not None)
        self.folder.moving.set_job(moving, self.tr("Moving the models"))
        self._show_problem(view)
        self.endpoint.setPlaceholderText(view.endpoint or f"https://{HUB}")
        origin = self._origin(view.endpoint_from)
        text = self.tr("Left empty, models come from Hugging Face. A mirror has an address of its own.")
        if origin:
            text = self.tr("In use: {address}, {origin}.").format(address=view.endpoint, origin=origin)
        self.endpoint_field.set_help(fitted(text))
        kinds = ((self.tr("Automatic"), "auto"), (self.tr("None"), "none"), (self.tr("One of my own"), "own"))
        self.proxy_kind.set_entries(kinds)
        own = self.proxy_kind.currentData() == "own"
        self.proxy_address.setVisible(own)
        text = self.tr("Automatic takes the system's proxy or HTTPS_PROXY.")
        origin = self._origin(view.proxy_from)
        if view.proxy and origin:
            text = self.tr("In use: {address}, {origin}.").format(address=view.proxy, origin=origin)
        self.proxy_field.set_help(fitted(text))
        self._show_token(view.token)
        self._show_variables(view.variables)

    def _show_problem(self, view: NetworkView) -> None:
        sentence, remedy = localised(view.sentence, view.remedy)
        if not sentence and view.offline:
            sentence = self.tr("{variable} is set: Tandem opens no connection and downloads nothing.")
            sentence = sentence.format(variable=offline_variable(view))
            remedy = self.tr("Start Tandem without that variable to download models.")
        self.problem.setVisible(bool(sentence))
        self.problem.set_text(fitted(sentence), fitted(remedy))

    def _show_token(self, where: str | None) -> None:
        places: dict[str, Callable[[], str]] = {
            "HF_TOKEN": lambda: self.tr("The one in HF_TOKEN is used."),
            "keyring": lambda: self.tr("One is kept in this system's keyring."),
            "file": lambda: self.tr("The one of the Hub's own login is used."),
        }
        none = self.tr("No token, and Gemma 4 needs none. A token raises the Hub's limits, and goes to the Hub alone.")
        self.token_help.setText(places[where]() if where in places else none)
        self.token.setAccessibleDescription(self.token_help.text())
        self.keep.setEnabled(bool(self.token.text().strip()))
        self.forget.setVisible(where == "keyring")

    def _show_variables(self, variables: Sequence[VariableView]) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.hide()
                old.deleteLater()
        if not variables:
            none = label(self.tr("None of the variables that count is set."), size="small", role="muted", wrap=True)
            self._grid.addWidget(none, 0, 0, 1, 2)
        effects: dict[str, str] = {
            "endpoint": self.tr("address of the Hub"),
            "token": self.tr("sign-in token"),
            "token-file": self.tr("place of the Hub's own login"),
            "proxy": self.tr("proxy"),
            "no-proxy": self.tr("hosts that need no proxy"),
            "offline": self.tr("no connection at all"),
            "certificates": self.tr("certificates"),
        }
        for line, variable in enumerate(variables):
            value = Elided(self._manager, "small", "text")
            value.set_whole(variable.shown)
            effect = label(effects.get(variable.effect, ""), size="small", role="muted", wrap=True)
            self._grid.addWidget(label(variable.name, size="small"), line, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(value, line, 1, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(effect, line, 2, Qt.AlignmentFlag.AlignTop)

    def _origin(self, source: str) -> str:
        """Where a value came from; "" where that goes without saying."""
        if source in ("", "default"):
            return ""
        if source == "settings":
            return self.tr("as set here")
        if source == "system":
            return self.tr("from the system")
        return self.tr("from {variable}").format(variable=source)

    def _space_grid(self) -> None:
        self._grid.setHorizontalSpacing(self._manager.theme.space.l)

    # What was changed

    def _move(self, folder: str) -> None:
        if folder and folder != self.view.folder:
            self.folder_move_requested.emit(folder)

    def _endpoint_written(self, text: str) -> None:
        problem = self._bad_address(text, ("https", "http"))
        self.endpoint_field.set_problem(problem)
        if not problem:
            self.change(hub_endpoint=text)

    def _proxy_chosen(self, kind: str) -> None:
        self._own_proxy = kind == "own" and not self._own()
        self.proxy_address.set_problem("")
        if kind != "own":
            self.change(proxy=NO_PROXY if kind == "none" else "")
        self.retranslate()
        if kind == "own":
            self.proxy.setFocus(Qt.FocusReason.OtherFocusReason)

    def _proxy_written(self, text: str) -> None:
        if self.proxy_kind.currentData() != "own":
            return
        problem = self._bad_address(text, ("http", "https"))
        self.proxy_address.set_problem(problem)
        if not problem:
            self._own_proxy = not text
            self.change(proxy=text)

    def _own(self) -> str:
        return "" if self.settings.proxy == NO_PROXY else self.settings.proxy

    def _bad_address(self, text: str, schemes: Sequence[str]) -> str:
        """What is wrong with an address, "" for nothing; an empty one is fine, and so is a bare host."""
        whole = text if "://" in text else f"{schemes[0]}://{text}"
        url = QUrl(whole, QUrl.ParsingMode.StrictMode)
        if not text or (url.isValid() and url.scheme().lower() in schemes and url.host()):
            return ""
        return self.tr("This is not an address, so it is not used. An address begins with {scheme}.").format(
            scheme=f"{schemes[0]}://"
        )

    def _keep(self) -> None:
        text = self.token.text().strip()
        if text:
            self.token.clear()
            self.token_keep_requested.emit(text)
