"""Run a peer's script in its environment, once in this process, and sweep up behind it.

``measure("ray_tune_reuse")`` returns what the peer reached, or why it could not be measured:
a peer that is not to be had is a row without a figure, never the end of the benchmarks.

    python -m benchmarks.peer_runs [NAME …] [--quick]
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.environments import EnvironmentFailed, python_of

SCRIPTS = Path(__file__).parent / "peers"
MARK = "BEQUEATH_PEER_RUN"  # in the environment of all that belongs to one run
TERM_GRACE_S = 5.0
REASON_CHARS = 300


@dataclass(frozen=True)
class Peer:
    """How to run one peer."""

    environment: str
    script: str
    trials: int  # enough for a rate in about half a minute on two cores
    quick_trials: int
    limit_s: float
    before: tuple[str, ...] = ()  # arguments before the number of trials
    after: tuple[str, ...] = ()


PEERS = {
    "ray_tune_function": Peer("ray", "ray_tune.py", 24, 6, 240, before=("function",)),
    "ray_tune_reuse": Peer("ray", "ray_tune.py", 200, 40, 180, before=("reuse",)),
    "ray_tune_unlogged": Peer("ray", "ray_tune.py", 400, 60, 180, before=("unlogged",)),
    "optuna_sqlite": Peer("optuna", "optuna_sqlite.py", 500, 60, 120),
    "syne_tune_local": Peer("synetune", "syne_tune_local.py", 100, 12, 180, after=("100",)),
    # Its cost per trial grows with their number, so few trials are the fair choice.
    "neps_folder": Peer("neps", "neps_folder.py", 100, 40, 150),
}


@dataclass(frozen=True)
class PeerResult:
    """What a peer reached; ``per_second`` is None when it could not be measured."""

    peer: str
    version: str = ""
    trials: int = 0
    seconds: float = 0.0
    per_second: float | None = None
    detail: str = ""
    reason: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is a figure."""
        return self.per_second is not None

    def __str__(self) -> str:
        """One line for the detail of a row."""
        if self.per_second is None:
            return f"{self.peer}: not measured, {self.reason}"
        told = f"{self.peer} {self.version}: {self.per_second:.3g} trials/s"
        return f"{told} over {self.trials} trials ({self.detail})"


class PeerFailed(Exception):
    """Raised when a script gave no answer; says why in one line."""


_measured: dict[tuple[str, int], PeerResult] = {}


def measure(name: str, *, trials: int | None = None, quick: bool = False) -> PeerResult:
    """The rate of a peer with two trials at once; the same again when asked again.

    Blocks for up to the peer's time limit, and for minutes more when its environment has to
    be made. Start-up is not counted; each script's docstring says what is.

    Args:
        name: a key of :data:`PEERS`.
        trials: how many, in place of the usual number.
        quick: few trials, for a smoke test.
    """
    peer = PEERS[name]
    number = trials or (peer.quick_trials if quick else peer.trials)
    if (name, number) not in _measured:
        _measured[name, number] = _run(name, peer, number)
    return _measured[name, number]


def _run(name: str, peer: Peer, trials: int) -> PeerResult:
    arguments = [*peer.before, str(trials), *peer.after]
    try:
        last = answer(peer.environment, peer.script, arguments, peer.limit_s)
        return PeerResult(**last)
    except PeerFailed as failed:
        return PeerResult(name, reason=str(failed))
    except TypeError:
        return PeerResult(name, reason=f"said something else: {str(last)[:REASON_CHARS]}")


def answer(environment: str, script: str, arguments: Sequence[str], limit_s: float) -> Any:
    """Run a script below ``peers`` in an environment; return the JSON of the last line it prints.

    Blocks for up to ``limit_s`` seconds, and for minutes more when the environment has to be made.

    Raises:
        PeerFailed: no environment, not done in time, an exit code, or no JSON.
    """
    try:
        python = python_of(environment)
    except (EnvironmentFailed, OSError, subprocess.CalledProcessError) as error:
        raise PeerFailed(f"its environment could not be made: {error}") from None
    command = [str(python), str(SCRIPTS / script), *arguments]
    # Below /tmp itself: Ray makes Unix sockets in it, whose paths may have 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="bq-peer-", dir="/tmp"))
    try:
        return _last_line(*_output(command, folder, limit_s), limit_s)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _output(command: list[str], folder: Path, limit_s: float) -> tuple[int | None, str, str]:
    """Exit code (None: too slow), standard output and error of a script; nothing stays."""
    scratch = folder / "scratch"
    scratch.mkdir()
    with (folder / "out").open("w+") as out, (folder / "err").open("w+") as err:
        script = subprocess.Popen(
            command,
            cwd=scratch,
            env=environment_in(scratch),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            code = script.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            end_all(str(scratch))
            script.wait()
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read()


def environment_in(scratch: Path) -> dict[str, str]:
    """Ours without what would lead a peer's Python astray, and with a home of its own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    kept.pop("VIRTUAL_ENV", None)
    own = {"HOME": str(scratch), "TMPDIR": str(scratch), MARK: str(scratch)}
    return {**kept, **own, "PYTHONUNBUFFERED": "1"}


def end_all(scratch: str) -> None:
    """End whatever the run started and is still alive, daemons included, by its id."""
    deadline = time.monotonic() + TERM_GRACE_S
    while alive := _marked(scratch):
        for process in alive:
            try:
                process.kill() if time.monotonic() > deadline else process.terminate()
            except psutil.NoSuchProcess:
                pass
        psutil.wait_procs(alive, timeout=0.2)


def _marked(scratch: str) -> list[psutil.Process]:
    """Processes that inherited the mark of this run, whoever their parent is by now."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == scratch:
                found.append(process)
        except (psutil.Error, OSError):
            continue  # gone, or somebody else's
    return found


def _last_line(code: int | None, out: str, err: str, limit_s: float) -> Any:
    if code is None:
        raise PeerFailed(f"not done within {limit_s:.0f} s")
    last = (out.strip().splitlines() or [""])[-1]
    if code == 0:
        try:
            return json.loads(last)
        except ValueError:
            raise PeerFailed(f"said something else: {last[:REASON_CHARS]}") from None
    said = (err.strip().splitlines() or [last])[-1]
    raise PeerFailed(f"exit code {code}: {said[:REASON_CHARS]}")


def main() -> None:
    """Measure the peers named, or all."""
    names = [one for one in sys.argv[1:] if not one.startswith("-")]
    for name in names or PEERS:
        print(f"{name}: {measure(name, quick='--quick' in sys.argv)}", flush=True)


if __name__ == "__main__":
    main()
