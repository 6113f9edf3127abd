"""Three hosts that are all hard to reach for some time, each in another way.

For ten seconds, or for as long as ``LINE_SECONDS`` says: ``make lines`` takes a minute.
"""

from __future__ import annotations

import os
import time

import pytest

from dispatcher.core import events as e
from tests.integration.machines.conftest import Lab
from tests.integration.machines.test_ailing_hosts import LEASES, Story, end_sessions
from tests.support.ssh_hosts import why_not

SECONDS = float(os.environ.get("LINE_SECONDS", "10"))
FLAP_S = 5.0

pytestmark = [
    pytest.mark.needs("sshd"),
    pytest.mark.slow,
    pytest.mark.timeout(600 + 2 * SECONDS),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


def agents(lab: Lab, story: Story) -> dict[str, bytes]:
    """Which agent each host has, by what it lays down when it begins."""
    where = f"root/.bequeath/experiments/{story.folder.name}"
    return {
        record.name: record.read_bytes()
        for host in lab.hosts
        for record in host.disk.glob(f"{where}/{host.name}/agent-{host.name}.json")
    }


def test_a_cut_a_killed_sshd_and_a_flapping_tunnel_cost_nothing_but_time(lab: Lab) -> None:
    """Mutations: silence ends attempts before their lease is over; an agent ends with its
    connection; a server that refuses once is not tried again."""
    leases = LEASES | {"lost": 180 + SECONDS}
    story = Story(lab, lab.service("h1", "h2", "h3"), leases=leases, headGrace=600 + SECONDS)
    for name in ("h1", "h2", "h3"):
        story.more(1, name)
    before = agents(lab, story)
    assert len(before) == 3
    lab.hosts.cut("h1")
    lab.hosts.kill_sshd("h2")
    until = time.monotonic() + SECONDS
    try:
        while True:
            story.until(lambda: end_sessions(lab, "h3"), "h3 had a connection")
            left_s = until - time.monotonic()
            if left_s <= 0:
                break
            time.sleep(min(FLAP_S, left_s))  # how often it flaps is what is looked at
        silent = lambda: {x.worker for x in lab.events(story.folder, e.WorkerSuspect)}  # noqa: E731
        story.until(lambda: {"h1", "h2"} <= silent(), "the silence of two is seen")
    finally:
        lab.hosts.heal("h1")
        lab.hosts.start_sshd("h2")
    for name in ("h1", "h2", "h3"):
        story.more(2, name)
    after = agents(lab, story)  # they go away when it ends
    story.end()
    story.all_counted_once()
    assert lab.events(story.folder, e.WorkerLost) == []
    assert {x.attempt for x in lab.events(story.folder, e.AttemptEnded)} == {1}
    assert after == before, "agents of before"
