"""What errors say of downloads, of the Hub, and of model files on the disk; see `tandem.ui.errors_text`."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QT_TRANSLATE_NOOP

from tandem.ui.literals import texts

_HUB: Final = texts(
    QT_TRANSLATE_NOOP("Errors", "{file} on the Hub is not the file that Tandem knows: {found} there, {pinned} here."),
    QT_TRANSLATE_NOOP("Errors", "Update Tandem, or choose the other source of this model."),
    QT_TRANSLATE_NOOP("Errors", "{host} has had too many requests from here and asks to wait for {wait}."),
    QT_TRANSLATE_NOOP("Errors", "Wait, then try again; signing in to the Hub raises the limit."),
    QT_TRANSLATE_NOOP("Errors", "{host} gives no sha256 for {file}, so that it cannot be checked."),
    QT_TRANSLATE_NOOP("Errors", "{repository} at {host} has no {file}."),
    QT_TRANSLATE_NOOP("Errors", "The certificate of {host} is not trusted by this system."),
    QT_TRANSLATE_NOOP(
        "Errors",
        "Check this computer's clock; a proxy that inspects traffic needs its certificate in the system's store.",
    ),
    QT_TRANSLATE_NOOP("Errors", "No secure connection to {host} could be made."),
    QT_TRANSLATE_NOOP(
        "Errors",
        "Check the Hub address and the proxy in Settings; a network that wants a sign-in can be the cause too.",
    ),
    QT_TRANSLATE_NOOP("Errors", "The proxy {proxy}, through which {host} is reached, does not answer."),
    QT_TRANSLATE_NOOP("Errors", "Check the proxy in Settings and the variables HTTPS_PROXY and ALL_PROXY."),
    QT_TRANSLATE_NOOP("Errors", "The proxy {proxy} cannot reach {host}."),
    QT_TRANSLATE_NOOP("Errors", "The proxy {proxy} asks for a name and a password."),
    QT_TRANSLATE_NOOP("Errors", "Give the proxy in Settings as http://name:password@host:port."),
    QT_TRANSLATE_NOOP("Errors", "The proxy {proxy} does not let anything through to {host}."),
    QT_TRANSLATE_NOOP("Errors", "Check the proxy in Settings, or ask who runs it to allow this host."),
    QT_TRANSLATE_NOOP("Errors", "The proxy {proxy} speaks SOCKS, which Tandem does not."),
    QT_TRANSLATE_NOOP("Errors", "Give an HTTP proxy as http://host:port in Settings, or none to go without."),
    QT_TRANSLATE_NOOP("Errors", "The proxy {proxy} is no address of a proxy."),
    QT_TRANSLATE_NOOP("Errors", "Give it as http://host:port in Settings, or none to go without."),
    QT_TRANSLATE_NOOP("Errors", "{host} did not answer in time."),
    QT_TRANSLATE_NOOP("Errors", "The address of {host} was not found."),
    QT_TRANSLATE_NOOP("Errors", "{host} cannot be reached."),
    QT_TRANSLATE_NOOP("Errors", "{host} leads from one address to the next without end."),
    QT_TRANSLATE_NOOP("Errors", "The connection to {host} broke off."),
    QT_TRANSLATE_NOOP(
        "Errors", "Check the internet connection; where the Hub is blocked, set a mirror or a proxy in Settings."
    ),
    QT_TRANSLATE_NOOP("Errors", "Try again; what came in so far is kept."),
    QT_TRANSLATE_NOOP("Errors", "Choose the other source of this model, or update Tandem."),
    QT_TRANSLATE_NOOP(
        "Errors",
        "Open a web browser and sign in to this network, or check the Hub address in Settings; then try again.",
    ),
    QT_TRANSLATE_NOOP("Errors", "Sign in with a token in Settings, or choose the other source of this model."),
    QT_TRANSLATE_NOOP("Errors", "Offline mode is on, so {host} was not asked."),
    QT_TRANSLATE_NOOP("Errors", "Unset {variable} and start Tandem again, or import the files from this computer."),
    QT_TRANSLATE_NOOP("Errors", "What answered as {host} is not the Hub but some other page."),
    QT_TRANSLATE_NOOP("Errors", "The pinned revision of {thing} is no longer at {host}."),
    QT_TRANSLATE_NOOP("Errors", "{thing} is no longer at {host}."),
    QT_TRANSLATE_NOOP("Errors", "{host} has disabled {thing}."),
    QT_TRANSLATE_NOOP("Errors", "{host} has no {thing}."),
    QT_TRANSLATE_NOOP("Errors", "{host} answered with error {number}."),
    QT_TRANSLATE_NOOP("Errors", "{host} answered with status {number}, which makes no sense here."),
    QT_TRANSLATE_NOOP("Errors", "{host} does not accept your token for {thing}."),
    QT_TRANSLATE_NOOP("Errors", "Give a new token in Settings, or remove the old one: most models need none."),
    QT_TRANSLATE_NOOP(
        "Errors", "{host} shows no {thing} to somebody who is not signed in; it is private, or no longer there."
    ),
    QT_TRANSLATE_NOOP("Errors", "{host} does not give {thing} to your account."),
    QT_TRANSLATE_NOOP("Errors", "Ask for access on its page at {address}, then try again."),
    QT_TRANSLATE_NOOP("Errors", "{host} gives {thing} only to people who asked for access."),
    QT_TRANSLATE_NOOP("Errors", "Ask for access on its page at {address}, then sign in with a token in Settings."),
    QT_TRANSLATE_NOOP("Errors", "{host} sends {file} compressed, which it was asked not to do."),
    QT_TRANSLATE_NOOP("Errors", "{host} cannot go on with {file} where it stopped."),
    QT_TRANSLATE_NOOP("Errors", "{host} sends other bytes of {file} than those it was asked for."),
    QT_TRANSLATE_NOOP("Errors", "{host} sends another number of bytes of {file} than it was asked for."),
    QT_TRANSLATE_NOOP("Errors", "{file} changes at {host} while it is downloaded."),
    QT_TRANSLATE_NOOP("Errors", "Nothing came from {host} for {number} seconds."),
    QT_TRANSLATE_NOOP("Errors", "The address of the Hub, {address}, is no web address."),
    QT_TRANSLATE_NOOP("Errors", "Give it as https://host, with a path behind it if the mirror has one."),
    QT_TRANSLATE_NOOP("Errors", "The address of the Hub has a name or a password in it."),
    QT_TRANSLATE_NOOP("Errors", "Leave them out, and give a token instead."),
    QT_TRANSLATE_NOOP("Errors", "This system has no keyring that Tandem can use."),
    QT_TRANSLATE_NOOP("Errors", "Set HF_TOKEN, or sign in with the command hf auth login; Tandem finds both."),
    QT_TRANSLATE_NOOP("Errors", "This is no token of the Hub."),
    QT_TRANSLATE_NOOP("Errors", "Copy it again from the access tokens in your account's settings there."),
)

_FILES: Final = texts(
    QT_TRANSLATE_NOOP("Errors", "Tandem's list of models is damaged."),
    QT_TRANSLATE_NOOP("Errors", "There is no model {key} in Tandem's list."),
    QT_TRANSLATE_NOOP("Errors", "Choose one of the page Models."),
    QT_TRANSLATE_NOOP("Errors", "The disk of {folder} is full."),
    QT_TRANSLATE_NOOP("Errors", "Make room on that disk, then go on."),
    QT_TRANSLATE_NOOP("Errors", "The disk of {folder} has {free} free, and {needed} are needed."),
    QT_TRANSLATE_NOOP("Errors", "Make room on that disk, or choose a model folder on another one in the settings."),
    QT_TRANSLATE_NOOP("Errors", "Tandem may not write to {folder}."),
    QT_TRANSLATE_NOOP("Errors", "Choose another model folder in the settings, or change this one's permissions."),
    QT_TRANSLATE_NOOP("Errors", "The disk of {folder} cannot hold files as large as this one."),
    QT_TRANSLATE_NOOP("Errors", "Choose a model folder on another disk in the settings."),
    QT_TRANSLATE_NOOP("Errors", "The folder {folder} is not there."),
    QT_TRANSLATE_NOOP("Errors", "Connect its disk, or choose another model folder in the settings."),
    QT_TRANSLATE_NOOP("Errors", "{folder} cannot be read or written: {reason}."),
    QT_TRANSLATE_NOOP("Errors", "In {folder}, something else has the name {name}."),
    QT_TRANSLATE_NOOP("Errors", "Move it out of the way, then try again."),
    QT_TRANSLATE_NOOP("Errors", "Another program is changing the models in {folder}."),
    QT_TRANSLATE_NOOP("Errors", "Wait for it to finish, then try again."),
    QT_TRANSLATE_NOOP("Errors", "{name} is being written by another program."),
    QT_TRANSLATE_NOOP("Errors", "Wait for it to finish."),
    QT_TRANSLATE_NOOP("Errors", "{name} is being downloaded."),
    QT_TRANSLATE_NOOP("Errors", "{name} is being downloaded by another Tandem."),
    QT_TRANSLATE_NOOP("Errors", "Wait until it is done there, or pause it there and resume it here."),
    QT_TRANSLATE_NOOP("Errors", "{name} is not a Gemma 4 model: its architecture is {architecture}."),
    QT_TRANSLATE_NOOP("Errors", "Choose a Gemma 4 model."),
    QT_TRANSLATE_NOOP("Errors", "Pause the download, then move the folder."),
    QT_TRANSLATE_NOOP("Errors", "There is another file named {name} in {folder}."),
    QT_TRANSLATE_NOOP("Errors", "Move or remove that file, or choose another folder."),
    QT_TRANSLATE_NOOP("Errors", "{folder} lies in the model folder that is to be moved."),
    QT_TRANSLATE_NOOP("Errors", "{folder} is a folder of the old model folder, by another name."),
    QT_TRANSLATE_NOOP("Errors", "{name} in the model folder is not finished."),
    QT_TRANSLATE_NOOP("Errors", "Choose a folder outside of it."),
    QT_TRANSLATE_NOOP("Errors", "{name} has {size} bytes and should have {expected}."),
    QT_TRANSLATE_NOOP("Errors", "Start its download again."),
    QT_TRANSLATE_NOOP("Errors", "Start its download again, or choose the other source of this model."),
    QT_TRANSLATE_NOOP("Errors", "{name} is not the file it should be: its sha256 is {found}…, not {expected}…."),
    QT_TRANSLATE_NOOP("Errors", "Start its download again; this one was set aside."),
    QT_TRANSLATE_NOOP("Errors", "Import it again from where it came; this one was set aside."),
    QT_TRANSLATE_NOOP("Errors", "{name} was another file than it should be; the right one has taken its place."),
    QT_TRANSLATE_NOOP("Errors", "Remove the set-aside file if you do not need it."),
    QT_TRANSLATE_NOOP("Errors", "{name} is no longer in {folder}."),
    QT_TRANSLATE_NOOP("Errors", "Connect its disk, or get the file again."),
    QT_TRANSLATE_NOOP("Errors", "There is nothing to compare {name} with: its sha256 is not known."),
    QT_TRANSLATE_NOOP("Errors", "It can be used; remove it and download it again to be sure of it."),
    QT_TRANSLATE_NOOP("Errors", "{name} was found on the disk and has not been verified yet."),
    QT_TRANSLATE_NOOP("Errors", "Verify the file."),
    QT_TRANSLATE_NOOP("Errors", "{name} has changed since it was checked."),
    QT_TRANSLATE_NOOP("Errors", "Verify the file: if it is still the right one, it can be used again."),
    QT_TRANSLATE_NOOP(
        "Errors", "{name} is not the file it was when it was added. It was left where it is and is not used."
    ),
    QT_TRANSLATE_NOOP("Errors", "Remove it from the list, then get it again."),
    QT_TRANSLATE_NOOP("Errors", "{name} was written to while it was read."),
    QT_TRANSLATE_NOOP("Errors", "Import it when nothing writes to it any more."),
    QT_TRANSLATE_NOOP("Errors", "Verify it again when nothing writes to it."),
    QT_TRANSLATE_NOOP("Errors", "{name} has changed since it was looked at."),
    QT_TRANSLATE_NOOP("Errors", "Import it again."),
    QT_TRANSLATE_NOOP("Errors", "{name} is not what it was when it was checked."),
    QT_TRANSLATE_NOOP("Errors", "Verify it, or get it again."),
    QT_TRANSLATE_NOOP("Errors", "The copy of {name} is not what was written: its disk may be failing."),
    QT_TRANSLATE_NOOP("Errors", "Check that disk, or choose another one."),
)

NOTES: Final = texts(
    QT_TRANSLATE_NOOP("Errors", "Its licence is not known: see to it yourself that you may use it."),
    QT_TRANSLATE_NOOP("Errors", "Nothing in it says that it was trained for its quantisation (QAT)."),
    QT_TRANSLATE_NOOP("Errors", "It is not a Gemma 4 model: Tandem can chat with it, without a drafter of its own."),
    QT_TRANSLATE_NOOP("Errors", "It is on another drive, where no hard link is possible: it is copied instead."),
    QT_TRANSLATE_NOOP(
        "Errors", "The two files are given the wrong way round: the first is the drafter, the second the target."
    ),
    QT_TRANSLATE_NOOP(
        "Errors",
        "The target says that it was trained for its quantisation (QAT), the drafter does not: "
        "a drafter of another training may get fewer of its tokens accepted.",
    ),
    QT_TRANSLATE_NOOP(
        "Errors",
        "The drafter says that it was trained for QAT, the target does not: "
        "a drafter of another training may get fewer of its tokens accepted.",
    ),
)
"""What is worth knowing of a file or a pair, and no error."""

SENTENCES: Final = _HUB + _FILES + NOTES

PHRASES: Final = texts(
    QT_TRANSLATE_NOOP("Errors", "a while"),
    QT_TRANSLATE_NOOP("Errors", "{seconds} seconds"),
)
"""What other places can hold."""
