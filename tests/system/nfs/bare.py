"""Machines on which NFS was never installed, and a repository that they install it from."""

from __future__ import annotations

from pathlib import Path

from tests.system.guest import ENABLE
from tests.system.nfs.rig import machines

REPOSITORY = "/var/cache/bequeath-tests/debs"

#: The packages, what they wrote, and the users that they made; also what keeps services from
#: starting in a container (this machine may be one), and manual pages, which take a minute.
_STRIP = f"""
set -e
rm -f /usr/sbin/policy-rc.d /var/lib/man-db/auto-update
dpkg --purge nfs-kernel-server nfs-common rpcbind keyutils libnfsidmap1
rm -rf /var/lib/nfs
for user in statd _rpc; do ! getent passwd $user >/dev/null || userdel $user; done
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d
mkdir /etc/apt/sources.list.d
echo "deb [trusted=yes] file:{REPOSITORY} ./" >/etc/apt/sources.list.d/bequeath-tests.list
sync
"""


def why_not() -> str:
    """Why there can be none here, or nothing."""
    there = (Path(REPOSITORY) / "Packages").exists()
    return "" if there else f"no packages in {REPOSITORY}; {ENABLE}"


def bare_disk(folder: Path) -> Path:
    """A disk for such machines to begin with; takes half a minute."""
    disk = folder / "bare"
    with machines(folder, ["bare"]) as network:
        (machine,) = network
        done = machine.run("bash", "-c", _STRIP, limit_s=600)
        assert done.code == 0, done
        machine.cut_power()
        machine.copy_disk(disk)
    return disk
