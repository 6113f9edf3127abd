"""Jobs of a DLTS cluster: asked for at its dashboard, listed, explained and stopped."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from dispatcher.errors import BackendError
from dispatcher.http_services.errors import Busy, Invalid, NotAllowed, OverQuota, Unreachable
from dispatcher.http_services.server_clock import loose_moment_of
from dispatcher.http_services.shapes import list_of_objects
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.dlts.dashboard import Dashboard
from dispatcher.platforms.dlts.section import DltsSection
from dispatcher.platforms.http_jobs.jobs import (
    LONGEST_REASON,
    JobEnd,
    JobOrder,
    JobService,
    ServiceJob,
    States,
    age_of,
    end_in_words,
    rows_in,
)

#: Jobs that have ended, in one answer: those that do not are all there.
ENDED = 100

#: A job of which a cluster says nothing is gone after so many answers: a fault of its database
#: looks the same.
SILENT_TIMES = 3

#: The variable of a job that has its mark.
MARK = "BEQUEATH_MARK"

PAUSED, UNAPPROVED = "paused", "unapproved"

Document = Mapping[str, Any]

#: The part of a list of jobs that is read: a thousand are a megabyte.
LISTED = list_of_objects(
    "jobId", "jobName", "jobStatus", "jobStatusDetail", "jobTime", jobParams=["env"]
)


class DltsJobs(JobService):
    """See :class:`~dispatcher.platforms.http_jobs.jobs.JobService`. The cluster chooses ids itself,
    and takes a name twice: a job is looked for by its name, and later by its id."""

    states: ClassVar[States] = {
        UNAPPROVED: AllocationState.WAITING,
        "queued": AllocationState.WAITING,
        "scheduling": AllocationState.STARTING,
        "running": AllocationState.RUNNING,
        "pausing": AllocationState.RUNNING,
        "killing": AllocationState.RUNNING,
        PAUSED: Gone.PREEMPTED,
        "finished": Gone.FINISHED,
        "failed": Gone.FAILED,
        "error": Gone.FAILED,
        "killed": Gone.CANCELLED,
    }
    refuses_names: ClassVar[bool] = False
    ends_at_wall: ClassVar[bool] = False

    def __init__(self, section: DltsSection, label: str) -> None:
        super().__init__(Dashboard(section))
        self._section = section
        self._label = label
        self._cluster = f"clusters/{section.cluster}"
        self._ids: dict[str, str] = {}  # of the oldest job of each name
        self._silent = Counter[str]()  # answers that say nothing, by name
        self._gpu_type = section.gpu_type

    def create(self, order: JobOrder) -> None:
        """See :meth:`JobService.create`. A refusal comes as an answer that is none."""
        asked, body = f"create the job {order.name!r}", body_of(order, self._section, self._type())
        path = f"/api/{self._cluster}/jobs"
        answer = self.client.ask("POST", path, asked=asked, body=body).fields
        if not answer.get("jobId"):
            raise _refusal(str(answer.get("error") or ""), asked, self.where)
        self._ids.setdefault(order.name, str(answer["jobId"]))

    def _type(self) -> str:
        """The type of GPU of jobs, as the file or the team has it."""
        if self._gpu_type is None:
            self._gpu_type = next(iter(self.gpu_types()), "")
        return self._gpu_type

    def gpu_types(self) -> Document:
        """Return what the team has, by the type of GPU. Raises ``BackendError``."""
        asked = f"look at the team {self._section.team!r} in {self._section.cluster!r}"
        path = f"/api/teams/{self._section.team}/{self._cluster}"
        metadata = self.client.ask("GET", path, asked=asked).fields.get("metadata")
        with contextlib.suppress(ValueError):
            types = json.loads(str(metadata or "{}"))
            if isinstance(types, dict):
                return {name: about for name, about in types.items() if name != "admin"}
        raise Unreachable(f"cannot {asked}: its metadata is no JSON", where=self.where)

    def list(self) -> Sequence[ServiceJob]:
        """See :meth:`JobService.list`: those of our user in the team."""
        asked, query = "list jobs", {"limit": ENDED}
        path = f"/api/v2/{self._cluster}/teams/{self._section.team}/jobs"
        answer = self.client.ask("GET", path, asked=asked, query=query, shape=LISTED)
        jobs = [job_of(row) for row in rows_in(answer, asked=asked)]
        ours = (job for job in jobs if job.name.startswith(f"{self._label}-"))
        for job in sorted((job for job in ours if job.name not in self._ids), key=age_of):
            self._ids.setdefault(job.name, job.id)
        return jobs

    def find(self, name: str) -> ServiceJob | None:
        """See :meth:`JobService.find`: by its id, once that is known."""
        id_ = self._ids.get(name)
        if id_ is None:
            return min((x for x in self.list() if x.name == name), key=age_of, default=None)
        row = self._detail(name, id_)
        if row.get("jobId"):
            del self._silent[name]
            return job_of(row)
        self._silent[name] += not row  # what has an error in it is no silence
        if self._silent[name] < SILENT_TIMES:
            text = f"cannot read the job {name!r}: the cluster says nothing of it"
            raise Unreachable(text, where=self.where)
        del self._ids[name], self._silent[name]
        return None

    def stop(self, job: ServiceJob, grace_s: float) -> None:
        """See :meth:`JobService.stop`. It knows no grace."""
        path = f"/api/{self._cluster}/jobs/{job.id}/status"
        asked = f"stop the job {job.name!r}"
        self.client.ask("PUT", path, asked=asked, body={"status": "killing"})

    def remove(self, job: ServiceJob) -> None:
        """See :meth:`JobService.remove`: records stay, and nobody is to resume what is paused."""
        if job.word == PAUSED:
            self.stop(job, 0.0)

    def end_of(self, job: ServiceJob) -> JobEnd:
        """See :meth:`JobService.end_of`: what the cluster says, else the last line of its log."""
        row = self._detail(job.name, job.id)
        texts = [row.get("errorMsg"), *(each.get("message") for each in _details(row))]
        if job.word == PAUSED:
            texts.insert(0, "it was paused there, and a job that is resumed begins anew")
        elif not any(texts):
            with contextlib.suppress(BackendError):
                texts += self._printed(job)[-1:]
        return end_in_words(*texts)

    def _printed(self, job: ServiceJob) -> Sequence[str]:
        """The lines of a job's log that are not ours."""
        path, asked = f"/api/{self._cluster}/jobs/{job.id}/log", f"read the log of {job.name!r}"
        log = self.client.ask("GET", path, asked=asked).fields.get("log") or ""
        text = "\n".join(map(str, log.values())) if isinstance(log, Mapping) else str(log)
        return [x for x in text.splitlines() if x.strip() and not x.startswith("bequeath:")]

    def _detail(self, name: str, id_: str) -> Document:
        path = f"/api/v2/{self._cluster}/jobs/{id_}"
        return dict(self.client.ask("GET", path, asked=f"read the job {name!r}").document)


