"""Custom jobs of Vertex AI. It chooses their names itself, so ours is a label, by which a job is
looked for before it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from dispatcher.findings import Finding, Severity
from dispatcher.http_services.errors import NotThere
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.google_cloud.jobs import (
    ATTEMPT,
    SECRET_PLACE,
    SERVICE,
    GoogleJobs,
    job_of,
    labels_of,
    page_of,
)
from dispatcher.platforms.http_jobs.jobs import JobOrder, ServiceJob, States
from dispatcher.platforms.vertex.section import VertexSection

#: The service, as in ``endpoints`` of the file and in its address.
API = "aiplatform"

#: Jobs on one page of the list, at most, and what is said of each.
PAGE = 1000
_FIELDS = "name,displayName,labels,state,error,createTime,startTime,endTime"


class VertexJobs(GoogleJobs):
    """See :class:`GoogleJobs`."""

    states: ClassVar[States] = {
        "JOB_STATE_QUEUED": AllocationState.WAITING,
        "JOB_STATE_PAUSED": AllocationState.WAITING,
        "JOB_STATE_PENDING": AllocationState.STARTING,
        "JOB_STATE_RUNNING": AllocationState.RUNNING,
        "JOB_STATE_UPDATING": AllocationState.RUNNING,
        "JOB_STATE_CANCELLING": AllocationState.RUNNING,
        "JOB_STATE_SUCCEEDED": Gone.FINISHED,
        "JOB_STATE_PARTIALLY_SUCCEEDED": Gone.FAILED,
        "JOB_STATE_FAILED": Gone.FAILED,
        "JOB_STATE_EXPIRED": Gone.FAILED,
        "JOB_STATE_CANCELLED": Gone.CANCELLED,
    }
    refuses_names: ClassVar[bool] = False

    def __init__(self, section: VertexSection, label: str) -> None:
        super().__init__(section, label, API, f"{section.region}-{API}")
        self._section = section
        self._path = f"/v1/projects/{section.project}/locations/{section.region}"
        self._oldest: dict[str, ServiceJob] = {}  # of each name that was listed

    def ask_for(self, order: JobOrder, command: Sequence[str]) -> None:
        """See :class:`GoogleJobs`."""
        body = body_of(order, command, self._section)
        self.client.ask("POST", self._jobs, asked=f"create the job {order.name!r}", body=body)

    def page(self, token: str) -> tuple[Sequence[ServiceJob], str]:
        """See :class:`GoogleJobs`."""
        jobs, following = self._listed(f'labels.{SERVICE}="{self.label}"', "list jobs", token)
        for job in jobs:
            known = self._oldest.get(job.name, job)
            self._oldest[job.name] = min(known, job, key=_age)
        return jobs, following

    def find(self, name: str) -> ServiceJob | None:
        """See :class:`JobService`: by its id, once that is known, which no list has to have."""
        asked = f"look for the job {name!r}"
        if name not in self._oldest:
            found, _ = self._listed(f'labels.{ATTEMPT}="{name}"', asked)
            return min(found, key=_age, default=None)
        try:
            path = self.path(self._oldest[name].id)
            return _read(self.client.ask("GET", path, asked=asked).fields)
        except NotThere:
            del self._oldest[name]
            return None

    def path(self, id_: str) -> str:
        """See :class:`GoogleJobs`."""
        return f"{self._jobs}/{id_}"

    def remove(self, job: ServiceJob) -> None:
        """See :class:`JobService`."""
        super().remove(job)
        self.client.ask("DELETE", self.path(job.id), asked=f"remove the job {job.name!r}")

    def more_findings(self) -> Iterator[Finding]:
        """See :class:`GoogleJobs`: the bucket for outputs, and machines that are kept."""
        output, name = self._section.base_output_directory, self._section.persistent_resource_id
        if output is not None:
            yield self.apis.bucket(output, "baseOutputDirectory")
        if name is None:
            return
        path, keys = f"{self._path}/persistentResources/{name}", (("persistentResourceId",),)
        try:
            found = self.client.ask("GET", path, asked=f"look at the resource {name!r}").fields
        except NotThere as error:
            yield Finding("resource", Severity.PROBLEM, error.message, keys=keys)
            return
        state = str(found.get("state"))
        well = Severity.OK if state == "RUNNING" else Severity.NOTE
        yield Finding("resource", well, f"the persistent resource {name!r} is {state}", keys=keys)

    @property
    def _jobs(self) -> str:
        return f"{self._path}/customJobs"

    def _listed(self, chosen: str, asked: str, token: str = "") -> tuple[list[ServiceJob], str]:
        query: dict[str, str | int] = {"filter": chosen, "pageSize": PAGE, "readMask": _FIELDS}
        query |= {"pageToken": token} if token else {}
        answer = self.client.ask("GET", self._jobs, asked=asked, query=query)
        rows, following = page_of(answer, "customJobs")
        return [_read(row) for row in rows], following


class VertexJobsWithSecrets(VertexJobs):
    """Jobs that share no folder with this machine."""

    secret_place: ClassVar[str] = SECRET_PLACE


def body_of(order: JobOrder, command: Sequence[str], section: VertexSection) -> dict[str, Any]:
    """A job as Vertex AI takes it. The first node is alone in the first pool, which is its rule.

    Args:
        order: of the job.
        command: of each of its nodes.
        section: the service's part of the file.
    """
    pool: dict[str, Any] = {
        "machineSpec": section.machine,
        "replicaCount": "1",
        "containerSpec": {"imageUri": section.image, "command": list(command)},
    }
    if section.disk:
        pool["diskSpec"] = section.disk
    if section.nfs_mounts:
        pool["nfsMounts"] = [
            {"server": each.server, "path": each.path, "mountPoint": each.mount_point}
            for each in section.nfs_mounts
        ]
    others = [{**pool, "replicaCount": str(order.nodes - 1)}] if order.nodes > 1 else []
    scheduling: dict[str, Any] = {"restartJobOnWorkerRestart": False, "disableRetries": True}
    scheduling |= {"strategy": section.strategy} if section.strategy else {}
    if order.wall_s is not None:
        scheduling["timeout"] = f"{order.wall_s:.0f}s"
    spec: dict[str, Any] = {"workerPoolSpecs": [pool, *others], "scheduling": scheduling}
    output, attachment = section.base_output_directory, section.network_attachment
    named = {
        "serviceAccount": section.service_account,
        "network": section.network,
        "persistentResourceId": section.persistent_resource_id,
        "baseOutputDirectory": {"outputUriPrefix": output} if output else None,
        "pscInterfaceConfig": {"networkAttachment": attachment} if attachment else None,
    }
    spec |= {key: value for key, value in named.items() if value is not None}
    labels = {**section.labels, **labels_of(order)}
    return {"displayName": order.name, "labels": labels, "jobSpec": spec}


def _age(job: ServiceJob) -> tuple[float, str]:
    return (job.created_at or 0.0, job.id)


def _read(document: Mapping[str, Any]) -> ServiceJob:
    reason = str((document.get("error") or {}).get("message") or "")
    if document.get("state") == "JOB_STATE_PARTIALLY_SUCCEEDED":
        reason = reason or "a part of it has succeeded"
    return job_of(document, str(document.get("name", "")).rpartition("/")[2], reason)
