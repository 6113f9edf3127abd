"""Command jobs of a workspace: asked for by Azure Resource Manager; the history of their runs says
why they wait, when they began, how they ended, and what they have printed."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator, Sequence
from hashlib import blake2s
from posixpath import dirname
from typing import Any, ClassVar

from dispatcher.findings import Finding, Severity
from dispatcher.http_services.azure import Document, ResourceManager, codes_in
from dispatcher.http_services.client import HttpClient
from dispatcher.http_services.errors import AlreadyThere, Invalid, NotThere
from dispatcher.http_services.server_clock import moment_of
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.azureml.inspection import environment_path, parts_of, why_no_node
from dispatcher.platforms.azureml.section import OWN, REGISTRIES, AzureMlSection
from dispatcher.platforms.http_jobs.beginnings import Beginnings
from dispatcher.platforms.http_jobs.credentials import ReferredToken, address_of, named_at, text_at
from dispatcher.platforms.http_jobs.jobs import (
    JobEnd,
    JobOrder,
    JobService,
    ServiceJob,
    States,
    end_in_words,
    ran_out,
)
from dispatcher.platforms.http_jobs.pages import Pages

#: The version of the interface, and the beginning of the tag that all jobs of a service have.
VERSION, TAG = "2023-04-01", "bequeath-"

_WAITING = ("NotStarted", "Queued", "Provisioning", "Preparing", "Paused")
_RUNNING = ("Running", "Finalizing", "CancelRequested", "NotResponding")


class AzureMlJobs(JobService):
    """See :class:`~dispatcher.platforms.http_jobs.jobs.JobService`. A name is taken once, but to
    ask for it again changes the tags of what is there: so it is looked for before."""

    states: ClassVar[States] = {
        **dict.fromkeys(_WAITING, AllocationState.WAITING),
        "Starting": AllocationState.STARTING,
        **dict.fromkeys(_RUNNING, AllocationState.RUNNING),
        "Completed": Gone.FINISHED,
        "Failed": Gone.FAILED,
        "Canceled": Gone.CANCELLED,
    }
    refuses_names = False
    rank_variable = "NODE_RANK"

    def __init__(self, section: AzureMlSection, label: str) -> None:
        self._section, self._label = section, label
        self._arm = ResourceManager(
            address_of(section, section.address),
            f"/subscriptions/{section.subscription_id}/resourceGroups/{section.resource_group}"
            f"/providers/Microsoft.MachineLearningServices/workspaces/{section.workspace}",
            VERSION,
            None if section.token is None else ReferredToken(section.token),
        )
        super().__init__(self._arm.client)
        self._history: HttpClient | None = None
        self._pages = Pages(self._page)
        self._beginnings = Beginnings(self.states, self.times.now, self._start_of)
        self._environment = ""

    def create(self, order: JobOrder) -> None:
        """See :meth:`JobService.create`."""
        self._environment = self._environment or self._made_environment()
        body = body_of(order, self._section, self._arm.resource, self._environment)
        try:
            self._arm.ask("PUT", f"/jobs/{order.name}", f"create the job {order.name!r}", body)
        except Invalid as error:
            if self.find(order.name) is None:
                raise
            raise AlreadyThere(error.message, where=error.where) from error
        self._beginnings.ordered(order.name)

    def _made_environment(self) -> str:
        """The id of the environment of the jobs; of an image it is made, once for all of them."""
        image = self._section.image
        if image.startswith(REGISTRIES):
            return image
        if image.startswith(OWN):
            return self._arm.resource + environment_path(image)
        digest = blake2s(image.encode(), digest_size=8).hexdigest()
        path, asked = environment_path(f"bequeath:{digest}"), f"register the image {image!r}"
        try:
            self._arm.ask("GET", path, asked)
        except NotThere:
            about = {"image": image, "osType": "Linux", "isAnonymous": True}
            with contextlib.suppress(AlreadyThere):
                self._arm.ask("PUT", path, asked, {"properties": about})
        return self._arm.resource + path

    def list(self) -> Sequence[ServiceJob]:
        """See :meth:`JobService.list`: those that have the label as a tag."""
        return self._beginnings.of(self._pages.look(), asks=self._section.wall_s is not None)

    def _page(self, link: str) -> tuple[Sequence[ServiceJob], str]:
        query = {"jobType": "Command", "tag": TAG + self._label, "listViewType": "All"}
        rows, following = self._arm.page("/jobs", "list jobs", query, link)
        return [self._read(row) for row in rows], following

    def find(self, name: str) -> ServiceJob | None:
        """See :meth:`JobService.find`."""
        try:
            return self._read(self._arm.ask("GET", f"/jobs/{name}", f"read the job {name!r}"))
        except NotThere:
            return None

    def _read(self, row: Document) -> ServiceJob:
        about, made = row.get("properties") or {}, (row.get("systemData") or {}).get("createdAt")
        name, mark = str(row.get("name")), (about.get("tags") or {}).get(TAG + self._label)
        word, moment = str(about.get("status")), moment_of(made)
        return ServiceJob(name, name, word, created_at=moment, mark=mark or "none")

    def stop(self, job: ServiceJob, grace_s: float) -> None:
        """See :meth:`JobService.stop`: the service has a grace of its own."""
        try:
            self._arm.ask("POST", f"/jobs/{job.name}/cancel", f"cancel the job {job.name!r}")
        except (AlreadyThere, Invalid, NotThere):  # as it says of one that has ended
            there = self.find(job.name)
            if there is not None and not isinstance(self.states.get(there.word), Gone):
                raise

    def why(self, job: ServiceJob) -> str:
        """See :meth:`JobService.why`: what keeps its compute, else the run's newest warning."""
        if job.word in ("Queued", "Provisioning", "Starting"):
            path, asked = f"/computes/{self._section.compute}", f"ask why {job.name!r} waits"
            about = self._arm.ask("GET", path, asked).get("properties") or {}
            return why_no_node(self._section, about)
        warnings = [each.get("message") for each in self._run(job.name).get("warnings") or ()]
        usual = "its image is made ready, which takes minutes when it is used first"
        return str(warnings[-1] if warnings else usual if job.word == "Preparing" else "")

    def end_of(self, job: ServiceJob) -> JobEnd:
        """See :meth:`JobService.end_of`: by the error of its run, or the last line of its log."""
        run = self._run(job.name)
        began, ended = moment_of(run.get("startTimeUtc")), moment_of(run.get("endTimeUtc"))
        if ran_out(job._replace(started_at=began, ended_at=ended), self._section.wall_s):
            return JobEnd(Gone.WALL_TIME, "it has reached its 'wallTime'")
        error, files = (run.get("error") or {}).get("error") or {}, run.get("logFiles") or {}
        text, logs = error.get("message"), [files[x] for x in sorted(files) if "log" in x]
        if not text and logs and self.states.get(job.word) is Gone.FAILED:
            asked, section = f"read the log of {job.name!r}", self._section
            printed = text_at(section, str(logs[-1]), section.address, asked=asked)
            text = printed.strip().rpartition("\n")[2]
        return end_in_words(text, *reversed([*codes_in(error)]))

    def _start_of(self, name: str) -> float | None:
        return moment_of(self._run(name).get("startTimeUtc"))

    def _run(self, name: str) -> Document:
        """The details of a run, which lie in the region of the workspace."""
        if self._history is None:
            about = self._arm.ask("GET", "", "look at the workspace").get("properties") or {}
            there, own = str(about.get("discoveryUrl")), self._section.address
            self._history = self._arm.sibling(named_at(self._section, there, own))
        path = f"/history/v1.0{self._arm.resource}/runs/{name}/details"
        return self._history.ask("GET", path, asked=f"read the run {name!r}").fields

    def remove(self, job: ServiceJob) -> None:
        """See :meth:`JobService.remove`. Its name stays taken."""
        with contextlib.suppress(NotThere):
            self._arm.ask("DELETE", f"/jobs/{job.name}", f"remove the job {job.name!r}")

    def findings(self) -> Iterator[Finding]:
        """See :meth:`JobService.findings`: workspace, compute, datastores and environment."""
        self._page("")
        text = f"{self.where} lists jobs of {self._section.workspace!r}"
        yield Finding("platform", Severity.OK, text)
        yield from self._arm.findings(parts_of(self._section))

    def close(self) -> None:
        """See :meth:`JobService.close`."""
        super().close()
        if self._history is not None:
            self._history.close()


