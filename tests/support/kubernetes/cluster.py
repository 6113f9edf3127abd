"""Controllers, a scheduler and a kubelet over an :class:`ApiServer`: Jobs become pods, and those
processes of this machine.

Paths of a pod are those of this machine, but for the volume with the agent's configuration: its
mount is replaced in the arguments by a folder. Where versions differ, each does as its own: see
``README.md``.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.support.kubernetes.api_server import ApiServer, serving
from tests.support.kubernetes.objects import Object, Objects, Refusal
from tests.support.kubernetes.operators import Operator, owned_by

STEP_S = 0.05
SPACE = "trials"
_LABEL_PATH = re.compile(r"metadata\.labels\['([^']+)'\]")


class _Container:
    """The process of a pod, and what is known of its end."""

    def __init__(self, process: subprocess.Popen[bytes], wall_s: float | None) -> None:
        self.process = process
        self.dies_at: float | None = None
        self.reason = ""  # of the pod, for which it was ended
        self.ends_at = None if wall_s is None else time.monotonic() + wall_s

    def end(self, grace_s: float) -> None:
        """Ask it to end; by force after a grace."""
        if self.dies_at is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.terminate()
        moment = time.monotonic() + grace_s
        self.dies_at = moment if self.dies_at is None else min(self.dies_at, moment)

    def look(self) -> int | None:
        """Its exit code as a container has it; None: it runs."""
        if self.dies_at is not None and time.monotonic() >= self.dies_at:
            self.process.kill()
        if self.ends_at is not None and time.monotonic() >= self.ends_at and not self.reason:
            self.reason = "DeadlineExceeded"
            self.end(2.0)
        code = self.process.poll()
        return 128 - code if code is not None and code < 0 else code


class _Hands:
    """What played controllers do, see :class:`tests.support.kubernetes.operators.Hands`."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.timestamp = objects.timestamp

    def make(self, plural: str, body: Object) -> None:
        with contextlib.suppress(Refusal):
            self._objects.create(plural, SPACE, body)

    def delete(self, plural: str, name: str, grace_s: int | None = None) -> None:
        options = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        with contextlib.suppress(Refusal):
            self._objects.delete(plural, SPACE, name, options)

    def note(self, plural: str, name: str, status: Object) -> None:
        with contextlib.suppress(Refusal):
            self._objects.change(plural, SPACE, name, lambda made: made.update(status=status))

    def finish(self, plural: str, name: str) -> None:
        self._objects.remove(plural, SPACE, name)


