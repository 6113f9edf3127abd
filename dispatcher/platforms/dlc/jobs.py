"""Jobs of PAI-DLC. It chooses their ids itself and refuses no name, so a job is looked for by its
name before it is asked for, and known as ours by its tags."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from dispatcher.errors import PermanentBackendError
from dispatcher.findings import Finding, Severity
from dispatcher.http_services.errors import Invalid, NotThere
from dispatcher.http_services.server_clock import moment_of
from dispatcher.platforms.alibaba_cloud.jobs import AlibabaJobs
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.dlc.section import DlcSection
from dispatcher.platforms.http_jobs.jobs import (
    JobEnd,
    JobOrder,
    ServiceJob,
    States,
    age_of,
    end_in_words,
    rows_in,
)
from dispatcher.platforms.http_jobs.launching import LEAVE_S
from dispatcher.platforms.http_jobs.pages import Pages

#: The path of jobs, and how many are on a page of the list.
JOBS, PAGE = "/api/v1/jobs", 100

#: Tags of a job: of its order, its service, and the order's digest.
ATTEMPT, SERVICE, MARK = "bequeath-attempt", "bequeath-service", "bequeath-mark"

#: The service's own bound is so much beyond that which the script of a job keeps (seconds).
_SPARE_S = 60.0

Document = Mapping[str, Any]


class DlcJobs(AlibabaJobs):
    """See :class:`~dispatcher.platforms.http_jobs.jobs.JobService`."""

    version: ClassVar[str] = "2020-12-03"
    states: ClassVar[States] = {
        "Creating": AllocationState.WAITING,
        "Queuing": AllocationState.WAITING,
        "Bidding": AllocationState.WAITING,
        "EnvPreparing": AllocationState.STARTING,
        "SanityChecking": AllocationState.STARTING,
        "Running": AllocationState.RUNNING,
        "Restarting": AllocationState.RUNNING,
        "Stopping": AllocationState.RUNNING,
        "SucceededReserving": Gone.FINISHED,
        "Succeeded": Gone.FINISHED,
        "FailedReserving": Gone.FAILED,
        "Failed": Gone.FAILED,
        "Stopped": Gone.CANCELLED,
    }
    refuses_names: ClassVar[bool] = False
    rank_variable: ClassVar[str] = "RANK"
    ends_at_wall: ClassVar[bool] = False  # it counts whole minutes

    def __init__(self, section: DlcSection, label: str) -> None:
        super().__init__(section)
        self._section = section
        self._pages = Pages(lambda token: self._page(label, token))
        self._oldest: dict[str, ServiceJob] = {}  # of each name that was listed

    def create(self, order: JobOrder) -> None:
        """See :meth:`JobService.create`."""
        body = body_of(order, self._section)
        self.ask("CreateJob", JOBS, f"create the job {order.name!r}", "POST", body=body)

    def list(self) -> Sequence[ServiceJob]:
        """See :meth:`JobService.list`."""
        return self._pages.look()

    def find(self, name: str) -> ServiceJob | None:
        """See :meth:`JobService.find`: by its id, once that is known, which no list has to have."""
        if name not in self._oldest:
            Pages(lambda token: self._page(name, token)).look()
            return self._oldest.get(name)
        try:
            return job_of(self._detail(self._oldest[name]))
        except NotThere:
            del self._oldest[name]
            return None

    def mark(self, job: ServiceJob) -> str:
        """See :meth:`JobService.mark`: not all lists have tags."""
        return job.mark or job_of(self._detail(job)).mark or "of somebody else"

    def stop(self, job: ServiceJob, grace_s: float) -> None:
        """See :meth:`JobService.stop`: its grace was a part of the order."""
        path, asked = f"{JOBS}/{job.id}/stop", f"stop the job {job.name!r}"
        with contextlib.suppress(NotThere):
            try:
                self.ask("StopJob", path, asked, "POST")
            except Invalid:  # as it may say of one that has ended
                if not isinstance(self.states.get(job_of(self._detail(job)).word), Gone):
                    raise

    def why(self, job: ServiceJob) -> str:
        """See :meth:`JobService.why`: the last event of the job, or of a node that is prepared."""
        operation, path = "GetJobEvents", f"{JOBS}/{job.id}/events"
        if self.states.get(job.word) is AllocationState.STARTING and (pod := self._pod(job)):
            operation, path = "GetPodEvents", f"{JOBS}/{job.id}/pods/{pod}/events"
        asked = f"ask why {job.name!r} waits"
        answer = self.ask(operation, path, asked, query={"MaxEventsNum": 100})
        return " ".join(str((answer.fields.get("Events") or [""])[-1]).split())

    def end_of(self, job: ServiceJob) -> JobEnd:
        """See :meth:`JobService.end_of`: by its reason, and the last line of its log."""
        end = end_in_words(job.reason)
        if end.gone is not None or self.states.get(job.word) is not Gone.FAILED:
            return end
        lines: Sequence[str] = ()
        with contextlib.suppress(PermanentBackendError):  # of those who may read no logs
            lines = self._lines(job, 20)
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return end_in_words(": ".join(filter(None, (job.reason, last))))

    def output(self, name: str) -> str:
        """See :meth:`JobService.output`: that of its first node."""
        job = self.find(name)
        return "" if job is None else "\n".join(self._lines(job, 1000))

    def remove(self, job: ServiceJob) -> None:
        """See :meth:`JobService.remove`. One that keeps its machine, and the bill, is stopped."""
        if job.word.endswith("Reserving"):
            self.stop(job, 0.0)
        else:
            self.ask("DeleteJob", f"{JOBS}/{job.id}", f"remove the job {job.name!r}", "DELETE")

    def findings(self) -> Iterator[Finding]:
        """See :meth:`AlibabaJobs.findings`: public machines, which are sold out at times."""
        section, wanted = self._section, self._section.ecs_spec
        if wanted is None:
            return
        query = {"InstanceTypes": wanted}
        answer = self.ask("ListEcsSpecs", "/api/v1/ecsspecs", "list machines", query=query)
        specs = answer.fields.get("EcsSpecs") or ()
        mine = next((each for each in specs if each.get("InstanceType") == wanted), None)
        key, severity, text = "ecsSpec", Severity.OK, f"{section.region} has machines {wanted!r}"
        if mine is None:
            severity, text = Severity.PROBLEM, f"{section.region} has no machines {wanted!r}"
        elif (count := int(mine.get("Gpu") or 0)) != section.gpus:
            key, severity = "gpus", Severity.NOTE
            text = f"the GPUs of {wanted!r} are {count}, and the file says {section.gpus}"
        elif mine.get("IsAvailable") is False:
            severity, text = Severity.NOTE, f"machines {wanted!r} are sold out now: jobs would wait"
        yield Finding("machines", severity, text, keys=((key,),))

    def _page(self, name: str, token: str) -> tuple[Sequence[ServiceJob], str]:
        """Jobs with a text in their names, and the token of the next page: its number, and how
        many came before."""
        number, before = map(int, (token or "1 0").split())
        query: dict[str, str | int] = {
            "WorkspaceId": self._section.workspace_id,
            "DisplayName": name,
            "StartTime": f"{self.version}T00:00:00Z",  # else what is older than a week is left out
            "SortBy": "GmtCreateTime",
            "Order": "desc",
            "PageNumber": number,
            "PageSize": PAGE,
        }
        answer = self.ask("ListJobs", JOBS, "list jobs", query=query)
        jobs = [job_of(row) for row in rows_in(answer, "Jobs", asked="list jobs")]
        for job in jobs:
            known = self._oldest.get(job.name, job)
            self._oldest[job.name] = min(known, job, key=age_of)
        seen = before + len(jobs)
        has_more = bool(jobs) and seen < int(answer.fields.get("TotalCount") or 0)
        return jobs, f"{number + 1} {seen}" if has_more else ""

    def _detail(self, job: ServiceJob) -> Document:
        return self.ask("GetJob", f"{JOBS}/{job.id}", f"read the job {job.name!r}").fields

    def _pod(self, job: ServiceJob) -> str:
        """The id of its first node; empty: it has none yet."""
        pods: Sequence[Document] = self._detail(job).get("Pods") or ()
        ids = sorted((pod.get("Type") != "Master", str(pod.get("PodId"))) for pod in pods)
        return ids[0][1] if ids else ""

    def _lines(self, job: ServiceJob, most: int) -> Sequence[str]:
        pod, asked = self._pod(job), f"read the log of the job {job.name!r}"
        if not pod:
            return ()
        path = f"{JOBS}/{job.id}/pods/{pod}/logs"
        answer = self.ask("GetPodLogs", path, asked, query={"MaxLines": most})
        return answer.fields.get("Logs") or ()


def body_of(order: JobOrder, section: DlcSection) -> dict[str, Any]:
    """A job as the service takes it: a PyTorchJob, whose master is the first node. Pure.

    Args:
        order: of the job.
        section: the service's part of the file.
    """
    node = {**section.node, "Image": section.image, "RestartPolicy": "Never", **_machine(section)}
    workers = [{**node, "Type": "Worker", "PodCount": order.nodes - 1}] if order.nodes > 1 else []
    grace = {"TerminationGracePeriodSeconds": int(order.grace_s + LEAVE_S)}
    ours = {ATTEMPT: order.name, SERVICE: order.label, MARK: order.mark}
    tags = {"Tags": {**section.settings.get("Tags", {}), **ours}}
    wall_s, vpc = order.wall_s, section.vpc
    most_s = None if wall_s is None else wall_s + order.grace_s + LEAVE_S + _SPARE_S
    sources = [
        _given(DataSourceId=each.id, Uri=each.uri, MountPath=each.at)
        for each in section.data_sources
    ]
    network = vpc and _given(VpcId=vpc.id, SecurityGroupId=vpc.security_group, SwitchId=vpc.switch)
    return _given(
        DisplayName=order.name,
        Description=f"bequeath: {order.worker} of experiment {order.experiment}",
        JobType="PyTorchJob",
        JobSpecs=[{**node, "Type": "Master", "PodCount": 1}, *workers],
        UserCommand=order.script,
        WorkspaceId=section.workspace_id,
        Accessibility="PRIVATE",
        Settings={**grace, **section.settings, **tags},
        JobMaxRunningTimeMinutes=None if most_s is None else -int(-most_s // 60),
        ResourceId=section.resource_id,
        Priority=section.priority,
        DataSources=sources or None,
        UserVpc=network,
    )


def _machine(section: DlcSection) -> Document:
    if section.ecs_spec is not None:
        return {"EcsSpec": section.ecs_spec}
    wanted = {"Memory": section.memory, "SharedMemory": section.shared_memory}
    sizes = {key: f"{-(-size >> 30)}Gi" for key, size in wanted.items() if size is not None}
    gpus = {"GPU": str(section.gpus), "GPUType": section.gpu_type} if section.gpus else {}
    return {"ResourceConfig": {"CPU": str(section.cpus), **sizes, **_given(**gpus)}}


def _given(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def job_of(document: Document) -> ServiceJob:
    """A job by what a list, or the details of one, say of it."""
    word, settings = str(document.get("Status")), document.get("Settings") or {}
    count = str(document.get("RestartTimes") or 0).partition("/")[0]  # "1/3": of how many at most
    ends = (document.get(f"Gmt{each}Time") for each in ("Finish", "Successed", "Failed", "Stopped"))
    reasons = (document.get(key) for key in ("ReasonCode", "ReasonMessage", "SubStatus"))
    return ServiceJob(
        str(document.get("DisplayName")),
        str(document.get("JobId")),
        word,
        "" if word == "Running" else ": ".join(str(each) for each in reasons if each),
        created_at=moment_of(document.get("GmtCreateTime")),
        started_at=moment_of(document.get("GmtRunningTime")),
        ended_at=next((moment_of(each) for each in ends if each), None),
        place=next(iter(document.get("NodeNames") or ()), ""),
        restarts=1 if word == "Restarting" else int(count) if count.isdecimal() else 0,
        mark=str((settings.get("Tags") or {}).get(MARK) or ""),
    )
