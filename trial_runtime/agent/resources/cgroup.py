"""Control groups, version 2: the kernel bounds memory and CPU time of trials, where a folder of
them was delegated to us.

That is so below a systemd unit with ``Delegate=yes`` (which marks the folder), or where somebody
names a folder in ``BEQUEATH_CGROUP``: it must be ours to write to, and hold no processes. All
processes of a trial count together there. When they pass their memory the kernel ends all of
them; when they have had their CPU time of a period they wait for the next. On other hosts the agent
watches memory (:mod:`trial_runtime.agent.resources.sampling`), and only pinning bounds CPU time.
"""

from __future__ import annotations

import functools
import os
import signal
from typing import Optional

#: Names a folder in which we may make control groups.
FOLDER_VARIABLE = "BEQUEATH_CGROUP"

_MARK = "user.delegate"  # systemd's, on a folder that it has delegated
_PREFIX = "bequeath-"

#: The kernel's period for sharing out CPU time, and its least quota (microseconds).
_PERIOD_US, _LEAST_US = 100_000, 1_000


@functools.cache
def own_cgroup() -> str:
    """The folder of this process's control group (version 2); empty if there is none."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            points = [line.split()[4] for line in file if " - cgroup2 " in line]
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            paths = [line[3:].strip() for line in file if line.startswith("0::")]
    except OSError:
        return ""
    return os.path.normpath(points[0] + paths[0]) if points and paths else ""


def count_in(path: str, name: str) -> int:
    """A counter in a file of the kernel's that has one in each line; 0 where there is none."""
    try:
        with open(path, encoding="ascii") as file:
            for line in file:
                key, _, value = line.partition(" ")
                if key == name:
                    return int(value)
    except (OSError, ValueError):
        pass
    return 0


class Cgroups:
    """Groups of trials below one folder. All methods may raise ``OSError``.

    Args:
        folder: ours.
        memory: whether groups there can bound memory.
        cpu: whether they can bound CPU time.
    """

    def __init__(self, folder: str, *, memory: bool = True, cpu: bool = True) -> None:
        self._folder = folder
        self.memory = memory
        self.cpu = cpu

    def make(self, name: str, memory_bytes: int = 0, cpus: float = 0.0) -> str:
        """Make a control group for one attempt; a leftover of the same name is ended first.

        Args:
            name: of the group, unique among the attempts on this host.
            memory_bytes: bound on memory; 0: none.
            cpus: bound on CPU time, in cores; 0: none.

        Returns:
            Its folder; empty where nothing of this can be bounded.
        """
        memory_bytes, cpus = memory_bytes * self.memory, cpus * self.cpu
        if not memory_bytes and not cpus:
            return ""
        path = f"{self._folder}/{_PREFIX}{name}"
        if os.path.isdir(path):
            self.remove(path)
        os.mkdir(path)
        if memory_bytes:
            _write(f"{path}/memory.max", str(memory_bytes))
            for file, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
                if os.path.exists(f"{path}/{file}"):
                    _write(f"{path}/{file}", value)
        if cpus:
            quota = max(_LEAST_US, round(cpus * _PERIOD_US))
            _write(f"{path}/cpu.max", f"{quota} {_PERIOD_US}")
        return path

    def struck(self, path: str) -> bool:
        """Whether the kernel has killed a process there for lack of memory."""
        return count_in(f"{path}/memory.events", "oom_kill") > 0

    def remove(self, path: str) -> None:
        """Kill the processes there, and remove the group; raises while one is still dying."""
        for pid in _processes(path):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        os.rmdir(path)

    def remove_leftovers(self) -> None:
        """Remove the empty groups of agents that are gone (a name begins with its agent's pid)."""
        for entry in os.listdir(self._folder):
            path = f"{self._folder}/{entry}"
            agent = entry[len(_PREFIX) :].partition("-")[0]
            if not entry.startswith(_PREFIX) or not agent.isdigit() or not os.path.isdir(path):
                continue
            if not os.path.isdir(f"/proc/{agent}") and not _processes(path):
                os.rmdir(path)


def delegated() -> Optional[Cgroups]:
    """The folder that was delegated to us, made ready; None if there is none.

    Raises:
        OSError: there is one, and it cannot be used.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return _enabled(named)
    own = own_cgroup()
    if not own or not _is_delegated(own):
        return None
    # A group with groups in it may hold no processes: ours move into one of their own.
    leaf = f"{own}/{_PREFIX}main"
    os.makedirs(leaf, exist_ok=True)
    for pid in _processes(own):
        _write(f"{leaf}/cgroup.procs", str(pid))
    return _enabled(own)


def join(path: str) -> None:
    """Put this very process into a group, and with it its later children."""
    _write(f"{path}/cgroup.procs", "0")


def _enabled(folder: str) -> Cgroups:
    """The folder with the bounds it allows: memory may be delegated without CPU time."""
    with open(f"{folder}/cgroup.controllers", encoding="ascii") as file:
        there = file.read().split()
    refused: Optional[OSError] = None
    bounds = {}
    for name in ("memory", "cpu"):
        bounds[name] = name in there
        if bounds[name]:
            try:
                _write(f"{folder}/cgroup.subtree_control", f"+{name}")
            except OSError as error:
                bounds[name], refused = False, error
    if not any(bounds.values()):
        raise refused or OSError(95, "neither memory nor cpu is among its controllers", folder)
    return Cgroups(folder, **bounds)


def _is_delegated(folder: str) -> bool:
    try:
        return os.getxattr(folder, _MARK) == b"1" and os.access(folder, os.W_OK)
    except (OSError, AttributeError):
        return False


def _processes(path: str) -> list[int]:
    try:
        with open(f"{path}/cgroup.procs", encoding="ascii") as file:
            return [int(line) for line in file]
    except OSError:
        return []


def _write(path: str, value: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(value)
