"""Digits evolve in jobs of a cluster of our own, while jobs, answers, tokens and a head are taken
away. Code, weights and messages go through a folder that is mounted at another path there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.digits import TRIALS, digits
from tests.support.processes import wait_until
from tests.support.services.openpai import OPENPAI
from tests.support.services.played import whole_section

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_sixty_trials_outlive_all_that_a_service_does(tmp_path: Path) -> None:
    """A place that is looked over first, a preemption, a job that an administrator deletes, a page
    that is lost, a storm of refusals, an expired token, and a head that is killed. In the end
    nothing is left there."""
    with OPENPAI.serving(tmp_path, 3) as there:
        service = whole_section(
            OPENPAI, there, tmp_path, bringCode=True, probe=True, channel="folder"
        )
        del service["headAddress"]
        weights = tmp_path / "shared/data"
        weights.mkdir()
        with digits(tmp_path / "lab", service, weights) as lab:
            lab.allow(4)
            wait_until(lambda: lab.done() >= 4, "trials have results")
            assert any("-probe-" in each.name for each in there.machines.jobs.values())
            there.machines.stop(there.machines.running()[0], "preempted", 3.0)
            wait_until(lambda: lab.losses(), "a place was taken back")
            there.fail("GET /api/v2/jobs", 429, times=4)
            there.fail("POST /api/v2/jobs", 500, done=True)
            lab.allow(12)
            wait_until(lambda: lab.done() >= 12, "trials go on")
            wait_until(lambda: len(there.machines.running()) == 2, "another place was had")
            lab.kill()
            running = set(there.machines.running())
            lab.resume()
            lab.allow(20)
            wait_until(lambda: lab.done() >= 20, "the next head leads")
            assert running <= set(there.machines.running()), "none began anew"
            (token,) = there.tokens
            there.tokens = {"another-t0ken"}
            there.renew("another-t0ken")
            there.delete(there.job(next(iter(running)).partition("~")[2]).name)
            lab.allow(TRIALS)
            lab.ends_well(300)
            assert all(each.planned for each in lab.losses()), lab.losses()
            assert token not in lab.text()
        wait_until(lambda: there.alive() == [], "no job is left")
    for path in (tmp_path / "shared/bequeath").glob("[!.]*/**/*"):
        assert path.is_dir() or path.stat().st_mode & 0o077 == 0, path
