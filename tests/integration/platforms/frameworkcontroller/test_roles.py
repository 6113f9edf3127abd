"""Trials of several pods with roles, below a real head, in Frameworks whose statuses are those of
large jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.core.model import EndReason
from tests.integration.platforms.kubeflow.test_roles import end_of, run_on, shown_in
from tests.support.kubernetes.cluster import Cluster, cluster
from tests.support.kubernetes.framework_controller import FrameworkController, judge_of_frameworks
from tests.support.processes import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROLES = [{"name": "chief"}, {"name": "ps", "replicas": 1}, {"name": "worker"}]


def run_here(there: Cluster, folder: Path, space: dict[str, str]) -> Path:
    """Run one trial, and return the experiment's folder."""
    made = run_on(there, folder, space, platform="frameworkcontroller", roles=ROLES)
    wait_until(lambda: there.containers == 0, "no container is left")
    for kind in ("frameworks", "pods", "secrets"):
        wait_until(lambda k=kind: there.api.objects.all(k) == [], f"no {kind} are left")  # type: ignore[misc]
    return made


def controllers() -> list[FrameworkController]:
    return [FrameworkController(judge_of_frameworks(), compresses=True)]


def test_the_first_role_speaks_and_servers_are_stopped(tmp_path: Path) -> None:
    """Ranks are those of the file's order, though the controller numbers each role from 0.
    Mutations: two pods have rank 0; a server that never ends keeps the attempt alive."""
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster", operators=controllers()) as there:
        space = {"dies": "nobody", "waits": "worker"}
        made, shown = run_here(there, tmp_path, space), shown_in(tmp_path)
    assert end_of(made).reason == EndReason.FINISHED
    assert [x["BEQUEATH_ROLE"] for x in shown] == ["chief", "ps", "worker", "worker"]
    assert [(x["RANK"], x["WORLD_SIZE"]) for x in shown] == [(str(x), "4") for x in range(4)]
    assert {x["MASTER_ADDR"] for x in shown} == {"127.0.0.1"}


def test_a_worker_that_fails_ends_the_attempt(tmp_path: Path) -> None:
    """With its last words."""
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster", operators=controllers()) as there:
        made = run_here(there, tmp_path, {"dies": "worker", "waits": "chief"})
    end = end_of(made)
    assert end.reason == EndReason.FAILED
    assert end.text.splitlines()[-1] == "no such layer"
