"""Run the tests folder by folder and say how long each took: ``python tests/run.py [FOLDER…]``.

The last lines are the sum over all folders. Exits 1 if anything failed.

With ``--again N`` up to N failures of a folder whose tests watch real processes get a second
look, alone: on a machine that is shared with others a process may starve past any bound. One
that passes then is not forgotten but named at the end as unstable. Rules (the other folders)
hold at once or are broken.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ORDER = ["arch", "unit", "sim", "integration", "faults", "system", "upgrade"]
REAL = {"integration", "faults", "system"}
COUNT = re.compile(r"(\d+) (passed|failed|skipped|error)")
BROKEN = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$")


class Run:
    """One run of pytest: its code, its counts and the tests that failed."""

    def __init__(self, *words: str) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", *words],
            stdout=subprocess.PIPE,
            text=True,
            cwd=HERE.parent,
        )
        self.summary = ""
        self.failed: list[str] = []
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if COUNT.search(line):
                self.summary = line.strip().strip("= ")
            if match := BROKEN.match(line):
                self.failed.append(match[1])
        self.code = process.wait()

    def count(self, what: str) -> int:
        return sum(int(n) for n, word in COUNT.findall(self.summary) if word.startswith(what))


def second_look(folder: str, first: Run, most: int) -> Run | None:
    """The failed tests once more, if they are few and of real processes."""
    if folder not in REAL or not 0 < len(first.failed) <= most:
        return None
    print(f"== once more, alone: {', '.join(first.failed)}", flush=True)
    with tempfile.TemporaryDirectory() as base:
        return Run(f"--basetemp={base}/pytest", *first.failed)


def main() -> int:
    """Run the named folders, or all of them in their order of speed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--again", type=int, default=0, metavar="N", help="see above")
    options = parser.parse_args()
    there = {p.name for p in HERE.iterdir() if p.is_dir() and any(p.rglob("test_*.py"))}
    names = options.folders or [n for n in ORDER if n in there] + sorted(there - set(ORDER))
    passed = failed = skipped = 0
    unstable: list[str] = []
    times: list[tuple[str, float, str]] = []
    broken = False
    for name in names:
        print(f"== tests/{name}", flush=True)
        started = time.monotonic()
        run = Run(str(HERE / name))
        again = second_look(name, run, options.again)
        if again is not None and again.code == 0:
            unstable += run.failed
        else:
            broken = broken or run.code != 0
            failed += run.count("failed") + run.count("error")
        passed += run.count("passed")
        skipped += run.count("skipped")
        times.append((name, time.monotonic() - started, run.summary))
    print("\ntime of each folder")
    for name, seconds, summary in times:
        print(f"  {seconds:7.1f} s  tests/{name:<12} {summary}")
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped, {len(unstable)} unstable")
    for test in unstable:
        print(f"unstable (failed, then passed alone): {test}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
