"""Several backends in one experiment: by cost, by what is there, and each weight in its domain."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from dispatcher.core import events as e
from tests.integration.machines.conftest import CODE, Lab, environment, joined
from tests.integration.machines.test_ailing_hosts import Story
from tests.support.ssh_hosts import why_not

pytestmark = [
    pytest.mark.needs("sshd"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


def begun(lab: Lab, story: Story, after: str) -> list[str]:
    """Where attempts began, in order, after a worker has joined."""
    rows = lab.rows(story.folder)
    there = next(
        index
        for index, row in enumerate(rows)
        if isinstance(row.event, e.WorkerJoined) and row.event.worker == after
    )
    ran_on = lab.ended_on(story.folder)
    events = [row.event for row in rows[there:]]
    return [ran_on[x.trial] for x in events if isinstance(x, e.AttemptStarted) and x.attempt == 1]


def test_the_cheap_are_filled_first_and_one_that_comes_back_is_used(lab: Lab) -> None:
    """Two of three trials fit here; the third goes to the dear host for as long as the cheaper
    one is away, which is from the beginning, and to nobody else once it is back.

    Mutations: ``cost`` is not passed on; a worker that was lost is not launched again.
    """
    lab.hosts.crash("h1", tells=True)
    try:
        services = [
            {"platform": "local", "slots": 2},
            lab.service("h2", cost=5),
            lab.service("h1", cost=1),
        ]
        story = Story(lab, services, trialConcurrency=3, lookahead=3)
        story.more(2, "h2")
        story.more(2, "local")
        story.until(lambda: story.noticed("h1", "is lost"), "it is set aside, by name")
        assert "h1" not in joined(lab, story.folder)
    finally:
        lab.hosts.start("h1")
    story.more(3, "h1")
    story.more(3, "local")
    story.end()
    story.all_counted_once()
    later = begun(lab, story, "h1")
    assert later.count("h2") <= 1, "but for one that was ordered before"


def test_lineages_stay_in_their_storage_domain(lab: Lab) -> None:
    """Two machines say they share one, and do not: whoever comes second is kept out by name.

    Mutations: agents of another domain take whatever root they find; ``storageDomain`` is not
    passed on.
    """
    own = {"weightsRoot": "/scratch/lake", "storageDomain": "lake"}
    machines = [lab.machine(name, **own) for name in ("h1", "h2")]
    services = [{"platform": "local", "slots": 1}, {"platform": "ssh", "machineList": machines}]
    enough = lab.share / lab.base.name / "enough"
    enough.parent.mkdir(parents=True, exist_ok=True)
    keys: dict[str, Any] = {
        "tuner": {
            "className": "dynasty_tuner:Dynasty",
            "codeDirectory": str(CODE),
            "classArgs": {"enough": str(enough)},
        },
        "maxTrialNumber": 10_000,
        "trialConcurrency": 3,
        "lookahead": 6,
    }
    folder = lab.create(services, **keys)
    head = lab.lead(folder)

    def named() -> list[e.WorkerLost]:
        return [
            each
            for each in lab.events(folder, e.WorkerLost)
            if "not the same share" in each.reason or "another share" in each.reason
        ]

    def ran_on(worker: str) -> int:
        return sum(
            1 for _, _, where, why in lab.attempts(folder) if (where, why) == (worker, "finished")
        )

    lab.until(named, "one of them is kept out", folder)
    out = named()[0].worker
    lake = "h2" if out == "h1" else "h1"
    lab.until(lambda: min(ran_on("local"), ran_on(lake)) >= 6, "both have children", folder)
    enough.touch()
    lab.finish(folder, head)
    where = lab.ended_on(folder)
    assert out not in where.values()
    proposed = lab.events(folder, e.Proposed)
    owner = {x.save_path: x.trial for x in proposed}
    parents = {x.trial: owner[x.restore_path] for x in proposed if x.restore_path is not None}
    parents = {child: parent for child, parent in parents.items() if child in where}
    assert len(parents) >= 4
    assert {where[child] == where[parent] for child, parent in parents.items()} == {True}
    saved = {trial: path for path, trial in owner.items() if trial in where}
    here = {trial for trial, path in saved.items() if (lab.share / lab.base.name / path).exists()}
    assert here == {t for t, w in where.items() if w == "local"}, "no other's lie here"
    words = ["weights", "gc", folder.name, "--keep", "best:1", "--yes", "--json"]
    ran = subprocess.run(
        [sys.executable, "-m", "dispatcher.cli", *words, "--folder", str(folder.parent)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    plan = json.loads(ran.stdout)
    gone = {each["trial"] for each in plan["weights"]}
    assert gone, "what lies here is swept"
    assert {where[trial] for trial in gone} == {"local"}
    assert f"the storage domain 'lake' (workers {lake})" in plan["unseen"]
    there = lab.hosts[lake].disk / "scratch/lake"
    kept = [path for trial, path in saved.items() if where[trial] == lake]
    assert all((there / path).exists() for path in kept), "what lies elsewhere stays"
