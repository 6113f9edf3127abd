"""State of a machine before any request: its Python, our user there, and its identity."""

from __future__ import annotations

from dataclasses import dataclass

from nfs_setup.cluster.members import Member
from nfs_setup.cluster.remote import Remote
from nfs_setup.errors import MachineRefuses
from nfs_setup.host import Ran

OLDEST = (3, 9)

#: Seconds for a Python to start and answer, on a host that is busy.
_LOOK_S = 60.0

#: For any Python 3. A line of ours among what a login shell may print.
_LOOK = """\
import os, socket, sys
boot = "/proc/sys/kernel/random/boot_id"
boot = open(boot).read().strip() if os.path.exists(boot) else "-"
print("bequeath", "%d %d" % sys.version_info[:2], os.geteuid(), boot, socket.gethostname())
"""

_SUDO = ("sudo", "-n", "--")


@dataclass(frozen=True)
class Ground:
    """Findings of a first look. ``become`` is put before a command so that root runs it."""

    become: tuple[str, ...]
    identity: str  # the same for two names of one machine
    rootless: str = ""  # why nothing can be changed there, or nothing


def look(remote: Remote, member: Member, *, needs_root: bool) -> Ground:
    """See whether a request can be carried out there. Changes nothing. Blocks.

    Args:
        remote: the machine, logged in.
        member: the machine in the inventory.
        needs_root: whether to refuse a machine on which we cannot be root.

    Raises:
        MachineRefuses: without Python, with too old a one, or (if ``needs_root``) without root.
    """
    argv = (member.python, "-I", "-c", _LOOK)
    ran = remote.run(argv, stdin=b"", limit_s=_LOOK_S)
    fields = _fields(ran)
    if fields is None:
        raise _no_python(member.python, ran)
    version = (int(fields[1]), int(fields[2]))
    if version < OLDEST:
        raise MachineRefuses(
            f"{member.python} is Python {version[0]}.{version[1]} there, and 3.9 is needed",
            hint="name a newer one in the inventory, as python: python3.11",
        )
    identity = f"{fields[4]} {fields[5]}"
    if fields[3] == "0":
        return Ground((), identity)
    ran = remote.run((*_SUDO, *argv), stdin=b"", limit_s=_LOOK_S)
    root = _fields(ran)
    if root is not None and root[3] == "0":
        return Ground(_SUDO, identity)
    why = "there is no sudo" if ran.code == 127 else f"sudo -n says: {ran.message}"
    if needs_root:
        raise MachineRefuses(
            f"is not root there, and {why}",
            hint="log in as root (user: root), or allow sudo without a password (NOPASSWD); "
            "passwords for sudo are not supported",
        )
    return Ground((), identity, why)


def _fields(ran: Ran) -> list[str] | None:
    for line in reversed(ran.out.splitlines()):
        fields = line.split()
        if len(fields) == 6 and fields[0] == "bequeath":
            return fields
    return None


def _no_python(python: str, ran: Ran) -> MachineRefuses:
    if ran.code == 124:
        return MachineRefuses("did not answer in time after the login", hint="is it overloaded?")
    missing = ran.code == 127
    return MachineRefuses(
        f"has no {python}" if missing else f"{python} does not run there: {ran.message}",
        hint="install Python 3.9 or later, or name where it is: python: /opt/python/bin/python3",
    )
