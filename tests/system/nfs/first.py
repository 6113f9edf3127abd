"""What a guest begins with: the content of its disk, and the first program it runs."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class _User(NamedTuple):
    name: str
    number: int
    home: str


#: Whom trials run as: the same name and number on all machines, as the guide asks for.
TRIAL = _User("trial", 1234, "/home/trial")

#: Not taken over from this machine's /etc: what NFS or the network is configured by.
_FRESH = ("exports", "exports.d", "fstab", "mtab", "resolv.conf", "hostname", "hosts", "rc.local")

_FOLDERS = ("dev", "proc", "sys", "run", "tmp", "mnt", "srv", "home", "usr", "root", "var", "opt")

_FIRST = """#!/bin/bash
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mount -t proc proc /proc
modules=/usr/lib/uml/modules/$(uname -r) new=/mnt
mount -t ext4 /dev/ubda $new || exit 1
if [ "$(<$new/etc/hostname)" != {name} ]; then
  echo {name} >$new/etc/hostname
  printf '%s' {hosts} >$new/etc/hosts
fi
insmod $modules/kernel/fs/overlayfs/overlay.ko || exit 1
for tree in usr var opt; do
  mkdir -p $new/.written/$tree/files $new/.written/$tree/work
  upper=upperdir=$new/.written/$tree/files,workdir=$new/.written/$tree/work
  mount -t overlay -o lowerdir=/$tree,$upper overlay $new/$tree || exit 1
done
mkdir -p $new/lib/modules/$(uname -r) && mount --bind $modules $new/lib/modules/$(uname -r)
mount -t proc proc $new/proc; mount -t sysfs sys $new/sys; mount -t devtmpfs dev $new/dev
mkdir -p $new/dev/shm $new/dev/pts
mount -t tmpfs shm $new/dev/shm; mount -t devpts devpts $new/dev/pts
mount -t tmpfs -o mode=755 run $new/run; mount -t tmpfs tmp $new/tmp
mkdir -p $new/run/lock $new/run/orders $new/run/sendsigs.omit.d
mount -t hostfs -o sync,{orders} none $new/run/orders
{shares}
cd $new && pivot_root . .machine && cd / && umount -l /.machine
ln -sf /proc/self/fd /dev/fd
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
    ( ( . ./$name.taken ) >$name.out 2>$name.err </dev/null 9>&-
      echo $? >$name.rc
      echo "guest: $name ended" ) &
  done
  read -t 0.02 -u 9
done
"""


def first_program(name: str, address: str, hosts: str, orders: Path, shared: Sequence[str]) -> str:
    """The first program of a guest: its name, mounts and network, and orders from a folder."""
    hosts = shlex.quote(f"127.0.0.1 localhost\n{hosts}")
    shares = "".join(
        f"mkdir -p $new{shlex.quote(p)}\n"
        f"mount -t hostfs -o ro,{shlex.quote(p)} none $new{shlex.quote(p)}\n"
        for p in shared
    )
    return _FIRST.format(orders=orders, shares=shares, name=name, address=address, hosts=hosts)


def fill(stage: Path) -> None:
    """A root folder: this machine's /etc without what configures NFS or its network."""
    for folder in (*_FOLDERS, ".machine"):
        (stage / folder).mkdir(parents=True)
    (stage / "root").chmod(0o711)  # an interpreter may lie in it, which the user has to reach
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
    for file in ("fstab", "exports", "resolv.conf", "hostname", "hosts"):
        (stage / "etc" / file).write_text("")
    (stage / "etc/mtab").symlink_to("/proc/self/mounts")
    _add_user(stage)


def _add_user(stage: Path) -> None:
    number, home = TRIAL.number, TRIAL.home
    for file, line in (
        ("passwd", f"{TRIAL.name}:x:{number}:{number}::{home}:/bin/sh\n"),
        ("group", f"{TRIAL.name}:x:{number}:\n"),
    ):
        with (stage / "etc" / file).open("a") as open_file:
            open_file.write(line)
    (stage / home.lstrip("/")).mkdir()
    os.chown(stage / home.lstrip("/"), number, number)
