"""A machine whose power can be cut: a User-Mode-Linux guest with a kernel and a disk of its own.

The guest sees this machine's files, read-only, so that whatever runs here runs there; its own
disk (ext4) is an image file. Killing its processes is a power cut: what its kernel had not yet
written to the disk is gone, what was synced is in the image.
"""

from __future__ import annotations

import atexit
import functools
import os
import resource
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.failures import ENABLES

KERNEL = "linux.uml"
ENABLE = f"enable it with: {ENABLES}"

#: Where the guest's disk is mounted, in the guest.
DISK = "/mnt"

#: What fills up registers for the guest's kernel, see there.
_REGISTERS = Path(__file__).parent / "xstate.c"

_DISK_BYTES = 256 << 20
_MEMORY = "384M"

# Bash is the guest's first process. Everything below is in memory but the disk; the rest is
# the machine's own tree, which the guest's kernel mounted read-only.
_FIRST = """#!/bin/bash
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sys /sys
mountpoint -q /dev || mount -t devtmpfs dev /dev
mkdir -p /dev/shm && mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
mount -t ext4 /dev/ubda {disk} || echo "guest: no disk"
# What follows may lie below /tmp, so /tmp stays the machine's and others are named instead.
mkdir -p /run/tmp /run/home
export TMPDIR=/run/tmp HOME=/run/home XDG_RUNTIME_DIR=/run
cd {folder}
export PYTHONPATH=$PWD
ulimit -c 0
{command}
echo "guest: ended with $?"
while :; do sleep 60; done
"""


def why_not() -> str:
    """Why there can be no guest here, or nothing."""
    for tool in (KERNEL, "mkfs.ext4", "unshare", "setpriv"):
        if shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            return f"{tool} is missing; {ENABLE}"
    if os.geteuid() != 0:
        return "a guest needs root, for a namespace that takes all of its processes with it"
    if _has_large_registers() and shutil.which("gcc") is None:
        return f"gcc is missing, for a guest on a processor with AMX; {ENABLE}"
    return ""


def _has_large_registers() -> bool:
    """Whether this processor's registers are more than the guest's kernel knows."""
    return "amx_tile" in Path("/proc/cpuinfo").read_text().split()


@functools.cache
def _preloaded() -> dict[str, str]:
    """The variables by which the guest's kernel runs on this processor."""
    if not _has_large_registers():
        return {}
    folder = Path(tempfile.mkdtemp(prefix="bequeath-guest-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = folder / "xstate.so"
    make = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(_REGISTERS), "-ldl"]
    subprocess.run(make, check=True, capture_output=True)
    return {"LD_PRELOAD": str(library)}


def make_disk(path: Path, size: int = _DISK_BYTES, content: Path | None = None) -> None:
    """An image file with ext4 on it, which takes room only for what is written.

    ``content``: a folder whose content it has from the beginning.
    """
    with path.open("wb") as file:
        file.truncate(size)
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    filled = [] if content is None else ["-d", str(content)]
    make = ["mkfs.ext4", "-q", "-F", *filled, str(path)]
    subprocess.run(make, check=True, env=environment, capture_output=True)


class Guest:
    """One machine. Boot it, listen to it, cut its power, boot it again: the disk stays.

    Args:
        folder: on this machine, for the disk and the guest's first program.
        disk: what its disk is a copy of; None: it is empty.
        inside: a command that enters where the guest is to run, such as a network namespace.
        devices: more words for its kernel, such as a network card.
        memory: how much its kernel has; taken from this machine as it is used.
    """

    def __init__(
        self,
        folder: Path,
        *,
        disk: Path | None = None,
        inside: Sequence[str] = (),
        devices: Sequence[str] = (),
        memory: str = _MEMORY,
    ) -> None:
        self._folder = folder
        self._disk = folder / "disk"
        self._inside = inside
        self._devices = devices
        self._memory = memory
        self._process: subprocess.Popen[str] | None = None
        if disk is None:
            make_disk(self._disk)
        else:
            subprocess.run(["cp", "--sparse=always", str(disk), str(self._disk)], check=True)

    def boot(self, command: list[str], folder: Path) -> None:
        """Start the guest; it runs the command in that folder (of this machine's tree)."""
        command_line, place = shlex.join(command), shlex.quote(str(folder))
        self.begin(_FIRST.format(disk=DISK, folder=place, command=command_line))

    def begin(self, program: str) -> None:
        """Start the guest with a first program of one's own."""
        assert self._process is None, "it runs"
        first = self._folder / "first"
        first.write_text(program)
        first.chmod(0o755)
        self._process = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", "--"),  # nothing outlives a killed test
                # Its kernel holds a descriptor for each file of this machine that it knows.
                *("prlimit", f"--nofile={resource.getrlimit(resource.RLIMIT_NOFILE)[1]}"),
                *self._inside,
                *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
                *(
                    KERNEL,
                    f"mem={self._memory}",
                    "root=/dev/root",
                    "rootfstype=hostfs",
                    "rootflags=/",
                ),
                *("ro", f"init={first}", f"ubda={self._disk}", "con0=null,fd:1", "con=null"),
                *("ssl=null", "panic=1", "quiet", *self._devices),
            ],
            env={
                "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME": str(self._folder),
                **_preloaded(),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def lines(self, limit_s: float | None = 280.0) -> Iterator[str]:
        """What comes over its console, line by line, until the power is cut: here, or by a
        hang of more than ``limit_s``; None: it may run as long as it likes."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        bound = None if limit_s is None else threading.Timer(limit_s, process.kill)
        if bound:
            bound.start()
        try:
            for line in process.stdout:
                yield line.rstrip("\r\n")
        finally:
            if bound:
                bound.cancel()

    def kill(self) -> None:
        """Now; whoever listens hears the end. :meth:`cut_power` is still due."""
        if self._process is not None:
            self._process.kill()

    def cut_power(self) -> list[str]:
        """Now; what had still come over the console. Returns when nothing of it runs."""
        process, self._process = self._process, None
        if process is None:
            return []
        assert process.stdout is not None
        os.kill(process.pid, signal.SIGKILL)  # the guest's first process dies with this one
        rest = process.stdout.read()  # all of the guest's processes hold it
        process.stdout.close()
        process.wait()
        return rest.splitlines()
