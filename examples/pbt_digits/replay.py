"""Writes ``replay.yml``, which runs the schedule of the best member again, on a fresh network.

``bequeath experiment export ID --format json > rows.json``, then ``python replay.py rows.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tuners.schedules import schedule

HERE = Path(__file__).resolve().parent


def best(rows: list[dict[str, Any]]) -> int:
    """The trial with the highest result; the earliest one if even."""
    return int(max((r for r in rows if r["value"] is not None), key=lambda r: r["value"])["trial"])


def replay(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """An experiment file, as an object: the tuner ``Schedule`` with what the best one found."""
    steps = schedule(rows, best(rows))
    return {
        "experimentName": "pbt-digits-replayed",
        "trialFunction": "trial:train",
        "trialCodeDirectory": str(HERE),
        "tuner": {"name": "Schedule", "classArgs": {"schedule": steps}},
        "optimizeMode": "maximize",
        "trialConcurrency": 1,
        "maxTrialNumber": len(steps),
        "trainingService": {
            "platform": "local",
            "reuseMode": "forked",  # a step is short beside the start of a process
            "preload": ["numpy", "sklearn.datasets"],
        },
    }


if __name__ == "__main__":
    rows = json.loads(Path(sys.argv[1]).read_text())
    out = HERE / "replay.yml"
    out.write_text(json.dumps(replay(rows), indent=2) + "\n")  # JSON is YAML
    sys.stdout.write(f"written: {out}\n")
