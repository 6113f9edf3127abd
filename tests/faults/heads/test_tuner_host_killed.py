"""The tuner host is killed at random moments: it is restored, and trials do not notice."""

from __future__ import annotations

import contextlib
import random
import time

import psutil
import pytest

from dispatcher.core import events as e
from tests.faults.heads.conftest import PATIENCE_S, wait_until
from tests.support.processes import is_gone

KILLS = 3


@pytest.mark.parametrize("seed", [11, 12])
def test_trials_go_on_whenever_the_tuner_host_dies(steady, seed):
    """Mutations: ``_tuner_host_lost`` launches nothing; a result that was under way is not
    delivered again (the last trials hang)."""
    dice = random.Random(seed)
    one = steady(trials=16, steps=10)
    head = one.lead_and_run()
    agent = one.agent
    killed = set()
    there = lambda: {p.pid for p in one.processes("dispatcher.tuner_host")}  # noqa: E731
    for _ in range(KILLS):
        wait_until(lambda: there() - killed or head.poll() is not None, "one, or the end")
        time.sleep(dice.uniform(0.0, 1.2))  # the moment is the test's matter
        for host in one.processes("dispatcher.tuner_host"):
            with contextlib.suppress(psutil.NoSuchProcess):
                host.kill()
            killed.add(host.pid)
    assert head.wait(PATIENCE_S) == 0, one.said(head)
    lost = [x for x in one.events() if isinstance(x, e.TunerHostLost)]
    assert len(lost) >= 1
    wait_until(lambda: is_gone(agent), "the agent has left")
    one.assert_nothing_happened()
