"""Logins at the machines of an inventory: over SSH, or at this machine itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dispatcher.errors import BackendError, UserError

if TYPE_CHECKING:
    from dispatcher.ssh import SshConnection, SshTarget
    from nfs_setup.cluster.members import Connect, Inventory, Login, Member, Program, Remote
    from nfs_setup.host import Ran

#: For each step of a login: many at once slow one another down.
_CONNECT_S = 30.0


def setup_program() -> Program:
    """Return ``nfs_setup``, packed to be run on other machines."""
    import nfs_setup
    from dispatcher.remote_python.bundle import bundle_of
    from nfs_setup.cluster.members import STAYS, Program

    bundle = bundle_of(Path(nfs_setup.__file__).parent, without=STAYS)
    return Program(bundle.code, tuple(bundle.arguments()))


def logins(inventory: Inventory, folder: Path) -> Connect:
    """Return the function that logs in at a machine of an inventory.

    References to secrets are resolved now, so that none fails half way; relative files count from
    ``folder``.

    Raises:
        UserError: if a reference leads nowhere.
        PermanentBackendError: if SSH is needed and paramiko is not installed.
    """
    if any(not member.login.local for member in inventory.members):
        from dispatcher.cli.hosts.check_targets import need_paramiko

        need_paramiko()
    targets = {
        member.name: _target(member.login, folder, member.where)
        for member in inventory.members
        if not member.login.local
    }

    @contextlib.contextmanager
    def log_in(member: Member) -> Iterator[Remote]:
        from nfs_setup.cluster.members import Unreachable
        from nfs_setup.errors import RequestRefused
        from nfs_setup.local_host import LocalHost

        if member.login.local:
            yield LocalHost()
            return
        from dispatcher.ssh import connect

        try:
            with connect(targets[member.name]) as connection:
                yield OverSsh(connection)
        except BackendError as error:
            raise Unreachable(error.message, hint=error.hint) from error
        except UserError as error:  # from this host's part of ~/.ssh
            raise RequestRefused(error.message, hint=error.hint, where=error.where) from error

    return log_in


def _target(login: Login, folder: Path, where: str) -> SshTarget:
    from dispatcher.ssh import SshTarget

    def file(name: str) -> str | None:
        return str(folder / Path(name).expanduser()) if name else None

    return SshTarget(
        host=login.host,
        port=login.port,
        user=login.user,
        key_file=file(login.key_file),
        passphrase=_secret(login.passphrase, where),
        password=_secret(login.password, where),
        known_hosts=file(login.known_hosts),
        jump=None if login.jump is None else _target(login.jump, folder, where),
        connect_timeout_s=_CONNECT_S,
    )


def _secret(reference: str, where: str) -> str:
    from dispatcher.experiment.references import resolve_reference

    try:
        return resolve_reference(reference)
    except ValueError as error:
        raise UserError(f"{reference!r} {error}", where=where) from error


class OverSsh:
    """A connection, with the interface that set-up code expects (``Remote``)."""

    def __init__(self, connection: SshConnection) -> None:
        self._connection = connection

    def run(self, argv: Sequence[str], *, stdin: bytes, limit_s: float) -> Ran:
        """Run a program there.

        Args:
            argv: the program and its arguments.
            stdin: all of its input.
            limit_s: seconds; this blocks no longer.

        Raises:
            Unreachable: if the connection is lost.
        """
        from dispatcher.ssh import CommandTimedOut
        from nfs_setup.cluster.members import Unreachable
        from nfs_setup.host import Ran

        try:
            ran = self._connection.run(argv, stdin=stdin, limit_s=limit_s)
        except CommandTimedOut:
            return Ran(124, "", "")
        except BackendError as error:
            raise Unreachable(error.message, hint=error.hint) from error
        return Ran(ran.code, ran.out.decode("utf-8", "replace"), ran.err.decode("utf-8", "replace"))
