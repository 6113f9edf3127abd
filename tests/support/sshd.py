"""A real sshd on this machine's loopback, with a configuration and keys of its own."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from dispatcher.ssh import SshTarget
from tests.support.failures import ENABLES
from tests.support.ports import free_port
from tests.support.processes import wait_until

_SERVER = "/usr/sbin/sshd"
_SFTP = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server")

#: With ``SHLVL`` a bash that sshd starts reads no ``~/.bashrc``: what that does may take locks, and
#: these servers are killed.
_CONFIG = """\
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
UsePAM no
UseDNS no
StrictModes no
PrintMotd no
MaxStartups 200
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv SHLVL=9 {variables}
LogLevel VERBOSE
"""


def why_not() -> str:
    """Why no sshd can be started here; empty if it can."""
    if not Path(_SERVER).exists() or not shutil.which("ssh-keygen"):
        return f"needs sshd and ssh-keygen: {ENABLES}"
    if not any(Path(path).exists() for path in _SFTP):
        return f"needs openssh-sftp-server: {ENABLES}"
    return ""


def sftp_server() -> str:
    """The program behind the sftp subsystem."""
    return next(path for path in _SFTP if Path(path).exists())


def make_key(path: Path, passphrase: str = "", kind: str = "ed25519") -> Path:
    """A new private key, its public half beside it."""
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path


@dataclass
class Sshd:
    """One server: its folder holds ``host_key``, ``client_key``, ``known_hosts``, ``log``."""

    folder: Path
    port: int
    extra: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @classmethod
    def made(cls, folder: Path, extra: str = "", **variables: str) -> Sshd:
        """Keys and files, not started yet. ``extra`` comes before what is usual, and wins.

        Of two lines ``SetEnv`` a server reads the first alone: variables of its commands are given
        here.
        """
        assert "SetEnv" not in extra
        folder.mkdir()
        folder.chmod(0o755)
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where it leaves its rights
        sshd = cls(folder, free_port(), extra, variables)
        make_key(folder / "host_key")
        make_key(folder / "client_key")
        shutil.copy(folder / "client_key.pub", folder / "authorized_keys")
        sshd.learn()
        return sshd

    def learn(self) -> None:
        """Write the host key into its file of known hosts."""
        words = (self.folder / "host_key.pub").read_text().split()[:2]
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {' '.join(words)}\n")

    def start(self) -> None:
        """Start it and wait until it answers."""
        variables = " ".join(f"{name}={value}" for name, value in self.variables.items())
        text = self.extra + _CONFIG.format(port=self.port, folder=self.folder, variables=variables)
        if "Subsystem" not in text:  # twice is an error
            text += f"Subsystem sftp {sftp_server()}\n"
        (self.folder / "config").write_text(text)
        self.process = subprocess.Popen(
            [_SERVER, "-D", "-f", str(self.folder / "config"), "-E", str(self.folder / "log")],
            stdin=subprocess.DEVNULL,
        )
        wait_until(self._answers, f"sshd on port {self.port} answers")

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log()
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def log(self) -> str:
        """What it wrote about itself."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def kill(self) -> None:
        """SIGKILL for the server and all below it: the kernel closes their connections."""
        process, self.process = self.process, None  # another thread may be killing it, too
        if process is None:
            return
        try:
            below = psutil.Process(process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            below = []
        for pid in [process.pid, *(each.pid for each in below)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(60)

    def target(self, **changes: object) -> SshTarget:
        """How to log in to it: the right user, key and file of known hosts; no configuration."""
        said: dict[str, object] = {
            "host": "127.0.0.1",
            "port": self.port,
            "user": getpass.getuser(),
            "key_file": self.folder / "client_key",
            "known_hosts": self.folder / "known_hosts",
            "config_file": os.devnull,
            "connect_timeout_s": 30.0,
        }
        return SshTarget(**said | changes)  # type: ignore[arg-type]


@contextlib.contextmanager
def running(folder: Path, extra: str = "", **variables: str) -> Iterator[Sshd]:
    """A server while the block lasts: see :meth:`Sshd.made`."""
    sshd = Sshd.made(folder, extra, **variables)
    try:
        sshd.start()
        yield sshd
    finally:
        sshd.kill()
