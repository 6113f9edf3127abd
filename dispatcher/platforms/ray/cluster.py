"""A cluster of Ray on this machine that lives for as long as somebody uses it.

The program that keeps one (:func:`main`), and how drivers of Ray start, use and end it
(:class:`LocalCluster`). It is run, and loaded, by a Python that has Ray, of any version from 3.9
on, so that it needs the standard library alone. A folder holds what they know of each other:

======== =====================================================================================
file     meaning
======== =====================================================================================
kept     locked by the program while it runs; in it the folder of Ray's own files
used     locked by each driver that uses the cluster; by the program once nobody may any more
address  the cluster's, and the program's number, once it is ready
token    what Ray asks of whoever connects: other users of this machine do not have it
======== =====================================================================================

Locks end with the processes that hold them, however these end. So a head that is gone leaves a
cluster behind for its lease at most, in which the next head finds it; and Ray's own processes end
with the program.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

#: Longest start of a cluster that is waited for (seconds), and of its end before it is killed.
START_S, END_S = 45.0, 10.0

#: Seconds between two looks whether somebody uses it.
LOOK_S = 0.5

#: Others may hold a lock for a moment, to see whether it is free (seconds).
MOMENT_S = 2.0

#: Memory of Ray's store of objects, of which nothing of ours makes use (bytes).
STORE_BYTES = 128 << 20


class NoCluster(Exception):
    """There is none. ``passing``: there may be one later."""

    def __init__(self, text: str, *, passing: bool) -> None:
        super().__init__(text)
        self.passing = passing


class LocalCluster:
    """The cluster of one folder, for a driver.

    Args:
        folder: on a disk of this machine; made if it is needed.
        program: the path of this file.
    """

    def __init__(self, folder: str, program: str) -> None:
        self._folder = Path(folder)
        self._program = program
        self._used: int | None = None
        self.started: list[subprocess.Popen[bytes]] = []  # by this process

    def prepare(self) -> None:
        """Let this process's Ray show what the cluster asks for. Before Ray is imported."""
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN_PATH"] = str(self._folder / "token")

    def address(self) -> str | None:
        """The address of the cluster that runs, which this process uses from now on; None if none
        does."""
        if not _is_locked(self._folder / "kept"):
            return None
        self._use()
        known = _read(self._folder / "address")
        return None if known is None else str(known["address"])

    def start(self, lease_s: float) -> str:
        """Start one, unless one runs, and return its address.

        Args:
            lease_s: it ends when nobody has used it for so long (seconds).
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._use()
        begin = _size(self._folder / "log")
        keeper = None
        if not _is_locked(self._folder / "kept"):
            _remove(self._folder / "address")
            keeper = self._keeper(lease_s)
            self.started.append(keeper)
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            known = _read(self._folder / "address")
            if known is not None:
                return str(known["address"])
            if keeper is not None and keeper.poll() is not None:
                text = f"Ray cannot start a cluster here: {_last_line(self._folder / 'log', begin)}"
                raise NoCluster(text, passing=False)
            time.sleep(0.05)
        raise NoCluster(f"Ray has not started a cluster within {START_S:.0f} s", passing=True)

    def end(self) -> None:
        """End the cluster, and all that runs in it."""
        known = _read(self._folder / "address")
        asked = time.monotonic()
        while _is_locked(self._folder / "kept"):
            if known is None or time.monotonic() - asked > 2 * END_S:
                raise NoCluster("its cluster does not end", passing=True)
            late = time.monotonic() - asked > END_S
            try:
                os.kill(known["pid"], signal.SIGKILL if late else signal.SIGTERM)
            except ProcessLookupError:
                pass
            time.sleep(0.2)
        _tidy(self._folder)
        self.forget()

    def forget(self) -> None:
        """Use it no more."""
        if self._used is not None:
            os.close(self._used)
            self._used = None

    def _use(self) -> None:
        """Have the program know that this process uses the cluster."""
        if self._used is not None:
            return
        file = os.open(self._folder / "used", os.O_RDWR | os.O_CREAT, 0o600)
        if not _locks(file, fcntl.LOCK_SH, MOMENT_S):
            os.close(file)
            raise NoCluster("the cluster that nobody has used is being ended", passing=True)
        self._used = file

    def _keeper(self, lease_s: float) -> subprocess.Popen[bytes]:
        token = self._folder / "token"
        if not token.exists():
            file = os.open(token, os.O_WRONLY | os.O_CREAT, 0o600)
            with open(file, "w") as out:
                out.write(secrets.token_hex(32))
        program = Path(self._program).read_text(encoding="utf-8")
        with open(self._folder / "log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", program, str(self._folder), str(lease_s)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",  # which Python looks for modules in
                env={"RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0", **os.environ},
                start_new_session=True,
            )


def keep(folder: Path, lease_s: float) -> None:
    """Start a cluster, and end it when that is asked for, or nobody has used it for the lease.

    Args:
        folder: as for :class:`LocalCluster`.
        lease_s: in seconds.
    """
    kept = os.open(folder / "kept", os.O_RDWR | os.O_CREAT, 0o600)
    if not _locks(kept, fcntl.LOCK_EX, MOMENT_S):
        sys.exit("another program keeps this cluster")
    _tidy(folder)
    files = tempfile.mkdtemp(prefix="bq-ray-")
    os.pwrite(kept, files.encode(), 0)
    os.ftruncate(kept, len(files.encode()))
    ray = importlib.import_module("ray")
    asked = threading.Event()
    try:
        ray.init(
            address="local",
            include_dashboard=False,
            object_store_memory=STORE_BYTES,
            log_to_driver=False,
            _node_ip_address="127.0.0.1",
            _temp_dir=files,
        )
        signal.signal(signal.SIGTERM, lambda *_: asked.set())
        address = ray.get_runtime_context().gcs_address
        new = folder / "address.new"
        new.write_text(json.dumps({"address": address, "pid": os.getpid()}))
        new.replace(folder / "address")
        _wait_for_the_end(folder / "used", lease_s, asked)
    finally:
        _remove(folder / "address")
        ray.shutdown()
        _tidy(folder)


def _wait_for_the_end(path: Path, lease_s: float, asked: threading.Event) -> None:
    """Wait until it is asked for, or nobody has used it for the lease; nobody may use it then."""
    used = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    free_since = None
    while not asked.wait(LOOK_S):
        now = time.monotonic()
        if not _locks(used, fcntl.LOCK_EX, 0.0):
            free_since = None
        elif free_since is None:
            free_since = now
        elif now - free_since >= lease_s:
            return  # with the lock
        fcntl.flock(used, fcntl.LOCK_UN)


def _tidy(folder: Path) -> None:
    """Remove what is left of a cluster that has ended."""
    try:
        files = (folder / "kept").read_text().strip()
    except FileNotFoundError:
        return
    if Path(files).name.startswith("bq-ray-"):
        shutil.rmtree(files, ignore_errors=True)
    _remove(folder / "address")


def _locks(file: int, how: int, within_s: float) -> bool:
    """Take a lock; whether it was to be had."""
    until = time.monotonic() + within_s
    while True:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)


def _is_locked(path: Path) -> bool:
    """Whether a process holds this file's lock."""
    try:
        file = os.open(path, os.O_RDWR)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        return not _locks(file, fcntl.LOCK_EX, 0.0)
    finally:
        os.close(file)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        known: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return known


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _last_line(path: Path, begin: int) -> str:
    """The last line that was written behind this place."""
    with open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(begin, end - 4096))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it says nothing")[
        -300:
    ]


def main() -> None:
    """``FOLDER LEASE_S``: see :func:`keep`."""
    keep(Path(sys.argv[1]), float(sys.argv[2]))


if __name__ == "__main__":
    main()
