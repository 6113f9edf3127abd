"""``python -m trial_runtime.agent.attending``: finds, starts, checks or ends an agent on this
machine for a head on another one.

Reads one order (JSON) from stdin, writes one answer (JSON) to stdout, and ends. Secrets come by
stdin, and go into files of mode 0600 in a folder of mode 0700 or into the environment of the
agent.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, Optional

import msgspec
from msgspec.structs import replace

from trial_runtime.agent.config import AgentConfig, encode_config
from trial_runtime.agent.processes.launching import start_agent
from trial_runtime.agent.processes.record import (
    AgentRecord,
    config_path,
    is_running,
    read_record,
    record_path,
    write_private,
)
from trial_runtime.agent.processes.sweep import kill_sessions_below
from trial_runtime.retry import Retry
from trial_runtime.run_folder import RunFolderTaken, run_folder_below
from trial_runtime.trial_wire import VERSION

#: What SIGKILL may take until a process is gone (seconds).
KILL_S = 5.0

#: The part of an agent's log that is sent to say why it ended (bytes).
LOG_TAIL_BYTES = 2000


class Order(msgspec.Struct, frozen=True, omit_defaults=True):
    """An order about the agent of ``worker`` in ``folder`` (the experiment's, on this host).

    ``ensure``: take the agent up, or start one with ``config``, which lacks the folder for
    sockets: only this host knows it. ``take up``: the same, but none is started. ``look``: whether
    it runs. ``end``: wait ``grace_s`` for its end, then kill it, with all that it ran; with ``ask``
    it gets SIGTERM first. ``epoch``: of the head that gives the order. ``number``: of its orders,
    rising, so that one by a dead connection does not undo a later one; 0: none.
    """

    verb: Literal["ensure", "take up", "look", "end"]
    folder: str
    worker: str
    config: Optional[AgentConfig] = None
    environment: dict[str, str] = {}
    grace_s: float = 0.0
    ask: bool = False
    epoch: int = 0
    number: int = 0


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of an order.

    ``pid``: 0 if there is no agent. ``trouble``: the reason why there can be none, or the end of
    the log of one that has ended. ``outdated``: it runs, with another version of our code than it
    would be started with now.
    """

    pid: int = 0
    fresh: bool = False
    trouble: str = ""
    outdated: bool = False


def attend(order: Order) -> Answer:
    """Carry out an order, unless a later one has overtaken it.

    Blocks for ``grace_s`` and some seconds at most, and while another order about the same agents
    is carried out. Raises ``OSError``.
    """
    with _alone(Path(order.folder)) as newest:
        if order.number:
            mark = (order.epoch, order.number)
            if _is_overtaken(mark, _read(newest), order):
                return Answer(trouble="an order that was given later has been carried out")
            newest.seek(0)
            newest.truncate()
            newest.write(b"%d %d" % mark)
            newest.flush()
        return _attend(order)


@contextmanager
def _alone(folder: Path) -> Iterator[BinaryIO]:
    """Hold the lock of the folder's agents.

    A process whose connection broke goes on here, while its head has connected anew and repeats
    the order: both would start an agent.
    """
    with open(run_folder_of(folder) / "attending", "a+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # on a disk of this host; ends with its process
        yield lock


def _read(newest: BinaryIO) -> tuple[int, int]:
    """Epoch and number of the order that was carried out last."""
    newest.seek(0)
    epoch, _, number = newest.read(64).partition(b" ")
    return (int(epoch), int(number)) if epoch.isdigit() and number.isdigit() else (0, 0)


def _is_overtaken(mark: tuple[int, int], newest: tuple[int, int], order: Order) -> bool:
    """Whether a later order was carried out already.

    Of two orders of one head the later one counts. Of two heads the later one does while an
    agent runs: an experiment that was restored from a backup may count from an earlier one.
    """
    if mark >= newest or mark[0] == newest[0]:
        return mark < newest
    record = read_record(record_path(Path(order.folder), order.worker))
    return record is not None and is_running(record)


def _attend(order: Order) -> Answer:
    folder = Path(order.folder)
    if order.verb in ("ensure", "take up"):
        return _ensure(order, folder)
    record = read_record(record_path(folder, order.worker))
    if order.verb == "look":
        if record is not None and is_running(record):
            return Answer(record.pid)
        return Answer(trouble=_log_tail(folder))
    if record is not None:
        _end(record, order)
    _sweep(folder)
    for path in (record_path(folder, order.worker), config_path(folder, order.worker)):
        path.unlink(missing_ok=True)  # keys of an experiment that is over here
    return Answer()


def _ensure(order: Order, folder: Path) -> Answer:
    config = order.config
    assert config is not None
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    record = read_record(record_path(folder, order.worker))
    runs = record is not None and is_running(record)
    if order.verb == "take up" and not runs:
        return Answer(trouble=_log_tail(folder))
    # It reads this again when it looks for its head, which may be at another address now.
    config = replace(config, run_folder=str(run_folder_of(folder)))
    write_private(config_path(folder, order.worker), encode_config(config))
    if runs:
        assert record is not None
        if record.wire == VERSION:
            return Answer(record.pid, outdated=_is_outdated(record, config))
        _end(record, order)  # nobody could talk with it
    if record is not None:
        _sweep(folder)
    return Answer(start_agent(folder, order.worker, order.environment).pid, fresh=True)


def _is_outdated(record: AgentRecord, config: AgentConfig) -> bool:
    """Whether the agent runs another version of our package, whose folders have its digest."""
    wanted = os.path.basename(config.runtime)
    return bool(wanted) and os.path.basename(record.runtime) != wanted


def _end(record: AgentRecord, order: Order) -> None:
    if order.ask and is_running(record):
        _signal(record, signal.SIGTERM)
    if not _wait_until_gone(record, order.grace_s):
        _signal(record, signal.SIGKILL)
        _wait_until_gone(record, KILL_S)


def _wait_until_gone(record: AgentRecord, limit_s: float) -> bool:
    tries = Retry(0.05, 0.05)
    while is_running(record):
        if not tries.pause(limit_s):
            return False
    return True


def _signal(record: AgentRecord, number: int) -> None:
    try:
        os.kill(record.pid, number)
    except ProcessLookupError:
        pass


def _sweep(folder: Path) -> None:
    """End the processes that an agent which is gone has left running."""
    kill_sessions_below(str(run_folder_of(folder)))


def run_folder_of(folder: Path) -> Path:
    """The folder for sockets, not below XDG_RUNTIME_DIR, which the last logout removes."""
    base = Path(tempfile.gettempdir())
    try:
        return run_folder_below(base, folder)
    except RunFolderTaken:  # another one is noted in the experiment's folder, once there is one
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return run_folder_below(base, folder)


def _log_tail(folder: Path) -> str:
    try:
        with open(folder / "logs" / "agent.log", "rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - LOG_TAIL_BYTES))
            return log.read().decode(errors="replace").strip()
    except OSError:
        return ""


def main() -> int:
    """Carry out the order on stdin; returns the exit status."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    try:
        answer = attend(order)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        answer = Answer(trouble=f"{place}{error.strerror or error}")
    sys.stdout.buffer.write(msgspec.json.encode(answer))
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
