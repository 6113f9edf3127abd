"""One guest of the rig: what is run in it, and its power.

Orders and answers go through files, not over the network, so a guest that is cut off still
takes orders.
"""

from __future__ import annotations

import itertools
import shlex
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.system.guest import Guest
from tests.system.nfs.first import TRIAL, first_program

ROOT = Path(__file__).parents[3]

#: The code of what had not ended when the power went.
DIED = 255

#: A bound on a hang: guests share this machine's processors with all other tests (seconds).
PATIENCE_S = 280.0

_NUMBERS = itertools.count()

#: What Debian's boot would start of what may be enabled, in its order, and then mounts.
_SERVICES = ("rpcbind", "nfs-common", "nfs-kernel-server")
_START = """
for name in {services}; do
  for link in /etc/rcS.d/S??$name /etc/rc2.d/S??$name; do
    [ -e "$link" ] && service $name start
  done
done
exit 0
"""


class Answer(NamedTuple):
    """How a command in a guest ended; 124: it took too long; 255: the power went before."""

    code: int
    out: str
    err: str


class Running:
    """A command that was started in a guest and goes on by itself."""

    def __init__(self, machine: Machine, path: Path, words: str) -> None:
        self._machine = machine
        self._path = path
        self._words = words
        self._answer: Answer | None = None

    def alive(self) -> bool:
        """Whether it has neither ended nor lost its machine."""
        return not self._ended()

    def wait(self, limit_s: float = PATIENCE_S) -> Answer:
        """Wait for its end. AssertionError if that takes longer."""
        if not self._machine.await_(self._ended, limit_s):
            raise AssertionError(
                f"{self._machine.name}: {self._words} has not ended in {limit_s:.0f} s; "
                f"it said:\n{self.said()[-2000:]}\n{self._machine.said()}"
            )
        if self._answer is None:
            code = self._code()
            texts = (_text(self._path, kind) for kind in ("out", "err"))
            self._answer = Answer(DIED if code is None else code, *texts)
            for kind in ("order", "taken", "out", "err", "rc", "pid"):
                self._path.with_suffix(f".{kind}").unlink(missing_ok=True)
        return self._answer

    def said(self) -> str:
        """What it has said so far, errors last."""
        if self._answer is not None:
            return self._answer.out + self._answer.err
        return _text(self._path, "out") + _text(self._path, "err")

    def signal(self, name: str = "KILL") -> None:
        """Send a signal to it and to all that it started."""
        pid = _text(self._path, "pid").strip()
        if pid and self.alive():
            self._machine.run("kill", f"-{name}", "--", f"-{pid}")

    def _ended(self) -> bool:
        mine = self._machine.orders == self._path.parent and self._machine.is_on()
        return self._answer is not None or self._code() is not None or not mine

    def _code(self) -> int | None:
        text = _text(self._path, "rc")
        return int(text) if text.endswith("\n") else None


