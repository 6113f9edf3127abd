"""Machines on a network of their own, each with the kernel's real NFS and a disk that stays.

A guest begins as this machine is, without any NFS configuration: its /etc is a copy, /usr,
/var and /opt are this machine's, and what it writes there lands on its own disk. It reaches
the other guests and nothing else. Needs root.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.system import guest
from tests.system.guest import ENABLE, make_disk
from tests.system.nfs.first import fill
from tests.system.nfs.machine import ROOT, Answer, Machine, Running

__all__ = ["ROOT", "SUBNET", "Answer", "Machine", "Network", "Running", "machines", "why_not"]

SUBNET = "10.79.0"
_DISK_BYTES = 4 << 30
_RIGS = itertools.count()


def why_not() -> str:
    """Why there can be no such machines here, or nothing."""
    reason = guest.why_not()
    if reason:
        return reason
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    for tool in ("exportfs", "rpc.nfsd", "mount.nfs", "ip", "bridge", "modprobe", "nsenter"):
        if shutil.which(tool, path=path) is None:
            return f"{tool} is missing; {ENABLE}"
    if not Path("/dev/net/tun").exists():
        return "/dev/net/tun is missing: guests can have no network"
    return ""


class Network:
    """The wire between the machines, and the machines: ``server, client = network``.

    A program of this machine is on it, too, at :attr:`address`, by :meth:`inside`.
    """

    def __init__(self, namespace: str) -> None:
        self.machines: list[Machine] = []
        self.address = f"{SUBNET}.254"
        self._namespace = namespace

    def __iter__(self) -> Iterator[Machine]:
        return iter(self.machines)

    def inside(self, *argv: str) -> tuple[str, ...]:
        """The command, for this machine to run within the network."""
        return ("nsenter", f"--net=/run/netns/{self._namespace}", *argv)

    def cut(self, machine: Machine) -> None:
        """Nothing reaches it and nothing comes from it, and nobody is told."""
        self._port(machine, "disabled")

    def heal(self, machine: Machine) -> None:
        """Packets go through again."""
        self._port(machine, "forwarding")

    def _port(self, machine: Machine, state: str) -> None:
        number = {"disabled": "0", "forwarding": "3"}[state]
        tap = f"tap{machine.address.rpartition('.')[2]}"
        _call("bridge", "-n", self._namespace, "link", "set", "dev", tap, "state", number)


@contextlib.contextmanager
def machines(folder: Path, names: Sequence[str], disk: Path | None = None) -> Iterator[Network]:
    """Machines that know one another by name. Nothing of them is left afterwards.

    Args:
        folder: on this machine, for what they need.
        names: their host names.
        disk: what their disks are copies of; by default they are as this machine is.
    """
    namespace = f"nfs{os.getpid()}-{next(_RIGS)}"
    network = Network(namespace)
    hosts = "".join(f"{SUBNET}.{n} {name}\n" for n, name in enumerate(names, 1))
    with tempfile.TemporaryDirectory(dir=folder) as mine:
        if disk is None:
            disk = Path(mine) / "disk"
            _make_disk(disk, Path(mine) / "stage")
        _call("ip", "netns", "add", namespace)
        try:
            for words in (
                "link set lo up",
                "link add br0 type bridge forward_delay 0",
                f"addr add {network.address}/24 dev br0",
                "link set br0 up",
            ):
                _call("ip", "-n", namespace, *words.split())
            for number, name in enumerate(names, 1):
                tap = f"tap{number}"
                _call("ip", "-n", namespace, "tuntap", "add", tap, "mode", "tap")
                _call("ip", "-n", namespace, "link", "set", tap, "master", "br0", "up")
                mac = f"02:79:00:00:00:{number:02x}"
                card = f"vec0:transport=tap,ifname={tap},mac={mac},depth=128,gro=1"
                machine = Machine(
                    name,
                    f"{SUBNET}.{number}",
                    folder=Path(mine) / name,
                    disk=disk,
                    hosts=hosts,
                    inside=network.inside(),
                    devices=(card, f"umid={namespace}-{name}"),
                    shared=_shared(),
                )
                network.machines.append(machine)
            for machine in network:
                machine.switch_on()
            for machine in network:
                machine.finish_boot()
            yield network
        finally:
            for machine in network:
                machine.cut_power()
            _call("ip", "netns", "del", namespace)


def _make_disk(path: Path, stage: Path) -> None:
    fill(stage)
    make_disk(path, _DISK_BYTES, stage)
    shutil.rmtree(stage)


def _shared() -> list[str]:
    """What the product runs from, where it does not lie in the trees that guests have anyway."""
    paths = {os.path.realpath(p) for p in (ROOT, sys.prefix, sys.base_prefix)}
    within = ("/usr", "/opt", "/var")
    return sorted(p for p in paths if not p.startswith(within))


def _call(*words: str) -> None:
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    subprocess.run(words, check=True, env=environment, capture_output=True)
