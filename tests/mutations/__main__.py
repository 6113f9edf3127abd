"""``python -m tests.mutations [NAME…]``: plant each fault in a copy and see that it is found.

The tree is copied once, without what git ignores; each mutation is applied there, its tests are
run until the first failure, and it is taken back. One after another, each narrow: all take some
ten minutes on two processors. First the tests run unharmed, since what fails anyway finds
nothing. Exits 1 if a fault was missed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutations.catalogue import ALL
from tests.mutations.mutation import ROOT, Mutation

#: A fault that makes a test hang is found by this; no unharmed run takes half as long.
LIMIT_S = 180.0


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("names", nargs="*", help="all of them by default")
    parser.add_argument("--list", action="store_true", help="say what there is, and do nothing")
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests unharmed")
    asked = parser.parse_args()
    chosen = _chosen(asked.names)
    if asked.list:
        for one in chosen:
            print(f"{one.promise:2}  {one.name}: {one.what}")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        return _run(chosen, Path(folder), unchecked=asked.unchecked)


def _chosen(names: list[str]) -> list[Mutation]:
    known = {one.name: one for one in ALL}
    strangers = [name for name in names if name not in known]
    if strangers:
        raise SystemExit(f"no such mutation: {', '.join(strangers)}; see --list")
    return [known[name] for name in names] or list(ALL)


def _run(chosen: list[Mutation], copy: Path, *, unchecked: bool) -> int:
    _copy_tree(copy)
    targets = sorted({target for one in chosen for target in one.tests})
    if not unchecked:
        for target in targets:
            outcome, seconds, words = _test(copy, (target,))
            print(f"unharmed {outcome:7} {seconds:5.0f} s  {target}", flush=True)
            if outcome != "passes":
                print(words)
                return 2
    missed = []
    for one in chosen:
        file = copy / one.file
        whole = file.read_text()
        file.write_text(one.applied_to(whole))
        outcome, seconds, words = _test(copy, one.tests)
        file.write_text(whole)
        found = outcome != "passes"
        missed += [] if found else [one.name]
        word = "found" if found else "MISSED"
        print(
            f"{word:6} {seconds:5.0f} s  promise {one.promise:2}  {one.name}{_by(words)}",
            flush=True,
        )
    print(f"{len(chosen) - len(missed)} of {len(chosen)} found")
    return 1 if missed else 0


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


def _test(copy: Path, targets: tuple[str, ...]) -> tuple[str, float, str]:
    """Run tests in the copy: ``passes``, ``fails`` or ``hangs``; seconds; the end of what it said.
    In a session of its own, so that nothing of a run that hangs is left."""
    started = time.monotonic()
    # Byte code is told apart by second and size: a change of the same length would be missed.
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    there = [target for target in targets if (copy / target.partition("::")[0]).exists()]
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *there],
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = run.communicate(timeout=LIMIT_S)
        outcome = "passes" if run.returncode == 0 else "fails"
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        said, _ = run.communicate()
        outcome = "hangs"
    return outcome, time.monotonic() - started, said[-3000:]


if __name__ == "__main__":
    sys.exit(main())
