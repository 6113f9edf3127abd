"""A kind of object that differs from a Job in all that a kind may: names, pods, ends, stops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from dispatcher.platforms.allocations.allocation import (
    Allocation,
    AllocationOrder,
    AllocationState,
    Gone,
)
from dispatcher.platforms.kubernetes.allocator import KubernetesAllocator
from dispatcher.platforms.kubernetes.api.documents import mapping_in
from dispatcher.platforms.kubernetes.api.kubeconfig import read_access
from dispatcher.platforms.kubernetes.api.server import CONFIG_MAPS, ApiServer, Document, ObjectKind
from dispatcher.platforms.kubernetes.jobs import JOB
from dispatcher.platforms.kubernetes.kind import AllocationKind, KindStanding, Right
from dispatcher.platforms.kubernetes.rights import rights_of
from dispatcher.platforms.kubernetes.section import KubernetesService
from tests.support.kubernetes import api_server
from tests.support.kubernetes.crds import Crd
from tests.unit.platforms.kubernetes.test_allocator import LABEL, until
from tests.unit.platforms.kubernetes.test_bodies import order

NAME, LAKE_NAME = order().name, order().name.replace("-", "")

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD = Crd({"spec": {
    "group": "x.y",
    "names": {"kind": "Lake", "plural": "lakes"},
    "versions": [{
        "name": "v2",
        "storage": True,
        "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {
                "metadata": {"properties": {"name": {"type": "string", "pattern": "^[a-z0-9]+$"}}},
                "spec": {"type": "object", "properties": {
                    "pods": {"type": "integer"},
                    "template": _ANYTHING,
                    "drained": {"type": "boolean"},
                }},
                "status": _ANYTHING,
            },
        }},
    }],
}})  # fmt: skip

_STATES = {
    "drained": KindStanding(AllocationState.ENDED, Gone.CANCELLED, "somebody has drained it"),
    "dry": KindStanding(AllocationState.ENDED, Gone.NEVER, "it never had water"),
    "moves": KindStanding(AllocationState.RUNNING),
    "froze": KindStanding(AllocationState.UNKNOWN, reason="froze"),
}


class LakeKind(AllocationKind):
    resource = ObjectKind("apis/x.y/v2", "lakes")
    word = "Lake"
    controller = "the lake's warden"
    pod_label = "x.y/lake"
    renews_pods = True
    stopping: ClassVar[Document | None] = {"spec": {"drained": True}}
    more_rights = (Right("get", CONFIG_MAPS, needed=False), Right("create", CONFIG_MAPS))

    def spec_of(
        self, order: AllocationOrder, section: KubernetesService, template: dict[str, Any]
    ) -> dict[str, Any]:
        return {"pods": order.nodes, "template": template}

    def standing(self, document: Document) -> KindStanding:
        return _STATES.get(mapping_in(document, "status").get("word", ""), KindStanding())

    def first_pods(self, document: Document) -> int:
        return int(mapping_in(document, "spec")["pods"])

    def object_name(self, name: str) -> str:
        return name.replace("-", "")


LAKE = LakeKind()


class LakeSection(KubernetesService):
    platform: Literal["lake"] = "lake"

    @classmethod
    def allocation_kinds(cls) -> Sequence[AllocationKind]:
        return (LAKE,)


@pytest.fixture
def there() -> Iterator[api_server.ApiServer]:
    with api_server.serving(crds=[CRD]) as server:
        yield server


@pytest.fixture
def allocator(there: api_server.ApiServer, tmp_path: Path) -> Iterator[KubernetesAllocator]:
    client = ApiServer(read_access([there.kubeconfig(tmp_path)]))
    made = KubernetesAllocator(client, LakeSection(image="i"), LABEL, token=lambda: "T")
    yield made
    made.close()


def seen(allocator: KubernetesAllocator) -> Allocation:
    (one,) = until(allocator.look)
    assert one.name == NAME
    return one  # type: ignore[no-any-return]


def say(there: api_server.ApiServer, word: str) -> None:
    there.objects.change("lakes", "trials", LAKE_NAME, lambda x: x.update(status={"word": word}))


def add_pod(there: api_server.ApiServer, name: str) -> None:
    """A pod as the controller makes it: with the labels of the template, and its own."""
    lake = there.objects.get("lakes", "trials", LAKE_NAME)
    labels = {**lake["spec"]["template"]["metadata"]["labels"], "x.y/lake": LAKE_NAME}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"nodeName": "n1", "containers": [{"name": "agent", "image": "i"}]},
        "status": {"phase": "Running", "startTime": there.objects.timestamp()},
    }
    there.objects.create("pods", "trials", body)


def test_names_that_objects_cannot_have_are_labels(
    allocator: KubernetesAllocator, there: api_server.ApiServer
) -> None:
    """Mutation: what a head sees is named as its objects are, so that all are cancelled."""
    allocator.submit(order())
    allocator.submit(order())
    (lake,) = there.objects.all("lakes")
    assert lake["metadata"]["name"] == LAKE_NAME
    (secret,) = there.objects.all("secrets")
    (owner,) = secret["metadata"]["ownerReferences"]
    assert (secret["metadata"]["name"], owner["name"]) == (NAME, LAKE_NAME)
    assert (owner["apiVersion"], owner["kind"]) == ("x.y/v2", "Lake")
    add_pod(there, "p1")
    until(lambda: seen(allocator).state is AllocationState.RUNNING)
    there.objects.remove("lakes", "trials", LAKE_NAME)
    assert seen(allocator).state is AllocationState.RUNNING, "its pod has been left"
    there.objects.remove("pods", "trials", "p1")
    until(lambda: seen(allocator).gone is Gone.CANCELLED)


def test_one_that_is_stopped_by_a_field_is_removed_when_it_has_ended(
    allocator: KubernetesAllocator, there: api_server.ApiServer
) -> None:
    """Mutation: its record, which says how it ended, goes before anybody has read it."""
    allocator.submit(order())
    seen(allocator)
    allocator.cancel([NAME], 5.0)
    (lake,) = there.objects.all("lakes")
    assert lake["spec"]["drained"] is True
    assert "deletionTimestamp" not in lake["metadata"]
    say(there, "drained")
    until(lambda: seen(allocator).state is AllocationState.ENDED)
    ended = seen(allocator)
    assert (ended.gone, ended.reason) == (Gone.CANCELLED, "somebody has drained it")
    allocator.close()
    assert "deletionTimestamp" in there.objects.get("lakes", "trials", LAKE_NAME)["metadata"]


def test_an_attempt_may_go_on_with_other_pods(
    allocator: KubernetesAllocator, there: api_server.ApiServer
) -> None:
    """Mutation: a rescale is a place that was taken back."""
    allocator.submit(order())
    add_pod(there, "p1")
    until(lambda: seen(allocator).state is AllocationState.RUNNING)
    say(there, "moves")
    there.objects.remove("pods", "trials", "p1")
    until(lambda: there.objects.all("pods") == [])
    assert seen(allocator).state is AllocationState.RUNNING, "without any pod"
    add_pod(there, "p2")
    say(there, "")
    until(lambda: seen(allocator).place == "n1")
    assert seen(allocator).state is AllocationState.RUNNING


@pytest.mark.parametrize(
    "word, state, gone, reason",
    [
        ("froze", AllocationState.UNKNOWN, None, "froze"),
        ("dry", AllocationState.ENDED, Gone.NEVER, "it never had water"),
    ],
)
def test_words_of_the_object_count(
    word: str,
    state: AllocationState,
    gone: Gone | None,
    reason: str,
    allocator: KubernetesAllocator,
    there: api_server.ApiServer,
) -> None:
    allocator.submit(order())
    say(there, word)
    until(lambda: seen(allocator).state is state)
    one = seen(allocator)
    assert (one.gone, one.reason) == (gone, reason)


def test_rights_are_those_of_all_kinds_once() -> None:
    """A stop by a field is a right of its own; one that is needed by one kind is needed."""
    both = [(x.verb, x.kind.plural) for x in rights_of(LAKE, JOB)]
    assert len(both) == len(set(both))
    assert {("patch", "lakes"), ("get", "configmaps"), ("delete", "jobs")} <= set(both)
    assert ("patch", "jobs") not in both
    assert Right("create", CONFIG_MAPS, needed=True) in rights_of(LAKE)
