"""One experiment with trials on several machines."""

from __future__ import annotations

import sys
from subprocess import PIPE

import pytest

from dispatcher.core import events as e
from tests.integration.machines.conftest import POINT, Lab, environment, joined
from tests.support.ssh_hosts import why_not

pytestmark = [
    pytest.mark.needs("sshd"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


def test_children_inherit_across_hosts_and_the_same_file_runs_here(lab: Lab) -> None:
    go = {"GO": f"{POINT}/{lab.base.name}/go"}
    service = lab.service("h1", "h2", "h3")
    folder = lab.create(service, args={"roots": 6, "wait_s": 600.0}, trialEnvironment=go)
    head = lab.lead(folder)
    # Two slots each: that six run is that all of them do.
    lab.until(lambda: len(lab.events(folder, e.AttemptStarted)) >= 6, "six run", folder)
    (lab.share / lab.base.name / "go").touch()
    lab.finish(folder, head)
    assert sorted(joined(lab, folder)) == ["h1", "h2", "h3"]
    assert {end.reason.value for end in lab.events(folder, e.AttemptEnded)} == {"finished"}
    ran = lab.ended_on(folder)
    assert len(ran) == 18
    assert set(ran.values()) == {"h1", "h2", "h3"}, "each had some"
    for host in lab.hosts:
        keys = host.disk.glob("root/.bequeath/experiments/*/*/agent-*.config.json")
        assert not list(keys), "no key is left"

    for more in ([], ["--follow"]):
        words = ["-P", "-m", "dispatcher.cli", "trial", "log", "0", "-e", str(folder), *more]
        log = lab.hosts.inside([sys.executable, *words], env=environment(), stdout=PIPE, text=True)
        assert log.communicate(timeout=120)[0].startswith(f"ran on {ran[0]}")

    here = lab.create({"platform": "local"}, args={"roots": 6, "wait_s": 0.0})
    lab.finish(here, lab.lead(here))
    finals = [{x.trial: x.value for x in lab.events(f, e.FinalReported)} for f in (folder, here)]
    assert finals[0] == finals[1]


def test_this_machine_and_others_together(lab: Lab) -> None:
    go = lab.share / lab.base.name / "go"
    services = [{"platform": "local", "slots": 2}, lab.service("h1")]
    # The share is at another place here than there.
    folder = lab.create(
        services,
        args={"roots": 4, "wait_s": 600.0},
        maxTrialNumber=8,
        trialConcurrency=4,
        trialCommand=f"GO=$([ -d {go.parent} ] && echo {go} || echo {POINT}/{lab.base.name}/go) "
        "python lineage_trial.py",
        trialFunction=None,
    )
    head = lab.lead(folder)
    lab.until(lambda: len(lab.events(folder, e.AttemptStarted)) >= 4, "four run", folder)
    go.touch()
    lab.finish(folder, head)
    assert set(lab.ended_on(folder).values()) == {"local", "h1"}
    here = [p.read_text() for p in (folder / "trials").glob("*/*/stdout")]
    assert len(here) == list(lab.ended_on(folder).values()).count("local")
    made = lab.hosts["h1"].disk / f"root/.bequeath/experiments/{folder.name}/h1/trials"
    assert len({p.resolve() for p in made.glob("*/1/work")}) + len(here) == 8
    for kind in ("code", "runtime"):
        brought = [p.name for p in (lab.hosts["h1"].disk / "root/.bequeath" / kind).iterdir()]
        assert len(brought) == 1, "brought once, however many experiments there were"
