"""A service of jobs that is asked without HTTP, and that lacks whatever a service may lack: it has
no secrets, refuses no name, and does not end jobs at their wall time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import ClassVar

from dispatcher.http_services.client import HttpAddress, HttpClient
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.http_jobs.jobs import (
    JobEnd,
    JobOrder,
    JobService,
    ServiceJob,
    States,
)
from tests.support.services.machines import Machines, PlayedJob


class PlainJobs(JobService):
    """The service.

    Attributes:
        asked: what it was asked.
        errors: raised by the next creations, after they were carried out.
        ends: how jobs ended, by name; what is not there is not explained.
        removed: names of jobs whose records were removed.
    """

    states: ClassVar[States] = {
        "waits": AllocationState.WAITING,
        "runs": AllocationState.RUNNING,
        "done": Gone.FINISHED,
        "failed": Gone.FAILED,
        "stopped": Gone.CANCELLED,
    }
    refuses_names = False
    ends_at_wall = False

    def __init__(self, machines: Machines) -> None:
        super().__init__(HttpClient(HttpAddress("http://127.0.0.1:1")))
        self.machines = machines
        self.asked: list[str] = []
        self.errors: list[Exception] = []
        self.ends: dict[str, JobEnd] = {}
        self.removed: list[str] = []
        self.orders: list[JobOrder] = []
        self._ids = itertools.count(1)

    def create(self, order: JobOrder) -> None:
        """See :class:`JobService`."""
        self.asked.append("create")
        self.orders.append(order)
        rank = [{self.rank_variable: str(number)} for number in range(order.nodes)]
        argvs = [["sh", "-c", order.script] for _ in rank]
        job = PlayedJob(order.name, argvs, rank, order.mark, order.wall_s)
        self.machines.add(f"id-{next(self._ids):04}", job)
        if self.errors:
            raise self.errors.pop(0)

    def list(self) -> Sequence[ServiceJob]:
        """See :class:`JobService`."""
        self.asked.append("list")
        return [self._job(id_, job) for id_, job in list(self.machines.jobs.items())]

    def find(self, name: str) -> ServiceJob | None:
        """See :class:`JobService`."""
        self.asked.append("find")
        found = [self._job(k, v) for k, v in self.machines.jobs.items() if v.name == name]
        return found[0] if found else None

    def stop(self, job: ServiceJob, grace_s: float) -> None:
        """See :class:`JobService`."""
        self.asked.append("stop")
        self.machines.stop(job.id, grace_s=grace_s)

    def end_of(self, job: ServiceJob) -> JobEnd:
        """See :class:`JobService`."""
        self.asked.append("end")
        return self.ends.get(job.name, JobEnd())

    def remove(self, job: ServiceJob) -> None:
        """See :class:`JobService`."""
        self.removed.append(job.name)
        self.machines.remove(job.id)

    def _job(self, id_: str, job: PlayedJob) -> ServiceJob:
        word = "waits" if job.waits else "runs"
        if job.ended is not None:
            word = "failed" if job.code else "done"
            word = "stopped" if job.cause == "stopped" else word
        return ServiceJob(
            job.name,
            id_,
            job.word or word,
            created_at=job.created,
            started_at=job.started,
            ended_at=job.ended,
            restarts=job.retries,
            mark=str(job.document or ""),
        )
