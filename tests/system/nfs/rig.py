"""Machines on a network of their own, each with the kernel's real NFS and a disk that stays.

A guest begins as this machine is, without any NFS configuration: its /etc is a copy, /usr,
/var and /opt are this machine's, and what it writes there lands on its own disk. It reaches
the other guests and nothing else. Needs root.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.system import guest
from tests.system.guest import ENABLE, Guest

ROOT = Path(__file__).parents[3]

SUBNET = "10.79.0"
_DISK_BYTES = 2 << 30
_NUMBERS = itertools.count()

#: Not taken over from this machine's /etc: what NFS or the network is configured by.
_FRESH = ("exports", "exports.d", "fstab", "mtab", "resolv.conf", "hostname", "hosts", "rc.local")

_FOLDERS = ("dev", "proc", "sys", "run", "tmp", "mnt", "srv", "home", "usr", "root", "var", "opt")

_FIRST = """#!/bin/bash
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mount -t proc proc /proc
modules=/usr/lib/uml/modules/$(uname -r) new=/mnt
mount -t ext4 /dev/ubda $new || exit 1
insmod $modules/kernel/fs/overlayfs/overlay.ko || exit 1
for tree in usr var opt; do
  mkdir -p $new/.written/$tree/files $new/.written/$tree/work
  upper=upperdir=$new/.written/$tree/files,workdir=$new/.written/$tree/work
  mount -t overlay -o lowerdir=/$tree,$upper overlay $new/$tree || exit 1
done
mkdir -p $new/lib/modules/$(uname -r) && mount --bind $modules $new/lib/modules/$(uname -r)
mount -t proc proc $new/proc; mount -t sysfs sys $new/sys; mount -t devtmpfs dev $new/dev
mount -t tmpfs -o mode=755 run $new/run; mount -t tmpfs tmp $new/tmp
mkdir -p $new/run/lock $new/run/orders $new/run/sendsigs.omit.d
mount -t hostfs -o sync,{orders} none $new/run/orders
{shares}
cd $new && pivot_root . .machine && cd / && umount -l /.machine
hostname {name}
ip link set lo up; ip link set vec0 name eth0; ip addr add {address}/24 dev eth0
ip link set eth0 up
for module in nfs nfsv4 nfsd; do modprobe $module; done
exec 9<> <(:)
cd /run/orders
echo "guest: ready"
while :; do
  for order in *.order; do
    [ -e "$order" ] || continue
    name=${{order%.order}}
    mv $order $name.taken
    ( cd /root; . /run/orders/$name.taken >/run/orders/$name.out 2>/run/orders/$name.err \\
      </dev/null 9>&-; echo "guest: $name ended with $?" ) &
  done
  read -t 0.02 -u 9
