"""The download of a pair: both files as one job, from the Hub's answer to two installed files.

Before the first byte the Hub is asked for both, and there must be room for both. A file becomes installed only when
its size, sha256 and header agree. However a job ends, running another one for the same pair goes on where it stopped.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Final

from tandem.errors import TandemError
from tandem.models.catalog import CatalogFile, CatalogPair
from tandem.models.disk import disk_error, require_room
from tandem.models.errors import TransferError
from tandem.models.hub import Hub, Resolved
from tandem.models.job import Job
from tandem.models.locks import PartLock
from tandem.models.pace import Limit
from tandem.models.part import Part, PartRecord, read_record
from tandem.models.problems import wrong_hash
from tandem.models.progress import FileProgress, JobProgress, Report, nobody
from tandem.models.retries import Retries, answered
from tandem.models.state import FileState
from tandem.models.stop import Stop, Stopped
from tandem.models.store import Store
from tandem.models.transfer import Options as Options
from tandem.models.transfer import Transfer

PAUSING: Final[frozenset[str]] = frozenset({"disk-full", "busy"})
"""Faults that only pause a file. After all others it has failed: it was tried often enough, or cannot be."""

_S = FileState


class Download:
    """The download of what is missing of a pair. For one run: make another one to resume.

    Args:
        pair: What.
        store: Where to.
        hub: Where from; the caller closes it.
        options: How.
        report: Gets the news, in the thread that runs it.
    """

    def __init__(
        self, pair: CatalogPair, store: Store, hub: Hub, options: Options | None = None, report: Report = nobody
    ) -> None:
        self.pair: Final = pair
        self._store = store
        self._hub = hub
        self._options = options or Options()
        self._stop = Stop()
        self._limit = Limit(self._options.bytes_per_s)
        self._job = Job(pair.key, [FileProgress(file.file, _S.ABSENT, 0, file.size) for file in pair.files], report)
        with suppress(TandemError):  # if it cannot be known now, `run` says why
            self._job.begin([self._before(file) for file in pair.files])
        self._retries = Retries(self._options.tries, self._options.backoff_s, self._stop, self._job.waits)
        self._locks: dict[int, PartLock] = {}
        self._part: Part | None = None
        self._resolved: dict[int, Resolved] = {}
        self._at = 0  # the file that is worked on
        self._running = threading.Lock()

    @property
    def progress(self) -> JobProgress:
        """How far it is; after `run` the way it ended."""
        return self._job.progress

    def pause(self) -> None:
        """Ends it soon; what came in is kept. From any thread."""
        self._stop.set("pause")

    def cancel(self, keep: bool) -> None:
        """Ends it soon. From any thread.

        Args:
            keep: Whether what came in is kept, so that it can go on later.
        """
        self._stop.set("pause" if keep else "cancel")

    def limit(self, bytes_per_s: int | None) -> None:
        """Another speed limit from now on; None for none. From any thread."""
        self._limit.change(bytes_per_s)

    def run(self) -> JobProgress:
        """Does it; returns when both files are installed, or it was paused or cancelled.

        Returns:
            The way it ended.

        Raises:
            TransferError: It cannot go on now; `progress` says how far it came and why it ended.
            TandemError: Likewise, for what is not about the transfer.
        """
        if not self._running.acquire(blocking=False):
            raise RuntimeError("a download runs once")
        try:
            self._fetch_missing()
        except Stopped as stopped:
            self._on_stopped(stopped)
        except OSError as error:
            problem = disk_error(error, self._store.folder)
            self._on_failed(problem)
            raise problem from error
        except TandemError as error:
            self._on_failed(error)
            raise
        finally:
            self._leave()
        return self.progress

    # --- what is done

    def _fetch_missing(self) -> None:
        self._job.begin([self._before(file) for file in self.pair.files])
        missing = [at for at, _file in enumerate(self.pair.files) if self._job.state(at) is not _S.INSTALLED]
        if not missing:
            self._job.tell()
            return
        for at in missing:
            self._job.step(at, _S.QUEUED)
        for at in missing:
            self._at = at
            self._locks[at] = PartLock(self._store.part(self.pair.files[at]))
            try:
                self._locks[at].acquire()
            except TransferError:
                del self._locks[at]
                raise
        self._stop.check()
        self._job.step(missing[0], _S.RESOLVING)
        for at in missing:
            self._at = at
            self._resolve(at)
        self._at = missing[0]
        self._require_room(missing)
        for at in missing:
            self._at = at
            self._job.step(at, _S.RESOLVING)
            self._fetch(at, self.pair.files[at], self._resolved[at])

    def _resolve(self, at: int) -> None:
        file, hub = self.pair.files[at], self._hub
        seconds = 2 * self._options.stall_s
        resolved = self._retries(lambda: answered(lambda: hub.resolve(file), self._stop, seconds, hub.network.host))
        self._resolved[at] = resolved
        self._job.size(at, self._usable(at), resolved.bytes)
        self._job.tell()

    def _require_room(self, missing: list[int]) -> None:
        """Room for what is missing of both files, before the first byte.

        Raises:
            TransferError: "no-room".
        """
        needed = 0
        for at in missing:
            needed += self._resolved[at].bytes - self._usable(at)
        require_room(self._store.folder, needed)

    def _usable(self, at: int) -> int:
        """Bytes of a part that a resume goes on with."""
        file, resolved = self.pair.files[at], self._resolved[at]
        part = self._store.part(file)
        record = read_record(self._store.record_of(part))
        if record is None or (record.sha256, record.bytes) != (resolved.sha256, resolved.bytes):
            return 0
        return min(record.synced, self._store.part_bytes(file))

    def _fetch(self, at: int, file: CatalogFile, resolved: Resolved) -> None:
        """Gets one file, checks it, installs it."""
        path = self._store.part(file)
        wanted = PartRecord(resolved.repo, resolved.file, resolved.commit, resolved.sha256, resolved.bytes)
        part = self._part = Part(path, self._store.record_of(path), wanted)
        if self._usable(at):  # all of it is read for the sha256, which takes a while
            part.open(self._stop, lambda done: self._job.came(at, done, 0))
        else:
            part.open(self._stop)
        self._job.quiet()
        self._job.size(at, part.size)
        if part.size < resolved.bytes:
            self._job.step(at, _S.TRANSFERRING)

            def news(received: int) -> None:
                self._job.came(at, part.size, received)

            transfer = Transfer(self._hub, resolved, part, self._stop, self._limit, self._options, self._retries, news)
            transfer.run()
        self._job.quiet()
        self._job.size(at, part.size)
        self._job.step(at, _S.CHECKING)
        self._stop.check()
        self._check(at, file, resolved, part)

    def _check(self, at: int, file: CatalogFile, resolved: Resolved, part: Part) -> None:
        found = part.sha256()
        part.flush()
        part.close(keep=False)
        self._part = None
        if found != resolved.sha256:
            error = wrong_hash(file.file, resolved.sha256, found)
            self._store.quarantine(part.path, error, file, expected=resolved.sha256, found=found)
            raise error
        self._store.install(file, part.path, found, resolved.commit, resolved.bytes, self.pair.licence)
        self._job.step(at, _S.INSTALLED)
        self._locks.pop(at).release()

    # --- how it ends

    def _on_stopped(self, stopped: Stopped) -> None:
        drop = stopped.why == "cancel"
        self._note_size()
        if drop:
            if self._part is not None:
                self._part.close(keep=False)
            try:
                for at in self._locks:
                    self._store.remove_part(self.pair.files[at], held=True)
            except TransferError as error:  # then it is kept
                self._on_failed(error)
                raise
        for at, file in enumerate(self.progress.files):
            if file.state not in (_S.INSTALLED, _S.ABSENT):
                if drop:
                    self._job.size(at, 0)
                self._job.step(at, _S.ABSENT if drop else _S.PAUSED)

    def _on_failed(self, error: TandemError) -> None:
        self._job.ended(error)
        self._note_size()
        for at, file in enumerate(self.progress.files):
            if at == self._at:
                self._job.step(at, *_way_out(file.state, str(getattr(error, "fault", ""))))
            elif file.state not in (_S.INSTALLED, _S.ABSENT):
                self._job.step(at, _S.PAUSED if self._store.part_bytes(self.pair.files[at]) else _S.ABSENT)

    def _note_size(self) -> None:
        if self._part is not None:
            # One that was still being read is larger than what was read of it.
            self._job.size(self._at, max(self._part.size, self._usable(self._at)))

    def _leave(self) -> None:
        """After the end was told: flushing may take a moment."""
        if self._part is not None:
            self._part.close()
            self._part = None
        for lock in self._locks.values():
            lock.release()
        self._locks.clear()
        for at, file in enumerate(self.pair.files):
            if self._job.state(at) is not _S.INSTALLED:
                with suppress(OSError):
                    self._store.tidy(self._store.part(file).parent)

    def _before(self, file: CatalogFile) -> FileProgress:
        """A file as it is before the job begins."""
        found = self._store.find(file)
        if found is not None:
            return FileProgress(file.file, _S.INSTALLED, found.bytes, found.bytes)
        here = self._store.part_bytes(file)
        return FileProgress(file.file, _S.PAUSED if here else _S.ABSENT, here, file.size)


def _way_out(state: FileState, fault: str) -> tuple[FileState, ...]:
    """How a file in that state gets to where such a fault leaves it."""
    if state is _S.CHECKING and fault in ("wrong-hash", "wrong-size", "wrong-header"):
        return (_S.QUARANTINED,)
    begun = (_S.QUEUED,) if state in (_S.ABSENT, _S.PAUSED) else ()
    if fault in PAUSING:
        return (*begun, _S.PAUSED)
    resolving = (_S.RESOLVING,) if begun or state is _S.QUEUED else ()
    return (*begun, *resolving, _S.FAILED)
