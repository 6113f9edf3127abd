"""Run the tests folder by folder and say how long each took: ``python tests/run.py [FOLDER…]``.

Long folders are run in two parts; the second of ``unit`` is called ``unit/…``. Four parts run
beside each other, the longest first, since tests that watch real processes mostly wait (with two,
two cores were idle half of the time; of ``engines`` three quarters are waits for clusters); with
``--lanes 1`` one after the other. The last lines are the sum over all
folders, each failed test with the first line of its error, and how many tests were left out, with
the one command that installs what they need. Exits 1 if anything failed.

``--quick`` runs what tells most in minutes: the unit tests, the simulation and one experiment with
real processes.

With ``--again N`` up to N failures of tests that watch real processes, as many unit tests do too,
get a second look, each alone, when all else is over: on a machine that is shared with others a
process may starve past any bound. One that passes then is not forgotten but named at the end as
unstable, with what it said the first time. More failures than that are no bad luck; and rules (the
other folders) hold at once or are broken.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
# Tests start thousands of interpreters: each would compile all of ours anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
from tests.support import failures

HERE = Path(__file__).parent
#: The longest first: what is left at the end is short, and no lane ends alone.
ORDER = ["system", "engines", "integration", "unit", "faults", "arch", "sim", "upgrade"]
REAL = {"engines", "integration", "faults", "system", "fuzz", "upgrade", "unit"}
COUNT = re.compile(r"(\d+) (passed|failed|skipped|error)")

#: Of a folder that would leave one lane alone at the end, what runs as a part of its own: about
#: half of its time.
HALVES = {
    "unit": ("nfs_setup", "platforms", "plots", "trial_runtime", "tuners"),
    "integration": (
        "inference", "machines", "nni", "platforms", "queries", "remote_weights", "security",
        "sinks", "ssh", "store", "tuner_host", "tuners",
    ),
    "system": ("page",),
}  # fmt: skip

#: What ``--quick`` runs, in parts of about the same length: the folder's name, and what of it.
_HEAVY = ("tuners", "nfs_setup", "cli", "trial_runtime")
QUICK = {
    "unit": ("unit", *(f"--ignore={HERE}/unit/{name}" for name in _HEAVY)),
    "unit/…": tuple(f"unit/{name}" for name in _HEAVY),
    "sim": ("sim",),
    "integration": ("integration/experiment/test_whole.py",),
}

#: All second looks together, and what one that is over time gets to clear up (seconds).
AGAIN_S = 480.0
CLEAR_UP_S = 60.0

#: What the last lines may hold: failed tests, and characters of each.
MOST_NAMED, WIDTH = 40, 160
#: How many files it names that took longest.
MOST_SLOW = 25


class Run:
    """One run of pytest: its code, its counts, its seconds and the tests that failed.

    Args:
        name: what its lines begin with.
        words: for pytest.
        limit_s: after so many seconds it is interrupted.
    """

    def __init__(self, name: str, *words: str, limit_s: float | None = None) -> None:
        self.name = name
        self.summary = ""
        started = time.monotonic()
        # A base of its own: two runs that begin at once would tidy each other's away.
        with tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True) as base:
            told = Path(base, "failures")
            options = [f"--basetemp={base}/pytest", "-p", "tests.support.failures"]
            with subprocess.Popen(
                [sys.executable, "-m", "pytest", "-q", *options, f"--failures={told}", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                errors="replace",
                cwd=HERE.parent,
            ) as process:
                watch = _ended_after(process, limit_s)
                assert process.stdout is not None
                for line in process.stdout:
                    print(f"{name:<12}| {line}", end="", flush=True)
                    if COUNT.search(line):
                        self.summary = line.strip().strip("= ")
                self.code = process.wait()
                watch.cancel()
            #: The first line of each failed test's error and the reason of each that was left
            #: out, by the test; whether all have run; what each file took.
            self.failed, self.left_out, self.whole, self.took = failures.read(told)
        self.seconds = time.monotonic() - started

    @property
    def is_real(self) -> bool:
        """Whether its tests watch real processes."""
        return self.name.partition("/")[0] in REAL

    def count(self, what: str) -> int:
        return sum(int(n) for n, word in COUNT.findall(self.summary) if word.startswith(what))


def _ended_after(process: "subprocess.Popen[str]", limit_s: float | None) -> threading.Timer:
    """Interrupts a run, as a user would: fixtures clear up; kills it if that does not help."""

    def end() -> None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(CLEAR_UP_S)
        except subprocess.TimeoutExpired:
            process.kill()

    watch = threading.Timer(limit_s or 0.0, end)
    watch.daemon = True
    if limit_s is not None:
        watch.start()
    return watch


def run_all(parts: Mapping[str, Sequence[str]], lanes: int) -> list[Run]:
    """All parts, ``lanes`` of them at a time: folders, files and options of pytest by name."""
    names = list(parts)
    waiting, done = deque(names), []

    def lane() -> None:
        while waiting:
            try:
                name = waiting.popleft()
            except IndexError:  # the other lane was quicker
                return
            words = (w if w.startswith("-") else str(HERE / w) for w in parts[name])
            done.append(Run(name, *words))

    threads = [threading.Thread(target=lane) for _ in range(lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(done, key=lambda run: names.index(run.name))


def parts_of(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The parts that folders are run in, by the name of each: folders and options of pytest."""
    parts: dict[str, tuple[str, ...]] = {}
    for name in names:
        apart = [f"{name}/{one}" for one in HALVES.get(name, ()) if (HERE / name / one).is_dir()]
        parts[name] = (name, *(f"--ignore={HERE / one}" for one in apart))
        if apart:
            parts[f"{name}/…"] = tuple(apart)
    return parts


