"""The record of an agent's process on disk, by which a later head finds it again."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trial_runtime import durable_file
from trial_runtime.process_start import boot_id, start_time
from trial_runtime.trial_wire import VERSION


class AgentRecord(msgspec.Struct, frozen=True):
    """The agent that was started last.

    ``started`` distinguishes it from a later process of the same pid, and ``boot`` from one after
    a reboot (empty in records of older versions). ``runtime``: the folder from which it has our
    package. ``wire``: the version of its messages (1 in records without it). ``code``: a digest of
    that package as it was then, on the head's machine, where the folder stays the same when another
    version is installed (empty in records of older versions).
    """

    pid: int
    started: str
    boot: str = ""
    runtime: str = ""
    wire: int = 1
    code: str = ""


def record_path(folder: Path, worker: str) -> Path:
    """The path of the record of a worker's agent in the experiment's folder."""
    return folder / f"agent-{worker}.json"


def config_path(folder: Path, worker: str) -> Path:
    """The path of its configuration file."""
    return folder / f"agent-{worker}.config.json"


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, all at once and durably.

    After a power cut there is this one, or the one before, and not an empty one. Blocks for the
    disk.
    """
    durable_file.replace(path, content)


def record_of(pid: int, runtime: str = "", code: str = "") -> AgentRecord:
    """The record of a process that runs now.

    Args:
        pid: its number.
        runtime: the folder from which it has our package.
        code: a digest of that package.
    """
    return AgentRecord(pid, start_time(pid) or "", boot_id(), runtime, VERSION, code)


def write_record(path: Path, record: AgentRecord) -> None:
    """Write the record by which a later head finds this agent."""
    write_private(path, msgspec.json.encode(record))


def read_record(path: Path) -> AgentRecord | None:
    """The agent started last, or None."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=AgentRecord)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def is_running(record: AgentRecord) -> bool:
    """Whether that very process still runs (a zombie does not)."""
    if record.boot and record.boot != boot_id():
        return False
    now = start_time(record.pid)
    return now is not None and now == record.started
