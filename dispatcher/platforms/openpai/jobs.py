"""Jobs of an OpenPAI cluster: asked for by its protocol v2, listed, explained and stopped."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from dispatcher.http_services.client import HttpClient
from dispatcher.http_services.errors import NotThere
from dispatcher.http_services.signing import TokenSigner
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.http_jobs.credentials import ReferredToken, address_of, secret_of
from dispatcher.platforms.http_jobs.jobs import (
    JobEnd,
    JobOrder,
    JobService,
    ServiceJob,
    States,
    end_in_words,
    epoch_s,
    rows_in,
)
from dispatcher.platforms.openpai.section import OpenPaiSection

#: The task role of the agent, its image, and the names of secrets.
ROLE, IMAGE, SECRET, PASSWORD = "agent", "image", "bequeath", "registry_password"

#: Jobs in one answer, and answers for one list.
PAGE, MOST_PAGES = 5_000, 10

_MARK = re.compile(r"bequeath ([0-9a-f]{32})")

Document = Mapping[str, Any]


class OpenPaiJobs(JobService):
    """See :class:`~dispatcher.platforms.http_jobs.jobs.JobService`."""

    states: ClassVar[States] = {
        "WAITING": AllocationState.WAITING,
        "RUNNING": AllocationState.RUNNING,
        "STOPPING": AllocationState.RUNNING,
        "SUCCEEDED": Gone.FINISHED,
        "FAILED": Gone.FAILED,
        "STOPPED": Gone.CANCELLED,
    }
    secret_place = f"<% $secrets.{SECRET} %>"
    rank_variable = "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"
    ends_at_wall = False

    def __init__(self, section: OpenPaiSection, label: str) -> None:
        super().__init__(client_of(section))
        self._section = section
        self._label = label

    def create(self, order: JobOrder) -> None:
        """See :meth:`JobService.create`. A name is taken once, so it may be asked for twice."""
        registry = self._section.registry
        password = "" if registry is None else secret_of(registry.password)
        self.client.ask(
            "POST",
            "/api/v2/jobs",
            asked=f"create the job {order.name!r}",
            body=_yaml(body_of(order, self._section, password)),
            kind="text/yaml",
            is_repeatable=True,
            secrets=(order.secret, password),
        )

    def list(self) -> Sequence[ServiceJob]:
        """See :meth:`JobService.list`: those of our user with the label in their names."""
        jobs: list[ServiceJob] = []
        for page in range(MOST_PAGES):
            query: dict[str, str | int] = {
                "username": self._section.user,
                "keyword": self._label,
                "order": "submissionTime,DESC",
                "offset": page * PAGE,
                "limit": PAGE,
            }
            answer = self.client.ask("GET", "/api/v2/jobs", asked="list jobs", query=query)
            rows = rows_in(answer, asked="list jobs")
            jobs += [job_of(str(row.get("name")), row) for row in rows]
            if len(rows) < PAGE:
                break
        return jobs

    def find(self, name: str) -> ServiceJob | None:
        """See :meth:`JobService.find`."""
        try:
            return job_of(name, self._status(name))
        except NotThere:
            return None

    def mark(self, job: ServiceJob) -> str:
        """See :meth:`JobService.mark`: it stands in the job's description."""
        asked, path = f"read the job {job.name!r}", f"{self._path(job.name)}/config"
        text = self.client.ask("GET", path, asked=asked, accept="text/yaml").document
        mark = _MARK.search(str(text))
        return "of somebody else" if mark is None else mark[1]

    def stop(self, job: ServiceJob, grace_s: float) -> None:
        """See :meth:`JobService.stop`. It knows no grace."""
        path = f"{self._path(job.name)}/executionType"
        asked = f"stop the job {job.name!r}"
        self.client.ask("PUT", path, asked=asked, body={"value": "STOP"})

    def why(self, job: ServiceJob) -> str:
        """See :meth:`JobService.why`: its newest warning."""
        asked, path = f"ask why {job.name!r} waits", f"{self._path(job.name)}/events"
        answer = self.client.ask("GET", path, asked=asked, query={"type": "Warning"})
        events = answer.fields.get("data") or ()
        return "".join(f"{x.get('reason')}: {x.get('message')}" for x in events[:1])

    def end_of(self, job: ServiceJob) -> JobEnd:
        """See :meth:`JobService.end_of`: by its exit code, and what the cluster makes of it."""
        status = self._status(job.name)
        spec, messages = status.get("appExitSpec") or {}, status.get("appExitMessages") or {}
        texts = (spec.get("phrase"), spec.get("reason"), status.get("appExitTriggerMessage"))
        more = (messages.get("container"), status.get("appExitDiagnostics"))
        return end_in_words(*texts, *more, code=status.get("appExitCode"))

    def output(self, name: str) -> str:
        """See :meth:`JobService.output`: by the locations of its logs."""
        path = f"{self._path(name)}/attempts/0/taskRoles/{ROLE}/taskIndex/0/attempts/0/logs"
        asked = f"read what {name!r} has printed"
        answer = self.client.ask("GET", path, asked=asked, query={"tailMode": "true"})
        given = answer.fields.get("locations") or ()
        logs = {str(each.get("name")): str(each.get("uri")) for each in given}
        uri = next((uri for log, uri in logs.items() if log.endswith((".all", "stdout"))), "")
        if not uri:
            return ""
        whole = uri if "://" in uri else f"{self._section.address}{uri}"
        return str(self.client.ask("GET", whole, asked=asked, accept="text/plain").document)

    def _path(self, name: str) -> str:
        return f"/api/v2/jobs/{self._section.user}~{name}"

    def _status(self, name: str) -> Document:
        answer = self.client.ask("GET", self._path(name), asked=f"read the job {name!r}")
        status = answer.fields.get("jobStatus")
        return status if isinstance(status, Mapping) else {}


