"""A machine as the backend knows it: made of its section, logged in to, its Python called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from dispatcher.platforms.logins.targets import log_in, target_of
from dispatcher.platforms.ssh.section import MachineConfig
from dispatcher.remote_python.runner import RemotePython, Runner
from dispatcher.ssh import SshConnection, SshTarget
from dispatcher.ssh.login import Dial

#: Runs the user's prolog and then the command. Output of the prolog must not mix with the answer,
#: nor may it read what the command is to read. Both are arguments: nothing is pasted into the text.
#: A failure of its last command may be meant (``[ -f x ] && . x``): reported, no reason to stop.
_BEHIND_PROLOG = 'eval "$1" >&2 </dev/null; export BEQUEATH_PROLOG_ENDED=$?; shift; exec "$@"'


@dataclass(frozen=True)
class Machine:
    """One machine that takes trials.

    Attributes:
        name: that of its worker.
        target: how to log in; asked at each login, since secrets are looked up then.
        python: its Python, found by PATH there or absolute.
        prolog: what bash runs before anything of ours; empty for nothing.
        environment: variables there, references to secrets included.
        weights_root: where it has mounted the weights root; empty for the same place as here.
        read_roots: where it has the folders that may be read from, in the order of the head's;
            empty for the same places as here.
        head_address: at which its agent reaches our ROUTER by itself, with a port or without;
            empty for a tunnel.
        work_folder: for code, logs and working directories; ``~`` is its user's home.
    """

    name: str
    target: Callable[[], SshTarget]
    python: str = "python3"
    prolog: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    weights_root: str = ""
    read_roots: tuple[str, ...] = ()
    work_folder: str = "~/.bequeath"
    head_address: str = ""

    def log_in(self, dial: Dial | None = None) -> SshConnection:
        """Log in, with secrets looked up now. Blocks.

        Raises:
            BackendError: see :func:`~dispatcher.ssh.connect`; or what that needs is not installed.
        """
        return log_in(self.target(), dial)

    def command(self, *arguments: str) -> list[str]:
        """The command line that calls its Python with these arguments, behind the prolog."""
        if not self.prolog:
            return [self.python, *arguments]
        return ["bash", "-c", _BEHIND_PROLOG, "bash", self.prolog, self.python, *arguments]

    def python_on(self, runner: Runner) -> RemotePython:
        """The machine's Python, reached by a connection."""
        return RemotePython(runner, self.command, self.name, self.python)


def machine_of(worker: str, machine: MachineConfig) -> Machine:
    """A machine of the file as the backend knows it."""
    return Machine(
        name=worker,
        target=partial(target_of, machine),
        python=machine.python,
        prolog=machine.prolog or "",
        environment=dict(machine.environment),
        weights_root=machine.weights_root or "",
        read_roots=machine.weights_read_roots,
        work_folder=machine.work_folder,
        head_address=machine.head_address or "",
    )