done
"""


def why_not() -> str:
    """Why there can be no such machines here, or nothing."""
    reason = guest.why_not()
    if reason:
        return reason
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    for tool in ("exportfs", "rpc.nfsd", "mount.nfs", "ip", "modprobe", "nsenter"):
        if shutil.which(tool, path=path) is None:
            return f"{tool} is missing; {ENABLE}"
    if not Path("/dev/net/tun").exists():
        return "/dev/net/tun is missing: guests can have no network"
    return ""


class Answer(NamedTuple):
    """How a command in a guest ended."""

    code: int
    out: str
    err: str


class Machine:
    """One guest. ``name`` is its host name, too."""

    def __init__(self, name: str, number: int, folder: Path, namespace: str) -> None:
        self.name = name
        self.address = f"{SUBNET}.{number}"
        self._orders = folder / "orders"
        self._orders.mkdir(parents=True)
        stage = folder / "stage"
        _fill(stage, name)
        self._guest = Guest(
            folder,
            disk_bytes=_DISK_BYTES,
            content=stage,
            inside=("nsenter", f"--net=/run/netns/{namespace}"),
            devices=(
                f"vec0:transport=tap,ifname=tap{number},"
                f"mac=02:79:00:00:00:{number:02x},depth=128,gro=1",
                f"umid={namespace}-{name}",
            ),
        )
        shutil.rmtree(stage)

    def boot(self) -> None:
        """Boot it, and wait until it listens."""
        shares = "".join(
            f"mkdir -p $new{shlex.quote(p)}\n"
            f"mount -t hostfs -o ro,{shlex.quote(p)} none $new{shlex.quote(p)}\n"
            for p in _shared()
        )
        self._guest.begin(
            _FIRST.format(orders=self._orders, shares=shares, name=self.name, address=self.address)
        )
        self._await("guest: ready", 60)

    def run(self, *argv: str, limit_s: float = 60.0) -> Answer:
        """Run a command as root; 124 if it takes longer."""
        name = f"{next(_NUMBERS)}"
        order = self._orders / f"{name}.new"
        order.write_text(f"timeout -k 1 {limit_s} {shlex.join(argv)}\n")
        order.rename(self._orders / f"{name}.order")
        line = self._await(f"guest: {name} ended with ", limit_s + 30)
        out, err = ((self._orders / f"{name}.{kind}").read_text() for kind in ("out", "err"))
        return Answer(int(line.rpartition(" ")[2]), out, err)

    def nfs(self, *argv: str) -> Answer:
        """``bequeath nfs …``, of this checkout."""
        program = (sys.executable, "-P", "-B", "-m", "dispatcher.cli", "nfs", *argv)
        return self.run("env", f"PYTHONPATH={ROOT}", *program)

    def cut_power(self) -> None:
        """Now."""
        self._guest.cut_power()

    def _await(self, beginning: str, limit_s: float) -> str:
        said = []
        for line in self._guest.lines(limit_s):
            if line.startswith(beginning):
                return line
            said.append(line)
        raise AssertionError(f"{self.name} died or hung:\n" + "\n".join(said[-20:]))


@contextlib.contextmanager
def machines(folder: Path, names: Sequence[str]) -> Iterator[list[Machine]]:
    """Machines that know one another by name. Nothing of them is left afterwards."""
    namespace = f"nfs{os.getpid()}"
    _ip("netns", "add", namespace)
    found: list[Machine] = []
    try:
        _ip("-n", namespace, "link", "add", "br0", "type", "bridge", "forward_delay", "0")
        _ip("-n", namespace, "link", "set", "br0", "up")
        hosts = "".join(f"{SUBNET}.{n} {name}\n" for n, name in enumerate(names, 1))
        for number, name in enumerate(names, 1):
            _ip("-n", namespace, "tuntap", "add", f"tap{number}", "mode", "tap")
            _ip("-n", namespace, "link", "set", f"tap{number}", "master", "br0", "up")
            found.append(Machine(name, number, folder / name, namespace))
        for machine in found:
            machine.boot()
            machine.run("sh", "-c", 'printf "%s" "$0" >>/etc/hosts', hosts)
        yield found
    finally:
        for machine in found:
            machine.cut_power()
        _ip("netns", "del", namespace)


def _fill(stage: Path, name: str) -> None:
    """A root folder: this machine's /etc without what configures NFS or its network."""
    for folder in (*_FOLDERS, ".machine"):
        (stage / folder).mkdir(parents=True)
    (stage / "root").chmod(0o700)
    for path in Path("/").iterdir():
        if path.is_symlink():
            (stage / path.name).symlink_to(os.readlink(path))
    subprocess.run(["cp", "-a", "/etc", str(stage)], check=True)
    for fresh in _FRESH:
        path = stage / "etc" / fresh
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for file, text in (("hostname", f"{name}\n"), ("hosts", "127.0.0.1 localhost\n")):
        (stage / "etc" / file).write_text(text)
    for file in ("fstab", "exports", "resolv.conf"):
        (stage / "etc" / file).write_text("")
    (stage / "etc/mtab").symlink_to("/proc/self/mounts")


def _shared() -> list[str]:
    """What the product runs from, where it does not lie in the trees that guests have anyway."""
    paths = {os.path.realpath(p) for p in (ROOT, sys.prefix, sys.base_prefix)}
    within = ("/usr", "/opt", "/var")
    return sorted(p for p in paths if not p.startswith(within))


def _ip(*words: str) -> None:
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    subprocess.run(["ip", *words], check=True, env=environment, capture_output=True)
