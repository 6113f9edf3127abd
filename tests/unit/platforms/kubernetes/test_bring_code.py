"""Code and runtime in ConfigMaps, and pods that begin with them: as processes of this machine."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher.errors import PermanentBackendError
from dispatcher.platforms.allocations.allocation import Allocation, AllocationOrder, Gone
from dispatcher.platforms.allocations.probe import PlaceProbe, ProbeNeeds
from dispatcher.platforms.archives import Archives, pack_all
from dispatcher.platforms.kubernetes import bringing
from dispatcher.platforms.kubernetes.allocator import KubernetesAllocator
from dispatcher.platforms.kubernetes.api.kubeconfig import read_access
from dispatcher.platforms.kubernetes.api.server import ApiServer
from dispatcher.platforms.kubernetes.bodies import object_of
from dispatcher.platforms.kubernetes.jobs import JOB
from tests.support.kubernetes import api_server
from tests.support.kubernetes.cluster import Cluster, cluster
from tests.support.kubernetes.contract import complaints
from tests.support.processes import wait_until
from tests.unit.platforms.kubernetes.test_bodies import order, section
from trial_runtime import begin

Served = api_server.ApiServer
LABEL = "abc123-0a0b0c"
NAME = order().name


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)\n")
    return folder


@pytest.fixture
def archives(tmp_path: Path, code: Path) -> Callable[[], Archives]:
    return lambda: pack_all(
        code, tmp_path / "packed", excluded=(), most_files=99, most_bytes=1 << 30
    )


def allocator_of(
    client: ApiServer, archives: Callable[[], Archives], **keys: Any
) -> KubernetesAllocator:
    return KubernetesAllocator(
        client,
        section(bringCode=True, **keys),
        LABEL,
        token=lambda: "",
        archives=archives,
    )


def quick() -> AllocationOrder:
    """One whose agent leaves soon: nobody is at its head's address."""
    made = order()
    head = replace(made.config.head, address="tcp://127.0.0.1:9")
    config = replace(made.config, head=head, head_grace_s=0.5, weights_root="/")
    return AllocationOrder(made.name, config, made.arguments, {"PYTHONPATH": "/the/runtime/here"})


def maps(there: Served) -> list[dict[str, Any]]:
    return there.objects.all("configmaps")


def test_they_are_made_once_and_go_with_the_service(
    client: ApiServer, there: Served, archives: Callable[[], Archives]
) -> None:
    allocator = allocator_of(client, archives)
    allocator.submit(quick())
    made = maps(there)
    assert len(made) == 3, "the program, the runtime, the code"
    assert all(complaints("ConfigMap", each) == [] for each in made)
    assert {each["immutable"] for each in made} == {True}
    other = replace(quick().config, ticket="another")
    allocator.submit(AllocationOrder(f"{LABEL}-kubernetes-3-1", other, (), {}))
    again = allocator_of(client, archives)  # the next head's
    again.submit(AllocationOrder(f"{LABEL}-kubernetes-4-1", other, (), {}))
    assert [each["metadata"]["uid"] for each in maps(there)] == [
        each["metadata"]["uid"] for each in made
    ]
    foreign = {"metadata": {"name": "of-somebody-else"}, "apiVersion": "v1", "kind": "ConfigMap"}
    there.objects.create("configmaps", "trials", foreign)
    again.clear()
    assert [each["metadata"]["name"] for each in maps(there)] == ["of-somebody-else"]
    allocator.close()
    again.close()


def test_nothing_secret_is_in_them(
    client: ApiServer, there: Served, archives: Callable[[], Archives]
) -> None:
    allocator = allocator_of(client, archives)
    allocator.submit(order())
    shown = str([*maps(there), there.objects.get("jobs", "trials", NAME)])
    for each in maps(there):
        shown += base64.b64decode(each["binaryData"]["part"]).decode("latin-1")
    assert "S3CRET" not in shown
    allocator.close()


def test_large_code_is_cut_in_parts(
    client: ApiServer, there: Served, archives: Callable[[], Archives], code: Path
) -> None:
    (code / "noise.bin").write_bytes(os.urandom(2 << 20))
    allocator = allocator_of(client, archives)
    allocator.submit(quick())
    sizes = [len(base64.b64decode(each["binaryData"]["part"])) for each in maps(there)]
    assert len(sizes) == 5
    assert max(sizes) == bringing.PART
    job = there.objects.get("jobs", "trials", NAME)
    spec = job["spec"]["template"]["spec"]
    (volume,) = [x for x in spec["volumes"] if "projected" in x]
    assert len(volume["projected"]["sources"]) == 5
    allocator.close()


def test_too_much_code_is_refused_before_anything_is_made(
    client: ApiServer, there: Served, archives: Callable[[], Archives], code: Path
) -> None:
    (code / "noise.bin").write_bytes(os.urandom(9 << 20))
    allocator = allocator_of(client, archives)
    with pytest.raises(PermanentBackendError, match=r"the code is 9\.0 MiB compressed") as refused:
        allocator.submit(quick())
    assert "codeFolder" in refused.value.hint
    assert maps(there) == []
    assert there.objects.all("jobs") == []
    allocator.close()


