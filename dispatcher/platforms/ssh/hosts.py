"""A machine that is reached by SSH, as commands visit it without a trial there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dispatcher.backends.ssh import past
from dispatcher.backends.ssh.host_check import check_machine
from dispatcher.backends.ssh.machine import Machine
from dispatcher.backends.ssh.past import Left
from dispatcher.remote_python.findings import HostFinding, HostNeeds
from dispatcher.ssh import connect


class SshHost:
    """See :class:`dispatcher.platforms.host.ReachableHost`; each question is a login.

    Args:
        machine: the one to visit.
        label: its address, for people.
    """

    def __init__(self, machine: Machine, label: str) -> None:
        self.name = machine.name
        self.label = label
        self._machine = machine

    def check(self, needs: HostNeeds) -> list[HostFinding]:
        """See :meth:`ReachableHost.check`."""
        machine, folders = self._machine, needs.folders
        if machine.weights_root:
            folders = {machine.weights_root: next(iter(folders.values()), "")}
        own = replace(
            needs,
            work_folder=machine.work_folder,
            read_folders=machine.read_roots or needs.read_folders,
            folders=folders,
        )
        return check_machine(machine, own)

    def leftovers(self) -> dict[str, Left]:
        """See :meth:`ReachableHost.leftovers`."""
        with connect(self._machine.target()) as connection:
            there = self._machine.python_on(connection)
            return past.what_is_left(there, self._machine.work_folder)

    def remove(self, names: Sequence[str]) -> list[str]:
        """See :meth:`ReachableHost.remove`."""
        with connect(self._machine.target()) as connection:
            there = self._machine.python_on(connection)
            return past.remove(there, self._machine.work_folder, names)