def body_of(
    order: JobOrder, section: AzureMlSection, workspace: str, environment: str
) -> dict[str, Any]:
    """A command job as Azure Resource Manager takes it. Pure.

    Args:
        order: of the job.
        section: the service's part of the file.
        workspace: its id.
        environment: its id.
    """
    stores = {f"store{number}": each for number, each in enumerate(section.datastores)}
    links = [  # a datastore is mounted at a path that only the job knows
        f"mkdir -p {shlex.quote(dirname(each.place))} && "
        f'ln -sfn "${{{{outputs.{key}}}}}" {shlex.quote(each.place)}'
        for key, each in stores.items()
    ]
    mount = {"jobOutputType": "uri_folder", "mode": "ReadWriteMount"}
    outputs = {
        key: {**mount, "uri": f"azureml://datastores/{each.name}/paths/{each.folder or ''}"}
        for key, each in stores.items()
    }
    extras, memory = dict(section.extras), section.shared_memory
    resources = {**extras.pop("resources", {}), "instanceCount": order.nodes}
    resources |= {} if memory is None else {"shmSize": f"{-(-memory >> 20)}m"}
    launch = {"distributionType": "PyTorch", "processCountPerInstance": 1}
    limits = {"jobLimitsType": "Command", "timeout": f"PT{order.wall_s or 0:.0f}S"}
    properties = {
        **extras,
        "jobType": "Command",
        "displayName": order.name,
        "experimentName": re.sub(r"[^\w-]+", "-", f"bequeath-{order.experiment}")[:255],
        "description": f"{order.worker} of experiment {order.experiment}",
        "tags": {**extras.get("tags", {}), TAG + order.label: order.mark},
        "computeId": f"{workspace}/computes/{section.compute}",
        "environmentId": environment,
        "command": " && ".join([*links, order.script]),
        "resources": resources,
        **({"outputs": outputs} if outputs else {}),
        **({"distribution": launch} if order.nodes > 1 else {}),
        **({"limits": limits} if order.wall_s is not None else {}),
    }
    return {"properties": properties}