def body_of(order: JobOrder, section: DltsSection, gpu_type: str) -> dict[str, Any]:
    """A job as the dashboard takes it. Pure.

    Args:
        order: of the job.
        section: the service's part of the file.
        gpu_type: of its GPUs; empty: the team has none.
    """
    off = ("ssh", "ipython", "tensorboard", "hostNetwork", "useGPUTopology", "isPrivileged")
    usual: dict[str, Any] = {
        **dict.fromkeys(("workPath", "dataPath", "jobPath"), ""),
        **dict.fromkeys(("enableworkpath", "enablejobpath"), True),
        **dict.fromkeys((*off, "hostIPC", "enabledatapath"), False),
        **{"interactivePorts": [], "mountpoints": [], "preemptionAllowed": "False"},
    }
    own = {
        "team": section.team,
        "vcName": section.team,
        "userName": section.email,
        "jobName": order.name,
        "jobType": "training",
        "jobtrainingtype": "RegularJob",
        "gpuType": gpu_type,
        "resourcegpu": section.gpus,
        "image": section.image,
        "cmd": order.script,
        "env": [{"name": MARK, "value": order.mark}],
    }
    return {**usual, **section.extras, **own}


def job_of(row: Document) -> ServiceJob:
    """A job by what a list, or the details of one, say of it."""
    word, details = str(row.get("jobStatus")), _details(row)
    first, last = (details[0], details[-1]) if details else ({}, {})
    says_why = DltsJobs.states.get(word) is not AllocationState.RUNNING
    text = " ".join(str(last.get("message") or "").split()) if says_why else ""
    usual = "an administrator of the team has to approve it" if word == UNAPPROVED else ""
    return ServiceJob(
        str(row.get("jobName")),
        str(row.get("jobId")),
        word,
        (text or usual)[:LONGEST_REASON],
        created_at=loose_moment_of(row.get("jobTime")),
        started_at=loose_moment_of(first.get("startedAt")),
        ended_at=loose_moment_of(last.get("finishedAt")),
        mark=_mark(row.get("jobParams")),
    )


def _details(row: Document) -> Sequence[Document]:
    given = row.get("jobStatusDetail")
    return [x for x in given if isinstance(x, dict)] if isinstance(given, list) else ()


def _mark(parameters: object) -> str:
    """The mark in the parameters of a job; empty: they are not said."""
    if not isinstance(parameters, dict):
        return ""
    for each in parameters.get("env") or ():
        if isinstance(each, dict) and each.get("name") == MARK:
            return str(each.get("value"))
    return "none of ours"


def _refusal(text: str, asked: str, where: str) -> BackendError:
    """The error that the refusal of a job stands for. Nothing was created."""
    if not text:
        return Unreachable(f"cannot {asked}: the answer names no job", where=where)
    kinds: dict[str, type[BackendError]] = {"denied": NotAllowed, "quota": OverQuota}
    kinds |= {"cannot add job": Busy, "": Invalid}
    kind = next(kind for word, kind in kinds.items() if word in text.lower())
    hint = "is 'team' one that you may use in this 'cluster'?" if kind is NotAllowed else ""
    return kind(f"cannot {asked}: {' '.join(text.split())}", hint=hint, where=where)
