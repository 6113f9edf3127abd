"""What a later head needs to take up an agent again: its secret name and its process.

Both lie in the experiment's folder in files of mode 0600.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import msgspec

from trial_runtime.process_start import boot_id, start_time


class AgentRecord(msgspec.Struct, frozen=True):
    """The agent that was started last. ``started`` tells its pid from a later process's, and
    ``boot`` from one of the machine's next life (empty in records of older versions)."""

    pid: int
    started: str
    boot: str = ""


def agent_routing_id(folder: Path, worker: str) -> str:
    """The routing id of this experiment's agent, made and stored at the first call.

    It holds the agent's secret; a restarted head must know the same one.
    """
    path = folder / f"agent-{worker}.id"
    name = f"agent:{worker}:"
    try:
        routing_id = path.read_text(encoding="ascii")
        if routing_id.startswith(name) and len(routing_id) > len(name):
            return routing_id  # not empty, as a power cut leaves what was never synced
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    routing_id = f"{name}{secrets.token_hex(16)}"
    write_private(path, routing_id.encode("ascii"))
    return routing_id


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, all at once and durably: after a power cut
    it is this one, or the one before, and not an empty one. Blocks for the disk."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    os.replace(partial, path)


def record_of(pid: int) -> AgentRecord:
    """A record of a process that runs now."""
    return AgentRecord(pid, start_time(pid) or "", boot_id())


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
