"""A part of the section in a process of its own, with which all that it has started ends.

Daemons of schedulers outlive whoever has started them. So a part has process numbers of its own,
whose first process ends with the process that has asked for it, however that ends: the kernel then
ends all others. Its files lie below one folder, whose lock tells the next run that it is left.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.rows import Row, row

#: Where folders of parts are: on a disk, and in memory, where root file systems of containers are.
#: Paths of sockets in them may have 107 bytes.
BASES = (Path("/tmp"), Path("/dev/shm"))
_PREFIX = "bqe-"

#: The variable with the folder in memory.
IN_MEMORY = "BEQUEATH_BENCH_IN_MEMORY"


def rows_in_spaces(part: str, words: list[str], *, limit_s: float, network: bool) -> list[Row]:
    """Run a part, and return its rows; those that it had where it fails or is ended, and one more.

    Args:
        part: its name.
        words: its arguments.
        limit_s: it is ended after so long (seconds).
        network: whether it has this machine's network, not one with the loopback alone.
    """
    rows: list[Row] = []
    late = threading.Event()
    with _folders() as (folder, in_memory):
        process = subprocess.Popen(
            [*_spaces(network), sys.executable, *command_of(part, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(folder), IN_MEMORY: str(in_memory)},
        )
        clock = threading.Timer(limit_s, lambda: (late.set(), process.kill()))
        clock.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                with contextlib.suppress(ValueError):  # said by the way
                    rows.append(json.loads(line))
        finally:
            clock.cancel()
            process.kill()
            code = process.wait()
            if process.stdout is not None:
                process.stdout.close()
    if late.is_set():
        rows.append(_failed(part, f"not done within {limit_s / 60:.0f} minutes"))
    elif code:
        rows.append(_failed(part, f"its process has ended with {code}"))
    return rows


def command_of(part: str, words: list[str]) -> list[str]:
    """The arguments of the Python that prints a part's rows, one as JSON on each line."""
    return ["-m", f"{__package__}.part", part, *words]


def _failed(part: str, why: str) -> Row:
    return row(f"engines: {part}", "", "failed", None, why)


def _spaces(network: bool) -> list[str]:
    """What leads to process numbers of its own. The shell is their first process, which takes in
    those whose parents have ended."""
    if os.geteuid() != 0:
        return []  # then nothing is started that outlives its parent
    apart = ["--pid", "--fork", "--kill-child", "--mount-proc", *([] if network else ["--net"])]
    shell = f'{"" if network else "ip link set lo up && "}"$@"; exit $?'
    return ["setpriv", "--pdeathsig", "KILL", "unshare", *apart, "sh", "-c", shell, "sh"]


@contextmanager
def _folders() -> Iterator[tuple[Path, ...]]:
    """A folder below each of the bases; those that others have left are removed."""
    with contextlib.ExitStack() as stack:
        yield tuple(stack.enter_context(_folder(base)) for base in BASES)


@contextmanager
def _folder(base: Path) -> Iterator[Path]:
    for left in base.glob(f"{_PREFIX}*"):
        remove_if_left(left)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    folder.chmod(0o755)
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_if_left(folder: Path) -> bool:
    """Remove a part's folder, if the process that has made it is gone; whether it was."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True
