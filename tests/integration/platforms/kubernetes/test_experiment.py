"""Digits evolve in pods of a server of our own, while pods, watches and a head are taken away."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.digits import TRIALS, digits
from tests.support.kubernetes.cluster import cluster
from tests.support.processes import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("version", ["1.20", "1.36"])
def test_sixty_trials_outlive_all_that_a_cluster_does(version: str, tmp_path: Path) -> None:
    """A drain, a watch that is cut, one that is forgotten, a server without an answer for seconds,
    and a head that is killed. In the end nothing is left there."""
    weights = tmp_path / "weights"
    weights.mkdir()
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster", version, places=3) as there:
        service = {
            "platform": "kubernetes",
            "kubeconfig": str(there.api.kubeconfig(tmp_path)),
            "image": "our/own:1",
            "python": sys.executable,
            "workFolder": str(tmp_path / "work"),
            "allocations": 2,
            "headAddress": "127.0.0.1",
        }
        with digits(tmp_path / "lab", service, weights) as lab:
            lab.allow(4)
            wait_until(lambda: lab.done() >= 4, "trials have results")
            there.evict(there.pods()[0]["metadata"]["name"])
            wait_until(lambda: lab.losses(), "a place was taken back")
            there.api.cut_watches(b'{"type": "MODIF')
            there.api.objects.forget()
            there.api.cut_watches()
            there.api.fail("", 503, times=6)
            lab.allow(12)
            wait_until(lambda: lab.done() >= 12, "trials go on")
            # Else what this head leaves undone is judged as well: a place that it was giving back.
            wait_until(lambda: not there.api.faults, "the server answers again")
            wait_until(lambda: len(there.pods()) == 2, "another place was had")
            lab.kill()
            running = {each["metadata"]["uid"] for each in there.pods()}
            lab.resume()
            lab.allow(20)
            wait_until(lambda: lab.done() >= 20, "the next head leads")
            assert running <= {each["metadata"]["uid"] for each in there.pods()}, "none began anew"
            lab.allow(TRIALS)
            lab.ends_well(300)
            losses = lab.losses()
            assert all(each.planned for each in losses), [each.reason for each in losses]
        wait_until(lambda: there.containers == 0, "no container is left")
        for kind in ("jobs", "pods", "secrets"):
            wait_until(lambda k=kind: there.api.objects.all(k) == [], f"no {kind} are left")
