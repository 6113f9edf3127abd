"""Downloads wheels by the user's own pip, which alone knows its indexes, proxies and mirrors."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dispatcher.errors import BackendError
from dispatcher.wheelhouse.pythons import HostPython
from dispatcher.wheelhouse.wheels import Wheel

#: numpy over a slow line takes long; only the thread that brings up one machine waits.
LIMIT_S = 900.0

#: Seconds that one answer may take, and how often it is asked again: machines without a way out
#: should fail soon.
_TIMEOUT_S, _RETRIES = 20, 2

_MOST_TEXT = 300

#: The warning of pip before it tries again, and the parts of it that are worth knowing.
_BROKEN = "after connection broken by "
_HOST = re.compile(r"host='([^']+)'")
_ERRNO = re.compile(r"\[Errno -?\d+\] ([^'\")\]]+)")
_CLASS = re.compile(_BROKEN + r"'?(\w+)")


class PipFailed(BackendError):
    """Raised when pip fails; the text is the end of its output."""


def fetch(wheels: Sequence[Wheel], host: HostPython, folder: Path) -> None:
    """Download these files, and no other content than theirs, into a folder. Blocks.

    Args:
        wheels: the files, with their digests.
        host: the Python that they are for.
        folder: an empty one.

    Raises:
        PipFailed: there is no pip, or it did not get them.
    """
    requirements = folder / "requirements.txt"
    requirements.write_text(
        "".join(f"{w.project}=={w.version} --hash=sha256:{w.digest}\n" for w in wheels)
    )
    called = [*_pip(), "download", *_options(wheels, host), "-d", str(folder)]
    try:
        ran = subprocess.run(
            [*called, "-r", str(requirements)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PipFailed(f"pip: {error}") from error
    if ran.returncode:
        raise PipFailed(cause_of(ran.stderr, ran.returncode)[:_MOST_TEXT])


def cause_of(stderr: str, code: int) -> str:
    """The last error of pip; but for an index that does not answer that is only "no matching
    distribution", and the reason stands in a warning before."""
    errors = [line.removeprefix("ERROR: ") for line in stderr.splitlines() if line[:5] == "ERROR"]
    last = errors[-1] if errors else f"pip: exit code {code}"
    broken = [line for line in stderr.splitlines() if _BROKEN in line]
    if not broken or "No matching distribution" not in last:
        return last
    place = _HOST.search(broken[-1])
    index = f"the package index at {place[1]}" if place else "the package index"
    reason = _ERRNO.search(broken[-1]) or _CLASS.search(broken[-1])
    return f"pip cannot reach {index}: {reason[1] if reason else 'the connection breaks'}"


def _options(wheels: Sequence[Wheel], host: HostPython) -> list[str]:
    """Options for the machine's Python instead of ours: the tags of the very wheels wanted."""
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"]
    options += ["--only-binary=:all:", "--require-hashes", "--implementation", "cp"]
    options += ["--timeout", str(_TIMEOUT_S), "--retries", str(_RETRIES)]
    options += ["--python-version", ".".join(map(str, host.version))]
    abis = dict.fromkeys(abi for wheel in wheels for abi in wheel.tags[1])
    platforms = dict.fromkeys(name for wheel in wheels for name in wheel.tags[2])
    options += [word for abi in abis for word in ("--abi", abi)]
    return options + [word for name in platforms for word in ("--platform", name)]


def _pip() -> list[str]:
    """The command line of pip here: this environment's, or else the one that Python brings along
    for new environments, run as it lies there."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    spec = importlib.util.find_spec("ensurepip")
    if spec is not None and spec.origin is not None:
        bundled = sorted((Path(spec.origin).parent / "_bundled").glob("pip-*.whl"))
        if bundled:
            return [sys.executable, os.fspath(bundled[-1] / "pip")]
    raise PipFailed("there is no pip here")
