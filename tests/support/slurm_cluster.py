"""A real Slurm cluster of a few small nodes on this machine's loopback, from Debian's packages.

Each daemon has process numbers, mounts and a host name of its own, so that one machine passes for
several; files and the network are shared. Jobs may be preempted (partition ``low`` by ``high``),
nodes may lose their power, the controller may go away and come back. Needs root, and what
``make enable`` installs.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from tests.support import slurm_node
from tests.support.failures import ENABLES
from tests.support.ports import free_port
from tests.support.processes import wait_until

CONTROLLER = "ctld"
_PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "unshare", "nsenter")
_SPACES = ("-p", "-m", "-u")

_CONF = """\
ClusterName=rig
SlurmctldHost=ctld(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/ctld
SlurmctldPidFile={folder}/ctld.pid
SlurmctldLogFile={folder}/ctld.log
SlurmdSpoolDir={folder}/spool/%n
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
SchedulerParameters=bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
SlurmdTimeout=10
SlurmctldTimeout=10
MessageTimeout=5
KillWait=5
MinJobAge=300
ReturnToService=2
MailProg=/bin/true
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=low Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE GraceTime=2 State=UP
PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF State=UP
"""


@functools.cache
def why_not() -> str:
    """Why there can be no such cluster here; empty if there can."""
    missing = [name for name in _PROGRAMS if not shutil.which(name)]
    if missing:
        return f"needs {', '.join(missing)}: {ENABLES}"
    if os.geteuid() != 0:
        return "needs root"
    tried = subprocess.run(
        ["unshare", "--fork", *_SPACES, "true"], capture_output=True, text=True, check=False
    )
    return f"may make no namespaces: {tried.stderr.strip()}" if tried.returncode else ""


class SlurmCluster:
    """A cluster; a context manager, whose end leaves no process and no file.

    Args:
        folder: of its state; its path is short, since it holds a socket.
        nodes: how many, called n1, n2 and so on.
        cpus: of each.
        hidden: a folder of this machine that nodes do not see.
    """

    def __init__(
        self, folder: Path, nodes: int = 3, cpus: int = 4, hidden: Path | None = None
    ) -> None:
        self.folder = folder
        self._hidden = hidden
        self.nodes = [f"n{number + 1}" for number in range(nodes)]
        self._cpus = cpus
        self._spaces: dict[str, subprocess.Popen[bytes]] = {}
        self._munged: subprocess.Popen[bytes] | None = None
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}

    def __enter__(self) -> Self:
        for part in ("munge", "ctld", "spool"):
            (self.folder / part).mkdir(parents=True)
        try:
            self._write()
            self._munged = self._munge()
            for name in (CONTROLLER, *self.nodes):
                self.start(name)
            wait_until(self._all_are_idle, "all nodes are idle")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def run(self, *command: str, stdin: str = "", check: bool = True) -> str:
        """Run one of Slurm's commands; its output.

        Args:
            command: the program and its arguments.
            stdin: its input.
            check: whether a failure is one of the test.
        """
        ran = subprocess.run(
            command,
            input=stdin,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0 or not check, f"{command}: {ran.stderr}"
        return ran.stdout.strip()

    def submit(self, *options: str, seconds: float = 600) -> str:
        """Submit a job of somebody else's that sleeps; its number."""
        script = f"#!/bin/sh\nexec sleep {seconds}\n"
        return self.run("sbatch", "--parsable", "--output=/dev/null", *options, stdin=script)

    def state(self, job: str) -> str:
        """The state of a job."""
        return self.run("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T")

    def start(self, name: str) -> None:
        """Start the daemon of a node, or of the controller; the node as well, if it is off."""
        if not self._is_on(name):
            self._spaces[name] = self._boot(name)
        daemon = ["slurmctld"] if name == CONTROLLER else ["slurmd", "-N", name]
        self._inside(name, *daemon, "-f", self.environment["SLURM_CONF"])

    def save(self, job: str) -> None:
        """Have the controller write down what it knows of jobs: it does so some seconds late, and
        one that is killed before comes back with an older state."""
        file = self.folder / "ctld" / "job_state"
        before = file.stat().st_mtime_ns if file.exists() else 0
        self.run("scontrol", "update", f"JobId={job}", "Comment=saved")
        wait_until(lambda: file.exists() and file.stat().st_mtime_ns > before, "it is saved")

    def kill(self, name: str) -> None:
        """Kill the daemon alone: the processes of jobs run on."""
        pid = int((self.folder / f"{name}.pid").read_text())
        self._inside(name, "kill", "-9", str(pid))

    def crash(self, name: str) -> None:
        """Take a node's power away: its daemon and all processes of jobs end at once."""
        process = self._spaces.pop(name)
        for first in psutil.Process(process.pid).children():
            first.kill()  # and the kernel all that it has numbered
        process.wait(60)

    def _write(self) -> None:
        (self.folder / "hosts").write_text(
            f"127.0.0.1 localhost {CONTROLLER} {' '.join(self.nodes)}\n"
        )
        lines = [
            f"NodeName={name} NodeAddr=127.0.0.1 Port={free_port()} CPUs={self._cpus} "
            f"RealMemory={self._cpus * 1000} State=UNKNOWN"
            for name in self.nodes
        ]
        text = _CONF.format(folder=self.folder, port=free_port(), nodes="\n".join(lines))
        (self.folder / "slurm.conf").write_text(text)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)

    def _munge(self) -> subprocess.Popen[bytes]:
        munge = self.folder / "munge"
        names = ("key-file", "socket", "pid-file", "log-file", "seed-file")
        files = [f"--{name}={munge / name.removesuffix('-file')}" for name in names]
        process = subprocess.Popen(
            ["munged", "--force", "--foreground", *files],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_until(lambda: _answers(munge / "socket"), "munged answers")
        return process

    def _boot(self, name: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [
                *("unshare", "--fork", "--kill-child", "--propagation=private", *_SPACES),
                *(sys.executable, slurm_node.__file__, name, str(self.folder / "hosts")),
                *([] if self._hidden is None or name == CONTROLLER else [str(self._hidden)]),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdout is not None
        assert process.stdout.read(1) == b"!", f"{name} has not begun"
        process.stdout.close()
        return process

    def _is_on(self, name: str) -> bool:
        return name in self._spaces and self._spaces[name].poll() is None

    def _inside(self, name: str, *command: str) -> None:
        (first,) = psutil.Process(self._spaces[name].pid).children()
        subprocess.run(
            ["nsenter", "-t", str(first.pid), *_SPACES, *command],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=True,
        )

    def _all_are_idle(self) -> bool:
        listed = self.run("sinfo", "--noheader", "--Node", "--format=%N %T", check=False)
        states = dict(line.split() for line in listed.splitlines())
        return all(states.get(name) == "idle" for name in self.nodes)

    def _end(self) -> None:
        for name in list(self._spaces):
            self.crash(name)
        if self._munged is not None:
            self._munged.send_signal(signal.SIGTERM)
            self._munged.wait(60)
        shutil.rmtree(self.folder)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as one:
        return one.connect_ex(str(path)) == 0
