"""What runs in a client: an agent whose share goes away, and a head that counts its heartbeats.

Says ``ready`` when a first trial has ended; at SIGUSR1, when the wire is cut, has it start
another one, and says how that went.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.integration.agent import fake_head
from trial_runtime import facts

#: How long heartbeats are counted for, and how often they come, in seconds.
COUNTED_S = 5.0
HEARTBEAT_S = 0.2

_TRIAL = """
import trial_runtime as t
with open(t.get_parameters()["save_path"], "wb") as file:
    file.write(bytes(1000))
t.report_final(1.0)
"""


def main(root: str) -> None:
    """Play the head."""
    cut: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, _frame: cut.append(number))
    fake_head.PATIENCE_S = 240.0
    head = fake_head.FakeHead(
        Path(tempfile.mkdtemp(prefix="a")),
        command=f"{sys.executable} train.py",
        weights_root=root,
        heartbeat_s=HEARTBEAT_S,
    )
    head.script(_TRIAL)
    try:
        head.launch()
        path = {"save_path": "agent/1"}
        print("first:", head.run(1, parameters=path, **path).reason, flush=True)
        print("ready", flush=True)
        head.until(lambda: cut, "the signal")
        before = len(head.heartbeats)
        path = {"save_path": "agent/2"}
        head.start(2, parameters=path, **path)
        end = time.monotonic() + COUNTED_S
        while time.monotonic() < end:
            head.listen(0.1)
        beats = len(head.heartbeats) - before
        print(f"cut off: {beats} beats, {len(head.of(facts.AttemptEnded, 2))} ends", flush=True)
        ended = head.end_of(2)
        print(f"then: {ended.reason}, {ended.weights.kind if ended.weights else ''}", flush=True)
    finally:
        head.close()


if __name__ == "__main__":
    main(sys.argv[1])
