"""Run the tests folder by folder and say how long each took: ``python tests/run.py [FOLDER…]``.

Two folders run beside each other, since tests that watch real processes mostly wait; with
``--lanes 1`` one after the other. The last lines are the sum over all folders. Exits 1 if
anything failed.

With ``--again N`` up to N failures of a folder whose tests watch real processes get a second
look, alone, when all else is over: on a machine that is shared with others a process may starve
past any bound. One that passes then is not forgotten but named at the end as unstable. Rules
(the other folders) hold at once or are broken.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from pathlib import Path

HERE = Path(__file__).parent
#: The longest first, beside the quick ones: what is broken shows early, and no lane ends alone.
ORDER = ["system", "arch", "unit", "sim", "integration", "faults", "upgrade"]
REAL = {"integration", "faults", "system"}
COUNT = re.compile(r"(\d+) (passed|failed|skipped|error)")
BROKEN = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$")


class Run:
    """One run of pytest: its code, its counts, its seconds and the tests that failed."""

    def __init__(self, name: str, *words: str) -> None:
        self.name = name
        self.summary = ""
        self.failed: list[str] = []
        started = time.monotonic()
        # A base of its own: two runs that begin at once would tidy each other's away.
        with tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True) as base:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-q", f"--basetemp={base}/pytest", *words],
                stdout=subprocess.PIPE,
                text=True,
                cwd=HERE.parent,
            )
            assert process.stdout is not None
            for line in process.stdout:
                print(f"{name:<12}| {line}", end="", flush=True)
                if COUNT.search(line):
                    self.summary = line.strip().strip("= ")
                if match := BROKEN.match(line):
                    self.failed.append(match[1])
            self.code = process.wait()
        self.seconds = time.monotonic() - started

    def count(self, what: str) -> int:
        return sum(int(n) for n, word in COUNT.findall(self.summary) if word.startswith(what))


def run_all(names: list[str], lanes: int) -> list[Run]:
    """All folders, ``lanes`` of them at a time."""
    waiting, done = deque(names), []

    def lane() -> None:
        while waiting:
            try:
                name = waiting.popleft()
            except IndexError:  # the other lane was quicker
                return
            done.append(Run(name, str(HERE / name)))

    threads = [threading.Thread(target=lane) for _ in range(lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(done, key=lambda run: names.index(run.name))


def passes_alone(run: Run, most: int) -> bool:
    """Whether the failed tests, if few and of real processes, pass when nothing runs beside."""
    if run.name not in REAL or not 0 < len(run.failed) <= most:
        return False
    print(f"== once more, alone: {', '.join(run.failed)}", flush=True)
    return Run(run.name, *run.failed).code == 0


def main() -> int:
    """Run the named folders, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--again", type=int, default=0, metavar="N", help="see above")
    parser.add_argument("--lanes", type=int, default=2, metavar="N", help="folders at a time")
    options = parser.parse_args()
    there = {p.name for p in HERE.iterdir() if p.is_dir() and any(p.rglob("test_*.py"))}
    names = options.folders or [n for n in ORDER if n in there] + sorted(there - set(ORDER))
    runs = run_all(names, options.lanes)
    unstable: list[str] = []
    broken: list[Run] = []
    for run in runs:
        if run.code == 0:
            continue
        if passes_alone(run, options.again):
            unstable += run.failed
        else:
            broken.append(run)
    print("\ntime of each folder")
    for run in runs:
        print(f"  {run.seconds:7.1f} s  tests/{run.name:<12} {run.summary}")
    passed = sum(run.count("passed") for run in runs) + len(unstable)
    skipped = sum(run.count("skipped") for run in runs)
    failed = sum(run.count("failed") + run.count("error") for run in broken)
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped, {len(unstable)} unstable")
    for test in unstable:
        print(f"unstable (failed, then passed alone): {test}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
