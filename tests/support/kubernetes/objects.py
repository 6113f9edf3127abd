"""The objects of a server for tests: names, versions, deletion and owners, as real ones do it.

No network and no thread; every change is an event, which watches replay.
"""

from __future__ import annotations

import copy
import datetime
import re
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from tests.support.kubernetes.contract import complaints, pruned
from tests.support.kubernetes.crds import Crd

Object = dict[str, Any]

KINDS = {
    "jobs": ("batch", "batch/v1", "Job"),
    "pods": ("", "v1", "Pod"),
    "secrets": ("", "v1", "Secret"),
    "configmaps": ("", "v1", "ConfigMap"),
    "events": ("", "v1", "Event"),
    "persistentvolumeclaims": ("", "v1", "PersistentVolumeClaim"),
}

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


class Refusal(Exception):
    """An answer of the API that is an error."""

    def __init__(self, code: int, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
            **({"details": details} if details else {}),
        }


class Event(NamedTuple):
    """A change of an object of a kind."""

    version: int
    type: str
    plural: str
    object: Object


class Objects:
    """All objects. Threads: any; ``lock`` is notified of each change.

    Args:
        version: that is played.
        now: seconds since the epoch.
        crds: kinds beside those of Kubernetes itself.
    """

    def __init__(
        self,
        version: str,
        *,
        now: Callable[[], float] = time.time,
        crds: Collection[Crd] = (),
    ) -> None:
        self.lock = threading.Condition()
        self.crds = {each.plural: each for each in crds}
        more = {x.plural: (x.group, x.api_version, x.word) for x in crds}
        self.kinds = {**KINDS, **more}
        self.old = version == "1.20"
        self.namespaces = {"default", "trials"}
        self.quota: dict[str, int] = {}  # objects at most, by plural
        self.history: list[Event] = []
        self.forgotten = 0  # the newest version that nobody knows any more
        self.now = now
        self._objects: dict[tuple[str, str, str], Object] = {}
        self._version = 100

    @property
    def version(self) -> int:
        """The newest version."""
        return self._version

    def timestamp(self, later_s: float = 0.0) -> str:
        """Now, or some seconds later, as the server writes it."""
        moment = datetime.datetime.fromtimestamp(self.now() + later_s, datetime.UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def forget(self) -> None:
        """Forget what has happened, as after a compaction and a restart."""
        with self.lock:
            self.forgotten = self._version
            self.history.clear()

    # -- reading ---------------------------------------------------------------------------------

    def get(self, plural: str, namespace: str, name: str) -> Object:
        with self.lock:
            self._demand(namespace)
            found = self._objects.get((plural, namespace, name))
            if found is None:
                raise Refusal(404, "NotFound", f'{plural} "{name}" not found', name=name)
            return copy.deepcopy(found)

    def all(self, plural: str, namespace: str = "trials", labels: str = "") -> list[Object]:
        with self.lock:
            self._demand(namespace)
            return [
                copy.deepcopy(each)
                for (kind, space, _), each in sorted(self._objects.items())
                if (kind, space) == (plural, namespace) and selects(labels, each)
            ]

    def after(self, version: int, plural: str, namespace: str, labels: str) -> Iterator[Event]:
        """The events after a version; raises 410 for one that is forgotten."""
        with self.lock:
            if version < self.forgotten:
                raise Refusal(410, "Expired", f"too old resource version: {version}")
            for event in self.history:
                about = event.object["metadata"]
                ours = event.plural == plural and about["namespace"] == namespace
                if event.version > version and ours and selects(labels, event.object):
                    yield event

    # -- writing ---------------------------------------------------------------------------------

    def create(self, plural: str, namespace: str, body: Object, *, keep: bool = True) -> Object:
        with self.lock:
            self._demand(namespace)
            made, _ = self._checked(plural, body)
            about = made.setdefault("metadata", {})
            name = about.get("name") or about.get("generateName", "") + uuid.uuid4().hex[:5]
            there = self._objects.get((plural, namespace, name))
            if there is not None:
                going = "deletionTimestamp" in there["metadata"]
                text = f'{plural} "{name}" already exists'
                text = f"object is being deleted: {text}" if going else text
                raise Refusal(409, "AlreadyExists", text, name=name)
            most = self.quota.get(plural)
            if most is not None and len(self.all(plural, namespace)) >= most:
                text = f'{plural} "{name}" is forbidden: exceeded quota: q, limited: {most}'
                raise Refusal(403, "Forbidden", text)
            about |= {
                "name": name,
                "namespace": namespace,
                "uid": str(uuid.uuid4()),
                "creationTimestamp": self.timestamp(),
            }
            if not keep:
                return made
            self._objects[plural, namespace, name] = made
            return self._note("ADDED", plural, made)

    def apply(self, plural: str, namespace: str, name: str, body: Object) -> Object:
        with self.lock:
            self._demand(namespace)
            if (plural, namespace, name) not in self._objects:
                return self.create(plural, namespace, body)
            checked, _ = self._checked(plural, body)
            return self.change(plural, namespace, name, lambda x: merge(x, checked))

    def change(
        self, plural: str, namespace: str, name: str, change: Callable[[Object], object]
    ) -> Object:
        """Change an object in place, as a controller does to its status."""
        with self.lock:
            key = (plural, namespace, name)
            if key not in self._objects:
                raise Refusal(404, "NotFound", f'{plural} "{name}" not found', name=name)
            made = copy.deepcopy(self._objects[key])
            change(made)
            if made == self._objects[key]:
                return made
            self._objects[key] = made
            return self._note("MODIFIED", plural, made)

    def patch(self, plural: str, namespace: str, name: str, fields: Object) -> Object:
        """Put fields of somebody's in the place of those of an object, as far as it takes them."""

        def put(made: Object) -> None:
            before = copy.deepcopy(made)
            merge(made, fields)
            crd = self.crds.get(plural)
            if crd is None:
                return
            kept, _ = crd.pruned(made)
            wrong = crd.complaints(kept, before)
            if wrong:
                raise Refusal(422, "Invalid", f'{crd.word} "{name}" is invalid: {wrong[0]}')
            made.clear()
            made |= kept

        return self.change(plural, namespace, name, put)

    def delete(self, plural: str, namespace: str, name: str, options: Mapping[str, Any]) -> Object:
        """Mark an object for its end, or end it where nothing has to happen before."""
        with self.lock:
            there = self.get(plural, namespace, name)
            foreground = options.get("propagationPolicy") == "Foreground"
            if (plural == "jobs" or plural in self.crds) and foreground:
                return self.change(plural, namespace, name, self._condemn(0))
            grace = options.get("gracePeriodSeconds", 30)
            if plural == "pods" and grace and self._lingers(there):
                return self.change(plural, namespace, name, self._condemn(grace))
            self.remove(plural, namespace, name)
            return there

    def remove(self, plural: str, namespace: str, name: str) -> None:
        """End an object, and then what it owns."""
        with self.lock:
            gone = self._objects.pop((plural, namespace, name), None)
            if gone is None:
                return
            self._note("DELETED", plural, gone)
            uid = gone["metadata"]["uid"]
            for kind, space, owned in [*self._objects]:
                owners = self._objects[kind, space, owned]["metadata"].get("ownerReferences", [])
                if any(each["uid"] == uid for each in owners):
                    if kind == "pods":
                        self.delete(kind, space, owned, {})
                    else:
                        self.remove(kind, space, owned)

    def _lingers(self, pod: Object) -> bool:
        """Whether a pod stays until its node, or its Job, has seen that it is to go. One that has
        ended, and belongs to nobody who counts it, goes at once."""
        if not pod["spec"].get("nodeName"):
            return False
        ended = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
        owners = pod["metadata"].get("ownerReferences", [])
        return not ended or any(each["kind"] == "Job" for each in owners)

    def _condemn(self, grace: int) -> Callable[[Object], None]:
        """Mark an object: its time stamp says when its grace is over."""

        def mark(made: Object) -> None:
            about = made["metadata"]
            before = about.get("deletionGracePeriodSeconds")
            if before is None or grace < before:
                about["deletionTimestamp"] = self.timestamp(grace)
                about["deletionGracePeriodSeconds"] = grace

        return mark

    def _checked(self, plural: str, body: Object) -> tuple[Object, list[str]]:
        _, version, kind = self.kinds[plural]
        if (body.get("apiVersion"), body.get("kind")) != (version, kind):
            raise Refusal(400, "BadRequest", f"the object is no {kind} of {version}")
        name = body.get("metadata", {}).get("name", "x")
        crd = self.crds.get(plural)
        if crd is not None:
            given = {k: v for k, v in body.items() if k != "status" or not crd.has_status}
            made, dropped = crd.pruned(given)
            wrong = crd.complaints(made)
        else:
            made, dropped = pruned(kind, copy.deepcopy(body), old=self.old)
            wrong = complaints(kind, made)
        if wrong and crd is not None:
            raise Refusal(422, "Invalid", f'{kind} "{name}" is invalid: {wrong[0]}')
        if wrong:
            raise Refusal(400, "BadRequest", f"{kind} cannot be decoded: {wrong[0]}")
        if not _NAME.fullmatch(name):
            raise Refusal(422, "Invalid", f'{kind} "{name}" is invalid: metadata.name')
        if crd is None and made.get("spec", {}).get("backoffLimit", 0) < 0:
            raise Refusal(422, "Invalid", f'{kind} "{name}" is invalid: spec.backoffLimit')
        return made, dropped

    def dropped(self, plural: str, body: Object) -> list[str]:
        """The fields of an object that nobody knows."""
        return self._checked(plural, body)[1]

    def _demand(self, namespace: str) -> None:
        if namespace not in self.namespaces:
            raise Refusal(404, "NotFound", f'namespaces "{namespace}" not found')

    def _note(self, type_: str, plural: str, made: Object) -> Object:
        self._version += 1
        made["metadata"]["resourceVersion"] = str(self._version)
        self.history.append(Event(self._version, type_, plural, copy.deepcopy(made)))
        self.lock.notify_all()
        return copy.deepcopy(made)


def selects(labels: str, each: Object) -> bool:
    """Whether a selector of the form ``a=b,c=d`` or ``a in (b,c)`` selects an object."""
    there = each["metadata"].get("labels", {})
    for term in filter(None, re.split(r",(?![^(]*\))", labels)):
        among = re.fullmatch(r"\s*(\S+) in \(([^)]*)\)\s*", term)
        key, _, value = term.partition("=")
        wanted = [x.strip() for x in among[2].split(",")] if among else [value]
        if there.get(among[1] if among else key) not in wanted:
            return False
    return True


def merge(into: Object, other: Mapping[str, Any]) -> None:
    """Put the fields of one object into another one."""
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = copy.deepcopy(value)
