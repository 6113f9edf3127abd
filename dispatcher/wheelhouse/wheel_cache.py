"""The wheels on this machine's disk: fetched by pip once, verified whenever they are used."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from dispatcher.errors import PermanentBackendError
from dispatcher.wheelhouse.pip import PipFailed, fetch
from dispatcher.wheelhouse.pythons import HostPython
from dispatcher.wheelhouse.wheels import Wheel

#: Names another folder for them.
VARIABLE = "BEQUEATH_WHEELS"

#: Wheels that pip could not get are not asked for again for so long (seconds).
REST_S = 300.0

#: Threads that visit machines ask at the same time, and one download serves them all.
_one_at_a_time = threading.Lock()


class WheelsMissing(PermanentBackendError):
    """Raised when wheels are neither here nor to be had; the text names the files to put here."""


class WheelCache:
    """A folder of wheels. From any thread, and for several processes at once.

    Args:
        folder: the user's cache, if not given; BEQUEATH_WHEELS names another one.
        fetch: downloads wheels into a folder; see :func:`dispatcher.wheelhouse.pip.fetch`.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        fetch: Callable[[Sequence[Wheel], HostPython, Path], None] = fetch,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        named = os.environ.get(VARIABLE)
        usual = Path(named) if named else platformdirs.user_cache_path("bequeath") / "wheels"
        self.folder = (folder or usual).expanduser().absolute()
        self._fetch = fetch
        self._clock = clock
        # Wheels that were asked for together and did not come: when, and why. One may be had
        # without the others: pip gets all or nothing.
        self._failed: dict[frozenset[Wheel], tuple[float, str]] = {}

    def get(self, wheels: Iterable[Wheel], host: HostPython) -> list[Path]:
        """The files, in the same order, each with the content that is on the list. Blocks while
        pip fetches what is not here: minutes at most.

        Raises:
            WheelsMissing: some are not here and cannot be fetched.
        """
        wanted = list(wheels)
        missing = [wheel for wheel in wanted if not self._has(wheel)]
        if missing:
            try:
                with _one_at_a_time, self._alone():
                    missing = [wheel for wheel in missing if not self._has(wheel)]
                    if missing:
                        self._fill(missing, host)
            except OSError as error:
                raise WheelsMissing(
                    f"the folder for wheels cannot be used: {error.strerror}",
                    hint=f"{VARIABLE} names another one",
                    where=str(self.folder),
                ) from error
        return [self.folder / wheel.file for wheel in wanted]

    def _has(self, wheel: Wheel) -> bool:
        path = self.folder / wheel.file
        return path.is_file() and digest_of(path) == wheel.digest

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / ".filling", "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _fill(self, missing: list[Wheel], host: HostPython) -> None:
        why = self._failed_lately(missing)
        if why is None:
            why = self._try(missing, host)
            if missing:
                self._failed[frozenset(missing)] = (self._clock(), why)
        if missing:
            files = "; ".join(f"{wheel.file} (sha256 {wheel.digest})" for wheel in missing)
            raise WheelsMissing(
                f"cannot be fetched for {host}: {', '.join(w.project for w in missing)}"
                + (f" ({why})" if why else ""),
                hint=f"put into {self.folder}: {files}",
            )

    def _try(self, missing: list[Wheel], host: HostPython) -> str:
        """Take the wheels that come out of the list; returns why the rest does not come."""
        why = ""
        with tempfile.TemporaryDirectory(prefix=".part-", dir=self.folder) as folder:
            try:
                self._fetch(missing, host, Path(folder))
            except PipFailed as error:
                why = str(error)
            for wheel in list(missing):
                came = Path(folder) / wheel.file
                if came.is_file() and digest_of(came) == wheel.digest:
                    shutil.move(came, self.folder / wheel.file)
                    missing.remove(wheel)
        return why

    def _failed_lately(self, wheels: Iterable[Wheel]) -> str | None:
        """The reason of a failure, if these or some of them were tried lately. Machines are visited
        often: where there is no way out, not each visit waits for that."""
        asked = frozenset(wheels)
        for failed, (at, why) in self._failed.items():
            if failed <= asked and self._clock() - at < REST_S:
                return why
        return None


def digest_of(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal. Reads all of it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
