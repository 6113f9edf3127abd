"""In a machine of its own: an agent that was handed a folder of control groups, and trials of
which one takes more memory than it was given, and one is given half a core. Says what became of
them.

The first command line word names a folder on this machine's disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.integration.agent.fake_head import FakeHead

MIB = 1 << 20
GROUPS = "/run/groups"
TAKES = """
import time
def main(params):
    if "shows" in params:
        group = open("/proc/self/cgroup").read().strip().partition("::")[2]
        print(open("/run/groups" + group + "/" + params["shows"]).read().strip(), flush=True)
        return 1.0
    kept = [b"x" * (1 << 20) for _ in range(params["mib"])]
    print(open("/proc/self/cgroup").read().strip(), flush=True)
    time.sleep(params["seconds"])
    return float(len(kept))
"""


def main() -> None:
    """Mount, run, say."""
    os.mkdir(GROUPS)
    subprocess.run(["mount", "-t", "cgroup2", "none", GROUPS], check=True)
    ours = f"{GROUPS}/lent"
    os.mkdir(ours)
    Path(f"{GROUPS}/cgroup.subtree_control").write_text("+memory +cpu")
    os.environ["BEQUEATH_CGROUP"] = ours
    for reuse in ("none", "forked"):
        folder = Path(sys.argv[1]) / reuse
        folder.mkdir()
        (folder / "code").mkdir()
        (folder / "code" / "train.py").write_text(TAKES)
        head = FakeHead(folder, function="train:main", reuse=reuse, max_log_bytes=1 << 16)
        head.launch()
        head.until(lambda: head.hellos, "hello")  # noqa: B023 - called at once
        head.start(1, parameters={"mib": 200, "seconds": 600}, memory_bytes=80 * MIB)
        head.start(2, parameters={"mib": 20, "seconds": 0}, memory_bytes=80 * MIB)
        head.start(3, parameters={"shows": "cpu.max"}, cpus=0.5)
        for trial in (1, 2, 3):
            end = head.end_of(trial)
            first = end.text.partition("\n")[0]
            print(f"end: {reuse} {trial} {end.reason} | {first}", flush=True)
        print(f"group: {reuse} {head.output(2).strip()}", flush=True)
        print(f"time: {reuse} {head.output(3).strip()}", flush=True)
        head.close()
        left = [each for each in os.listdir(ours) if os.path.isdir(f"{ours}/{each}")]
        print(f"left: {reuse} {left}", flush=True)
    print("over", flush=True)


if __name__ == "__main__":
    main()
