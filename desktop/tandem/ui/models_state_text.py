"""What is said about a pair's state, and what can be done about it: words, never widgets.

A card shows one mark and one main action. Both follow from the state alone, so that no card can say two things at once.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from PySide6.QtCore import QCoreApplication, QDate, QLocale

from tandem.models.catalog import catalog
from tandem.models.progress import FileProgress, JobProgress
from tandem.models.state import FileState
from tandem.ui.errors_text import localised
from tandem.ui.i18n import number, percent, size
from tandem.ui.kit import TextRole

if TYPE_CHECKING:
    from tandem.models.catalog import CatalogPair
    from tandem.models.overview import PairView

# Under a name of its own: after `QCoreApplication.translate(…)` lupdate puts the next `self.tr` into a false context.
translate = QCoreApplication.translate

Act = Literal["download", "cancel", "pause", "resume", "try-again", "start-again", "use", "verify", "stop-check", ""]
"""What a card's main button asks for; "" for nothing."""

Cure = Literal["settings", "other-source", ""]
"""What the button beside an error does; "" for none, as pressing the main button is what helps."""

MAIN: Final[frozenset[Act]] = frozenset({"download", "resume", "try-again", "start-again", "use", "verify"})
"""Actions that bring one further, and are drawn as such."""

ONLINE: Final[frozenset[Act]] = frozenset({"download", "resume", "try-again", "start-again"})
"""Actions that need the Hub."""

_CURES: Final[dict[str, Cure]] = {
    "address": "settings",
    "offline-mode": "settings",
    "unreachable": "settings",
    "proxy": "settings",
    "certificate": "settings",
    "portal": "settings",
    "sign-in": "settings",
    "gated": "settings",
    "keyring": "settings",
    "no-room": "settings",
    "disk-full": "settings",
    "disk": "settings",
    "pin-differs": "other-source",
    "wrong-header": "other-source",
    "missing-repo": "other-source",
    "missing-revision": "other-source",
    "missing-file": "other-source",
}

_S = FileState
_ACTS: Final[dict[FileState, Act]] = {
    _S.ABSENT: "download",
    _S.QUEUED: "cancel",
    _S.RESOLVING: "pause",
    _S.TRANSFERRING: "pause",
    _S.PAUSED: "resume",
    _S.FAILED: "try-again",
    _S.CHECKING: "pause",
    _S.INSTALLED: "use",
    _S.VERIFYING: "stop-check",
    _S.CHANGED: "verify",
    _S.MISSING: "download",
    _S.QUARANTINED: "start-again",
}
_ICONS: Final[dict[Act, str]] = {
    "download": "download",
    "cancel": "close",
    "pause": "pause",
    "resume": "play",
    "try-again": "refresh",
    "start-again": "refresh",
    "use": "chat",
    "verify": "check",
    "stop-check": "stop",
}
_GRAVE: Final = frozenset({_S.FAILED, _S.QUARANTINED})
_HASH: Final = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
_LONG: Final = re.compile(r"\S{25,}")
_BREAK: Final = 24
"""Characters of a word after which a line may end."""

_STEP_S: Final = 5
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400


class Words(NamedTuple):
    """A state as it is shown.

    Attributes:
        icon: The drawing.
        role: Its colour.
        text: The words.
    """

    icon: str
    role: TextRole
    text: str


class Action(NamedTuple):
    """A card's main button.

    Attributes:
        act: What it asks for, "" for a button that only says how it is.
        icon: The drawing.
        text: The words.
    """

    act: Act
    icon: str
    text: str


def words(state: FileState) -> Words:
    """A state's mark."""
    table: dict[FileState, Words] = {
        _S.ABSENT: Words("info", "muted", translate("ModelStates", "Not on this machine")),
        _S.QUEUED: Words("more", "muted", translate("ModelStates", "Waits for its turn")),
        _S.RESOLVING: Words("globe", "accent", translate("ModelStates", "Asking the Hub")),
        _S.TRANSFERRING: Words("download", "accent", translate("ModelStates", "Downloading")),
        _S.PAUSED: Words("pause", "muted", translate("ModelStates", "Paused")),
        _S.FAILED: Words("warning", "bad", translate("ModelStates", "Could not be downloaded")),
        _S.CHECKING: Words("search", "accent", translate("ModelStates", "Checking")),
        _S.INSTALLED: Words("check", "good", translate("ModelStates", "Installed")),
        _S.VERIFYING: Words("search", "accent", translate("ModelStates", "Verifying")),
        _S.CHANGED: Words("warning", "warn", translate("ModelStates", "Changed since it was checked")),
        _S.MISSING: Words("warning", "warn", translate("ModelStates", "Missing")),
        _S.QUARANTINED: Words("lock", "bad", translate("ModelStates", "Set aside")),
    }
    return table[state]


def action(state: FileState, *, in_use: bool = False) -> Action:
    """A card's main button in a state; `in_use` is of the pair that is loaded."""
    act = _ACTS[state]
    if act == "use" and in_use:
        return Action("", "check", translate("ModelStates", "In use"))
    table: dict[Act, str] = {
        "download": translate("ModelStates", "Download"),
        "cancel": translate("ModelStates", "Cancel"),
        "pause": translate("ModelStates", "Pause"),
        "resume": translate("ModelStates", "Resume"),
        "try-again": translate("ModelStates", "Try again"),
        "start-again": translate("ModelStates", "Start again"),
        "use": translate("ModelStates", "Use"),
        "verify": translate("ModelStates", "Verify files"),
        "stop-check": translate("ModelStates", "Stop"),
    }
    return Action(act, _ICONS[act], table[act])


