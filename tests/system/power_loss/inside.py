"""What runs in the guest: say what the disk holds, then lead the experiment that lies on it.

Run as ``python -m tests.system.power_loss.inside TRIALS [careless]``; ``careless`` switches
the durable commit off.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from dispatcher.core import events as e
from dispatcher.core.model import EndReason
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments.creating import create
from dispatcher.head.head import Head
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.verify import verify
from tests.support.checker import read_store
from tests.system.guest import DISK
from trial_runtime import weights

CODE = Path(__file__).parent / "code"


def say(what: str, *words: object) -> None:
    """A line on the console, which nothing holds back."""
    os.write(1, (" ".join(map(str, (f"{what}:", *words))) + "\n").encode())


def careless() -> None:
    """Commit without waiting for the disk."""

    def never(journal: SqliteJournal, durable: bool) -> None:
        journal.raw.execute("PRAGMA synchronous=OFF")

    SqliteJournal._set_durable = never  # type: ignore[method-assign]


def found(folder: Path) -> None:
    """Say which of the acknowledged facts the disk holds."""
    checked = verify(folder / "journal.sqlite")
    for problem in (*checked.damage, *checked.differences):
        say("broken", problem)
    rows = read_store(folder / "journal.sqlite")
    paths = {
        row.event.trial: row.event.save_path for row in rows if isinstance(row.event, e.Proposed)
    }
    root = str(folder / "weights")
    published: dict[tuple[int, int], str] = {}
    whole: set[int] = set()  # trials whose weights were looked at

    def look(trial: int, digest: str) -> None:
        weights.verify(f"{root}/{paths[trial]}", digest, root=root, stale_timeout_s=0.0)
        say("found", "weights", trial)
        whole.add(trial)

    for row in rows:
        match row.event:
            case e.Proposed(trial=trial):
                say("found", "proposed", trial)
            case e.FinalReported(trial=trial, value=value):
                say("found", "final", trial, value)
            case e.WeightsPublished(trial=trial, attempt=attempt, weights=committed):
                published[trial, attempt] = committed.digest
            case e.AttemptEnded(trial=trial, attempt=attempt, reason=EndReason.FINISHED):
                say("found", "ended", trial, "FINISHED")
                # Of an attempt that the power took, another one may be writing there now.
                look(trial, published[trial, attempt])
            case e.EndDelivered(trial=trial) if trial not in whole:
                # The power took its last attempt once it had said all, and before it had ended.
                digests = [digest for (of, _), digest in published.items() if of == trial]
                if digests:
                    look(trial, digests[-1])


def main() -> None:
    """See above."""
    if "careless" in sys.argv:
        careless()
    base = Path(DISK)
    name = base / "experiment"
    if name.exists():
        folder = Path(json.loads(name.read_text()))
        found(folder)
    else:
        folder = create(
            build_experiment(
                {
                    "experimentName": "power",
                    "experimentWorkingDirectory": DISK,
                    "tuner": {"className": "told:Told", "codeDirectory": str(CODE)},
                    "trialFunction": "told:train",
                    "trialCodeDirectory": str(CODE),
                    "trialConcurrency": 2,
                    "maxTrialNumber": int(sys.argv[1]),
                    "retryBackoff": 0,
                    "debug": True,
                    "seed": 1,
                    "trainingService": {
                        "platform": "local",
                        "reuseMode": "inProcess",
                        "preload": ["numpy"],
                    },
                }
            )
        )
        name.write_text(json.dumps(str(folder)))
        os.sync()
    say("leads")
    phase = Head(folder).run()
    found(folder)
    say("over", phase.name)


if __name__ == "__main__":
    main()
