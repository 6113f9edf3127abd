"""A head that is itself in a job, as the page tells people to submit it."""

from __future__ import annotations

import contextlib
import json
import shlex
import sqlite3
import sys

import pytest

from dispatcher.core import events as e
from tests.engines.slurm.conftest import ROOT, Lab
from tests.engines.slurm.test_whole import lineage
from tests.support.checker import check_store
from tests.support.processes import holds_within, wait_until
from tests.support.slurm_cluster import why_not

pytestmark = [
    pytest.mark.needs("slurm"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

PAGE = ROOT / "docs/slurm.md"


def script_of_the_page() -> str:
    """The script as people copy it."""
    text = PAGE.read_text()
    begin = text.index("#!/bin/bash")
    return text[begin : text.index("```", begin)]


def test_a_head_that_reaches_its_wall_time_is_followed_by_the_next_job(lab: Lab) -> None:
    """Its trials run on in jobs of their own. The wall time is played by the signal that Slurm
    sends before it. Mutations: the signal stops the experiment; the next job begins another one;
    variables of the head's own job go to those of the trials."""
    base = lab.base
    shared, home = base / "shared", base / "home"
    for each in (shared, home):
        each.mkdir()
    service = {"platform": "slurm", "channel": "folder", "sharedFolder": str(shared)}
    keys = {
        "experimentName": "lab",
        "trialRetries": 0,
        "weightsRoot": str(shared / "weights"),
        "trainingService": {**service, "cpus": 1, "slots": 2, "wallTime": "1h"},
        **lineage(6, wait_s=1.0),
    }
    (base / "experiment.yml").write_text(json.dumps(keys))
    script = script_of_the_page().replace("/local/$USER/bequeath", str(home))
    command = f"env PYTHONPATH={ROOT} {shlex.quote(sys.executable)} -m dispatcher.cli"
    assert "srun bequeath lead" in script
    (base / "head.sh").write_text(script.replace("srun bequeath", f"srun {command}"))

    def events(kind: type[e.Event]) -> list[e.Event]:
        with contextlib.suppress(sqlite3.Error):  # it is being made
            return [x for each in home.iterdir() for x in lab.events(each, kind)]
        return []

    def said() -> str:
        texts = [path.read_text(errors="replace") for path in base.glob("head.log")]
        return "\n".join([*texts, lab.cluster.run("squeue", "--states=all", "--long")])

    first = lab.cluster.run("sbatch", "--parsable", f"--chdir={base}", str(base / "head.sh"))
    assert holds_within(lambda: len(events(e.AttemptEnded)) >= 2, 120), said()
    lab.cluster.run("scancel", "--signal=TERM", first)
    wait_until(lambda: lab.cluster.state(first) != "RUNNING", "the first job ends")
    assert holds_within(lambda: lab.cluster.run("squeue", "--noheader") == "", 120), said()
    assert len(list(home.iterdir())) == 1, said()
    (journal,) = home.glob("*/journal.sqlite")
    assert check_store(journal, over=True) == [], said()
    ends = events(e.AttemptEnded)
    assert {(x.trial, x.attempt) for x in ends if isinstance(x, e.AttemptEnded)} == {
        (trial, 1) for trial in range(6)
    }, said()
    assert not events(e.WorkerLost), "its job went on"
    assert "left at once" in said()
    assert "lab completed" in said()
