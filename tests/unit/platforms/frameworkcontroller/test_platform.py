"""What a file gets to hear before anything is ordered, what a cluster is asked, and how Frameworks
are stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dispatcher.cli.main import app
from dispatcher.findings import Finding, Severity
from dispatcher.platforms.allocations.allocation import Allocation, Gone
from dispatcher.platforms.allocations.sweeping import sweep
from dispatcher.platforms.frameworkcontroller import FRAMEWORKCONTROLLER
from dispatcher.platforms.frameworkcontroller.frameworks import FRAMEWORK
from dispatcher.platforms.kubernetes.allocator import STOP_S, KubernetesAllocator
from dispatcher.platforms.kubernetes.api.kubeconfig import read_access
from dispatcher.platforms.kubernetes.api.server import ApiServer
from dispatcher.platforms.kubernetes.rights import rights_of
from dispatcher.platforms.kubernetes.translation import order_there
from tests.support.kubernetes import api_server
from tests.support.kubernetes.framework_controller import completion
from tests.support.processes import wait_until
from tests.unit.platforms.frameworkcontroller.test_bodies import CRD, section
from tests.unit.platforms.kubernetes.test_allocator import Clock
from tests.unit.platforms.kubernetes.test_bodies import order
from tests.unit.platforms.kubernetes.test_platform import OPEN, VOLUME, kubeconfig, problems

Served = api_server.ApiServer
LABEL, NAME = "abc123-0a0b0c", order().name
OBJECT = FRAMEWORK.object_name(NAME)


@pytest.fixture(autouse=True)
def _nothing_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


@pytest.fixture
def there() -> Iterator[Served]:
    with api_server.serving(crds=[CRD]) as server:
        yield server


# -- the file --------------------------------------------------------------------------------------


def wrong(folder: Path, nodes: int, **keys: Any) -> dict[str, str]:
    given = {
        "platform": "frameworkcontroller",
        "kubeconfig": kubeconfig(folder),
        "volumes": [VOLUME],
        "workFolder": "/weights/b",
        **keys,
    }
    return problems(folder, given, channel=OPEN, trialNodes=nodes)


def test_one_that_is_in_order(tmp_path: Path) -> None:
    assert wrong(tmp_path, 1) == {}
    roles = [{"name": "ps", "replicas": 1}, {"name": "worker", "limits": {"cpu": 1}}]
    assert wrong(tmp_path, 3, roles=roles) == {}


def test_roles_are_those_of_a_trial(tmp_path: Path) -> None:
    one = wrong(tmp_path, 1, roles=[{"name": "a"}, {"name": "b"}])
    assert "is 'b', and a trial has one pod" in one.pop("name")
    assert one == {}
    several = wrong(tmp_path, 3, roles=[{"name": "a", "replicas": 1}, {"name": "b", "replicas": 5}])
    assert "roles name 6 pods, and a trial has 3 ('trialNodes')" in several.pop("name")
    assert several == {}


def test_pods_of_one_trial_need_a_folder_to_meet_in(tmp_path: Path) -> None:
    """As Jobs do. Mutation: the checks of pods are left out."""
    assert "workFolder" in wrong(tmp_path, 2, volumes=[])


def test_a_queue_of_kueue_is_refused_at_its_place(tmp_path: Path) -> None:
    found = wrong(tmp_path, 1, queue="team")
    assert "Kueue knows no Frameworks" in found.pop("queue")
    assert found == {}


def test_an_agent_takes_its_rank_from_the_controller() -> None:
    there = order_there(order(), section(), token="T").config
    assert (there.rank_variable, there.renewal) == ("FC_TASK_INDEX", None)


# -- the cluster -----------------------------------------------------------------------------------


def findings(there: Served, folder: Path, **keys: Any) -> list[Finding]:
    given = section(kubeconfig=str(there.kubeconfig(folder)), **keys)
    return list(FRAMEWORKCONTROLLER.inspect(given))


def test_a_cluster_that_is_in_order(there: Served, tmp_path: Path) -> None:
    seen = findings(there, tmp_path)
    assert {each.severity for each in seen} == {Severity.OK}
    texts = [each.text for each in seen]
    assert "it has Frameworks of frameworkcontroller.microsoft.com/v1" in texts
    assert "it takes a Framework with the image 'img:1'" in texts
    assert there.objects.all("frameworks") == []


def test_a_cluster_without_the_controller(tmp_path: Path) -> None:
    with api_server.serving() as there:
        seen = findings(there, tmp_path)
    assert [each.severity for each in seen] == [Severity.OK, Severity.PROBLEM]
    assert seen[1].text == "it has no Frameworks of frameworkcontroller.microsoft.com/v1"
    assert "install FrameworkController" in seen[1].hint


def test_the_right_to_stop_one_is_asked_for(there: Served, tmp_path: Path) -> None:
    """Mutation: the first stop is refused."""
    assert ("patch", "frameworks") in {(x.verb, x.kind.plural) for x in rights_of(FRAMEWORK)}
    there.denied |= {("patch", "frameworks"), ("create", "jobs")}
    (finding,) = (x for x in findings(there, tmp_path) if x.topic == "rights")
    assert finding.text == "you may not patch frameworks"
    words = ["kubernetes", "rights", "alice", "--platform", "frameworkcontroller"]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0
    assert "- frameworks\n" in ran.output


# -- orders ----------------------------------------------------------------------------------------


@pytest.fixture
def clock() -> Clock:
    return Clock()


Make = Callable[[], KubernetesAllocator]


@pytest.fixture
def make(there: Served, tmp_path: Path, clock: Clock) -> Make:
    def made() -> KubernetesAllocator:
        client = ApiServer(read_access([there.kubeconfig(tmp_path)]))
        return KubernetesAllocator(client, section(), LABEL, token=lambda: "T", clock=clock)

    return made


def seen(allocator: KubernetesAllocator, state: str) -> Allocation:
    found: list[Allocation] = []

    def looks() -> bool:
        found[:] = [x for x in allocator.look() if x.name == NAME and x.state == state]
        return bool(found)

    wait_until(looks, f"it is {state}")
    return found[0]


def ends(there: Served, code: int) -> None:
    """The controller says how it ended."""
    now = there.objects.timestamp()
    attempt = {"id": 0, "startTime": now, "completionStatus": completion(code)}
    status = {"state": "Completed", "attemptStatus": attempt, "startTime": now}
    there.objects.change("frameworks", "trials", OBJECT, lambda made: made.update(status=status))


def test_an_order_is_a_framework_that_owns_its_secret(there: Served, make: Make) -> None:
    """Asked for twice it is one, and it is known by the name of its allocation."""
    allocator = make()
    allocator.submit(order())
    allocator.submit(order())
    (framework,) = there.objects.all("frameworks")
    (secret,) = there.objects.all("secrets")
    (owner,) = secret["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["name"], owner["uid"]) == (
        "frameworkcontroller.microsoft.com/v1", "Framework", OBJECT, framework["metadata"]["uid"],
    )  # fmt: skip
    assert secret["metadata"]["name"] == NAME
    assert "S3CRET" not in str(framework)
    assert seen(allocator, "waiting").reason == "FrameworkController has not taken it up yet"
    allocator.close()


def test_it_is_asked_to_stop_and_deleted_when_it_has(
    there: Served, make: Make, clock: Clock
) -> None:
    """Mutations: it is deleted at once, and its record with it; its record stays for weeks."""
    allocator = make()
    allocator.submit(order())
    seen(allocator, "waiting")
    allocator.cancel([NAME], 5.0)
    spec = there.objects.get("frameworks", "trials", OBJECT)["spec"]
    assert (spec["executionType"], there.count("DELETE")) == ("Stop", 0)
    assert [role["taskNumber"] for role in spec["taskRoles"]] == [1], "the rest stays"
    ends(there, -210)
    assert seen(allocator, "ended").gone is Gone.CANCELLED
    clock.now += 61
    allocator.look()
    assert there.objects.get("frameworks", "trials", OBJECT)["metadata"]["deletionTimestamp"]
    allocator.close()


def test_a_controller_that_is_away_does_not_keep_it(
    there: Served, make: Make, clock: Clock
) -> None:
    """Mutation: nothing ends while nobody reads what it was asked."""
    allocator = make()
    allocator.submit(order())
    seen(allocator, "waiting")
    for _ in range(3):
        allocator.cancel([NAME], 0.0)
        clock.now += STOP_S / 3
    assert there.count("DELETE") == 0
    clock.now += 1
    allocator.cancel([NAME], 0.0)
    about = there.objects.get("frameworks", "trials", OBJECT)["metadata"]
    assert "deletionTimestamp" in about
    allocator.close()


def test_nothing_is_left_when_a_head_ends(there: Served, make: Make) -> None:
    """Whether the controller has stopped it by then or not. Nobody else deletes it soon. Mutation:
    what was only asked to stop stays."""
    allocator = make()
    allocator.submit(order())
    seen(allocator, "waiting")
    allocator.cancel([NAME], 0.0)
    allocator.close()
    about = there.objects.get("frameworks", "trials", OBJECT)["metadata"]
    assert "deletionTimestamp" in about


def test_what_a_dead_head_has_left_is_swept(there: Served, make: Make) -> None:
    """One that runs at the first time, and what has ended as well. Mutation: a Framework that has
    ended stays for a month."""
    make().submit(order())
    assert sweep(make(), LABEL) == [NAME]
    about = there.objects.get("frameworks", "trials", OBJECT)["metadata"]
    assert "deletionTimestamp" in about
    there.objects.remove("frameworks", "trials", OBJECT)
    make().submit(order())
    ends(there, 0)
    there.asked.clear()
    assert sweep(make(), LABEL) == []
    assert there.count("DELETE /apis/frameworkcontroller") == 1
