"""A machine of the experiment file, as commands visit it without a trial there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dispatcher.backends.ssh import past
from dispatcher.backends.ssh.past import Left
from dispatcher.experiment.ssh_service import MachineConfig
from dispatcher.platforms.ssh.from_section import machine_of
from dispatcher.ssh import SshTarget, connect
from dispatcher.ssh.inspecting import HostFinding, HostNeeds, inspect


class SshHost:
    """See :class:`dispatcher.platforms.host.ReachableHost`; each question is a login.

    Args:
        worker: the name of its worker.
        part: its section of the file.
    """

    def __init__(self, worker: str, part: MachineConfig) -> None:
        self.name = worker
        # Of the file alone: secrets are looked up when somebody logs in.
        self.label = SshTarget(part.host, part.port or 0, part.user or "").label
        self._machine = machine_of(worker, part)

    def check(self, needs: HostNeeds) -> list[HostFinding]:
        """See :meth:`ReachableHost.check`."""
        machine = self._machine
        folders = needs.folders
        if machine.weights_root:
            folders = {machine.weights_root: next(iter(folders.values()), "")}
        own = replace(
            needs,
            python=machine.command(),
            work_folder=machine.work_folder,
            read_folders=machine.read_roots or needs.read_folders,
            folders=folders,
        )
        return inspect(machine.target(), own)

    def leftovers(self) -> dict[str, Left]:
        """See :meth:`ReachableHost.leftovers`."""
        with connect(self._machine.target()) as connection:
            return past.what_is_left(connection, self._machine)

    def remove(self, names: Sequence[str]) -> list[str]:
        """See :meth:`ReachableHost.remove`."""
        with connect(self._machine.target()) as connection:
            return past.remove(connection, self._machine, list(names))