def cure(fault: str, *, other_source: bool) -> Cure:
    """What the button beside an error of that kind does.

    Args:
        fault: See `tandem.models.errors.TransferFault`, "" for an unknown one.
        other_source: Whether the same model can be had from somebody else.
    """
    found = _CURES.get(fault, "")
    return "" if found == "other-source" and not other_source else found


def gravity(state: FileState) -> Literal["warn", "bad"]:
    """How grave it is that a download ended so: the kind of the message that says why, wherever it is said."""
    return "bad" if state in _GRAVE else "warn"


def source(pair: CatalogPair) -> str:
    """Who published a pair: "google · drafter: unsloth" where its drafter is somebody else's."""
    target, drafter = (file.repo.partition("/")[0] for file in pair.files)
    if target == drafter:
        return pair.source
    return translate("ModelStates", "{source} · drafter: {owner}").format(source=pair.source, owner=drafter)


def model_name(key: str) -> str:
    """What a pair's model is called; the key itself for one that the catalog does not have."""
    pair = catalog().pair(key)
    return key if pair is None else catalog().size_of(pair).name


def kept(view: PairView) -> JobProgress:
    """What is here of a download that no job works on, as a job that stands still."""
    files = tuple(FileProgress(file.name, file.state, file.done, file.total) for file in view.files)
    return JobProgress(view.key, files)


def job_state(job: JobProgress) -> FileState:
    """Where a job as a whole stands: the file at work decides, then what waits, then what ended worst."""
    if job.current is not None:
        return job.current.state
    states = [file.state for file in job.files]
    for state in (_S.FAILED, _S.QUARANTINED, _S.PAUSED, _S.QUEUED, _S.MISSING, _S.CHANGED, _S.ABSENT):
        if state in states:
            return state
    return _S.INSTALLED


def share(job: JobProgress) -> float:
    """How much of a job is done, 0 to 1; a hair under 1 until it is over, as people read 100 % as done."""
    if job.total <= 0:
        return 0.0
    done = min(1.0, job.done / job.total)
    return min(done, 0.999) if job.running else done


def percent_done(job: JobProgress) -> str:
    """The same for people, rounded down: "42%"."""
    return percent(int(share(job) * 100) / 100)


def amount(job: JobProgress) -> str:
    """Such as "1.1 GiB of 2.5 GiB · 42%"; of a job whose size nobody knows yet, what is here."""
    if job.total <= 0:
        return size(job.done) if job.done else ""
    text = translate("ModelStates", "{done} of {total} · {percent}")
    return text.format(done=size(job.done), total=size(job.total), percent=percent_done(job))


def speed(job: JobProgress) -> str:
    """Such as "12.3 MiB/s", "" while it is not known."""
    if job.bytes_per_s is None:
        return ""
    return translate("ModelStates", "{size}/s").format(size=size(round(job.bytes_per_s)))


def left(seconds: float | None) -> str:
    """Such as "3 min left", in steps that do not flicker; "" where it is not known."""
    if seconds is None or seconds < 0:
        return ""
    if seconds < _MINUTE - _STEP_S:
        text = translate("ModelStates", "{seconds} s left")
        return text.format(seconds=number(max(_STEP_S, -(-int(seconds) // _STEP_S) * _STEP_S)))
    minutes = round(seconds / _MINUTE)
    if seconds < _HOUR - _MINUTE / 2:
        return translate("ModelStates", "{minutes} min left").format(minutes=number(max(1, minutes)))
    if seconds > 2 * _DAY:
        return translate("ModelStates", "more than two days left")
    hours, minutes = divmod(minutes, _MINUTE)
    return translate("ModelStates", "{hours} h {minutes} min left").format(hours=number(hours), minutes=number(minutes))


def which_file(job: JobProgress) -> str:
    """Such as "gemma.gguf (file 1 of 2)", "" while none is worked on."""
    current = job.current
    if current is None:
        return ""
    if len(job.files) < 2:
        return current.name
    text = translate("ModelStates", "{name} (file {place} of {count})")
    return text.format(name=current.name, place=number(job.files.index(current) + 1), count=number(len(job.files)))


def waiting(job: JobProgress) -> str:
    """Why nothing comes in just now and when it is tried again; "" while something does."""
    if job.waiting is None:
        return ""
    why, _ = localised(job.waiting.sentence)
    text = translate("ModelStates", "{why} Try {attempt} begins in {seconds} s.")
    # Rounded up, so that no wait is said to be over while it lasts.
    seconds = max(0, -int(-job.waiting.seconds // 1))
    return text.format(why=why, attempt=number(job.waiting.attempt), seconds=number(seconds)).strip()


def day(time: str) -> str:
    """A moment, given in ISO 8601, as the day that it was here; "" for none."""
    try:
        when = datetime.fromisoformat(time).astimezone()
    except ValueError:
        return ""
    return QLocale().toString(QDate(when.year, when.month, when.day), QLocale.FormatType.ShortFormat)


def shortened(text: str) -> str:
    """A sentence with each sha256 cut to its beginning, which is enough to tell two apart."""
    return _HASH.sub(r"\1…", text)


def fitted(text: str) -> str:
    """The same, and a line may end within a word as long as a file's name or a path can be."""

    def breakable(match: re.Match[str]) -> str:
        word = match.group()
        return "\u200b".join(word[place : place + _BREAK] for place in range(0, len(word), _BREAK))

    return _LONG.sub(breakable, shortened(text))


def path_text(path: str | PurePath) -> str:
    """A path or name as it can be shown on one line: what is no character, or turns text around, is marked."""
    return "".join(character if character.isprintable() else "\ufffd" for character in str(path))
