"""Hosts with a real sshd each, on this machine: a network namespace and a sandbox for each.

A process, a port or a file of one is not seen on another, but for folders that are shared on
purpose. Links can be cut, hosts can lose their power and come back. Needs root, and what
``make enable`` installs. From this process a host is reached by ``connect(host.target(),
dial=hosts.dial)``; processes that need the network start with ``hosts.inside([...])``.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import site
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from dispatcher.ssh import SshTarget
from tests.support import namespaces, sshd
from tests.support.failures import ENABLES
from tests.support.processes import wait_until

ROOT = Path(__file__).parents[2]
USER, UID = "dev", 2000

#: The password of USER where a host takes passwords, and what its shadow file says of it.
PASSWORD = "open sesame"
_HASHED = (
    "$6$bequeathtest$91c8sgag/Q5SBj9qC/IKaSKc5wkRujoMi7k7VRhWODu"
    "7/ENBHPSB2BK1skNpw4y7Q41sw8E9D/yrJBv/i2zDb."
)
SMALL_DISK = "/small"
SMALL_BYTES = 16 << 20

_SSHD = ("/usr/sbin/sshd", "-E", "/var/log/sshd.log")
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_CONFIG = """\
Port 22
HostKey /etc/ssh/host_key
UsePAM no
UseDNS no
PrintMotd no
MaxStartups 200
PidFile none
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
AcceptEnv LANG LC_*
LogLevel VERBOSE
Subsystem sftp {sftp}
"""


@functools.cache
def why_not() -> str:
    """Why there can be no such hosts here; empty if there can."""
    if reason := sshd.why_not() or namespaces.why_not():
        return reason
    if not shutil.which("bwrap"):
        return f"needs bubblewrap: {ENABLES}"
    tried = subprocess.run(
        [
            "bwrap",
            "--unshare-pid",
            "--unshare-uts",
            "--unshare-ipc",
            "--dev-bind",
            "/",
            "/",
            "true",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return f"may make no sandbox: {tried.stderr.strip()}" if tried.returncode else ""


def our_python() -> dict[str, Path]:
    """What a host needs to have our interpreter with its packages, read-only: for ``binds``."""
    folders = {sys.prefix, sys.base_prefix, sysconfig.get_paths()["purelib"]}
    folders |= {str(Path(sys.executable).resolve().parents[1]), *site.getsitepackages()}
    wanted = sorted(x for x in folders if Path(x).is_dir() and not x.startswith("/usr"))
    kept: list[str] = []
    for one in wanted:
        if not any(one.startswith(f"{above}/") for above in kept):
            kept.append(one)
    return {one: Path(one) for one in kept}


@dataclass
class Host:
    """One host. ``disk`` is its file tree as seen from outside: ``disk / "root"``, ``"tmp"`` …"""

    name: str
    number: int
    address: str
    disk: Path
    key: Path
    known_hosts: Path
    extra: str = ""
    binds: Mapping[str, Path] = field(default_factory=dict)
    shares: Mapping[str, Path] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    first_pid: int = 0  # process 1 of the sandbox, as seen from outside

    def target(self, **changes: object) -> SshTarget:
        """How to log in as root with the right key; ``user="dev"`` is there as well."""
        said: dict[str, object] = {
            "host": self.address,
            "user": "root",
            "key_file": self.key,
            "known_hosts": self.known_hosts,
            "config_file": os.devnull,
            "connect_timeout_s": 30.0,
        }
        return SshTarget(**said | changes)  # type: ignore[arg-type]

    def log(self) -> str:
        """What its sshd wrote."""
        path = self.disk / "var/log/sshd.log"
        return path.read_text(errors="replace") if path.exists() else ""


class SshHosts:
    """Made by :func:`ssh_hosts`. Hosts are called h1, h2, … and have these addresses in /etc/hosts.

    ``ssh_config`` is a file for OpenSSH's client and for ``SshTarget.config_file``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = folder / "client_key"
        self.known_hosts = folder / "known_hosts"
        self.ssh_config = folder / "ssh_config"
        self.hosts: dict[str, Host] = {}
        self.network = namespaces.Network()

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    def __iter__(self) -> Iterator[Host]:
        return iter(self.hosts.values())

    def dial(self, address: tuple[str, int], timeout_s: float) -> socket.socket:
        """For ``connect(target, dial=…)`` in this process."""
        return self.network.dial(address, timeout_s)

    def inside(self, command: list[str], **settings: Any) -> subprocess.Popen[bytes]:
        """Start a process that can reach the hosts."""
        return self.network.inside(command, **settings)

    def cut(self, name: str) -> None:
        """The host's link loses every packet, until :meth:`heal`."""
        self.network.cut(self[name].number)

    def heal(self, name: str) -> None:
        """The end of :meth:`cut`."""
        self.network.heal(self[name].number)

    def hide(self, name: str) -> None:
        """Only the other hosts find this one: it is behind a jump host."""
        self.network.hide(self[name].number)

    def crash(self, name: str, *, tells: bool = False) -> None:
        """The host loses its power, without a word; disk and host key stay.

        With ``tells`` only its processes die, and the kernel closes their connections.
        """
        host = self[name]
        if not tells:
            self.network.pull_out(host.number)
        self._end(host)

    def start(self, name: str) -> None:
        """Boot a host and wait until its sshd answers."""
        host = self[name]
        assert host.process is None, f"{name} runs"
        self.network.plug_in(host.number)
        read, write = os.pipe()
        with os.fdopen(read, "rb") as told:
            host.process = subprocess.Popen(
                self._command(host, write), pass_fds=[write], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
            os.close(write)
            text = told.read()
        assert text, f"{name} did not boot: {host.process.communicate(timeout=60)[1]!r}"
        host.first_pid = json.loads(text)["child-pid"]
        wait_until(lambda: self._answers(host), f"{name} answers: {host.log()}")

    def _answers(self, host: Host) -> bool:
        assert host.process is not None
        assert host.process.poll() is None, host.log()
        try:
            with self.dial((host.address, 22), 5) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def kill_sshd(self, name: str) -> None:
        """SIGKILL for all that sshd runs on a host: nobody logs in, and who had has lost it.
        Whatever was started by way of it goes on."""
        wait_until(lambda: not self._kill_sshd(name), f"no sshd runs on {name}")

    def _kill_sshd(self, name: str) -> bool:
        found = False
        for process in psutil.Process(self[name].first_pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name().startswith("sshd"):
                    process.kill()
                    found = True
        return found

    def start_sshd(self, name: str) -> None:
        """The end of :meth:`kill_sshd`."""
        host = self[name]
        inside = ["nsenter", f"--target={host.first_pid}", "--mount", "--net", "--pid", "--uts"]
        subprocess.run([*inside, *_SSHD], check=True, capture_output=True, timeout=120)
        wait_until(lambda: self._answers(host), f"{name} answers: {host.log()}")

    def restart_sshd(self, name: str, extra: str) -> None:
        """Boot a host anew, with other lines in its sshd_config."""
        self.crash(name, tells=True)
        self[name].extra = extra
        self._configure(self[name])
        self.start(name)

    def _end(self, host: Host) -> None:
        if host.process is None:
            return
        # The sandbox's own first process takes all others with it.
        with contextlib.suppress(ProcessLookupError):
            os.kill(host.first_pid or host.process.pid, signal.SIGKILL)
        host.process.wait(120)
        assert host.process.stderr is not None
        host.process.stderr.close()
        host.process, host.first_pid = None, 0

    def _command(self, host: Host, write: int) -> list[str]:
        words = ["nsenter", f"--net={self.network.path(self.network.name(host.number))}", "bwrap"]
        words += ["--unshare-pid", "--unshare-uts", "--unshare-ipc", "--hostname", host.name]
        words += ["--clearenv", "--setenv", "PATH", _PATH, "--chdir", "/", "--info-fd", str(write)]
        words += ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
        for name in ("bin", "sbin", "lib", "lib64"):
            words += ["--symlink", f"usr/{name}", f"/{name}"]
        words += ["--tmpfs", "/run", "--dir", "/run/sshd", "--perms", "1777", "--tmpfs", "/dev/shm"]
        words += ["--size", str(SMALL_BYTES), "--perms", "1777", "--tmpfs", SMALL_DISK]
        for name in sorted(path.name for path in host.disk.iterdir()):
            words += ["--bind", str(host.disk / name), f"/{name}"]
        words += ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
        for there, here in host.binds.items():
            words += [*_folders_above(there), "--ro-bind", str(here), there]
        for there, here in host.shares.items():
            words += [*_folders_above(there), "--bind", str(here), there]
        # The sandbox lasts as long as its first program, so that a host outlives its sshd.
        return [*words, "sh", "-c", f"{' '.join(_SSHD)} && exec sleep infinity"]

    def add(
        self,
        extra: str = "",
        binds: Mapping[str, Path] | None = None,
        shares: Mapping[str, Path] | None = None,
    ) -> Host:
        """Make another host; it is not started. See :func:`ssh_hosts`."""
        number = len(self.hosts) + 1
        host = Host(
            name=f"h{number}",
            number=number,
            address=self.network.address(number),
            disk=self.folder / f"h{number}",
            key=self.key,
            known_hosts=self.known_hosts,
            extra=extra,
            binds=binds or {},
            shares=shares or {},
        )
        self.hosts[host.name] = host
        for path in ("etc/ssh", "root/.ssh", f"home/{USER}/.ssh", "var/log", "tmp", "scratch"):
            (host.disk / path).mkdir(parents=True)
        for path in ("tmp", "scratch"):
            (host.disk / path).chmod(0o1777)
        sshd.make_key(host.disk / "etc/ssh/host_key")
        self._accounts(host)
        self._configure(host)
        self.learn()
        return host

    def _accounts(self, host: Host) -> None:
        etc = host.disk / "etc"
        (etc / "passwd").write_text(
            "root:x:0:0:root:/root:/bin/bash\nsshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n"
            "nobody:x:65534:65534::/:/usr/sbin/nologin\n"
            f"{USER}:x:{UID}:{UID}::/home/{USER}:/bin/bash\n"
        )
        (etc / "shadow").write_text(f"root:*:19000::::::\n{USER}:{_HASHED}:19000::::::\n")
        (etc / "shadow").chmod(0o600)
        (etc / "group").write_text(f"root:x:0:\nnogroup:x:65534:\n{USER}:x:{UID}:\n")
        (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
        for name in ("/etc/ld.so.cache", "/etc/localtime"):
            if Path(name).exists():
                shutil.copy(name, etc)
        for home in ("root", f"home/{USER}"):
            folder = host.disk / home / ".ssh"
            shutil.copy(self.folder / "client_key.pub", folder / "authorized_keys")
            folder.chmod(0o700)
        for path in (f"home/{USER}", f"home/{USER}/.ssh", f"home/{USER}/.ssh/authorized_keys"):
            os.chown(host.disk / path, UID, UID)

    def _configure(self, host: Host) -> None:
        text = host.extra + _CONFIG.format(sftp=sshd.sftp_server())
        (host.disk / "etc/ssh/sshd_config").write_text(text)

    def learn(self) -> None:
        """Write down the hosts' names, addresses and keys, as they are now."""
        known = config = ""
        names = "127.0.0.1 localhost\n" + "".join(f"{h.address} {h.name}\n" for h in self)
        for host in self:
            (host.disk / "etc/hosts").write_text(names)
            words = (host.disk / "etc/ssh/host_key.pub").read_text().split()[:2]
            known += f"{host.address} {' '.join(words)}\n"
            config += (
                f"Host {host.name}\n  HostName {host.address}\n  User root\n"
                f"  IdentityFile {self.key}\n  IdentitiesOnly yes\n"
                f"  UserKnownHostsFile {self.known_hosts}\n"
            )
        self.known_hosts.write_text(known)
        self.ssh_config.write_text(config)

    def remove(self) -> None:
        """End all that was started, and take the network away."""
        with contextlib.ExitStack() as ending:  # each of them, whatever one says
            ending.callback(self.network.remove)
            for host in self:
                ending.callback(self._end, host)


def _folders_above(path: str) -> Iterable[str]:
    for folder in [str(x) for x in Path(path).parents][-2::-1]:
        yield from ("--perms", "0755", "--dir", folder)


@contextlib.contextmanager
def ssh_hosts(
    folder: Path,
    number: int,
    *,
    extra: str = "",
    binds: Mapping[str, Path] | None = None,
    shares: Mapping[str, Path] | None = None,
) -> Iterator[SshHosts]:
    """So many hosts, running, while the block lasts.

    Args:
        folder: Where their disks lie; made if it is not there.
        number: How many.
        extra: Lines for the top of each sshd_config, such as ``MaxSessions 1``.
        binds: Place on the host → folder here, read-only; :func:`our_python` is one.
        shares: Place on the host → folder here, for writing: what hosts have in common.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    sshd.make_key(folder / "client_key")
    hosts = SshHosts(folder)
    try:
        for _ in range(number):
            hosts.add(extra, binds, shares)
        for host in hosts:
            hosts.start(host.name)
        yield hosts
    finally:
        hosts.remove()
