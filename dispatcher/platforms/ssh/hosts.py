"""A machine that is reached by SSH, as commands visit it without a trial there."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from dispatcher.errors import BackendError, UserError
from dispatcher.findings import Finding, Severity
from dispatcher.platforms.ssh.machine import Machine
from dispatcher.remote_python.findings import HostNeeds, inspect
from dispatcher.remote_python.leftovers import Left, remove, what_is_left
from dispatcher.remote_python.runner import RemotePython
from dispatcher.ssh.login import Dial


class SshHost:
    """See :class:`dispatcher.platforms.host.ReachableHost`; each question is a login.

    Args:
        machine: how to log in, and how its Python is called; secrets are looked up at a login.
        label: its address, for people.
        dial: as for :func:`~dispatcher.ssh.connect`.
    """

    def __init__(self, machine: Machine, label: str, *, dial: Dial | None = None) -> None:
        self.name = machine.name
        self.label = label
        self._machine = machine
        self._dial = dial

    def check(self, needs: HostNeeds) -> list[Finding]:
        """See :meth:`ReachableHost.check`. Blocks for minutes at most."""
        machine = self._machine
        folders = needs.folders
        if machine.weights_root:
            folders = {machine.weights_root: next(iter(folders.values()), "")}
        own = replace(
            needs,
            work_folder=machine.work_folder,
            read_folders=machine.read_roots or needs.read_folders,
            folders=folders,
        )
        started = time.monotonic()
        try:
            with machine.log_in(self._dial) as connection:
                text = f"as {connection.user} in {time.monotonic() - started:.1f} s"
                login = Finding("login", Severity.OK, text)
                return [login, *inspect(machine.python_on(connection), own)]
        except (BackendError, UserError) as error:
            return [Finding("login", Severity.PROBLEM, error.message, error.hint)]

    def leftovers(self) -> dict[str, Left]:
        """See :meth:`ReachableHost.leftovers`."""
        with self._python() as python:
            return what_is_left(python, self._machine.work_folder)

    def remove(self, names: Sequence[str]) -> list[str]:
        """See :meth:`ReachableHost.remove`."""
        with self._python() as python:
            return remove(python, self._machine.work_folder, names)

    @contextmanager
    def _python(self) -> Iterator[RemotePython]:
        with self._machine.log_in(self._dial) as connection:
            yield self._machine.python_on(connection)
