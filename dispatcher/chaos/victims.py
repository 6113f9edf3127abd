"""The real processes of one experiment; each is struck only while it is still the one found."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import NamedTuple

import psutil

from dispatcher.chaos.schedule import Kind
from trial_runtime.process_start import start_time


class Victim(NamedTuple):
    """A process: its number, and when it started as a text of its own."""

    kind: Kind
    pid: int
    started: str

    def strike(self, number: int) -> bool:
        """Send a signal to that very process; false if it has ended."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        except (AttributeError, OSError):  # neither this system nor every kernel has it
            return self._strike_by_number(number)
        try:
            # What the descriptor holds cannot be replaced between the look and the signal.
            if start_time(self.pid) != self.started:
                return False
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True

    def _strike_by_number(self, number: int) -> bool:
        if start_time(self.pid) != self.started:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


def find(folder: Path, head: int, kind: Kind) -> list[Victim]:
    """Find all processes of one kind, in the order of their numbers.

    Args:
        folder: the experiment's folder.
        head: the process that leads it, a child of ours.
        kind: the kind to look for.
    """
    if kind is Kind.HEAD:
        processes = _processes([head])
    elif kind is Kind.TUNER_HOST:
        processes = [p for p in _below(head) if _runs(p, "dispatcher.tuner_host", folder)]
    else:
        agents = [p for p in psutil.process_iter() if _runs(p, "trial_runtime.agent", folder)]
        processes = agents if kind is Kind.AGENT else [p for a in agents for p in _below(a.pid)]
    victims = [(process.pid, start_time(process.pid)) for process in processes]
    return [Victim(kind, pid, started) for pid, started in sorted(victims) if started is not None]


def _processes(pids: list[int]) -> list[psutil.Process]:
    try:
        return [psutil.Process(pid) for pid in pids]
    except psutil.NoSuchProcess:
        return []


def _below(pid: int) -> list[psutil.Process]:
    try:
        processes: list[psutil.Process] = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return processes


def _runs(process: psutil.Process, module: str, folder: Path) -> bool:
    """Whether its command line runs a module of ours on a file of this experiment."""
    try:
        command = process.cmdline()
    except psutil.Error:
        return False
    return module in command and any(part.startswith(f"{folder}/") for part in command)