def client_of(section: OpenPaiSection) -> HttpClient:
    """The client of a section's cluster. Raises ``PermanentBackendError``."""
    address = address_of(section, f"{section.address}/rest-server")
    return HttpClient(address, TokenSigner(ReferredToken(section.token)))


def body_of(order: JobOrder, section: OpenPaiSection, password: str) -> dict[str, Any]:
    """The protocol of a job. Pure.

    Args:
        order: of the job.
        section: the service's part of the file.
        password: of the registry; empty: none.
    """
    image: dict[str, Any] = {"name": IMAGE, "type": "dockerimage", "uri": section.image}
    secrets = {SECRET: order.secret}
    if section.registry is not None:
        secrets[PASSWORD] = password
        image["auth"] = {
            "username": section.registry.user,
            "password": f"<% $secrets.{PASSWORD} %>",
            "registryuri": section.registry.address,
        }
    role: dict[str, Any] = {
        "instances": order.nodes,
        "taskRetryCount": 0,
        "dockerImage": IMAGE,
        "resourcePerInstance": section.node_resources,
        "commands": [order.script],
    }
    if section.shared_memory is not None:
        role["extraContainerOptions"] = {"shmMB": -(-section.shared_memory >> 20)}
    body: dict[str, Any] = {
        "protocolVersion": 2,
        "name": order.name,
        "type": "job",
        "description": f"bequeath {order.mark}, {order.worker} of experiment {order.experiment}",
        "prerequisites": [image],
        "secrets": secrets,
        "jobRetryCount": 0,
        "taskRoles": {ROLE: role},
        "defaults": {"virtualCluster": section.virtual_cluster},
    }
    storages = [{"name": each.name, "mountPath": each.place} for each in section.storages]
    extras = {**section.extras, **({"storages": storages} if storages else {})}
    return {**body, **({"extras": extras} if extras else {})}


def job_of(name: str, row: Document) -> ServiceJob:
    """A job by what a list, or the details of one, say of it."""
    return ServiceJob(
        name,
        f"{row.get('username')}~{name}",
        str(row.get("state")),
        created_at=epoch_s(row.get("submissionTime") or row.get("createdTime")),
        started_at=epoch_s(row.get("launchedTime")),
        ended_at=epoch_s(row.get("completedTime")),
        restarts=int(row.get("retries") or 0),
    )


def _yaml(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()  # which is YAML, too
