"""Checks of a machine that is reached by SSH: the login, all that trials need, and SFTP."""

from __future__ import annotations

import time

from dispatcher.backends.ssh.machine import Machine
from dispatcher.errors import BackendError, UserError
from dispatcher.remote_python.findings import HostFinding, HostNeeds, Severity, inspect
from dispatcher.ssh import SessionRefused, SshConnection, connect
from dispatcher.ssh.login import Dial


def check_machine(
    machine: Machine, needs: HostNeeds, *, dial: Dial | None = None
) -> list[HostFinding]:
    """Log in and look. Blocks for minutes at most; a check that cannot be made is a finding, too.

    Args:
        machine: how to log in, and how its Python is called.
        needs: those of trials.
        dial: as for :func:`~dispatcher.ssh.connect`.
    """
    started = time.monotonic()
    try:
        with connect(machine.target(), dial=dial) as connection:
            text = f"as {connection.user} in {time.monotonic() - started:.1f} s"
            login = HostFinding("login", Severity.OK, text)
            findings = inspect(machine.python_on(connection), needs)
            return [login, *findings, _sftp(connection)]
    except (BackendError, UserError) as error:
        return [HostFinding("login", Severity.PROBLEM, error.message, error.hint)]


def _sftp(connection: SshConnection) -> HostFinding:
    try:
        connection.exists(".")
    except SessionRefused as error:
        return HostFinding("sftp", Severity.NOTE, error.message, error.hint)
    except BackendError as error:
        return HostFinding("sftp", Severity.NOTE, error.message)
    return HostFinding("sftp", Severity.OK, "files can be sent and fetched")