def pass_alone(runs: list[Run], most: int, limit_s: float = AGAIN_S) -> dict[str, str]:
    """Of the failed tests of real processes, if few, those that pass when nothing runs beside."""
    tests = [test for run in runs if run.is_real and run.whole for test in run.failed]
    passed: dict[str, str] = {}
    if not 0 < len(tests) <= most:
        return passed
    until = time.monotonic() + limit_s
    for test in tests:
        left_s = until - time.monotonic()
        if left_s <= 0:
            break
        print(f"== once more, alone: {test}", flush=True)
        again = Run("again", test, limit_s=left_s)
        if again.code == 0 and again.count("passed"):
            passed[test] = next(run.failed[test] for run in runs if test in run.failed)
    return passed


def closing_lines(runs: list[Run], unstable: dict[str, str]) -> tuple[list[str], bool]:
    """What whoever sees only the end of the log has to know; and whether all is well."""
    lines = ["", "time of each folder"]
    lines += [f"  {run.seconds:7.1f} s  tests/{run.name:<12} {run.summary}" for run in runs]
    lines += ["", f"the {MOST_SLOW} slowest files: seconds, and those of processors"]
    took = {file: took for run in runs for file, took in run.took.items()}
    slow = sorted(took.items(), key=lambda one: one[1], reverse=True)[:MOST_SLOW]
    lines += [f"  {wall:7.1f} {used:7.1f}  {file}" for file, (wall, used) in slow]
    passed = sum(run.count("passed") for run in runs) + len(unstable)
    skipped = sum(run.count("skipped") for run in runs)
    broken = {t: said for run in runs for t, said in run.failed.items() if t not in unstable}
    # One that was killed, or could not be collected, has left out tests that nobody names.
    parts = [run for run in runs if not run.whole]
    failed = len(broken) + len(parts)
    lines += ["", f"{passed} passed, {failed} failed, {skipped} skipped, {len(unstable)} unstable"]
    told = [f"unstable (failed, then passed alone): {t}: {said}" for t, said in unstable.items()]
    told += [f"failed: tests/{run.name}: pytest broke off with code {run.code}" for run in parts]
    told += [f"failed: {test}: {said}" for test, said in broken.items()]
    lines += [line if len(line) <= WIDTH else line[: WIDTH - 1] + "…" for line in told[:MOST_NAMED]]
    if len(told) > MOST_NAMED:
        lines.append(f"and {len(told) - MOST_NAMED} more")
    lines.append(what_was_left_out(runs))
    return lines, failed == 0


def what_was_left_out(runs: list[Run]) -> str:
    """The last line of all, whatever else there is to say."""
    reasons = [reason for run in runs for reason in run.left_out.values()]
    packages = sum(reason.endswith(failures.ENABLES) for reason in reasons)
    others = Counter(reason for reason in reasons if not reason.endswith(failures.ENABLES))
    why = ", ".join(f"{many} of them: {reason}" for reason, many in others.most_common())
    parts = [f"{packages} tests left out: {failures.ENABLES}"] if packages else []
    if others:
        said = "more" if packages else "tests left out, none for want of packages"
        parts.append(f"{others.total()} {said}: {why}")
    line = "; ".join(parts) or "no test was left out"
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def main(words: Sequence[str] | None = None) -> int:
    """Run the named folders, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--again", type=int, default=0, metavar="N", help="see above")
    parser.add_argument("--quick", action="store_true", help="see above")
    parser.add_argument("--lanes", type=int, default=4, metavar="N", help="folders at a time")
    parser.add_argument("--times", type=Path, metavar="FILE", help="what each file took, here")
    options = parser.parse_args(words)
    there = {p.name for p in HERE.iterdir() if p.is_dir() and any(p.rglob("test_*.py"))}
    every = [n for n in ORDER if n in there] + sorted(there - set(ORDER))
    names = options.folders or every
    parts = QUICK if options.quick else parts_of(names)
    runs = run_all(parts, options.lanes)
    if options.times:
        rows = (f"{wall}\t{used}\t{f}" for run in runs for f, (wall, used) in run.took.items())
        options.times.write_text("\n".join(rows) + "\n")
    lines, good = closing_lines(runs, pass_alone(runs, options.again))
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
