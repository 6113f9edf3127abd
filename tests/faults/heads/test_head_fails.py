"""A head that ends by an error of its own leaves the trials to the next one."""

from __future__ import annotations

import psutil

from dispatcher.cli.exit_codes import ExitCode
from tests.faults.heads.conftest import PATIENCE_S, wait_until


def test_trials_go_on_when_the_heads_disk_refuses_to_write(steady):
    """They may run on other machines, for days, and have no part in it. The kernel lets no file of
    the head's grow beyond a size. Mutation: a head that ends early ends its agents, with all they
    run."""
    one = steady(headGrace=600)
    head = one.lead_and_run()
    agent, seen = one.agent, one.counting()
    limit = (one.folder / "journal.sqlite-wal").stat().st_size + 8192
    psutil.Process(head.pid).rlimit(psutil.RLIMIT_FSIZE, (limit, limit))
    one.release(0)
    assert head.wait(PATIENCE_S) == ExitCode.ENVIRONMENT, one.said(head)
    assert "refused to read or write" in one.said(head)
    assert one.processes("trial_runtime.agent") == [agent]
    head = one.lead()
    wait_until(lambda: one.leads(head), "the next head answers")
    wait_until(lambda: one.counting().get(1, 0) > seen[1], "trial 1 goes on counting")
    assert one.agent == agent
    one.release()
    assert head.wait(PATIENCE_S) == 0, one.said(head)
    one.assert_nothing_happened()
