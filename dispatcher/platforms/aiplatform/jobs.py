"""Jobs of AI Platform Training (``ml.v1``). Their ids are ours, and are never free again: of a
second job of one it says that it exists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from dispatcher.findings import Finding, Severity
from dispatcher.http_services.errors import NotThere
from dispatcher.platforms.aiplatform.section import AiTrainingSection
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.google_cloud.jobs import (
    SECRET_PLACE,
    GoogleJobs,
    job_of,
    labels_of,
    page_of,
)
from dispatcher.platforms.http_jobs.jobs import JobOrder, ServiceJob, States

#: Jobs on one page of the list: its most.
PAGE = 100


class AiTrainingJobs(GoogleJobs):
    """See :class:`GoogleJobs`."""

    states: ClassVar[States] = {
        "QUEUED": AllocationState.WAITING,
        "PREPARING": AllocationState.STARTING,
        "RUNNING": AllocationState.RUNNING,
        "CANCELLING": AllocationState.RUNNING,
        "SUCCEEDED": Gone.FINISHED,
        "FAILED": Gone.FAILED,
        "CANCELLED": Gone.CANCELLED,
    }

    def __init__(self, section: AiTrainingSection, label: str) -> None:
        super().__init__(section, label, "ml")
        self._section = section
        self._project = f"/v1/projects/{section.project}"

    def ask_for(self, order: JobOrder, command: Sequence[str]) -> None:
        """See :class:`GoogleJobs`."""
        body, asked = body_of(order, command, self._section), f"create the job {order.name!r}"
        self.client.ask("POST", f"{self._project}/jobs", asked=asked, body=body)

    def page(self, token: str) -> tuple[Sequence[ServiceJob], str]:
        """See :class:`GoogleJobs`."""
        query: dict[str, str | int] = {"filter": f"jobId:{id_of(self.label)}_*", "pageSize": PAGE}
        query |= {"pageToken": token} if token else {}
        answer = self.client.ask("GET", f"{self._project}/jobs", asked="list jobs", query=query)
        rows, following = page_of(answer, "jobs")
        return [_read(row) for row in rows], following

    def find(self, name: str) -> ServiceJob | None:
        """See :class:`JobService`."""
        asked = f"look for the job {name!r}"
        try:
            return _read(self.client.ask("GET", self.path(id_of(name)), asked=asked).fields, name)
        except NotThere:
            return None

    def path(self, id_: str) -> str:
        """See :class:`GoogleJobs`."""
        return f"{self._project}/jobs/{id_}"

    def more_findings(self) -> Iterator[Finding]:
        """See :class:`GoogleJobs`: the folder of the jobs, the region, and its GPUs."""
        if self._section.job_dir is not None:
            yield self.apis.bucket(self._section.job_dir, "jobDir")
        region, wanted = self._section.region, self._section.machine.accelerator
        path, asked = f"{self._project}/locations/{region}", f"look at the region {region!r}"
        try:
            able = self.client.ask("GET", path, asked=asked).fields.get("capabilities") or ()
        except NotThere as error:
            yield Finding("region", Severity.PROBLEM, error.message, keys=(("region",),))
            return
        training = [each for each in able if each.get("type") == "TRAINING"]
        there = [name for each in training for name in each.get("availableAccelerators") or ()]
        if wanted and wanted not in there:
            text = f"{region} has no {wanted}: its accelerators are {', '.join(there) or 'none'}"
            keys = (("acceleratorType",), ("scaleTier",), ("region",))
            yield Finding("region", Severity.PROBLEM, text, keys=keys)


class AiTrainingJobsWithSecrets(AiTrainingJobs):
    """Jobs that share no folder with this machine."""

    secret_place: ClassVar[str] = SECRET_PLACE


def id_of(name: str) -> str:
    """The id of a job: letters, digits and ``_``, and a letter first. Names have no ``_``."""
    return f"bq_{name.replace('-', '_')}"


def body_of(order: JobOrder, command: Sequence[str], section: AiTrainingSection) -> dict[str, Any]:
    """A job as AI Platform takes it.

    Args:
        order: of the job.
        command: of each of its nodes.
        section: the service's part of the file.
    """
    machine = section.machine
    config: dict[str, Any] = {"imageUri": section.image, "containerCommand": list(command)}
    if machine.gpus:
        config["acceleratorConfig"] = {"type": machine.accelerator, "count": str(machine.gpus)}
    if section.disk:
        config["diskConfig"] = section.disk
    given: dict[str, Any] = {
        "scaleTier": "CUSTOM",
        "masterType": machine.machine,
        "masterConfig": config,
        "region": section.region,
    }
    if order.nodes > 1:
        more = str(order.nodes - 1)
        given |= {"workerType": machine.machine, "workerCount": more, "workerConfig": config}
    if order.wall_s is not None:
        given["scheduling"] = {"maxRunningTime": f"{order.wall_s:.0f}s"}
    named = {
        "jobDir": section.job_dir,
        "serviceAccount": section.service_account,
        "network": section.network,
    }
    given |= {key: value for key, value in named.items() if value is not None}
    labels = {**section.labels, **labels_of(order)}
    return {"jobId": id_of(order.name), "labels": labels, "trainingInput": given}


def _read(document: Mapping[str, Any], name: str = "") -> ServiceJob:
    reason = str(document.get("errorMessage") or "")
    place = document.get("jobPosition") or "0"
    if document.get("state") == "QUEUED" and str(place) != "0":
        reason = f"it has place {place} in the queue"
    return job_of(document, str(document.get("jobId", "")), reason, name)
