"""TrainJobs are ordered by the fields of a server, and what starts again by itself is no place."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError
from dispatcher.platforms.allocations.allocation import Allocation, Gone
from dispatcher.platforms.kubernetes.allocator import LATE_S, KubernetesAllocator
from dispatcher.platforms.kubernetes.api.kubeconfig import read_access
from dispatcher.platforms.kubernetes.api.server import ApiServer
from dispatcher.platforms.kubernetes.reading import SECOND
from tests.support.kubernetes import api_server
from tests.support.kubernetes.cluster import Cluster, cluster
from tests.support.kubernetes.train_jobs import pods_in, runtime, train_jobs_of_2_1
from tests.support.kubernetes.trainer_controller import TrainController, trainer
from tests.unit.platforms.kubernetes.test_allocator import LABEL, NAME, Clock, until
from tests.unit.platforms.kubernetes.test_bodies import order
from tests.unit.platforms.trainer.test_bodies import section

Served = api_server.ApiServer


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def allocator(client: ApiServer, clock: Clock) -> Iterator[KubernetesAllocator]:
    made = KubernetesAllocator(client, section(), LABEL, token=lambda: "T", clock=clock)
    yield made
    made.close()


def seen(allocator: KubernetesAllocator) -> Allocation | None:
    return next((each for each in allocator.look() if each.name == NAME), None)


def is_seen(allocator: KubernetesAllocator, state: str) -> Callable[[], Any]:
    return lambda: (each := seen(allocator)) and each.state == state and each


# -- orders ----------------------------------------------------------------------------------------


def test_an_order_is_a_train_job_that_owns_its_secret(
    allocator: KubernetesAllocator, there: Served
) -> None:
    """What its server is asked before, it is asked once."""
    for _ in range(3):
        allocator.submit(order())
    (job,) = there.objects.all("trainjobs")
    (secret,) = there.objects.all("secrets")
    (owner,) = secret["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("TrainJob", job["metadata"]["uid"])
    assert [at[1] for at, _ in pods_in(job["spec"])] == ["node"]
    assert there.count("GET /openapi") == (2 if there.version == "1.20" else 1)
    assert there.count("GET /apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes") == 1


def test_an_older_server_gets_the_fields_that_it_has(tmp_path: Path) -> None:
    """And the job of the runtime, whatever it is called."""
    operators = trainer(runtime(job="workers"), crd=train_jobs_of_2_1())
    with api_server.serving(crds=[each.crd for each in operators]) as there:
        there.keep(operators[1].crd, *operators[1].given)
        client = ApiServer(read_access([there.kubeconfig(tmp_path)]))
        made = KubernetesAllocator(client, section(), LABEL, token=lambda: "T")
        made.submit(order())
        (job,) = there.objects.all("trainjobs")
        client.close()
    assert "runtimePatches" not in job["spec"]
    (override,) = job["spec"]["podTemplateOverrides"]
    assert override["targetJobs"] == [{"name": "workers"}]
    assert override["metadata"]["labels"]["bequeath/service"] == LABEL


def test_a_server_that_cannot_be_asked_gets_no_order(
    allocator: KubernetesAllocator, there: Served
) -> None:
    there.fail("GET /openapi", 503)
    with pytest.raises(PassingBackendError):
        allocator.submit(order())
    assert there.count("POST") == 0
    allocator.submit(order())
    assert len(there.objects.all("trainjobs")) == 1


def test_a_server_that_has_just_got_train_jobs_is_asked_again_soon(
    allocator: KubernetesAllocator, there: Served
) -> None:
    """It takes them before it publishes their fields. Mutation: somebody has to install them."""
    there.publishes = False
    with pytest.raises(PassingBackendError, match="does not publish the fields of trainjobs yet"):
        allocator.submit(order())
    there.publishes = True
    allocator.submit(order())
    assert len(there.objects.all("trainjobs")) == 1


def test_a_runtime_that_is_not_there_is_said_and_comes_later(
    client: ApiServer, there: Served
) -> None:
    ref = {"name": "later", "kind": "TrainingRuntime"}
    made = KubernetesAllocator(client, section(runtimeRef=ref), LABEL, token=lambda: "T")
    with pytest.raises(PermanentBackendError, match="no TrainingRuntime 'later' in 'trials'"):
        made.submit(order())
    body = runtime("later", kind="TrainingRuntime")
    there.objects.create("trainingruntimes", "trials", body)
    with pytest.raises(BackendError, match="must be created before"):
        made.submit(order())  # what the played webhook knows is what was there first


# -- what becomes of them --------------------------------------------------------------------------

PAUSES = "import signal; signal.pause()"
FAILS_ONCE = (
    "import os, signal; os.mkdir('began') if not os.path.isdir('began') else signal.pause()"
)
FAILS_ONCE += "; raise SystemExit(3)"


@pytest.fixture
def played(tmp_path: Path) -> Iterator[tuple[Cluster, TrainController]]:
    """A cluster with Kubeflow Trainer, whose containers are processes."""
    controller, *keepers = trainer()
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster", operators=[controller, *keepers]) as made:
        yield made, controller


@contextlib.contextmanager
def ordered(
    there: Cluster, folder: Path, program: str, clock: Clock, **keys: Any
) -> Iterator[KubernetesAllocator]:
    """An allocation in which a program runs."""
    client = ApiServer(read_access([there.api.kubeconfig(folder)]))
    given = section(python=sys.executable, **keys)
    made = KubernetesAllocator(client, given, LABEL, token=lambda: "T", clock=clock)
    made.submit(dataclasses.replace(order(), arguments=("-c", program)))
    try:
        yield made
    finally:
        made.close()


def others(there: Cluster, than: Any) -> list[Any]:
    return [x for x in there.api.objects.all("pods") if x["metadata"]["uid"] != than]


def uid_of_pod(there: Cluster) -> str:
    (pod,) = there.api.objects.all("pods")
    uid: str = pod["metadata"]["uid"]
    return uid


def test_one_that_begins_anew_is_none_of_ours(
    played: tuple[Cluster, TrainController], tmp_path: Path, clock: Clock
) -> None:
    """Its JobSet is removed, and Kubeflow Trainer makes another one (kubeflow/trainer#3737).
    Mutation: it runs again, and its agent is believed."""
    there, controller = played
    with ordered(there, tmp_path, PAUSES, clock) as allocator:
        until(is_seen(allocator, "running"))
        first = uid_of_pod(there)
        controller.remove_job_set(NAME)
        until(lambda: others(there, first))
        until(lambda: (each := seen(allocator)) and each.reason == SECOND)
        allocator.cancel([NAME], 0.0)
        until(lambda: there.api.objects.all("trainjobs") == [])
        until(lambda: there.containers == 0)


def test_one_that_has_failed_is_over_though_it_begins_anew(
    played: tuple[Cluster, TrainController], tmp_path: Path, clock: Clock
) -> None:
    """Mutation: after its end it is a place again."""
    there, controller = played
    with ordered(there, tmp_path, FAILS_ONCE, clock) as allocator:
        ended = until(is_seen(allocator, "ended"))
        assert (ended.gone, ended.reason) == (Gone.FAILED, "exit code 3")
        first = uid_of_pod(there)
        controller.remove_job_set(NAME)
        until(lambda: others(there, first))
        until(lambda: (each := seen(allocator)) and each.reason == SECOND)


def test_a_container_that_is_started_again_is_ended_at_once(
    played: tuple[Cluster, TrainController], tmp_path: Path, clock: Clock
) -> None:
    """It has failed, and holds its node. Mutations: it runs; it is removed a minute later."""
    there, _ = played
    with ordered(there, tmp_path, PAUSES, clock) as allocator:
        until(is_seen(allocator, "running"))
        (pod,) = there.pods()

        def restart(made: Any) -> None:
            (status,) = made["status"]["containerStatuses"]
            status["lastState"] = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}

        there.api.objects.change("pods", "trials", pod["metadata"]["name"], restart)
        until(is_seen(allocator, "unknown"))  # the object says next how it ended, if it does
        clock.now += LATE_S
        assert until(is_seen(allocator, "ended")).gone is Gone.OUT_OF_MEMORY
        until(lambda: there.api.objects.all("trainjobs") == [])


def test_one_whose_pods_go_on_at_its_end_is_removed_at_once(
    played: tuple[Cluster, TrainController], tmp_path: Path, clock: Clock
) -> None:
    """Kubeflow Trainer asks once for the removal of a JobSet (kubeflow/trainer#3833)."""
    there, _ = played
    with ordered(there, tmp_path, PAUSES, clock) as allocator:
        until(is_seen(allocator, "running"))
        late = {
            "type": "Failed",
            "status": "True",
            "reason": "DeadlineExceeded",
            "message": "over",
            "lastTransitionTime": there.api.objects.timestamp(),
        }
        status = {"conditions": [late]}
        there.api.objects.change("trainjobs", "trials", NAME, lambda x: x.update(status=status))
        until(is_seen(allocator, "unknown"))
        clock.now += LATE_S
        assert until(is_seen(allocator, "ended")).gone is Gone.WALL_TIME
        until(lambda: there.api.objects.all("trainjobs") == [])


def test_at_its_limit_it_ends_and_says_so(
    played: tuple[Cluster, TrainController], tmp_path: Path, clock: Clock
) -> None:
    there, _ = played
    with ordered(there, tmp_path, PAUSES, clock, wallTime="1s") as allocator:
        ended = until(is_seen(allocator, "ended"))
        assert ended.gone is Gone.WALL_TIME
        assert ended.reason == "DeadlineExceeded: Trainjob exceeded its active deadline"


def test_one_that_somebody_deletes_was_taken_away(
    played: tuple[Cluster, TrainController], tmp_path: Path, clock: Clock
) -> None:
    there, _ = played
    with ordered(there, tmp_path, PAUSES, clock) as allocator:
        until(is_seen(allocator, "running"))
        foreground = {"propagationPolicy": "Foreground"}
        there.api.objects.delete("trainjobs", "trials", NAME, foreground)
        ended = until(is_seen(allocator, "ended"))
        assert ended.gone is Gone.CANCELLED
        assert ended.reason == "its TrainJob was deleted in 'trials'"


def test_a_queue_admits_it_and_takes_it_back(
    played: tuple[Cluster, TrainController], tmp_path: Path, clock: Clock
) -> None:
    there, _ = played
    with ordered(there, tmp_path, PAUSES, clock, queue="q") as allocator:
        waits = until(is_seen(allocator, "waiting"))
        assert waits.reason == "its queue has not admitted it yet"
        assert there.api.objects.all("pods") == []
        there.api.objects.patch("trainjobs", "trials", NAME, {"spec": {"suspend": False}})
        until(is_seen(allocator, "running"))
        there.api.objects.patch("trainjobs", "trials", NAME, {"spec": {"suspend": True}})
        again = until(lambda: (each := seen(allocator)) and each.state == "waiting" and each)
        assert again.reason == "its queue has taken it back", "its agent is none any more"
