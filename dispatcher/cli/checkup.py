"""The checks of ``doctor``: this machine, and what earlier experiments have left behind.

Each check returns findings and never raises: what cannot be checked is a finding as well.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from dispatcher.errors import BackendError
from dispatcher.findings import Finding, Severity
from dispatcher.folders.experiment_folder import run_folder
from dispatcher.store.filesystem import filesystem_type, is_network
from dispatcher.terminal import formatting
from trial_runtime.torch_version import why_unsafe

#: A socket's path may have 107 bytes on Linux and 103 on macOS; ours end in names like
#: ``/agent-local.sock`` with some room.
_SOCKET_PATH = 103
_SOCKET_NAME = 24

#: Below these an experiment of ordinary size runs into the limit.
_FEW_FILES = 1024
_FEW_THREADS = 4096
_LITTLE_DISK = 1 << 30
_LITTLE_SHARED_MEMORY = 64 << 20

#: Seconds after which the driver of GPUs counts as hung.
_GPUS_S = 20.0

#: bequeath's first year; an earlier clock makes nonsense of every time in a journal.
_EARLIEST = 1_735_689_600


def check_python() -> Iterator[Finding]:
    """Check the interpreter and its operating system."""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    text = f"{platform.python_version()} at {sys.executable}, {system}, {os.cpu_count()} cores"
    fits = (3, 11) <= sys.version_info[:2] < (3, 14)
    hint = "" if fits else "bequeath is made for Python 3.11 to 3.13"
    yield Finding("python", Severity.OK if fits else Severity.PROBLEM, text, hint)


def check_packages() -> Iterator[Finding]:
    """Check the packages that bequeath depends on, and optional ones."""
    missing, versions = [], []
    for name in _requirements():
        version = _version(name)
        if version is None:
            missing.append(name)
        else:
            versions.append(f"{name} {version}")
    if missing:
        text = f"missing: {', '.join(missing)}"
        yield Finding("packages", Severity.PROBLEM, text, "pip install --upgrade bequeath")
    else:
        yield Finding("packages", Severity.OK, ", ".join(versions))
    for name, extra, use in (
        ("torch", "torch", "weights of torch modules"),
        ("matplotlib", "plot", "bequeath plot"),
        ("scikit-learn", "plot", "the importance of parameters"),
    ):
        version = _version(name)
        if version is None:
            text = f"not installed, needed for {use}"
            yield Finding(name, Severity.NOTE, text, f"pip install 'bequeath[{extra}]'")
        elif name == "torch" and (unsafe := why_unsafe(version)):
            hint = "pip install 'torch>=2.10'; until then no file of torch.save is read"
            yield Finding(name, Severity.NOTE, unsafe, hint)
        else:
            yield Finding(name, Severity.OK, version)


def _requirements() -> list[str]:
    try:
        lines = importlib.metadata.requires("bequeath") or []
    except importlib.metadata.PackageNotFoundError:
        lines = ["numpy", "pyzmq", "msgspec", "filelock", "safetensors", "blake3", "pydantic",
                 "sqlalchemy", "alembic", "typer", "rich"]  # fmt: skip
    plain = [line for line in lines if "extra ==" not in line]
    return [re.split(r"[^A-Za-z0-9_.-]", line, maxsplit=1)[0] for line in plain]


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_sockets() -> Iterator[Finding]:
    """Check the folder for sockets: private, ours, and short enough."""
    try:
        folder = run_folder(Path(tempfile.gettempdir()) / "bequeath-doctor")
    except BackendError as error:  # another user's folder is in the way
        hint = "experiments note one of their own; or set XDG_RUNTIME_DIR to a folder of yours"
        yield Finding("sockets", Severity.NOTE, str(error).partition("\n")[0], hint)
        return
    except OSError as error:
        hint = "set XDG_RUNTIME_DIR to a folder of your own"
        yield Finding("sockets", Severity.PROBLEM, str(error).partition("\n")[0], hint)
        return
    folder.rmdir()
    length = len(os.fsencode(folder)) + _SOCKET_NAME
    if length > _SOCKET_PATH:
        text = f"{folder.parent} is too long for the paths of sockets"
        hint = "set XDG_RUNTIME_DIR or TMPDIR to a shorter folder"
        yield Finding("sockets", Severity.PROBLEM, text, hint)
    else:
        yield Finding("sockets", Severity.OK, str(folder.parent))


def check_folder(topic: str, folder: Path, *, journal: bool) -> Iterator[Finding]:
    """Check a folder: writable, with enough room, and for a journal not on a network.

    Args:
        topic: what to call it in findings.
        folder: need not exist; then the nearest one above it is checked.
        journal: whether journals are kept there.
    """
    there = next(path for path in (folder, *folder.parents) if path.exists())
    kind = filesystem_type(there)
    if not os.access(there, os.W_OK):
        yield Finding(
            topic, Severity.PROBLEM, f"{there} cannot be written", "choose another folder"
        )
        return
    free = shutil.disk_usage(there).free
    text = f"{folder}{'' if folder.exists() else ' (will be made)'}, {formatting.size(free)} free"
    text += f", {kind}" if kind else ""
    if journal and kind is not None and is_network(kind):
        hint = "set experimentWorkingDirectory to a local disk; weights may stay on the network"
        yield Finding(topic, Severity.PROBLEM, f"{text}: no place for a journal", hint)
    elif free < _LITTLE_DISK:
        yield Finding(topic, Severity.NOTE, text, "little room is left")
    else:
        yield Finding(topic, Severity.OK, text)


def check_mount(topic: str, folder: Path) -> Iterator[Finding]:
    """Check the mount below a folder of weights; no finding if all is well."""
    from nfs_setup import advice_on, mount_of

    mount = mount_of(folder)
    if mount is None:
        return
    for advice in advice_on(mount):
        # Weights in memory may be meant to be there: no reason to exit with 1.
        bad = advice.level == "trouble" and mount.is_nfs
        text = f"{mount.kind} at {mount.point}: {advice.text}"
        yield Finding(topic, Severity.PROBLEM if bad else Severity.NOTE, text)


def check_limits() -> Iterator[Finding]:
    """Check limits on open files, and on threads: each blocked request of a tuner is one."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = soft != resource.RLIM_INFINITY and soft < _FEW_FILES
    hint = "raise it with 'ulimit -n 4096'" if few else ""
    yield Finding("open files", Severity.NOTE if few else Severity.OK, _limit(soft), hint)
    threads = _most_threads()
    few = threads is not None and threads < _FEW_THREADS
    hint = "fewer requests can wait for parents at once; see 'lookahead'" if few else ""
    yield Finding("threads", Severity.NOTE if few else Severity.OK, _limit(threads), hint)


