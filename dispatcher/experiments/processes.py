"""The processes of an experiment: a head is started in the background, or all are ended."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil

from dispatcher.background import TAKE_OVER
from dispatcher.control.client import RunFile
from dispatcher.core.why import Cause
from dispatcher.errors import PassingBackendError, UserError
from dispatcher.experiments.why import asked
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.ownership import demand_ours
from dispatcher.folders.status import is_led, leader_of
from dispatcher.folders.studies import refuse_study
from dispatcher.sinks import FEEDS
from dispatcher.wiring.nesting import refuse_nested
from trial_runtime.namesakes import in_folder

#: Seconds a head may take until it answers: it replays its journal first.
START_S = 60.0

#: Seconds after which a tuner that is still being built or restored is left to it.
TUNER_S = 15.0


def start_in_background(folder: Path, *, take_over: bool = False) -> int:
    """Start a head and return its process id once it answers.

    Args:
        folder: the experiment's folder.
        take_over: lead even if another head does.

    Raises:
        NotOurs: the experiment is somebody else's.
        UserError: no experiment may begin in this process, or it is a study.
        DispatcherError: it ended before that; its own message.
    """
    refuse_nested()
    demand_ours(folder)
    refuse_study(ExperimentFolder(folder))
    errors = ExperimentFolder(folder).head_stderr
    process = spawn_head(folder, errors, *([TAKE_OVER] if take_over else []))
    started = time.monotonic()
    deadline = started + START_S
    while time.monotonic() < deadline:
        code = process.poll()
        if code is not None:
            if code == 0:
                return process.pid  # over before we looked
            text = errors.read_text(errors="replace").strip()
            error = PassingBackendError(text or f"the head ended with code {code}")
            error.exit_code = code if code > 0 else 1
            raise error
        run = RunFile.read(folder)
        if run is not None and run.pid == process.pid and _tuner_is_there(folder, started):
            # Somebody has to reap it if we outlive it, as a notebook may.
            threading.Thread(target=process.wait, name="head-reaper", daemon=True).start()
            return process.pid
        time.sleep(0.02)
    process.kill()
    process.wait()
    raise PassingBackendError(f"the head did not answer within {START_S:.0f} s", where=str(errors))


def spawn_head(folder: Path, errors: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start a head's process without waiting for it; ``errors`` gets what it prints at its end.

    Args:
        folder: the experiment's.
        errors: a file, which is replaced.
        *options: of the command line, such as :data:`TAKE_OVER`.
    """
    with errors.open("wb") as stderr:
        return subprocess.Popen(
            # -P: a user's own dispatcher.py in the folder they are in must not be ours.
            [sys.executable, "-P", "-m", "dispatcher.background", str(folder), *options],
            env=child_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )


def _tuner_is_there(folder: Path, started: float) -> bool:
    """Whether the tuner was built, or takes its time: one that cannot be built ends the head within
    a moment, and the caller should know."""
    if time.monotonic() > started + TUNER_S:
        return True
    snapshot = asked(folder, timeout_s=2.0)
    if snapshot is None:
        return False  # it ends just now; its exit code will tell
    return snapshot.why.cause != Cause.TUNER_NOT_READY.name


def child_environment() -> dict[str, str]:
    """Return the environment of this process, in which a child of ours can import our packages even
    where nothing is installed.

    Raises:
        UserError: ``PYTHONPATH`` leads all processes to a user's module of the same name.
    """
    root = str(Path(__file__).resolve().parents[2])
    before = os.environ.get("PYTHONPATH", "")
    for folder in filter(None, before.split(os.pathsep)):
        for name in in_folder(folder).keys() & {"dispatcher", "trial_runtime"}:
            raise UserError(
                f"PYTHONPATH has {folder}, whose {name!r} takes the place of bequeath's package "
                "in every process",
                hint="rename it, or take the folder off PYTHONPATH: a script finds the modules "
                "beside it without that, and so do tuners and trials",
            )
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (before, root)))}


def kill_experiment(folder: Path) -> list[int]:
    """SIGKILL the head and all below it; return the ids of the processes that were ended.

    What the journal holds can be resumed. Only processes that lead this experiment, or belong
    to it by their command line, are touched, by process id.

    Raises:
        NotOurs: the experiment is somebody else's.
    """
    demand_ours(folder)
    ended = _kill_leader(folder)
    ours = [p for p in psutil.process_iter(["pid"]) if _belongs(p, folder)]
    for process in sorted(ours, key=lambda p: p.pid):
        try:
            below = process.children(recursive=True)
            for one in [process, *below]:
                one.kill()
                ended.append(one.pid)
        except psutil.NoSuchProcess:
            continue
    ExperimentFolder(folder).run_file.unlink(missing_ok=True)
    return ended


def _kill_leader(folder: Path) -> list[int]:
    """SIGKILL the process that leads the experiment, in whatever terminal it runs.

    It must hold the experiment's lock file open: a number that was given to another process
    since is left alone.
    """
    leader = leader_of(folder).get("pid")
    if not isinstance(leader, int) or leader == os.getpid() or not is_led(folder):
        return []
    try:
        process = psutil.Process(leader)
        lock = str(ExperimentFolder(folder).lock.resolve())
        if lock not in [file.path for file in process.open_files()]:
            return []
        process.kill()
    except psutil.Error:
        return []
    # Its end is seen by the lock: a process may stay a zombie for as long as its parent likes.
    while is_led(folder):
        time.sleep(0.01)
    return [leader]


def _belongs(process: psutil.Process, folder: Path) -> bool:
    """A head, a tuner host, an agent or the sinks' process of ours whose argument lies in this
    folder."""
    if process.pid == os.getpid():
        return False
    try:
        arguments = process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
    modules = {"dispatcher.background", "dispatcher.tuner_host", "trial_runtime.agent"}
    ours = any(one in modules for one in arguments) or FEEDS in arguments
    return ours and any(one == str(folder) or one.startswith(f"{folder}/") for one in arguments)
