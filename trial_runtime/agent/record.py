"""Which process an agent is, on disk: so that a later head, or somebody for it, finds it again."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from trial_runtime.opening import create_private
from trial_runtime.process_start import boot_id, start_time
from trial_runtime.trial_wire import VERSION


class AgentRecord(msgspec.Struct, frozen=True):
    """The agent that was started last. ``started`` tells its pid from a later process's, and
    ``boot`` from one of the machine's next life (empty in records of older versions). ``runtime``:
    the folder from which it has our package, and ``wire`` the version of messages that it speaks
    (those who wrote neither spoke 1)."""

    pid: int
    started: str
    boot: str = ""
    runtime: str = ""
    wire: int = 1


def record_path(folder: Path, worker: str) -> Path:
    """Where the record of a worker's agent lies in the experiment's folder."""
    return folder / f"agent-{worker}.json"


def config_path(folder: Path, worker: str) -> Path:
    """Where it reads what it is told."""
    return folder / f"agent-{worker}.config.json"


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, all at once and durably: after a power cut
    it is this one, or the one before, and not an empty one. Blocks for the disk."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    with open(create_private(str(partial)), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def record_of(pid: int, runtime: str = "") -> AgentRecord:
    """A record of a process that runs now, with our package from the folder ``runtime``."""
    return AgentRecord(pid, start_time(pid) or "", boot_id(), runtime, VERSION)


def write_record(path: Path, record: AgentRecord) -> None:
    """Let a later head find this agent."""
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
