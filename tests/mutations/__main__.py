"""``python -m tests.mutations [NAME…]``: plant each fault in a copy and see that it is found.

The tree is copied once for each processor, without what git ignores; each mutation is applied
there, its tests are run until the first failure, and it is taken back. First the tests run
unharmed, since what fails anyway finds nothing, and to know for how long they may run. Tests that
merely take long find nothing either: a fault that is to be found by a hang says so. Exits 1 if a
fault was not found, 2 if a test fails unharmed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.mutations.catalogue import ALL
from tests.mutations.mutation import ROOT, Mutation

#: Tests of a fault are ended after this, or after three times what they take unharmed.
LIMIT_S = 180.0

#: Unharmed tests that take longer are too wide for a fault.
UNHARMED_LIMIT_S = 1200.0

#: What pytest's exit codes mean here; any other one but these is a fault that was found.
OUTCOMES = {0: "passes", 4: "no such tests", 5: "no tests"}

#: Runs tests, and ends what they leave.
ALONE = Path(__file__).with_name("alone.py")


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("names", nargs="*", help="all of them by default")
    parser.add_argument("--list", action="store_true", help="say what there is, and do nothing")
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests unharmed")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="copies, side by side"
    )
    asked = parser.parse_args()
    chosen = _chosen(asked.names)
    if asked.list:
        for one in chosen:
            print(f"{one.promise:2}  {one.name}: {one.what}")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        return _Run(Path(folder), asked.jobs).all(chosen, unchecked=asked.unchecked)


def _chosen(names: list[str]) -> list[Mutation]:
    known = {one.name: one for one in ALL}
    strangers = [name for name in names if name not in known]
    if strangers:
        raise SystemExit(f"no such mutation: {', '.join(strangers)}; see --list")
    return [known[name] for name in names] or list(ALL)


class _Run:
    """Copies of the tree, each with one fault at a time."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self._jobs = jobs
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            copy = folder / str(number)
            _copy_tree(copy)
            self._free.put(copy)
        self._unharmed_s: dict[str, float] = {}

    def all(self, chosen: list[Mutation], *, unchecked: bool) -> int:
        """Test them; the exit code."""
        with ThreadPoolExecutor(self._jobs) as pool:
            if not unchecked:
                targets = sorted({target for one in chosen for target in one.tests})
                if not all(list(pool.map(self._passes_unharmed, targets))):
                    return 2
            found = list(pool.map(self._is_found, chosen))
        print(f"{sum(found)} of {len(chosen)} found")
        return 0 if all(found) else 1

    def _passes_unharmed(self, target: str) -> bool:
        with self._copy() as copy:
            outcome, seconds, words = _test(copy, (target,), UNHARMED_LIMIT_S)
        self._unharmed_s[target] = seconds
        passes = outcome == "passes"
        print(f"unharmed {outcome:7} {seconds:5.0f} s  {target}", flush=True)
        if not passes:
            print(words, flush=True)
        return passes

    def _is_found(self, one: Mutation) -> bool:
        limit_s = max(LIMIT_S, 3 * sum(self._unharmed_s.get(target, 0.0) for target in one.tests))
        with self._copy() as copy:
            file = copy / one.file
            whole = file.read_text()
            file.write_text(one.applied_to(whole))
            outcome, seconds, words = _test(copy, one.tests, limit_s)
            file.write_text(whole)
        word = verdict(one, outcome)
        by = _by(words) if outcome == "fails" else f"\n               {outcome}"
        print(f"{word:10} {seconds:5.0f} s  promise {one.promise:2}  {one.name}{by}", flush=True)
        return word == FOUND

    @contextmanager
    def _copy(self) -> Iterator[Path]:
        copy = self._free.get()
        try:
            yield copy
        finally:
            self._free.put(copy)


FOUND, MISSED, TIME_LIMIT = "found", "MISSED", "TIME LIMIT"


def verdict(one: Mutation, outcome: str) -> str:
    """What the outcome of its tests says of a fault."""
    if outcome == "hangs":
        return FOUND if one.hangs else TIME_LIMIT
    return FOUND if outcome == "fails" else MISSED


def _by(words: str) -> str:
    """Which test found it."""
    lines = [
        line for line in words.splitlines() if line.startswith(("FAILED tests", "ERROR tests"))
    ]
    return f"\n               {lines[0][:110]}" if lines else ""


def _copy_tree(copy: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        source, target = ROOT / name, copy / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def _test(copy: Path, targets: tuple[str, ...], limit_s: float) -> tuple[str, float, str]:
    """Run tests in the copy: ``passes``, ``fails`` or ``hangs``; seconds; the end of what it said.
    Nothing of a run is left when it is over."""
    # Byte code is told apart by second and size: a change of the same length would be missed.
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["BEQUEATH_TESTS"] = "all"  # those that are not run at each landing as well
    there = [target for target in targets if (copy / target.partition("::")[0]).exists()]
    pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    pytest += ["--hypothesis-profile=unshrunk", *there]
    return run_alone(pytest, limit_s, cwd=copy, env=environment)


def run_alone(command: list[str], limit_s: float, **settings: Any) -> tuple[str, float, str]:
    """Run a command for so long; see :func:`_test`."""
    started = time.monotonic()
    read, write = os.pipe()
    with open(read, "rb") as theirs, open(write, "wb") as ours:  # open as long as we want it
        run = subprocess.Popen(
            [sys.executable, "-P", str(ALONE), *command],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            **settings,
        )
        try:
            said, _ = run.communicate(timeout=limit_s)
            outcome = OUTCOMES.get(run.returncode, "fails")
        except subprocess.TimeoutExpired:
            ours.close()
            said, _ = run.communicate()
            outcome = "hangs"
    return outcome, time.monotonic() - started, said[-3000:]


if __name__ == "__main__":
    sys.exit(main())
