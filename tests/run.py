"""Run the tests folder by folder and say how long each took: ``python tests/run.py [FOLDER…]``.

The last line is the sum over all folders. Exits 1 if anything failed.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
COUNT = re.compile(r"(\d+) (passed|failed|skipped|error)")


def main() -> int:
    """Run the named folders, or all of them in their order of speed."""
    order = ["arch", "unit", "sim", "integration", "faults", "system", "upgrade"]
    there = {p.name for p in HERE.iterdir() if p.is_dir() and any(p.rglob("test_*.py"))}
    names = sys.argv[1:] or [n for n in order if n in there] + sorted(there - set(order))
    total = {"passed": 0, "failed": 0, "skipped": 0, "error": 0}
    times: list[tuple[str, float, str]] = []
    broken = False
    for name in names:
        print(f"== tests/{name}", flush=True)
        started = time.monotonic()
        run = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", str(HERE / name)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=HERE.parent,
        )
        last = ""
        assert run.stdout is not None
        for line in run.stdout:
            print(line, end="", flush=True)
            if COUNT.search(line):
                last = line
        code = run.wait()
        for count, what in COUNT.findall(last):
            total[what] += int(count)
        broken = broken or code != 0
        times.append((name, time.monotonic() - started, last.strip().strip("= ")))
    print("\ntime of each folder")
    for name, seconds, summary in times:
        print(f"  {seconds:7.1f} s  tests/{name:<12} {summary}")
    failed = total["failed"] + total["error"]
    print(f"\n{total['passed']} passed, {failed} failed, {total['skipped']} skipped")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