def _limit(value: int | None) -> str:
    return "no limit" if value is None or value == resource.RLIM_INFINITY else f"{value:,} at most"


def _most_threads() -> int | None:
    """Return the lowest limit that can be read: of the user, the kernel, the control group."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    bounds = [] if soft == resource.RLIM_INFINITY else [soft]
    for name in ("threads-max", "pid_max"):
        bounds += _number_in(Path("/proc/sys/kernel") / name)
    try:
        group = Path("/proc/self/cgroup").read_text().strip().rpartition(":")[2]
    except OSError:
        group = ""
    bounds += _number_in(Path("/sys/fs/cgroup") / group.lstrip("/") / "pids.max")
    return min(bounds, default=None)


def _number_in(path: Path) -> list[int]:
    try:
        return [int(path.read_text())]
    except (OSError, ValueError):
        return []


def check_shared_memory() -> Iterator[Finding]:
    """Check ``/dev/shm``, which data loaders of torch need; containers often give it 64 MB."""
    folder = Path("/dev/shm")  # noqa: S108 - looked at, not written
    if not folder.is_dir():
        if sys.platform == "linux":
            yield Finding(
                "shared memory", Severity.NOTE, "missing", "data loaders with workers need it"
            )
        return
    usage = shutil.disk_usage(folder)
    text = f"{formatting.size(usage.free)} of {formatting.size(usage.total)} free"
    little = usage.free < _LITTLE_SHARED_MEMORY
    hint = "data loaders with workers may fail; give the container more" if little else ""
    yield Finding("shared memory", Severity.NOTE if little else Severity.OK, text, hint)


def check_clock() -> Iterator[Finding]:
    """Check the clock: times in the journal are UTC."""
    now = time.time()
    wrong = now < _EARLIEST
    hint = "set the clock; times in journals would make no sense" if wrong else ""
    yield Finding(
        "clock", Severity.PROBLEM if wrong else Severity.OK, f"{formatting.moment(now)} UTC", hint
    )


def check_gpus() -> Iterator[Finding]:
    """Check how many GPUs there are, and whether agents can count them. Runs another process."""
    from dispatcher.remote_python.errors import ProgramFailed
    from dispatcher.remote_python.gpu_findings import AllGpus, in_words
    from dispatcher.remote_python.runner import ask_here

    try:
        answer = ask_here("gpus", {}, AllGpus, limit_s=_GPUS_S)
    except TimeoutError:
        text = f"the GPU driver has not answered for {_GPUS_S:.0f} s"
        yield Finding("gpus", Severity.PROBLEM, text, "does nvidia-smi answer?")
        return
    except ProgramFailed:
        yield Finding("gpus", Severity.NOTE, "cannot be looked at")
        return
    if not answer.gpus:
        yield Finding("gpus", Severity.OK, f"none ({answer.trouble or 'the driver sees none'})")
        return
    for index, gpu in enumerate(answer.gpus):
        if gpu.trouble:
            yield Finding("gpus", Severity.PROBLEM, f"GPU {index}: {gpu.trouble}")
    if not answer.pynvml:
        text = f"{in_words(answer.gpus)}; not counted, since nvidia-ml-py is not installed"
        yield Finding("gpus", Severity.NOTE, text, "pip install 'bequeath[gpu]'")
        return
    yield Finding("gpus", Severity.OK, in_words(answer.gpus))