class Cluster:
    """What fills the objects of a server with life.

    Args:
        api: the server.
        folder: for files of volumes and the output of containers.
        places: pods that run at once.
        operators: controllers of kinds that are no part of Kubernetes.

    Attributes:
        places: pods that run at once; a test may change it.
        lag_s: how much later a Job says that its pods have ended (seconds); a test may change it.
    """

    def __init__(
        self, api: ApiServer, folder: Path, places: int, operators: Sequence[Operator] = ()
    ) -> None:
        self.api = api
        self.operators = operators
        self.places = places
        self.lag_s = 0.0
        self._over_since: dict[str, float] = {}  # that the pods of a Job have, by its uid
        self._folder = folder
        self._objects = api.objects
        for each in operators:
            api.keep(each.crd, *each.given)
        self._hands = _Hands(api.objects)
        self._containers: dict[str, _Container] = {}  # by the uid of their pod
        self._ended = threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="cluster", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End all containers, at once."""
        self._ended.set()
        self._thread.join(30)
        for each in self._containers.values():
            each.process.kill()
            each.process.wait()
        if self.error is not None:
            raise self.error

    def pods(self) -> list[Object]:
        """Those that have a container, and are to go on."""
        there = [x for x in self._objects.all("pods", SPACE) if _uid(x) in self._containers]
        return [each for each in there if "deletionTimestamp" not in each["metadata"]]

    @property
    def containers(self) -> int:
        """How many run."""
        return len(self._containers)

    def evict(self, pod: str) -> None:
        """Drain a pod, as by the API for evictions."""
        with self._objects.lock:
            if not self._objects.old:
                text = "Eviction API: evicting"
                reason = "EvictionByEvictionAPI"
                self._status(pod, _condition("DisruptionTarget", "True", reason, text))
            self._objects.delete("pods", SPACE, pod, {"gracePeriodSeconds": 5})

    # -- the thread ------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while not self._ended.wait(STEP_S):
                with self._objects.lock:
                    for job in self._objects.all("jobs", SPACE):
                        self._control(job)
                    for operator in self.operators:
                        for each in self._objects.all(operator.plural, SPACE):
                            pods = owned_by(each, self._objects.all("pods", SPACE))
                            operator.step(self._hands, each, pods)
                    self._schedule()
                    for pod in self._objects.all("pods", SPACE):
                        self._keep(pod)
        except BaseException as error:
            self.error = error
            raise

    def _status(self, pod: str, *conditions: Object, **fields: Any) -> None:
        def change(made: Object) -> None:
            status = made.setdefault("status", {})
            status.update(fields)
            types = [each["type"] for each in conditions]
            kept = [each for each in status.get("conditions", []) if each["type"] not in types]
            before = {each["type"]: each for each in status.get("conditions", [])}
            for each in conditions:  # as long as nothing changes, since when does not either
                old = before.get(each["type"], {})
                same = old.get("status") == each["status"] and old.get("reason") == each["reason"]
                since = old["lastTransitionTime"] if same else self._objects.timestamp()
                kept.append({**each, "lastTransitionTime": since})
            status["conditions"] = kept

        with contextlib.suppress(Refusal):
            self._objects.change("pods", SPACE, pod, change)

    # -- Jobs ------------------------------------------------------------------------------------

    def _control(self, job: Object) -> None:
        about = job["metadata"]
        pods = [x for x in self._objects.all("pods", SPACE) if _owner(x) == about["uid"]]
        if "deletionTimestamp" in about:
            for pod in pods:
                if "deletionTimestamp" not in pod["metadata"]:
                    grace = pod["spec"].get("terminationGracePeriodSeconds", 30)
                    self._remove(pod, grace)
            if not pods:
                self._objects.remove("jobs", SPACE, about["name"])
            return
        conditions = job.get("status", {}).get("conditions", [])
        if any(each["type"] in ("Complete", "Failed") for each in conditions):
            return
        if job["spec"].get("suspend"):
            return
        failed = [each for each in pods if _phase(each) == "Failed"]
        done = [each for each in pods if _phase(each) == "Succeeded"]
        wanted = job["spec"].get("completions", 1)
        if (failed or done) and self._lags(about["uid"]):
            return
        if any(_has(each, "DisruptionTarget") for each in failed) and not self._objects.old:
            text = "Pod trials/x has condition DisruptionTarget matching FailJob rule at index 0"
            self._note(job, _condition("Failed", "True", "PodFailurePolicy", text))
        elif failed:
            text = "Job has reached the specified backoff limit"
            self._note(job, _condition("Failed", "True", "BackoffLimitExceeded", text))
        elif len(done) >= wanted:
            self._note(job, _condition("Complete", "True", "", ""))
        elif len(pods) < wanted:
            self._make(job)

    def _lags(self, job: str) -> bool:
        now = time.monotonic()
        return now - self._over_since.setdefault(job, now) < self.lag_s

    def _note(self, job: Object, condition: Object) -> None:
        def change(made: Object) -> None:
            status = made.setdefault("status", {})
            there = status.setdefault("conditions", [])
            if all(each["type"] != condition["type"] for each in there):
                there.append({**condition, "lastTransitionTime": self._objects.timestamp()})

        self._objects.change("jobs", SPACE, job["metadata"]["name"], change)

    def _make(self, job: Object) -> None:
        about, template = job["metadata"], job["spec"]["template"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": about["name"],
                 "uid": about["uid"], "controller": True, "blockOwnerDeletion": True}  # fmt: skip
        labels = template["metadata"].get("labels", {})
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{about['name']}-{uuid.uuid4().hex[:5]}",
                "labels": {**labels, "job-name": about["name"], "controller-uid": about["uid"]},
                "ownerReferences": [owner],
            },
            "spec": template["spec"],
        }
        try:
            self._objects.create("pods", SPACE, pod)
        except Refusal as refusal:
            self._warn(job, "FailedCreate", f"Error creating: {refusal}")

    def _warn(self, of: Object, reason: str, text: str) -> None:
        about = of["metadata"]
        name = f"{about['name']}.{reason.lower()}"
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name},
            "involvedObject": {"kind": of["kind"], "name": about["name"], "uid": about["uid"],
                               "namespace": SPACE},
            "type": "Warning",
            "reason": reason,
            "message": text,
            "lastTimestamp": self._objects.timestamp(),
        }  # fmt: skip
        self._objects.apply("events", SPACE, name, event)

    # -- places ----------------------------------------------------------------------------------

    def _schedule(self) -> None:
        pods = self._objects.all("pods", SPACE)
        taken = sum(bool(x["spec"].get("nodeName")) and _is_active(x) for x in pods)
        for pod in pods:
            name = pod["metadata"]["name"]
            if pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
                continue
            if taken >= self.places:
                text = "0/1 nodes are available: 1 Insufficient cpu."
                condition = _condition("PodScheduled", "False", "Unschedulable", text)
                self._status(name, condition, phase="Pending")
                continue
            taken += 1
            bind = {"nodeName": "n1"}
            self._objects.change("pods", SPACE, name, lambda x, b=bind: x["spec"].update(b))
            self._status(name, _condition("PodScheduled", "True", "", ""), phase="Pending")

    # -- containers ------------------------------------------------------------------------------

    def _keep(self, pod: Object) -> None:
        about = pod["metadata"]
        if not pod["spec"].get("nodeName"):
            if "deletionTimestamp" in about:
                self._objects.remove("pods", SPACE, about["name"])
            return
        container = self._containers.get(about["uid"])
        if container is None:
            if "deletionTimestamp" not in about and _is_active(pod):
                self._start(pod)
            elif "deletionTimestamp" in about and self._is_counted(pod):
                self._objects.remove("pods", SPACE, about["name"])
            return
        if "deletionTimestamp" in about:
            container.end(about.get("deletionGracePeriodSeconds", 30))
        code = container.look()
        if code is None:
            with contextlib.suppress(Refusal, FileNotFoundError):  # its folder has gone meanwhile
                self._write_secrets(pod)  # as kubelets bring what has changed, after a while
            return
        self._end(pod, container, code)

    def _is_counted(self, pod: Object) -> bool:
        """Whether the Job of a pod needs it no more. Newer servers keep it as long (by a
        finalizer); older ones lose it as it happens."""
        jobs = self._objects.all("jobs", SPACE)
        job = next((x for x in jobs if x["metadata"]["uid"] == _owner(pod)), None)
        if job is None or self._objects.old or "deletionTimestamp" in job["metadata"]:
            return True
        conditions = job.get("status", {}).get("conditions", [])
        return any(each["type"] in ("Complete", "Failed") for each in conditions)

    def _end(self, pod: Object, container: _Container, code: int) -> None:
        about = pod["metadata"]
        del self._containers[about["uid"]]
        given = pod["spec"]["containers"][0]
        now = self._objects.timestamp()
        terminated = {
            "exitCode": code,
            "reason": "Error" if code else "Completed",
            "startedAt": pod["status"]["startTime"],
            "finishedAt": now,
        }
        output = self._output(about["uid"]).read_text(errors="replace")
        if code and given.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            terminated["message"] = output[-2048:]
        self.api.logs[about["name"]] = output
        status = _container_status(given, {"terminated": terminated}, ready=False)
        phase = "Failed" if code or container.reason else "Succeeded"
        more = {"reason": container.reason, "message": container.reason} if container.reason else {}
        self._status(about["name"], phase=phase, containerStatuses=[status], **more)

    def _start(self, pod: Object) -> None:
        about, given = pod["metadata"], pod["spec"]["containers"][0]
        now = self._objects.timestamp()
        if "missing" in given["image"]:
            state = {"waiting": {"reason": "ErrImagePull", "message": "it is not there"}}
            status = _container_status(given, state, ready=False)
            since = pod["status"].get("startTime", now)
            self._status(about["name"], startTime=since, containerStatuses=[status])
            return
        try:
            argv, variables = self._prepared(pod, given)
        except Refusal as refusal:  # it waits for what it mounts
            since = pod["status"].get("startTime", now)
            state = {"waiting": {"reason": "ContainerCreating"}}
            status = _container_status(given, state, ready=False)
            self._status(about["name"], startTime=since, containerStatuses=[status])
            self._warn(pod, "FailedMount", f"MountVolume.SetUp failed: {refusal}")
            return
        with self._output(about["uid"]).open("wb") as output:
            process = subprocess.Popen(
                argv,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd=self._folder,
            )
        wall_s = pod["spec"].get("activeDeadlineSeconds")
        self._containers[about["uid"]] = _Container(process, wall_s)
        status = _container_status(given, {"running": {"startedAt": now}}, ready=True)
        self._status(about["name"], phase="Running", startTime=now, containerStatuses=[status])

    def _prepared(self, pod: Object, given: Object) -> tuple[list[str], dict[str, str]]:
        """The arguments and variables of a container. Raises ``Refusal``: its Secret is missing."""
        places = self._write_secrets(pod)
        variables = {"PATH": os.environ["PATH"], "HOME": str(self._folder)}
        for each in given.get("env", []):
            variables[each["name"]] = self._value(pod, each)
        argv = [*given["command"], *given.get("args", [])]
        for at, folder in places.items():
            inside = f"{at}/"
            argv = [str(folder / x[len(inside) :]) if x.startswith(inside) else x for x in argv]
        return argv, variables

    def _value(self, pod: Object, variable: Object) -> str:
        """The value of a variable of a container. Raises ``Refusal``: its Secret is missing."""
        source = variable.get("valueFrom", {})
        if "secretKeyRef" in source:
            key = source["secretKeyRef"]
            data = self._objects.get("secrets", SPACE, key["name"])["data"]
            return base64.b64decode(data[key["key"]]).decode()
        if "fieldRef" not in source:
            return str(variable.get("value", ""))
        path = source["fieldRef"]["fieldPath"]
        about = pod["metadata"]
        label = _LABEL_PATH.fullmatch(path)
        if label is not None:
            return str(about.get("labels", {}).get(label[1], ""))
        fields = {"metadata.name": about["name"], "status.podIP": "127.0.0.1"}
        return fields[path]

    def _write_secrets(self, pod: Object) -> dict[str, Path]:
        """Write the files of Secrets that a pod mounts; the folders, by where it has them."""
        places: dict[str, Path] = {}
        volumes = {each["name"]: each for each in pod["spec"].get("volumes", [])}
        for mount in pod["spec"]["containers"][0].get("volumeMounts", []):
            secret = volumes[mount["name"]].get("secret")
            if secret is None:
                continue
            data = self._objects.get("secrets", SPACE, secret["secretName"]).get("data", {})
            folder = self._folder / pod["metadata"]["uid"]
            folder.mkdir(exist_ok=True)
            for item in secret["items"]:
                content = base64.b64decode(data[item["key"]])
                file = folder / item["path"]
                if not file.exists() or file.read_bytes() != content:
                    new = folder / f".{item['path']}"
                    new.write_bytes(content)
                    new.replace(file)
            places[mount["mountPath"]] = folder
        for mount in pod["spec"]["containers"][0].get("volumeMounts", []):
            projected = volumes[mount["name"]].get("projected")
            if projected is not None:
                places[mount["mountPath"]] = self._write_maps(pod, projected["sources"])
        return places

    def _write_maps(self, pod: Object, sources: list[Object]) -> Path:
        """Write the files of ConfigMaps that a pod mounts in one folder, which is returned."""
        folder = self._folder / f"{pod['metadata']['uid']}.maps"
        folder.mkdir(exist_ok=True)
        for each in sources:
            source = each["configMap"]
            data = self._objects.get("configmaps", SPACE, source["name"])["binaryData"]
            for item in source["items"]:
                file = folder / item["path"]
                if not file.exists():
                    new = folder / f".{item['path']}"
                    new.write_bytes(base64.b64decode(data[item["key"]]))
                    new.replace(file)
        return folder

    def _output(self, uid: str) -> Path:
        return self._folder / f"{uid}.output"

    def _remove(self, pod: Object, grace_s: float) -> None:
        options = {"gracePeriodSeconds": grace_s}
        with contextlib.suppress(Refusal):
            self._objects.delete("pods", SPACE, pod["metadata"]["name"], options)


def _condition(kind: str, status: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _container_status(given: Object, state: Object, *, ready: bool) -> Object:
    named = {"name": given["name"], "image": given["image"], "imageID": ""}
    return {**named, "ready": ready, "restartCount": 0, "state": state}


def _owner(pod: Object) -> str:
    owners = pod["metadata"].get("ownerReferences", [])
    return owners[0]["uid"] if owners else ""


def _uid(pod: Object) -> str:
    uid: str = pod["metadata"]["uid"]
    return uid


def _phase(pod: Object) -> str:
    phase: str = pod.get("status", {}).get("phase", "")
    return phase


def _is_active(pod: Object) -> bool:
    return _phase(pod) not in ("Succeeded", "Failed")


def _has(pod: Object, kind: str) -> bool:
    return any(each["type"] == kind for each in pod.get("status", {}).get("conditions", []))


@contextlib.contextmanager
def cluster(
    folder: Path, version: str = "1.36", *, places: int = 4, operators: Sequence[Operator] = ()
) -> Iterator[Cluster]:
    """A server with nodes for a while, and the kinds of the controllers that are played."""
    with serving(version, crds=[each.crd for each in operators]) as api:
        made = Cluster(api, folder, places, operators)
        try:
            yield made
        finally:
            made.close()
