"""One experiment with trials on several machines."""

from __future__ import annotations

import sys
from subprocess import PIPE

import pytest

from dispatcher.core import events as e
from tests.integration.machines.conftest import Lab, environment, joined
from tests.support.ssh_hosts import why_not

pytestmark = [
    pytest.mark.needs("sshd"),
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


def test_children_inherit_across_hosts_and_the_same_file_runs_here(lab: Lab) -> None:
    folder = lab.create(lab.service("h1", "h2", "h3"), args={"wait_s": 0.5})
    lab.finish(folder, lab.lead(folder))
    assert sorted(joined(lab, folder)) == ["h1", "h2", "h3"]
    assert {end.reason.value for end in lab.events(folder, e.AttemptEnded)} == {"finished"}
    ran = lab.ended_on(folder)
    assert len(ran) == 18
    assert set(ran.values()) == {"h1", "h2", "h3"}, "each had some"
    for host in lab.hosts:
        assert not list(host.disk.glob("root/.bequeath/experiments/*/*/agent-*.json")), (
            "no key is left"
        )

    words = ["-m", "dispatcher.cli", "trial", "log", "0", "--experiment", str(folder)]
    log = lab.hosts.inside(
        [sys.executable, "-P", *words], env=environment(), stdout=PIPE, text=True
    )
    assert log.communicate(timeout=120)[0].startswith(f"ran on {ran[0]}")

    here = lab.create({"platform": "local"})
    lab.finish(here, lab.lead(here))
    finals = [{x.trial: x.value for x in lab.events(f, e.FinalReported)} for f in (folder, here)]
    assert finals[0] == finals[1]