class Machine:
    """One guest. ``name`` is its host name, too; ``address`` is known to the others by it.

    Args:
        name: its name.
        address: in the network of the rig.
        folder: on this machine, for its disk and for orders.
        disk: what its disk is a copy of.
        hosts: names of all machines, as /etc/hosts has them.
        inside: a command that enters the network of the rig.
        devices: its network card, for its kernel.
        shared: folders of this machine that it has, too, read-only.
    """

    def __init__(
        self,
        name: str,
        address: str,
        *,
        folder: Path,
        disk: Path,
        hosts: str,
        inside: Sequence[str],
        devices: Sequence[str],
        shared: Sequence[str],
    ) -> None:
        self.name = name
        self.address = address
        self.orders = folder / "orders0"
        self._hosts = hosts
        self._shared = shared
        self._folder = folder
        self._boots = itertools.count(1)
        self._heard = threading.Condition()
        self._lines: deque[str] = deque(maxlen=40)
        self._is_on = self._is_ready = False
        self._listener: threading.Thread | None = None
        folder.mkdir()
        self._guest = Guest(folder, disk=disk, inside=inside, devices=devices, memory="512M")

    def boot(self, *, mount: bool = True) -> None:
        """Switch it on and wait until what is enabled runs; with ``mount`` also until the
        mounts of its fstab are tried (a share takes as long as its server does)."""
        self.switch_on()
        self.finish_boot(mount=mount)

    def switch_on(self) -> None:
        """Begin to boot, and come back at once."""
        assert not self._is_on, f"{self.name} is on"
        self.orders = self._folder / f"orders{next(self._boots)}"
        self.orders.mkdir()
        program = first_program(self.name, self.address, self._hosts, self.orders, self._shared)
        self._is_on, self._is_ready = True, False
        self._guest.begin(program)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def finish_boot(self, *, mount: bool = True) -> None:
        """Wait until it is up, see :meth:`boot`."""
        if (
            not self.await_(lambda: self._is_ready or not self._is_on, PATIENCE_S)
            or not self._is_on
        ):
            raise AssertionError(f"{self.name} does not boot:\n{self.said()}")
        began = self.run(
            "bash", "-c", _START.format(services=" ".join(_SERVICES)), limit_s=PATIENCE_S
        )
        assert began.code == 0, began
        mounting = self.start("mount", "-a", "-O", "_netdev")
        if mount:
            mounting.wait(PATIENCE_S)

    def run(self, *argv: str, limit_s: float = PATIENCE_S) -> Answer:
        """Run a command as root; 124 if it takes longer.

        Raises:
            AssertionError: if the power goes meanwhile, or if it cannot even be ended.
        """
        running = self._order(("timeout", "-k", "1", f"{limit_s}", *argv))
        answer = running.wait(limit_s + 30)
        assert answer.code != DIED or self.is_on(), f"{self.name} died:\n{self.said()}"
        return answer

    def as_user(self, *argv: str, limit_s: float = PATIENCE_S) -> Answer:
        """Run a command as the trials' user, whom all machines know by the same number."""
        return self.run(*self.user_argv(*argv), limit_s=limit_s)

    def start(self, *argv: str) -> Running:
        """Start a command as root (see :meth:`user_argv`) in a session of its own."""
        return self._order(("setsid", *argv))

    def python(self, program: str, *arguments: str, limit_s: float = PATIENCE_S) -> Answer:
        """Run our interpreter as root with this checkout, see :meth:`python_argv`."""
        return self.run(*self.python_argv(program, *arguments), limit_s=limit_s)

    def nfs(self, *argv: str, limit_s: float = PATIENCE_S) -> Answer:
        """``bequeath nfs …`` of this checkout, as root."""
        argv = self.python_argv("-m", "dispatcher.cli", "nfs", *argv)
        return self.run(*argv, limit_s=limit_s)

    @staticmethod
    def user_argv(*argv: str) -> tuple[str, ...]:
        """The command, by the trials' user with a home of its own."""
        number = str(TRIAL.number)
        user = ("setpriv", "--reuid", number, "--regid", number, "--clear-groups")
        return ("env", f"HOME={TRIAL.home}", f"USER={TRIAL.name}", *user, *argv)

    @staticmethod
    def python_argv(program: str, *arguments: str) -> tuple[str, ...]:
        """Our interpreter with this checkout on its path. ``program``: a file that ends with
        ``.py``, an option (``-m``), or else the text of a program."""
        how = [program] if program.endswith(".py") or program.startswith("-") else ["-c", program]
        return ("env", f"PYTHONPATH={ROOT}", sys.executable, "-P", "-B", *how, *arguments)

    def netem(self, delay_ms: float = 0, loss_percent: float = 0) -> None:
        """What it sends comes late, and some of it never."""
        words = (f"delay {delay_ms}ms loss {loss_percent}% limit 20000").split()
        done = self.run("tc", "qdisc", "replace", "dev", "eth0", "root", "netem", *words)
        shown = self.run("tc", "qdisc", "show", "dev", "eth0")
        assert done.code == 0, done
        assert "netem" in shown.out, shown

    def netem_off(self) -> None:
        """What it sends goes at once again."""
        self.run("tc", "qdisc", "del", "dev", "eth0", "root")

    def copy_disk(self, path: Path) -> None:
        """What its disk holds by now, for other machines to begin with. It must be off."""
        assert not self._is_on, f"{self.name} is on"
        subprocess.run(["cp", "--sparse=always", str(self._folder / "disk"), str(path)], check=True)

    def cut_power(self) -> None:
        """Now: no packet says so to others, and what was not synced is gone."""
        self._guest.kill()
        if self._listener is not None:
            self._listener.join()
            self._listener = None
        self._guest.cut_power()

    def is_on(self) -> bool:
        """Whether it has power and has not died."""
        return self._is_on

    def said(self) -> str:
        """The last lines on its console."""
        return "\n".join(self._lines)

    def await_(self, what: Callable[[], bool], limit_s: float) -> bool:
        """Wait until it is so, looking again at whatever comes over the console."""
        end = time.monotonic() + limit_s
        with self._heard:
            while not what():
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._heard.wait(min(left, 0.5))  # a line can drown in the kernel's own
        return True

    def _order(self, argv: Sequence[str]) -> Running:
        assert self._is_on, f"{self.name} has no power"
        path = self.orders / f"{next(_NUMBERS)}"
        new = path.with_suffix(".new")
        new.write_text(f"echo $BASHPID >{path.name}.pid\ncd /root\nexec {shlex.join(argv)}\n")
        new.rename(path.with_suffix(".order"))
        return Running(self, path, shlex.join(argv)[:200])

    def _listen(self) -> None:
        for line in self._guest.lines(None):
            with self._heard:
                self._lines.append(line)
                self._is_ready = self._is_ready or line == "guest: ready"
                self._heard.notify_all()
        with self._heard:
            self._is_on = False
            self._heard.notify_all()


def _text(path: Path, kind: str) -> str:
    try:
        return path.with_suffix(f".{kind}").read_text(errors="replace")
    except FileNotFoundError:
        return ""
