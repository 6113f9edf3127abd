"""Trials of several nodes below a real head: allocations of a queue that start agents together."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from dispatcher.core import events as e
from dispatcher.core.model import EndReason
from tests.support.checker import check_store, read_store
from tests.support.packages import lay_down
from tests.support.processes import left_of

ROOT = Path(__file__).parents[3]

#: A queue whose places have nodes: processes of this machine, as Slurm's ``srun`` starts tasks.
PLATFORM = """\
from dataclasses import replace
from typing import Literal
from bequeath_queue.platform import QueueAllocator, QueuePlatform, QueueSection

LAUNCH = '''
import signal, subprocess, sys
nodes = [subprocess.Popen([sys.executable, *sys.argv[2:]]) for _ in range(int(sys.argv[1]))]
signal.signal(signal.SIGTERM, lambda number, _: [node.send_signal(number) for node in nodes])
sys.exit(max(node.wait() for node in nodes))
'''

class Section(QueueSection):
    platform: Literal["rack"]

class Allocator(QueueAllocator):
    def submit(self, order):
        arguments = ("-c", LAUNCH, str(order.nodes), *order.arguments)
        super().submit(replace(order, arguments=arguments))

class Rack(QueuePlatform):
    section = Section
    has_nodes = True
    allocator = Allocator

RACK = Rack()
"""

EXPERIMENT = """\
tuner: {{name: Random}}
searchSpace: {{x: {{_type: choice, _value: [1, 2, 3]}}}}
trialFunction: trial:main
trialConcurrency: 2
trialNodes: 3
maxTrialNumber: 4
experimentWorkingDirectory: {base}/experiments
trialStopGrace: 2s
trainingService:
  platform: rack
  queue: {base}/queue
  seats: 2
  allocations: {{min: 0, max: 2, trials: 2}}
"""

#: All ranks meet at rank 0, which reports how many have come, times the parameter.
TRIAL = """\
import os
import socket
import sys
import time
import trial_runtime as bq

def main(parameters):
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    there = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    print("rank", rank, flush=True)
    if rank == 0:
        with socket.create_server(there) as door:
            met = {int(door.accept()[0].makefile().readline()) for _ in range(world - 1)}
        bq.report_final((1 + len(met)) * parameters["x"])
        return
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            with socket.create_connection(there, timeout=60) as way:
                way.sendall(b"%d\\n" % rank)
                return
        except ConnectionRefusedError:
            os.sched_yield()
    sys.exit("rank 0 is not there")
"""


def _environment(there: Path) -> dict[str, str]:
    for name, points in (
        ("bequeath_queue", "queue = bequeath_queue.platform:QUEUE"),
        ("rack", "rack = rack:RACK"),
    ):
        lay_down(there, name, f"[bequeath.backends]\n{points}\n")
    shutil.copytree(ROOT / "examples/backend_queue/bequeath_queue", there / "bequeath_queue")
    (there / "rack.py").write_text(PLATFORM)
    paths = os.pathsep.join((str(ROOT), str(there)))
    return {**os.environ, "PYTHONPATH": paths, "BEQUEATH_NODE_ADDRESS": "127.0.0.1"}


def test_each_trial_runs_on_all_nodes_of_its_allocation(tmp_path: Path) -> None:
    """Mutations: followers join as workers; they report; a worker has two slots."""
    environment = _environment(tmp_path / "installed")
    (tmp_path / "trial.py").write_text(TRIAL)
    (tmp_path / "lab.yml").write_text(EXPERIMENT.format(base=tmp_path))
    ran = subprocess.run(
        [sys.executable, "-m", "dispatcher.cli", "run", "lab.yml"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (folder,) = (tmp_path / "experiments").glob("lab-*")
    assert check_store(folder / "journal.sqlite", over=True) == []
    events = [row.event for row in read_store(folder / "journal.sqlite")]
    ends = [x for x in events if isinstance(x, e.AttemptEnded)]
    assert [end.reason for end in ends] == [EndReason.FINISHED] * 4
    assert {json.loads(x.value) % 3 for x in events if isinstance(x, e.FinalReported)} == {0}
    assert len([x for x in events if isinstance(x, e.FinalReported)]) == 4
    assert not [x for x in events if isinstance(x, e.WorkerLost) and not x.planned]
    shown = sorted(path.read_text() for path in (folder / "agents").rglob("stdout*"))
    assert shown == sorted(f"rank {rank}\n" for rank in range(3) for _ in range(4))
    fetched = sorted(path.read_text() for path in (folder / "trials").rglob("stdout*"))
    assert fetched == shown, "and they were fetched"
    assert left_of(folder) == []
