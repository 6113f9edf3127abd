"""A mount that is there now."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from nfs_setup.errors import MachineRefuses
from nfs_setup.host import Host, Ran
from nfs_setup.ledger import Ledger
from nfs_setup.mount_table import mount_at, named, users_of
from nfs_setup.mounts import Mount
from nfs_setup.step import Change, KnownBefore

#: Seconds for a server to answer.
_MOUNT_S = 45.0
_UNMOUNT_S = 60.0

#: What mount(8) and systemd keep for themselves, what the kernel shows under other names, and
#: the number of connections, which the first mount from a server decides for all.
_NOT_SHOWN = ("x-systemd.", "_netdev", "nofail", "noauto", "actimeo=", "nconnect=")


@dataclass(frozen=True)
class MountShare(KnownBefore):
    """A share that is mounted."""

    source: str
    point: str
    options: tuple[str, ...]
    shared: bool = False
    kind: str = "mount"

    @property
    def title(self) -> str:
        """The share and its mount point."""
        return f"{self.source} on {self.point}"

    def command(self) -> list[str]:
        """Return the command that mounts it."""
        # Now it is there or it is not: mount.nfs alone would try for two minutes.
        options = ",".join([*self.options, "retry=0"])
        return ["mount", "-t", "nfs4", "-o", options, "--", self.source, self.point]

    def change(self, host: Host) -> Change | None:
        """Return the command; None if it is mounted so."""
        there = mount_at(host, self.point)
        if there is not None:
            refuse_other(there, self.source, self.options)
            return None
        return Change(f"mount {self.title}", f"$ {shlex.join(self.command())}\n")

    def before(self, host: Host, ledger: Ledger) -> dict[str, Any]:
        """Return the mount point and the share."""
        return {"point": self.point, "source": self.source}

    def apply(self, host: Host) -> None:
        """Mount it, and see that it is mounted."""
        ran = host.run(self.command(), limit_s=_MOUNT_S)
        if not ran.ok:
            raise _failed(ran, self)
        there = mount_at(host, self.point)
        if there is None or not there.is_nfs:
            raise MachineRefuses("mount succeeded and nothing is mounted", where=self.point)


def refuse_other(there: Mount, source: str, options: tuple[str, ...]) -> None:
    """Refuse a mount point that is taken otherwise.

    Args:
        there: the mount that is there.
        source: the share that is wanted, ``server:/path``.
        options: the options that are wanted.

    Raises:
        MachineRefuses: if something else is mounted there, or the same in another way.
    """
    if there.device != source or not there.is_nfs:
        raise MachineRefuses(
            f"{there.device} ({there.kind}) is mounted there already",
            where=there.point,
            hint="choose another mount point, or unmount it",
        )
    shown = set(there.options)
    if any(option.startswith("vers=4") for option in shown):
        shown.add("vers=4")  # any of them was fine
    missing = [o for o in options if not o.startswith(_NOT_SHOWN) and o not in shown]
    if missing:
        raise MachineRefuses(
            f"it is mounted already, without {', '.join(missing)}",
            where=there.point,
            hint="take it back first ('bequeath nfs undo', or umount), then set it up anew",
        )


def _failed(ran: Ran, step: MountShare) -> MachineRefuses:
    server = step.source.partition(":/")[0]
    output = (ran.err + ran.out).lower()
    lacks = "this kernel lacks one of the options; "
    if any(option.startswith("sec=krb5") for option in step.options):
        lacks += "Kerberos asks for its module rpcsec_gss_krb5, and for rpc.gssd with a keytab"
    else:
        lacks += "choose --nconnect 1, or --nfs-version 4.1"
    hints = (
        (("incorrect mount option", "unknown parameter", "invalid argument"), lacks),
        (("protocol not supported",), "the server does not speak this version: --nfs-version 4.1"),
        (("access denied", "not permitted"),
         f"the server does not export it to this host; on {server}: bequeath nfs status"),
        (("no such file",), "the server exports no such folder; ask it: bequeath nfs status"),
        (("resolve", "name or service"), f"{server} has no address here; see /etc/hosts and DNS"),
        (("refused",), f"nothing answers at {server} port 2049: is its NFS server on?"),
        (("longer than", "timed out", "no route", "unreachable"),
         f"{server} does not answer at port 2049: is it up, does a firewall stand between?"),
    )  # fmt: skip
    hint = next((hint for signs, hint in hints if any(sign in output for sign in signs)), "")
    return MachineRefuses(f"cannot mount it: {ran.message}", where=step.source, hint=hint)


def undo_mount(host: Host, ledger: Ledger, data: dict[str, Any]) -> str:
    """See :class:`nfs_setup.step.Undo`. Unmounts it, unless somebody uses it: never lazily, never
    by force."""
    there = mount_at(host, data["point"])
    if there is None:
        return ""
    if there.device != data["source"]:
        return f"{there.device} is mounted there by now: it stays"
    refuse_used(host, data["point"])
    ran = host.run(["umount", "--", data["point"]], limit_s=_UNMOUNT_S)
    if not ran.ok:
        raise MachineRefuses(ran.message, where=data["point"])
    return ""


def refuse_used(host: Host, point: str) -> None:
    """Refuse while a mount is in use, and name the processes, which the kernel would not.

    Raises:
        MachineRefuses: while a process has something open there.
    """
    users = users_of(host, point)
    if users:
        raise MachineRefuses(
            f"is in use by {named(users)}",
            where=point,
            hint="stop the experiments and shells that use it, then try again",
        )