def test_one_half_made_is_completed(
    client: ApiServer,
    there: Served,
    archives: Callable[[], Archives],
) -> None:
    """A quota for ConfigMaps, which somebody raises."""
    there.objects.quota["configmaps"] = 2
    allocator = allocator_of(client, archives)
    with pytest.raises(Exception, match="quota"):
        allocator.submit(quick())
    assert there.objects.all("jobs") == []
    del there.objects.quota["configmaps"]
    allocator.submit(quick())
    assert len(maps(there)) == 3
    allocator.close()


def test_what_somebody_has_removed_is_made_anew(
    client: ApiServer, there: Served, archives: Callable[[], Archives]
) -> None:
    """Mutation: what was made once is there for ever, and each later pod waits for it."""
    allocator = allocator_of(client, archives)
    allocator.submit(quick())
    names = {each["metadata"]["name"] for each in maps(there)}
    bringing.clear_maps(client, LABEL)
    assert maps(there) == []
    other = replace(quick().config, ticket="another")
    allocator.submit(AllocationOrder(f"{LABEL}-kubernetes-3-1", other, (), {}))
    assert {each["metadata"]["name"] for each in maps(there)} == names
    allocator.close()


def test_the_contract_takes_the_volume() -> None:
    sources = [{"configMap": {"name": "n", "items": [{"key": "part", "path": "x.0"}]}}]
    assert complaints("Job", object_of(JOB, order(), section(), LABEL, sources)) == []


def test_a_work_folder_on_a_volume_that_is_shared() -> None:
    """In a pod of its own nobody else comes near; a claim may have other users."""
    keys = {"volumes": [{"claim": "w", "at": "/w/"}, {"scratch": "1Gi", "at": "/s"}]}
    assert section(**keys).shares("/w/bequeath/brought")
    assert not section(**keys).shares("/s/bequeath")
    assert not section(**keys).shares("/ww/bequeath")


# -- pods that run -------------------------------------------------------------------------------


@pytest.fixture
def running(version: str, tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster", version, places=2) as made:
        yield made


def ended(running: Cluster, allocator: KubernetesAllocator) -> Allocation:
    seen: list[Allocation] = []

    def has_ended() -> bool:
        seen[:] = [each for each in allocator.look() if each.name == NAME]
        return bool(seen) and seen[0].gone is not None

    wait_until(has_ended, "the pod has ended", 60)
    return seen[0]


def test_a_pod_runs_the_agent_and_the_code_that_were_brought(
    running: Cluster, tmp_path: Path, archives: Callable[[], Archives]
) -> None:
    client = ApiServer(read_access([running.api.kubeconfig(tmp_path)]))
    work = tmp_path / "work"
    allocator = allocator_of(client, archives, python=sys.executable, workFolder=str(work))
    allocator.submit(quick())
    allocation = ended(running, allocator)
    assert allocation.gone is Gone.FINISHED, allocation.reason
    packed = archives()
    assert (work / "brought/code" / packed.code.digest / "train.py").read_text() == "print(1)\n"
    runtime = work / "brought/runtime" / packed.runtime.digest
    assert (runtime / "trial_runtime/agent/__pycache__").is_dir()
    allocator.close()


def test_why_an_image_is_unfit_is_the_reason(
    running: Cluster, tmp_path: Path, archives: Callable[[], Archives]
) -> None:
    client = ApiServer(read_access([running.api.kubeconfig(tmp_path)]))
    work = tmp_path / "work"
    (work / "brought").mkdir(parents=True)
    (work / "brought/runtime").write_text("no folder")
    allocator = allocator_of(client, archives, python=sys.executable, workFolder=str(work))
    allocator.submit(quick())
    allocation = ended(running, allocator)
    assert allocation.gone is Gone.FAILED
    assert allocation.reason.startswith(f"exit code {begin.NO_FOLDER}: ")
    assert "brought/runtime cannot be used" in allocation.reason
    allocator.close()


def test_a_probe_answers_by_what_its_pod_has_printed(
    running: Cluster, tmp_path: Path, archives: Callable[[], Archives]
) -> None:
    """And nothing is brought for it. Mutation: it is begun as an agent."""
    client = ApiServer(read_access([running.api.kubeconfig(tmp_path)]))
    keys = {"python": sys.executable, "workFolder": str(tmp_path / "work")}
    allocator = allocator_of(client, archives, **keys)
    wanted = quick().config
    wanted = replace(wanted, head=replace(wanted.head, address=f"folder://{tmp_path}"))
    probe = PlaceProbe(LABEL, wanted, tmp_path / "home", ProbeNeeds(brings_code=True))
    allocator.submit(probe.order)
    seen: list[Allocation] = []

    def has_ended() -> bool:
        seen[:] = [each for each in allocator.look() if each.name == probe.name]
        return bool(seen) and seen[0].gone is not None

    wait_until(has_ended, "the pod has ended")
    found = probe.look(seen[0], allocator.answer(probe.order), 0.0)
    assert found is not None
    severities = {each.topic: each.severity.value for each in found}
    assert severities["python"] == severities["modules"] == "ok"
    assert severities["head"] == "problem", "nobody is there"
    assert running.api.objects.all("configmaps") == []
    probe.close()
    allocator.close()


def test_without_the_right_to_make_them(
    client: ApiServer, there: Served, archives: Callable[[], Archives]
) -> None:
    allocator = allocator_of(client, archives)
    there.denied.add(("create", "configmaps"))
    with pytest.raises(PermanentBackendError, match="configmap"):
        allocator.submit(quick())
    assert there.objects.all("jobs") == []
    allocator.close()
