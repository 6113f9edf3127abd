"""Controllers of others that are played here: each makes pods of the objects of one kind, and
writes their status. They act by :class:`Hands`, so that the same one plays over a server of our own
(``cluster.py``) and over a real one (``real_operators.py``).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

from tests.support.kubernetes.crds import Crd

Object = dict[str, Any]


class Hands(Protocol):
    """What a controller does to the objects of a server. Of what is not there: nothing."""

    def timestamp(self) -> str:
        """Now, as the server writes it."""

    def make(self, plural: str, body: Object) -> None:
        """Create an object; one that is there already stays."""

    def delete(self, plural: str, name: str, grace_s: int | None = None) -> None:
        """Delete an object."""

    def note(self, plural: str, name: str, status: Object) -> None:
        """Put a status in the place of that of an object."""

    def finish(self, plural: str, name: str) -> None:
        """Let an object go that was marked for its end, since its pods have gone. A real server has
        a controller of its own for that."""


class Operator(ABC):
    """Plays the controller of one kind of object.

    Attributes:
        crd: the kind.
        name_label: the label of pods with the name of their object; empty: it makes none.
        given: objects of the kind that are there from the beginning.
    """

    name_label: ClassVar[str]
    given: Sequence[Object] = ()

    def __init__(self, crd: Crd) -> None:
        self.crd = crd

    @property
    def plural(self) -> str:
        """The name of the kind in paths."""
        return self.crd.plural

    @abstractmethod
    def control(self, hands: Hands, document: Object, pods: Sequence[Object]) -> None:
        """Do the next thing for an object: called again and again.

        Args:
            hands: what may be done.
            document: the object, which is to go on.
            pods: those that it owns.
        """

    def step(self, hands: Hands, document: Object, pods: Sequence[Object]) -> None:
        """Look after an object, also one that is to end: its pods go first."""
        if "deletionTimestamp" not in document["metadata"]:
            self.control(hands, document, pods)
            return
        for pod in pods:
            self.end_pod(hands, pod)
        if not pods:
            hands.finish(self.plural, document["metadata"]["name"])

    def end_pod(self, hands: Hands, pod: Object) -> None:
        """Delete a pod, with its own grace."""
        if "deletionTimestamp" not in pod["metadata"]:
            grace = pod["spec"].get("terminationGracePeriodSeconds", 30)
            hands.delete("pods", pod["metadata"]["name"], grace)

    def make_pod(
        self,
        hands: Hands,
        document: Object,
        template: Object,
        name: str,
        *,
        labels: Mapping[str, str] = {},
        variables: Mapping[str, str] = {},
    ) -> None:
        """Make a pod of a template.

        Args:
            hands: what may be done.
            document: the object that is to own it.
            template: of the pod, with its metadata.
            name: of the pod.
            labels: beside those of the template, and the one with the object's name.
            variables: of the environment of its containers, behind those that they have.
        """
        about = document["metadata"]
        owner = {
            "apiVersion": self.crd.api_version,
            "kind": self.crd.word,
            "name": about["name"],
            "uid": about["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        spec = copy.deepcopy(template["spec"])
        for container in spec["containers"]:
            more = [{"name": key, "value": value} for key, value in variables.items()]
            container["env"] = [*container.get("env", []), *more]
        given = template.get("metadata", {})
        own = {self.name_label: about["name"], **labels}
        hands.make("pods", {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": {**given.get("labels", {}), **own},
                "annotations": dict(given.get("annotations", {})),
                "ownerReferences": [owner],
            },
            "spec": spec,
        })  # fmt: skip

    def note(self, hands: Hands, document: Object, status: Object) -> None:
        """Write a status, if it is another one than before."""
        if status != document.get("status", {}):
            hands.note(self.plural, document["metadata"]["name"], status)


def owned_by(document: Object, pods: Sequence[Object]) -> list[Object]:
    """The pods that an object owns."""
    uid = document["metadata"]["uid"]
    return [
        pod
        for pod in pods
        if any(each["uid"] == uid for each in pod["metadata"].get("ownerReferences", []))
    ]


def phase_of(pod: Object) -> str:
    """The phase of a pod; empty as long as it has none."""
    return str(pod.get("status", {}).get("phase", ""))
