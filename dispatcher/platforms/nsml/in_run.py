"""Runs an agent in a run of NSML: says in a file what becomes of it, and ends it when a file wants
it. NSML does neither. Of several nodes the first one speaks for all; others have files beside it.

Runs in the run's container, by any Python from 3.9 on, and imports the standard library alone."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

#: Words for what becomes of it: a stop that was wanted, and one by the container's end.
RUNS, ENDED, STOPPED, TAKEN = "runs", "ended", "stopped", "taken"

#: Seconds between two looks.
STEP_S = 0.2


def main() -> int:
    """Run a command. Arguments: the file, the seconds between two words of it, and the command."""
    path, beat_s, command = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    own = f"{path}.{rank}" if (rank := os.environ.get("NSML_RANK", "0")) != "0" else path
    os.umask(0o077)
    try:  # a run that is asked for twice, or started again, is none of ours
        os.close(os.open(f"{own}.begun", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return 0
    began = says_at = time.monotonic()
    taken: list[int] = []
    dies_at: float | None = None
    if os.path.exists(f"{path}.stop"):
        _say(own, STOPPED, 0.0, 0)
        return 0
    signal.signal(signal.SIGTERM, lambda number, _: taken.append(number))
    child = subprocess.Popen(command)
    while child.poll() is None:
        now = time.monotonic()
        if now >= says_at:
            _say(own, RUNS, now - began, None)
            says_at = now + beat_s
        if dies_at is None and (taken or os.path.exists(f"{path}.stop")):
            dies_at = now + _grace_s(path)
            child.terminate()
        elif dies_at is not None and now >= dies_at:
            child.kill()
        time.sleep(STEP_S)
    word = TAKEN if taken else STOPPED if dies_at is not None else ENDED
    _say(own, word, time.monotonic() - began, child.returncode)
    return abs(int(child.returncode))


def _say(path: str, word: str, seconds: float, code: int | None) -> None:
    """Write how it is; a share that is away for a moment is no reason to end."""
    with contextlib.suppress(OSError), open(path, "w") as file:
        json.dump({"word": word, "seconds": seconds, "code": code}, file)


def _grace_s(path: str) -> float:
    """How long the agent may take to end."""
    with contextlib.suppress(OSError, ValueError), open(f"{path}.stop") as file:
        return float(file.read())
    return 30.0


if __name__ == "__main__":
    sys.exit(main())
